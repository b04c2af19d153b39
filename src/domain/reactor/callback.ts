/** The `callback_url` of a run, to which the answer of the run is sent. */
import { validationError } from '../../errors.js'
import { readDestination } from '../proxy/proxy.js'

/** @throws CofferError `validation` */
export function readCallbackUrl(given: unknown): URL {
  // Braces could begin an expression, and an address has no expressions.
  const url = typeof given === 'string' ? readDestination(given, /[#\\{}]/) : undefined
  if (url !== undefined) return url
  throw validationError(
    'must be an https or http URL without user, fragment and braces, of at most 2000 characters',
  )
}

/** A callback waits for the other callbacks to its origin only. */
export function laneOfCallback(url: string): string {
  return new URL(url).origin
}
