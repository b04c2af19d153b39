/**
 * What text stands for in the encodings that values are found in: separators of digits, URL encoding, JSON escapes; and
 * which bytes are base64, which are text. Text is UTF-8 with one character for each byte (`latin1`).
 */

const DIGITS = /\d(?:[ .-]?\d){7,}/g
const PERCENT = /%[\da-f]{2}/i
const ESCAPED = /((?:\\u[\da-f]{4})+)|\\(["\\/bfnrt])/gi
const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** The bits of each character of base64 and base64url; others have -1. */
export const SEXTETS = (() => {
  const bits = new Int8Array(256).fill(-1)
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
  for (const [at, letter] of [...letters, '+', '/'].entries()) bits[letter.charCodeAt(0)] = at
  for (const [at, letter] of ['-', '_'].entries()) bits[letter.charCodeAt(0)] = letters.length + at
  return bits
})()

/** Whether it is UTF-8 without control characters, except that characters at its ends may be cut. */
export function isText(bytes: Uint8Array): boolean {
  let at = 0
  const isInner = (code: number | undefined) => code !== undefined && (code & 0xc0) === 0x80
  while (at < 3 && isInner(bytes[at])) at++
  while (at < bytes.length) {
    const code = bytes[at++]!
    if (code < 0x80) {
      if ((code < 32 && (code < 9 || code > 13)) || code === 127) return false
      continue
    }
    const more =
      code >= 0xc2 && code < 0xe0 ? 1 : code >= 0xe0 && code < 0xf0 ? 2 : code >= 0xf0 && code < 0xf5 ? 3 : 0
    if (more === 0) return false
    for (let count = 0; count < more && at < bytes.length; count++) if (!isInner(bytes[at++])) return false
  }
  return true
}

/** What the text, or lines of it, stand for in each encoding that they may be in, other than base64. */
export function* decodings(text: string): Generator<string> {
  for (const [run] of text.matchAll(DIGITS)) {
    const digits = run.replaceAll(/\D/g, '')
    if (digits !== run) yield digits
  }
  const linesWith = (mark: string) =>
    text
      .split('\n')
      .filter((line) => line.includes(mark))
      .join('\n')
  if (PERCENT.test(text)) yield decodePercent(linesWith('%'))
  // Forms write no space as it is.
  const words = text.includes('+') ? text.split(/[ \t\r\n]/).filter((word) => word.includes('+')) : []
  if (words.length > 0) yield decodePercent(words.join('\n').replaceAll('+', ' '))
  if (text.includes('\\'))
    yield linesWith('\\').replaceAll(ESCAPED, (_, codes: string | undefined, letter = '') => {
      if (codes === undefined) return CONTROLS[letter.toLowerCase()] ?? letter
      return Buffer.from(JSON.parse(`"${codes.replaceAll('\\U', '\\u')}"`) as string).toString('latin1')
    })
}

function decodePercent(text: string): string {
  return text.replaceAll(/%([\da-f]{2})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}
