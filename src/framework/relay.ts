/**
 * Relayed requests: an operation that takes any method of a list, any path below its own and any body, and answers with a
 * stream. For calls that are passed on to other servers.
 */
import type { HeaderMap } from '../domain/proxy/code-answer.js'
import type { OnLeave, Outbound } from './ports/outbound.js'

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
  /** Tells when the client has left. */
  left?: OnLeave | undefined
  /** What the request is sent by instead: it watches calls, and lets them fail. */
  through?: ((outbound: Outbound) => Outbound) | undefined
}
