/** HMAC (RFC 2104) for the expression language. */
import { createHmac } from 'node:crypto'

const DIGESTS = { 'sha-1': 'sha1', 'sha-256': 'sha256', 'sha-512': 'sha512' } as const

/** Key and message are UTF-8. */
export function computeHmac(algorithm: keyof typeof DIGESTS, key: string, message: string): Uint8Array {
  return createHmac(DIGESTS[algorithm], key).update(message, 'utf8').digest()
}
