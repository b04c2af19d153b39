/**
 * The gate every untrusted JSON text passes, and the one canonical spelling of a JSON value. It knows nothing of
 * what the JSON is for; whoever calls says how the text is named in messages.
 */
import { CofferError } from '../errors.js'

/** Deepest nesting of arrays and objects that is taken. */
export const MAX_JSON_DEPTH = 64

export interface JsonOptions {
  /** How messages name the text: `the request body`, `--data`. */
  source?: string
  /** `usage` when a person typed the text on a command line. */
  code?: 'validation' | 'usage'
}

/**
 * Reads one JSON value (RFC 8259), stricter than `JSON.parse`: refuses repeated names, names that reach prototypes,
 * nesting beyond {@link MAX_JSON_DEPTH}, numbers that would change their value, lone surrogates and a byte order mark.
 * Linear in time; memory is bounded by the text.
 * @throws CofferError `validation` (or `options.code`) naming line and column (both from 1, in UTF-16 units) and what
 * was expected, never the text itself.
 */
export function parseJson(text: string, options: JsonOptions = {}): unknown {
  const fault = findFault(text)
  if (fault === undefined) return JSON.parse(text)
  const source = options.source ?? 'the JSON text'
  throw new CofferError(
    options.code ?? 'validation',
    `${source} is refused ${place(text, fault.at)}: ${fault.reason}`,
  )
}

/**
 * Decodes UTF-8; a byte order mark stays in the text, where {@link parseJson} refuses it.
 * @throws CofferError `validation` when the bytes are not UTF-8.
 */
export function decodeUtf8(bytes: Uint8Array, source = 'the text'): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new CofferError(
      'validation',
      `${source} is not UTF-8; encode it as UTF-8 without a byte order mark`,
      {
        cause,
      },
    )
  }
}

/** JSON text with the names of every object in code unit order and no white space: equal values, equal texts. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const members: string[] = []
  for (const name of Object.keys(value).sort()) {
    const member = (value as Record<string, unknown>)[name]
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${canonicalJson(member)}`)
  }
  return `{${members.join(',')}}`
}

/**
 * The number a decimal text means, or undefined when a double would change it (2^53 + 1, 1e400, more digits than fit).
 * Takes JSON's number grammar, and leading zeros.
 */
export function exactNumber(text: string): number | undefined {
  if (text.length > MAX_NUMBER_LENGTH || !NUMBER_TEXT.test(text)) return undefined
  const value = Number(text)
  if (text.length <= 15 && !/[eE]/.test(text)) return value
  return Number.isFinite(value) && significant(text) === significant(String(value)) ? value : undefined
}

// ---------------------------------------------------------------- the scan

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const NUMBER_TEXT = /^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/
const WORD = /true|false|null/y
const PLAIN = /[^"\\\u0000-\u001f]*/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const LONE_SURROGATE = /\p{Cs}/u
/** A double has at most 767 significant digits; longer texts are refused unread. */
const MAX_NUMBER_LENGTH = 1100

interface Fault {
  at: number
  reason: string
}

/** An open object or array. `isSuspect`: it is the value of a property named `constructor`. */
interface Frame {
  names?: Set<string>
  isSuspect: boolean
}

type Expected = 'value' | 'item or end' | 'name' | 'name or end' | 'next'

interface Scan {
  readonly text: string
  at: number
  expected: Expected
  readonly stack: Frame[]
  lastName: string
}

function findFault(text: string): Fault | undefined {
  if (text.charCodeAt(0) === 0xfeff)
    return { at: 0, reason: 'it starts with a byte order mark; send plain UTF-8' }
  const lone = text.search(LONE_SURROGATE)
  if (lone >= 0) return { at: lone, reason: 'half of a surrogate pair stands alone' }
  const scan: Scan = { text, at: 0, expected: 'value', stack: [], lastName: '' }
  for (;;) {
    skipSpace(scan)
    if (scan.at === text.length) return unfinished(scan)
    const reason = step(scan)
    if (reason !== undefined) return { at: scan.at, reason }
  }
}

function unfinished(scan: Scan): Fault | undefined {
  if (scan.expected === 'next' && scan.stack.length === 0) return undefined
  return { at: scan.at, reason: `the text ends too early; ${expectation(scan)}` }
}

/** Takes one token, or says why it is refused, leaving `at` on the place. */
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
  if (name === '__proto__' || (frame.isSuspect && name === 'prototype')) {
    return 'a property of this name could reach object prototypes and is never taken'
  }
  return undefined
}

function takeValue(scan: Scan): string | undefined {
  const character = scan.text[scan.at]
  if (character === '{' || character === '[') return open(scan, character)
  if (character === ']' && scan.expected === 'item or end') return close(scan)
  const reason = character === '"' ? takeString(scan) : takeScalar(scan)
  scan.expected = 'next'
  return reason
}

function takeScalar(scan: Scan): string | undefined {
  const { text, at } = scan
  const number = match(NUMBER, text, at)
  if (number !== undefined) {
    if (exactNumber(number) === undefined) {
      return 'this number cannot be kept exactly (integers beyond 2^53, too many digits, too large); send it as a string'
    }
    scan.at += number.length
    return undefined
  }
  const word = match(WORD, text, at)
  if (word === undefined) return expectation(scan)
  scan.at += word.length
  return undefined
}

/** `at` stands on the opening quote, and afterwards behind the closing one. */
function takeString(scan: Scan): string | undefined {
  const { text, at: from } = scan
  let isEscaped = false
  scan.at++
  for (;;) {
    scan.at += match(PLAIN, text, scan.at)!.length
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
  if (!isEscaped || !LONE_SURROGATE.test(JSON.parse(text.slice(from, scan.at)))) return undefined
  scan.at = from
  return 'half of a surrogate pair stands alone in this string'
}

function open(scan: Scan, bracket: '{' | '['): string | undefined {
  if (scan.stack.length === MAX_JSON_DEPTH) return `nested more than ${MAX_JSON_DEPTH} levels deep`
  const parent = scan.stack.at(-1)
  const isSuspect = parent?.names !== undefined && scan.lastName === 'constructor'
  scan.stack.push(bracket === '{' ? { names: new Set(), isSuspect } : { isSuspect: false })
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

function place(text: string, at: number): string {
  const before = text.slice(0, at).split('\n')
  return `at line ${before.length}, column ${before.at(-1)!.length + 1}`
}

/** Digits without zeros around them, and the power of ten of the last one: equal for equal decimal values. */
function significant(text: string): string {
  const unsigned = text.startsWith('-') ? text.slice(1) : text
  const [mantissa = '', power = '0'] = unsigned.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  let first = 0
  let end = digits.length
  while (first < end && digits[first] === '0') first++
  while (end > first && digits[end - 1] === '0') end--
  return first === end
    ? '0'
    : `${digits.slice(first, end)}e${Number(power) - fraction.length + digits.length - end}`
}
