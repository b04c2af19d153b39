/** The published test cards of the account updater. Loaded only when it is used. */
import published from '../../../fixtures/updater-cards.json' with { type: 'json' }
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
  const { result_code = 'NO_UPDATE', ...change } = published.find((card) => card.number === number) ?? {}
  const { new_number, new_expiration_month, new_expiration_year } = change as Partial<CardChange>
  return {
    code: result_code as ResultCode,
    ...(new_number !== undefined && { new_number }),
    ...(new_expiration_month !== undefined && { new_expiration_month }),
    ...(new_expiration_year !== undefined && { new_expiration_year }),
  }
}
