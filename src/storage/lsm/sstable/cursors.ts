import { asBuffer } from '../../bytes.js'
import type { Row } from '../../engine.js'
import { bareRow } from '../../rows/row.js'
import { blockOf, IDS, type Index, KEYS, offsetOf, ROWS, RowEntry } from './format.js'
import type { LiveSSTable } from './live-sstable.js'
import type { SSTable } from './reader.js'

/**
 * A position in a list of index entries. `high` and `low`: the 8 bytes of the entry, as two words. `row`: the row's
 * number in the new table.
 */
export interface Entries {
  readonly isDone: boolean
  readonly high: number
  readonly low: number
  readonly row: number
  next(): void
}

export function least(lists: readonly Entries[]): Entries | undefined {
  let first: Entries | undefined
  for (const list of lists) if (!list.isDone && (first === undefined || isBefore(list, first))) first = list
  return first
}

function isBefore(left: Entries, right: Entries): boolean {
  if (left.high !== right.high) return left.high < right.high
  return left.low === right.low ? left.row < right.row : left.low < right.low
}

/** Stands for a row that is not in the new table, in a map from old to new row numbers. */
export const GONE = 0xffffffff

/** For fewer entries, a comparison sort is faster than a radix sort. */
const FEW = 2_000

/** Stores entries in typed arrays, so that an entry needs no object and causes no garbage. */
class SortedEntries implements Entries {
  high = 0
  low = 0
  row = GONE
  readonly #high: Uint32Array
  readonly #low: Uint32Array
  readonly #rows: Uint32Array
  #count = 0
  #order = new Uint32Array(0)
  #at = -1

  constructor(capacity: number) {
    this.#high = new Uint32Array(capacity)
    this.#low = new Uint32Array(capacity)
    this.#rows = new Uint32Array(capacity)
  }

  add(high: number, low: number, row: number): void {
    const index = this.#count++
    this.#high[index] = high
    this.#low[index] = low
    this.#rows[index] = row
  }

  addBytes(bytes: Buffer, at: number, row: number): void {
    this.add(bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4), row)
  }

  /**
   * A stable sort. Sorts many entries by radix (16 bits at a time, from the lowest), because this takes linear time.
   */
  sort(): this {
    const [high, low] = [this.#high, this.#low]
    this.#order = new Uint32Array(this.#count).map((_, index) => index)
    const isFew = this.#count < FEW
    if (isFew) this.#order.sort((a, b) => high[a]! - high[b]! || low[a]! - low[b]!)
    for (const shift of isFew ? [] : [0, 16, 32, 48]) {
      const words = shift < 32 ? low : high
      const starts = new Uint32Array(65_537)
      for (const index of this.#order) starts[((words[index]! >>> shift) & 0xffff) + 1]!++
      for (let digit = 0; digit < 65_536; digit++) starts[digit + 1]! += starts[digit]!
      const sorted = new Uint32Array(this.#count)
      for (const index of this.#order) sorted[starts[(words[index]! >>> shift) & 0xffff]!++] = index
      this.#order = sorted
    }
    this.next()
    return this
  }

  get isDone(): boolean {
    return this.#at >= this.#count
  }

  /** Repeated entries are skipped, because a row may have the same key twice. */
  next(): void {
    const { high, low, row } = this
    do {
      this.#at++
      if (this.isDone) return
      const index = this.#order[this.#at]!
      this.high = this.#high[index]!
      this.low = this.#low[index]!
      this.row = this.#rows[index]!
    } while (this.row === row && this.low === low && this.high === high)
  }
}

export function sortEntries(index: Index, rows: readonly Row[]): Entries {
  const capacity = index === KEYS ? rows.reduce((sum, { keys }) => sum + keys.length / 8, 0) : rows.length
  const sorted = new SortedEntries(capacity)
  rows.forEach(({ id, keys, expires }, row) => {
    if (index === IDS) sorted.addBytes(asBuffer(id), 0, row)
    else if (index === KEYS) {
      const bytes = asBuffer(keys)
      for (let at = 0; at < bytes.length; at += 8) sorted.addBytes(bytes, at, row)
    } else if (expires > 0) sorted.add(Math.floor(expires / 2 ** 32), expires >>> 0, row)
  })
  return sorted.sort()
}

/**
 * Reads the entries of an index of a table, block by block and without the cache. `map`: the new numbers of the rows.
 */
export class TableEntries implements Entries {
  high = 0
  low = 0
  row = GONE
  readonly #sstable: SSTable
  readonly #index: Index
  readonly #map: Uint32Array
  readonly #count: number
  #block: Buffer = Buffer.alloc(0)
  #at = -1

  constructor(sstable: SSTable, index: Index, map: Uint32Array) {
    this.#sstable = sstable
    this.#index = index
    this.#map = map
    this.#count = sstable.count(index)
    this.next()
  }

  get isDone(): boolean {
    return this.#at >= this.#count
  }

  next(): void {
    for (this.#at++; !this.isDone; this.#at++) {
      const offset = offsetOf(this.#index, this.#at)
      if (offset === 0) this.#block = this.#sstable.openBlock(this.#index, blockOf(this.#index, this.#at))
      this.row = this.#map[this.#block.readUInt32LE(offset + 8)]!
      if (this.row === GONE) continue
      this.high = this.#block.readUInt32BE(offset)
      this.low = this.#block.readUInt32BE(offset + 4)
      return
    }
  }
}

/** Records are read in pieces of this size. A larger record is a piece of its own. */
const PIECE = 256 * 1024

export class RowCursor {
  /** The `seq` of the current row. Infinity after the last row. */
  seq = 0
  number = -1
  readonly input: number
  readonly #live: LiveSSTable
  #block: Buffer = Buffer.alloc(0)
  #entry = new RowEntry(this.#block, 0)
  #piece: Buffer = Buffer.alloc(0)
  #pieceAt = 0

  constructor(live: LiveSSTable, input: number) {
    this.#live = live
    this.input = input
    this.next()
  }

  next(): void {
    const { sstable, dropped } = this.#live
    do {
      this.number++
      if (this.number >= sstable.rows) {
        this.seq = Number.POSITIVE_INFINITY
        return
      }
      const at = offsetOf(ROWS, this.number)
      if (at === 0) this.#block = sstable.openBlock(ROWS, blockOf(ROWS, this.number))
      this.#entry = new RowEntry(this.#block, at)
    } while (this.#live.isDead(this.number) || dropped.has(this.#entry.tenant))
    this.seq = this.#entry.seq
  }

  get head(): RowEntry {
    return this.#entry
  }

  get sealed(): Uint8Array {
    const { sstable } = this.#live
    const { offset, length } = this.#entry
    if (offset < this.#pieceAt || offset + length > this.#pieceAt + this.#piece.length) {
      const left = sstable.footer.sections[ROWS]!.start - offset
      this.#piece = sstable.readExactly(offset, Math.min(Math.max(length, PIECE), left))
      this.#pieceAt = offset
    }
    return this.#piece.subarray(offset - this.#pieceAt, offset - this.#pieceAt + length)
  }
}

/** Yields a cursor at each live row of the tables, ascending by `seq`. A cursor is valid until the next step. */
export function* walkRows(tables: readonly LiveSSTable[]): Generator<RowCursor, undefined> {
  const cursors = tables.map((live, input) => new RowCursor(live, input))
  for (;;) {
    let first: RowCursor | undefined
    for (const cursor of cursors) if (cursor.seq < (first?.seq ?? Number.POSITIVE_INFINITY)) first = cursor
    if (first === undefined) return
    yield first
    first.next()
  }
}

/** The live rows of the tables, ascending by `seq`. `count` includes dead rows. */
export function liveRowsOf(tables: readonly LiveSSTable[]) {
  const count = tables.reduce((sum, { sstable }) => sum + sstable.rows, 0)
  async function* rows(): AsyncGenerator<Row> {
    for (const { head, sealed } of walkRows(tables)) yield bareRow(head, sealed)
  }
  return { count, rows }
}
