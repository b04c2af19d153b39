/** Declares filters. Operands are JSON values. A missing operand is null. */
import { type CofferError, validationError } from '../../errors.js'
import { canonicalJson } from '../json/json.js'
import type { Budget } from './budget.js'

export interface RandomSource {
  bytes(count: number): Uint8Array
}

export const HMAC_ALGORITHMS = ['sha-1', 'sha-256', 'sha-512'] as const
export type Hmac = (algorithm: (typeof HMAC_ALGORITHMS)[number], key: string, message: string) => Uint8Array
export type JsonPath = (path: string, value: unknown, budget: Budget) => unknown[]

export interface CallTools {
  readonly random: RandomSource
  readonly hmac: Hmac
  readonly jsonPath: JsonPath | undefined
  readonly budget: Budget
  /**
   * Whether a decimal literal such as `7.0` comes before the end of this call, and is not followed by rounding to an
   * integer. In this case, `divided_by` does not round down.
   */
  readonly isDecimal: boolean
}

export interface FilterRule {
  readonly least: number
  readonly most: number
  readonly onlyIn?: 'id'
  /**
   * The next filter must have one of these names. The empty name in this list means that the filter may be the last
   * one.
   */
  readonly followers?: readonly string[]
  /**
   * The cost of the filter in steps. The cost of reading the operands and writing the result is charged
   * separately. If `steps` is a number, it is multiplied by the length of the value.
   */
  readonly steps?: number | ((value: unknown, args: readonly unknown[]) => number)
  /**
   * Applies the filter to `value`.
   * @throws any error if the filter does not accept the value or the arguments. The user sees the message
   * only if the error is a CofferError.
   */
  run(value: unknown, args: readonly unknown[], tools: CallTools): unknown
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === null || value === undefined ? '' : canonicalJson(value)
}

export function refuse(message: string): never {
  throw validationError(message)
}

export function syntaxError(text: string, at: number, reason: string, cause?: unknown): CofferError {
  return validationError(`${reason} (at column ${[...text.slice(0, at)].length + 1})`, { cause })
}

/**
 * Reads a property by the rules of Liquid: an own property of the object, or one of the special properties
 * `size`, `first` and `last`.
 */
export function readProperty(object: unknown, key: unknown): unknown {
  if (object === undefined || object === null || (typeof key === 'object' && key !== null)) return undefined
  const list = Array.isArray(object) ? (object as unknown[]) : undefined
  if (list !== undefined && typeof key === 'number') return list.at(key)
  const name = String(key)
  if (Object.hasOwn(Object(object), name)) return (object as Record<string, unknown>)[name]
  if (name === 'first' || name === 'last') return list?.at(name === 'first' ? 0 : -1)
  if (name !== 'size') return undefined
  return typeof object === 'string' ? object.length : Object.keys(object).length
}
