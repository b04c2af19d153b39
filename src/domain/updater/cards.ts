/**
 * The answers of networks about a card. This module is loaded only when it is used, because it loads the table of
 * test cards.
 */
import { findPublished } from '../test-cards/table.js'
import { brandOf } from '../token/card-number.js'
import type { ResultCode } from './result-codes.js'

/** A request in real time asks only these networks. A batch job also asks all other networks. */
const REAL_TIME = ['visa', 'mastercard']
const BATCH = [...REAL_TIME, 'discover', 'american-express']

export interface CardChange {
  code: ResultCode
  new_number?: string
  new_expiration_month?: number
  new_expiration_year?: number
}

/**
 * What the network of the card answers. The answer depends on the card number, and not on the expiration
 * date.
 */
export function askNetwork(number: string, { isBatch }: { isBatch: boolean }): CardChange {
  const brand = brandOf(number)
  if (brand === undefined || !(isBatch ? BATCH : REAL_TIME).includes(brand))
    return { code: 'WRN_UNSUPPORTED_NETWORK' }
  const { result_code, ...change } = findPublished(number)?.updater ?? { result_code: 'NO_UPDATE' }
  return { code: result_code, ...change }
}
