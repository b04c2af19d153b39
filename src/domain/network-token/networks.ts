/**
 * The answers of networks about a card. This module is loaded only when it is used, because it loads the table of
 * test cards.
 */
import { findPublished } from '../test-cards/table.js'
import { brandOf } from '../token/card-number.js'
import type { RefusalCode } from './refusals.js'

/** The networks that give out network tokens. */
const NETWORKS: readonly (string | undefined)[] = ['visa', 'mastercard', 'discover', 'american-express']
/** The lengths of numbers that the service accepts. */
const NUMBER = /^\d{13,16}$/

/**
 * Returns the reason why the network refuses the card. Returns undefined if the network gives out a network token.
 * The answer depends only on the card number.
 */
export function askNetwork(number: string): RefusalCode | undefined {
  if (!NUMBER.test(number)) return 'CARD_NUMBER_LENGTH_INVALID'
  if (!NETWORKS.includes(brandOf(number))) return 'CARD_NOT_ELIGIBLE'
  const result = findPublished(number)?.network_tokens?.result ?? 'success'
  return result === 'success' ? undefined : result
}
