/**
 * Compaction: writes several sorted tables, or one with many dead rows, as one table without dead rows. Copies records
 * as they are, merges indexes block by block. Runs in small steps, between which other work can run.
 */
import { DICT, EXPIRY, IDS, POST, ROWS, readRecordLocation } from '../sstable/format.js'
import { LiveSSTable } from '../sstable/live-sstable.js'
import { type Posting, SSTable, type SSTableContext, type SSTableMeta } from '../sstable/reader.js'
import { Cursor, least, walkRows } from '../sstable/scan.js'
import { SSTableWriter } from '../sstable/writer.js'

/** Entries handled between two yields: well under a millisecond. */
const STRIDE = 128
/** Records are copied in pieces of this length, and one record more. */
const PIECE = 256 * 1024
/** In a row map: the row was dead and is not in the new table. */
const GONE = 0xffffffff

export interface CompactionResult {
  /** The new table; undefined when no row was left. */
  meta: SSTableMeta | undefined
  /** For each input: the new numbers of its rows. */
  maps: Uint32Array[]
}

class RecordCopier {
  readonly #writer: SSTableWriter
  #sstable: SSTable | undefined
  #piece = Buffer.allocUnsafeSlow(PIECE)
  #from = 0
  #to = 0

  constructor(writer: SSTableWriter) {
    this.#writer = writer
  }

  add(sstable: SSTable, offset: number, length: number): void {
    const isNext = sstable === this.#sstable && offset === this.#to && this.#to - this.#from < PIECE
    if (!isNext) {
      this.flush()
      this.#sstable = sstable
      this.#from = offset
    }
    this.#to = offset + length
  }

  flush(): void {
    if (this.#sstable === undefined || this.#to === this.#from) return
    const length = this.#to - this.#from
    if (length > this.#piece.length) this.#piece = Buffer.allocUnsafeSlow(length)
    this.#writer.addBytes(this.#sstable.readInto(this.#piece.subarray(0, length), this.#from))
    this.#from = this.#to
  }
}

/** Removes the unfinished file if it is ended early. @throws CofferError `vault_damaged`, `storage_failed` */
export function* compactSSTables(
  context: SSTableContext,
  inputs: readonly LiveSSTable[],
): Generator<undefined, CompactionResult> {
  const maps = inputs.map(({ sstable }) => new Uint32Array(sstable.meta.rows).fill(GONE))
  const writer = new SSTableWriter(context)
  let meta: SSTableMeta | undefined
  try {
    const rows = yield* copyRecords(writer, inputs, maps)
    if (rows > 0) {
      yield* mergeRows(writer, inputs, maps)
      writer.begin(IDS)
      yield* mergeEntries(inputs, maps, IDS, 8, ({ high, low }, row) => writer.addId(high, low, row))
      yield* mergeKeys(writer, inputs, maps)
      writer.begin(EXPIRY)
      yield* mergeEntries(inputs, maps, EXPIRY, 6, ({ high }, row) => writer.addExpiry(high, row))
      meta = writer.finish()
    }
  } finally {
    if (meta === undefined) writer.abandon()
  }
  return { meta, maps }
}

function* copyRecords(writer: SSTableWriter, inputs: readonly LiveSSTable[], maps: readonly Uint32Array[]) {
  const copier = new RecordCopier(writer)
  let number = 0
  for (const cursor of walkRows(inputs, maps)) {
    const { offset, length } = readRecordLocation(cursor.block, cursor.at)
    copier.add(cursor.sstable, offset, length)
    cursor.map[cursor.index] = number++
    if (number % STRIDE === 0) yield
  }
  copier.flush()
  return number
}

function* mergeRows(writer: SSTableWriter, inputs: readonly LiveSSTable[], maps: readonly Uint32Array[]) {
  writer.begin(ROWS)
  let offset = 0
  let count = 0
  for (const cursor of walkRows(inputs, maps)) {
    writer.copyRow(cursor.block, cursor.at, offset)
    offset += readRecordLocation(cursor.block, cursor.at).length
    if (++count % STRIDE === 0) yield
  }
}

/** Merges a section that has one entry a row; `rowAt` is the offset of the row's number in an entry. */
function* mergeEntries(
  inputs: readonly LiveSSTable[],
  maps: readonly Uint32Array[],
  section: typeof IDS | typeof EXPIRY,
  rowAt: number,
  add: (cursor: Cursor, row: number) => void,
) {
  const cursors = inputs.map((live, index) => new Cursor(live, section, maps[index]!))
  let count = 0
  for (let cursor = least(cursors); cursor !== undefined; cursor = least(cursors)) {
    const row = cursor.map[cursor.block.readUInt32LE(cursor.at + rowAt)]!
    if (row !== GONE) add(cursor, row)
    cursor.next()
    if (++count % STRIDE === 0) yield
  }
}

/** Postings are written at once; the dictionary, 16 bytes a key, is held in memory until all postings are written. */
function* mergeKeys(writer: SSTableWriter, inputs: readonly LiveSSTable[], maps: readonly Uint32Array[]) {
  const cursors = inputs.map((live, index) => new Cursor(live, DICT, maps[index]!))
  const dictionary = new Dictionary()
  writer.begin(POST)
  let start = 0
  let count = 0
  for (let cursor = least(cursors); cursor !== undefined; cursor = least(cursors)) {
    if (++count % STRIDE === 0) yield
    const { high, low } = cursor
    // Most keys have one row: no array and no generator for each of them.
    if (postingAt(cursor).count === 1 && isAlone(cursor, cursors)) {
      const row = cursor.map[postingAt(cursor).start]!
      if (row !== GONE) dictionary.add(high, low, row, 1)
      cursor.next()
      continue
    }
    const rows = yield* collectPosted(cursors.filter((each) => !each.isDone && each.isLevel(cursor!)))
    if (rows.length > 1) for (const row of rows) writer.addPosted(row)
    if (rows.length > 0) dictionary.add(high, low, rows.length === 1 ? rows[0]! : start, rows.length)
    if (rows.length > 1) start += rows.length
  }
  writer.begin(DICT)
  for (const entry of dictionary.entries()) {
    writer.addKey(...entry)
    if (++count % STRIDE === 0) yield
  }
}

function isAlone(cursor: Cursor, cursors: readonly Cursor[]): boolean {
  for (const each of cursors) if (each !== cursor && !each.isDone && each.isLevel(cursor)) return false
  return true
}

function postingAt({ block, at }: Cursor): Posting {
  return { start: block.readUInt32LE(at + 8), count: block.readUInt32LE(at + 12) }
}

/** New numbers of all rows with the key of these cursors, ascending; moves the cursors on. */
function* collectPosted(cursors: readonly Cursor[]): Generator<undefined, number[]> {
  const rows: number[] = []
  let isSorted = true
  for (const cursor of cursors) {
    const posting = postingAt(cursor)
    for (let index = 0; index < posting.count; index++) {
      const row = cursor.map[cursor.sstable.postedRow(posting, index)]!
      if (row !== GONE) {
        isSorted &&= rows.length === 0 || rows[rows.length - 1]! < row
        rows.push(row)
      }
      if (index % 1024 === 1023) yield
    }
    cursor.next()
  }
  return isSorted ? rows : Array.from(Uint32Array.from(rows).sort())
}

/** The keys of the new table, each with the position of its postings. */
class Dictionary {
  #bytes = Buffer.alloc(16 * 1024)
  #length = 0

  /** The key in two words. */
  add(high: number, low: number, start: number, count: number): void {
    if (this.#length === this.#bytes.length) {
      const wider = Buffer.alloc(2 * this.#bytes.length)
      wider.set(this.#bytes)
      this.#bytes = wider
    }
    this.#bytes.writeUInt32BE(high, this.#length)
    this.#bytes.writeUInt32BE(low, this.#length + 4)
    this.#bytes.writeUInt32LE(start, this.#length + 8)
    this.#bytes.writeUInt32LE(count, this.#length + 12)
    this.#length += 16
  }

  *entries(): Generator<[high: number, low: number, start: number, count: number]> {
    for (let at = 0; at < this.#length; at += 16)
      yield [
        this.#bytes.readUInt32BE(at),
        this.#bytes.readUInt32BE(at + 4),
        this.#bytes.readUInt32LE(at + 8),
        this.#bytes.readUInt32LE(at + 12),
      ]
  }
}

/** Rows that died since `inputs` were taken are dead and due in the new table too. `current`: the inputs now. */
export function adoptCompacted(
  context: SSTableContext,
  meta: SSTableMeta,
  maps: readonly Uint32Array[],
  inputs: readonly LiveSSTable[],
  current: readonly LiveSSTable[],
): LiveSSTable {
  const sstable = new SSTable(context, meta)
  const dead: number[] = []
  const dropped = new Set<number>()
  current.forEach((live, index) => {
    for (const row of live.dead) {
      const newRow = maps[index]![row]!
      if (newRow !== GONE) dead.push(newRow)
    }
    // Rows of tenants dropped before were left out; a younger input may have rows of such a tenant again.
    const isNew = (tenant: number) =>
      !inputs[index]!.dropped.has(tenant) && sstable.footer.tenants.has(tenant)
    for (const tenant of live.dropped) if (isNew(tenant)) dropped.add(tenant)
  })
  const rows = Uint32Array.from(dead).sort()
  return new LiveSSTable(sstable, rows, rows, dropped)
}
