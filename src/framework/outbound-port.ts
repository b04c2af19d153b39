/** The port through which operations send requests to other servers, where the vault's owner allows it. */
import type { HeaderMap } from '../domain/code-answer.js'

export interface OutboundRequest {
  method: string
  /** Path and query, as they are sent. */
  target: string
  /** Names in lower case; without host and length. */
  headers: HeaderMap
  body: Uint8Array
}

export interface OutboundAnswer {
  status: number
  headers: HeaderMap
  /** Ends with an error if the connection breaks, or nothing arrives for a while. Leaving it closes the connection. */
  body: AsyncIterable<Uint8Array>
  /**
   * The whole body, instead.
   * @throws CofferError `bad_gateway` for more than `mostBytes`, and for a slow one
   */
  collect(mostBytes: number): Promise<Uint8Array>
}

/** A destination whose address is allowed. */
export interface Destination {
  /**
   * Connects to the address that was judged, and follows no redirect. `sent` is called once the whole request was.
   * @throws CofferError `bad_gateway` without an answer, `request_timeout` for a late one
   */
  send(request: OutboundRequest, sent: () => void): Promise<OutboundAnswer>
}

export interface Outbound {
  /**
   * Resolves the host of `url` and judges its address.
   * @throws CofferError `forbidden` for one that is not allowed, `bad_gateway` for one that is unknown
   */
  reach(url: URL): Promise<Destination>
}
