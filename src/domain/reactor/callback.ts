import { validationError } from '../../errors.js'
import { readDestination } from '../proxy/proxy.js'

export function readCallbackUrl(given: unknown): URL {
  // Braces are refused, because they could begin an expression, which this address does not support.
  const url = typeof given === 'string' ? readDestination(given, /[#\\{}]/) : undefined
  if (url !== undefined) return url
  throw validationError(
    'must be an https or http URL without user, fragment and braces, of at most 2000 characters',
  )
}

/** Callbacks to one origin are sent one after another. */
export function laneOfCallback(url: string): string {
  return new URL(url).origin
}
