/**
 * Relayed requests: an operation that takes any method of a list, any path below its own and any body, and answers with a
 * stream. For calls that are passed on to other servers.
 */
import type { CodeAnswer, HeaderMap } from '../domain/code-answer.js'

export interface RelayRequest {
  method: string
  /** After that of the operation, as sent: empty, or beginning with a slash. */
  path: string
  /** Without the question mark, as sent. */
  query: string
  /** Names in lower case. */
  headers: HeaderMap
  /** Of the names of our own headers. */
  prefix: string
  /** @throws CofferError `too_large` */
  readBody(): Promise<Uint8Array>
}

/** An answer of another server, or one that code gave instead. */
export type RelayAnswer = RelayedAnswer | CodeAnswer

export interface RelayedAnswer {
  status: number
  headers: Record<string, string>
  body: AsyncIterable<Uint8Array>
  /** The whole body, instead. @throws CofferError `bad_gateway` for more than `mostBytes` */
  collect(mostBytes: number): Promise<Uint8Array>
}
