/** Writes tables in small steps, of rows in memory or of older tables, and chooses the tables to compact. */
import type { Row } from '../../engine.js'
import { inBatches } from '../../vault-rows.js'
import type { LsmContext } from '../context.js'
import { type Entries, GONE, least, sortEntries, TableEntries, walkRows } from './cursors.js'
import { INDEXES, type Index } from './format.js'
import { LiveSSTable } from './live-sstable.js'
import { SSTable, type SSTableMeta } from './reader.js'
import { SSTableWriter } from './writer.js'

/** Rows or entries handled between two yields: a fraction of a millisecond. */
const STRIDE = 256

type Steps<T> = Generator<undefined, T>

/** Runs all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

/** Writes one table, if there are rows. `addRows` returns their number. Removes the unfinished file if it fails or is ended early. */
function* writeTable(
  context: LsmContext,
  addRows: (writer: SSTableWriter) => Steps<number>,
  entriesOf: (index: Index) => readonly Entries[],
): Steps<SSTableMeta | undefined> {
  const writer = new SSTableWriter(context)
  let meta: SSTableMeta | undefined
  try {
    const count = yield* addRows(writer)
    for (const index of count === 0 ? [] : INDEXES) {
      writer.begin(index)
      const lists = entriesOf(index)
      do yield
      while (addEntries(writer, lists))
    }
    if (count > 0) meta = writer.finish()
    return meta
  } finally {
    if (meta === undefined) writer.abandon()
  }
}

/** Adds the next entries of the lists, least first; false at the end. No generator, because V8 compiles a loop of those several times. */
function addEntries(writer: SSTableWriter, lists: readonly Entries[]): boolean {
  for (let left = STRIDE; left > 0; left--) {
    const list = least(lists)
    if (list === undefined) return false
    writer.addEntry(list.high, list.low, list.row)
    list.next()
  }
  return true
}

/** Writes rows, ascending by `seq` and with their keys, as a table, if there are any. Its file and name are durable. */
export function* writeRows(context: LsmContext, rows: readonly Row[]): Steps<LiveSSTable[]> {
  function* addRows(writer: SSTableWriter): Steps<number> {
    for (let from = 0; from < rows.length; from += STRIDE) {
      for (const row of rows.slice(from, from + STRIDE)) writer.addRow(row, row.sealed)
      yield
    }
    return rows.length
  }
  const meta = yield* writeTable(context, addRows, (index) => [sortEntries(index, rows)])
  if (meta === undefined) return []
  context.files.syncDirectory(`${context.directory}/segments`)
  return [new LiveSSTable(new SSTable(context, meta))]
}

export interface Compacted {
  /** The new table; undefined when no row was left. */
  meta: SSTableMeta | undefined
  /** For each input: the new numbers of its rows, or `GONE`. */
  maps: Uint32Array[]
}

/** Writes several tables, or one with many dead rows, as one table without the dead rows. */
export function* compactSSTables(context: LsmContext, inputs: readonly LiveSSTable[]): Steps<Compacted> {
  const maps = inputs.map(({ sstable }) => new Uint32Array(sstable.rows).fill(GONE))
  function* addRows(writer: SSTableWriter): Steps<number> {
    let count = 0
    for (const { head, sealed, input, number } of walkRows(inputs)) {
      maps[input]![number] = count++
      writer.addRow(head, sealed)
      if (count % STRIDE === 0) yield
    }
    return count
  }
  const entriesOf = (index: Index) =>
    inputs.map(({ sstable }, input) => new TableEntries(sstable, index, maps[input]!))
  return { meta: yield* writeTable(context, addRows, entriesOf), maps }
}

/** The limits of a batch, which is held in memory before it is written. */
const BATCH = { rows: 16_384, bytes: 16 * 1024 * 1024 }

/** Writes rows in any order as tables, of a batch each. */
export async function writeBatches(context: LsmContext, rows: AsyncIterable<Row>): Promise<LiveSSTable[]> {
  const tables: LiveSSTable[] = []
  for await (const batch of inBatches(rows, BATCH)) {
    batch.sort((left, right) => left.seq - right.seq)
    tables.push(...finish(writeRows(context, batch)))
  }
  return tables
}

/** Most rows of a table that tables are compacted into, so that it is bounded work. */
const MAX_ROWS = 262_144
/** Most bytes of the tables that are compacted into one. */
const MAX_BYTES = 256 * 1024 * 1024
const TIERS = [1, 4, 16, 64, 256].map((mebibytes) => mebibytes * 1024 * 1024)
const WIDTH = 4
/** With more tables than this the smallest are merged, whatever their tiers. */
const MANY_TABLES = 32
/** Tables that are merged at once because there are many. */
const MANY_WIDTH = 16

/** At most `limit` bytes: the smallest of too many, four of one size, or one with many dead rows. */
export function chooseInputs(tables: readonly LiveSSTable[], limit: number): LiveSSTable[] | undefined {
  const bySize = [...tables].sort((left, right) => left.sstable.meta.bytes - right.sstable.meta.bytes)
  if (tables.length > MANY_TABLES) {
    const smallest = takeFitting(bySize, MANY_WIDTH, limit)
    if (smallest.length > 1) return smallest
  }
  for (const [tier, most] of TIERS.entries()) {
    const above = TIERS[tier - 1] ?? 0
    const peers = bySize.filter(({ sstable: { meta } }) => meta.bytes > above && meta.bytes <= most)
    const chosen = takeFitting(peers, WIDTH, limit)
    if (chosen.length === WIDTH) return chosen
  }
  const worn = tables.find(({ sstable, dead, droppedRows }) => {
    // A dead row of a dropped tenant counts twice, which only brings compaction forward.
    return sstable.meta.bytes <= limit && (dead.length + droppedRows) * 4 >= sstable.rows
  })
  return worn === undefined ? undefined : [worn]
}

/** The first tables that fit into one table together, at most `width`; others are passed over. */
function takeFitting(tables: readonly LiveSSTable[], width: number, limit: number): LiveSSTable[] {
  const taken: LiveSSTable[] = []
  let bytes = 0
  let rows = 0
  for (const live of tables) {
    const { meta } = live.sstable
    if (bytes + meta.bytes > Math.min(limit, MAX_BYTES) || rows + meta.rows > MAX_ROWS) continue
    bytes += meta.bytes
    rows += meta.rows
    if (taken.push(live) === width) break
  }
  return taken
}

/** Rows that died meanwhile are dead and due in the new table too. `current`: the inputs now. */
export function adoptCompacted(
  sstable: SSTable,
  maps: readonly Uint32Array[],
  inputs: readonly LiveSSTable[],
  current: readonly LiveSSTable[],
): LiveSSTable {
  const dead: number[] = []
  const dropped = new Set<number>()
  current.forEach((live, index) => {
    for (const row of live.dead) if (maps[index]![row] !== GONE) dead.push(maps[index]![row]!)
    // Rows of tenants dropped before were left out; a younger input may have rows of such a tenant again.
    for (const tenant of live.dropped)
      if (!inputs[index]!.dropped.has(tenant) && sstable.footer.tenants.has(tenant)) dropped.add(tenant)
  })
  const rows = Uint32Array.from(dead).sort()
  return new LiveSSTable(sstable, rows, rows, dropped)
}
