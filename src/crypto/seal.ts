/**
 * Authenticated encryption: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) under one bound key.
 * It knows nothing of what is sealed or where it is kept.
 */
import type { Cipher, RandomSource } from './ports.js'
import { NONCE_BYTES, type Primitives, SEAL_BYTES } from './primitives.js'

export const KEY_BYTES = 32

/**
 * Sealed bytes are `nonce 24 | ciphertext | tag 16`; the nonce is random, which 192 bits make safe for any number of
 * messages. `open` answers undefined, never throws, when bytes, key or associated data are not the ones of `seal`.
 */
export function createCipher(primitives: Primitives, random: RandomSource, key: Uint8Array): Cipher {
  return {
    seal: (plain, associated) => primitives.seal(plain, associated, random.bytes(NONCE_BYTES), key),
    open: (sealed, associated) =>
      sealed.length < SEAL_BYTES ? undefined : primitives.open(sealed, associated, key),
  }
}
