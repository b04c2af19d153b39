/** Finds what was put into a call in what came back, whole or in part, as it is and encoded, and replaces it. */
import { isObject } from '../json/json.js'
import { decode, decodePercent, MOST_DEPTH, SHORTEST_VALUE, ValueFinder } from './value-finder.js'

export const WITHHELD = '[withheld: this tells data of a token]'

/** Characters of an answer that are examined; a longer one is withheld. Those of its decodings, and of all secrets. */
const MOST_EXAMINED = 32 * 1024
const MOST_DECODED = 1024 * 1024
const MOST_SECRET = 256 * 1024
/** A part of a secret of so many letters and digits tells it: by the length of the secret. */
const PARTS = [
  { upTo: 64, width: 8, step: 1 },
  { upTo: 1024, width: 16, step: 1 },
  { upTo: Number.POSITIVE_INFINITY, width: 32, step: 16 },
]
const MOST_DIGITS = 8

const RUN = /\d(?:[ -]?\d)*/g
const DATE = /(?<!\d)(?:19|20)\d\d-[01]\d-[0-3]\d(?!\d)/g
const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/gi
const HEX = /(?:[\da-f]{2}[ :,-]{0,2}){6,}/gi
const HEX_PREFIX = /\\x|0x/gi
const ENTITY = /&#(x?)([\da-f]{1,6});?/gi
const LONG_BASE64 = /[A-Za-z0-9+/_-]{200,}/
/** The beginning of what gzip and zlib write. */
const COMPRESSED = /(?:^|\0)(?:\x1f\x8b|x[\x01\x5e\x9c\xda])/

type Leaves = Record<'names' | 'values', string[]>

/** Numbers are recognized by their length alone: an answer that lists guesses, and lacks the right one, would tell it. */
export class Secrets {
  readonly #finder = new ValueFinder()
  readonly #words = new Set<string>()
  /** The lengths of numbers that are words, and of the shortest run of digits that may be a part of a longer number. */
  readonly #lengths = new Set<number>()
  #run = Number.POSITIVE_INFINITY
  #hasDate = false
  #size = 0
  #decoded = 0

  /** Adds the texts and numbers in `data` that differ from what is shown of it. */
  add(data: unknown, shown?: unknown): void {
    if (data === shown) return
    if (typeof data === 'object' && data !== null) {
      const visible = isObject(shown) || Array.isArray(shown) ? (shown as Record<string, unknown>) : {}
      for (const [name, inner] of Object.entries(data)) this.add(inner, visible[name])
    } else if (typeof data === 'string' || typeof data === 'number') this.#addText(String(data))
  }

  /** `value` without what tells a secret. */
  scrub<T>(value: T): T | string {
    if (this.#size === 0) return value
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    if (text.length > MOST_EXAMINED || this.#size > MOST_SECRET) return WITHHELD
    this.#decoded = 0
    const leaves: Leaves = { names: [], values: [] }
    const scrubbed = this.#scrub(value, leaves)
    // A secret, or its encoding, may be in pieces.
    for (const pieces of [leaves.values, leaves.names]) {
      if (pieces.length < 2) continue
      const bytes = bytesOf(pieces.join(''))
      for (const each of [bytes, ...decode(bytes), ...decodeMore(bytes)])
        if (this.#hasPart(each, plain(textOf(each)))) return WITHHELD
    }
    return scrubbed as T
  }

  /** The members of `value`, without what tells a secret; none if too much does. */
  scrubMembers<T extends object>(value: T): T | Record<string, never> {
    const scrubbed = this.scrub(value)
    return typeof scrubbed === 'string' ? {} : scrubbed
  }

  /** The status of an answer, without its last two digits where these may be a secret. */
  scrubStatus(status: number): number {
    return this.#lengths.has(3) ? Math.floor(status / 100) * 100 : status
  }

  #addText(text: string): void {
    const letters = plain(text)
    this.#size += text.length
    if (/^\d+$/.test(letters)) {
      if (letters.length < SHORTEST_VALUE) this.#lengths.add(letters.length)
      else this.#run = Math.min(this.#run, letters.length, MOST_DIGITS)
      this.#hasDate ||= new RegExp(DATE).test(text)
    }
    if (letters.length < SHORTEST_VALUE) {
      this.#words.add(text.trim().toLowerCase())
      this.#finder.add('', text)
      return
    }
    const { width, step } = PARTS.find(({ upTo }) => letters.length <= upTo)!
    const last = Math.max(0, letters.length - width)
    for (let at = 0; at <= last; at += step) this.#finder.add('', letters.slice(at, at + width))
  }

  #scrub(value: unknown, leaves: Leaves): unknown {
    if (typeof value === 'string' || typeof value === 'number') {
      const shown = this.#tells(bytesOf(String(value)), MOST_DEPTH) ? WITHHELD : value
      leaves.values.push(String(shown))
      return shown
    }
    if (Array.isArray(value)) {
      const isBytes = value.length >= SHORTEST_VALUE && value.every((item) => item >= 0 && item < 256)
      if (isBytes && this.#tells(String.fromCharCode(...value), MOST_DEPTH)) return WITHHELD
      return value.map((item) => this.#scrub(item, leaves))
    }
    if (!isObject(value)) return value
    const entries = Object.entries(value).map(([name, inner], at) => {
      const shown = this.#tells(bytesOf(name), MOST_DEPTH) ? `${WITHHELD} ${at}` : name
      leaves.names.push(shown)
      return [shown, this.#scrub(inner, leaves)]
    })
    return Object.fromEntries(entries)
  }

  /** Whether `bytes`, as `latin1`, tell a secret, or cannot be examined. */
  #tells(bytes: string, depth: number): boolean {
    this.#decoded += bytes.length
    if (this.#decoded > MOST_DECODED || COMPRESSED.test(bytes)) return true
    const text = textOf(bytes)
    if (this.#hasPart(bytes, plain(text)) || this.#isWord(text) || this.#hasNumber(text)) return true
    if (LONG_BASE64.test(bytes) && !/^[\da-f]+$/i.test(bytes) && isBinary(bytes)) return true
    if (depth === 0) return false
    for (const decoded of [...decode(bytes), ...decodeMore(bytes)])
      if (this.#tells(decoded, depth - 1)) return true
    return false
  }

  #hasPart(bytes: string, letters: string): boolean {
    const forms = [bytes, bytesOf(letters), bytesOf([...letters].reverse().join(''))]
    return forms.some((each) => this.#finder.find(each, 0).size > 0)
  }

  #isWord(text: string): boolean {
    if (this.#words.size === 0) return false
    if (this.#words.has(text.trim().toLowerCase())) return true
    const words = text.toLowerCase().split(/[^\p{L}\p{N}]+/u)
    return words.some(
      (word) => this.#words.has(word) || (/^\d+$/.test(word) && this.#lengths.has(word.length)),
    )
  }

  #hasNumber(text: string): boolean {
    if (this.#run === Number.POSITIVE_INFINITY) return false
    const others = (this.#hasDate ? text : text.replaceAll(DATE, ' ')).replaceAll(UUID, ' ')
    const runs = others.match(RUN) ?? []
    return runs.some((run) => run.length >= this.#run && run.replaceAll(/\D/g, '').length >= this.#run)
  }
}

/** The letters and digits of a text, in one spelling. */
function plain(text: string): string {
  return text
    .replaceAll(/[\0-/:-@[-`{-\x7f\ufffd]+/g, ' ')
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '')
}

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function textOf(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString()
}

function isBinary(text: string): boolean {
  return /[\x00-\x08\x0e-\x1f]/.test(Buffer.from(text, 'base64').toString('latin1'))
}

function* decodeMore(bytes: string): Generator<string> {
  const runs = bytes.replaceAll(HEX_PREFIX, '').match(HEX)
  if (runs !== null)
    yield runs
      .map((run) => Buffer.from(run.replaceAll(/[^\da-f]/gi, ''), 'hex').toString('latin1'))
      .join('\0')
  if (bytes.includes('=')) yield decodePercent(bytes.replaceAll('=', '%'))
  if (bytes.includes('&#')) yield bytes.replaceAll(ENTITY, readEntity)
}

function readEntity(entity: string, isHex: string, code: string): string {
  const point = Number.parseInt(code, isHex === '' ? 10 : 16)
  return point <= 0x10ffff ? bytesOf(String.fromCodePoint(point)) : entity
}
