/** The options of an LSM tree, and the contexts and documents that its files are read and written with. */
import type { Clock, EngineKeys, RandomSource } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { decodeId } from '../bytes.js'
import type { Files } from '../files.js'
import { type DocumentContext, type Header, type StateDocument, stateDocument } from '../vault-file.js'
import { BlockCache } from './sstable/block-cache.js'
import { OpenFiles } from './sstable/open-files.js'
import type { SSTableContext } from './sstable/reader.js'
import type { WalContext } from './wal.js'

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
  /** Bytes of opened index blocks to cache. */
  cacheBytes: number
}

export interface LsmContexts {
  sstables: SSTableContext
  wals: WalContext
  /** Not read yet. */
  state: StateDocument
}

export function createContexts(options: LsmOptions): LsmContexts {
  const { files, directory, random, keys, cacheBytes } = options
  const context = documentContext(options)
  return {
    sstables: {
      files,
      directory,
      random,
      cipher: keys.sstable,
      cache: new BlockCache(cacheBytes),
      open: new OpenFiles(files),
    },
    wals: { files, directory, vault: context.vault, wal: keys.wal, head: keys.head },
    state: stateDocument(files, directory, context),
  }
}

/** @throws CofferError `vault_damaged` if the header names no vault. */
export function documentContext({ header, keys, random }: LsmOptions): DocumentContext {
  const vault = decodeId(header.vault)
  if (vault !== undefined) return { cipher: keys.state, random, vault }
  throw new CofferError('vault_damaged', 'The header names no vault. Restore a backup.')
}
