export const FUNDINGS = ['credit', 'debit', 'prepaid'] as const

/**
 * The details that a card network has about a card. These details are stored with the token or token intent when the
 * card number is written.
 */
export interface CardEnrichment {
  funding: (typeof FUNDINGS)[number]
  issuer_country?: Record<'alpha2' | 'numeric' | 'name', string>
}
