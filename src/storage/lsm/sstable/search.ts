/**
 * Finds the rows of one sorted table that match a condition, by sets of rows and postings, rarest first, without rows that
 * are dead, expired or hidden by a memtable. `query.ts` orders and pages over several tables.
 */
import { lowerBound } from '../../bytes.js'
import type { Query, Where } from '../../engine.js'
import { isWithin } from '../../time.js'
import { EXPIRY, KEYS } from './format.js'
import type { LiveSSTable, Shadows } from './live-sstable.js'
import type { SSTable } from './reader.js'

type Wanted = Pick<Query, 'tenant' | 'all' | 'where'>

/** If a posting is this many times longer than the rows that are left, it is searched for each row instead of read. */
const PROBE_FACTOR = 64
const WINDOW = 128

/** Rows of a table from `first` on: a byte for each, 1 if the row is in the set. */
class RowSet {
  readonly first: number
  readonly #flags: Uint8Array

  constructor(first: number, flags: Uint8Array) {
    this.first = first
    this.#flags = flags
  }

  static full(first: number, below: number): RowSet {
    return new RowSet(first, new Uint8Array(below - first).fill(1))
  }

  /** The row after the last one that the set can hold. */
  get below(): number {
    return this.first + this.#flags.length
  }

  copy(): RowSet {
    return new RowSet(this.first, this.#flags.slice())
  }

  empty(): RowSet {
    return new RowSet(this.first, new Uint8Array(this.#flags.length))
  }

  has(row: number): boolean {
    return this.#flags[row - this.first] === 1
  }

  /** Contract: the set can hold the row. */
  add(row: number): void {
    this.#flags[row - this.first] = 1
  }

  delete(row: number): void {
    if (this.has(row)) this.#flags[row - this.first] = 0
  }

  unite(other: RowSet): void {
    for (let at = 0; at < this.#flags.length; at++) this.#flags[at]! |= other.#flags[at]!
  }

  subtract(other: RowSet): void {
    for (let at = 0; at < this.#flags.length; at++) this.#flags[at]! &= 1 - other.#flags[at]!
  }

  keep(isKept: (row: number) => boolean): RowSet {
    for (let at = 0; at < this.#flags.length; at++)
      if (this.#flags[at] === 1 && !isKept(this.first + at)) this.#flags[at] = 0
    return this
  }

  get count(): number {
    let count = 0
    for (let at = 0; at < this.#flags.length; at++) count += this.#flags[at]!
    return count
  }

  /** Ascending. */
  rows(): Uint32Array {
    const rows = new Uint32Array(this.count)
    for (let at = 0, index = 0; at < this.#flags.length; at++)
      if (this.#flags[at] === 1) rows[index++] = this.first + at
    return rows
  }
}

/** Live rows of the query's tenant and kind that match, at time `now`: their number, and each, ascending. */
export function search(live: LiveSSTable, memtables: readonly Shadows[], query: Wanted, now: number) {
  const { sstable } = live
  if (!mayMatch(live, memtables, query.tenant)) return { count: 0, row: () => -1 }
  const condition = bind(query.where, query.all)
  const isWhole = live.dead.length === 0 && sstable.countExpired(now) === 0
  if ('key' in condition && isWhole && memtables.every((each) => live.hiddenBy(each).length === 0)) {
    const { start, count } = sstable.posting(condition.key)
    return { count, row: (index: number) => sstable.rowAt(KEYS, start + index) }
  }
  const rows = matchesOf(live, memtables, condition, RowSet.full(0, sstable.rows), now).rows()
  return { count: rows.length, row: (index: number) => rows[index]! }
}

/** The rows of {@link search} with a `seq` below `below`, the newest first. Reads windows that grow, from there down. */
export function* seek(
  live: LiveSSTable,
  memtables: readonly Shadows[],
  query: Wanted,
  below: number,
  now: number,
): Generator<number> {
  const { sstable } = live
  if (!mayMatch(live, memtables, query.tenant)) return
  const condition = bind(query.where, query.all)
  let end = lowerBound(sstable.rows, (row) => sstable.entry(row).seq >= below)
  for (let size = WINDOW; end > 0; size *= 4) {
    const first = Math.max(0, end - size)
    yield* matchesOf(live, memtables, condition, RowSet.full(first, end), now).rows().reverse()
    end = first
  }
}

function mayMatch({ sstable, dropped }: LiveSSTable, memtables: readonly Shadows[], tenant: number): boolean {
  if (!sstable.footer.tenants.has(tenant) || dropped.has(tenant)) return false
  return memtables.every((memtable) => !memtable.dropped.has(tenant))
}

/** The condition within tenant and kind; keys and ids are digests of both. */
function bind(where: Where | undefined, all: Uint8Array): Where {
  if (where === undefined) return { key: all }
  return 'key' in where || 'ids' in where ? where : { and: [{ key: all }, where] }
}

/** The live rows of `universe`, which it changes. */
function matchesOf(
  live: LiveSSTable,
  memtables: readonly Shadows[],
  condition: Where,
  universe: RowSet,
  now: number,
): RowSet {
  const { sstable, dead } = live
  const found = evaluate(sstable, condition, universe)
  const firstDead = lowerBound(dead.length, (index) => dead[index]! >= universe.first)
  for (let index = firstDead; index < dead.length && dead[index]! < universe.below; index++)
    found.delete(dead[index]!)
  for (const memtable of memtables) for (const row of live.hiddenBy(memtable)) found.delete(row)
  const expired = sstable.countExpired(now)
  for (let entry = 0; entry < expired; entry++) found.delete(sstable.rowAt(EXPIRY, entry))
  return found
}

/** Rows of `universe` that match. It may change `universe` and return it. */
function evaluate(sstable: SSTable, where: Where, universe: RowSet): RowSet {
  if ('key' in where) return evaluateKey(sstable, where.key, universe)
  if ('and' in where) {
    // The rarest condition first, so that the costly ones read few rows.
    const parts = where.and.map((part) => ({ part, rows: estimate(sstable, part) }))
    parts.sort((left, right) => left.rows - right.rows)
    return parts.reduce((found, { part }) => evaluate(sstable, part, found), universe)
  }
  if ('not' in where) {
    universe.subtract(evaluate(sstable, where.not, universe.copy()))
    return universe
  }
  if ('range' in where) return evaluateRange(sstable, where, universe)
  const found = universe.empty()
  if ('or' in where) for (const part of where.or) found.unite(evaluate(sstable, part, universe.copy()))
  else
    for (const id of where.ids) {
      const row = sstable.find(id)
      if (row !== undefined && universe.has(row)) found.add(row)
    }
  return found
}

function evaluateKey(sstable: SSTable, key: Uint8Array, universe: RowSet): RowSet {
  const { start, count } = sstable.posting(key)
  if (count === sstable.rows) return universe
  const { first, below } = universe
  const indexOf = (row: number) => lowerBound(count, (index) => sstable.rowAt(KEYS, start + index) >= row)
  const [from, to] = [first === 0 ? 0 : indexOf(first), below === sstable.rows ? count : indexOf(below)]
  if (universe.count * PROBE_FACTOR < to - from)
    return universe.keep((row) => {
      const at = indexOf(row)
      return at < count && sstable.rowAt(KEYS, start + at) === row
    })
  const found = universe.empty()
  sstable.eachPosted(start + from, start + to, (row) => {
    if (universe.has(row)) found.add(row)
  })
  return found
}

/** An estimate; Infinity if the condition may have to read rows. */
function estimate(sstable: SSTable, where: Where): number {
  if ('key' in where) return sstable.posting(where.key).count
  if ('ids' in where) return where.ids.length
  return 'range' in where ? Number.POSITIVE_INFINITY : sstable.rows
}

function evaluateRange(sstable: SSTable, range: Extract<Where, { range: unknown }>, universe: RowSet) {
  const { low, high } = sstable.footer.ranges[range.range]
  // 0 means never, which no range contains.
  const isOutside = high < Math.max(1, range.from ?? 1) || low >= (range.below ?? Number.POSITIVE_INFINITY)
  if (isOutside) return universe.empty()
  if (isWithin(low, range) && isWithin(high, range)) return universe
  return universe.keep((row) => isWithin(sstable.entry(row)[range.range], range))
}
