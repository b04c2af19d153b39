/** The input of an expression, and the conversion of its result to plain JSON or text. */
import { canonicalJson } from '../json/json.js'
import type { Budget } from './budget.js'

/** The attribute that an expression belongs to; it determines the allowed variables and filters. */
export type ExpressionUse = 'id' | 'mask' | 'fingerprint' | 'search_index' | 'detokenize'

/** The input of rendering; `tokens` (token objects by id) only in a detokenization. */
export interface Scope {
  data?: unknown
  metadata?: Readonly<Record<string, string>>
  tokens?: ReadonlyMap<string, { readonly data?: unknown }>
}

/** A copy as JSON, with undefined replaced by null. */
export function asJson(value: unknown, budget: Budget): unknown {
  if (typeof value === 'object' && value !== null) budget.read(value)
  return copyJson(value)
}

function copyJson(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(copyJson)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyJson(member)]))
}

/** The text of a value: empty for null, canonical JSON for objects and arrays. */
export function textOf(value: unknown, budget: Budget): string {
  return budget.write(typeof value === 'string' ? value : value === null ? '' : canonicalJson(value))
}
