/**
 * Turns an overlay into segments, and notes in the older segments which rows it made dead. Writes new files only;
 * making them count, by `state`, is the ledger's.
 */
import { removeQuietly } from '../files.js'
import type { Overlay } from './memtable.js'
import type { SegmentPlace } from './sstable/reader.js'
import { writeRowsAsSegments } from './sstable/row-writer.js'
import { LiveSegment } from './sstable/search.js'
import type { WriterPlace } from './sstable/writer.js'

/** Writes the overlay's live rows as segments, in steps; ended early or failing, it removes what it wrote. */
export function* writeOverlay(
  writer: WriterPlace,
  reader: SegmentPlace,
  overlay: Overlay,
): Generator<undefined, LiveSegment[]> {
  const records = yield* writeRowsAsSegments(writer, reader, 'records', overlay.live('records'))
  let logs: LiveSegment[] | undefined
  try {
    logs = yield* writeRowsAsSegments(writer, reader, 'logs', overlay.live('logs'))
  } finally {
    if (logs === undefined) for (const { segment } of records) removeQuietly(writer.files, segment.path)
  }
  return [...records, ...logs]
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
