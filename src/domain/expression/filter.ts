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
  /** Whether a literal before this call or in it is a decimal. Then `divided_by` does not round down. */
  readonly isDecimal: boolean
}

export interface FilterRule {
  readonly least: number
  readonly most: number
  readonly onlyIn?: 'id'
  /** One of these filters must follow this filter. The empty name means that no filter follows. */
  readonly followers?: readonly string[]
  /**
   * Steps in addition to the steps for reading the operands and writing the result. If `steps` is a number,
   * it is multiplied by the length of the value.
   */
  readonly steps?: number | ((value: unknown, args: readonly unknown[]) => number)
  /**
   * @throws any error if the filter does not accept the value or the arguments. Only the message of a
   * CofferError reaches the user.
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

/** Reads a property as Liquid does: an own property, or `size`, `first` or `last`. */
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
