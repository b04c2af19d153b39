import { findPublished } from '../test-cards/table.js'
import { brandNameOf } from '../token/brand-names.js'
import type { BrandName } from './enumerations.js'
import type { ScenarioName } from './scenarios.js'

interface CardScenario {
  /** The main brand comes first. Empty if the brand is unknown or the card is not supported. */
  brands: readonly BrandName[]
  scenario: ScenarioName
}

/** `others`: the setting `threeds.other_cards`. */
export function findTestCard(number: string, others: 'unsupported' | 'frictionless'): CardScenario {
  const brand = brandNameOf(number)
  const brands = brand === undefined ? [] : [brand]
  const published = findPublished(number)?.threeds
  if (published !== undefined) return { brands, ...published }
  if (brand === undefined || others === 'unsupported') return { brands: [], scenario: 'X' }
  return { brands, scenario: 'FY' }
}
