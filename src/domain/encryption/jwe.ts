/** Parses compact JWEs (RFC 7516) with ECDH-ES over X25519 and A256GCM. */
import { findFault, isObject } from '../json/json.js'

const MAX_CHARACTERS = 1024 * 1024
const MAX_HEADER_VALUES = 40
const MAX_KEY_ID_CHARACTERS = 100
const MAX_PARTY_BYTES = 256
const KEY_BYTES = 32

/**
 * Matches a header, no encrypted key, a nonce of 12 bytes, the ciphertext, and a tag of 16 bytes. In the last
 * character of the tag, the unused bits must be zero, so that each tag has exactly one text.
 */
const COMPACT = /^([\w-]{2,4096})\.\.([\w-]{16})\.([\w-]*)\.([\w-]{21}[AQgw])$/

/** All failures have the same message, so that an attacker learns nothing from the message. */
export const NOT_DECRYPTED =
  'cannot be decrypted; it must be a compact JWE with ECDH-ES (X25519) and A256GCM, for a key of this tenant that has not expired'

export type Jwe = NonNullable<ReturnType<typeof readJwe>>

/** Returns undefined if `text` is not valid. `kid` is undefined if the header names no key. */
export function readJwe(text: unknown) {
  if (typeof text !== 'string' || text.length > MAX_CHARACTERS) return undefined
  const [, protectedHeader = '', nonce = '', ciphertext = '', tag = ''] = COMPACT.exec(text) ?? []
  const header = readHeader(decode(protectedHeader))
  const encrypted = decode(ciphertext)
  if (header === undefined || encrypted === undefined) return undefined
  const parts = {
    ephemeral: header.ephemeral,
    partyU: header.partyU,
    partyV: header.partyV,
    associated: Buffer.from(protectedHeader, 'latin1'),
    nonce: Buffer.from(nonce, 'base64url'),
    ciphertext: encrypted,
    tag: Buffer.from(tag, 'base64url'),
  }
  return { kid: header.kid, parts }
}

/** Returns undefined if the bytes are not strict JSON in UTF-8, or contain more than `maxValues` values and names. */
export function readPlaintext(bytes: Uint8Array, maxValues: number): unknown {
  return parse(bytes, maxValues)
}

function readHeader(bytes: Uint8Array | undefined) {
  const header = bytes && parse(bytes, MAX_HEADER_VALUES)
  if (!isObject(header) || header.alg !== 'ECDH-ES' || header.enc !== 'A256GCM') return undefined
  // Compression (`zip`) is refused, because a short text can expand to any size. Extensions (`crit`) are
  // refused, because they can change the meaning of the header.
  if (Object.hasOwn(header, 'zip') || Object.hasOwn(header, 'crit')) return undefined
  const { kid, epk, apu = '', apv = '' } = header
  if (!isObject(epk) || epk.kty !== 'OKP' || epk.crv !== 'X25519') return undefined
  const [ephemeral, partyU, partyV] = [epk.x, apu, apv].map(decode)
  if (ephemeral === undefined || partyU === undefined || partyV === undefined) return undefined
  const isKeyId = typeof kid === 'string' && kid !== '' && kid.length <= MAX_KEY_ID_CHARACTERS
  const isFit =
    ephemeral.length === KEY_BYTES && [partyU, partyV].every(({ length }) => length <= MAX_PARTY_BYTES)
  return isFit && (kid === undefined || isKeyId) ? { kid, ephemeral, partyU, partyV } : undefined
}

function parse(bytes: Uint8Array, maxValues: number): unknown {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
  return findFault(text, maxValues) === undefined ? JSON.parse(text) : undefined
}

/**
 * Decodes base64url without padding (RFC 7515, 2). Returns undefined if the text is not the canonical form of its
 * bytes.
 */
function decode(text: unknown): Uint8Array | undefined {
  if (typeof text !== 'string') return undefined
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}
