export const FUNDINGS = ['credit', 'debit', 'prepaid'] as const

/** What a network tells about a card. It is stored with the token or token intent when its number is written. */
export interface CardEnrichment {
  funding: (typeof FUNDINGS)[number]
  issuer_country?: Record<'alpha2' | 'numeric' | 'name', string>
}
