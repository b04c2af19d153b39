/** Finds syntax errors and unsafe constructs, which `JSON.parse` would accept, in a JSON text without building its value. */
import { exactNumber } from './json-number.js'

export const MAX_JSON_DEPTH = 64

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const WORD = /true|false|null/y
const PLAIN = /[^"\\\u0000-\u001f]*/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

interface Fault {
  at: number
  reason: string
}

/** An open object or array. `isConstructor`: it is the value of a property named `constructor`. */
interface Frame {
  names?: Set<string>
  isConstructor: boolean
}

type Expected = 'value' | 'item or end' | 'name' | 'name or end' | 'next'

interface Scan {
  readonly text: string
  /** Values and property names that the text may still have. */
  left: number
  at: number
  expected: Expected
  readonly stack: Frame[]
  lastName: string
}

/**
 * The first reason to refuse a JSON text, or undefined. Takes linear time. `mostValues` limits values and property names
 * together.
 */
export function findFault(text: string, mostValues = Number.POSITIVE_INFINITY): Fault | undefined {
  if (text.charCodeAt(0) === 0xfeff)
    return { at: 0, reason: 'it starts with a byte order mark; send plain UTF-8' }
  if (!text.isWellFormed())
    return { at: text.search(/\p{Cs}/u), reason: 'half of a surrogate pair stands alone' }
  const scan: Scan = { text, left: mostValues, at: 0, expected: 'value', stack: [], lastName: '' }
  for (;;) {
    skipSpace(scan)
    if (scan.at === text.length) {
      if (scan.expected === 'next' && scan.stack.length === 0) return undefined
      return { at: scan.at, reason: `the text ends too early; ${expectation(scan)}` }
    }
    const reason = step(scan)
    if (reason !== undefined) return { at: scan.at, reason }
    if (scan.left < 0)
      return { at: scan.at, reason: `it has more than ${mostValues} values and property names` }
  }
}

/** Consumes one token, or returns why it is refused; `at` then is its position. */
function step(scan: Scan): string | undefined {
  if (scan.expected === 'next') return takeSeparator(scan)
  if (scan.expected === 'name' || scan.expected === 'name or end') return takeName(scan)
  return takeValue(scan)
}

function takeSeparator(scan: Scan): string | undefined {
  const frame = scan.stack.at(-1)
  const character = scan.text[scan.at]
  if (frame === undefined) return expectation(scan)
  if (character === ',') {
    scan.at++
    scan.expected = frame.names === undefined ? 'value' : 'name'
    return undefined
  }
  if (character !== (frame.names === undefined ? ']' : '}')) return expectation(scan)
  return close(scan)
}

function takeName(scan: Scan): string | undefined {
  const frame = scan.stack.at(-1)!
  if (scan.text[scan.at] === '}' && scan.expected === 'name or end') return close(scan)
  if (scan.text[scan.at] !== '"') return expectation(scan)
  scan.left--
  const from = scan.at
  const reason = takeString(scan)
  if (reason !== undefined) return reason
  const raw = scan.text.slice(from, scan.at)
  const name = raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1)
  const refusal = refuseName(frame, name)
  if (refusal !== undefined) {
    scan.at = from
    return refusal
  }
  frame.names!.add(name)
  scan.lastName = name
  skipSpace(scan)
  if (scan.text[scan.at] !== ':') return 'expected ":" after the property name'
  scan.at++
  scan.expected = 'value'
  return undefined
}

function refuseName(frame: Frame, name: string): string | undefined {
  if (frame.names!.has(name)) return 'this property occurs twice in one object; keep one of them'
  if (name === '__proto__' || (frame.isConstructor && name === 'prototype'))
    return 'a property of this name could change object prototypes and is refused'
  return undefined
}

function takeValue(scan: Scan): string | undefined {
  const character = scan.text[scan.at]
  if (character === ']' && scan.expected === 'item or end') return close(scan)
  scan.left--
  if (character === '{' || character === '[') return open(scan, character)
  const reason = character === '"' ? takeString(scan) : takeScalar(scan)
  scan.expected = 'next'
  return reason
}

function takeScalar(scan: Scan): string | undefined {
  const { text, at } = scan
  const number = match(NUMBER, text, at)
  if (number !== undefined) {
    if (exactNumber(number) === undefined)
      return 'this number cannot be kept exactly (integers beyond 2^53, too many digits, too large); send it as a string'
    scan.at += number.length
    return undefined
  }
  const word = match(WORD, text, at)
  if (word === undefined) return expectation(scan)
  scan.at += word.length
  return undefined
}

/** Moves `at` from the opening quote to the position after the closing one. */
function takeString(scan: Scan): string | undefined {
  const { text, at: from } = scan
  let isEscaped = false
  scan.at++
  for (;;) {
    PLAIN.lastIndex = scan.at
    // Always matches, perhaps the empty text. Unlike `exec`, `test` allocates no array.
    PLAIN.test(text)
    scan.at = PLAIN.lastIndex
    const character = text[scan.at]
    if (character === '"') break
    if (character === undefined) return 'the text ends inside a string; expected a closing quote'
    if (character !== '\\') return 'control characters in a string must be written as escapes such as \\n'
    const escaped = match(ESCAPE, text, scan.at)
    if (escaped === undefined)
      return 'expected an escape: \\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hex digits'
    isEscaped = true
    scan.at += escaped.length
  }
  scan.at++
  if (!isEscaped || (JSON.parse(text.slice(from, scan.at)) as string).isWellFormed()) return undefined
  scan.at = from
  return 'half of a surrogate pair stands alone in this string'
}

function open(scan: Scan, bracket: '{' | '['): string | undefined {
  if (scan.stack.length === MAX_JSON_DEPTH) return `nested more than ${MAX_JSON_DEPTH} levels deep`
  const parent = scan.stack.at(-1)
  const isConstructor = parent?.names !== undefined && scan.lastName === 'constructor'
  scan.stack.push(bracket === '{' ? { names: new Set(), isConstructor } : { isConstructor: false })
  scan.expected = bracket === '{' ? 'name or end' : 'item or end'
  scan.at++
  return undefined
}

function close(scan: Scan): undefined {
  scan.stack.pop()
  scan.at++
  scan.expected = 'next'
}

function expectation(scan: Scan): string {
  if (scan.expected === 'value') return 'expected a JSON value (strings and names in double quotes)'
  if (scan.expected === 'item or end') return 'expected a JSON value or "]"'
  if (scan.expected === 'name') return 'expected a property name in double quotes'
  if (scan.expected === 'name or end') return 'expected a property name in double quotes or "}"'
  const frame = scan.stack.at(-1)
  if (frame === undefined) return 'expected nothing more after the value'
  return frame.names === undefined ? 'expected "," or "]"' : 'expected "," or "}"'
}

function skipSpace(scan: Scan): void {
  for (;;) {
    const code = scan.text.charCodeAt(scan.at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
    scan.at++
  }
}

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}
