/**
 * Finds values of tokens in text, also behind separators of digits, base64, URL encoding and JSON escapes. Text is UTF-8
 * with one character for each byte (`latin1`), so that any file can be looked through.
 */

/** A shorter value would be found everywhere. */
export const SHORTEST_VALUE = 6
/** Of a longer value only the beginning is looked for. */
const LONGEST_VALUE = 1024
/** What a value takes at the most, escaped: pieces of a longer text overlap by so much. */
export const OVERLAP = 6 * LONGEST_VALUE
/** Encodings within encodings. */
const MOST_DEPTH = 2
const NOISE = /[\0-\x08\x0e-\x1f\x7f]/

/** A value is found by the hash of its last characters, at most so many: texts more often begin alike. */
const LONGEST_WINDOW = 32
const BASE = 0x01000193
const FILTER_BITS = 22

export interface ValueFinder {
  /** Adds all texts and numbers in the data of a token. */
  add(id: string, data: unknown): void
  /** The ids of the tokens with a value in `text`. */
  find(text: string): Set<string>
}

export function createValueFinder(): ValueFinder {
  const idsOf = new Map<string, string[]>()
  const byHash = new Map<number, string[]>()
  /** Whether a value has a hash that begins with these bits. */
  const filter = new Uint8Array(1 << FILTER_BITS)
  /** The lengths of windows, each with what a character adds that leaves it: BASE to that power, modulo 2^32. */
  const windows = new Map<number, number>()

  function addText(id: string, text: string): void {
    const bytes = Buffer.from(text).toString('latin1').slice(0, LONGEST_VALUE)
    // Of several lines the longest tells enough.
    const value = bytes
      .split(/[\r\n]+/)
      .reduce((longest, line) => (line.length > longest.length ? line : longest), '')
    if (value.length < SHORTEST_VALUE) return
    const ids = idsOf.get(value)
    if (ids !== undefined) {
      if (ids.at(-1) !== id) ids.push(id)
      return
    }
    idsOf.set(value, [id])
    const end = value.slice(-LONGEST_WINDOW)
    let hash = 0
    let leaving = 1
    for (let at = 0; at < end.length; at++) {
      hash = (Math.imul(hash, BASE) + end.charCodeAt(at)) | 0
      leaving = Math.imul(leaving, BASE)
    }
    windows.set(end.length, leaving)
    const values = byHash.get(hash)
    if (values === undefined) byHash.set(hash, [value])
    else values.push(value)
    filter[hash >>> (32 - FILTER_BITS)] = 1
  }

  function search(text: string, found: Set<string>): void {
    for (const [length, leaving] of windows) {
      let hash = 0
      for (let at = 0; at < text.length; at++) {
        const left = at < length ? 0 : Math.imul(text.charCodeAt(at - length), leaving)
        hash = (Math.imul(hash, BASE) + text.charCodeAt(at) - left) | 0
        if (filter[hash >>> (32 - FILTER_BITS)] !== 0) compare(text, at + 1, hash, found)
      }
    }
  }

  function compare(text: string, end: number, hash: number, found: Set<string>): void {
    for (const value of byHash.get(hash) ?? [])
      if (text.endsWith(value, end)) for (const id of idsOf.get(value)!) found.add(id)
  }

  function searchAll(text: string, found: Set<string>, depth: number): void {
    search(text, found)
    // What is no base64 decodes to noise.
    if (depth === 0 || (depth < MOST_DEPTH && NOISE.test(text))) return
    for (const decoded of decodings(text)) searchAll(decoded, found, depth - 1)
  }

  return {
    add(id, data) {
      for (const text of textsIn(data)) {
        addText(id, text)
        if (SEPARATED.test(text)) addText(id, text.replaceAll(/\D/g, ''))
      }
    },
    find(text) {
      const found = new Set<string>()
      searchAll(text, found, MOST_DEPTH)
      return found
    },
  }
}

function textsIn(data: unknown): string[] {
  if (typeof data === 'string') return [data]
  if (typeof data === 'number') return [String(data)]
  return typeof data === 'object' && data !== null ? Object.values(data).flatMap(textsIn) : []
}

/** A number as people write it. */
const SEPARATED = /^\d(?:[ .-]?\d){7,}$/
const DIGITS = /\d(?:[ .-]?\d){7,}/g
const BASE64 = /[\w+/-]{8,}/g
const ESCAPED = /((?:\\u[\da-f]{4})+)|\\(["\\/bfnrt])/gi
const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** What the text, or a part of it, stands for in each encoding that it may be in. */
function* decodings(text: string): Generator<string> {
  for (const [run] of text.matchAll(DIGITS)) {
    const digits = run.replaceAll(/\D/g, '')
    if (digits !== run) yield digits
  }
  if (/%[\da-f]{2}/i.test(text)) {
    const decode = (encoded: string) =>
      encoded.replaceAll(/%([\da-f]{2})/gi, (_, code: string) =>
        String.fromCharCode(Number.parseInt(code, 16)),
      )
    yield decode(text)
    if (text.includes('+')) yield decode(text.replaceAll('+', ' '))
  } else if (/\w\+\w/.test(text)) yield text.replaceAll('+', ' ')
  if (text.includes('\\')) {
    yield text.replaceAll(ESCAPED, (_, codes: string | undefined, letter = '') => {
      if (codes === undefined) return CONTROLS[letter.toLowerCase()] ?? letter
      return Buffer.from(JSON.parse(`"${codes.replaceAll('\\U', '\\u')}"`) as string).toString('latin1')
    })
  }
  for (const [run] of text.matchAll(BASE64))
    for (let offset = 0; offset < 4; offset++)
      yield Buffer.from(run.slice(offset), 'base64').toString('latin1')
}
