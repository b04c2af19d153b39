/** Reads the arguments of filters: each reader returns a value of its type, or refuses. */
import { validationError } from '../../errors.js'
import { canonicalJson } from '../json/json.js'

/** The maximum count, length and padded length that filters accept. */
const MAX_FILTER_LENGTH = 10_000

/** The literals `empty` and `blank`, which are compared as Liquid does, and are an empty text otherwise. */
export class Emptiness {
  readonly allowsBlank: boolean
  constructor(allowsBlank: boolean) {
    this.allowsBlank = allowsBlank
  }
}

/** A value as JSON. */
export function plain(value: unknown): unknown {
  return value instanceof Emptiness ? '' : (value ?? null)
}

/** @throws CofferError `validation`, as every reader below */
export function asText(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return canonicalJson(value)
  return refuse('this filter takes text, a number or a boolean; use stringify or json on objects and arrays')
}

export function asCount(value: unknown, meaning: string): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_FILTER_LENGTH)
    return value as number
  return refuse(`${meaning} must be an integer from 0 to ${MAX_FILTER_LENGTH}`)
}

export function asFlag(value: unknown, meaning: string): boolean {
  if (value === true || value === 'true') return true
  return value === false || value === 'false' ? false : refuse(`${meaning} must be true or false`)
}

export function asCharacter(value: unknown, meaning: string): string {
  if (typeof value === 'string' && [...value].length === 1) return value
  return refuse(`${meaning} must be one character in quotes`)
}

export function refuse(message: string): never {
  throw validationError(message)
}
