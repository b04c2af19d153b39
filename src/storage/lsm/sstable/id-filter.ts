/** A Bloom filter of a table's ids: excludes nearly every id that the table does not have, without a search. */
import { ENTRY_BYTES, IDS } from './format.js'

/** A command searches a table less often than this, and then needs no filter. */
const SEARCHES_BEFORE = 64
/** Fewest bits per row. */
const BITS = 8
const PROBES = 4

/**
 * Each search adds one block of ids, so that none waits for all of them; until all are added, nothing is excluded. Ids
 * are keyed digests, whose bytes are as good as hashes of them.
 */
export class IdFilter {
  /** The number of bits is a power of two, so that a masked hash is the number of a bit. */
  #words = new Int32Array(0)
  #mask = 0
  #nextBlock = -SEARCHES_BEFORE
  #isWhole = false

  /** True if the table of `count` ids in `blocks` does not have this id; false if that is unknown. */
  excludes(id: Buffer, count: number, blocks: number, block: (number: number) => Buffer): boolean {
    if (!this.#isWhole) {
      this.#takeNext(count, blocks, block)
      return false
    }
    const step = stepOf(id, 0)
    let hash = id.readInt32BE(0)
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = hash & this.#mask
      if ((this.#words[bit >>> 5]! & (1 << (bit & 31))) === 0) return true
      hash = (hash + step) | 0
    }
    return false
  }

  #takeNext(count: number, blocks: number, block: (number: number) => Buffer): void {
    const number = this.#nextBlock++
    if (number < 0) return
    if (number === 0) {
      const bits = 2 ** Math.max(5, Math.ceil(Math.log2(count * BITS)))
      this.#words = new Int32Array(bits / 32)
      this.#mask = bits - 1
    }
    try {
      const ids = block(number)
      for (let at = 0; at < ids.length; at += ENTRY_BYTES[IDS]) this.#add(ids, at)
      this.#isWhole = number === blocks - 1
    } catch {
      // The searches that need a damaged block report it; the table has no filter.
      this.#nextBlock = Number.NEGATIVE_INFINITY
    }
  }

  #add(ids: Buffer, at: number): void {
    const step = stepOf(ids, at)
    let hash = ids.readInt32BE(at)
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = hash & this.#mask
      this.#words[bit >>> 5]! |= 1 << (bit & 31)
      hash = (hash + step) | 0
    }
  }
}

/** Odd, so that no two probes hit one bit. */
function stepOf(ids: Buffer, at: number): number {
  return ids.readInt32BE(at + 4) | 1
}
