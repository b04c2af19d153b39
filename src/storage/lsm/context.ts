/** The options of an LSM tree, with the open files and the caches of its tables. */
import { BoundedMap } from '../../bounded-map.js'
import type { Clock, EngineKeys, Header, RandomSource } from '../../crypto/ports.js'
import { type Files, openPart } from '../files.js'

export interface LsmOptions {
  files: Files
  directory: string
  /** Requires: the header's MAC was verified. */
  header: Header
  keys: EngineKeys
  random: RandomSource
  clock: Clock
  notice(text: string): void
}

export interface Size {
  bytes: number
  rows: number
  keys?: number
}

/** A block has up to 8 KiB, so the cache of blocks has up to 32 MiB. */
const MAX_BLOCKS = 4096
const MAX_RECORDS = 32_768

export interface LsmContext extends LsmOptions {
  readonly open: OpenFiles
  readonly blocks: BoundedMap<number, Buffer>
  /**
   * A cache of small sealed records. This cache is separate from the cache of blocks, so that reads of many records do
   * not evict blocks of indexes.
   */
  readonly records: BoundedMap<number, Buffer>
  /** The number that the next opened table gets. The keys of the caches contain the numbers of tables. */
  tables: number
}

export function createContext(options: LsmOptions): LsmContext {
  const caches = {
    blocks: new BoundedMap<number, Buffer>(MAX_BLOCKS),
    records: new BoundedMap<number, Buffer>(MAX_RECORDS),
  }
  return { ...options, ...caches, open: new OpenFiles(options.files), tables: 0 }
}

/**
 * At most this many tables are open, so that a vault with many tables works with a low limit of descriptors
 * (`ulimit -n`).
 */
const MAX_OPEN = 40

class OpenFiles {
  readonly #files: Files
  readonly #open = new Map<string, number>()

  constructor(files: Files) {
    this.#files = files
  }

  /**
   * Returns undefined if the file does not exist. Requires: the caller uses the descriptor before the next call of
   * `get`, because that call may close the descriptor.
   */
  get(path: string): number | undefined {
    const file = this.#open.get(path) ?? openPart(this.#files, path, 'write')
    if (file === undefined) return undefined
    this.#open.delete(path)
    this.#open.set(path, file)
    if (this.#open.size > MAX_OPEN) this.close(this.#open.keys().next().value!)
    return file
  }

  close(path: string): void {
    const file = this.#open.get(path)
    if (this.#open.delete(path)) this.#files.close(file!)
  }
}
