/**
 * Cross-origin requests of web pages (CORS, in the Fetch standard). A page of any origin may read an answer, but never has its
 * cookies sent. Answers to keys of private and management applications are for servers, so pages cannot read those.
 */
import { answerResult, type HttpRequest, type HttpResponse } from './exchange.js'
import { nameHeaders, readHeader } from './headers.js'

/** The time for which a browser may cache the answer to a preflight. */
const MAX_AGE_SECONDS = 600
/** Names of headers, separated by commas. */
const NAMES = /^[\w!#$%&'*+.^`|~, -]+$/

/** The headers of every answer that pages may read. `prefix` as in {@link nameHeaders}. */
export function nameCorsHeaders(prefix: string): Readonly<Record<string, string>> {
  const { traceId, destinationStatus } = nameHeaders(prefix)
  const exposed = [traceId.toUpperCase(), destinationStatus.toUpperCase(), 'Retry-After']
  return {
    'access-control-allow-origin': '*',
    'access-control-expose-headers': exposed.join(', '),
  }
}

/** Whether a browser asks if it may send a request. */
export function isPreflight({ method, headers }: HttpRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
}

/** The answer to a preflight for a path that takes `methods`. */
export function answerPreflight({ headers }: HttpRequest, methods: string): HttpResponse {
  const answer = answerResult(204, undefined)
  answer.headers['access-control-allow-methods'] = methods
  answer.headers['access-control-max-age'] = String(MAX_AGE_SECONDS)
  const wanted = readHeader(headers, 'access-control-request-headers')
  if (wanted !== undefined && NAMES.test(wanted)) answer.headers['access-control-allow-headers'] = wanted
  if (headers['access-control-request-private-network'] === 'true')
    answer.headers['access-control-allow-private-network'] = 'true'
  return answer
}
