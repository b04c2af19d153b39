/** The published test cards. Import this module dynamically, because most commands do not need the table. */
import published from '../../../fixtures/cards.json' with { type: 'json' }
import type { RefusalCode } from '../network-token/refusals.js'
import type { BrandName } from '../threeds/enumerations.js'
import type { ScenarioName } from '../threeds/scenarios.js'
import type { ResultCode } from '../updater/result-codes.js'

/** The property of an area, such as `updater`, is absent if the number has no special result in the area. */
export interface TestCard {
  number: string
  /** In lower case, such as `american express`. Null if the brand is unknown. */
  brand: string | null
  tokens?: { fails_checksum?: boolean; sca_required?: boolean }
  /** `brands`: present if the brands in 3-D Secure differ from `brand`. The main brand comes first. */
  threeds?: { scenario: ScenarioName; brands?: readonly BrandName[] }
  updater?: {
    result_code: ResultCode
    new_number?: string
    new_expiration_month?: number
    new_expiration_year?: number
  }
  network_tokens?: { result: 'success' | RefusalCode }
}

export const TEST_CARDS = published.cards as readonly TestCard[]

export function findPublished(number: string): TestCard | undefined {
  return TEST_CARDS.find((card) => card.number === number)
}
