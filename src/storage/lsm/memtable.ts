/**
 * A memtable: rows in memory, by id and by key. It holds the rows of a write-ahead log, the changes of a transaction, or
 * all of an ephemeral vault. It shadows older memtables and tables: it knows which of their rows are gone.
 */

import { toText } from '../bytes.js'
import { LOG_ROWS, type Row, type RowId, type Where } from '../engine.js'
import { isWithin } from '../time.js'
import { createSeek } from './seek.js'
import { lowerBound } from './sstable/binary-search.js'
import { type Change, DROP, INSERT, REMOVE } from './sstable/row-change.js'

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

/** Stale items are removed when there are more than this, and more of them than live ones. */
const STALE_LIMIT = 1024
const KEY_BYTES = 8
const NOBODY: ReadonlySet<number> = new Set()

/** Rows in the order they were added, and (once asked for) by key. */
class Rows {
  items: Item[] = []
  /** Counts every item that was added. */
  keyCount = 0
  /** Most keys have one item, which is kept without an array. */
  #byKey: Map<string, Item | Item[]> | undefined
  #stale = 0

  add(item: Item): void {
    this.items.push(item)
    this.keyCount += item.row.keys.length / KEY_BYTES
    if (this.#byKey !== undefined) index(this.#byKey, item)
  }

  kill(item: Item): void {
    item.isLive = false
    if (++this.#stale <= STALE_LIMIT || this.#stale * 2 < this.items.length) return
    this.items = this.items.filter(({ isLive }) => isLive)
    this.#byKey = undefined
    this.#stale = 0
  }

  /**
   * Items with the key, ascending by `seq`, stale ones included. The index is built at the first call: most commands
   * never need it.
   */
  withKey(key: Uint8Array): readonly Item[] {
    if (this.#byKey === undefined) {
      this.#byKey = new Map()
      const ordered = [...this.items].sort((left, right) => left.row.seq - right.row.seq)
      for (const item of ordered) index(this.#byKey, item)
    }
    const found = this.#byKey.get(toText(key)) ?? []
    return Array.isArray(found) ? found : [found]
  }
}

function index(byKey: Map<string, Item | Item[]>, item: Item): void {
  const { keys } = item.row
  for (let at = 0; at < keys.length; at += KEY_BYTES) {
    const key = toText(keys, at, at + KEY_BYTES)
    const found = byKey.get(key)
    const items = found === undefined || Array.isArray(found) ? found : [found]
    if (items !== undefined && items !== found) byKey.set(key, items)
    if (items === undefined) byKey.set(key, item)
    else if (items[items.length - 1]!.row.seq < item.row.seq) items.push(item)
    else place(items, item)
  }
}

/** Inserts an item by `seq`, in place of an older version of its row if there is one. */
function place(items: Item[], item: Item): void {
  const at = firstFrom(items, item.row.seq)
  items.splice(at, items[at]?.row.seq === item.row.seq ? 1 : 0, item)
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
  /** By kind, so that the many keys of logs are not indexed until logs are read. */
  readonly #rows = new Map<number, Rows>()
  readonly #entries = new Map<string, Entry>()

  constructor(changes: readonly Change[] = []) {
    for (const change of changes) this.apply(change)
  }

  apply({ kind, row }: Change): void {
    if (kind === DROP) this.#drop(row.tenant)
    else if (kind === REMOVE) this.#remove(row)
    else this.#put(row, kind)
  }

  #rowsOf(kind: number): Rows {
    const rows = this.#rows.get(kind) ?? new Rows()
    this.#rows.set(kind, rows)
    return rows
  }

  #put(row: Row, kind: Change['kind']): void {
    const text = toText(row.id)
    const item = { row, isLive: true }
    const entry = this.#entries.get(text)
    const rows = this.#rowsOf(row.kind)
    if (entry?.item !== undefined) rows.kill(entry.item)
    rows.add(item)
    if (entry !== undefined) entry.item = item
    else this.#entries.set(text, { item, isShadowing: this.#shadow(row, kind) })
  }

  #remove(row: Row): void {
    const text = toText(row.id)
    const entry = this.#entries.get(text)
    const rows = this.#rowsOf(row.kind)
    if (entry === undefined) {
      this.#entries.set(text, { item: undefined, isShadowing: this.#shadow(row, REMOVE) })
      return
    }
    if (entry.item !== undefined) rows.kill(entry.item)
    entry.item = undefined
    if (!entry.isShadowing) this.#entries.delete(text)
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
    for (const rows of this.#rows.values())
      for (const item of [...rows.items]) if (item.isLive && item.row.tenant === tenant) rows.kill(item)
    for (const [text, { item }] of this.#entries) if (item?.isLive === false) this.#entries.delete(text)
  }

  changes(kind: number): boolean {
    return this.#rows.has(kind) || this.dropped.size > 0
  }

  /** By id as text; undefined if older memtables and tables decide. */
  entry(text: string): Entry | undefined {
    return this.#entries.get(text)
  }

  /** Whether an older row with this id or of this tenant is gone. */
  hides(tenant: number, text: string): boolean {
    return this.dropped.has(tenant) || this.#entries.has(text)
  }

  /** Live rows, ascending by `seq`. */
  live(): Row[] {
    return [...this.each()].sort((left, right) => left.seq - right.seq)
  }

  /** Live rows: those of a kind in the order they were added. */
  *each(): Generator<Row> {
    for (const { items } of this.#rows.values()) for (const { row, isLive } of items) if (isLive) yield row
  }

  get count(): number {
    return [...this.#rows.values()].reduce((sum, { items }) => sum + items.length, 0)
  }

  /** Keys of all rows that were put: if rows have many, as those of logs, keys take most of the memory. */
  get keyCount(): number {
    return [...this.#rows.values()].reduce((sum, { keyCount }) => sum + keyCount, 0)
  }

  /** Live rows of this kind and tenant that match, in no order. `all` is the key that each of them has. */
  search(kind: number, tenant: number, all: Uint8Array, where: Where | undefined): Row[] {
    const rows = this.#rows.get(kind)
    if (rows === undefined) return []
    const candidates = this.#candidates(rows, where) ?? rows.withKey(all)
    const found: Row[] = []
    const matches = createMatcher(where)
    for (const { row, isLive } of candidates) {
      if (!isLive || row.tenant !== tenant || row.kind !== kind) continue
      if (matches(row)) found.push(row)
    }
    return found
  }

  /** Returns a function that finds the newest row of {@link search} below a `seq`. Contract: `below` never goes up. */
  seek(
    kind: number,
    tenant: number,
    all: Uint8Array,
    where: Where = { key: all },
  ): (below: number) => Row | undefined {
    const rows = this.#rows.get(kind)
    if (rows === undefined) return () => undefined
    const posting = (key: Uint8Array) => {
      const items = rows.withKey(key)
      return { count: items.length, at: (index: number) => items[index]!.row.seq }
    }
    const withIds = (ids: readonly RowId[]) => {
      const found = ids.flatMap((id) => this.#entries.get(toText(id))?.item ?? [])
      return found.map(({ row }) => row.seq).sort((left, right) => left - right)
    }
    // Items stay under keys that their rows have lost, so each candidate is matched again.
    const source = { posting, withIds, test: () => () => true }
    const everything = rows.withKey(all)
    const next = createSeek(source, { and: [{ key: all }, where] })
    const matches = createMatcher(where)
    return (below) => {
      for (let seq = next(below - 1); seq >= 0; seq = next(seq - 1)) {
        const { row, isLive } = everything[firstFrom(everything, seq)]!
        if (isLive && row.tenant === tenant && row.kind === kind && matches(row)) return row
      }
      return undefined
    }
  }

  /** A superset of what can match, each item once; undefined when the condition does not narrow it. */
  #candidates(rows: Rows, where: Where | undefined): readonly Item[] | undefined {
    if (where === undefined || 'not' in where || 'range' in where) return undefined
    if ('key' in where) return rows.withKey(where.key)
    if ('ids' in where)
      return [...new Set(where.ids.flatMap((id) => this.#entries.get(toText(id))?.item ?? []))]
    if ('and' in where) {
      const known = where.and
        .map((part) => this.#candidates(rows, part))
        .filter((items) => items !== undefined)
      return known.sort((left, right) => left.length - right.length)[0]
    }
    const union = new Set<Item>()
    for (const part of where.or) {
      const items = this.#candidates(rows, part)
      if (items === undefined) return undefined
      for (const item of items) union.add(item)
    }
    return [...union]
  }
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
