/** Signatures of webhooks: RSA-PSS with SHA-256 and a salt as long as the hash. */
import { constants, createPrivateKey, createPublicKey, generateKeyPair, sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { Signer } from './ports.js'

const MODULUS_BITS = 2048
const SALT_BYTES = 32

/** Returns a new private key, PEM (PKCS #8). */
export async function generateSigningKey(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: MODULUS_BITS })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

export function createSigner(pem: string): Signer {
  const key = createPrivateKey(pem)
  const options = { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: SALT_BYTES }
  return {
    publicKey: createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString(),
    sign: (text) => sign('sha256', Buffer.from(text), options).toString('base64'),
  }
}
