/** Writes tables in small steps, from rows in memory or from older tables, and chooses the tables to compact. */
import type { Row } from '../../engine.js'
import { inBatches } from '../../vault-rows.js'
import type { LsmContext } from '../context.js'
import { type Entries, GONE, least, sortEntries, TableEntries, walkRows } from './cursors.js'
import { INDEXES, type Index } from './format.js'
import { LiveSSTable } from './live-sstable.js'
import { SSTable, type SSTableMeta } from './reader.js'
import { SSTableWriter } from './writer.js'

/** A generator yields after this number of rows or entries, which take less than 1 ms. */
const STRIDE = 256

type Steps<T> = Generator<undefined, T>

export function finish<T>(steps: Steps<T>): T {
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

/**
 * Writes a table. Removes the unfinished file if there are no rows, if the work fails, or if the caller ends the
 * generator.
 */
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

/**
 * Adds the next entries, the lowest first. Returns false if no entry is left. This function is not a generator, because
 * V8 would compile a generator several times.
 */
function addEntries(writer: SSTableWriter, lists: readonly Entries[]): boolean {
  for (let left = STRIDE; left > 0; left--) {
    const list = least(lists)
    if (list === undefined) return false
    writer.addEntry(list.high, list.low, list.row)
    list.next()
  }
  return true
}

/**
 * Writes rows as a table, and makes the file and its name durable. Without rows, writes no table. Requires: rows ascend
 * by `seq` and have their keys.
 */
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
  meta: SSTableMeta | undefined
  /** `GONE`, or the number in the new table, for each row of each input. */
  maps: Uint32Array[]
}

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

/** The limits of a batch. A whole batch is in memory until it is written. */
const BATCH = { rows: 16_384, bytes: 16 * 1024 * 1024 }

export async function writeBatches(context: LsmContext, rows: AsyncIterable<Row>): Promise<LiveSSTable[]> {
  const tables: LiveSSTable[] = []
  for await (const batch of inBatches(rows, BATCH)) {
    batch.sort((left, right) => left.seq - right.seq)
    tables.push(...finish(writeRows(context, batch)))
  }
  return tables
}

/** The most rows of a compacted table. This limits the work of a compaction. */
const MAX_ROWS = 262_144
const MAX_BYTES = 256 * 1024 * 1024
const TIERS = [1, 4, 16, 64, 256].map((mebibytes) => mebibytes * 1024 * 1024)
const WIDTH = 4
/** With more tables than this, the smallest tables are merged, whatever their tiers. */
const MANY_TABLES = 32
const MANY_WIDTH = 16

/**
 * Chooses tables to compact, of at most `limit` bytes in total. If there are too many tables, chooses the smallest
 * tables. Otherwise chooses four tables of one tier, if a tier has four tables, or else one table with many dead rows
 * or a damaged end.
 */
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
    // A dead row of a dropped tenant is counted twice. The only effect is that the compaction begins earlier.
    const isWorn = sstable.hasDamagedEnd || (dead.length + droppedRows) * 4 >= sstable.rows
    return isWorn && sstable.meta.bytes <= limit
  })
  return worn === undefined ? undefined : [worn]
}

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

/**
 * Opens a compacted table. Rows that died during the compaction are dead in the new table, and due to be overwritten
 * there. `current`: the present state of the tables that the compaction has read.
 */
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
    // The compaction omitted rows of tenants that were dropped before the compaction began. These tenants are not
    // dropped again in the new table, because other inputs may have newer rows of these tenants.
    for (const tenant of live.dropped)
      if (!inputs[index]!.dropped.has(tenant) && sstable.footer.tenants.has(tenant)) dropped.add(tenant)
  })
  const rows = Uint32Array.from(dead).sort()
  return new LiveSSTable(sstable, rows, rows, dropped)
}
