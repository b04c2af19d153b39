/**
 * Answers `get` and `find` over all a reader may see: overlays, youngest first, above segments. Merges newest first,
 * counts exactly and reads only the records of the page asked for.
 */
import { toText } from '../bytes.js'
import type { Query, Row, RowId, RowPage } from '../engine.js'
import type { Stamps } from './change-counters.js'
import type { Overlay } from './memtable.js'
import type { StoredRow } from './row-change.js'
import { lowerBound } from './sstable/reader.js'
import { type LiveSegment, search, searchExpired } from './sstable/search.js'

/** What a unit of work sees. */
export interface View {
  /** Youngest first: each hides what it replaced in those after it, and in the segments. */
  overlays: readonly Overlay[]
  /** How many of the overlays, from the first, hold what may still be taken back. */
  unsettled: number
  records: readonly LiveSegment[]
  logs: readonly LiveSegment[]
  stamps: Stamps
}

const NO_KEYS = new Uint8Array(0)

/** The row as callers see it: without its keys, which live in indexes only, and without its chain value. */
function bare(row: StoredRow): Row {
  const { kind, tenant, id, seq, rev, created, modified, expires, sealed, unread } = row
  const known = { kind, tenant, id, seq, rev, created, modified, expires, keys: NO_KEYS, sealed }
  return unread === undefined ? known : { ...known, unread }
}

function isExpired(row: Row, now: number): boolean {
  return row.expires !== 0 && row.expires <= now
}

/** The live row with this id; one whose time is over only when `expired` is set. */
export function getRow(
  view: View,
  wanted: { kind: number; tenant: number; id: RowId; expired: boolean },
  now: number,
): Row | undefined {
  const row = newestVersion(view, wanted.tenant, wanted.id)
  if (row === undefined || row.kind !== wanted.kind || row.tenant !== wanted.tenant) return undefined
  return isExpired(row, now) && !wanted.expired ? undefined : bare(row)
}

function newestVersion(view: View, tenant: number, id: RowId): StoredRow | undefined {
  const text = toText(id)
  for (const overlay of view.overlays) {
    const entry = overlay.entry(text)
    if (entry !== undefined) return entry.item?.row
    if (overlay.dropped.has(tenant)) return undefined
  }
  for (let index = view.records.length - 1; index >= 0; index--) {
    const live = view.records[index]!
    const row = live.find(tenant, id)
    if (row !== undefined) return live.segment.row(row)
  }
  return undefined
}

/** The kind's change counter, or undefined while a change of it may still be taken back. */
export function changeCounterOf({ overlays, unsettled, stamps }: View, kind: number): number | undefined {
  for (let depth = 0; depth < unsettled; depth++) if (overlays[depth]!.changes(kind)) return undefined
  return stamps.of(kind)
}

/** One place's matching rows, ascending by `seq`. */
interface Source {
  count: number
  /** Bounds of `seq`; need not be met. */
  low: number
  high: number
  seq(index: number): number
  /** `most`: the sealed bytes that a large row may have to be read. */
  row(index: number, most?: number): StoredRow
}

type Wanted = Omit<Query, 'page' | 'size' | 'mostBytes'>

function sourcesOf(view: View, query: Wanted, now: number): Source[] {
  const sources = [fromOverlays(view.overlays, query, now)]
  for (const live of view[query.family]) sources.push(fromSegment(live, view.overlays, query, now))
  return sources
}

/** The page asked for, newest first, and the number of all that match. */
export function findRows(view: View, query: Query, now: number): RowPage {
  const sources = sourcesOf(view, query, now)
  const total = sources.reduce((sum, { count }) => sum + count, 0)
  const skip = (query.page - 1) * query.size
  if (skip >= total) return { rows: [], total }
  return { rows: collect(sources, skip, query.size, query.mostBytes), total }
}

/** Every row that matches, oldest first. */
export function* walkMatches(view: View, query: Wanted, now: number): Generator<StoredRow> {
  const cursors = sourcesOf(view, query, now).map((source) => ({ source, index: 0 }))
  const seqAt = ({ source, index }: (typeof cursors)[number]) =>
    index < source.count ? source.seq(index) : Number.POSITIVE_INFINITY
  for (;;) {
    const oldest = cursors.reduce((left, right) => (seqAt(right) < seqAt(left) ? right : left))
    if (oldest.index >= oldest.source.count) return
    yield oldest.source.row(oldest.index++)
  }
}

/** Records whose time is over but which are still there, of every tenant: at most `limit`, in no order. */
export function findExpired({ overlays, records }: View, limit: number, now: number): Row[] {
  const found: Row[] = []
  overlays.forEach((overlay, depth) => {
    const above = overlays.slice(0, depth)
    for (const row of overlay.each('records')) {
      const isWanted = found.length < limit && isExpired(row, now) && !isHidden(above, row, 'records')
      if (isWanted) found.push(bare(row))
    }
  })
  for (const live of records) {
    const rows = searchExpired(live, overlays, now, limit - found.length)
    found.push(...rows.map((row) => bare(live.segment.row(row))))
  }
  return found
}

function fromOverlays(overlays: readonly Overlay[], query: Wanted, now: number): Source {
  const rows: StoredRow[] = []
  overlays.forEach((overlay, depth) => {
    const above = overlays.slice(0, depth)
    for (const row of overlay.search(query.family, query.kind, query.tenant, query.all, query.where)) {
      if (!isExpired(row, now) && !isHidden(above, row, query.family)) rows.push(row)
    }
  })
  rows.sort((left, right) => left.seq - right.seq)
  return {
    count: rows.length,
    low: rows[0]?.seq ?? 0,
    high: rows[rows.length - 1]?.seq ?? 0,
    seq: (index) => rows[index]!.seq,
    row: (index) => rows[index]!,
  }
}

function isHidden(above: readonly Overlay[], row: StoredRow, family: Query['family']): boolean {
  if (above.length === 0) return false
  if (family === 'logs') return above.some(({ dropped }) => dropped.has(row.tenant))
  const text = toText(row.id)
  return above.some((overlay) => overlay.hides(row.tenant, text))
}

function fromSegment(live: LiveSegment, overlays: readonly Overlay[], query: Wanted, now: number): Source {
  const { segment } = live
  const matches = search(live, overlays, query, now)
  return {
    count: matches.count,
    low: segment.footer.seq.low,
    high: segment.footer.seq.high,
    seq: (index) => segment.seqOf(matches.row(index)),
    row: (index, most) => segment.row(matches.row(index), most),
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
    const row = bare(next.source.row(next.index, left))
    rows.push(row)
    left -= row.unread ?? row.sealed.length
    next.index--
    next.seq = next.index < 0 ? -1 : next.source.seq(next.index)
  }
  return rows
}

/** The `seq` of the match that follows the `skip` newest: numbers are unique, so halving finds it in 48 steps. */
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

/** How many matches have this `seq` or a higher one. Segments wholly on one side are not read. */
function rank(source: Source, seq: number): number {
  if (source.count === 0 || seq > source.high) return 0
  if (seq <= source.low) return source.count
  return source.count - lowerBound(source.count, (index) => source.seq(index) >= seq)
}
