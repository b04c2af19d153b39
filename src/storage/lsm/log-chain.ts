/**
 * The hash chain of a tenant's log: each row's chain value is a digest of the one before and of the row, so that no row
 * can be changed, removed, inserted or moved unnoticed.
 */

import type { Mac } from '../../crypto/ports.js'
import { isEqual } from '../bytes.js'
import type { Row } from '../engine.js'
import type { LogCheck } from '../store.js'
import type { StoredRow } from './sstable/row-change.js'

/** The end of a tenant's chain. */
export interface LogChain {
  /** Of the last row. */
  value: Uint8Array
  count: number
}

const VALUE_BYTES = 16

export const EMPTY_CHAIN: LogChain = { value: new Uint8Array(VALUE_BYTES), count: 0 }

/** The chain value of a log row: keyed BLAKE2b, 16 bytes, over the tenant's previous value and the sealed row. */
export function chainNext(mac: Mac, previous: Uint8Array, sealed: Uint8Array): Uint8Array {
  const message = Buffer.allocUnsafe(previous.length + sealed.length)
  message.set(previous)
  message.set(sealed, previous.length)
  return mac(message, VALUE_BYTES)
}

/** The row with the chain value that it gets as its tenant's next; `chains` move on. */
export function chainRow(row: StoredRow, chains: Map<number, LogChain>, mac: Mac): StoredRow {
  const last = chains.get(row.tenant) ?? EMPTY_CHAIN
  const value = chainNext(mac, last.value, row.sealed)
  chains.set(row.tenant, { value, count: last.count + 1 })
  return { ...row, chain: value }
}

/**
 * Checks `rows`, all of one tenant's, oldest first. `end` is the end of the chain as it is stored apart from the rows:
 * without it nobody could tell that the last rows are missing.
 */
export function checkChain(
  rows: Iterable<StoredRow>,
  mac: Mac,
  end: LogChain = EMPTY_CHAIN,
  isAuthentic: (row: Row) => boolean,
): LogCheck {
  let { value: previous, count } = EMPTY_CHAIN
  let brokenAt: number | undefined
  for (const row of rows) {
    count++
    const chain = row.chain ?? new Uint8Array(0)
    const isNext = isEqual(chain, chainNext(mac, previous, row.sealed)) && isAuthentic(row)
    if (!isNext) brokenAt ??= count
    previous = chain
  }
  if (count !== end.count || !isEqual(previous, end.value)) brokenAt ??= count + 1
  return brokenAt === undefined ? { count } : { count, brokenAt }
}
