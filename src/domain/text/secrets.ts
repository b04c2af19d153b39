/** Redacts token data in a response, even if the response contains an encoding of the data or a part of the data. */
import { isDeep, isObject } from '../json/json.js'
import { decodeBase64, MAX_DEPTH, SHORTEST_VALUE, unescapeJson, ValueFinder } from './value-finder.js'

export const WITHHELD = '[withheld: it would reveal data of a token]'

/** Limits in characters. If a limit is exceeded, the response is withheld. */
const MAX_EXAMINED = 32 * 1024
const MAX_DECODED = 384 * 1024
const MAX_SECRET = 128 * 1024
/**
 * For a secret of at most `upTo` characters, the response is searched for parts of `width` letters and digits. A part
 * begins after every `step` characters of the secret. Therefore any 16 characters in a row of a secret are found, or
 * any 47 characters if the secret is longer than 1,024 characters.
 */
const PARTS = [
  { upTo: 64, width: 8, step: 1 },
  { upTo: 1024, width: 12, step: 5 },
  { upTo: Number.POSITIVE_INFINITY, width: 32, step: 16 },
]
const MAX_DIGITS = 8

const NUMBER = /\d(?:[ -]?\d){5}/
const RUN = /\d(?:[ -]?\d)*/g
const DATE = /(?<!\d)(?:19|20)\d\d-[01]\d-[0-3]\d(?!\d)/g
const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/gi
/** An escaped byte or character: in hex with two digits, in hex of any length, in decimal, or in octal. */
const ESCAPE =
  /(?:[%=]|\\x|0x)([\da-f]{2})|(?:&#x|\\u\{)([\da-f]{1,6})[;}]?|&#(\d{1,7});?|\\([0-3]?[0-7]{2})/gi
/** Lists of bytes as numbers: the pattern of a list, the pattern of a number, and the base of the numbers. */
const ROWS = [
  [/(?:(?:0x)?[\da-f]{2}[\s:,-]{0,2}){6,}/gi, /[\da-f]{2}/gi, 16],
  [/(?:\d{2,3}[\s:,;-]{1,2}){5,}\d{2,3}/g, /\d+/g, 10],
  [/(?:[0-7]{3}[\s:,;-]{1,2}){5,}[0-7]{3}/g, /[0-7]{3}/g, 8],
  [/(?:[01]{8}[\s:,;-]{0,2}){6,}/g, /[01]{8}/g, 2],
] as const
/** Valid text, and runs of ASCII. In UTF-16, a zero follows each ASCII byte. */
const VALID = /[^\ufffd]{6,}/g
const READABLE = /(?:[\t -~]\0?){8,}/g
const LONG_BASE64 = /[A-Za-z0-9+/_-]{200,}/g
const COMPRESSED = /^(?:\x1f\x8b|x[\x01\x5e\x9c\xda])/m

type Leaves = Record<'names' | 'values', string[]>

/**
 * If a secret is a number, all numbers of a similar length are redacted (`#lengths`, `#run`). Otherwise, a list of
 * guesses would show which guess is right.
 */
export class Secrets {
  readonly #finder = new ValueFinder()
  readonly #words = new Set<string>()
  /** `#lengths`: the lengths of short secret numbers. `#run`: the shortest run of digits that is redacted. */
  readonly #lengths = new Set<number>()
  #run = Number.POSITIVE_INFINITY
  #hasDate = false
  /** Whether the finder also searches for the unchanged text of a secret with few letters. */
  #hasRaw = false
  #size = 0
  #decoded = 0

  /** `shown`: the data that the caller sees instead of `data`. Equal values are not secret. */
  add(data: unknown, shown?: unknown): void {
    if (data === shown) return
    if (typeof data === 'object' && data !== null) {
      const visible = isObject(shown) || Array.isArray(shown) ? (shown as Record<string, unknown>) : {}
      for (const [name, inner] of Object.entries(data)) this.add(inner, visible[name])
    } else if (typeof data === 'string' || typeof data === 'number') this.#addText(String(data))
  }

  scrub<T>(value: T): T | string {
    if (this.#size === 0) return value
    if (isDeep(value)) return WITHHELD
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    if (text.length > MAX_EXAMINED || this.#size > MAX_SECRET) return WITHHELD
    this.#decoded = 0
    const leaves: Leaves = { names: [], values: [] }
    const scrubbed = this.#scrub(value, leaves)
    // A secret, or its encoding, may be split into several values or several names.
    const lists = [leaves.values, leaves.names].filter(({ length }) => length > 1)
    const texts = lists.flatMap((pieces) => ['', ' '].map((gap) => bytesOf(pieces.join(gap))))
    const whole = bytesOf(JSON.stringify(scrubbed) ?? '')
    for (const each of [whole, ...texts, ...texts.flatMap((text) => [...decode(text)])])
      if (this.#hasPart(each, wordsOf(textOf(each)))) return WITHHELD
    return scrubbed as T
  }

  scrubMembers<T extends object>(value: T): T | Record<string, never> {
    const scrubbed = this.scrub(value)
    return typeof scrubbed === 'string' ? {} : scrubbed
  }

  /** If a secret has three digits, replaces the last two digits of the status by zeros. */
  scrubStatus(status: number): number {
    return this.#lengths.has(3) ? Math.floor(status / 100) * 100 : status
  }

  #addText(text: string): void {
    const letters = wordsOf(text).join('')
    this.#size += text.length
    if (/^\d+$/.test(letters)) {
      if (letters.length < SHORTEST_VALUE) this.#lengths.add(letters.length)
      else this.#run = Math.min(this.#run, letters.length, MAX_DIGITS)
      this.#hasDate ||= new RegExp(DATE).test(text)
    }
    if (letters.length < SHORTEST_VALUE) {
      this.#words.add(text.trim().toLowerCase())
      this.#finder.add('', text)
      this.#hasRaw ||= text.length >= SHORTEST_VALUE
      return
    }
    const { width, step } = PARTS.find(({ upTo }) => letters.length <= upTo)!
    const last = Math.max(0, letters.length - width)
    for (const each of [letters, [...letters].reverse().join('')])
      for (let at = 0; at <= last; at += step) this.#finder.add('', each.slice(at, at + width))
  }

  #scrub(value: unknown, leaves: Leaves): unknown {
    if (typeof value === 'string' || typeof value === 'number') {
      const shown = this.#discloses(bytesOf(String(value)), MAX_DEPTH) ? WITHHELD : value
      leaves.values.push(String(shown))
      return shown
    }
    if (Array.isArray(value)) {
      const isBytes = value.length >= SHORTEST_VALUE && value.every((item) => item >= 0 && item < 256)
      if (isBytes && this.#discloses(String.fromCharCode(...value), MAX_DEPTH)) return WITHHELD
      return value.map((item) => this.#scrub(item, leaves))
    }
    if (!isObject(value)) return value
    const entries = Object.entries(value).map(([name, inner], at) => {
      const shown = this.#discloses(bytesOf(name), MAX_DEPTH) ? `${WITHHELD} ${at}` : name
      leaves.names.push(shown)
      return [shown, this.#scrub(inner, leaves)]
    })
    return Object.fromEntries(entries)
  }

  /** True if `bytes` (`latin1`) contain a secret or cannot be examined. */
  #discloses(bytes: string, depth: number): boolean {
    this.#decoded += bytes.length
    if (this.#decoded > MAX_DECODED || COMPRESSED.test(bytes)) return true
    const isWhole = depth === MAX_DEPTH
    // Text that is not base64 decodes to mostly invalid text. Only the valid parts are examined.
    const text = isWhole ? textOf(bytes) : (textOf(bytes).match(VALID) ?? []).join('\n')
    if (text === '') return false
    const words = wordsOf(text)
    if (this.#hasPart(bytes, words) || this.#isWord(text, words) || this.#hasNumber(text)) return true
    if (bytes.match(LONG_BASE64)?.some(isBinary)) return true
    const encoded = isWhole ? bytes : (text.match(READABLE) ?? []).join('\n').replaceAll('\0', '')
    if (depth === 0 || encoded.length < SHORTEST_VALUE) return false
    for (const form of isWhole ? [encoded, reverse(encoded)] : [encoded])
      for (const decoded of decode(form)) if (this.#discloses(decoded, depth - 1)) return true
    return false
  }

  #hasPart(bytes: string, words: string[]): boolean {
    const isPart = (each: string) => this.#finder.find(each, 0).size > 0
    return isPart(bytesOf(words.join(''))) || (this.#hasRaw && isPart(bytes))
  }

  #isWord(text: string, words: string[]): boolean {
    if (this.#words.size === 0) return false
    const isSecret = (word: string) =>
      this.#words.has(word) || (this.#lengths.has(word.length) && /^\d+$/.test(word))
    return this.#words.has(text.trim().toLowerCase()) || words.some(isSecret)
  }

  #hasNumber(text: string): boolean {
    if (this.#run === Number.POSITIVE_INFINITY || !NUMBER.test(text)) return false
    const others = (this.#hasDate ? text : text.replaceAll(DATE, ' ')).replaceAll(UUID, ' ')
    return (others.match(RUN) ?? []).some((run) => run.replaceAll(/\D/g, '').length >= this.#run)
  }
}

function wordsOf(text: string): string[] {
  if (/^[\0-\x7f]*$/.test(text)) return text.toLowerCase().match(/[a-z\d]+/g) ?? []
  const letters = text.replaceAll(/[\0-/:-@[-`{-\x7f\ufffd]+/g, ' ').normalize('NFKC')
  return letters.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

function reverse(bytes: string): string {
  return Buffer.from(bytes, 'latin1').reverse().toString('latin1')
}

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function textOf(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString()
}

function isBinary(run: string): boolean {
  return (
    !/^[\da-f]+$/i.test(run) && /[\x00-\x08\x0e-\x1f]/.test(Buffer.from(run, 'base64').toString('latin1'))
  )
}

function* decode(bytes: string): Generator<string> {
  const plain = unescapeJson(bytes).replaceAll(ESCAPE, (run, byte, point, decimal, octal) => {
    if (byte ?? octal) return String.fromCharCode(Number.parseInt(byte ?? octal, byte ? 16 : 8))
    const code = point ? Number.parseInt(point, 16) : Number(decimal)
    return code <= 0x10ffff ? bytesOf(String.fromCodePoint(code)) : run
  })
  if (plain !== bytes) yield plain
  if (bytes.includes('<')) yield bytes.replaceAll(/<[^<>]*>/g, '')
  for (const [row, byte, base] of ROWS) {
    const read = (each: string) => String.fromCharCode(Number.parseInt(each, base) & 255)
    const rows = bytes.match(row)?.map((each) => each.match(byte)!.map(read).join(''))
    if (rows !== undefined) yield rows.join('\n')
  }
  yield* decodeBase64(bytes)
}
