/** Sends the requests of proxies and streams the answers. */
import type { IncomingMessage } from 'node:http'
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { CofferError } from '../errors.js'
import {
  answerWhole,
  lateError,
  leftError,
  type Outbound,
  type OutboundAnswer,
  type OutboundRequest,
  type Sending,
  WAIT_MS,
} from '../framework/ports/outbound.js'
import { type ConnectionOptions, Connections, describeConnectionError } from './connections.js'

/** A smaller status is not final (101) or not valid. */
const LEAST_STATUS = 200

export type OutboundOptions = ConnectionOptions & { waitMs?: number }

export interface LastingOutbound extends Outbound {
  close(): void
}

/** @throws CofferError `usage` for an invalid entry of `allowNet` */
export function createOutbound({ waitMs = WAIT_MS, ...options }: OutboundOptions): LastingOutbound {
  const connections = new Connections(options)
  return {
    reach(url) {
      try {
        connections.judge(url)
      } catch (error) {
        throw describeRefusal(error)
      }
      return { send: (request, sending) => send(connections, url, request, { ...sending, waitMs }) }
    },
    close: () => connections.close(),
  }
}

function describeRefusal(error: unknown): unknown {
  if (!(error instanceof CofferError)) return error
  const code = error.code === 'unavailable' ? 'bad_gateway' : error.code
  return new CofferError(code, `The destination cannot be called: ${error.message}.`, { cause: error })
}

async function send(
  connections: Connections,
  url: URL,
  { method, target, headers, body }: OutboundRequest,
  { sent, left, waitMs }: Sending & { waitMs: number },
): Promise<OutboundAnswer> {
  const ending = new AbortController()
  const late = setTimeout(() => ending.abort(lateError(waitMs)), waitMs)
  left?.(() => ending.abort(leftError()))
  const hasLength = body.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method)
  const spelled = ['host', url.host, ...Object.entries(headers).flat()]
  if (hasLength) spelled.push('content-length', String(body.length))
  const { signal } = ending
  try {
    const response = await connections.send(url, { method, target, headers: spelled, body, signal, sent })
    if (response.statusCode! >= LEAST_STATUS) return describeAnswer(response, waitMs)
    response.destroy()
    throw new Error('The status is no answer')
  } catch (cause) {
    if (signal.aborted) throw signal.reason
    if (cause instanceof CofferError) throw describeRefusal(cause)
    const message = `The destination gave no answer (${describeConnectionError(cause)}).`
    throw new CofferError('bad_gateway', message, { cause })
  } finally {
    clearTimeout(late)
  }
}

/** Contract: called after the parser has read all bytes that arrived together with the headers. */
function describeAnswer(response: IncomingMessage, waitMs: number): OutboundAnswer {
  const { statusCode: status = 0, complete, readableLength } = response
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  if (complete && readableLength > 0 && headers['content-length'] === String(readableLength)) {
    const whole: Uint8Array | null = response.read()
    if (whole?.length === readableLength) return answerWhole(status, headers, whole)
  }
  const body = readPieces(response, waitMs)
  const collect = async (mostBytes: number) => {
    const late = setTimeout(() => response.destroy(), waitMs)
    const bytes = await collectBytes(body, mostBytes).finally(() => clearTimeout(late))
    if (bytes !== undefined) return bytes
    throw new CofferError('bad_gateway', `The answer of the destination has more than ${mostBytes} bytes.`)
  }
  return { status, headers, body, collect }
}

/** The body. `waitMs` limits each pause of the destination; pauses of the reader do not count. */
async function* readPieces(response: IncomingMessage, waitMs: number): AsyncGenerator<Uint8Array> {
  const pieces = response[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  try {
    for (;;) {
      const late = setTimeout(() => response.destroy(new Error('late')), waitMs)
      const { done, value } = await pieces.next().finally(() => clearTimeout(late))
      if (done) return
      yield value
    }
  } catch (cause) {
    const message = `The answer of the destination broke off (${describeConnectionError(cause)}).`
    throw new CofferError('bad_gateway', message, { cause })
  } finally {
    response.destroy()
  }
}
