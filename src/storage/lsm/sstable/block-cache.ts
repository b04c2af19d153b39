/** A bounded cache of index blocks and small records of sorted tables, which never change. */
import { BLOCK_BYTES, BLOCK_SEAL, type Section } from './format.js'

/**
 * Bytes by number, up to `limit`, in two generations: once the younger one has filled its half, the older one is
 * dropped. Cheaper than an exact order of use, and as good here.
 */
class Generations {
  readonly #half: number
  #young = new Map<number, Buffer>()
  #old = new Map<number, Buffer>()
  #bytes = 0

  constructor(limit: number) {
    this.#half = limit / 2
  }

  get(key: number, open: () => Buffer): Buffer {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const bytes = this.#old.get(key) ?? open()
    if (this.#bytes > this.#half) {
      this.#old = this.#young
      this.#young = new Map()
      this.#bytes = 0
    }
    this.#young.set(key, bytes)
    this.#bytes += bytes.length
    return bytes
  }
}

/** Opened index blocks of all tables, up to `limit` bytes, and small records, up to half of it. */
export class BlockCache {
  readonly #blocks: Generations
  readonly #records: Generations
  #sstables = 0
  /** Takes a sealed block that is opened at once: a buffer for each would be garbage of its size. */
  readonly sealed = Buffer.allocUnsafeSlow(BLOCK_BYTES + BLOCK_SEAL)
  /** Blocks opened since the cache was made, for tests of cold reads. */
  opened = 0

  constructor(limit: number) {
    this.#blocks = new Generations(limit)
    // Apart, so that reading many records does not evict the index that leads to them.
    this.#records = new Generations(limit / 2)
  }

  /** A number that tells the entries of one table from those of every other. */
  register(): number {
    return this.#sstables++
  }

  block(sstable: number, section: Section, number: number, open: () => Buffer): Buffer {
    // 3 bits of section and 24 of number (2^32 / 2048 entries); 26 remain for the table.
    return this.#blocks.get((sstable * 8 + section) * 2 ** 24 + number, open)
  }

  /** A sealed record. Contract: a table has fewer than 2^24 rows. */
  record(sstable: number, row: number, read: () => Buffer): Buffer {
    return this.#records.get(sstable * 2 ** 24 + row, read)
  }
}
