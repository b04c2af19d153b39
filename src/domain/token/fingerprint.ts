/** The text that a token's fingerprint is computed from. */
import { canonicalJson } from '../json/json.js'

/** A rendered fingerprint expression as text: a string as it is, any other value as canonical JSON. */
export function fingerprintValue(rendered: unknown): string {
  return typeof rendered === 'string' ? rendered : canonicalJson(rendered)
}

/** The unambiguous encoding of type and value. */
export function fingerprintText(type: string, rendered: unknown): string {
  return JSON.stringify([type, fingerprintValue(rendered)])
}
