/**
 * Turns an overlay into segments, and notes in the older segments which rows it made dead. Writes new files only;
 * making them count, by `state`, is the ledger's.
 */
import { removeQuietly } from '../files.js'
import type { Memtable } from './memtable.js'
import type { SSTableContext } from './sstable/reader.js'
import { writeRowsAsSSTables } from './sstable/row-writer.js'
import { LiveSSTable } from './sstable/search.js'
import type { SSTableWriterContext } from './sstable/writer.js'

/** Writes the overlay's live rows as segments, in steps; ended early or failing, it removes what it wrote. */
export function* writeMemtable(
  writer: SSTableWriterContext,
  reader: SSTableContext,
  memtable: Memtable,
): Generator<undefined, LiveSSTable[]> {
  const records = yield* writeRowsAsSSTables(writer, reader, 'records', memtable.live('records'))
  let logs: LiveSSTable[] | undefined
  try {
    logs = yield* writeRowsAsSSTables(writer, reader, 'logs', memtable.live('logs'))
  } finally {
    if (logs === undefined) for (const { sstable } of records) removeQuietly(writer.files, sstable.path)
  }
  return [...records, ...logs]
}

/** The segment as it is once the overlay counts: what was replaced, removed or dropped is dead, and due to be erased. */
export function markShadowed(live: LiveSSTable, memtable: Memtable): LiveSSTable {
  const { sstable, dead, due, dropped } = live
  const tenants = [...memtable.dropped].filter((tenant) => sstable.footer.tenants.has(tenant))
  const rows = sstable.meta.family === 'records' ? live.hiddenBy(memtable) : []
  if (rows.length === 0 && tenants.length === 0) return live
  return new LiveSSTable(sstable, addRows(dead, rows), addRows(due, rows), new Set([...dropped, ...tenants]))
}

/** Both, ascending, each once. */
export function addRows(rows: Uint32Array, more: readonly number[]): Uint32Array {
  return Uint32Array.from(new Set([...rows, ...more])).sort()
}

/** True when no row of it is alive. */
export function hasNoLiveRows({ sstable, dead, dropped }: LiveSSTable): boolean {
  const { rows, tenants } = sstable.footer
  return dead.length === rows || [...tenants.keys()].every((tenant) => dropped.has(tenant))
}
