/**
 * The primitives from `node:crypto` and the noble libraries, ready in 2 ms: for commands, which end before libsodium has
 * started. Node has no XChaCha20, but ChaCha20-Poly1305 with a key from HChaCha20 is the same.
 */
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import { hchacha } from '@noble/ciphers/chacha.js'
import { swap32IfBE, u8, u32 } from '@noble/ciphers/utils.js'
import { blake2b } from '@noble/hashes/blake2.js'
import { NONCE_BYTES, type Primitives, SEAL_BYTES, TAG_BYTES } from './primitives.js'

const ALGORITHM = 'chacha20-poly1305'
const HCHACHA_NONCE_BYTES = 16
/** "expand 32-byte k", the constant of the ChaCha family (RFC 8439, 2.3). */
const SIGMA = Uint32Array.of(0x61707865, 0x3320646e, 0x79622d32, 0x6b206574)

export const nativePrimitives: Primitives = {
  seal(plain, associated, nonce, key) {
    const inner = deriveInner(nonce, key)
    const cipher = createCipheriv(ALGORITHM, inner.key, inner.nonce, { authTagLength: TAG_BYTES })
    cipher.setAAD(associated, { plaintextLength: plain.length })
    const sealed = new Uint8Array(SEAL_BYTES + plain.length)
    sealed.set(nonce)
    // A stream cipher gives all of its output at once.
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
      // Bytes that do not authenticate must not leave this function.
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

/** draft-irtf-cfrg-xchacha-03, 2.3: the key from HChaCha20 over the first 16 bytes, the nonce of 4 zeros and the last 8. */
function deriveInner(nonce: Uint8Array, key: Uint8Array): { key: Uint8Array; nonce: Uint8Array } {
  const derived = new Uint32Array(8)
  hchacha(SIGMA, toWords(key), toWords(nonce.subarray(0, HCHACHA_NONCE_BYTES)), derived)
  const inner = new Uint8Array(12)
  inner.set(nonce.subarray(HCHACHA_NONCE_BYTES), 4)
  return { key: u8(swap32IfBE(derived)), nonce: inner }
}

/** Copies, because words are aligned. */
const toWords = (bytes: Uint8Array): Uint32Array => swap32IfBE(u32(Uint8Array.from(bytes)))

const DIGESTS = { 'sha-1': 'sha1', 'sha-256': 'sha256', 'sha-512': 'sha512' } as const

/** HMAC (RFC 2104) for the expression language. Key and message are UTF-8. */
export function computeHmac(algorithm: keyof typeof DIGESTS, key: string, message: string): Uint8Array {
  return createHmac(DIGESTS[algorithm], key).update(message, 'utf8').digest()
}
