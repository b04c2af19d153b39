/** Checks of keys that a person has chosen instead of random keys. */
import { SESSION_KEY } from '../access/application.js'

const VISIBLE = /^[\x21-\x7e]{1,200}$/
const MIN_CONTROL_KEY_BITS = 128
const MIN_DIFFERENT = 8
/** Matches a text that consists of one shorter text, repeated two or more times. */
const REPEATED = /^(.+?)\1+$/

export const CONTROL_KEY_RULE =
  'must have at least 128 bits: 32 hexadecimal digits, or 22 letters and digits, without spaces and at random'

/**
 * Sets of characters, and the number of characters in each. If all characters of a text are in one small set,
 * the text has fewer bits than its length suggests.
 */
const ALPHABETS: readonly (readonly [RegExp, number])[] = [
  [/^\d+$/, 10],
  [/^[\da-f]+$/, 16],
  [/^[\dA-F]+$/, 16],
  [/^[\da-z]+$/, 36],
  [/^[\dA-Z]+$/, 36],
  [/^[\da-zA-Z]+$/, 62],
]
const ALL_VISIBLE = 94

/**
 * Whether a random key of this form has at least 128 bits. No check can show that a text was drawn at random.
 * Therefore this function refuses only texts that are too short or that obviously repeat themselves.
 */
export function isControlKey(text: string): boolean {
  if (!VISIBLE.test(text) || REPEATED.test(text) || new Set(text).size < MIN_DIFFERENT) return false
  const [, size = ALL_VISIBLE] = ALPHABETS.find(([form]) => form.test(text)) ?? []
  return text.length * Math.log2(size) >= MIN_CONTROL_KEY_BITS
}

export const TEST_KEY_RULE = `must have 16 to 200 visible ASCII characters, and not begin with ${SESSION_KEY}`

/**
 * Whether `serve --test-keys` accepts this text as an API key. A text that begins like the key of a session is
 * refused, because the vault would look up this text among the keys of sessions.
 */
export function isTestKey(text: string): boolean {
  return VISIBLE.test(text) && text.length >= 16 && !text.startsWith(SESSION_KEY)
}
