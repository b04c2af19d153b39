import type { HeaderMap } from '../../domain/proxy/code-answer.js'
import type { ProxyRequest } from '../../domain/proxy/proxy-request.js'
import { CofferError } from '../../errors.js'

/** From the start of a call to the headers of the answer, and then between two pieces of its body. */
export const WAIT_MS = 25_000

/** Its headers are without host and length. */
export interface OutboundRequest extends Omit<ProxyRequest, 'path' | 'query'> {
  /** Path and query, as they are sent. */
  target: string
}

export interface OutboundAnswer {
  status: number
  headers: HeaderMap
  /** Ends with an error if the connection breaks, or nothing arrives for a while. Leaving it closes the connection. */
  body: AsyncIterable<Uint8Array>
  /** All of the body, where it came together with the headers; `body` then gives the same. */
  whole?: Uint8Array
  /** The whole body, instead. @throws CofferError `bad_gateway` for more than `maxBytes`, and for a slow one */
  collect(maxBytes: number): Promise<Uint8Array>
}

/** Calls the listener when nobody waits for the answer any more, at once if that is so already. */
export type OnLeave = (listener: () => void) => void

export interface Sending {
  sent(): void
  /** Absent for a caller who stays. */
  left?: OnLeave | undefined
}

export interface Destination {
  /** Follows no redirect. @throws CofferError `forbidden`, `bad_gateway`, `request_timeout`, `interrupted` */
  send(request: OutboundRequest, sending: Sending): Promise<OutboundAnswer>
}

export interface Outbound {
  /** The addresses of a name are judged when it is connected to. @throws CofferError `forbidden` */
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

/** A call that is passed on to another server: any method of a list, any path below the operation's, any body. */
export interface RelayRequest extends Omit<ProxyRequest, 'body'> {
  /** The prefix of the names of our own headers. */
  prefix: string
  /** @throws CofferError `too_large` */
  readBody(): Promise<Uint8Array>
  left?: OnLeave | undefined
  /** Sends the request instead: it watches calls and lets them fail. */
  through?: ((outbound: Outbound) => Outbound) | undefined
}
