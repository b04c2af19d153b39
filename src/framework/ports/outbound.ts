import type { HeaderMap } from '../../domain/proxy/code-answer.js'
import type { ProxyRequest } from '../../domain/proxy/proxy-request.js'
import { CofferError } from '../../errors.js'

/** The maximum time in ms from the start of a call to the headers of the answer, and between two parts of the body. */
export const WAIT_MS = 25_000

/** The headers contain neither `host` nor `content-length`. */
export interface OutboundRequest extends Omit<ProxyRequest, 'path' | 'query'> {
  target: string
}

export interface OutboundAnswer {
  status: number
  headers: HeaderMap
  /**
   * The iteration throws if the connection breaks, or if no data arrives for a while. If the reader leaves its loop
   * over `body`, the connection is closed.
   */
  body: AsyncIterable<Uint8Array>
  /** The whole body, if the body arrived together with the headers. `body` then yields the same bytes. */
  whole?: Uint8Array
  /**
   * Reads the whole body, instead of a loop over `body`.
   * @throws CofferError `bad_gateway` if the body has more than `maxBytes` bytes, or arrives too slowly
   */
  collect(maxBytes: number): Promise<Uint8Array>
}

/** Calls `listener` when the client closes its connection, or immediately if the connection is already closed. */
export type OnLeave = (listener: () => void) => void

export interface Sending {
  sent(): void
  left?: OnLeave | undefined
}

export interface Destination {
  /**
   * Does not follow redirects.
   * @throws CofferError `forbidden`, `bad_gateway`, `request_timeout`, `interrupted`
   */
  send(request: OutboundRequest, sending: Sending): Promise<OutboundAnswer>
}

export interface Outbound {
  /**
   * If the host is a name, its addresses are checked when the connection is opened.
   * @throws CofferError `forbidden`
   */
  reach(url: URL): Destination
  /**
   * Checks the host of a request for which no connection is opened, such as a request to this server.
   * @throws CofferError `forbidden` if the list of allowed hosts does not contain the host
   */
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
  return new CofferError('interrupted', 'The client closed the connection before the answer.')
}

/**
 * A call that is passed on to another server. The call can have any body, any path below the path of the operation, and
 * any method that the operation lists.
 */
export interface RelayRequest extends Omit<ProxyRequest, 'body'> {
  prefix: string
  readBody(): Promise<Uint8Array>
  left?: OnLeave | undefined
  /** With `through`, the control plane observes calls and injects faults. */
  through?: ((outbound: Outbound) => Outbound) | undefined
}
