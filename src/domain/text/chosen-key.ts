import { SESSION_KEY } from '../access/application.js'

const VISIBLE = /^[\x21-\x7e]{1,200}$/
const MIN_CONTROL_KEY_BITS = 128
const MIN_DIFFERENT = 8
/** Matches a text that consists of repetitions of a shorter text. */
const REPEATED = /^(.+?)\1+$/

export const CONTROL_KEY_RULE =
  'must have at least 128 bits, be random and have no spaces: 32 hexadecimal digits, or 22 characters from a-z, A-Z and 0-9'

/**
 * Sets of characters and their sizes. The first set that contains all characters of a text decides how many bits each
 * character has.
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
 * Whether a random text with this length and alphabet has at least 128 bits. No check can show that a text is random.
 * Therefore a text of visible characters is refused only if it is too short or obviously repetitive.
 */
export function isControlKey(text: string): boolean {
  if (!VISIBLE.test(text) || REPEATED.test(text) || new Set(text).size < MIN_DIFFERENT) return false
  const [, size = ALL_VISIBLE] = ALPHABETS.find(([form]) => form.test(text)) ?? []
  return text.length * Math.log2(size) >= MIN_CONTROL_KEY_BITS
}

export const TEST_KEY_RULE = `must have 16 to 200 visible ASCII characters, and not begin with ${SESSION_KEY}`

/** The prefix of session keys is refused, because the vault would search the sessions for this key. */
export function isTestKey(text: string): boolean {
  return VISIBLE.test(text) && text.length >= 16 && !text.startsWith(SESSION_KEY)
}
