/** Describes what each area does with a test card. Returns empty text if the number is not special in the area. */
import { findEnrichment } from '../enrichment/published.js'
import { describeScenario } from '../threeds/scenarios.js'
import { BRAND_NAMES } from '../token/brand-names.js'
import { brandOf } from '../token/card-number.js'
import type { TestCard } from './table.js'

export function describeBrand({ brand }: TestCard): string {
  if (brand === null) return 'unknown'
  const names: Readonly<Record<string, string>> = BRAND_NAMES
  const words = brand.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
  return names[brand.replaceAll(' ', '-')] ?? words
}

/**
 * Returns a text such as `credit, Bermuda`. Tokens have a funding and a country only if the setting `enrichments.fake`
 * is true.
 */
export function describeInTokens(card: TestCard): string {
  const { number, brand, tokens = {} } = card
  const found = brandOf(number)
  const details = findEnrichment(number)
  const facts = [
    tokens.fails_checksum && 'fails the checksum',
    tokens.sca_required && 'sca_required',
    brand !== null && found?.replaceAll('-', ' ') !== brand && (found ? `brand ${found}` : 'no brand'),
    details?.funding,
    details?.issuer_country?.name,
  ]
  return facts.filter((fact) => typeof fact === 'string').join(', ')
}

export function describeInThreeds({ threeds }: TestCard): string {
  if (threeds === undefined) return ''
  const { scenario, brands } = threeds
  return brands === undefined ? scenario : `${scenario} as ${brands.join(', ')}`
}

/** Returns a text such as `CYM: a mandated challenge, then successful`. */
export function explainInThreeds(card: TestCard): string {
  if (card.threeds === undefined) return ''
  return `${describeInThreeds(card)}: ${describeScenario(card.threeds.scenario)}`
}

export function describeInUpdater({ updater }: TestCard): string {
  if (updater === undefined) return ''
  const { result_code, new_number, new_expiration_month: month, new_expiration_year: year } = updater
  const date = month !== undefined && year !== undefined && `${month}/${year}`
  return [result_code, new_number, date].filter((part) => typeof part === 'string').join(' ')
}

export function describeInNetworkTokens({ network_tokens }: TestCard): string {
  return network_tokens?.result ?? ''
}
