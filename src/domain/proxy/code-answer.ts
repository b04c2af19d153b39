import { validationError } from '../../errors.js'
import { decodeUtf8, isObject, tryJson } from '../json/json.js'

/** The keys are header names in lower case. */
export type HeaderMap = Readonly<Record<string, string>>

/** A `body` that is text is sent unchanged. Any other `body` is sent as JSON. */
export interface CodeAnswer {
  statusCode: number
  headers: HeaderMap
  body?: unknown
}

/** Headers of one connection (RFC 9110, 7.6.1), and the length of the body, which the sender sets itself. */
const OF_CONNECTION: ReadonlySet<string> = new Set(
  `connection content-length keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
  transfer-encoding upgrade`.split(/\s+/),
)
/** Headers that would change how a browser handles other pages of this server. */
const OF_SERVER =
  /^(?:access-control-.*|alt-svc|clear-site-data|nel|report-to|service-worker-allowed|set-cookie|strict-transport-security)$/

const NOT_PASSED: readonly string[] = ['host', 'accept-encoding', 'expect']

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const MAX_HEADER_CHARACTERS = 8192

export function passHeaders(
  headers: HeaderMap,
  prefix: string,
  isDropped: (name: string) => boolean = () => false,
): Record<string, string> {
  const named = headers.connection?.split(',').map((name) => name.trim().toLowerCase()) ?? []
  const own = `${prefix.toLowerCase()}-`
  const passed: Record<string, string> = {}
  for (const name of Object.keys(headers))
    if (!OF_CONNECTION.has(name) && !named.includes(name) && !name.startsWith(own) && !isDropped(name))
      passed[name] = headers[name]!
  return passed
}

export function passRequestHeaders(headers: HeaderMap, prefix: string): Record<string, string> {
  return passHeaders(headers, prefix, (name) => NOT_PASSED.includes(name))
}

export function passAnswerHeaders(headers: HeaderMap, prefix: string): Record<string, string> {
  return passHeaders(headers, prefix, (name) => OF_SERVER.test(name))
}

export function maySet(name: string, direction: 'request' | 'response', prefix = 'svc'): boolean {
  const pass = direction === 'request' ? passRequestHeaders : passAnswerHeaders
  return NAME.test(name) && Object.keys(pass({ [name.toLowerCase()]: '' }, prefix)).length > 0
}

export function readCodeAnswer(given: unknown, prefix: string): CodeAnswer {
  if (!isObject(given)) throw validationError('res must be an object')
  const { statusCode, headers, body } = given
  const status = statusCode ?? 200
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599)
    throw validationError('res.statusCode must be an integer from 200 to 599')
  const passed = passAnswerHeaders(readHeaders(headers ?? {}, 'res.headers'), prefix)
  return { statusCode: status, headers: passed, ...(body === undefined ? {} : { body }) }
}

export function readHeaders(given: unknown, named: string): Record<string, string> {
  if (!isObject(given)) throw validationError(`${named} must be an object`)
  let characters = 0
  const entries = Object.entries(given).map(([name, given]): [string, string] => {
    const value = ['number', 'boolean'].includes(typeof given) ? String(given) : given
    if (!NAME.test(name)) throw validationError(`${named} has a name that no header can have`)
    if (typeof value !== 'string' || !VALUE.test(value))
      throw validationError(`${named}.${name} must be text without line breaks, in Latin-1`)
    characters += name.length + value.length
    return [name.toLowerCase(), value.trim()]
  })
  if (characters > MAX_HEADER_CHARACTERS)
    throw validationError(`${named} must have at most ${MAX_HEADER_CHARACTERS} characters`)
  return Object.fromEntries(entries)
}

export function mediaTypeOf({ 'content-type': type }: HeaderMap): string | undefined {
  return type?.replace(/;.*/s, '').trim().toLowerCase()
}

export function textOfBody(headers: HeaderMap, body: Uint8Array): string | undefined {
  const { 'content-encoding': encoding = 'identity' } = headers
  if (encoding.trim().toLowerCase() !== 'identity') return undefined
  try {
    return decodeUtf8(body)
  } catch {
    return undefined
  }
}

export function isJsonType(type: string | undefined): boolean {
  return type !== undefined && /^application\/(?:[\w.+-]+\+)?json$/.test(type)
}

/**
 * A body without a content type is JSON if the body begins like an object or array. Returns undefined if the body is
 * not JSON.
 */
export function readJsonBody(headers: HeaderMap, text: string): unknown {
  const type = mediaTypeOf(headers)
  const isJson = type === undefined ? /^\s*[[{]/.test(text) : isJsonType(type)
  return isJson ? tryJson(text) : undefined
}

export function readBodyValue(headers: HeaderMap, text: string): unknown {
  return text === '' ? null : (readJsonBody(headers, text) ?? text)
}
