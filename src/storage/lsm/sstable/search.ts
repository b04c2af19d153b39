/**
 * Which rows of one segment meet a condition: bit sets and postings, rarest first, without the dead, the expired and
 * those that an overlay hides. Knows one segment at a time; order and pages over all are the look-up's.
 */

import { toText } from '../../bytes.js'
import type { Query, RowId, Where } from '../../engine.js'
import type { RangeField } from '../../store.js'
import {
  type Bits,
  clearBit,
  countBits,
  emptyBits,
  fullBits,
  hasBit,
  intersect,
  keepBetween,
  rowsOf,
  selectFrom,
  setBit,
  subtract,
  unite,
} from '../bitset.js'
import { isWithin, type Overlay } from '../memtable.js'
import { EXPIRY } from './format.js'
import { lowerBound, type Posting, type Segment } from './reader.js'

/** Matching rows of a segment, ascending. */
export interface Matches {
  count: number
  /** Row number of the `index`-th. */
  row(index: number): number
}

export const NO_MATCHES: Matches = { count: 0, row: () => -1 }

/** A posting this many times longer than what is left is probed rather than read. */
const PROBE_FACTOR = 64
/** Bit sets of long postings kept per segment. */
const KEPT_BITS = 8

/** A segment, and what of it is no longer true. Replaced as a whole when `state` is. */
export class LiveSegment {
  readonly segment: Segment
  /** Row numbers, ascending. */
  readonly dead: Uint32Array
  /** Dead rows whose bytes are to be overwritten. */
  readonly due: Uint32Array
  readonly dropped: ReadonlySet<number>
  readonly #hidden = new WeakMap<Overlay, { seen: number; rows: number[] }>()
  readonly #bits = new Map<string, Bits>()

  constructor(segment: Segment, dead: Uint32Array, due: Uint32Array, dropped: ReadonlySet<number>) {
    this.segment = segment
    this.dead = dead
    this.due = due
    this.dropped = dropped
  }

  isDead(row: number): boolean {
    const at = lowerBound(this.dead.length, (index) => this.dead[index]! >= row)
    return this.dead[at] === row
  }

  /** Number of the live row with this id. */
  find(tenant: number, id: RowId): number | undefined {
    if (this.dropped.has(tenant)) return undefined
    const row = this.segment.find(id)
    return row === undefined || this.isDead(row) ? undefined : row
  }

  /** Live rows here of ids that the overlay replaced or removed; each id is looked up once. */
  hiddenBy(overlay: Overlay): readonly number[] {
    const known = this.#hidden.get(overlay) ?? { seen: 0, rows: [] }
    this.#hidden.set(overlay, known)
    if (known.seen === overlay.covered.length) return known.rows
    const ids = overlay.covered.slice(known.seen).sort(Buffer.compare)
    for (const id of ids) {
      const row = this.segment.find(id)
      if (row !== undefined && !this.isDead(row)) known.rows.push(row)
    }
    known.seen = overlay.covered.length
    return known.rows
  }

  /** All rows of a posting. Not to be changed. */
  bitsOf(key: Uint8Array, posting: Posting): Bits {
    const text = toText(key)
    const kept = this.#bits.get(text)
    if (kept !== undefined) return kept
    const { rows } = this.segment.footer
    const bits = posting.count === rows ? fullBits(rows) : emptyBits(rows)
    if (posting.count < rows) {
      for (let index = 0; index < posting.count; index++) setBit(bits, this.segment.postedRow(posting, index))
    }
    if (posting.count * 32 > rows && this.#bits.size < KEPT_BITS) this.#bits.set(text, bits)
    return bits
  }
}

/** Live rows of the query's tenant and kind that match, at time `now`. */
export function search(
  live: LiveSegment,
  overlays: readonly Overlay[],
  query: Omit<Query, 'page' | 'size'>,
  now: number,
): Matches {
  const { segment } = live
  const { tenant, all, where } = query
  if (!segment.footer.tenants.has(tenant) || live.dropped.has(tenant)) return NO_MATCHES
  if (overlays.some(({ dropped }) => dropped.has(tenant))) return NO_MATCHES
  const condition = bind(where, all)
  const hidden = query.family === 'logs' ? [] : overlays.flatMap((overlay) => live.hiddenBy(overlay))
  const expired = expiredCount(segment, now)
  if ('key' in condition && live.dead.length === 0 && hidden.length === 0 && expired === 0) {
    const posting = segment.posting(condition.key)
    if (posting === undefined) return NO_MATCHES
    return { count: posting.count, row: (index) => segment.postedRow(posting, index) }
  }
  const bits = evaluate(live, condition, undefined)
  for (const row of live.dead) clearBit(bits, row)
  for (const row of hidden) clearBit(bits, row)
  for (let index = 0; index < expired; index++) clearBit(bits, segment.expiring(index).row)
  return selectFrom(bits)
}

/** The condition, within tenant and kind. Keys and ids are digests of both, so what demands one needs no more. */
function bind(where: Where | undefined, all: Uint8Array): Where {
  if (where === undefined) return { key: all }
  return isBound(where) ? where : { and: [{ key: all }, where] }
}

function isBound(where: Where): boolean {
  if ('key' in where || 'ids' in where) return true
  if ('and' in where) return where.and.some(isBound)
  return 'or' in where && where.or.every(isBound)
}

/** Rows whose time is over: so many from the front of the expiry section. */
function expiredCount(segment: Segment, now: number): number {
  const { low } = segment.footer.expires
  if (low === 0 || low > now) return 0
  return lowerBound(segment.count(EXPIRY), (index) => segment.expiring(index).expires > now)
}

/**
 * Rows whose time is over, without the dead and those that an overlay hides: at most `limit`. A segment in which
 * nothing expires costs a look at its footer.
 */
export function searchExpired(
  live: LiveSegment,
  overlays: readonly Overlay[],
  now: number,
  limit: number,
): number[] {
  const { segment, dropped } = live
  const expired = expiredCount(segment, now)
  if (expired === 0) return []
  const hidden = new Set(overlays.flatMap((overlay) => live.hiddenBy(overlay)))
  const gone = [dropped, ...overlays.map((overlay) => overlay.dropped)]
  const rows: number[] = []
  for (let index = 0; index < expired && rows.length < limit; index++) {
    const { row } = segment.expiring(index)
    if (hidden.has(row) || live.isDead(row)) continue
    const { tenant } = segment.entry(row)
    if (!gone.some((tenants) => tenants.has(tenant))) rows.push(row)
  }
  return rows
}

/** Rows of `universe` (all, when undefined) that match; the caller's to change. */
function evaluate(live: LiveSegment, where: Where, universe: Bits | undefined): Bits {
  if ('key' in where) return evaluateKey(live, where.key, universe)
  if ('ids' in where) return evaluateIds(live, where.ids, universe)
  if ('and' in where) return evaluateAll(live, where.and, universe)
  if ('range' in where) return evaluateRange(live.segment, where, universe)
  const { rows } = live.segment.footer
  if ('not' in where) {
    const bits = universe?.slice() ?? fullBits(rows)
    subtract(bits, evaluate(live, where.not, universe))
    return bits
  }
  const bits = emptyBits(rows)
  for (const part of where.or) unite(bits, evaluate(live, part, universe))
  return bits
}

function evaluateKey(live: LiveSegment, key: Uint8Array, universe: Bits | undefined): Bits {
  const { segment } = live
  const posting = segment.posting(key)
  if (posting === undefined) return emptyBits(segment.footer.rows)
  if (universe === undefined) return live.bitsOf(key, posting).slice()
  const bits = universe.slice()
  if (countBits(universe) * PROBE_FACTOR >= posting.count) {
    intersect(bits, live.bitsOf(key, posting))
    return bits
  }
  for (const row of rowsOf(universe)) if (!isPosted(segment, posting, row)) clearBit(bits, row)
  return bits
}

function isPosted(segment: Segment, posting: Posting, row: number): boolean {
  const at = lowerBound(posting.count, (index) => segment.postedRow(posting, index) >= row)
  return at < posting.count && segment.postedRow(posting, at) === row
}

function evaluateIds({ segment }: LiveSegment, ids: readonly RowId[], universe: Bits | undefined): Bits {
  const bits = emptyBits(segment.footer.rows)
  if (segment.name.family === 'logs') {
    // Log segments have no ids section: nothing asks for a log row by its id but a test of this promise.
    const wanted = new Set(ids.map((id) => toText(id)))
    for (const row of rowsOf(universe ?? fullBits(segment.footer.rows))) {
      if (wanted.has(toText(segment.entry(row).id))) setBit(bits, row)
    }
    return bits
  }
  for (const id of ids) {
    const row = segment.find(id)
    if (row !== undefined && (universe === undefined || hasBit(universe, row))) setBit(bits, row)
  }
  return bits
}

/** Narrows step by step, rarest first, so that the costly conditions look at few rows. */
function evaluateAll(live: LiveSegment, parts: readonly Where[], universe: Bits | undefined): Bits {
  const ordered = parts.map((part) => ({ part, rows: estimate(live.segment, part) }))
  ordered.sort((left, right) => left.rows - right.rows)
  let bits: Bits | undefined = universe?.slice()
  for (const { part } of ordered) bits = evaluate(live, part, bits)
  return bits ?? fullBits(live.segment.footer.rows)
}

/** About how many rows a condition leaves; Infinity for what has to read rows. */
function estimate(segment: Segment, where: Where): number {
  if ('key' in where) return segment.posting(where.key)?.count ?? 0
  if ('ids' in where) return segment.name.family === 'logs' ? Number.POSITIVE_INFINITY : where.ids.length
  if ('and' in where)
    return Math.min(...where.and.map((part) => estimate(segment, part)), segment.footer.rows)
  if ('or' in where) return where.or.reduce((sum, part) => sum + estimate(segment, part), 0)
  if ('not' in where) return segment.footer.rows
  return where.range === 'modified' ? Number.POSITIVE_INFINITY : segment.footer.rows / 2
}

function evaluateRange(
  segment: Segment,
  range: { range: RangeField; from?: number; below?: number },
  universe: Bits | undefined,
): Bits {
  const { rows } = segment.footer
  // 0 means never, and never is in no range.
  const from = Math.max(1, range.from ?? 1)
  const below = range.below ?? Number.POSITIVE_INFINITY
  if (range.range === 'created') return cutCreated(segment, universe?.slice() ?? fullBits(rows), from, below)
  if (range.range === 'expires') return expiringBetween(segment, universe, from, below)
  const bits = universe?.slice() ?? fullBits(rows)
  for (const row of rowsOf(bits)) if (!isWithin(segment.modifiedOf(row), range)) clearBit(bits, row)
  return bits
}

/** Where rows ascend by `created`, a range of it is a range of row numbers. */
function cutCreated(segment: Segment, bits: Bits, from: number, below: number): Bits {
  const { created, rows, isOrdered } = segment.footer
  const isCut = created.low < below && created.high >= from && (created.low < from || created.high >= below)
  if (!isOrdered && isCut) {
    const range = { range: 'created', from, below } as const
    for (const row of rowsOf(bits)) if (!isWithin(segment.createdOf(row), range)) clearBit(bits, row)
    return bits
  }
  const reached = (time: number) => {
    if (time <= created.low) return 0
    return time > created.high ? rows : lowerBound(rows, (row) => segment.createdOf(row) >= time)
  }
  keepBetween(bits, reached(from), reached(below))
  return bits
}

function expiringBetween(segment: Segment, universe: Bits | undefined, from: number, below: number): Bits {
  const bits = emptyBits(segment.footer.rows)
  const { low, high } = segment.footer.expires
  if (low === 0 || high < from || low >= below) return bits
  const count = segment.count(EXPIRY)
  const first = lowerBound(count, (index) => segment.expiring(index).expires >= from)
  for (let index = first; index < count; index++) {
    const { expires, row } = segment.expiring(index)
    if (expires >= below) break
    if (universe === undefined || hasBit(universe, row)) setBit(bits, row)
  }
  return bits
}
