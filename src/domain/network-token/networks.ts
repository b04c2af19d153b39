/** Import this module dynamically, because it loads the table of test cards. */
import { findPublished } from '../test-cards/table.js'
import { brandOf } from '../token/card-number.js'
import type { RefusalCode } from './refusals.js'

const NETWORKS: readonly (string | undefined)[] = ['visa', 'mastercard', 'discover', 'american-express']
const NUMBER = /^\d{13,16}$/

/** Returns undefined if the network gives out a network token. */
export function askNetwork(number: string): RefusalCode | undefined {
  if (!NUMBER.test(number)) return 'CARD_NUMBER_LENGTH_INVALID'
  if (!NETWORKS.includes(brandOf(number))) return 'CARD_NOT_ELIGIBLE'
  const result = findPublished(number)?.network_tokens?.result ?? 'success'
  return result === 'success' ? undefined : result
}
