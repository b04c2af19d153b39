/** The answers of networks about a card. Loaded only when it is used, because it contains the table of test cards. */
import { findPublished } from '../test-cards/table.js'
import { brandOf } from '../token/card-number.js'
import type { RefusalCode } from './refusals.js'

/** The networks that give out network tokens. */
const NETWORKS: readonly (string | undefined)[] = ['visa', 'mastercard', 'discover', 'american-express']
/** The lengths of numbers that the service accepts. */
const NUMBER = /^\d{13,16}$/

/** Why the network refuses the card. Undefined: it gives out a network token. Only the number decides. */
export function askNetwork(number: string): RefusalCode | undefined {
  if (!NUMBER.test(number)) return 'CARD_NUMBER_LENGTH_INVALID'
  if (!NETWORKS.includes(brandOf(number))) return 'CARD_NOT_ELIGIBLE'
  const result = findPublished(number)?.network_tokens?.result ?? 'success'
  return result === 'success' ? undefined : result
}
