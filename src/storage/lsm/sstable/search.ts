/**
 * Finds the rows of one sorted table that match a condition, by bit sets and postings, rarest first, without rows that
 * are dead, expired or hidden by a memtable. `query.ts` orders and pages over several tables.
 */
import type { Query, RowId, Where } from '../../engine.js'
import type { RangeField } from '../../store.js'
import { isWithin } from '../../time.js'
import { createSeek, type SeekSource } from '../seek.js'
import { lowerBound } from './binary-search.js'
import {
  type Bitset,
  clearBit,
  countBits,
  emptyBitset,
  fullBitset,
  hasBit,
  intersect,
  keepBetween,
  rowsOf,
  selectFrom,
  setBit,
  subtract,
  unite,
} from './bitset.js'
import { EXPIRY, type RowEntry } from './format.js'
import type { LiveSSTable, Shadows } from './live-sstable.js'
import type { Posting, SSTable } from './reader.js'

/** Matching rows of a table, ascending. */
interface Matches {
  count: number
  /** Row number of the `index`-th. */
  row(index: number): number
}

const NO_MATCHES: Matches = { count: 0, row: () => -1 }

/** If a posting is this many times longer than the rows that are left, it is searched for each row instead of read. */
const PROBE_FACTOR = 64

/** Live rows of the query's tenant and kind that match, at time `now`. */
export function search(
  live: LiveSSTable,
  memtables: readonly Shadows[],
  query: Omit<Query, 'page' | 'size'>,
  now: number,
): Matches {
  const { sstable } = live
  const { tenant, all, where } = query
  if (!sstable.footer.tenants.has(tenant) || live.dropped.has(tenant)) return NO_MATCHES
  if (memtables.some(({ dropped }) => dropped.has(tenant))) return NO_MATCHES
  const condition = bind(where, all)
  const hidden = memtables.flatMap((memtable) => live.hiddenBy(memtable))
  const expired = expiredCount(sstable, now)
  if ('key' in condition && live.dead.length === 0 && hidden.length === 0 && expired === 0) {
    const posting = sstable.posting(condition.key)
    if (posting === undefined) return NO_MATCHES
    return { count: posting.count, row: (index) => sstable.postedRow(posting, index) }
  }
  const bits = evaluate(live, condition, undefined)
  for (const row of live.dead) clearBit(bits, row)
  for (const row of hidden) clearBit(bits, row)
  for (let index = 0; index < expired; index++) clearBit(bits, sstable.expiring(index).row)
  return selectFrom(bits)
}

/** Returns a function: the newest live match below a `seq`, or -1. Contract: `below` never goes up. */
export function seekRow(
  live: LiveSSTable,
  { tenant, all, where }: Pick<Query, 'tenant' | 'all' | 'where'>,
  now: number,
  isHidden: (row: RowEntry) => boolean,
): (below: number) => number {
  const { sstable } = live
  if (!sstable.footer.tenants.has(tenant) || live.dropped.has(tenant)) return () => -1
  const next = createSeek(sourceOf(live), bind(where, all))
  let most: number | undefined
  return (below) => {
    most ??= lowerBound(sstable.footer.rows, (row) => sstable.seqOf(row) >= below) - 1
    for (let row = next(most); row >= 0; row = next(row - 1)) {
      most = row - 1
      const entry = sstable.entry(row)
      const isOver = entry.expires !== 0 && entry.expires <= now
      if (!isOver && !live.isDead(row) && !isHidden(entry)) return row
    }
    return -1
  }
}

function sourceOf(live: LiveSSTable): SeekSource {
  const { sstable } = live
  const source: SeekSource = {
    posting(key) {
      const posting = sstable.posting(key)
      if (posting === undefined) return { count: 0, at: () => -1 }
      return { count: posting.count, at: (index) => sstable.postedRow(posting, index) }
    },
    withIds: (ids) => [...rowsOf(evaluateIds(live, ids, undefined))],
    test(where) {
      if ('range' in where) return (row) => isWithin(sstable.entry(row)[where.range], where)
      const next = createSeek(source, where.not)
      return (row) => next(row) !== row
    },
  }
  return source
}

/** The condition within tenant and kind. Keys and ids are digests of both, so a condition that requires one suffices. */
function bind(where: Where | undefined, all: Uint8Array): Where {
  if (where === undefined) return { key: all }
  return isBound(where) ? where : { and: [{ key: all }, where] }
}

function isBound(where: Where): boolean {
  if ('key' in where || 'ids' in where) return true
  if ('and' in where) return where.and.some(isBound)
  return 'or' in where && where.or.every(isBound)
}

/** The number of expired rows, which are the first of the expiry section. */
function expiredCount(sstable: SSTable, now: number): number {
  const { low } = sstable.footer.expires
  if (low === 0 || low > now) return 0
  return lowerBound(sstable.count(EXPIRY), (index) => sstable.expiring(index).expires > now)
}

/** Expired rows, without those that are dead or hidden by a memtable: at most `limit`. */
export function searchExpired(live: LiveSSTable, memtables: readonly Shadows[], now: number, limit: number) {
  const { sstable, dropped } = live
  const expired = expiredCount(sstable, now)
  if (expired === 0) return []
  const hidden = new Set(memtables.flatMap((memtable) => live.hiddenBy(memtable)))
  const gone = [dropped, ...memtables.map((memtable) => memtable.dropped)]
  const rows: number[] = []
  for (let index = 0; index < expired && rows.length < limit; index++) {
    const { row } = sstable.expiring(index)
    if (hidden.has(row) || live.isDead(row)) continue
    const { tenant } = sstable.entry(row)
    if (!gone.some((tenants) => tenants.has(tenant))) rows.push(row)
  }
  return rows
}

/** Rows of `universe` (all, when undefined) that match; the caller may change the set. */
function evaluate(live: LiveSSTable, where: Where, universe: Bitset | undefined): Bitset {
  if ('key' in where) return evaluateKey(live, where.key, universe)
  if ('ids' in where) return evaluateIds(live, where.ids, universe)
  if ('and' in where) return evaluateAll(live, where.and, universe)
  if ('range' in where) return evaluateRange(live.sstable, where, universe)
  const { rows } = live.sstable.footer
  if ('not' in where) {
    const bits = universe?.slice() ?? fullBitset(rows)
    subtract(bits, evaluate(live, where.not, universe))
    return bits
  }
  const bits = emptyBitset(rows)
  for (const part of where.or) unite(bits, evaluate(live, part, universe))
  return bits
}

function evaluateKey(live: LiveSSTable, key: Uint8Array, universe: Bitset | undefined): Bitset {
  const { sstable } = live
  const posting = sstable.posting(key)
  if (posting === undefined) return emptyBitset(sstable.footer.rows)
  if (universe === undefined) return live.bitsetOf(key, posting).slice()
  const bits = universe.slice()
  if (countBits(universe) * PROBE_FACTOR >= posting.count) {
    intersect(bits, live.bitsetOf(key, posting))
    return bits
  }
  for (const row of rowsOf(universe)) if (!isPosted(sstable, posting, row)) clearBit(bits, row)
  return bits
}

function isPosted(sstable: SSTable, posting: Posting, row: number): boolean {
  const at = lowerBound(posting.count, (index) => sstable.postedRow(posting, index) >= row)
  return at < posting.count && sstable.postedRow(posting, at) === row
}

function evaluateIds({ sstable }: LiveSSTable, ids: readonly RowId[], universe: Bitset | undefined): Bitset {
  const bits = emptyBitset(sstable.footer.rows)
  for (const id of ids) {
    const row = sstable.find(id)
    if (row !== undefined && (universe === undefined || hasBit(universe, row))) setBit(bits, row)
  }
  return bits
}

/** Applies the rarest condition first, so that the costly ones read few rows. */
function evaluateAll(live: LiveSSTable, parts: readonly Where[], universe: Bitset | undefined): Bitset {
  const ordered = parts.map((part) => ({ part, rows: estimate(live.sstable, part) }))
  ordered.sort((left, right) => left.rows - right.rows)
  let bits: Bitset | undefined = universe?.slice()
  for (const { part } of ordered) bits = evaluate(live, part, bits)
  return bits ?? fullBitset(live.sstable.footer.rows)
}

/** An estimate; Infinity if the condition has to read rows. */
function estimate(sstable: SSTable, where: Where): number {
  if ('key' in where) return sstable.posting(where.key)?.count ?? 0
  if ('ids' in where) return where.ids.length
  if ('and' in where)
    return Math.min(...where.and.map((part) => estimate(sstable, part)), sstable.footer.rows)
  if ('or' in where) return where.or.reduce((sum, part) => sum + estimate(sstable, part), 0)
  if ('not' in where) return sstable.footer.rows
  return where.range === 'modified' ? Number.POSITIVE_INFINITY : sstable.footer.rows / 2
}

function evaluateRange(
  sstable: SSTable,
  range: { range: RangeField; from?: number; below?: number },
  universe: Bitset | undefined,
): Bitset {
  const { rows } = sstable.footer
  // 0 means never, which no range contains.
  const from = Math.max(1, range.from ?? 1)
  const below = range.below ?? Number.POSITIVE_INFINITY
  if (range.range === 'created')
    return cutCreated(sstable, universe?.slice() ?? fullBitset(rows), from, below)
  if (range.range === 'expires') return expiringBetween(sstable, universe, from, below)
  const bits = universe?.slice() ?? fullBitset(rows)
  for (const row of rowsOf(bits)) if (!isWithin(sstable.modifiedOf(row), range)) clearBit(bits, row)
  return bits
}

/** If rows ascend by `created`, a range of times is a range of row numbers. */
function cutCreated(sstable: SSTable, bits: Bitset, from: number, below: number): Bitset {
  const { created, rows, isOrdered } = sstable.footer
  const isCut = created.low < below && created.high >= from && (created.low < from || created.high >= below)
  if (!isOrdered && isCut) {
    const range = { range: 'created', from, below } as const
    for (const row of rowsOf(bits)) if (!isWithin(sstable.createdOf(row), range)) clearBit(bits, row)
    return bits
  }
  const reached = (time: number) => {
    if (time <= created.low) return 0
    return time > created.high ? rows : lowerBound(rows, (row) => sstable.createdOf(row) >= time)
  }
  keepBetween(bits, reached(from), reached(below))
  return bits
}

function expiringBetween(sstable: SSTable, universe: Bitset | undefined, from: number, below: number) {
  const bits = emptyBitset(sstable.footer.rows)
  const { low, high } = sstable.footer.expires
  if (low === 0 || high < from || low >= below) return bits
  const count = sstable.count(EXPIRY)
  const first = lowerBound(count, (index) => sstable.expiring(index).expires >= from)
  for (let index = first; index < count; index++) {
    const { expires, row } = sstable.expiring(index)
    if (expires >= below) break
    if (universe === undefined || hasBit(universe, row)) setBit(bits, row)
  }
  return bits
}
