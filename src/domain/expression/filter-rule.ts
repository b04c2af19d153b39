/** The declaration of a filter: its arguments, its function, and its cost in steps. */
import type { Budget } from './budget.js'

/** Cryptographic randomness. */
export interface RandomSource {
  bytes(count: number): Uint8Array
}

export type JsonPath = (path: string, value: unknown, budget: Budget) => unknown[]

export const HMAC_ALGORITHMS = ['sha-1', 'sha-256', 'sha-512'] as const

export type Hmac = (algorithm: (typeof HMAC_ALGORITHMS)[number], key: string, message: string) => Uint8Array

/** The dependencies of filters; `jsonPath` is loaded for the first expression that needs it. */
export interface FilterTools {
  readonly random: RandomSource
  readonly hmac: Hmac
  jsonPath: JsonPath | undefined
}

export interface CallTools extends FilterTools {
  readonly budget: Budget
  readonly isDecimal: boolean
  readonly allowsFalse: boolean
}

export interface FilterRule {
  /** The minimum and maximum number of arguments. */
  readonly least: number
  readonly most: number
  /** The only use in which the filter is allowed. */
  readonly onlyIn?: 'id'
  /** The filters of which one must be next; if empty, the filter must be the last. */
  readonly followers?: readonly string[]
  /** Steps of each character of the value; default 0, for filters whose work native code does. */
  readonly perCharacter?: number
  /** Steps beyond those of reading the operands and writing the result. */
  steps?(value: unknown, args: readonly unknown[]): number
  /** @throws CofferError `validation` if the filter does not accept the value or the arguments. */
  run(value: unknown, args: readonly unknown[], tools: CallTools): unknown
}
