/** Finds the scenario and the brands of a card by its number. */
import published from '../../../fixtures/threeds-cards.json' with { type: 'json' }
import { brandNameOf } from '../token/brand-names.js'
import type { BrandName } from './enumerations.js'
import type { ScenarioName } from './scenarios.js'

interface TestCard {
  /** The main brand comes first. Empty: the brand is unknown. */
  brands: readonly BrandName[]
  scenario: ScenarioName
}

/** `others`: what happens to a number that is no published test card (the setting `threeds.other_cards`). */
export function findTestCard(number: string, others: 'unsupported' | 'frictionless'): TestCard {
  const cards = published as readonly (TestCard & { number: string })[]
  const found = cards.find((card) => card.number === number)
  if (found !== undefined) return { brands: found.brands, scenario: found.scenario }
  const brand = brandNameOf(number)
  if (brand === undefined || others === 'unsupported') return { brands: [], scenario: 'X' }
  return { brands: [brand], scenario: 'FY' }
}
