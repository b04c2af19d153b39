/**
 * Finds the matches in one table. A posting is the list of the rows that have a key. The search uses the posting with
 * the fewest rows first. `query.ts` orders the matches and cuts pages.
 */
import { lowerBound } from '../../bytes.js'
import type { Query, SeekQuery, Where } from '../../engine.js'
import { isWithin } from '../../time.js'
import type { Memtable } from '../memtable.js'
import { EXPIRY, KEYS } from './format.js'
import type { LiveSSTable } from './live-sstable.js'
import type { SSTable } from './reader.js'

type Wanted = Pick<Query, 'tenant' | 'all' | 'where'>

/**
 * If the posting of a key has at least this many entries for each row that is looked up, each row is found by binary
 * search. Otherwise the whole posting is read.
 */
const PROBE_FACTOR = 64
const WINDOW = 128
/** If at most this many rows can match by their keys, only these rows are examined. */
const RARE = 1024

/**
 * A set of marked rows between the first and the last of `rows`. All other rows are ignored. Requires: `rows` ascend.
 */
class Marks {
  readonly first: number
  readonly #flags: Uint8Array

  constructor(rows: Uint32Array) {
    this.first = rows[0] ?? 0
    this.#flags = new Uint8Array(rows.length === 0 ? 0 : rows[rows.length - 1]! - this.first + 1)
  }

  get below(): number {
    return this.first + this.#flags.length
  }

  add(row: number): void {
    this.#flags[row - this.first] = 1
  }

  /**
   * Returns the marked (or unmarked) rows. Does not use `filter`, which is many times slower for typed arrays.
   */
  select(rows: Uint32Array, isMarked: boolean): Uint32Array {
    const selected = new Uint32Array(rows.length)
    const flag = isMarked ? 1 : 0
    let count = 0
    for (let at = 0; at < rows.length; at++)
      if (this.#flags[rows[at]! - this.first] === flag) selected[count++] = rows[at]!
    return selected.subarray(0, count)
  }
}

/**
 * Finds the live matches at time `now`. Returns the number of matches, and a function from an index to a row. A higher
 * index gives a row with a higher number.
 */
export function search(live: LiveSSTable, memtables: readonly Memtable[], query: Wanted, now: number) {
  const { sstable } = live
  if (!mayMatch(live, memtables, query.tenant)) return { count: 0, row: () => -1 }
  const condition = bind(query.where, query.all)
  if ('key' in condition) {
    const { start, count } = sstable.posting(condition.key)
    const gone = [...live.dead, ...hiddenOrExpired(live, memtables, now)]
    if (gone.length * PROBE_FACTOR <= count) {
      const places = placesOf(sstable, start, count, gone)
      const place = (index: number) => places.reduce((at, gap) => (gap <= at ? at + 1 : at), index)
      return {
        count: count - places.length,
        row: (index: number) => sstable.rowAt(KEYS, start + place(index)),
      }
    }
  }
  const candidates = rareCandidates(sstable, condition) ?? range(0, sstable.rows)
  const rows = matchesOf(live, memtables, condition, candidates, now)
  return { count: rows.length, row: (index: number) => rows[index]! }
}

/**
 * Yields the matches with a `seq` lower than `below`, newest first, or with a `seq` higher than `above`, oldest first.
 * Examines the rows in windows, each larger than the previous window.
 */
export function* seek(
  live: LiveSSTable,
  memtables: readonly Memtable[],
  query: Wanted & Pick<SeekQuery, 'below' | 'above'>,
  now: number,
): Generator<number> {
  const { sstable } = live
  const { below = Number.POSITIVE_INFINITY, above } = query
  if (!mayMatch(live, memtables, query.tenant)) return
  const condition = bind(query.where, query.all)
  const firstFrom = (seq: number) => lowerBound(sstable.rows, (row) => sstable.entry(row).seq >= seq)
  const read = (first: number, end: number) => matchesOf(live, memtables, condition, range(first, end), now)
  const rare = rareCandidates(sstable, condition)
  if (rare !== undefined) {
    const found = matchesOf(live, memtables, condition, rare, now)
    if (above === undefined) yield* found.subarray(0, indexOfFirstFrom(found, firstFrom(below))).reverse()
    else yield* found.subarray(indexOfFirstFrom(found, firstFrom(above + 1)))
    return
  }
  if (above === undefined)
    for (let end = firstFrom(below), size = WINDOW; end > 0; end -= size, size *= 4)
      yield* read(Math.max(0, end - size), end).reverse()
  else
    for (let first = firstFrom(above + 1), size = WINDOW; first < sstable.rows; first += size, size *= 4)
      yield* read(first, Math.min(sstable.rows, first + size))
}

function indexOfFirstFrom(rows: Uint32Array, row: number): number {
  return lowerBound(rows.length, (index) => rows[index]! >= row)
}

/** A superset of the matches, ascending and without duplicates. Undefined if no small superset is known. */
function rareCandidates(sstable: SSTable, where: Where): Uint32Array | undefined {
  if ('key' in where) {
    const { start, count } = sstable.posting(where.key)
    if (count > RARE) return undefined
    return Uint32Array.from({ length: count }, (_, index) => sstable.rowAt(KEYS, start + index))
  }
  if ('and' in where)
    return where.and
      .map((part) => rareCandidates(sstable, part))
      .filter((rows) => rows !== undefined)
      .sort((left, right) => left.length - right.length)[0]
  if (!('or' in where)) return undefined
  const found = new Set<number>()
  for (const part of where.or) {
    const rows = rareCandidates(sstable, part)
    if (rows === undefined || found.size + rows.length > RARE) return undefined
    for (const row of rows) found.add(row)
  }
  return Uint32Array.from(found).sort()
}

function range(first: number, below: number): Uint32Array {
  const rows = new Uint32Array(below - first)
  for (let at = 0; at < rows.length; at++) rows[at] = first + at
  return rows
}

function mayMatch(
  { sstable, dropped }: LiveSSTable,
  memtables: readonly Memtable[],
  tenant: number,
): boolean {
  if (!sstable.footer.tenants.has(tenant) || dropped.has(tenant)) return false
  return memtables.every((memtable) => !memtable.dropped.has(tenant))
}

/**
 * Restricts a condition to the tenant and kind. A condition that is a key or a list of ids needs no restriction,
 * because each key and id is a digest that depends on the tenant and the kind.
 */
function bind(where: Where | undefined, all: Uint8Array): Where {
  if (where === undefined) return { key: all }
  return 'key' in where || 'ids' in where ? where : { and: [{ key: all }, where] }
}

function matchesOf(
  live: LiveSSTable,
  memtables: readonly Memtable[],
  condition: Where,
  rows: Uint32Array,
  now: number,
): Uint32Array {
  const { sstable, dead } = live
  const found = evaluate(sstable, condition, rows)
  const gone = new Marks(found)
  const firstDead = lowerBound(dead.length, (index) => dead[index]! >= gone.first)
  for (let index = firstDead; index < dead.length && dead[index]! < gone.below; index++)
    gone.add(dead[index]!)
  for (const row of hiddenOrExpired(live, memtables, now)) gone.add(row)
  return gone.select(found, false)
}

/**
 * Yields the rows that a memtable hides, and the rows that have expired. Some of the yielded rows may be dead, and some
 * may be yielded twice.
 */
function* hiddenOrExpired(live: LiveSSTable, memtables: readonly Memtable[], now: number): Generator<number> {
  for (const memtable of memtables) yield* live.hiddenBy(memtable)
  const expired = live.sstable.countExpired(now)
  for (let entry = 0; entry < expired; entry++) yield live.sstable.rowAt(EXPIRY, entry)
}

function placesOf(sstable: SSTable, start: number, count: number, rows: readonly number[]): number[] {
  const places = [...new Set(rows)].map((row) => placeIn(sstable, start, count, row))
  return places.filter((at) => at >= 0).sort((left, right) => left - right)
}

/** Returns the matches among `rows`, dead and live. Requires: `rows` ascend. */
function evaluate(sstable: SSTable, where: Where, rows: Uint32Array): Uint32Array {
  if (rows.length === 0) return rows
  if ('range' in where) return evaluateRange(sstable, where, rows)
  if ('and' in where) {
    // The condition with the fewest matches is evaluated first, so that the other conditions examine few rows.
    const parts = where.and.map((part) => ({ part, count: estimate(sstable, part) }))
    parts.sort((left, right) => left.count - right.count)
    return parts.reduce((found, { part }) => evaluate(sstable, part, found), rows)
  }
  if ('key' in where) {
    const { start, count } = sstable.posting(where.key)
    if (count === sstable.rows) return rows
    const span = rows[rows.length - 1]! - rows[0]! + 1
    if (rows.length * PROBE_FACTOR < Math.min(count, span))
      return rows.filter((row) => placeIn(sstable, start, count, row) >= 0)
  }
  const marks = new Marks(rows)
  const isNegated = 'not' in where
  for (const part of 'or' in where ? where.or : [isNegated ? where.not : where])
    mark(sstable, part, rows, marks)
  return marks.select(rows, !isNegated)
}

/** Marks the matches among `rows`. Other matches between the first and the last of `rows` may be marked too. */
function mark(sstable: SSTable, where: Where, rows: Uint32Array, marks: Marks): void {
  if ('key' in where) {
    const { start, count } = sstable.posting(where.key)
    const from = marks.first === 0 ? 0 : postingIndexFrom(sstable, start, count, marks.first)
    const to = marks.below === sstable.rows ? count : postingIndexFrom(sstable, start, count, marks.below)
    sstable.eachPosted(start + from, start + to, (row) => marks.add(row))
  } else if ('ids' in where) for (const id of where.ids) marks.add(sstable.find(id) ?? -1)
  else for (const row of evaluate(sstable, where, rows)) marks.add(row)
}

function placeIn(sstable: SSTable, start: number, count: number, row: number): number {
  const at = postingIndexFrom(sstable, start, count, row)
  return at < count && sstable.rowAt(KEYS, start + at) === row ? at : -1
}

function postingIndexFrom(sstable: SSTable, start: number, count: number, row: number): number {
  return lowerBound(count, (index) => sstable.rowAt(KEYS, start + index) >= row)
}

/** Estimates the number of matches. Returns Infinity if the condition cannot be evaluated without reading rows. */
function estimate(sstable: SSTable, where: Where): number {
  if ('key' in where) return sstable.posting(where.key).count
  if ('ids' in where) return where.ids.length
  return 'range' in where ? Number.POSITIVE_INFINITY : sstable.rows
}

function evaluateRange(sstable: SSTable, range: Extract<Where, { range: unknown }>, rows: Uint32Array) {
  const { low, high } = sstable.footer.ranges[range.range]
  // No range contains 0, which means never.
  const isOutside = high < Math.max(1, range.from ?? 1) || low >= (range.below ?? Number.POSITIVE_INFINITY)
  if (isOutside) return rows.subarray(0, 0)
  if (isWithin(low, range) && isWithin(high, range)) return rows
  return rows.filter((row) => isWithin(sstable.entry(row)[range.range], range))
}
