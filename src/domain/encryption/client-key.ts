/** The keys with which clients encrypt data: their life, and the form in which clients get them. */
import { validationError } from '../../errors.js'
import { parseExpiry } from '../dates.js'

/** The limit for the keys of a tenant that have not expired. */
export const MAX_KEYS = 100

/**
 * When a new key expires, ms since the epoch. The default is one year after `now`.
 * @throws CofferError `validation`
 */
export function readKeyExpiry(text: string | undefined, now: number): number {
  const latest = yearAfter(now)
  const expires = text === undefined ? latest : parseExpiry(text, now)
  if (expires > latest) throw validationError('must be at most one year ahead')
  return expires
}

/** 29 February leads to 1 March. */
function yearAfter(ms: number): number {
  const date = new Date(ms)
  return date.setUTCFullYear(date.getUTCFullYear() + 1)
}

/**
 * The 32 bytes of an X25519 key between the lines of a PEM. The clients of the service read the key itself there, and
 * not the usual structure with the name of the algorithm.
 */
export function formatPublicKey(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('base64')
  return `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----`
}
