/** Replaces the expressions in the request of a proxied call. All other bytes are passed on unchanged. */
import { invalid } from '../../errors.js'
import { checkCount, checkOutputs } from '../expression/budget.js'
import { textOf } from '../expression/filter.js'
import { findTexts } from '../json/find-texts.js'
import { isDeep, MAX_JSON_DEPTH } from '../json/json.js'
import { type HeaderMap, isJsonType, mediaTypeOf, readJsonBody, textOfBody } from './code-answer.js'

/** `path`: the part below the path of the operation. `query`: without the question mark. */
export interface ProxyRequest {
  method: string
  path: string
  query: string
  headers: HeaderMap
  body: Uint8Array
}

/** The texts with expressions, or the values that replace these texts, by their place in the request. */
export interface ProxyDocument<T = string> {
  path: readonly T[]
  query: readonly T[]
  headers: Readonly<Record<string, T>>
  body: readonly T[]
}

type Piece = string | { expression: string; at: string }
type Write = (value: unknown) => string
/** If the end of an expression is missing, matches the rest of the text, which is then an invalid expression. */
const ENCODED = /(?:\{|%7b){2}.*?(?:(?:\}|%7d){2}|$)/gis
/**
 * The limit for the characters that are inserted into the URL and the form together. Encoding more characters would
 * delay other requests.
 */
const MAX_ENCODED = 2 * 1024 * 1024
const BRACES = /(?:\{|\\u007b){2}/i
const JSON_STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/gs
const HEADER_VALUE = /^[\t\x20-\x7e]*$/

/**
 * `document` is undefined if the request contains no expressions. `places`: maps each text to its path, such as
 * `body.card.number` or `query.q`. `fill` throws if a value cannot be inserted.
 * @throws CofferError `validation` for an invalid expression, or `too_much_work`
 */
export function findTemplate(request: ProxyRequest) {
  const encode = createEncoder()
  const path = splitEncoded(request.path, 'path', decodeURIComponent)
  const query = splitEncoded(request.query, 'query', decodeForm)
  const [body, writeBody] = splitBody(request, encode)
  const headers = Object.fromEntries(
    Object.entries(request.headers).filter(([, text]) => text.includes('{{')),
  )
  const places = new Map<string, string>()
  for (const piece of [...path, ...query]) addPlace(places, piece)
  findTexts(headers, 'headers', places)
  for (const piece of body) addPlace(places, piece)
  if (places.size === 0) return { document: undefined, places, fill: () => request }
  const fill = (values: ProxyDocument<unknown>): ProxyRequest => ({
    method: request.method,
    path: join(path, values.path, (value) => encode(value, 'path')),
    query: join(query, values.query, (value) => encode(value, 'query')),
    headers: { ...request.headers, ...toHeaders(values.headers) },
    body:
      values.body.length === 0 ? request.body : new TextEncoder().encode(join(body, values.body, writeBody)),
  })
  const [inPath, inQuery, inBody] = [path, query, body].map((pieces) =>
    pieces.flatMap((piece) => (typeof piece === 'string' ? [] : piece.expression)),
  )
  return { document: { path: inPath!, query: inQuery!, headers, body: inBody! }, places, fill }
}

/** A segment such as `..` could lead to a place outside the path of the destination. */
export function leadsElsewhere(path: string): boolean {
  return path.split(/[/\\]|%2f|%5c/i).some((segment) => /^(?:\.|%2e){1,2}(?:(?:;|%3b).*)?$/i.test(segment))
}

function splitBody(
  { headers, body }: ProxyRequest,
  encode: (value: unknown, place: string) => string,
): [Piece[], Write] {
  const type = mediaTypeOf(headers)
  const isForm = type === 'application/x-www-form-urlencoded'
  const text = mayHaveExpression(body, isForm) ? textOfBody(headers, body) : undefined
  if (text === undefined) return [[], textOf]
  if (isForm) return [splitEncoded(text, 'body', decodeForm), (value) => encode(value, 'body')]
  const parsed = readJsonBody(headers, text)
  if (parsed === undefined) {
    if (isJsonType(type)) throw invalid('body', 'is not valid JSON')
    return [text.includes('{{') ? [{ expression: text, at: 'body' }] : [], textOf]
  }
  if (isDeep(parsed)) throw invalid('body', `is nested more than ${MAX_JSON_DEPTH} levels deep`)
  const found = findTexts(parsed, 'body', new Map())
  checkOutputs(found.keys())
  return [splitJson(text, found), (value) => JSON.stringify(value)]
}

/** Searches the bytes, so that a body without an expression is not decoded. */
function mayHaveExpression(body: Uint8Array, isForm: boolean): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  // In JSON, a brace can also be written as \u007b.
  if (bytes.includes('{{') || bytes.includes('\\u007')) return true
  return isForm && /(?:\{|%7b){2}/i.test(bytes.toString('latin1'))
}

function splitJson(text: string, places: ReadonlyMap<string, string>): Piece[] {
  const COLON = /\s*:/y
  const pieces: Piece[] = []
  let from = 0
  for (const { 0: literal, index } of text.matchAll(JSON_STRING)) {
    const end = index + literal.length
    COLON.lastIndex = end
    if (!BRACES.test(literal) || COLON.test(text)) continue
    const expression = JSON.parse(literal) as string
    const at = places.get(expression)
    if (at === undefined) continue
    pieces.push(text.slice(from, index), { expression, at })
    from = end
  }
  return [...pieces, text.slice(from)]
}

function splitEncoded(text: string, place: string, decode: (text: string) => string): Piece[] {
  const pieces: Piece[] = []
  let from = 0
  let at = place
  for (const { 0: found, index } of text.matchAll(ENCODED)) {
    const before = text.slice(from, index)
    const pair = before.lastIndexOf('&') + 1
    // Errors in all expressions of a value are reported under the name of the parameter.
    if (decode === decodeForm && (pair > 0 || from === 0))
      at = [place, ...before.slice(pair).split('=').slice(0, -1)].join('.')
    try {
      pieces.push(before, { expression: decode(found), at })
    } catch {
      throw invalid(place, 'has an expression that is not percent-encoded UTF-8')
    }
    from = index + found.length
    checkCount(pieces.length / 2)
  }
  return [...pieces, text.slice(from)]
}

function decodeForm(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

function addPlace(places: Map<string, string>, piece: Piece): void {
  if (typeof piece === 'object' && !places.has(piece.expression)) places.set(piece.expression, piece.at)
}

function join(pieces: readonly Piece[], values: readonly unknown[], write: Write): string {
  let next = 0
  return pieces.map((piece) => (typeof piece === 'string' ? piece : write(values[next++]))).join('')
}

function createEncoder(): (value: unknown, place: string) => string {
  let left = MAX_ENCODED
  return (value, place) => {
    const text = textOf(value)
    left -= text.length
    if (left < 0)
      throw invalid(
        place,
        `can have values of at most ${MAX_ENCODED.toLocaleString('en')} characters in total`,
      )
    try {
      return encodeURIComponent(text)
    } catch {
      throw invalid(place, 'cannot have a value with half of a surrogate pair')
    }
  }
}

export function toHeaders(values: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries = Object.entries(values).map(([name, value]) => {
    const text = textOf(value)
    if (HEADER_VALUE.test(text)) return [name, text]
    throw invalid(`headers.${name}`, 'can only have values that are one line of ASCII')
  })
  return Object.fromEntries(entries)
}

/** Returns the headers, and repeats each header under its spellings in `texts`, such as `X-Date`. */
export function withSpellings(headers: HeaderMap, texts: readonly string[]): HeaderMap {
  const words = texts.flatMap((text) => text.match(/[\w-]+/g) ?? [])
  const known = [...Object.keys(headers), ...words].filter((word) =>
    Object.hasOwn(headers, word.toLowerCase()),
  )
  return Object.fromEntries(known.map((word) => [word, headers[word.toLowerCase()]!]))
}
