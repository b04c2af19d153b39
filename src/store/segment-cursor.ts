/** Passes over the entries of segments in order, block by block and past the cache, for those who look at all of them. */
import type { Segment } from './segment.js'
import { ENTRY, PER_BLOCK, ROWS, type Section } from './segment-layout.js'
import type { LiveSegment } from './segment-search.js'

/** One segment being passed over, block by block, past the cache. */
export class Cursor {
  readonly map: Uint32Array
  readonly segment: Segment
  readonly #live: LiveSegment
  readonly #section: Section
  readonly #count: number
  #block: Buffer = Buffer.alloc(0)
  #index = -1

  constructor(live: LiveSegment, section: Section, map: Uint32Array) {
    this.segment = live.segment
    this.#live = live
    this.#section = section
    this.#count = live.segment.count(section)
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

  /** Offset of the entry in the block. */
  get at(): number {
    return (this.#index % PER_BLOCK[this.#section]) * ENTRY[this.#section]
  }

  next(): void {
    this.#index++
    if (this.isDone || this.#index % PER_BLOCK[this.#section] !== 0) return
    this.#block = this.segment.openBlock(this.#section, this.#index / PER_BLOCK[this.#section])
  }

  /** For `rows`: goes on to the next row that is alive. */
  skipDead(): void {
    while (!this.isDone && this.#isDead()) this.next()
  }

  #isDead(): boolean {
    const { dead, dropped } = this.#live
    if (dead.length > 0 && this.#live.isDead(this.#index)) return true
    return dropped.size > 0 && dropped.has(this.#block.readUInt16LE(this.at + 58))
  }
}

/** The cursor that comes first; few enough to look at each. */
export function least(
  cursors: readonly Cursor[],
  isBefore: (left: Cursor, right: Cursor) => boolean,
): Cursor | undefined {
  let first: Cursor | undefined
  for (const cursor of cursors) {
    if (cursor.isDone) continue
    if (first === undefined || isBefore(cursor, first)) first = cursor
  }
  return first
}

const bySeq = (left: Cursor, right: Cursor) =>
  left.block.readUIntLE(left.at + 16, 6) < right.block.readUIntLE(right.at + 16, 6)

/** Live rows of all inputs, by `seq`; the cursor is good until the next one is asked for. */
export function* walkRows(
  inputs: readonly LiveSegment[],
  maps: readonly Uint32Array[],
): Generator<Cursor, undefined> {
  const cursors = inputs.map((live, index) => new Cursor(live, ROWS, maps[index]!))
  for (const cursor of cursors) cursor.skipDead()
  for (let cursor = least(cursors, bySeq); cursor !== undefined; cursor = least(cursors, bySeq)) {
    yield cursor
    cursor.next()
    cursor.skipDead()
  }
}
