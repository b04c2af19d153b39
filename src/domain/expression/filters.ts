/** All filters: those of standard Liquid, and our own. */
import type { FilterRule } from './filter-rule.js'
import { OWN_FILTERS } from './own-filters.js'
import { STANDARD_FILTERS } from './standard-filters.js'

export const FILTERS: ReadonlyMap<string, FilterRule> = new Map([...STANDARD_FILTERS, ...OWN_FILTERS])
