/** Changed rows in memory, by id and by key. A memtable shadows rows of older memtables and of tables. */
import { lowerBound, toText } from '../bytes.js'
import { LOG_ROWS, type Row, type RowId, type SeekQuery, type Where } from '../engine.js'
import { type Change, DROP, INSERT, isRemoval, REMOVE } from '../rows/frame.js'
import { isWithin } from '../time.js'

interface Item {
  row: Row
  isLive: boolean
}

/** The newest version of a row. Without `item`, the row was removed (a tombstone). */
interface Entry {
  item: Item | undefined
  /** True if an older memtable or table may have a version of the row. */
  isShadowing: boolean
}

/** An index is rebuilt when it has more stale items than this and at least half of its items are stale. */
const STALE_LIMIT = 1024
const KEY_BYTES = 8
const NOBODY: ReadonlySet<number> = new Set()

class KeyIndex {
  /** Most keys have a single item, which is stored without an array. */
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

  markStale(): boolean {
    return ++this.#stale > STALE_LIMIT && this.#stale * 2 >= this.#items
  }
}

/** Inserts an item in the order of `seq`. An older version of the same row is replaced. */
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
  /**
   * The ids of rows whose versions in older memtables and tables are dead, in the order of the changes. Ids are never
   * removed from this list.
   */
  readonly shadowed: RowId[] = []
  /** Dropped tenants. All rows of these tenants in older memtables and tables are dead. */
  dropped: ReadonlySet<number> = NOBODY
  /** True if rows in older memtables or tables must be overwritten soon. */
  isErasing = false
  /**
   * True if a row was removed from this memtable. The write-ahead log still contains the removed row, so the memtable
   * must be flushed immediately.
   */
  hasRemoved = false
  /** The number of keys in rows that were put. In a large memtable, the keys take most of the memory. */
  keyCount = 0
  readonly #entries = new Map<string, Entry>()
  readonly #kinds = new Set<number>()
  /**
   * Indexes by kind. Each index is built at its first use. Most commands need no index, and to index all rows of a
   * write-ahead log takes long.
   */
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

  /**
   * Adds the row to {@link shadowed}. Returns false if no older version can exist, because the row is new or its tenant
   * was dropped.
   */
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

  /**
   * Returns the newest version of the row in this memtable. Returns undefined if this memtable did not change the row:
   * older memtables and tables may then have the row. `text`: the id as text.
   */
  entry(text: string): Entry | undefined {
    return this.#entries.get(text)
  }

  /** Returns whether rows with this id or of this tenant are dead in older memtables and tables. */
  hides(tenant: number, text: string): boolean {
    return this.dropped.has(tenant) || this.#entries.has(text)
  }

  get count(): number {
    return this.#entries.size
  }

  /** Ascending by `seq`. */
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

  /**
   * With `above`, the oldest match comes first, otherwise the newest match. Requires: every match has the key `all`.
   */
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

  /**
   * Returns items that include all matches, ascending by `seq`. Returns undefined if the condition does not narrow the
   * search.
   */
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

/** The matcher looks up keys in a set, because the access rules of a caller may have thousands of alternatives. */
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
