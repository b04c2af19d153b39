/** Encrypts data as clients do, in two ways that are independent of the program. */
import { createCipheriv, createHash, createPublicKey, diffieHellman, generateKeyPairSync } from 'node:crypto'
import { CompactEncrypt, type CompactJWEHeaderParameters, importJWK } from 'jose'

export interface PublicKey {
  key_id: string
  public_key_pem: string
}

export interface Changes {
  /** Replaces members of the JWE header. The value undefined removes a member of the header. */
  header?: Record<string, unknown>
  /** The text of the JWE header. The default text is the JSON of the header's members. */
  headerText?: string
  parties?: { apu: Uint8Array; apv: Uint8Array }
}

/** Returns the base64 text between the lines of the PEM. Clients take this text as the key itself. */
export const rawKeyOf = ({ public_key_pem }: PublicKey): string =>
  public_key_pem.replace(/-----(?:BEGIN|END)[^-]+-----/g, '').trim()

/** Encrypts with the package `jose`. */
export async function encryptWithJose(
  data: unknown,
  key: PublicKey,
  { header = {}, parties }: Changes = {},
): Promise<string> {
  const x = Buffer.from(rawKeyOf(key), 'base64').toString('base64url')
  const recipient = await importJWK({ kty: 'OKP', crv: 'X25519', x }, 'ECDH-ES')
  const protectedHeader = { alg: 'ECDH-ES', enc: 'A256GCM', kid: key.key_id, ...header }
  const encrypter = new CompactEncrypt(new TextEncoder().encode(JSON.stringify(data)))
  if (parties !== undefined) encrypter.setKeyManagementParameters(parties)
  return encrypter.setProtectedHeader(protectedHeader as CompactJWEHeaderParameters).encrypt(recipient)
}

/**
 * Encrypts as the libraries for phones do: the header has the members alg, kid, enc, epk in this order, and the input
 * of the key derivation is 1, the secret, the length of `A256GCM`, `A256GCM`, 0, 0 and 256.
 */
export function encryptLikePhones(
  data: unknown,
  key: PublicKey,
  { header = {}, headerText }: Changes = {},
): string {
  return encryptText(JSON.stringify(data), key, { header, ...(headerText !== undefined && { headerText }) })
}

export function encryptText(
  text: string | Uint8Array,
  key: PublicKey,
  { header = {}, headerText }: Changes = {},
) {
  const { publicKey, privateKey } = generateKeyPairSync('x25519')
  const x = Buffer.from(rawKeyOf(key), 'base64').toString('base64url')
  const recipient = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' })
  const secret = diffieHellman({ privateKey, publicKey: recipient })
  const epk = { kty: 'OKP', crv: 'X25519', x: publicKey.export({ format: 'jwk' }).x }
  const members = { alg: 'ECDH-ES', kid: key.key_id, enc: 'A256GCM', epk, ...header }
  return seal(text, secret, headerText?.replaceAll('$x', epk.x!) ?? JSON.stringify(members))
}

/** Encrypts `text` with a shared secret that the caller chooses. */
export function seal(text: string | Uint8Array, secret: Uint8Array, header: string): string {
  const numbers = (...values: number[]) =>
    Buffer.from(values.flatMap((value) => [0, 0, value >> 8, value & 255]))
  const input = [numbers(1), secret, numbers(7), Buffer.from('A256GCM'), numbers(0, 0, 256)]
  const derived = createHash('sha256').update(Buffer.concat(input)).digest()
  const protectedHeader = Buffer.from(header).toString('base64url')
  const nonce = Buffer.alloc(12, 7)
  const cipher = createCipheriv('aes-256-gcm', derived, nonce).setAAD(Buffer.from(protectedHeader))
  const ciphertext = Buffer.concat([cipher.update(text), cipher.final()])
  const parts = [nonce, ciphertext, cipher.getAuthTag()].map((part) => part.toString('base64url'))
  return `${protectedHeader}..${parts.join('.')}`
}
