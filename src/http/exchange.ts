import { STATUS_CODES } from 'node:http'
import type { HeaderMap } from '../domain/proxy/code-answer.js'
import type { Build } from '../domain/reactor/state.js'
import { CofferError, type Problem, toProblem } from '../errors.js'
import { type Content, piecesOf } from '../framework/content.js'
import { EncodedJson } from '../framework/limits.js'
import type { OnLeave, Outbound } from '../framework/ports/outbound.js'
import type { ByteLease } from './byte-budget.js'

export interface HttpRequest {
  method: string
  /** Path and query, or an absolute URL. */
  target: string
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** Whether the client uses TLS. */
  isSecure?: boolean
  /** Scheme and host of a request without a socket, which has no header Host. */
  origin?: string
  /** The IP address of the client. Absent without a socket. */
  client?: string
  /** Absent without a socket. */
  lease?: ByteLease
  /** Resolves with undefined if the body is longer than `limitBytes`. Call at most once. */
  readBody(limitBytes: number): Promise<Uint8Array | undefined>
  /**
   * Reads the body no faster than the caller takes the pieces. `streamBody` is absent if the body is in memory anyway.
   * Call at most once, and not after `readBody`.
   * @throws CofferError `too_large` if the body is longer than `limitBytes`
   */
  streamBody?(limitBytes: number): AsyncIterable<Uint8Array>
  onLeave?: OnLeave | undefined
  /** The outcome of the build of reactor code, if the control plane has set it. */
  provision?: Build | undefined
  outboundWrapper?: ((outbound: Outbound) => Outbound) | undefined
}

/** The names of `headers` are in lower case. */
export interface HttpResponse {
  status: number
  headers: Record<string, string>
  body: string
  bytes?: Uint8Array
  /** Replaces `body`. The size is not limited. */
  stream?: AsyncIterable<Uint8Array>
  /** The connection is closed before anything is sent (`start`), or after this number of bytes of the body. */
  cutAt?: 'start' | number
  mayTellData?: boolean
}

export const HEALTH_PATH = '/healthz'

export const ALL_METHODS = 'DELETE, GET, HEAD, PATCH, POST, PUT'

const COMMON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

export const JSON_TYPE = 'application/json; charset=utf-8'
const TEXT_TYPE = 'text/plain; charset=utf-8'
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

export function answerText(status: number, contentType: string, body: string): HttpResponse {
  return { status, headers: { 'content-type': contentType, ...COMMON_HEADERS }, body }
}

export function answerResult(status: number, result: unknown): HttpResponse {
  if (status === 204 || result === undefined) return { status, headers: { ...COMMON_HEADERS }, body: '' }
  if (result instanceof EncodedJson) return answerText(status, JSON_TYPE, result.text)
  return answerText(status, JSON_TYPE, JSON.stringify(result))
}

/** Statuses whose answers have no body (RFC 9110, 15.3.5, 15.3.6, 15.4.5). */
const WITHOUT_BODY = [204, 205, 304]

/**
 * Creates an answer that code or another server has written. If the body is a page, the policy `sandbox` gives the page
 * no rights on our other pages.
 */
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

export function answerContent(status: number, content: Content, isHead: boolean): HttpResponse {
  const length = content.size === undefined ? {} : { 'content-length': String(content.size) }
  const headers = {
    'content-type': content.type,
    ...length,
    ...COMMON_HEADERS,
    'content-security-policy': 'sandbox',
  }
  return { status, headers, body: '', stream: isHead ? piecesOf('') : content }
}

/**
 * The content type is plain JSON if `accept` allows JSON but no problem document, or if `wrap` is given. `wrap` puts
 * the problem document into another object.
 */
export function answerProblem(
  error: unknown,
  traceId: string,
  accept?: string,
  wrap?: (problem: Problem) => object,
): HttpResponse {
  const problem = toProblem(error, traceId)
  const isPlain = wrap !== undefined || wantsPlainJson(accept)
  const body = JSON.stringify(wrap === undefined ? formOf(error, problem) : wrap(problem))
  const answer = answerText(problem.status, isPlain ? JSON_TYPE : PROBLEM_TYPE, body)
  if (error instanceof CofferError && error.mayTellData) answer.mayTellData = true
  return answer
}

/** Clients expect errors of 3-D Secure in exactly the form of the service, which has fewer attributes. */
function formOf(error: unknown, problem: Problem): object {
  const isOfService =
    error instanceof CofferError && (error.code === 'threeds_failed' || error.code === 'threeds_unsupported')
  if (!isOfService) return problem
  const { type: _, instance: __, ...rest } = problem
  return rest
}

function wantsPlainJson(accept: string | undefined): boolean {
  if (accept === undefined || !accept.toLowerCase().includes('application/json')) return false
  const ranges = accept.split(',').map((range) => range.split(';')[0]!.trim().toLowerCase())
  return (
    ranges.includes('application/json') &&
    !ranges.some((range) => range === 'application/problem+json' || range.includes('*'))
  )
}

const VALUE = /^[\t\x20-\x7e]*$/

/** Returns undefined if a value contains a line break, because a line break would begin another header. */
export function formatHead(status: number, headers: HttpResponse['headers']): string | undefined {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (const name in headers) {
    if (!VALUE.test(headers[name]!)) return undefined
    text += `${name}: ${headers[name]}\r\n`
  }
  return text
}
