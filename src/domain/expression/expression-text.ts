/** Splits an expression string into text and outputs: `text {{ object | filter }} text`. */
import { FILTERS } from './filters.js'
import { syntaxError } from './syntax-error.js'

/** An id of 400 characters of two UTF-16 units each, and some white space. */
const MAX_REFERENCE_LENGTH = 1000

/** An output: the positions of its content in the string. */
export interface OutputPiece {
  from: number
  to: number
  /** In a detokenization: the token id; `from` is then after it. */
  reference?: string
  /** In a detokenization: whether the value is the token object instead of its data. */
  isWhole?: boolean
  /** The position of a comma that separates the value from the first filter. */
  comma?: number
}

type Piece = OutputPiece | { text: string }

export function isOutput(piece: Piece): piece is OutputPiece {
  return !('text' in piece)
}

/** `{{-` and `-}}` remove white space. @throws CofferError `validation` for tags and for unclosed braces or quotes */
export function splitExpression(text: string): Piece[] {
  const pieces: Piece[] = []
  let plainFrom = 0
  let isTrimming = false
  const addText = (to: number, trimsEnd: boolean) => {
    let plain = text.slice(plainFrom, to)
    if (isTrimming) plain = plain.trimStart()
    if (trimsEnd) plain = plain.trimEnd()
    if (plain !== '') pieces.push({ text: plain })
  }
  for (let at = nextOpening(text, 0); at >= 0; at = nextOpening(text, plainFrom)) {
    if (text[at + 1] === '%') throw syntaxError(text, at, 'tags ({% … %}) are not supported; use {{ … }}')
    const end = findClosing(text, at, at + 2)
    const trimsBefore = text[at + 2] === '-'
    const trimsAfter = text[end - 1] === '-' && end - 1 > at + 2
    addText(at, trimsBefore)
    const from = at + (trimsBefore ? 3 : 2)
    pieces.push({ from, to: trimsAfter ? end - 1 : end, ...findComma(text, from, end) })
    plainFrom = end + 2
    isTrimming = trimsAfter
  }
  addText(text.length, false)
  return pieces
}

/**
 * Splits a string of a detokenization, in which an output is `{{ <token id> | filters }}` or `{{ token: <token id> |
 * filters }}`. The id ends at the first `|` or `}}`, which no id contains, or at a comma before the name of a filter.
 * Tags are ordinary text here.
 * @throws CofferError `validation` for unclosed braces or quotes, and for an output without the id of a token.
 */
export function splitDetokenization(text: string): Piece[] {
  const pieces: Piece[] = []
  let plainFrom = 0
  for (let at = text.indexOf('{{'); at >= 0; at = text.indexOf('{{', plainFrom)) {
    const bar = findReferenceEnd(text, at + 2)
    const end = findClosing(text, at, bar)
    const reference = readReference(text, at + 2, bar)
    if (at > plainFrom) pieces.push({ text: text.slice(plainFrom, at) })
    pieces.push({ from: bar, to: end, ...reference, ...(text[bar] === ',' && { comma: bar }) })
    plainFrom = end + 2
  }
  if (plainFrom < text.length) pieces.push({ text: text.slice(plainFrom) })
  return pieces
}

/** Replaces the `comma` of each piece by `|`. */
export function replaceCommas(text: string, pieces: readonly Piece[]): string {
  let replaced = ''
  let from = 0
  for (const piece of pieces) {
    if (!isOutput(piece) || piece.comma === undefined) continue
    replaced += `${text.slice(from, piece.comma)}|`
    from = piece.comma + 1
  }
  return replaced + text.slice(from)
}

/** Beginnings of references that name something else than a token. */
const UNSUPPORTED_REFERENCE = /^(?:token_intent:|encrypted(?::|$))/

function readReference(text: string, from: number, to: number): { reference: string; isWhole?: true } {
  const given = text.slice(from, to).trim()
  if (UNSUPPORTED_REFERENCE.test(given))
    throw syntaxError(text, text.indexOf(given, from), 'only tokens can be detokenized: give a token id')
  const isWhole = given.startsWith('token:')
  const reference = isWhole ? given.slice('token:'.length).trim() : given
  if (reference === '') throw syntaxError(text, from, 'expected a token id')
  return isWhole ? { reference, isWhole } : { reference }
}

/** A comma before any `|` and outside quotes; values contain none. */
function findComma(text: string, from: number, to: number): { comma?: number } {
  for (let at = from; at < to && text[at] !== '|'; at++) {
    if (text[at] === ',') return { comma: at }
    if (text[at] === '"' || text[at] === "'") at = findQuote(text, at)
  }
  return {}
}

function nextOpening(text: string, from: number): number {
  const output = text.indexOf('{{', from)
  const tag = text.indexOf('{%', from)
  if (output < 0 || tag < 0) return Math.max(output, tag)
  return Math.min(output, tag)
}

/** The position of the `}}` that closes the output opened at `open`. Searches from `from` and skips quoted text. */
function findClosing(text: string, open: number, from: number): number {
  for (let at = from; at >= 0 && at < text.length; at++) {
    if (text.startsWith('}}', at)) return at
    if (text[at] === '"' || text[at] === "'") at = findQuote(text, at)
  }
  throw syntaxError(text, open, 'this "{{" has no closing "}}"')
}

function findQuote(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === text[open]) return at
  }
  throw syntaxError(text, open, 'this quote is not closed')
}

const FILTER_AFTER_COMMA = /,[ \t\r\n]*([a-z0-9_]{1,40})[ \t\r\n]*(?=[:|]|\}\})/y

/** The position of the `|`, `}}` or comma after a token id, searched no further than the longest id. */
function findReferenceEnd(text: string, from: number): number {
  for (let at = from; at < text.length && at < from + MAX_REFERENCE_LENGTH; at++) {
    if (text[at] === '|' || text.startsWith('}}', at)) return at
    if (text[at] === ',' && isFilterNext(text, at)) return at
  }
  return -1
}

function isFilterNext(text: string, comma: number): boolean {
  FILTER_AFTER_COMMA.lastIndex = comma
  const name = FILTER_AFTER_COMMA.exec(text)?.[1]
  return name !== undefined && FILTERS.has(name)
}
