/**
 * Finds values of tokens in text, even with separators between digits, in base64, URL encoding or JSON escapes, or in two
 * of these encodings. Text is UTF-8 with one character for each byte (`latin1`), so that any file can be searched.
 */

/** In bytes; a shorter value would be found everywhere. */
export const SHORTEST_VALUE = 6
/** A longer value is searched for by its first bytes only. */
export const LONGEST_VALUE = 1024
/** The longest encoded value (`%5C%75%30…`), in bytes: pieces of a longer text overlap by this much. */
export const OVERLAP = 18 * LONGEST_VALUE
/** Encodings within encodings. */
const MOST_DEPTH = 2

/** A number as people write it. */
const SEPARATED = /^\d(?:[ .-]?\d){7,}$/
const DIGITS = /\d(?:[ .-]?\d){7,}/g
const BASE64 = /[A-Za-z0-9+/_-]{8,}/g
const PERCENT = /%([\da-f]{2})/gi
const ESCAPED = /((?:\\u[\da-f]{4})+)|\\(["\\/bfnrt])/gi
const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
const NOISE = /[\0-\x08\x0e-\x1f\x7f]/

interface Value {
  bytes: Buffer
  ids: string[]
  /** The call of `find` that found it last. */
  foundBy: number
}

export class ValueFinder {
  /** Counts what is not searched for: values that are too short, and the ends of those that are too long. */
  readonly omitted = { short: 0, ends: 0 }
  readonly #values = new Map<string, Value>()
  /** The values by their first six bytes, and a bit for each three bytes that one begins with. */
  readonly #byStart = new Map<number, Value[]>()
  readonly #starts = new Uint8Array(1 << 21)
  #calls = 0

  /** Adds all texts and numbers in the data of a token. */
  add(id: string, data: unknown): void {
    if (typeof data === 'object' && data !== null)
      for (const inner of Object.values(data)) this.add(id, inner)
    if (typeof data !== 'string' && typeof data !== 'number') return
    const text = String(data)
    this.#addText(id, text)
    if (SEPARATED.test(text)) this.#addText(id, text.replaceAll(/\D/g, ''))
  }

  /** Returns the ids of the tokens with a value in `text`. A value in one line of it is found in all of it. */
  find(text: string): Set<string> {
    this.#calls++
    const found = new Set<string>()
    this.#searchAll(text, found, MOST_DEPTH)
    return found
  }

  #addText(id: string, text: string): void {
    const whole = Buffer.from(text)
    if (whole.length > LONGEST_VALUE) this.omitted.ends++
    // The longest line identifies the value well enough.
    const lines = whole.toString('latin1', 0, LONGEST_VALUE).split(/[\r\n]+/)
    const line = lines.reduce((longest, each) => (each.length > longest.length ? each : longest))
    const known = this.#values.get(line)
    if (line.length < SHORTEST_VALUE) this.omitted.short++
    else if (known === undefined)
      this.#addValue(line, { bytes: Buffer.from(line, 'latin1'), ids: [id], foundBy: 0 })
    else if (known.ids.at(-1) !== id) known.ids.push(id)
  }

  #addValue(line: string, value: Value): void {
    this.#values.set(line, value)
    const start = value.bytes.readUIntBE(0, 3)
    this.#starts[start >> 3]! |= 1 << (start & 7)
    const key = value.bytes.readUIntBE(0, SHORTEST_VALUE)
    const alike = this.#byStart.get(key)
    if (alike === undefined) this.#byStart.set(key, [value])
    else alike.push(value)
  }

  #searchAll(text: string, found: Set<string>, depth: number): void {
    this.#search(Buffer.from(text, 'latin1'), found)
    if (depth === 0) return
    for (const decoded of decodings(text)) this.#searchAll(decoded, found, depth - 1)
    // The encoded text may begin before the value does.
    for (const [run] of text.matchAll(BASE64))
      for (let first = 0; first < 4; first++) {
        const bytes = Buffer.from(run.slice(first), 'base64')
        this.#search(bytes, found)
        const plain = bytes.toString('latin1')
        if (depth > 1 && !NOISE.test(plain)) this.#searchAll(plain, found, depth - 1)
      }
  }

  #search(bytes: Buffer, found: Set<string>): void {
    let start = 0
    for (let at = 0; at < bytes.length; at++) {
      start = ((start << 8) | bytes[at]!) & 0xffffff
      const from = at - 2
      if ((this.#starts[start >> 3]! & (1 << (start & 7))) === 0 || from < 0) continue
      if (from + SHORTEST_VALUE > bytes.length) break
      for (const value of this.#byStart.get(bytes.readUIntBE(from, SHORTEST_VALUE)) ?? [])
        if (
          value.foundBy !== this.#calls &&
          value.bytes.equals(bytes.subarray(from, from + value.bytes.length))
        ) {
          value.foundBy = this.#calls
          for (const id of value.ids) found.add(id)
        }
    }
  }
}

/** Decodes the text, or lines of it, from each encoding that they may be in, other than base64. */
function* decodings(text: string): Generator<string> {
  for (const [run] of text.matchAll(DIGITS)) {
    const digits = run.replaceAll(/\D/g, '')
    if (digits !== run) yield digits
  }
  const partsWith = (mark: string, end: RegExp) =>
    text.includes(mark)
      ? text
          .split(end)
          .filter((part) => part.includes(mark))
          .join('\n')
      : ''
  yield decodePercent(partsWith('%', /\n/))
  // Forms write a space as a plus.
  yield decodePercent(partsWith('+', /[ \t\r\n]/).replaceAll('+', ' '))
  yield partsWith('\\', /\n/).replaceAll(ESCAPED, (_, codes: string | undefined, letter = '') => {
    if (codes === undefined) return CONTROLS[letter.toLowerCase()] ?? letter
    return Buffer.from(JSON.parse(`"${codes.replaceAll('\\U', '\\u')}"`) as string).toString('latin1')
  })
}

function decodePercent(text: string): string {
  return text.replaceAll(PERCENT, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
