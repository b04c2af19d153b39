/**
 * Turns an overlay into segments, and notes in the older segments which rows it made dead. Writes new files only;
 * making them count, by `state`, is the ledger's.
 */
import type { StoredRow } from './change.js'
import { removeQuietly } from './files.js'
import type { Overlay } from './overlay.js'
import { Segment, type SegmentName, type SegmentPlace } from './segment.js'
import { type Family, MAX_BYTES, MAX_ROWS, segmentPath } from './segment-layout.js'
import { LiveSegment } from './segment-search.js'
import { type WriterPlace, writeSegment } from './segment-writer.js'

const NO_ROWS = new Uint32Array(0)
const NO_TENANTS: ReadonlySet<number> = new Set()

/** Writes the overlay's live rows as segments; their files are gone again when it fails. */
export function writeOverlay(writer: WriterPlace, reader: SegmentPlace, overlay: Overlay): LiveSegment[] {
  const records = writeRowsAsSegments(writer, reader, 'records', overlay.live('records'))
  try {
    return [...records, ...writeRowsAsSegments(writer, reader, 'logs', overlay.live('logs'))]
  } catch (error) {
    for (const { segment } of records) removeQuietly(writer.files, segment.path)
    throw error
  }
}

/** Writes rows, ascending by `seq`, as one segment or several; files and names are safe when it returns. */
export function writeRowsAsSegments(
  writer: WriterPlace,
  reader: SegmentPlace,
  family: Family,
  rows: readonly StoredRow[],
): LiveSegment[] {
  const written: SegmentName[] = []
  try {
    for (const piece of pieces(rows)) written.push(writeSegment(writer, family, piece))
    if (written.length > 0) writer.files.syncDirectory(`${writer.directory}/segments`)
  } catch (error) {
    for (const { id } of written) removeQuietly(writer.files, segmentPath(writer.directory, family, id))
    throw error
  }
  return written.map((name) => new LiveSegment(new Segment(reader, name), NO_ROWS, NO_ROWS, NO_TENANTS))
}

/** Rows in pieces that a segment may hold. */
function* pieces(rows: readonly StoredRow[]): Generator<readonly StoredRow[]> {
  let first = 0
  let bytes = 0
  for (let index = 0; index < rows.length; index++) {
    bytes += rows[index]!.sealed.length
    if (index - first + 1 < MAX_ROWS && bytes < MAX_BYTES) continue
    yield rows.slice(first, index + 1)
    first = index + 1
    bytes = 0
  }
  if (first < rows.length) yield rows.slice(first)
}

/** The segment as it is once the overlay counts: what was replaced, removed or dropped is dead, and due to be erased. */
export function buryUnder(live: LiveSegment, overlay: Overlay): LiveSegment {
  const { segment, dead, due, dropped } = live
  const tenants = [...overlay.dropped].filter((tenant) => segment.footer.tenants.has(tenant))
  const rows = segment.name.family === 'records' ? live.hiddenBy(overlay) : []
  if (rows.length === 0 && tenants.length === 0) return live
  return new LiveSegment(segment, addRows(dead, rows), addRows(due, rows), new Set([...dropped, ...tenants]))
}

/** Both, ascending, each once. */
export function addRows(rows: Uint32Array, more: readonly number[]): Uint32Array {
  return Uint32Array.from(new Set([...rows, ...more])).sort()
}

/** True when no row of it is alive. */
export function isEmptied({ segment, dead, dropped }: LiveSegment): boolean {
  const { rows, tenants } = segment.footer
  return dead.length === rows || [...tenants.keys()].every((tenant) => dropped.has(tenant))
}
