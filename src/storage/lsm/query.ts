/** Queries over memtables and sorted tables, with exact totals. Only the records of the page are read. */
import { asBuffer, lowerBound, toText } from '../bytes.js'
import type { EngineReader, LogEntry, Query, Row, RowId, RowPage, SeekQuery } from '../engine.js'
import { type Change, DROP } from '../rows/frame.js'
import { bareRow } from '../rows/row.js'
import type { ClockState } from '../store.js'
import { clockStatus, type Times } from '../time.js'
import type { Memtable } from './memtable.js'
import { EXPIRY } from './sstable/format.js'
import type { LiveSSTable } from './sstable/live-sstable.js'
import { RowReader } from './sstable/row-reader.js'
import { search, seek } from './sstable/search.js'

const KIND_COUNT = 256

/** Counts the changes of each kind in this process. A cached row is valid while the count of its kind is unchanged. */
export class ChangeCounters {
  readonly #changeCounters = new Float64Array(KIND_COUNT)

  of(kind: number): number {
    return this.#changeCounters[kind]!
  }

  /** Requires: `note` is called for every change, before a reader can see the change. */
  note({ kind, row }: Change): void {
    if (kind === DROP) this.recordAll()
    else this.#changeCounters[row.kind]!++
  }

  recordAll(): void {
    for (let kind = 0; kind < KIND_COUNT; kind++) this.#changeCounters[kind]!++
  }
}

export interface View {
  /** Newest first. Each memtable shadows rows of tables, and of the memtables that follow in this list. */
  memtables: readonly Memtable[]
  /** The number of memtables at the beginning of the list whose changes are not committed yet. */
  uncommitted: number
  sstables: readonly LiveSSTable[]
  pendingEntries: readonly LogEntry[]
  changeCounters: ChangeCounters
}

export function isHidden(above: readonly Memtable[], row: Pick<Row, 'tenant' | 'id'>): boolean {
  if (above.length === 0) return false
  const text = toText(row.id)
  return above.some((memtable) => memtable.hides(row.tenant, text))
}

function isExpired(row: Row, now: number): boolean {
  return row.expires !== 0 && row.expires <= now
}

export class Reader implements EngineReader {
  readonly now: number
  /** The state before the unit of work. This state does not change while the unit runs. */
  protected readonly below: View
  readonly #times: Times

  constructor(below: View, times: Times, now: number) {
    this.below = below
    this.#times = times
    this.now = now
  }

  protected get view(): View {
    return this.below
  }

  get clock(): ClockState {
    return clockStatus(this.#times, this.now)
  }

  get(kind: number, tenant: number, id: RowId, { expired = false } = {}): Row | undefined {
    const row = newestVersion(this.view, tenant, id)
    if (row?.kind !== kind || row.tenant !== tenant) return undefined
    return isExpired(row, this.now) && !expired ? undefined : row
  }

  find(query: Query): RowPage {
    const { view, now } = this
    const { memtables, sstables } = view
    const inMemory = memtables.flatMap((_, depth) => [...matchesInMemtable(memtables, depth, query, now)])
    inMemory.sort((left, right) => left.seq - right.seq)
    const newest = inMemory.at(-1)?.seq ?? -1
    const found: Matches[] = [{ count: inMemory.length, most: newest, match: (index) => inMemory[index]! }]
    for (const live of sstables) {
      const { count, row } = search(live, memtables, query, now)
      const most = live.sstable.meta.to
      const reader = new RowReader(live.sstable)
      if (count > 0) found.push({ count, most, match: (index) => matchOf(live, reader, row(index)) })
    }
    const total = found.reduce((sum, { count }) => sum + count, 0)
    const skip = (query.page - 1) * query.size
    if (skip >= total) return { rows: [], total }
    const first = skip === 0 ? Number.POSITIVE_INFINITY : seqAfter(found, skip)
    const cursors = found.map((matches) => ({
      most: Math.min(first, matches.most),
      matches: descend(matches, first),
    }))
    return { rows: readInOrder(cursors, query.size, query.maxBytes), total }
  }

  seek(query: SeekQuery): Row[] {
    const { view, now } = this
    const { memtables, sstables } = view
    const { above, below = Number.MAX_SAFE_INTEGER, size, maxBytes } = query
    function* matchesIn(live: LiveSSTable): Generator<Match> {
      const reader = new RowReader(live.sstable)
      for (const row of seek(live, memtables, query, now)) yield matchOf(live, reader, row)
    }
    /** Requires: the `seq` of every match is at least `from` and at most `to`. */
    const cursorOf = (matches: Iterator<Match>, from: number, to: number): Cursor =>
      above === undefined
        ? { most: Math.min(below - 1, to), matches }
        : { most: OLDEST_FIRST - Math.max(above + 1, from), matches }
    const cursors = memtables.map((_, depth) =>
      cursorOf(matchesInMemtable(memtables, depth, query, now), 0, Number.MAX_SAFE_INTEGER),
    )
    for (const live of sstables) {
      const { from, to } = live.sstable.meta
      cursors.push(cursorOf(matchesIn(live), from, to))
    }
    return readInOrder(
      cursors,
      size,
      maxBytes,
      above === undefined ? (seq) => seq : (seq) => OLDEST_FIRST - seq,
    )
  }

  findExpired(limit: number): Row[] {
    const { memtables, sstables } = this.view
    const now = this.clock.purgeBefore
    const found: Row[] = []
    memtables.forEach((memtable, depth) => {
      const above = memtables.slice(0, depth)
      for (const row of memtable.each())
        if (found.length < limit && isExpired(row, now) && !isHidden(above, row))
          found.push(bareRow(row, row.sealed))
    })
    for (const live of sstables) {
      const { sstable, dropped } = live
      const expired = sstable.countExpired(now)
      for (let index = 0; index < expired && found.length < limit; index++) {
        const number = sstable.rowAt(EXPIRY, index)
        const entry = sstable.entry(number)
        const isGone = live.isDead(number) || dropped.has(entry.tenant) || isHidden(memtables, entry)
        if (!isGone) found.push(sstable.row(number))
      }
    }
    return found
  }

  changeCounter(kind: number): number | undefined {
    const { memtables, uncommitted, changeCounters } = this.view
    for (let depth = 0; depth < uncommitted; depth++) if (memtables[depth]!.changes(kind)) return undefined
    return changeCounters.of(kind)
  }

  pendingEntries(tenant: number): LogEntry[] {
    return this.below.pendingEntries.filter((entry) => entry.tenant === tenant)
  }
}

function newestVersion({ memtables, sstables }: View, tenant: number, id: RowId): Row | undefined {
  const text = toText(id)
  for (const memtable of memtables) {
    const entry = memtable.entry(text)
    if (entry !== undefined) return entry.item && bareRow(entry.item.row, entry.item.row.sealed)
    if (memtable.dropped.has(tenant)) return undefined
  }
  const key = asBuffer(id)
  for (let index = sstables.length - 1; index >= 0; index--) {
    const row = sstables[index]!.find(tenant, key)
    if (row !== undefined) return sstables[index]!.sstable.row(row)
  }
  return undefined
}

interface Match {
  seq: number
  /** Returns the row. A large record of more than `most` sealed bytes is left unread. */
  read(most: number): Row
}

interface Matches {
  count: number
  /** No match has a higher `seq`. */
  most: number
  /** A higher index gives a match with a higher `seq`. */
  match(index: number): Match
}

function* matchesInMemtable(
  memtables: readonly Memtable[],
  depth: number,
  query: Omit<SeekQuery, 'size'>,
  now: number,
): Generator<Match> {
  const above = memtables.slice(0, depth)
  for (const row of memtables[depth]!.search(query))
    if (!isExpired(row, now) && !isHidden(above, row))
      yield { seq: row.seq, read: () => bareRow(row, row.sealed) }
}

function matchOf({ sstable }: LiveSSTable, reader: RowReader, row: number): Match {
  return { seq: sstable.entry(row).seq, read: (most) => reader.read(row, most) }
}

function* descend(matches: Matches, first: number): Generator<Match> {
  const skipped = first < matches.most ? countFrom(matches, first + 1) : 0
  for (let index = matches.count - skipped - 1; index >= 0; index--) yield matches.match(index)
}

/**
 * Skips the `skip` newest matches. Returns the `seq` of the next match, by a binary search over the values of `seq`.
 */
function seqAfter(found: readonly Matches[], skip: number): number {
  let low = 0
  let high = Math.max(...found.map(({ most }) => most)) + 1
  while (low + 1 < high) {
    const middle = Math.floor((low + high) / 2)
    const newer = found.reduce((sum, matches) => sum + countFrom(matches, middle), 0)
    if (newer > skip) low = middle
    else high = middle
  }
  return low
}

function countFrom({ count, match }: Matches, seq: number): number {
  return count - lowerBound(count, (index) => match(index).seq >= seq)
}

/** To read the oldest row first, the rank of a row is this number minus `seq`. */
const OLDEST_FIRST = Number.MAX_SAFE_INTEGER

interface Cursor {
  /**
   * No remaining match of this cursor has a higher rank than this number. Because of this bound, a table is not read
   * before its matches are needed.
   */
  most: number
  next?: Match | undefined
  matches: Iterator<Match>
}

/** Reads the matches, the highest rank first. Requires: ranks are integers, and each `seq` has a different rank. */
function readInOrder(
  cursors: Cursor[],
  size: number,
  maxBytes = Number.POSITIVE_INFINITY,
  rankOf = (seq: number) => seq,
): Row[] {
  const rows: Row[] = []
  let left = maxBytes
  while (rows.length < size) {
    const cursor = cursors.reduce((best, each) => (each.most > best.most ? each : best))
    if (cursor.most < 0) break
    if (cursor.next === undefined) {
      const { done, value } = cursor.matches.next()
      cursor.next = done ? undefined : value
      cursor.most = done ? -1 : rankOf(value.seq)
      continue
    }
    const row = cursor.next.read(left)
    rows.push(row)
    left -= row.unread ?? row.sealed.length
    cursor.next = undefined
    cursor.most--
  }
  return rows
}
