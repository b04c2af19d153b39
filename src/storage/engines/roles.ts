/** How much an engine caches and when it flushes, by how long its process lives. */
import { WAL_HEADER } from '../lsm/frames.js'
import type { Size } from './background.js'

export type RoleName = 'command' | 'server'

interface Role {
  cacheBytes: number
  flushAt: Size
  /** A larger log is flushed when the engine closes: the next command reads every row that is left. */
  closing: Size
  /** Most bytes of the one compaction when the engine closes. */
  closingCompaction: number
}

const MEBIBYTE = 1024 * 1024
/** Any log that is not empty is larger. */
export const ANYTHING: Size = { bytes: WAL_HEADER, rows: 0 }
/** While the engine is open, in either role. */
const FLUSH_AT: Size = { bytes: 16 * MEBIBYTE, rows: 32_768, keys: 393_216 }

/** `cacheBytes` for index blocks, and half as much for records. */
export const ROLES: Readonly<Record<RoleName, Role>> = {
  command: {
    cacheBytes: 4 * MEBIBYTE,
    flushAt: FLUSH_AT,
    closing: { bytes: MEBIBYTE, rows: 48 },
    closingCompaction: 64 * MEBIBYTE,
  },
  server: { cacheBytes: 32 * MEBIBYTE, flushAt: FLUSH_AT, closing: ANYTHING, closingCompaction: 0 },
}
