/**
 * Makes one segment of several, or of one with many dead rows: records are copied as they are, indexes are merged
 * block by block, dead rows are left out. Works in small steps, so that others may go on between them.
 */
import { asBuffer } from './bytes.js'
import { Segment, type SegmentName, type SegmentPlace } from './segment.js'
import { Cursor, least, walkRows } from './segment-cursor.js'
import { DICT, EXPIRY, IDS, POST, ROWS, type RowEntry, readRowEntry } from './segment-layout.js'
import { LiveSegment } from './segment-search.js'
import { SegmentWriter, type WriterPlace } from './segment-writer.js'

/** Entries handled between two yields: well under a millisecond. */
const STRIDE = 128
const WINDOW = 1024 * 1024
/** In a row map: this row was dead and has no place in the new segment. */
const GONE = 0xffffffff

export interface Merged {
  /** Undefined when no row was left. */
  name: SegmentName | undefined
  /** For each input: where its rows went. */
  maps: Uint32Array[]
}

/** Bytes of one file from front to back, read in large pieces. */
class Window {
  readonly #segment: Segment
  #bytes: Buffer = Buffer.alloc(0)
  #start = 0

  constructor(segment: Segment) {
    this.#segment = segment
  }

  take(offset: number, length: number): Buffer {
    if (offset < this.#start || offset + length > this.#start + this.#bytes.length) {
      const wanted = Math.max(length, Math.min(WINDOW, this.#segment.footer.recordBytes - offset))
      this.#bytes = this.#segment.readRecords(offset, wanted)
      this.#start = offset
    }
    return this.#bytes.subarray(offset - this.#start, offset - this.#start + length)
  }
}

/**
 * Merges segments of one family. Yields between steps; ended early, it removes what it began.
 * @throws CofferError `vault_damaged`, `storage_failed`.
 */
export function* mergeSegments(
  place: WriterPlace,
  inputs: readonly LiveSegment[],
): Generator<undefined, Merged> {
  const family = inputs[0]?.segment.name.family ?? 'records'
  const maps = inputs.map(({ segment }) => new Uint32Array(segment.name.rows).fill(GONE))
  const writer = new SegmentWriter(place, family)
  let name: SegmentName | undefined
  try {
    const rows = yield* copyRecords(writer, inputs, maps)
    if (rows > 0) {
      yield* mergeRows(writer, inputs, maps)
      if (family === 'records') yield* mergeIds(writer, inputs, maps)
      yield* mergeKeys(writer, inputs, maps)
      yield* mergeExpiry(writer, inputs, maps)
      name = writer.finish()
    }
  } finally {
    if (name === undefined) writer.abandon()
  }
  return { name, maps }
}

function* copyRecords(writer: SegmentWriter, inputs: readonly LiveSegment[], maps: readonly Uint32Array[]) {
  const windows = new Map(inputs.map(({ segment }) => [segment, new Window(segment)]))
  let number = 0
  for (const cursor of walkRows(inputs, maps)) {
    const offset = cursor.block.readUIntLE(cursor.at + 46, 6)
    const length = cursor.block.readUInt32LE(cursor.at + 52)
    writer.addBytes(windows.get(cursor.segment)!.take(offset, length))
    cursor.map[cursor.index] = number++
    if (number % STRIDE === 0) yield
  }
  return number
}

function* mergeRows(writer: SegmentWriter, inputs: readonly LiveSegment[], maps: readonly Uint32Array[]) {
  writer.begin(ROWS)
  let offset = 0
  let count = 0
  for (const cursor of walkRows(inputs, maps)) {
    const entry: RowEntry = readRowEntry(cursor.block, cursor.at)
    writer.addRow(entry, { offset, length: entry.length })
    offset += entry.length
    if (++count % STRIDE === 0) yield
  }
}

const byFirstHalf = (left: Cursor, right: Cursor) =>
  left.block.compare(right.block, right.at, right.at + 8, left.at, left.at + 8) < 0

function* mergeIds(writer: SegmentWriter, inputs: readonly LiveSegment[], maps: readonly Uint32Array[]) {
  writer.begin(IDS)
  const cursors = inputs.map((live, index) => new Cursor(live, IDS, maps[index]!))
  let count = 0
  for (let cursor = least(cursors, byFirstHalf); cursor !== undefined; cursor = least(cursors, byFirstHalf)) {
    const row = cursor.map[cursor.block.readUInt32LE(cursor.at + 8)]!
    if (row !== GONE) writer.addId(cursor.block.subarray(cursor.at, cursor.at + 8), row)
    cursor.next()
    if (++count % STRIDE === 0) yield
  }
}

/** Postings are written as they come; the dictionary, 16 bytes a key, is held until they are all there. */
function* mergeKeys(writer: SegmentWriter, inputs: readonly LiveSegment[], maps: readonly Uint32Array[]) {
  const cursors = inputs.map((live, index) => new Cursor(live, DICT, maps[index]!))
  const dictionary = new Dictionary()
  writer.begin(POST)
  let start = 0
  let count = 0
  for (let cursor = least(cursors, byFirstHalf); cursor !== undefined; cursor = least(cursors, byFirstHalf)) {
    const key = Buffer.from(cursor.block.subarray(cursor.at, cursor.at + 8))
    const rows = yield* collectPosted(cursors, key)
    if (rows.length > 1) for (const row of rows) writer.addPosted(row)
    if (rows.length > 0) dictionary.add(key, rows.length === 1 ? rows[0]! : start, rows.length)
    if (rows.length > 1) start += rows.length
    if (++count % STRIDE === 0) yield
  }
  writer.begin(DICT)
  for (const [key, first, length] of dictionary.entries()) {
    writer.addKey(key, first, length)
    if (++count % STRIDE === 0) yield
  }
}

/** New numbers of all rows that carry the key, ascending; moves the cursors that stand at it on. */
function* collectPosted(cursors: readonly Cursor[], key: Buffer): Generator<undefined, number[]> {
  const rows: number[] = []
  let isSorted = true
  for (const cursor of cursors) {
    if (cursor.isDone || cursor.block.compare(key, 0, 8, cursor.at, cursor.at + 8) !== 0) continue
    const posting = {
      start: cursor.block.readUInt32LE(cursor.at + 8),
      count: cursor.block.readUInt32LE(cursor.at + 12),
    }
    for (let index = 0; index < posting.count; index++) {
      const row = cursor.map[cursor.segment.postedRow(posting, index)]!
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

/** Keys and where their rows are, in memory. */
class Dictionary {
  #bytes = Buffer.alloc(16 * 1024)
  #length = 0

  add(key: Buffer, start: number, count: number): void {
    if (this.#length === this.#bytes.length) {
      const wider = Buffer.alloc(2 * this.#bytes.length)
      wider.set(this.#bytes)
      this.#bytes = wider
    }
    this.#bytes.set(key, this.#length)
    this.#bytes.writeUInt32LE(start, this.#length + 8)
    this.#bytes.writeUInt32LE(count, this.#length + 12)
    this.#length += 16
  }

  *entries(): Generator<[Buffer, number, number]> {
    for (let at = 0; at < this.#length; at += 16) {
      yield [
        this.#bytes.subarray(at, at + 8),
        this.#bytes.readUInt32LE(at + 8),
        this.#bytes.readUInt32LE(at + 12),
      ]
    }
  }
}

const byExpiry = (left: Cursor, right: Cursor) =>
  left.block.readUIntLE(left.at, 6) < right.block.readUIntLE(right.at, 6)

function* mergeExpiry(writer: SegmentWriter, inputs: readonly LiveSegment[], maps: readonly Uint32Array[]) {
  writer.begin(EXPIRY)
  const cursors = inputs.map((live, index) => new Cursor(live, EXPIRY, maps[index]!))
  let count = 0
  for (let cursor = least(cursors, byExpiry); cursor !== undefined; cursor = least(cursors, byExpiry)) {
    const row = cursor.map[cursor.block.readUInt32LE(cursor.at + 6)]!
    if (row !== GONE) writer.addExpiry(cursor.block.readUIntLE(cursor.at, 6), row)
    cursor.next()
    if (++count % STRIDE === 0) yield
  }
}

/**
 * The merged segment as it stands now: rows that died since `inputs` were taken are dead and due in it too.
 * `current` are the same segments as the vault knows them at this moment.
 */
export function adoptMerged(
  reader: SegmentPlace,
  name: SegmentName,
  maps: readonly Uint32Array[],
  inputs: readonly LiveSegment[],
  current: readonly LiveSegment[],
): LiveSegment {
  const segment = new Segment(reader, name)
  const dead: number[] = []
  const dropped = new Set<number>()
  current.forEach((live, index) => {
    for (const row of live.dead) {
      const place = maps[index]![row]!
      if (place !== GONE) dead.push(place)
    }
    // What was dropped before was left out; a tenant may have come back since, in a younger input.
    const isNew = (tenant: number) =>
      !inputs[index]!.dropped.has(tenant) && segment.footer.tenants.has(tenant)
    for (const tenant of live.dropped) if (isNew(tenant)) dropped.add(tenant)
  })
  const rows = Uint32Array.from(dead).sort()
  return new LiveSegment(segment, rows, rows, dropped)
}

/** Whether two segments are the same file. */
export function isSameSegment(left: LiveSegment, right: LiveSegment): boolean {
  return asBuffer(left.segment.name.id).equals(right.segment.name.id)
}
