/**
 * Decrypts the data that clients encrypt with ECDH-ES over X25519, the Concat KDF (RFC 7518, 4.6 and RFC 8037, 3.2) and
 * AES-256-GCM. Uses `node:crypto`, because WebCrypto would make a unit of work wait for Node's thread pool.
 */
import { createDecipheriv, createHash, createPrivateKey, createPublicKey, diffieHellman } from 'node:crypto'
import type { ClientEncryption, ClientKeyPair, Encrypted } from './ports.js'

const KEY_BYTES = 32
const TAG_BYTES = 16
const ALGORITHM = Buffer.from('A256GCM')
/** The DER bytes that precede the 32 bytes of a private X25519 key (RFC 8410, PKCS #8). */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex')
/** Keys are imported as JWK, because the import of a JWK is ten times faster than the import of DER. */
const JWK = { kty: 'OKP', crv: 'X25519' }

export const clientEncryption: ClientEncryption = {
  pairOf(privateKey) {
    const der = Buffer.concat([PRIVATE_PREFIX, privateKey])
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    der.fill(0)
    const { d: private_key = '', x: public_key = '' } = key.export({ format: 'jwk' })
    return { public_key, private_key }
  },
  open(parts, pair) {
    const secret = agree(parts.ephemeral, pair)
    // If there is no shared secret, the key is derived from zeros. Therefore a missing secret and a wrong tag are
    // refused after the same steps.
    const key = deriveKey(secret ?? new Uint8Array(KEY_BYTES), parts.partyU, parts.partyV)
    secret?.fill(0)
    const plain = decrypt(key, parts)
    key.fill(0)
    if (secret !== undefined) return plain
    plain?.fill(0)
    return undefined
  },
}

/**
 * Returns undefined if the shared secret is zero. With an ephemeral key of low order, the secret is zero for every
 * private key.
 */
function agree(
  ephemeral: Uint8Array,
  { public_key: x, private_key: d }: ClientKeyPair,
): Uint8Array | undefined {
  const theirs = Buffer.from(ephemeral).toString('base64url')
  const publicKey = createPublicKey({ key: { ...JWK, x: theirs }, format: 'jwk' })
  const privateKey = createPrivateKey({ key: { ...JWK, x, d }, format: 'jwk' })
  let secret: Uint8Array
  try {
    secret = diffieHellman({ privateKey, publicKey })
  } catch {
    // OpenSSL refuses a shared secret of zeros.
    return undefined
  }
  return secret.every((byte) => byte === 0) ? undefined : secret
}

/** Derives 256 bits by the Concat KDF, which needs one round of SHA-256. */
function deriveKey(secret: Uint8Array, partyU: Uint8Array, partyV: Uint8Array): Uint8Array {
  const hash = createHash('sha256').update(numberOf(1)).update(secret)
  for (const info of [ALGORITHM, partyU, partyV]) hash.update(numberOf(info.length)).update(info)
  return hash.update(numberOf(8 * KEY_BYTES)).digest()
}

function decrypt(key: Uint8Array, { nonce, associated, ciphertext, tag }: Encrypted) {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(associated)
  decipher.setAuthTag(tag)
  const plain = decipher.update(ciphertext)
  try {
    decipher.final()
    return plain
  } catch {
    // Bytes that are not authentic must not leave this function.
    plain.fill(0)
    return undefined
  }
}

function numberOf(value: number): Uint8Array {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
