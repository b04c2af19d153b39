/**
 * Authenticated encryption, keyed digests and derived keys. All implementations of the primitives give the same bytes.
 */
import { timingSafeEqual } from 'node:crypto'
import { BoundedMap } from '../bounded-map.js'
import type { Cipher, Mac, RandomSource, TextMac } from './ports.js'

export const KEY_BYTES = 32
export const NONCE_BYTES = 24
export const TAG_BYTES = 16
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES
const TEXT_DIGEST_BYTES = 16

/**
 * The implementation in `native.ts` starts immediately. The one in `sodium.ts` starts later, but each call is faster.
 */
export interface Primitives {
  /**
   * XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03): nonce 24 | ciphertext | tag 16. `nonce` has 24 bytes, and `key`
   * has 32 bytes.
   */
  seal(plain: Uint8Array, associated: Uint8Array, nonce: Uint8Array, key: Uint8Array): Uint8Array
  /** Returns undefined if the bytes are not authentic. Requires: `sealed` has at least a nonce and a tag. */
  open(sealed: Uint8Array, associated: Uint8Array, key: Uint8Array): Uint8Array | undefined
  /** Keyed BLAKE2b (RFC 7693): `length` and the length of `key` are 16 to 64 bytes. */
  blake2b(length: number, message: Uint8Array, key: Uint8Array): Uint8Array
  /**
   * One block of HKDF-Expand with SHA-256 (RFC 5869). `length`: 16 to 32 bytes. The key has 32 bytes. The info of HKDF
   * is the message and then the length as one byte, so that a short digest is not the beginning of a longer digest.
   */
  digest(length: number, message: Uint8Array, key: Uint8Array): Uint8Array
  wipe(bytes: Uint8Array): void
}

/** Uses `first` until `later` resolves, and then the result of `later`. If `later` rejects, `first` stays in use. */
export function upgradeCrypto(first: Primitives, later: Promise<Primitives>): Primitives {
  const current = { ...first }
  later.then(
    (quicker) => Object.assign(current, quicker),
    () => {},
  )
  return current
}

/** Draws nonces at random, which is safe for any number of messages, because a nonce has 192 bits. */
export function createCipher(primitives: Primitives, random: RandomSource, key: Uint8Array): Cipher {
  return {
    seal: (plain, associated) => primitives.seal(plain, associated, random.bytes(NONCE_BYTES), key),
    open: (sealed, associated) =>
      sealed.length < SEAL_BYTES ? undefined : primitives.open(sealed, associated, key),
  }
}

export function createMac(primitives: Primitives, key: Uint8Array): Mac {
  return (message, length) => primitives.digest(length, message, key)
}

const LARGEST_CACHED = 512

export function createTextMac(primitives: Primitives, key: Uint8Array, most: number): TextMac {
  const cache = new BoundedMap<string, Uint8Array>(most)
  const digest = (text: string) => primitives.digest(TEXT_DIGEST_BYTES, Buffer.from(text, 'utf8'), key)
  return {
    digest,
    recall(text, make = digest) {
      const known = cache.get(text)
      if (known !== undefined) return known
      const found = make(text)
      if (text.length <= LARGEST_CACHED) cache.set(text, found)
      return found
    },
  }
}

export function deriveKey(primitives: Primitives, root: Uint8Array, purpose: string): Uint8Array {
  return primitives.digest(KEY_BYTES, Buffer.from(`coffer/1/${purpose}`), root)
}

export function isEqualDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
