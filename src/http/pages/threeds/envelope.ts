/** Messages of EMV 3-D Secure in forms: JSON as base64url. */
import { isObject, tryJson } from '../../../domain/json/json.js'
import { CofferError } from '../../../errors.js'

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export function encodeMessage(message: object): string {
  return Buffer.from(JSON.stringify(message)).toString('base64url')
}

/** Returns an empty object if the text is not a valid message. */
export function decodeMessage(text: string | null): Record<string, unknown> {
  const value = tryJson(Buffer.from(text ?? '', 'base64').toString('utf8'))
  return isObject(value) ? value : {}
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** @throws CofferError `not_found` if the value cannot be the id of a session */
export function sessionIdOf(value: unknown): string {
  const id = textOf(value)
  if (UUID.test(id)) return id.toLowerCase()
  throw new CofferError('not_found', 'The message has no threeDSServerTransID of a session.')
}
