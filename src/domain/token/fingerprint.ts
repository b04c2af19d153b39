/** The text that a token's fingerprint is computed from. */
import { canonicalJson } from '../json/json.js'

/** A rendered fingerprint expression as text: a string is itself, anything else its canonical JSON. */
export function fingerprintValue(rendered: unknown): string {
  return typeof rendered === 'string' ? rendered : canonicalJson(rendered)
}

/** Type and value joined so that no other pair gives the same text. */
export function fingerprintText(type: string, rendered: unknown): string {
  return canonicalJson([type, fingerprintValue(rendered)])
}
