/** Primitives from libsodium, for processes that run long enough for WebAssembly to start. */
import { nativePrimitives } from './native.js'
import { KEY_BYTES, NONCE_BYTES, type Primitives, SEAL_BYTES, TAG_BYTES } from './primitives.js'

/**
 * The functions of libsodium, called without the wrappers, which would allocate and copy each argument. Arguments are
 * addresses in the memory of libsodium, or lengths. A number of 64 bits is passed as two words of 32 bits.
 */
interface Sodium {
  /** Must be read again for each use, because the property is a new array after the memory has grown. */
  readonly HEAPU8: Uint8Array
  _malloc(length: number): number
  _crypto_kdf_hkdf_sha256_statebytes(): number
  _crypto_kdf_hkdf_sha256_extract_init(state: number, salt: number, saltLength: number): number
  _crypto_kdf_hkdf_sha256_extract_update(state: number, part: number, length: number): number
  _crypto_kdf_hkdf_sha256_extract_final(state: number, out: number): number
  _crypto_aead_xchacha20poly1305_ietf_encrypt(...words: number[]): number
  _crypto_aead_xchacha20poly1305_ietf_decrypt(...words: number[]): number
}

/**
 * For larger messages, Node's cipher is faster than libsodium. Each call of Node's cipher has a higher fixed cost, but
 * each byte takes only a quarter of the time.
 */
const LARGEST_SEALED = 6144
const LARGEST_ASSOCIATED = 64
/** For larger messages, Node's SHA-256 is faster, even if the garbage collection that it causes is counted. */
const LARGEST_EXPANDED = 1024
const LARGEST_KEY = 64
const LARGEST_DIGEST = 64
const LARGEST_STATE = 512
const LARGEST_SMALL = LARGEST_KEY + LARGEST_DIGEST + LARGEST_ASSOCIATED + SEAL_BYTES

/**
 * Resolves when libsodium (WebAssembly) is loaded, which takes 20 ms. Small messages are processed in reserved memory,
 * from which every secret is erased after the call. Large messages are processed by Node's functions.
 */
export async function loadSodium(): Promise<Primitives> {
  const { default: wrappers } = await import('libsodium-wrappers')
  await wrappers.ready
  const sodium = (wrappers as unknown as { libsodium: Sodium }).libsodium
  const states = new WeakMap<Uint8Array, Uint8Array>()
  const isSmall = (message: Uint8Array, associated: Uint8Array, key: Uint8Array) =>
    message.length <= LARGEST_SEALED && associated.length <= LARGEST_ASSOCIATED && key.length === KEY_BYTES
  const encrypt = sodium._crypto_aead_xchacha20poly1305_ietf_encrypt
  const decrypt = sodium._crypto_aead_xchacha20poly1305_ietf_decrypt
  const keyAt = sodium._malloc(LARGEST_SMALL + LARGEST_SEALED + LARGEST_STATE)
  const digestAt = keyAt + LARGEST_KEY
  const associatedAt = digestAt + LARGEST_DIGEST
  const nonceAt = associatedAt + LARGEST_ASSOCIATED
  const messageAt = nonceAt + NONCE_BYTES
  const stateAt = messageAt + LARGEST_SEALED + TAG_BYTES
  const stateBytes = sodium._crypto_kdf_hkdf_sha256_statebytes()
  /**
   * Computes and caches the state that HMAC has after reading the key. For a short message, the cache saves half of the
   * work.
   */
  const begin = (heap: Uint8Array, key: Uint8Array) => {
    heap.set(key, keyAt)
    sodium._crypto_kdf_hkdf_sha256_extract_init(stateAt, keyAt, key.length)
    heap.fill(0, keyAt, keyAt + key.length)
    const state = heap.slice(stateAt, stateAt + stateBytes)
    states.set(key, state)
    return state
  }
  return {
    seal(plain, associated, nonce, key) {
      if (!isSmall(plain, associated, key)) return nativePrimitives.seal(plain, associated, nonce, key)
      const heap = sodium.HEAPU8
      heap.set(key, keyAt)
      heap.set(associated, associatedAt)
      heap.set(nonce, nonceAt)
      heap.set(plain, messageAt)
      encrypt(messageAt, 0, messageAt, plain.length, 0, associatedAt, associated.length, 0, 0, nonceAt, keyAt)
      heap.fill(0, keyAt, keyAt + key.length)
      return copyOut(heap, nonceAt, messageAt + plain.length + TAG_BYTES)
    },
    open(sealed, associated, key) {
      if (!isSmall(sealed, associated, key)) return nativePrimitives.open(sealed, associated, key)
      const heap = sodium.HEAPU8
      const body = sealed.length - NONCE_BYTES
      heap.set(key, keyAt)
      heap.set(associated, associatedAt)
      heap.set(sealed, nonceAt)
      const { length } = associated
      const failure = decrypt(messageAt, 0, 0, messageAt, body, 0, associatedAt, length, 0, nonceAt, keyAt)
      heap.fill(0, keyAt, keyAt + key.length)
      if (failure !== 0) return undefined
      const plain = copyOut(heap, messageAt, messageAt + body - TAG_BYTES)
      heap.fill(0, messageAt, messageAt + body)
      return plain
    },
    // One block of HKDF-Expand is an HMAC. The digest is computed with libsodium's HKDF-Extract, which is an HMAC too,
    // because the state of HKDF-Extract can be cached.
    digest(length, message, key) {
      if (message.length > LARGEST_EXPANDED) return nativePrimitives.digest(length, message, key)
      const heap = sodium.HEAPU8
      heap.set(states.get(key) ?? begin(heap, key), stateAt)
      heap.set(message, messageAt)
      heap[messageAt + message.length] = length
      heap[messageAt + message.length + 1] = 1
      sodium._crypto_kdf_hkdf_sha256_extract_update(stateAt, messageAt, message.length + 2)
      sodium._crypto_kdf_hkdf_sha256_extract_final(stateAt, digestAt)
      heap.fill(0, stateAt, stateAt + stateBytes)
      heap.fill(0, messageAt, messageAt + message.length)
      // The result is not taken from Node's buffer pool, because a cached digest would keep the whole pool in memory.
      // The result is a Buffer nevertheless, because making a Buffer from any other array takes 0.3 µs.
      const result = copyOut(heap, digestAt, digestAt + length, Buffer.allocUnsafeSlow)
      heap.fill(0, digestAt, digestAt + LARGEST_DIGEST)
      return result
    },
    blake2b: (length, message, key) => wrappers.crypto_generichash(length, message, key),
    wipe(bytes) {
      states.get(bytes)?.fill(0)
      states.delete(bytes)
      wrappers.memzero(bytes)
    },
  }
}

/** By default, copies into Node's buffer pool, because a separate buffer of more than 64 bytes takes about 2 µs. */
function copyOut(heap: Uint8Array, from: number, to: number, allocate = Buffer.allocUnsafe): Uint8Array {
  const copy = allocate(to - from)
  copy.set(heap.subarray(from, to))
  return copy
}
