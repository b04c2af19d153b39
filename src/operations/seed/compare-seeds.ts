/** Compares two seeds list by list. Both seeds have the form that `seed export` writes. */
import { canonicalJson } from '../../domain/json/json.js'
import type { Item } from './seed-items.js'

export interface Difference {
  list: string
  name: string
  /** `missing`: only the first seed has the record. `added`: only the second seed has the record. */
  difference: 'missing' | 'added' | 'changed'
  attributes?: string[]
}

type Lists = Readonly<Record<string, unknown>>

/** Compares only these `lists`. The order of items does not matter. */
export function compareSeeds(first: Lists, second: Lists, lists: readonly string[]): Difference[] {
  return lists.flatMap((list) =>
    compareLists(list, (first[list] ?? []) as readonly Item[], (second[list] ?? []) as readonly Item[]),
  )
}

function compareLists(list: string, first: readonly Item[], second: readonly Item[]): Difference[] {
  const found: Difference[] = []
  const rest = new Set(second)
  const pair = (items: readonly Item[], key: (item: Item) => unknown) => {
    const places = new Map<unknown, Item[]>()
    for (const item of rest) places.set(key(item), [...(places.get(key(item)) ?? []), item])
    return items.filter((item) => {
      const other = key(item) === undefined ? undefined : places.get(key(item))?.shift()
      if (other === undefined) return true
      rest.delete(other)
      const attributes = differing(item, other)
      if (attributes.length > 0) found.push({ list, name: nameOf(item), difference: 'changed', attributes })
      return false
    })
  }
  const withoutTwin = pair(first, ({ id }) => id)
  // An item without an id matches an item with equal attributes. If no item has equal attributes, an item matches the
  // item with the same name.
  const others = pair(withoutTwin, ({ id: _, ...item }) => canonicalJson(item))
  const missing = pair(others, ({ name, email }) => name ?? email)
  for (const item of missing) found.push({ list, name: nameOf(item), difference: 'missing' })
  for (const item of rest) found.push({ list, name: nameOf(item), difference: 'added' })
  return found
}

/** An id or key that the first item lacks is random in the second item, and is not compared. */
function differing(first: Item, second: Item): string[] {
  const names = new Set([...Object.keys(first), ...Object.keys(second)])
  return [...names].filter((name) => {
    if (first[name] === undefined && (name === 'id' || name === 'key')) return false
    return canonicalJson(first[name]) !== canonicalJson(second[name])
  })
}

function nameOf({ name, email, id, parent_id, child_id }: Item): string {
  if (typeof parent_id === 'string') return `${parent_id} ${child_id}`
  return String(name ?? email ?? id ?? '')
}
