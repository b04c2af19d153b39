/**
 * Rows in memory, by id and by key: those of the journal, those of a work under way, and all of an ephemeral vault.
 * Overlays lie on one another and on the segments; each says which rows below it are hidden. Knows no files.
 */
import { toText } from '../bytes.js'
import type { RowId, Where } from '../engine.js'
import type { RangeField } from '../store.js'
import { type Change, DROP, INSERT, LOG, REMOVE, type StoredRow } from './row-change.js'

/** A version of a row; `isLive` goes when a later one takes its place. */
export interface Item {
  row: StoredRow
  isLive: boolean
}

/** What an overlay says of an id: the live row, or that there is none any more. */
export interface Entry {
  item: Item | undefined
  /** Something below may still hold a row of this id. */
  isCovering: boolean
}

type Family = 'records' | 'logs'

/** Stale items are thrown out when there are more than this and more than live ones. */
const STALE_LIMIT = 1024
const NOBODY: ReadonlySet<number> = new Set()

/** Rows of one family in the order they came, and (once asked for) by key. */
class Rows {
  items: Item[] = []
  #byKey: Map<string, Item[]> | undefined
  #stale = 0

  add(item: Item): void {
    this.items.push(item)
    if (this.#byKey !== undefined) index(this.#byKey, item)
  }

  kill(item: Item): void {
    item.isLive = false
    if (++this.#stale <= STALE_LIMIT || this.#stale * 2 < this.items.length) return
    this.items = this.items.filter(({ isLive }) => isLive)
    this.#byKey = undefined
    this.#stale = 0
  }

  /** Items under the key, stale ones included; built at the first call, for most commands never ask. */
  withKey(key: Uint8Array): readonly Item[] {
    if (this.#byKey === undefined) {
      this.#byKey = new Map()
      for (const item of this.items) index(this.#byKey, item)
    }
    return this.#byKey.get(toText(key)) ?? []
  }
}

function index(byKey: Map<string, Item[]>, item: Item): void {
  const { keys } = item.row
  for (let at = 0; at < keys.length; at += 8) {
    const key = toText(keys, at, at + 8)
    const items = byKey.get(key)
    if (items === undefined) byKey.set(key, [item])
    else if (items[items.length - 1] !== item) items.push(item)
  }
}

export class Overlay {
  /** Ids that a replaced or removed row below may have, in the order they came; only ever grows. */
  readonly covered: RowId[] = []
  /** Tenants of which every row below is gone. */
  dropped: ReadonlySet<number> = NOBODY
  readonly #records = new Rows()
  readonly #logs = new Rows()
  readonly #entries = new Map<string, Entry>()
  /** The few kinds of the rows that came. */
  readonly #kinds: number[] = []

  apply({ kind, row }: Change): void {
    if (!this.#kinds.includes(row.kind)) this.#kinds.push(row.kind)
    if (kind === DROP) this.#drop(row.tenant)
    else if (kind === LOG) this.#logs.add({ row, isLive: true })
    else if (kind === REMOVE) this.#remove(row)
    else this.#put(row, kind)
  }

  #put(row: StoredRow, kind: Change['kind']): void {
    const text = toText(row.id)
    const item = { row, isLive: true }
    const entry = this.#entries.get(text)
    if (entry?.item !== undefined) this.#records.kill(entry.item)
    this.#records.add(item)
    if (entry !== undefined) entry.item = item
    else this.#entries.set(text, { item, isCovering: this.#cover(row, kind) })
  }

  #remove(row: StoredRow): void {
    const text = toText(row.id)
    const entry = this.#entries.get(text)
    if (entry === undefined) {
      this.#entries.set(text, { item: undefined, isCovering: this.#cover(row, REMOVE) })
      return
    }
    if (entry.item !== undefined) this.#records.kill(entry.item)
    entry.item = undefined
    if (!entry.isCovering) this.#entries.delete(text)
  }

  /** Only an insert is known to have nothing below it. */
  #cover(row: StoredRow, kind: Change['kind']): boolean {
    if (kind === INSERT || this.dropped.has(row.tenant)) return false
    this.covered.push(row.id)
    return true
  }

  #drop(tenant: number): void {
    this.dropped = new Set([...this.dropped, tenant])
    for (const rows of [this.#records, this.#logs]) {
      for (const item of [...rows.items]) if (item.isLive && item.row.tenant === tenant) rows.kill(item)
    }
    for (const [text, { item }] of this.#entries) if (item?.isLive === false) this.#entries.delete(text)
  }

  /** Whether rows of this kind are here, or below but gone. */
  changes(kind: number): boolean {
    return this.#kinds.includes(kind) || this.dropped.size > 0
  }

  /** What is known here of the id, given as text; undefined means: look below. */
  entry(text: string): Entry | undefined {
    return this.#entries.get(text)
  }

  /** True when a row with this id or of this tenant must not be taken from below. */
  hides(tenant: number, text: string): boolean {
    return this.dropped.has(tenant) || this.#entries.has(text)
  }

  /** True when this row, from below, must not be taken. */
  isOver(family: Family, row: StoredRow): boolean {
    return family === 'logs' ? this.dropped.has(row.tenant) : this.hides(row.tenant, toText(row.id))
  }

  /** Live rows, ascending by `seq`. */
  live(family: Family): StoredRow[] {
    const rows = this.#rows(family)
      .items.filter(({ isLive }) => isLive)
      .map(({ row }) => row)
    return rows.sort((left, right) => left.seq - right.seq)
  }

  /** Live rows in the order they came. */
  *each(family: Family): Generator<StoredRow> {
    for (const { row, isLive } of this.#rows(family).items) if (isLive) yield row
  }

  count(family: Family): number {
    return this.#rows(family).items.length
  }

  /** Live rows of this family, kind and tenant that match, in no order. `all` is the key that each of them carries. */
  search(
    family: Family,
    kind: number,
    tenant: number,
    all: Uint8Array,
    where: Where | undefined,
  ): StoredRow[] {
    const candidates = this.#candidates(family, where) ?? this.#rows(family).withKey(all)
    const found: StoredRow[] = []
    for (const { row, isLive } of candidates) {
      if (!isLive || row.tenant !== tenant || row.kind !== kind) continue
      if (where === undefined || matches(where, row)) found.push(row)
    }
    return found
  }

  /** A superset of what can match, each item once, or undefined when the condition does not narrow it. */
  #candidates(family: Family, where: Where | undefined): readonly Item[] | undefined {
    if (where === undefined || 'not' in where || 'range' in where) return undefined
    if ('key' in where) return this.#rows(family).withKey(where.key)
    if ('ids' in where) return this.#items(family, where.ids)
    if ('and' in where) {
      const known = where.and
        .map((part) => this.#candidates(family, part))
        .filter((items) => items !== undefined)
      return known.sort((left, right) => left.length - right.length)[0]
    }
    const union = new Set<Item>()
    for (const part of where.or) {
      const items = this.#candidates(family, part)
      if (items === undefined) return undefined
      for (const item of items) union.add(item)
    }
    return [...union]
  }

  #items(family: Family, ids: readonly RowId[]): Item[] | undefined {
    if (family === 'logs') return undefined
    const items = ids.map((id) => this.#entries.get(toText(id))?.item).filter((item) => item !== undefined)
    return [...new Set(items)]
  }

  #rows(family: Family): Rows {
    return family === 'records' ? this.#records : this.#logs
  }
}

/** Whether the row meets the condition. */
function matches(where: Where, row: StoredRow): boolean {
  if ('key' in where) return hasKey(row.keys, where.key)
  if ('ids' in where) return where.ids.some((id) => toText(id) === toText(row.id))
  if ('and' in where) return where.and.every((part) => matches(part, row))
  if ('or' in where) return where.or.some((part) => matches(part, row))
  if ('not' in where) return !matches(where.not, row)
  return isWithin(row[where.range], where)
}

/** Whether a time is in the range; 0 (never) is in none. */
export function isWithin(time: number, range: { range: RangeField; from?: number; below?: number }): boolean {
  return time !== 0 && time >= (range.from ?? 0) && time < (range.below ?? Number.POSITIVE_INFINITY)
}

function hasKey(keys: Uint8Array, key: Uint8Array): boolean {
  for (let at = 0; at < keys.length; at += 8) {
    let same = 0
    while (same < 8 && keys[at + same] === key[same]) same++
    if (same === 8) return true
  }
  return false
}
