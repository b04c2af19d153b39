import { validationError } from '../../errors.js'
import { parseExpiry } from '../dates.js'

/** The maximum number of keys for each tenant. Expired keys are not counted. */
export const MAX_KEYS = 100

/** Times are in ms since the epoch. The default is the maximum: one year after `now`. */
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
 * Clients of the service expect the bare 32 bytes of the X25519 key in this PEM. A standard PEM contains a structure
 * that also names the algorithm.
 */
export function formatPublicKey(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('base64')
  return `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----`
}
