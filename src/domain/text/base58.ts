/** Base58, the encoding of fingerprints and of keys. */

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Digits per division: as many as a double holds exactly together with two more bytes. */
const GROUP_DIGITS = 5
const GROUP = 58 ** GROUP_DIGITS
const WORD = 2 ** 16

/**
 * Base58 in Bitcoin's alphabet; each leading zero byte is a leading `1`. Shorter results are padded with `1` to `least`
 * characters: with 43, 32 bytes always give 43 or 44 characters, and with 22, 16 bytes always give 22.
 */
export function base58(bytes: Uint8Array, least = 0): string {
  const words = toWords(bytes)
  let digits = ''
  for (let first = 0; first < words.length; ) {
    digits = spellGroup(divide(words, first)) + digits
    while (words[first] === 0) first++
  }
  const zeros = bytes.findIndex((byte) => byte !== 0)
  const leading = '1'.repeat(zeros < 0 ? bytes.length : zeros)
  return (leading + (digits.startsWith('1') ? digits.replace(/^1+/, '') : digits)).padStart(least, '1')
}

/** A key of 128 random bits: the prefix and 22 characters. */
export function drawKey(random: { bytes(count: number): Uint8Array }, prefix = ''): string {
  return prefix + base58(random.bytes(16), 22)
}

/** Whether the text has the format of {@link drawKey}; callers hash nothing else. */
export function isKey(text: string, prefix = ''): boolean {
  return text.startsWith(prefix) && /^[1-9A-HJ-NP-Za-km-z]{22}$/.test(text.slice(prefix.length))
}

/** The bytes as 16-bit words, most significant first. */
function toWords(bytes: Uint8Array): number[] {
  const words: number[] = bytes.length % 2 === 0 ? [] : [bytes[0]!]
  for (let at = bytes.length % 2; at < bytes.length; at += 2) words.push(bytes[at]! * 256 + bytes[at + 1]!)
  return words
}

/** Divides the number that begins at `first` by {@link GROUP} in place, and returns the remainder. */
function divide(words: number[], first: number): number {
  let rest = 0
  for (let index = first; index < words.length; index++) {
    const value = rest * WORD + words[index]!
    const quotient = Math.floor(value / GROUP)
    words[index] = quotient
    // Exact, and a fraction of the time of `%` on doubles.
    rest = value - quotient * GROUP
  }
  return rest
}

function spellGroup(value: number): string {
  let digits = ''
  for (let place = 0; place < GROUP_DIGITS; place++) {
    digits = BASE58[value % 58] + digits
    value = Math.floor(value / 58)
  }
  return digits
}
