/** The options of an LSM tree, and what its files are read and written with: descriptors and caches of its tables. */
import { BoundedMap } from '../../bounded-map.js'
import type { Clock, EngineKeys, Header, RandomSource } from '../../crypto/ports.js'
import type { Files } from '../files.js'

export interface LsmOptions {
  files: Files
  directory: string
  /** Contract: its mac was verified. */
  header: Header
  keys: EngineKeys
  random: RandomSource
  clock: Clock
  /** Takes messages for a person. */
  notice(text: string): void
}

export interface Size {
  bytes: number
  rows: number
  /** Default: any number. */
  keys?: number
}

/** Blocks of up to 8 KiB. A command opens fewer. */
const MAX_BLOCKS = 4096
const MAX_RECORDS = 32_768

export interface LsmContext extends LsmOptions {
  readonly open: OpenFiles
  /** Opened blocks of tables. */
  readonly blocks: BoundedMap<number, Buffer>
  /** Small sealed records, apart from the blocks, so that reading many records evicts no index. */
  readonly records: BoundedMap<number, Buffer>
  /** How many tables use the caches: the number of the next one, for its keys. */
  tables: number
}

export function createContext(options: LsmOptions): LsmContext {
  const caches = {
    blocks: new BoundedMap<number, Buffer>(MAX_BLOCKS),
    records: new BoundedMap<number, Buffer>(MAX_RECORDS),
  }
  return { ...options, ...caches, open: new OpenFiles(options.files), tables: 0 }
}

/** A vault of any number of tables opens and merges within a small limit of descriptors (`ulimit -n`). */
const MAX_OPEN = 40

/** Descriptors of tables by path: the one used longest ago is closed when there are too many. */
class OpenFiles {
  readonly #files: Files
  readonly #open = new Map<string, number>()

  constructor(files: Files) {
    this.#files = files
  }

  /** Undefined when there is no such file. Contract: the descriptor is used before another one is asked for. */
  get(path: string): number | undefined {
    const file = this.#open.get(path) ?? this.#files.open(path, 'write')
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
