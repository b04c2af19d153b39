/**
 * Finds the details that a card network has about a card. The details are looked up when the card number is written,
 * so that reads need no look-up.
 */
import type { CardEnrichment } from '../../domain/enrichment/card-enrichment.js'
import type { TokenRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/context.js'

type Holder = Pick<TokenRecord, 'type' | 'data' | 'card_details'>

/** `before`: the replaced record. If the card number is the same, the details are kept. */
export async function enrichCard(
  context: Context,
  written: Holder,
  before?: Holder,
): Promise<CardEnrichment | undefined> {
  const number = numberOf(written)
  if (number === undefined) return undefined
  if (before !== undefined && numberOf(before) === number) return before.card_details
  if (!(await context.setting('enrichments.fake'))) return undefined
  const { findEnrichment } = await import('../../domain/enrichment/published.js')
  return findEnrichment(number)
}

export function isSameCard(a: Holder, b: Holder): boolean {
  return numberOf(a) === numberOf(b)
}

function numberOf({ type, data }: Holder): string | undefined {
  if (type === 'card_number') return data as string
  return type === 'card' ? (data as { number: string }).number : undefined
}
