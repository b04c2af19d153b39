/** Two implementations give the same bytes: `sodium` is faster once it has started, `native` starts at once. */
export const NONCE_BYTES = 24
export const TAG_BYTES = 16
/** Bytes that sealing adds. */
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES

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
  /** In constant time; both have the same length. */
  isEqual(a: Uint8Array, b: Uint8Array): boolean
  wipe(bytes: Uint8Array): void
}
