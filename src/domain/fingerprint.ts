/**
 * The exact text a fingerprint is taken of, and base58, in which fingerprints and keys are written. It knows no key
 * and no hash.
 */
import { canonicalJson } from './json.js'

/** A rendered fingerprint expression as text: a string is itself, anything else its canonical JSON. */
export function fingerprintValue(rendered: unknown): string {
  return typeof rendered === 'string' ? rendered : canonicalJson(rendered)
}

/** Type and value joined so that no other pair gives the same text. */
export function fingerprintText(type: string, rendered: unknown): string {
  return canonicalJson([type, fingerprintValue(rendered)])
}

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/**
 * Base58 in Bitcoin's alphabet; each leading zero byte is a leading `1`. `least` pads with further `1`s, so that
 * 32 bytes are always 43 or 44 characters (43) and 16 bytes always 22 (22): without it, one in 60,000 is shorter.
 */
export function base58(bytes: Uint8Array, least = 0): string {
  let value = 0n
  for (const byte of bytes) value = value * 256n + BigInt(byte)
  let digits = ''
  for (; value > 0n; value /= 58n) digits = BASE58[Number(value % 58n)] + digits
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return ('1'.repeat(zeros < 0 ? bytes.length : zeros) + digits).padStart(least, '1')
}
