/** The text that a token's fingerprint is computed from. */
import { canonicalJson } from '../json/json.js'

/** The unambiguous encoding of a type, and of a rendered expression: a string as it is, all else as canonical JSON. */
export function fingerprintText(type: string, rendered: unknown): string {
  return JSON.stringify([type, typeof rendered === 'string' ? rendered : canonicalJson(rendered)])
}
