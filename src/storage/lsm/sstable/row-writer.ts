/**
 * Writes rows that are held in memory as segments, in small steps. What a segment looks like is its writer's; merging
 * has its own way.
 */

import { removeQuietly } from '../../files.js'
import { sortIds, sortKeys } from '../radix-sort.js'
import type { StoredRow } from '../row-change.js'
import { DICT, EXPIRY, type Family, IDS, MAX_BYTES, MAX_ROWS, POST, ROWS, sstablePath } from './format.js'
import { SSTable, type SSTableContext, type SSTableMeta } from './reader.js'
import { LiveSSTable } from './search.js'
import { SSTableWriter, type SSTableWriterContext } from './writer.js'

const NO_ROWS = new Uint32Array(0)
const NO_TENANTS: ReadonlySet<number> = new Set()
/** Rows or keys handled between two yields: a fraction of a millisecond. */
const STRIDE = 256

/** The last value of steps that nobody waits between. */
export function finish<T>(steps: Generator<undefined, T>): T {
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

/**
 * Writes rows, ascending by `seq`, keys included, as one segment or several; files and names are safe at the end. Ended
 * early or failing, it removes what it wrote.
 * @throws CofferError `storage_failed`.
 */
export function* writeRowsAsSSTables(
  writer: SSTableWriterContext,
  reader: SSTableContext,
  family: Family,
  rows: readonly StoredRow[],
): Generator<undefined, LiveSSTable[]> {
  const written: SSTableMeta[] = []
  let isDone = false
  try {
    for (const piece of pieces(rows)) written.push(yield* writeSSTable(writer, family, piece))
    if (written.length > 0) writer.files.syncDirectory(`${writer.directory}/segments`)
    isDone = true
  } finally {
    if (!isDone)
      for (const { id } of written) removeQuietly(writer.files, sstablePath(writer.directory, family, id))
  }
  return written.map((name) => new LiveSSTable(new SSTable(reader, name), NO_ROWS, NO_ROWS, NO_TENANTS))
}

/** Rows and bytes that are held in memory before they are written. */
const BATCH_ROWS = 16_384
const BATCH_BYTES = 16 * 1024 * 1024

/** Rows in pieces that can be held, for those who make a vault anew. */
export async function* inBatches(rows: AsyncIterable<StoredRow>): AsyncGenerator<StoredRow[]> {
  let batch: StoredRow[] = []
  let bytes = 0
  for await (const row of rows) {
    batch.push(row)
    bytes += row.sealed.length
    if (batch.length < BATCH_ROWS && bytes < BATCH_BYTES) continue
    yield batch
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch
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

/** One segment of rows, ascending by `seq`. */
export function* writeSSTable(
  context: SSTableWriterContext,
  family: Family,
  rows: readonly StoredRow[],
): Generator<undefined, SSTableMeta> {
  const writer = new SSTableWriter(context, family)
  let name: SSTableMeta | undefined
  try {
    yield* writeRows(writer, rows)
    if (family === 'records') yield* writeIds(writer, rows)
    yield* writeKeys(writer, rows)
    writeExpiry(writer, rows)
    yield
    name = writer.finish()
    return name
  } finally {
    if (name === undefined) writer.abandon()
  }
}

function* writeRows(writer: SSTableWriter, rows: readonly StoredRow[]) {
  const locations: { offset: number; length: number }[] = []
  for (const row of rows) {
    locations.push(writer.addRecord(row))
    if (locations.length % STRIDE === 0) yield
  }
  writer.begin(ROWS)
  for (let number = 0; number < rows.length; number++) {
    writer.addRow(rows[number]!, locations[number]!)
    if (number % STRIDE === 0) yield
  }
}

function* writeIds(writer: SSTableWriter, rows: readonly StoredRow[]) {
  writer.begin(IDS)
  const sorted = sortIds(rows)
  for (let index = 0; index < sorted.count; index++) {
    writer.addId(sorted.high(index), sorted.low(index), sorted.row(index))
    if (index % STRIDE === 0) yield
  }
}

function* writeKeys(writer: SSTableWriter, rows: readonly StoredRow[]) {
  const sorted = sortKeys(rows)
  yield
  writer.begin(POST)
  let written = 0
  for (let index = 0; index < sorted.count; ) {
    const end = sorted.endOf(index)
    if (end - index === 1) index = end
    else while (index < end) writer.addPosted(sorted.row(index++))
    if (++written % STRIDE === 0) yield
  }
  writer.begin(DICT)
  let start = 0
  for (let index = 0; index < sorted.count; ) {
    const end = sorted.endOf(index)
    const count = end - index
    writer.addKey(sorted.high(index), sorted.low(index), count === 1 ? sorted.row(index) : start, count)
    if (count > 1) start += count
    index = end
    if (++written % STRIDE === 0) yield
  }
}

function writeExpiry(writer: SSTableWriter, rows: readonly StoredRow[]): void {
  writer.begin(EXPIRY)
  const expiring = rows
    .map(({ expires }, number) => ({ expires, number }))
    .filter(({ expires }) => expires > 0)
  expiring.sort((left, right) => left.expires - right.expires || left.number - right.number)
  for (const { expires, number } of expiring) writer.addExpiry(expires, number)
}
