import { type CofferError, validationError } from '../../errors.js'

/** An error with its column, counted in characters from 1. */
export function syntaxError(text: string, at: number, reason: string, cause?: unknown): CofferError {
  const message = `${reason} (at column ${[...text.slice(0, at)].length + 1})`
  return validationError(message, cause === undefined ? {} : { cause })
}
