import type { HeaderMap } from '../../domain/proxy/code-answer.js'
import type { ProxyRequest } from '../../domain/proxy/proxy-request.js'
import { CofferError } from '../../errors.js'

/** ms from the start of a call to the headers of the answer, and between two parts of its body. */
export const WAIT_MS = 25_000

/** Its headers lack host and length. */
export interface OutboundRequest extends Omit<ProxyRequest, 'path' | 'query'> {
  target: string
}

export interface OutboundAnswer {
  status: number
  headers: HeaderMap
  /**
   * Ends with an error if the connection breaks, or if no data arrives for a while. Leaving the loop closes
   * the connection.
   */
  body: AsyncIterable<Uint8Array>
  /** The whole body, if it arrived together with the headers. `body` then yields it too. */
  whole?: Uint8Array
  /**
   * Reads the whole body instead of `body`. @throws CofferError `bad_gateway` for more than `maxBytes`, and
   * for a slow body
   */
  collect(maxBytes: number): Promise<Uint8Array>
}

/** Calls the listener when the caller has left; immediately if the caller left before. */
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
  /** The addresses of a name are checked when it is connected to. @throws CofferError `forbidden` */
  reach(url: URL): Destination
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
 * A call that is passed on to another server: any method of a list, any path below the operation's, any body.
 */
export interface RelayRequest extends Omit<ProxyRequest, 'body'> {
  prefix: string
  readBody(): Promise<Uint8Array>
  left?: OnLeave | undefined
  /** Wraps the sender, to observe calls and to inject faults. */
  through?: ((outbound: Outbound) => Outbound) | undefined
}
