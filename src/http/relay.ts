/** Requests that an operation relays: their form, and how their answers are sent. */
import { CofferError } from '../errors.js'
import type { Relay } from '../framework/operation.js'
import type { OutboundAnswer } from '../framework/ports/outbound.js'
import type { RegisteredOperation, Registry } from '../framework/registry.js'
import type { RelayRequest } from '../framework/relay.js'
import type { HttpRequest, HttpResponse } from './exchange.js'
import { readHeader } from './headers.js'

export interface RelayMatch {
  operation: RegisteredOperation
  relay: Relay
  /** After the path of the operation, as sent. */
  rest: string
}

/** Finds the operation that relays requests for a path, or for one above it. */
export function createRelayFinder({ operations }: Registry): (path: string) => RelayMatch | undefined {
  const relays = operations.flatMap((operation) => {
    const { relay } = operation
    return relay === undefined ? [] : { operation, relay, start: `${relay.path}/` }
  })
  return (path) => {
    const found = relays.find(({ relay, start }) => path.startsWith(start) || path === relay.path)
    return found && { ...found, rest: path.slice(found.relay.path.length) }
  }
}

export function toRelayRequest(
  request: HttpRequest,
  { rest }: RelayMatch,
  { query, prefix, bodyLimitBytes }: { query: string; prefix: string; bodyLimitBytes: number },
): RelayRequest {
  const headers: Record<string, string> = {}
  for (const name of Object.keys(request.headers)) headers[name] = readHeader(request.headers, name) ?? ''
  return {
    left: request.onLeave && ((listener) => request.onLeave!(listener)),
    through: request.outboundWrapper,
    method: request.method,
    path: rest,
    query,
    headers,
    prefix: prefix.toLowerCase(),
    readBody: async () => {
      const bytes = await request.readBody(bodyLimitBytes)
      await request.lease?.arrive()
      if (bytes !== undefined) return bytes
      throw new CofferError('too_large', `The body is larger than the limit of ${bodyLimitBytes} bytes.`)
    },
  }
}

export function toAnswer({ status, headers, body, whole }: OutboundAnswer): HttpResponse {
  return {
    status,
    headers: { ...headers },
    body: '',
    ...(whole === undefined ? { stream: body } : { bytes: whole }),
  }
}
