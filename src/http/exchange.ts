import { STATUS_CODES } from 'node:http'
import type { HeaderMap } from '../domain/proxy/code-answer.js'
import { CofferError, type Problem, toProblem } from '../errors.js'
import { EncodedJson } from '../framework/limits.js'
import type { OnLeave, Outbound } from '../framework/ports/outbound.js'
import type { ByteLease } from './byte-budget.js'

/** An object of one request. Steps on its way may replace members. */
export interface HttpRequest {
  method: string
  /** The request target: path and query, or an absolute URL. */
  target: string
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** The address of the client; absent without a socket. */
  client?: string
  /** Counts the bytes of body and response; absent without a socket. */
  lease?: ByteLease
  /** Reads the body; undefined if it is longer than `limitBytes`. Call at most once. */
  readBody(limitBytes: number): Promise<Uint8Array | undefined>
  /** Tells when the client has left; absent where that is not known. */
  onLeave?: OnLeave | undefined
  outboundWrapper?: ((outbound: Outbound) => Outbound) | undefined
}

/** The names of `headers` are in lower case. */
export interface HttpResponse {
  status: number
  headers: Record<string, string>
  body: string
  bytes?: Uint8Array
  /** Instead of a body: its bytes as they arrive, of any length. */
  stream?: AsyncIterable<Uint8Array>
  /** The connection is cut: before anything is sent, or after so many bytes of the body. */
  cutAt?: 'start' | number
  /** Nobody but the caller may see the body, although it is a problem document: {@link CofferError.mayTellData}. */
  mayTellData?: boolean
}

export const HEALTH_PATH = '/healthz'

/** The methods that some path takes, as the header `Allow` lists them. */
export const ALL_METHODS = 'DELETE, GET, HEAD, PATCH, POST, PUT'

/** In every answer: no caching, and no guessing of the content type. */
const COMMON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

export const JSON_TYPE = 'application/json; charset=utf-8'
const TEXT_TYPE = 'text/plain; charset=utf-8'
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

export function answerText(status: number, contentType: string, body: string): HttpResponse {
  return { status, headers: { 'content-type': contentType, ...COMMON_HEADERS }, body }
}

/** `result` as JSON; an empty body if it is undefined. */
export function answerResult(status: number, result: unknown): HttpResponse {
  if (status === 204 || result === undefined) return { status, headers: { ...COMMON_HEADERS }, body: '' }
  if (result instanceof EncodedJson) return answerText(status, JSON_TYPE, result.text)
  return answerText(status, JSON_TYPE, JSON.stringify(result))
}

/** Statuses whose answers have no body (RFC 9110, 15.3.5, 15.3.6, 15.4.5). */
const WITHOUT_BODY = [204, 205, 304]

/** An answer of code or another server. A browser gives such a page no rights on our other pages (`sandbox`). */
export function answerGiven(status: number, headers: HeaderMap, body: unknown): HttpResponse {
  const isText = typeof body === 'string'
  const isBare = body === undefined || WITHOUT_BODY.includes(status)
  return {
    status,
    headers: {
      ...(isBare ? {} : { 'content-type': isText ? TEXT_TYPE : JSON_TYPE }),
      ...COMMON_HEADERS,
      ...headers,
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
    },
    body: isBare ? '' : isText ? body : JSON.stringify(body),
  }
}

/** The problem document of `error`, in the content type that `accept` requests, or inside what `wrap` makes of it. */
export function answerProblem(
  error: unknown,
  traceId: string,
  accept?: string,
  wrap?: (problem: Problem) => object,
): HttpResponse {
  const problem = toProblem(error, traceId)
  const isPlain = wrap !== undefined || wantsPlainJson(accept)
  const body = JSON.stringify(wrap === undefined ? problem : wrap(problem))
  const answer = answerText(problem.status, isPlain ? JSON_TYPE : PROBLEM_TYPE, body)
  if (error instanceof CofferError && error.mayTellData) answer.mayTellData = true
  return answer
}

function wantsPlainJson(accept: string | undefined): boolean {
  if (accept === undefined || !accept.toLowerCase().includes('application/json')) return false
  const ranges = accept.split(',').map((range) => range.split(';')[0]!.trim().toLowerCase())
  return (
    ranges.includes('application/json') &&
    !ranges.some((range) => range === 'application/problem+json' || range.includes('*'))
  )
}

/** A value that stays in the line of its header. */
const VALUE = /^[\t\x20-\x7e]*$/

/** The status line and these headers; undefined if one of them would not stay in its line. */
export function formatHead(status: number, headers: HttpResponse['headers']): string | undefined {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (const name in headers) {
    if (!VALUE.test(headers[name]!)) return undefined
    text += `${name}: ${headers[name]}\r\n`
  }
  return text
}
