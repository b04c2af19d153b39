/** Operands are JSON values. A property that does not exist gives null. */
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
   * Whether a decimal literal such as `7.0` occurs in the output up to this call, and no filter after the literal
   * rounds to an integer. If so, `divided_by` does not round down.
   */
  readonly isDecimal: boolean
}

export interface FilterRule {
  readonly least: number
  readonly most: number
  readonly onlyIn?: 'id'
  /** The names that the next filter can have. The empty name permits that no filter follows. */
  readonly followers?: readonly string[]
  /**
   * The cost in steps, in addition to reading the operands and writing the result. A number is the cost of each
   * character, if the value is text.
   */
  readonly steps?: number | ((value: unknown, args: readonly unknown[]) => number)
  /**
   * @throws any error if the filter refuses an operand. The user sees the message only if the error is a CofferError.
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

/** Follows Liquid: an own property has precedence over the special properties `size`, `first` and `last`. */
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
