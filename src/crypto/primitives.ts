/** Authenticated encryption, keyed digests and derived keys, over primitives that two implementations give the same bytes for. */
import { timingSafeEqual } from 'node:crypto'
import { BoundedMap } from '../bounded-map.js'
import type { Cipher, Mac, RandomSource, TextMac } from './ports.js'

export const KEY_BYTES = 32
export const NONCE_BYTES = 24
export const TAG_BYTES = 16
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES
const TEXT_DIGEST_BYTES = 16

/** `sodium` is faster once it has started, `native` starts at once. */
export interface Primitives {
  /** XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03): nonce 24 | ciphertext | tag 16. `nonce` 24 bytes, `key` 32. */
  seal(plain: Uint8Array, associated: Uint8Array, nonce: Uint8Array, key: Uint8Array): Uint8Array
  /** undefined when it does not authenticate. Contract: at least nonce and tag. */
  open(sealed: Uint8Array, associated: Uint8Array, key: Uint8Array): Uint8Array | undefined
  /** Keyed BLAKE2b (RFC 7693): `length` and `key` 16 to 64 bytes. */
  blake2b(length: number, message: Uint8Array, key: Uint8Array): Uint8Array
  /**
   * HKDF-Expand with SHA-256 (RFC 5869), of one block: `length` 16 to 32 bytes, the key 32. Its info is the message and
   * then the length as a byte, because digests of different lengths are of different functions.
   */
  digest(length: number, message: Uint8Array, key: Uint8Array): Uint8Array
  wipe(bytes: Uint8Array): void
}

/** Uses `first` until `later` resolves, then its result. If `later` rejects, `first` stays in use. */
export function upgradeCrypto(first: Primitives, later: Promise<Primitives>): Primitives {
  const current = { ...first }
  later.then(
    (quicker) => Object.assign(current, quicker),
    () => {},
  )
  return current
}

/** Binds `key`. A random nonce of 192 bits is safe for any number of messages. */
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

/** Longer texts are not cached: many of them would take much memory. */
const LARGEST_CACHED = 512

/** Binds `key`, for text. Caches at most `most` digests. */
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

/** The 32-byte key for one purpose: the digest keyed with `root` over `coffer/1/<purpose>`. */
export function deriveKey(primitives: Primitives, root: Uint8Array, purpose: string): Uint8Array {
  return primitives.digest(KEY_BYTES, Buffer.from(`coffer/1/${purpose}`), root)
}

/** In constant time, except that digests of different length are different at once. */
export function isEqualDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
