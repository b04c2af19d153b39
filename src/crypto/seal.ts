/**
 * Authenticated encryption: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) under one bound key.
 * It knows nothing of what is sealed or where it is kept.
 */
import type { Cipher, Random } from '../store/store.js'
import type { Primitives } from './primitives.js'

export const KEY_BYTES = 32
const NONCE_BYTES = 24
const TAG_BYTES = 16

/** The bytes that sealing adds: nonce and tag. */
export const SEAL_OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES

/**
 * Sealed bytes are `nonce 24 | ciphertext | tag 16`; the nonce is random, which 192 bits make safe for any number of
 * messages. `open` answers undefined, never throws, when bytes, key or associated data are not the ones of `seal`.
 */
export function createCipher(primitives: Primitives, random: Random, key: Uint8Array): Cipher {
  return {
    seal(plain, associated) {
      const nonce = random.bytes(NONCE_BYTES)
      const body = primitives.seal(plain, associated, nonce, key)
      const sealed = new Uint8Array(NONCE_BYTES + body.length)
      sealed.set(nonce, 0)
      sealed.set(body, NONCE_BYTES)
      return sealed
    },
    open(sealed, associated) {
      if (sealed.length < SEAL_OVERHEAD_BYTES) return undefined
      const nonce = sealed.subarray(0, NONCE_BYTES)
      const body = sealed.subarray(NONCE_BYTES)
      return primitives.open(body, associated, nonce, key)
    },
  }
}
