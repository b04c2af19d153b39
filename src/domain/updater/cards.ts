/** What networks answer about a card. Loaded only when it is used, because it contains the table of test cards. */
import { findPublished } from '../test-cards/table.js'
import { brandOf } from '../token/card-number.js'
import type { ResultCode } from './result-codes.js'

/** Real time asks these networks only. A batch asks the others too. */
const REAL_TIME = ['visa', 'mastercard']
const BATCH = [...REAL_TIME, 'discover', 'american-express']

export interface CardChange {
  code: ResultCode
  new_number?: string
  new_expiration_month?: number
  new_expiration_year?: number
}

/** What the network of the card answers. The number decides, and not the date. */
export function askNetwork(number: string, { isBatch }: { isBatch: boolean }): CardChange {
  const brand = brandOf(number)
  if (brand === undefined || !(isBatch ? BATCH : REAL_TIME).includes(brand))
    return { code: 'WRN_UNSUPPORTED_NETWORK' }
  const { result_code, ...change } = findPublished(number)?.updater ?? { result_code: 'NO_UPDATE' }
  return { code: result_code, ...change }
}
