/** Reads the payloads of Google Pay. No error message contains a part of a payload. */

import { invalid } from '../../errors.js'
import { isObject, parseJson } from '../json/json.js'
import type { WalletAuthentication } from '../records/wallet-record.js'

/** Members of the wrong type are absent. */
export interface GooglePayData {
  protocolVersion?: string | undefined
  signature?: string | undefined
  signedMessage?: string | undefined
  intermediateSigningKey?: unknown
}

/**
 * `encrypted`: a payload with unknown content. `card`: a plain payload for tests. Its members are not validated yet.
 * With `authentication`, the card number belongs to one device.
 */
export type GooglePayload =
  | { kind: 'encrypted'; isWellFormed: boolean }
  | { kind: 'card'; card: PlainCard; authentication?: WalletAuthentication }

export type PlainCard = Readonly<Record<'number' | 'expiration_month' | 'expiration_year', unknown>>

export const PAYLOAD = 'google_payment_data'
export const SIGNED_MESSAGE = `${PAYLOAD}.signedMessage`

const MAX_PLAIN_MESSAGE = 2_000
const MAX_AUTHENTICATION = 1_000
const ENCRYPTED_MEMBERS = ['encryptedMessage', 'ephemeralPublicKey', 'tag']

export function readGooglePayload(data: GooglePayData): GooglePayload {
  const { protocolVersion, signature } = data
  if (protocolVersion === 'ECv2') return readEncrypted(data)
  if (protocolVersion !== 'BasisTheory')
    throw invalid(`${PAYLOAD}.protocolVersion`, 'must be ECv2, or BasisTheory for a plain card of a test')
  if (signature !== 'card' && signature !== 'network_token')
    throw invalid(
      `${PAYLOAD}.signature`,
      'must be card or network_token, because protocolVersion is BasisTheory',
    )
  const message = readPlainMessage(data.signedMessage)
  const { number, expiration_month, expiration_year } = message
  const card = { number, expiration_month, expiration_year }
  return signature === 'card'
    ? { kind: 'card', card }
    : { kind: 'card', card, authentication: readAuthentication(message) }
}

function readEncrypted({ intermediateSigningKey: key, signedMessage }: GooglePayData): GooglePayload {
  const path = `${PAYLOAD}.intermediateSigningKey`
  if (!isObject(key)) throw invalid(path, 'is required with the protocol ECv2')
  if (typeof key.signedKey !== 'string') throw invalid(`${path}.signedKey`, 'must be a string')
  if (!Array.isArray(key.signatures)) throw invalid(`${path}.signatures`, 'must be an array')
  return { kind: 'encrypted', isWellFormed: isEncryptedMessage(signedMessage) }
}

function isEncryptedMessage(text = ''): boolean {
  let message: unknown
  try {
    message = parseJson(text)
  } catch {
    return false
  }
  const isText = (value: unknown) => typeof value === 'string' && value !== ''
  return isObject(message) && ENCRYPTED_MEMBERS.every((name) => isText(message[name]))
}

/** In valid JSON, every match is a complete string or a complete number. */
const TEXT_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Numbers become texts with the same digits, because a double cannot hold 19 digits. */
function readPlainMessage(text = ''): Record<string, unknown> {
  if (text.length > MAX_PLAIN_MESSAGE)
    throw invalid(SIGNED_MESSAGE, `must have at most ${MAX_PLAIN_MESSAGE} characters`)
  const replaceNumbers = (replace: (number: string) => string) =>
    text.replaceAll(TEXT_OR_NUMBER, (found) => (found.startsWith('"') ? found : replace(found)))
  try {
    // Throws if the message is not JSON. The next line adds quotes, which could make an invalid message valid.
    parseJson(replaceNumbers(() => '0'))
    const message = parseJson(replaceNumbers((number) => `"${number}"`))
    if (isObject(message)) return message
  } catch {
    // The error is replaced, because its message names positions in the changed text.
  }
  throw invalid(SIGNED_MESSAGE, 'must be the text of a JSON object')
}

function readAuthentication(message: Record<string, unknown>): WalletAuthentication {
  return {
    threeds_cryptogram: readText(message, 'cryptogram'),
    eci_indicator: readText(message, 'eci_indicator'),
  }
}

function readText(message: Record<string, unknown>, name: string): string {
  const value = message[name]
  if (typeof value === 'string' && value !== '' && value.length <= MAX_AUTHENTICATION) return value
  throw invalid(SIGNED_MESSAGE, `needs ${name}, a text of at most ${MAX_AUTHENTICATION} characters`)
}
