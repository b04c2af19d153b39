/** Rows by id and by key: of a log, a transaction, or a vault in memory. Shadows older rows. */
import { lowerBound, toText } from '../bytes.js'
import { LOG_ROWS, type Row, type RowId, type SeekQuery, type Where } from '../engine.js'
import { isWithin } from '../time.js'
import { type Change, DROP, INSERT, isRemoval, REMOVE } from './row-change.js'

/** A version of a row; not live once a later one replaced or removed it. */
interface Item {
  row: Row
  isLive: boolean
}

/** The newest version of an id: its live row, or none (a tombstone). */
interface Entry {
  item: Item | undefined
  /** Whether an older memtable or table may hold a row of this id. */
  isShadowing: boolean
}

/** Stale items are removed from an index when there are more than this, and more of them than live ones. */
const STALE_LIMIT = 1024
const KEY_BYTES = 8
const NOBODY: ReadonlySet<number> = new Set()

/** Items by key, ascending by `seq`. */
class KeyIndex {
  /** Most keys have one item, which is kept without an array. */
  readonly #byKey = new Map<string, Item | Item[]>()
  #items = 0
  #stale = 0

  add(item: Item): void {
    this.#items++
    const { keys } = item.row
    for (let at = 0; at < keys.length; at += KEY_BYTES) {
      const key = toText(keys, at, at + KEY_BYTES)
      const found = this.#byKey.get(key)
      if (found === undefined) this.#byKey.set(key, item)
      else if (Array.isArray(found)) place(found, item)
      else this.#byKey.set(key, place([found], item))
    }
  }

  get(key: Uint8Array): readonly Item[] {
    const found = this.#byKey.get(toText(key)) ?? []
    return Array.isArray(found) ? found : [found]
  }

  /** Counts an item that is stale from now on. Returns whether the index is better built anew. */
  markStale(): boolean {
    return ++this.#stale > STALE_LIMIT && this.#stale * 2 >= this.#items
  }
}

/** Inserts an item by `seq`, in place of an older version of its row if there is one. */
function place(items: Item[], item: Item): Item[] {
  const { seq } = item.row
  if (items[items.length - 1]!.row.seq < seq) items.push(item)
  else {
    const at = firstFrom(items, seq)
    items.splice(at, items[at]!.row.seq === seq ? 1 : 0, item)
  }
  return items
}

function firstFrom(items: readonly Item[], seq: number): number {
  return lowerBound(items.length, (index) => items[index]!.row.seq >= seq)
}

export class Memtable {
  /** Ids whose older versions, in older memtables or tables, are gone, in the order of the changes; only grows. */
  readonly shadowed: RowId[] = []
  /** Tenants whose older rows are all gone. */
  dropped: ReadonlySet<number> = NOBODY
  /** Whether rows in older memtables or tables are to be overwritten soon. */
  isErasing = false
  /** Whether it held a version of a row that was removed and is to be overwritten at once. */
  hasRemoved = false
  /** Keys of all rows that were put: if rows have many, as those of logs, keys take most of the memory. */
  keyCount = 0
  readonly #entries = new Map<string, Entry>()
  readonly #kinds = new Set<number>()
  /** By kind, each built when it is first asked for: most commands need none, and the keys of logs are many. */
  readonly #indexes = new Map<number, KeyIndex>()

  constructor(changes: readonly Change[] = []) {
    for (const change of changes) this.apply(change)
  }

  apply({ kind, row }: Change): void {
    if (kind === DROP) {
      this.#drop(row.tenant)
      return
    }
    const text = toText(row.id)
    let entry = this.#entries.get(text)
    this.#kinds.add(row.kind)
    if (entry === undefined) {
      entry = { item: undefined, isShadowing: this.#shadow(row, kind) }
      this.#entries.set(text, entry)
    }
    if (entry.item !== undefined) this.#kill(entry.item)
    if (kind !== REMOVE) {
      entry.item = { row, isLive: true }
      this.keyCount += row.keys.length / KEY_BYTES
      this.#indexes.get(row.kind)?.add(entry.item)
      return
    }
    if (entry.item !== undefined && isRemoval({ kind, row })) this.hasRemoved = true
    entry.item = undefined
    if (!entry.isShadowing) this.#entries.delete(text)
  }

  #kill(item: Item): void {
    item.isLive = false
    if (this.#indexes.get(item.row.kind)?.markStale()) this.#indexes.delete(item.row.kind)
  }

  /** Records that older versions of the row are gone; an insert has none. */
  #shadow(row: Row, kind: Change['kind']): boolean {
    if (kind === INSERT || this.dropped.has(row.tenant)) return false
    this.shadowed.push(row.id)
    if (row.kind !== LOG_ROWS) this.isErasing = true
    return true
  }

  #drop(tenant: number): void {
    this.dropped = new Set([...this.dropped, tenant])
    for (const [text, { item }] of this.#entries) {
      if (item?.row.tenant !== tenant) continue
      this.#kill(item)
      this.#entries.delete(text)
    }
  }

  get isEmpty(): boolean {
    return this.#kinds.size === 0 && this.dropped.size === 0
  }

  changes(kind: number): boolean {
    return this.#kinds.has(kind) || this.dropped.size > 0
  }

  /** By id as text; undefined if older memtables and tables decide. */
  entry(text: string): Entry | undefined {
    return this.#entries.get(text)
  }

  /** Whether an older row with this id or of this tenant is gone. */
  hides(tenant: number, text: string): boolean {
    return this.dropped.has(tenant) || this.#entries.has(text)
  }

  get count(): number {
    return this.#entries.size
  }

  /** Live rows, ascending by `seq`. */
  live(): Row[] {
    return [...this.each()].sort((left, right) => left.seq - right.seq)
  }

  *each(): Generator<Row> {
    for (const { item } of this.#entries.values()) if (item !== undefined) yield item.row
  }

  #index(kind: number): KeyIndex {
    const known = this.#indexes.get(kind)
    if (known !== undefined) return known
    const index = new KeyIndex()
    const items = [...this.#entries.values()].flatMap(({ item }) => (item?.row.kind === kind ? item : []))
    for (const item of sortItems(items)) index.add(item)
    this.#indexes.set(kind, index)
    return index
  }

  /** Live rows that match, newest first, or oldest first with `above`. Each has the key `all`. */
  *search({ kind, tenant, all, where, below, above }: Omit<SeekQuery, 'size'>): Generator<Row> {
    if (!this.#kinds.has(kind)) return
    const index = this.#index(kind)
    const candidates = this.#candidates(index, where) ?? index.get(all)
    const matches = createMatcher(where)
    const step = above === undefined ? -1 : 1
    const first =
      above === undefined
        ? firstFrom(candidates, below ?? Number.POSITIVE_INFINITY) - 1
        : firstFrom(candidates, above + 1)
    for (let at = first; at >= 0 && at < candidates.length; at += step) {
      const { row, isLive } = candidates[at]!
      if (isLive && row.tenant === tenant && row.kind === kind && matches(row)) yield row
    }
  }

  /** A superset of what can match, ascending by `seq`; undefined when the condition does not narrow it. */
  #candidates(index: KeyIndex, where: Where | undefined): readonly Item[] | undefined {
    if (where === undefined || 'not' in where || 'range' in where) return undefined
    if ('key' in where) return index.get(where.key)
    if ('ids' in where) return sortItems(where.ids.flatMap((id) => this.#entries.get(toText(id))?.item ?? []))
    const parts = ('and' in where ? where.and : where.or).map((part) => this.#candidates(index, part))
    const known = parts.filter((items) => items !== undefined)
    if ('and' in where) return known.sort((left, right) => left.length - right.length)[0]
    return known.length < parts.length ? undefined : sortItems(known.flat())
  }
}

/** Each item once, ascending by `seq`. */
function sortItems(items: readonly Item[]): Item[] {
  return [...new Set(items)].sort((left, right) => left.row.seq - right.row.seq)
}

type Matcher = (row: Row) => boolean

function createMatcher(where: Where | undefined): Matcher {
  if (where === undefined) return () => true
  if ('key' in where) return ({ keys }) => hasKey(keys, where.key)
  if ('ids' in where) {
    const ids = new Set(where.ids.map((id) => toText(id)))
    return ({ id }) => ids.has(toText(id))
  }
  if ('and' in where) {
    const parts = where.and.map(createMatcher)
    return (row) => parts.every((matches) => matches(row))
  }
  if ('or' in where) return createAnyMatcher(where.or)
  if ('not' in where) {
    const matches = createMatcher(where.not)
    return (row) => !matches(row)
  }
  return (row) => isWithin(row[where.range], where)
}

/** Looks keys up in a set: a caller's access rules can give thousands of alternatives. */
function createAnyMatcher(alternatives: readonly Where[]): Matcher {
  const keys = new Set(alternatives.flatMap((each) => ('key' in each ? [toText(each.key)] : [])))
  const others = alternatives.filter((each) => !('key' in each)).map(createMatcher)
  return (row) => {
    if (keys.size > 0)
      for (let at = 0; at < row.keys.length; at += KEY_BYTES)
        if (keys.has(toText(row.keys, at, at + KEY_BYTES))) return true
    return others.some((matches) => matches(row))
  }
}

function hasKey(keys: Uint8Array, key: Uint8Array): boolean {
  for (let at = 0; at < keys.length; at += 8) {
    let same = 0
    while (same < 8 && keys[at + same] === key[same]) same++
    if (same === 8) return true
  }
  return false
}
