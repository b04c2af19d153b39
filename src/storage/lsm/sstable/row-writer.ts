/** Writes rows that are in memory as sorted tables, in small steps. */
import type { Row } from '../../engine.js'
import { removeQuietly } from '../../files.js'
import { DICT, EXPIRY, IDS, MAX_BYTES, MAX_ROWS, POST, ROWS, sstablePath } from './format.js'
import { LiveSSTable } from './live-sstable.js'
import { sortIds, sortKeys } from './radix-sort.js'
import { SSTable, type SSTableContext, type SSTableMeta } from './reader.js'
import { SSTableWriter, type SSTableWriterContext } from './writer.js'

/** Rows or keys handled between two yields: a fraction of a millisecond. */
const STRIDE = 256

/** Runs all steps at once. */
export function finish<T>(steps: Generator<undefined, T>): T {
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

/**
 * Writes rows, ascending by `seq` and with their keys, as one table or several. Files and names are durable at the end;
 * if it fails or is ended early, it removes them.
 */
export function* writeSSTables(
  context: SSTableContext,
  rows: readonly Row[],
): Generator<undefined, LiveSSTable[]> {
  const { files, directory } = context
  const written: SSTableMeta[] = []
  let isDone = false
  try {
    for (const piece of pieces(rows)) written.push(yield* writeSSTable(context, piece))
    if (written.length > 0) files.syncDirectory(`${directory}/segments`)
    isDone = true
  } finally {
    if (!isDone) for (const { id } of written) removeQuietly(files, sstablePath(directory, id))
  }
  return written.map((meta) => new LiveSSTable(new SSTable(context, meta)))
}

/** Rows and bytes that are held in memory before they are written. */
const BATCH_ROWS = 16_384
const BATCH_BYTES = 16 * 1024 * 1024

export async function* inBatches(rows: AsyncIterable<Row>): AsyncGenerator<Row[]> {
  let batch: Row[] = []
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

/** Rows in pieces that one table may hold. */
function* pieces(rows: readonly Row[]): Generator<readonly Row[]> {
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

/** One table of rows, ascending by `seq`. */
export function* writeSSTable(
  context: SSTableWriterContext,
  rows: readonly Row[],
): Generator<undefined, SSTableMeta> {
  const writer = new SSTableWriter(context)
  let meta: SSTableMeta | undefined
  try {
    yield* writeRows(writer, rows)
    yield* writeIds(writer, rows)
    yield* writeKeys(writer, rows)
    writeExpiry(writer, rows)
    yield
    meta = writer.finish()
    return meta
  } finally {
    if (meta === undefined) writer.abandon()
  }
}

function* writeRows(writer: SSTableWriter, rows: readonly Row[]) {
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

function* writeIds(writer: SSTableWriter, rows: readonly Row[]) {
  writer.begin(IDS)
  const sorted = sortIds(rows)
  for (let index = 0; index < sorted.count; index++) {
    writer.addId(sorted.high(index), sorted.low(index), sorted.row(index))
    if (index % STRIDE === 0) yield
  }
}

function* writeKeys(writer: SSTableWriter, rows: readonly Row[]) {
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

function writeExpiry(writer: SSTableWriter, rows: readonly Row[]): void {
  writer.begin(EXPIRY)
  const expiring = rows
    .map(({ expires }, number) => ({ expires, number }))
    .filter(({ expires }) => expires > 0)
  expiring.sort((left, right) => left.expires - right.expires || left.number - right.number)
  for (const { expires, number } of expiring) writer.addExpiry(expires, number)
}
