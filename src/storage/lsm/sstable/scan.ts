/** Scans all entries of sorted tables in order, block by block and without the cache. */
import type { Row } from '../../engine.js'
import { blockOf, DICT, EXPIRY, IDS, offsetOf, ROWS, type Section } from './format.js'
import type { LiveSSTable } from './live-sstable.js'
import type { SSTable } from './reader.js'

const NO_MAP = new Uint32Array(0)

/** A position in one section of one table. */
export class Cursor {
  /** New row numbers, in a compaction. */
  readonly map: Uint32Array
  readonly sstable: SSTable
  /** The order of the section, as two numbers: in `ids` and `dict` the words of the first 8 bytes. */
  high = 0
  low = 0
  /** Offset of the entry in the block. */
  at = 0
  readonly #live: LiveSSTable
  readonly #section: Section
  readonly #count: number
  #block: Buffer = Buffer.alloc(0)
  #index = -1

  constructor(live: LiveSSTable, section: Section, map: Uint32Array = NO_MAP) {
    this.sstable = live.sstable
    this.#live = live
    this.#section = section
    this.#count = live.sstable.count(section)
    this.map = map
    this.next()
  }

  get isDone(): boolean {
    return this.#index >= this.#count
  }

  get block(): Buffer {
    return this.#block
  }

  /** Number of the entry. */
  get index(): number {
    return this.#index
  }

  next(): void {
    this.#index++
    if (this.isDone) return
    this.at = offsetOf(this.#section, this.#index)
    if (this.at === 0)
      this.#block = this.sstable.openBlock(this.#section, blockOf(this.#section, this.#index))
    this.#readOrder()
  }

  #readOrder(): void {
    if (this.#section === IDS || this.#section === DICT) {
      this.high = this.#block.readUInt32BE(this.at)
      this.low = this.#block.readUInt32BE(this.at + 4)
    } else if (this.#section === ROWS) this.high = this.#block.readUIntLE(this.at + 16, 6)
    else if (this.#section === EXPIRY) this.high = this.#block.readUIntLE(this.at, 6)
  }

  isBefore(other: Cursor): boolean {
    return this.high < other.high || (this.high === other.high && this.low < other.low)
  }

  /** Whether both entries sort alike. */
  isLevel(other: Cursor): boolean {
    return this.high === other.high && this.low === other.low
  }

  /** For `rows`: goes on to the next live row. */
  skipDead(): void {
    while (!this.isDone && this.#isDead()) this.next()
  }

  #isDead(): boolean {
    const { dead, dropped } = this.#live
    if (dead.length > 0 && this.#live.isDead(this.#index)) return true
    return dropped.size > 0 && dropped.has(this.#block.readUInt16LE(this.at + 58))
  }
}

/** The cursor whose entry sorts first. */
export function least(cursors: readonly Cursor[]): Cursor | undefined {
  let first: Cursor | undefined
  for (const cursor of cursors) {
    if (cursor.isDone) continue
    if (first === undefined || cursor.isBefore(first)) first = cursor
  }
  return first
}

/** A cursor at each live row of the tables, by `seq`; it is valid until the next step. */
export function* walkRows(
  inputs: readonly LiveSSTable[],
  maps: readonly Uint32Array[] = [],
): Generator<Cursor, undefined> {
  const cursors = inputs.map((live, index) => new Cursor(live, ROWS, maps[index]))
  for (const cursor of cursors) cursor.skipDead()
  for (let cursor = least(cursors); cursor !== undefined; cursor = least(cursors)) {
    yield cursor
    cursor.next()
    cursor.skipDead()
  }
}

/** Live rows of the tables, by `seq`. `count` includes dead rows. */
export function liveRowsOf(sstables: readonly LiveSSTable[]) {
  const count = sstables.reduce((sum, { sstable }) => sum + sstable.meta.rows, 0)
  async function* rows(): AsyncGenerator<Row> {
    for (const cursor of walkRows(sstables)) yield cursor.sstable.row(cursor.index)
  }
  return { count, rows }
}
