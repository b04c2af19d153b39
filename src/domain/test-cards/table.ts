/**
 * The published test cards, with a column for each area. This table is loaded only when an area looks up the number
 * of a card.
 */
import published from '../../../fixtures/cards.json' with { type: 'json' }
import type { RefusalCode } from '../network-token/refusals.js'
import type { BrandName } from '../threeds/enumerations.js'
import type { ScenarioName } from '../threeds/scenarios.js'
import type { ResultCode } from '../updater/result-codes.js'

/** A column is absent if the number does nothing special in its area. */
export interface TestCard {
  number: string
  /** The brand in lower case, such as `american express`. Null if the brand is unknown. */
  brand: string | null
  tokens?: { fails_checksum?: boolean; sca_required?: boolean }
  /** `brands`: present if 3-D Secure names other brands than `brand`. The main brand comes first. */
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
