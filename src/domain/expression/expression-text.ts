/** Splits an expression string into text and outputs: `text {{ object | filter }} text`. */
import { CofferError } from '../../errors.js'

/** An id of 400 characters of two UTF-16 units each, and some white space. */
const MAX_REFERENCE_LENGTH = 1000

/** An output: the positions of its content in the string. */
export interface OutputPiece {
  from: number
  to: number
  /** In a detokenization: the token id; `from` is then after it. */
  reference?: string
}

export type Piece = OutputPiece | { text: string }

export function isOutput(piece: Piece): piece is OutputPiece {
  return !('text' in piece)
}

/** An error with its column, counted in characters from 1. */
export function syntaxError(text: string, at: number, reason: string, cause?: unknown): CofferError {
  const message = `${reason} (at column ${[...text.slice(0, at)].length + 1})`
  return new CofferError('validation', message, cause === undefined ? {} : { cause })
}

/**
 * Splits an expression string. `{{-` and `-}}` remove adjacent white space, as in Liquid.
 * @throws CofferError `validation` for tags and for unclosed braces or quotes.
 */
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
    pieces.push({ from: at + (trimsBefore ? 3 : 2), to: trimsAfter ? end - 1 : end })
    plainFrom = end + 2
    isTrimming = trimsAfter
  }
  addText(text.length, false)
  return pieces
}

/**
 * Splits a string of reactor arguments, in which an output is `{{ <token id> | filters }}`. The id ends at the first `|`
 * or `}}`, which no id contains. Tags are ordinary text here.
 * @throws CofferError `validation` for unclosed braces or quotes, and for an output without an id.
 */
export function splitDetokenization(text: string): Piece[] {
  const pieces: Piece[] = []
  let plainFrom = 0
  for (let at = text.indexOf('{{'); at >= 0; at = text.indexOf('{{', plainFrom)) {
    const bar = findReferenceEnd(text, at + 2)
    const end = findClosing(text, at, bar)
    const reference = text.slice(at + 2, bar).trim()
    if (reference === '') throw syntaxError(text, at + 2, 'expected a token id')
    if (at > plainFrom) pieces.push({ text: text.slice(plainFrom, at) })
    pieces.push({ from: bar, to: end, reference })
    plainFrom = end + 2
  }
  if (plainFrom < text.length) pieces.push({ text: text.slice(plainFrom) })
  return pieces
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

/** The position of the `|` or `}}` after a token id, searched no further than the longest id. */
function findReferenceEnd(text: string, from: number): number {
  for (let at = from; at < text.length && at < from + MAX_REFERENCE_LENGTH; at++) {
    if (text[at] === '|' || text.startsWith('}}', at)) return at
  }
  return -1
}
