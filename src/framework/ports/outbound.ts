import type { HeaderMap } from '../../domain/proxy/code-answer.js'
import type { ProxyRequest } from '../../domain/proxy/proxy-request.js'
import { CofferError } from '../../errors.js'

/**
 * The maximum time in ms between the start of a call and the headers of its answer, and between two parts of
 * the body.
 */
export const WAIT_MS = 25_000

/** The headers contain neither `host` nor `content-length`. */
export interface OutboundRequest extends Omit<ProxyRequest, 'path' | 'query'> {
  target: string
}

export interface OutboundAnswer {
  status: number
  headers: HeaderMap
  /**
   * Throws if the connection breaks, or if no data arrives for a while. Leaving the loop closes the
   * connection.
   */
  body: AsyncIterable<Uint8Array>
  /** The whole body, if it arrived together with the headers. `body` then yields the same bytes. */
  whole?: Uint8Array
  /**
   * Reads the whole body, instead of `body`.
   * @throws CofferError `bad_gateway` if the body has more than `maxBytes`, or is slow
   */
  collect(maxBytes: number): Promise<Uint8Array>
}

/** Calls the listener when the client leaves, or immediately if the client has left already. */
export type OnLeave = (listener: () => void) => void

export interface Sending {
  sent(): void
  left?: OnLeave | undefined
}

export interface Destination {
  /** Follows no redirect. @throws CofferError `forbidden`, `bad_gateway`, `request_timeout`, `interrupted` */
  send(request: OutboundRequest, sending: Sending): Promise<OutboundAnswer>
}

export interface Outbound {
  /**
   * If the URL has a name, its addresses are checked later, when the connection begins.
   * @throws CofferError `forbidden`
   */
  reach(url: URL): Destination
  /** For a request that needs no connection. @throws CofferError `forbidden` if the list does not have the host */
  requireListed(url: URL): void
}

export function answerWhole(status: number, headers: HeaderMap, whole: Uint8Array): OutboundAnswer {
  const pieces = async function* () {
    yield whole
  }
  return { status, headers, whole, body: pieces(), collect: async () => whole }
}

export function lateError(waitMs: number): CofferError {
  return new CofferError('request_timeout', `The destination did not answer within ${waitMs / 1000} s.`)
}

export function leftError(): CofferError {
  return new CofferError('interrupted', 'The client left before the answer.')
}

/**
 * A call that is passed on to another server. It can have any body, any path below the operation's path, and any
 * method that the operation lists.
 */
export interface RelayRequest extends Omit<ProxyRequest, 'body'> {
  prefix: string
  readBody(): Promise<Uint8Array>
  left?: OnLeave | undefined
  /** Wraps the sender. The control plane uses this to observe calls and to inject faults. */
  through?: ((outbound: Outbound) => Outbound) | undefined
}
