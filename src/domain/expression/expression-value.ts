/**
 * What goes into an expression, and what it yields: as plain JSON, or as a part of a text. It does not know how one
 * becomes the other.
 */

import { canonicalJson } from '../json/json.js'
import { type Budget, CONTAINER_SIZE, sizeOf } from './budget.js'

/** What an expression is rendered over; `tokens` (data by id) only in a detokenization. */
export interface Scope {
  data?: unknown
  metadata?: Readonly<Record<string, string>>
  tokens?: ReadonlyMap<string, unknown>
}

/** A checked `{{ … }}`. */
export interface Output {
  /** @throws CofferError `validation` naming the column, when a filter cannot work on its value. */
  evaluate(scope: Scope, budget: Budget): unknown
}

/** A copy that is JSON: what a filter left undefined is null. */
export function asJson(value: unknown, budget: Budget): unknown {
  budget.use(typeof value === 'object' && value !== null ? CONTAINER_SIZE : sizeOf(value))
  if (value === undefined || value === null) return null
  if (typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((item) => asJson(item, budget))
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, asJson(member, budget)]))
}

/** How a value stands inside text: null is nothing, objects and arrays are their canonical JSON. */
export function textOf(value: unknown, budget: Budget): string {
  const text = typeof value === 'string' ? value : value === null ? '' : canonicalJson(value)
  budget.use(text.length)
  return text
}
