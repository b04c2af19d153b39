/**
 * Parses the header in which a client sends encrypted data with a call through a proxy. The header is JSON in
 * base64.
 */
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
 * Parses the header. For one token, the JSON of the header is a member. For several tokens, the JSON is an object
 * that contains members by name. Returns undefined if the JSON has neither of these two shapes.
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
