/**
 * Finds values of tokens in text, also behind separators of digits, base64, URL encoding and JSON escapes. Text is UTF-8
 * with one character for each byte (`latin1`), so that any file can be looked through.
 *
 * The time is that of one pass over each decoding of the text, however many values there are: a value is found by the hash
 * of its last characters, and told from others that end alike by the hash of its length. Values that end alike cost at
 * most a comparison for each length and byte, and no value is compared again once it is found.
 */
import { decodings, isText, SEXTETS } from './text-encodings.js'

/** A shorter value would be found everywhere. */
export const SHORTEST_VALUE = 6
/** Of a longer value only the first bytes are looked for. */
export const LONGEST_VALUE = 1024
/** What a value takes at the most, as `%5C%75%30…`: pieces of a longer text overlap by so much. */
export const OVERLAP = 18 * LONGEST_VALUE
/** Encodings within encodings. */
const MOST_DEPTH = 2

/** How many last characters of a value are hashed: the longer window where the value has so many. */
const SHORT_WINDOW = SHORTEST_VALUE
const LONG_WINDOW = 12
const BASE = 0x01000193
const FILTER_BITS = 24

export interface ValueFinder {
  /** Adds all texts and numbers in the data of a token. */
  add(id: string, data: unknown): void
  /** The ids of the tokens with a value in `text`. What is found in a line of it alone is found in all of it. */
  find(text: string): Set<string>
  /** What was added and is not looked for: values that are too short, and the ends of those that are too long. */
  readonly omitted: { short: number; ends: number }
}

interface Value {
  text: string
  ids: string[]
  /** The call of `find` that found it last. */
  foundBy: number
}

/** Values of one length that end alike. */
interface Length {
  length: number
  byHash: Map<number, Value[]>
  count: number
  /** How many are not found yet by the call of `find`. */
  left: number
  leftOf: number
}

export function createValueFinder(): ValueFinder {
  const values = new Map<string, Value>()
  /** Values by the hash of their last characters, in a window of each size. */
  const shortEnds = new Map<number, Length[]>()
  const longEnds = new Map<number, Length[]>()
  let calls = 0
  /** A bit for each beginning of a hash that an end of a value has. */
  const filter = new Uint8Array((1 << FILTER_BITS) / 8)
  /** The last two bytes of values: what most places are ruled out by. */
  const lastPairs = new Uint8Array(1 << 16)
  /** The bytes that values have. */
  const alphabet = new Uint8Array(256)
  const omitted = { short: 0, ends: 0 }
  /** The hash of the text before each position, since the last byte that no value has. */
  let hashes = new Int32Array(1024)
  let decoded = new Uint8Array(1024)

  function addText(id: string, text: string): void {
    const bytes = Buffer.from(text)
    if (bytes.length > LONGEST_VALUE) omitted.ends++
    // Of several lines the longest tells enough.
    const value = bytes
      .toString('latin1', 0, LONGEST_VALUE)
      .split(/[\r\n]+/)
      .reduce((longest, line) => (line.length > longest.length ? line : longest), '')
    if (value.length < SHORTEST_VALUE) {
      omitted.short++
      return
    }
    const known = values.get(value)
    if (known !== undefined) {
      if (known.ids.at(-1) !== id) known.ids.push(id)
      return
    }
    const added: Value = { text: value, ids: [id], foundBy: 0 }
    values.set(value, added)
    for (let at = 0; at < value.length; at++) alphabet[value.charCodeAt(at)] = 1
    lastPairs[(value.charCodeAt(value.length - 2) << 8) | value.charCodeAt(value.length - 1)] = 1
    const [window, ends] = value.length < LONG_WINDOW ? [SHORT_WINDOW, shortEnds] : [LONG_WINDOW, longEnds]
    const end = hashOf(value.slice(-window))
    filter[end >>> (35 - FILTER_BITS)]! |= bitOf(end)
    const { length } = value
    let alike = ends.get(end)?.find((each) => each.length === length)
    if (alike === undefined) {
      alike = { length, byHash: new Map(), count: 0, left: 0, leftOf: 0 }
      append(ends, end, alike)
    }
    alike.count++
    append(alike.byHash, hashOf(value), added)
  }

  function search(bytes: Uint8Array, found: Set<string>): void {
    if (hashes.length <= bytes.length) hashes = new Int32Array(2 * bytes.length)
    const before = hashes
    let begin = 0
    let hash = 0
    before[0] = 0
    for (let at = 1; at <= bytes.length; at++) {
      const code = bytes[at - 1]!
      if (alphabet[code] === 0) {
        begin = at
        hash = 0
        before[at] = 0
        continue
      }
      hash = (Math.imul(hash, BASE) + code) | 0
      before[at] = hash
      if (at - begin < SHORT_WINDOW || lastPairs[(bytes[at - 2]! << 8) | code] === 0) continue
      const short = (hash - Math.imul(before[at - SHORT_WINDOW]!, LEAVING[SHORT_WINDOW]!)) | 0
      if (mayEnd(short)) compare(bytes, begin, at, shortEnds.get(short), found)
      if (at - begin < LONG_WINDOW) continue
      const long = (hash - Math.imul(before[at - LONG_WINDOW]!, LEAVING[LONG_WINDOW]!)) | 0
      if (mayEnd(long)) compare(bytes, begin, at, longEnds.get(long), found)
    }
  }

  const mayEnd = (hash: number) => (filter[hash >>> (35 - FILTER_BITS)]! & bitOf(hash)) !== 0

  function compare(
    bytes: Uint8Array,
    begin: number,
    end: number,
    lengths: readonly Length[] | undefined,
    found: Set<string>,
  ): void {
    for (const each of lengths ?? []) {
      if (each.leftOf !== calls) Object.assign(each, { leftOf: calls, left: each.count })
      const start = end - each.length
      if (each.left === 0 || start < begin) continue
      const hash = (hashes[end]! - Math.imul(hashes[start]!, LEAVING[each.length]!)) | 0
      for (const value of each.byHash.get(hash) ?? []) {
        if (value.foundBy === calls || toText(bytes.subarray(start, end)) !== value.text) continue
        value.foundBy = calls
        each.left--
        for (const id of value.ids) found.add(id)
      }
    }
  }

  function searchAll(text: string, found: Set<string>, depth: number): void {
    const bytes = Buffer.from(text, 'latin1')
    search(bytes, found)
    if (depth === 0) return
    for (const other of decodings(text)) searchAll(other, found, depth - 1)
    searchBase64(bytes, found, depth - 1)
  }

  /** In each run of the characters of base64, which may begin before the value does. */
  function searchBase64(bytes: Uint8Array, found: Set<string>, depth: number): void {
    for (let start = 0; start < bytes.length; start++) {
      if (SEXTETS[bytes[start]!]! < 0) continue
      let end = start + 1
      while (end < bytes.length && SEXTETS[bytes[end]!]! >= 0) end++
      if (end - start >= SHORTEST_BASE64)
        for (let first = start; first < start + 4; first++) {
          if (mayHaveValue(bytes, first, end)) search(decodeBase64(bytes, first, end), found)
          // What is no base64 decodes to noise.
          if (depth === 0 || !isText(decodeBase64(bytes, first, Math.min(end, first + SHORTEST_BASE64))))
            continue
          const plain = decodeBase64(bytes, first, end)
          if (isText(plain)) searchAll(toText(plain), found, depth)
        }
      start = end
    }
  }

  /**
   * Whether as many bytes as the shortest value has, one after another, are bytes of values. The last of them is looked at
   * first: where it is none, all before it are of no use.
   */
  function mayHaveValue(bytes: Uint8Array, first: number, end: number): boolean {
    let good = -1
    let last = good + SHORTEST_VALUE
    for (let at = last; ; at--) {
      if (at === good) return true
      const index = first + at + Math.floor(at / 3)
      if (last === at && index + 1 >= end) return false
      const pair = (SEXTETS[bytes[index]!]! << 6) | SEXTETS[bytes[index + 1]!]!
      if (alphabet[(pair >>> (4 - 2 * (at % 3))) & 0xff] !== 0) continue
      good = at
      last = good + SHORTEST_VALUE
      at = last + 1
    }
  }

  /** In memory that the next call uses again. */
  function decodeBase64(bytes: Uint8Array, start: number, end: number): Uint8Array {
    if (decoded.length < end - start) decoded = new Uint8Array(2 * (end - start))
    let length = 0
    let bits = 0
    let kept = 0
    for (let at = start; at < end; at++) {
      kept = ((kept << 6) | SEXTETS[bytes[at]!]!) & 0xffff
      bits += 6
      if (bits < 8) continue
      bits -= 8
      decoded[length++] = kept >>> bits
    }
    return decoded.subarray(0, length)
  }

  return {
    omitted,
    add(id, data) {
      for (const text of textsIn(data)) {
        addText(id, text)
        if (SEPARATED.test(text)) addText(id, text.replaceAll(/\D/g, ''))
      }
    },
    find(text) {
      calls++
      const found = new Set<string>()
      searchAll(text, found, MOST_DEPTH)
      return found
    },
  }
}

/** What a character adds to a hash once so many others follow it: BASE to that power, modulo 2^32. */
const LEAVING = (() => {
  const powers = new Int32Array(LONGEST_VALUE + 1).fill(1)
  for (let at = 1; at < powers.length; at++) powers[at] = Math.imul(powers[at - 1]!, BASE)
  return powers
})()

function hashOf(text: string): number {
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, BASE) + text.charCodeAt(at)) | 0
  return hash
}

function bitOf(hash: number): number {
  return 1 << ((hash >>> (32 - FILTER_BITS)) & 7)
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key)
  if (values === undefined) map.set(key, [value])
  else values.push(value)
}

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

function textsIn(data: unknown): string[] {
  if (typeof data === 'string') return [data]
  if (typeof data === 'number') return [String(data)]
  return typeof data === 'object' && data !== null ? Object.values(data).flatMap(textsIn) : []
}

/** A number as people write it. */
const SEPARATED = /^\d(?:[ .-]?\d){7,}$/
/** The characters of the shortest value in base64. */
const SHORTEST_BASE64 = 8
