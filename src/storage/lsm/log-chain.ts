/**
 * The proof of a log: each row's chain value is made of the one before and of the row, so that nothing in between can
 * be changed, taken out, put in or moved. It knows neither files nor what a row holds.
 */

import type { Mac } from '../../crypto/ports.js'
import { isEqual } from '../bytes.js'
import type { Row } from '../engine.js'
import type { LogCheck } from '../store.js'
import type { StoredRow } from './row-change.js'
import { type Chain, chainNext, chainStart } from './transaction.js'

/** The row with the chain value that it gets as its tenant's next; `chains` move on. */
export function rechain(row: StoredRow, chains: Map<number, Chain>, mac: Mac): StoredRow {
  const last = chains.get(row.tenant) ?? { value: chainStart(), count: 0 }
  const value = chainNext(mac, last.value, row.sealed)
  chains.set(row.tenant, { value, count: last.count + 1 })
  return { ...row, chain: value }
}

/**
 * Checks `rows`, all of one tenant's, oldest first. `end` is where the chain stood when the last one was written, which
 * is kept apart from the rows: without it nobody could tell that the last ones are missing.
 */
export function checkChain(
  rows: Iterable<StoredRow>,
  mac: Mac,
  end: Chain | undefined,
  isAuthentic: (row: Row) => boolean,
): LogCheck {
  let previous = chainStart()
  let count = 0
  let brokenAt: number | undefined
  for (const row of rows) {
    count++
    const chain = row.chain ?? new Uint8Array(0)
    const isNext = isEqual(chain, chainNext(mac, previous, row.sealed)) && isAuthentic(row)
    if (!isNext) brokenAt ??= count
    previous = chain
  }
  const isAtEnd = count === (end?.count ?? 0) && isEqual(previous, end?.value ?? chainStart())
  if (!isAtEnd) brokenAt ??= count + 1
  return brokenAt === undefined ? { count } : { count, brokenAt }
}
