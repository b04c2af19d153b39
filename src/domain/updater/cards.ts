/** Import this module dynamically, because it loads the table of test cards. */
import { findPublished } from '../test-cards/table.js'
import { brandOf } from '../token/card-number.js'
import type { ResultCode } from './result-codes.js'

const REAL_TIME = ['visa', 'mastercard']
const BATCH = [...REAL_TIME, 'discover', 'american-express']

export interface CardChange {
  code: ResultCode
  new_number?: string
  new_expiration_month?: number
  new_expiration_year?: number
}

export function askNetwork(number: string, { isBatch }: { isBatch: boolean }): CardChange {
  const brand = brandOf(number)
  if (brand === undefined || !(isBatch ? BATCH : REAL_TIME).includes(brand))
    return { code: 'WRN_UNSUPPORTED_NETWORK' }
  const { result_code, ...change } = findPublished(number)?.updater ?? { result_code: 'NO_UPDATE' }
  return { code: result_code, ...change }
}
