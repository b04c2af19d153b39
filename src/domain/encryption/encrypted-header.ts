/** A call through a proxy can have a header with encrypted tokens: JSON in base64. */
import { findFault, isObject } from '../json/json.js'

const MAX_CHARACTERS = 64 * 1024
const MAX_MEMBERS = 20
const MAX_VALUES = 200
const BASE64 = /^[\w+/-]+={0,2}$/

export interface EncryptedMember {
  type: string
  encrypted: string
}

/**
 * The JSON is a member (for one token), or an object that maps names to members. Returns undefined for any other text.
 */
export function readEncryptedHeader(
  text: string,
): { one: EncryptedMember } | { named: Map<string, EncryptedMember> } | undefined {
  const trimmed = text.trim()
  if (trimmed.length > MAX_CHARACTERS || !BASE64.test(trimmed)) return undefined
  const json = decode(Buffer.from(trimmed, 'base64'))
  const value: unknown =
    json === undefined || findFault(json, MAX_VALUES) !== undefined ? undefined : JSON.parse(json)
  if (!isObject(value)) return undefined
  if (isMember(value)) return { one: value }
  const members = Object.entries(value)
  const isNamed = members.length > 0 && members.length <= MAX_MEMBERS
  return isNamed && members.every(isNamedMember) ? { named: new Map(members) } : undefined
}

function isNamedMember(entry: [string, unknown]): entry is [string, EncryptedMember] {
  return isMember(entry[1])
}

function isMember(value: unknown): value is EncryptedMember {
  return isObject(value) && typeof value.type === 'string' && typeof value.encrypted === 'string'
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
