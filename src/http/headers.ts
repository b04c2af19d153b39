/** Names and values of our own headers. */
import { usage } from '../errors.js'
import type { HttpRequest } from './exchange.js'

export type HeaderNames = ReturnType<typeof nameHeaders>

/**
 * The names for a prefix, such as `svc`: `SVC-API-KEY`, `SVC-TRACE-ID`; in lower case.
 * @throws CofferError `usage` for a prefix that could be more than a part of a name, where a shell reads it
 */
export function nameHeaders(prefix: string) {
  if (!PREFIX.test(prefix)) throw usage('The prefix takes a letter and up to 19 letters or digits.')
  const start = prefix.toLowerCase()
  return {
    apiKey: `${start}-api-key`,
    traceId: `${start}-trace-id`,
    destinationStatus: `${start}-proxy-destination-status`,
    idempotencyKey: `${start}-idempotency-key`,
    replayed: `${start}-idempotent-replayed`,
  }
}

/** A prefix is part of the names of headers, and a property name in the requests of reactors. */
export const PREFIX = /^[a-z][a-z0-9]{0,19}$/i

/** Visible ASCII, short enough for a log line. */
const TRACE_ID = /^[\x21-\x7e]{1,128}$/

/** The caller's trace id, if it is valid. */
export function readTraceId({ headers }: HttpRequest, { traceId }: HeaderNames): string | undefined {
  const value = readHeader(headers, traceId)
  return value !== undefined && TRACE_ID.test(value) ? value : undefined
}

/** The value of a header; repeated headers are joined with commas (RFC 9110, 5.3). */
export function readHeader(headers: HttpRequest['headers'], name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

export function readCookie({ headers }: HttpRequest, name: string): string | undefined {
  const pairs = (readHeader(headers, 'cookie') ?? '').split(/; ?/)
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}
