/** The `callback_url` of a run, to which the answer of the run is sent. */
import { validationError } from '../../errors.js'
import { readDestination } from '../proxy/proxy.js'

/** @throws CofferError `validation` */
export function readCallbackUrl(given: unknown): URL {
  // Braces are refused, because a brace could begin an expression, and expressions are not supported in this address.
  const url = typeof given === 'string' ? readDestination(given, /[#\\{}]/) : undefined
  if (url !== undefined) return url
  throw validationError(
    'must be an https or http URL without user, fragment and braces, of at most 2000 characters',
  )
}

/**
 * Callbacks to one origin are sent one after another. Callbacks to different origins do not wait for each
 * other.
 */
export function laneOfCallback(url: string): string {
  return new URL(url).origin
}
