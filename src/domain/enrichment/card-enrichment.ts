export const FUNDINGS = ['credit', 'debit', 'prepaid'] as const

/** Details of a card, stored when the card number is written. */
export interface CardEnrichment {
  funding: (typeof FUNDINGS)[number]
  issuer_country?: Record<'alpha2' | 'numeric' | 'name', string>
}
