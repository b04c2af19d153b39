/** Authenticated encryption: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) under one bound key. */
import type { Cipher, RandomSource } from './ports.js'
import { NONCE_BYTES, type Primitives, SEAL_BYTES } from './primitives.js'

export const KEY_BYTES = 32

/**
 * Sealed bytes are `nonce 24 | ciphertext | tag 16`; a random nonce of 192 bits is safe for any number of messages.
 * `open` returns undefined, and never throws, when bytes, key or associated data are not those of `seal`.
 */
export function createCipher(primitives: Primitives, random: RandomSource, key: Uint8Array): Cipher {
  return {
    seal: (plain, associated) => primitives.seal(plain, associated, random.bytes(NONCE_BYTES), key),
    open: (sealed, associated) =>
      sealed.length < SEAL_BYTES ? undefined : primitives.open(sealed, associated, key),
  }
}
