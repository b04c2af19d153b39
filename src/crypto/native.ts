/**
 * Primitives from `node:crypto`, with keyed BLAKE2b from noble. Commands use these primitives, because `node:crypto` is
 * ready in 2 ms, and a command ends before libsodium has started. Node has no XChaCha20, so this file derives a key
 * with HChaCha20 and uses ChaCha20-Poly1305.
 */
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import { blake2b } from '@noble/hashes/blake2.js'
import { KEY_BYTES, NONCE_BYTES, type Primitives, SEAL_BYTES, TAG_BYTES } from './primitives.js'

const ALGORITHM = 'chacha20-poly1305'
const HCHACHA_NONCE_BYTES = 16
const BLOCK = Buffer.alloc(64)
const CONSTANT = Buffer.from('expand 32-byte k')

export const nativePrimitives: Primitives = {
  seal(plain, associated, nonce, key) {
    const inner = deriveInner(nonce, key)
    const cipher = createCipheriv(ALGORITHM, inner.key, inner.nonce, { authTagLength: TAG_BYTES })
    cipher.setAAD(associated, { plaintextLength: plain.length })
    const sealed = new Uint8Array(SEAL_BYTES + plain.length)
    sealed.set(nonce)
    // `final` returns no bytes, because a stream cipher returns all output in `update`.
    sealed.set(cipher.update(plain), NONCE_BYTES)
    cipher.final()
    sealed.set(cipher.getAuthTag(), NONCE_BYTES + plain.length)
    inner.key.fill(0)
    return sealed
  },
  open(sealed, associated, key) {
    const inner = deriveInner(sealed.subarray(0, NONCE_BYTES), key)
    const body = sealed.subarray(NONCE_BYTES)
    const length = body.length - TAG_BYTES
    const decipher = createDecipheriv(ALGORITHM, inner.key, inner.nonce, { authTagLength: TAG_BYTES })
    inner.key.fill(0)
    decipher.setAAD(associated, { plaintextLength: length })
    decipher.setAuthTag(body.subarray(length))
    const plain = decipher.update(body.subarray(0, length))
    try {
      decipher.final()
      return new Uint8Array(plain.buffer, plain.byteOffset, plain.length)
    } catch {
      // Bytes that are not authentic must not leave this function.
      plain.fill(0)
      return undefined
    }
  },
  blake2b: (length, message, key) => blake2b(message, { dkLen: length, key }),
  digest: (length, message, key) =>
    createHmac('sha256', key).update(message).update(Uint8Array.of(length, 1)).digest().subarray(0, length),
  wipe: (bytes) => {
    bytes.fill(0)
  },
}

/**
 * draft-irtf-cfrg-xchacha-03, 2.3: The inner key is HChaCha20 of the first 16 bytes of the nonce. The inner nonce
 * consists of 4 zero bytes and the last 8 bytes of the nonce.
 */
function deriveInner(nonce: Uint8Array, key: Uint8Array): { key: Uint8Array; nonce: Uint8Array } {
  const inner = new Uint8Array(12)
  inner.set(nonce.subarray(HCHACHA_NONCE_BYTES), 4)
  return { key: deriveHChaCha(Buffer.from(nonce.subarray(0, HCHACHA_NONCE_BYTES)), key), nonce: inner }
}

/**
 * Computes HChaCha20 from a block of ChaCha20. ChaCha20 adds its initial state at the end, and HChaCha20 does not.
 * Therefore this function subtracts the initial state from the 8 words that HChaCha20 returns (a block has 16 words).
 */
function deriveHChaCha(nonce: Buffer, key: Uint8Array): Uint8Array {
  const block = createCipheriv('chacha20', key, nonce).update(BLOCK)
  const derived = Buffer.alloc(KEY_BYTES)
  for (let at = 0; at < 16; at += 4) {
    derived.writeUInt32LE((block.readUInt32LE(at) - CONSTANT.readUInt32LE(at)) >>> 0, at)
    derived.writeUInt32LE((block.readUInt32LE(48 + at) - nonce.readUInt32LE(at)) >>> 0, 16 + at)
  }
  block.fill(0)
  return derived
}

const DIGESTS = { 'sha-1': 'sha1', 'sha-256': 'sha256', 'sha-512': 'sha512' } as const

/** For the expression language. Key and message are encoded as UTF-8. */
export function computeHmac(algorithm: keyof typeof DIGESTS, key: string, message: string): Uint8Array {
  return createHmac(DIGESTS[algorithm], key).update(message, 'utf8').digest()
}
