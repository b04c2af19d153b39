/** `get` and `find` over memtables and sorted tables: newest first, counted exactly. Only a page's records are read. */
import { asBuffer, toText } from '../bytes.js'
import type { LogEntry, Query, Row, RowId, RowPage, SeekQuery } from '../engine.js'
import type { ChangeCounters } from './change-counters.js'
import type { Memtable } from './memtable.js'
import { lowerBound } from './sstable/binary-search.js'
import type { LiveSSTable } from './sstable/live-sstable.js'
import { search, searchExpired, seekRow } from './sstable/search.js'

export interface View {
  /** Youngest first: each shadows rows of those after it, and of the tables. */
  memtables: readonly Memtable[]
  /** How many of the memtables, from the first, hold changes that may still be undone. */
  uncommitted: number
  sstables: readonly LiveSSTable[]
  /** Log entries that are in no row yet, oldest first. */
  held: readonly LogEntry[]
  changeCounters: ChangeCounters
}

const NO_KEYS = new Uint8Array(0)

/** Without its keys, as tables return a row: only indexes have keys. */
function bare(row: Row): Row {
  const { kind, tenant, id, seq, rev, created, modified, expires, sealed } = row
  return { kind, tenant, id, seq, rev, created, modified, expires, keys: NO_KEYS, sealed }
}

function isExpired(row: Row, now: number): boolean {
  return row.expires !== 0 && row.expires <= now
}

/** The live row with this id; an expired one only when `expired` is set. */
export function getRow(
  view: View,
  wanted: { kind: number; tenant: number; id: RowId; expired: boolean },
  now: number,
): Row | undefined {
  const row = newestVersion(view, wanted.tenant, wanted.id)
  if (row === undefined || row.kind !== wanted.kind || row.tenant !== wanted.tenant) return undefined
  return isExpired(row, now) && !wanted.expired ? undefined : row
}

function newestVersion(view: View, tenant: number, id: RowId): Row | undefined {
  const text = toText(id)
  for (const memtable of view.memtables) {
    const entry = memtable.entry(text)
    if (entry !== undefined) return entry.item && bare(entry.item.row)
    if (memtable.dropped.has(tenant)) return undefined
  }
  const key = asBuffer(id)
  for (let index = view.sstables.length - 1; index >= 0; index--) {
    const live = view.sstables[index]!
    const row = live.find(tenant, key)
    if (row !== undefined) return live.sstable.row(row)
  }
  return undefined
}

/** The kind's change counter; undefined while a change of the kind may still be undone. */
export function changeCounterOf({ memtables, uncommitted, changeCounters }: View, kind: number) {
  for (let depth = 0; depth < uncommitted; depth++) if (memtables[depth]!.changes(kind)) return undefined
  return changeCounters.of(kind)
}

/** The matching rows of the memtables, or of one table, ascending by `seq`. */
interface Source {
  count: number
  /** Bounds of `seq`, which no row need reach. */
  low: number
  high: number
  seq(index: number): number
  /** @param most a large row of more sealed bytes is left unread */
  row(index: number, most?: number): Row
}

type Wanted = Omit<Query, 'page' | 'size' | 'mostBytes'>

function sourcesOf(view: View, query: Wanted, now: number): Source[] {
  const sources = [fromMemtables(view.memtables, query, now)]
  for (const live of view.sstables) sources.push(fromSSTable(live, view.memtables, query, now))
  return sources
}

export function findRows(view: View, query: Query, now: number): RowPage {
  const sources = sourcesOf(view, query, now)
  const total = sources.reduce((sum, { count }) => sum + count, 0)
  const skip = (query.page - 1) * query.size
  if (skip >= total) return { rows: [], total }
  return { rows: collect(sources, skip, query.size, query.mostBytes), total }
}

export function seekRows(view: View, query: SeekQuery, now: number): Row[] {
  const { below = Number.MAX_SAFE_INTEGER, size, mostBytes = Number.POSITIVE_INFINITY } = query
  const cursors = cursorsOf(view, query, below - 1, now)
  const rows: Row[] = []
  let left = mostBytes
  while (rows.length < size) {
    const cursor = cursors.reduce((best, each) => (each.most > best.most ? each : best))
    if (cursor.most < 0) break
    if (cursor.found === undefined) {
      cursor.found = cursor.seek(cursor.most + 1)
      cursor.most = cursor.found?.seq ?? -1
      continue
    }
    const row = cursor.found.read(left)
    rows.push(row)
    left -= row.unread ?? row.sealed.length
    cursor.found = undefined
    cursor.most--
  }
  return rows
}

/** The matches of a memtable or of one table, newest first. */
interface Cursor {
  /** No match that is left has a higher `seq`. */
  most: number
  found?: Found | undefined
  /** The newest match below this `seq`. */
  seek(below: number): Found | undefined
}

interface Found {
  seq: number
  read(most: number): Row
}

function cursorsOf({ memtables, sstables }: View, query: SeekQuery, most: number, now: number): Cursor[] {
  const { kind, tenant, all, where } = query
  const ofMemtables = memtables.map((memtable, depth): Cursor => {
    const above = memtables.slice(0, depth)
    const next = memtable.seek(kind, tenant, all, where)
    const seek = (below: number) => {
      let row = next(below)
      while (row !== undefined && (isExpired(row, now) || isHidden(above, row))) row = next(row.seq)
      return row === undefined ? undefined : { seq: row.seq, read: () => bare(row) }
    }
    return { most, seek }
  })
  const ofTables = sstables.map((live): Cursor => {
    const { sstable } = live
    let next: ((below: number) => number) | undefined
    const seek = (below: number) => {
      next ??= seekRow(live, query, now, (row) => isHidden(memtables, row))
      const row = next(below)
      if (row < 0) return undefined
      return { seq: sstable.seqOf(row), read: (bytes: number) => sstable.row(row, bytes) }
    }
    return { most: Math.min(most, sstable.footer.seq.high), seek }
  })
  return [...ofMemtables, ...ofTables]
}

export function findExpired({ memtables, sstables }: View, limit: number, now: number): Row[] {
  const found: Row[] = []
  memtables.forEach((memtable, depth) => {
    const above = memtables.slice(0, depth)
    for (const row of memtable.each()) {
      const isWanted = found.length < limit && isExpired(row, now) && !isHidden(above, row)
      if (isWanted) found.push(bare(row))
    }
  })
  for (const live of sstables) {
    const rows = searchExpired(live, memtables, now, limit - found.length)
    found.push(...rows.map((row) => live.sstable.row(row)))
  }
  return found
}

function fromMemtables(memtables: readonly Memtable[], query: Wanted, now: number): Source {
  const rows: Row[] = []
  memtables.forEach((memtable, depth) => {
    const above = memtables.slice(0, depth)
    for (const row of memtable.search(query.kind, query.tenant, query.all, query.where)) {
      if (!isExpired(row, now) && !isHidden(above, row)) rows.push(row)
    }
  })
  rows.sort((left, right) => left.seq - right.seq)
  return {
    count: rows.length,
    low: rows[0]?.seq ?? 0,
    high: rows[rows.length - 1]?.seq ?? 0,
    seq: (index) => rows[index]!.seq,
    row: (index) => bare(rows[index]!),
  }
}

function isHidden(above: readonly Memtable[], row: Pick<Row, 'tenant' | 'id'>): boolean {
  if (above.length === 0) return false
  const text = toText(row.id)
  return above.some((memtable) => memtable.hides(row.tenant, text))
}

function fromSSTable(live: LiveSSTable, memtables: readonly Memtable[], query: Wanted, now: number): Source {
  const { sstable } = live
  const matches = search(live, memtables, query, now)
  return {
    count: matches.count,
    low: sstable.footer.seq.low,
    high: sstable.footer.seq.high,
    seq: (index) => sstable.seqOf(matches.row(index)),
    row: (index, most) => sstable.row(matches.row(index), most),
  }
}

/** `size` rows after the `skip` newest. Contract: more than `skip` match. */
function collect(
  sources: readonly Source[],
  skip: number,
  size: number,
  mostBytes = Number.POSITIVE_INFINITY,
): Row[] {
  const first = skip === 0 ? Number.POSITIVE_INFINITY : seqAfter(sources, skip)
  const cursors = sources.map((source) => {
    const index = source.count - rank(source, first + 1) - 1
    return { source, index, seq: index < 0 ? -1 : source.seq(index) }
  })
  const rows: Row[] = []
  let left = mostBytes
  while (rows.length < size) {
    let next = cursors[0]!
    for (const cursor of cursors) if (cursor.seq > next.seq) next = cursor
    if (next.seq < 0) break
    const row = next.source.row(next.index, left)
    rows.push(row)
    left -= row.unread ?? row.sealed.length
    next.index--
    next.seq = next.index < 0 ? -1 : next.source.seq(next.index)
  }
  return rows
}

/** The `seq` of the match after the `skip` newest. Numbers are unique, so a binary search takes 48 steps. */
function seqAfter(sources: readonly Source[], skip: number): number {
  const filled = sources.filter(({ count }) => count > 0)
  let low = Math.min(...filled.map((source) => source.low))
  let high = Math.max(...filled.map((source) => source.high)) + 1
  while (low + 1 < high) {
    const middle = Math.floor((low + high) / 2)
    const newer = filled.reduce((sum, source) => sum + rank(source, middle), 0)
    if (newer > skip) low = middle
    else high = middle
  }
  return low
}

/** How many matches have this `seq` or a higher one. Reads no table that is wholly on one side. */
function rank(source: Source, seq: number): number {
  if (source.count === 0 || seq > source.high) return 0
  if (seq <= source.low) return source.count
  return source.count - lowerBound(source.count, (index) => source.seq(index) >= seq)
}
