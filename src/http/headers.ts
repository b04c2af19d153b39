/** The headers we read and write, and what may stand in them. It knows names and shapes, not what they decide. */
import type { Ask } from './exchange.js'

/** Names of our own headers, in lower case. */
export interface HeaderNames {
  apiKey: string
  traceId: string
}

/** Both derive from the one prefix (`svc`: `SVC-API-KEY`, `SVC-TRACE-ID`). */
export function nameHeaders(prefix: string): HeaderNames {
  return { apiKey: `${prefix.toLowerCase()}-api-key`, traceId: `${prefix.toLowerCase()}-trace-id` }
}

/** What a prefix may be: the first part of a header's name, and a property of JavaScript objects. */
export const PREFIX = /^[a-z][a-z0-9]{0,19}$/i

/** Visible ASCII, short enough to stand in a log line. */
const TRACE_ID = /^[\x21-\x7e]{1,128}$/

/** The caller's trace id, where it is one. */
export function readTraceId({ headers }: Ask, { traceId }: HeaderNames): string | undefined {
  const value = readHeader(headers, traceId)
  return value !== undefined && TRACE_ID.test(value) ? value : undefined
}

/** One header's text; several of one name count as one text, as they would on the wire. */
export function readHeader(headers: Ask['headers'], name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
