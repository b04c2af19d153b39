import { usage } from '../errors.js'
import { answerResult, type HttpRequest, type HttpResponse } from './exchange.js'

export type HeaderNames = ReturnType<typeof headerNames>

/** The names are in lower case. @throws CofferError `usage` for an invalid prefix */
export function headerNames(prefix: string) {
  if (!PREFIX.test(prefix)) throw usage('The prefix takes a letter and up to 19 letters or digits.')
  const start = prefix.toLowerCase()
  return {
    apiKey: `${start}-api-key`,
    controlKey: `${start}-control-key`,
    traceId: `${start}-trace-id`,
    proxyKey: `${start}-proxy-key`,
    proxyUrl: `${start}-proxy-url`,
    destinationStatus: `${start}-proxy-destination-status`,
    idempotencyKey: `${start}-idempotency-key`,
    replayed: `${start}-idempotent-replayed`,
    noReveal: `${start}-no-reveal`,
  }
}

/** The prefix is part of header names, and of a property name in reactor requests. */
export const PREFIX = /^[a-z][a-z0-9]{0,19}$/i

const TRACE_ID = /^[\x21-\x7e]{1,128}$/

export function readTraceId({ headers }: HttpRequest, { traceId }: HeaderNames): string | undefined {
  const value = readHeader(headers, traceId)
  return value !== undefined && TRACE_ID.test(value) ? value : undefined
}

/** Repeated headers are joined with commas (RFC 9110, 5.3). */
export function readHeader(headers: HttpRequest['headers'], name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

export function readCookie({ headers }: HttpRequest, name: string): string | undefined {
  const pairs = (readHeader(headers, 'cookie') ?? '').split(/; ?/)
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

const MAX_AGE_SECONDS = 600
const NAMES = /^[\w!#$%&'*+.^`|~, -]+$/

export function createCorsHeaders(prefix: string): Readonly<Record<string, string>> {
  const { traceId, destinationStatus } = headerNames(prefix)
  const exposed = [traceId.toUpperCase(), destinationStatus.toUpperCase(), 'Retry-After']
  return { 'access-control-allow-origin': '*', 'access-control-expose-headers': exposed.join(', ') }
}

export function answerPreflight({ method, headers }: HttpRequest, methods: string): HttpResponse | undefined {
  if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return undefined
  const answer = answerResult(204, undefined)
  answer.headers['access-control-allow-methods'] = methods
  answer.headers['access-control-max-age'] = String(MAX_AGE_SECONDS)
  const wanted = readHeader(headers, 'access-control-request-headers')
  if (wanted !== undefined && NAMES.test(wanted)) answer.headers['access-control-allow-headers'] = wanted
  if (headers['access-control-request-private-network'] === 'true')
    answer.headers['access-control-allow-private-network'] = 'true'
  return answer
}
