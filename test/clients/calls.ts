/** Finds all calls of a client by reflection, and records which calls were answered. */
import type { Test } from 'tap'

// biome-ignore lint/suspicious/noExplicitAny: a client is inspected without its types.
export type Client = any

/** Returns the name of each property of an object, including getters and methods of its classes. */
function membersOf(object: object): string[] {
  const names = new Set<string>()
  for (let at = object; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at))
    for (const name of Object.getOwnPropertyNames(at)) names.add(name)
  return [...names].filter((name) => name !== 'constructor' && !name.startsWith('_') && name !== 'client')
}

/**
 * Returns every `group.call` of a client. A getter that throws belongs to an area that is not configured, and is left
 * out.
 */
export function listCalls(client: object, below = '', depth = 0): string[] {
  return membersOf(client).flatMap((name) => {
    let value: unknown
    try {
      value = (client as Record<string, unknown>)[name]
    } catch {
      return []
    }
    if (typeof value === 'function') return [below + name]
    if (typeof value !== 'object' || value === null || depth > 4) return []
    return listCalls(value, `${below}${name}.`, depth + 1)
  })
}

/** Wraps a client so that each call that succeeds is added to `answered`. */
export function watch(client: Client, answered: Set<string>, below = ''): Client {
  return new Proxy(client, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      const path = below + String(name)
      if (typeof value === 'object' && value !== null) return watch(value, answered, `${path}.`)
      if (typeof value !== 'function') return value
      return async (...words: unknown[]) => {
        const answer = await value.apply(target, words)
        answered.add(path)
        return answer
      }
    },
  })
}

/**
 * With the calls of `group`, creates a record, reads the record, finds it in the list of records and changes its name.
 * Returns the record as it was created.
 */
export async function manage(t: Test, group: Client, draft: object): Promise<Client> {
  const made = await group.create(draft)
  t.match(made, draft)
  t.match(await (group.retrieve ?? group.get)(made.id), draft)
  const { data } = await group.list({ size: 100 })
  t.ok(data.some(({ id }: { id: string }) => id === made.id))
  t.match(await group.update(made.id, { ...draft, name: 'more' }), { name: 'more' })
  await group.patch?.(made.id, { name: 'most' })
  return made
}
