/** The options of an LSM tree, what its files are read and written with, and the caches of its tables. */
import { BoundedMap } from '../../bounded-map.js'
import type { Clock, EngineKeys, RandomSource } from '../../crypto/ports.js'
import type { Files } from '../files.js'
import type { Header } from '../vault-file.js'

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

export type LsmContexts = ReturnType<typeof createContexts>
export type SSTableContext = LsmContexts['sstables']

export function createContexts({ files, directory, random, keys, header }: LsmOptions) {
  const shared = { files, directory, random }
  return {
    sstables: { ...shared, cipher: keys.sstable, cache: new BlockCache(), open: new OpenFiles(files) },
    wals: { ...shared, wal: keys.wal, head: keys.head },
    state: { ...shared, cipher: keys.state, vault: Buffer.from(header.vault, 'hex') },
  }
}

/** Blocks of up to 8 KiB. A command opens fewer. */
const MOST_BLOCKS = 4096
const MOST_RECORDS = 32_768

/** Opened index blocks, and small sealed records apart from them, so that reading many records evicts no index. */
export class BlockCache {
  readonly blocks: BoundedMap<number, Buffer>
  readonly records = new BoundedMap<number, Buffer>(MOST_RECORDS)
  /** How many tables use the cache: the number of the next one, for its keys. */
  tables = 0

  constructor(blocks = MOST_BLOCKS) {
    this.blocks = new BoundedMap(blocks)
  }
}

/** A vault of any number of tables opens and merges within a small limit of descriptors (`ulimit -n`). */
const MOST_OPEN = 40

/** Descriptors of tables by path: the one used longest ago is closed when there are too many. */
export class OpenFiles {
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
    if (this.#open.size > MOST_OPEN) this.close(this.#open.keys().next().value!)
    return file
  }

  close(path: string): void {
    const file = this.#open.get(path)
    if (this.#open.delete(path)) this.#files.close(file!)
  }
}
