/** How much an engine keeps in memory, and when it folds, by how long its process lives. */

import type { Size } from './background.js'
import { WAL_HEADER } from './frames.js'

export type RoleName = 'command' | 'server'

interface Role {
  cacheBytes: number
  flushAt: Size
  /** The journal is folded as well when the engine closes with more than this. */
  closing: Size
  /** One merge of at most so many bytes is made when the engine closes. */
  closingCompaction: number
}

const MEBIBYTE = 1024 * 1024
/** A journal with anything in it is larger. */
export const ANYTHING: Size = { bytes: WAL_HEADER, rows: 0 }
/** While works go on, whoever owns the vault. */
const FLUSH_AT: Size = { bytes: 8 * MEBIBYTE, rows: 16_384 }

/** `cacheBytes` for index blocks, and half as much for records. */
export const ROLES: Readonly<Record<RoleName, Role>> = {
  command: {
    cacheBytes: 4 * MEBIBYTE,
    flushAt: FLUSH_AT,
    closing: { bytes: MEBIBYTE, rows: 2048 },
    closingCompaction: 64 * MEBIBYTE,
  },
  server: {
    cacheBytes: 32 * MEBIBYTE,
    flushAt: FLUSH_AT,
    closing: ANYTHING,
    closingCompaction: 0,
  },
}
