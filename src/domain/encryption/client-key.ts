/** The keys with which clients encrypt data: when a key expires, and the form in which clients get the key. */
import { validationError } from '../../errors.js'
import { parseExpiry } from '../dates.js'

/** The maximum number of keys of a tenant. Expired keys are not counted. */
export const MAX_KEYS = 100

/**
 * Returns the time when a new key expires, in ms since the epoch. The default is one year after `now`.
 * @throws CofferError `validation`
 */
export function readKeyExpiry(text: string | undefined, now: number): number {
  const latest = yearAfter(now)
  const expires = text === undefined ? latest : parseExpiry(text, now)
  if (expires > latest) throw validationError('must be at most one year ahead')
  return expires
}

/** One year after 29 February is 1 March. */
function yearAfter(ms: number): number {
  const date = new Date(ms)
  return date.setUTCFullYear(date.getUTCFullYear() + 1)
}

/**
 * Returns a PEM with the 32 bytes of an X25519 key. The clients of the service expect the bare key between
 * the lines of the PEM. In a usual PEM, these lines contain a structure that also names the algorithm.
 */
export function formatPublicKey(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('base64')
  return `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----`
}
