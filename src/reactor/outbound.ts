/** Sends requests of proxies. Connections are kept for the next request to the same address. */
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, Agent as TlsAgent } from 'node:https'
import { isIP } from 'node:net'
import { CofferError } from '../errors.js'
import type { Destination, Outbound, OutboundAnswer, OutboundRequest } from '../framework/outbound-port.js'
import { createAllowList } from './allow-list.js'
import {
  chooseAddresses,
  isThisMachine,
  portOf,
  type Resolve,
  type Resolved,
  resolveName,
  trustAlso,
} from './destination.js'

/** From the start of a call to the headers of the answer, and then between two pieces of its body. */
const LONGEST_WAIT_MS = 25_000
/** Shorter than servers keep connections, so that a request is seldom sent on one that is being closed. */
const KEEP_IDLE_MS = 1_000
const MOST_IDLE = 64
const MOST_HEADER_BYTES = 64 * 1024
/** Failures before anything was sent, after which the next address of the host is tried. */
const UNCONNECTED = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL']

export interface OutboundOptions {
  /** `host` or `host:port`. */
  allowNet: readonly string[]
  /** Additional certificate authorities to trust, PEM. */
  ca?: string
  /** The ports that this process listens on; no request is sent to them, whatever is allowed. */
  ownPorts: ReadonlySet<number>
  resolve?: Resolve
  waitMs?: number
}

export interface LastingOutbound extends Outbound {
  /** Closes the connections that are kept. */
  close(): void
}

/** @throws CofferError `usage` for an invalid entry of `allowNet` */
export function createOutbound(options: OutboundOptions): LastingOutbound {
  const { allowNet, ca, ownPorts, resolve = resolveName, waitMs = LONGEST_WAIT_MS } = options
  const list = createAllowList(allowNet)
  const kept = {
    keepAlive: true,
    timeout: KEEP_IDLE_MS,
    maxFreeSockets: MOST_IDLE,
    scheduling: 'lifo',
  } as const
  const agents = {
    plain: new Agent(kept),
    tls: new TlsAgent({ ...kept, ...(ca === undefined ? {} : { secureContext: trustAlso(ca) }) }),
  }
  return {
    reach: async (url) => {
      const addresses = await chooseAddresses(list, url, resolve).catch((error: unknown) => {
        throw describeRefusal(error)
      })
      if (ownPorts.has(portOf(url)) && addresses.some(({ address }) => isThisMachine(address)))
        throw new CofferError('forbidden', 'The destination is this server itself.')
      return createDestination(url, addresses, agents, waitMs)
    },
    close: () => {
      agents.plain.destroy()
      agents.tls.destroy()
    },
  }
}

function describeRefusal(error: unknown): unknown {
  if (!(error instanceof CofferError)) return error
  const code = error.code === 'unavailable' ? 'bad_gateway' : error.code
  return new CofferError(code, `The destination cannot be called: ${error.message}.`, { cause: error })
}

interface Agents {
  plain: Agent
  tls: TlsAgent
}

function createDestination(
  url: URL,
  addresses: readonly Resolved[],
  agents: Agents,
  waitMs: number,
): Destination {
  const isTls = url.protocol === 'https:'
  const name = url.hostname.replace(/^\[|\]$/g, '')
  const fixed = {
    port: portOf(url),
    agent: isTls ? agents.tls : agents.plain,
    maxHeaderSize: MOST_HEADER_BYTES,
    // An address has no server name (RFC 6066, 3).
    ...(isTls ? { servername: isIP(name) === 0 ? name : '' } : {}),
  }
  return {
    send: ({ method, target, headers, body }, sent) =>
      new Promise((resolve, reject) => {
        let request: ClientRequest
        const late = setTimeout(() => {
          reject(
            new CofferError('request_timeout', `The destination did not answer within ${waitMs / 1000} s.`),
          )
          request.destroy()
        }, waitMs)
        const options = { ...fixed, method, path: target, headers: spellHeaders(headers, url, method, body) }
        const attempt = ([first, ...others]: readonly Resolved[]) => {
          // The address itself, so that nothing is resolved again; agents keep connections by it.
          const to = { ...options, host: first!.address }
          request = isTls ? httpsRequest(to) : httpRequest(to)
          request.once('finish', sent)
          let isOver = false
          const fail = (cause?: Error) => {
            if (isOver) return
            isOver = true
            if (others.length > 0 && UNCONNECTED.includes(nameOf(cause))) return attempt(others)
            clearTimeout(late)
            const message = `The destination gave no answer (${nameOf(cause)}).`
            reject(new CofferError('bad_gateway', message, { cause }))
          }
          request.on('error', fail)
          // Without an error: it wanted another protocol.
          request.once('close', fail)
          request.once('response', (response) => {
            isOver = true
            clearTimeout(late)
            resolve(describeAnswer(response, waitMs))
          })
          request.end(body)
        }
        attempt(addresses)
      }),
  }
}

function spellHeaders(
  headers: OutboundRequest['headers'],
  { host }: URL,
  method: string,
  body: Uint8Array,
): Record<string, string> {
  const hasLength = body.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method)
  return { ...headers, host, ...(hasLength ? { 'content-length': String(body.length) } : {}) }
}

function describeAnswer(response: IncomingMessage, waitMs: number): OutboundAnswer {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  const body = readPieces(response, waitMs)
  const collect = async (mostBytes: number) => {
    const late = setTimeout(() => response.destroy(), waitMs)
    const chunks: Uint8Array[] = []
    let bytes = 0
    try {
      for await (const chunk of body) {
        bytes += chunk.length
        if (bytes > mostBytes)
          throw new CofferError(
            'bad_gateway',
            `The answer of the destination has more than ${mostBytes} bytes.`,
          )
        chunks.push(chunk)
      }
    } finally {
      clearTimeout(late)
    }
    return Buffer.concat(chunks)
  }
  return { status: response.statusCode ?? 0, headers, body, collect }
}

/** The body, while its reader keeps up; a reader that waits is not counted as a pause of the destination. */
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
    throw new CofferError('bad_gateway', `The answer of the destination broke off (${nameOf(cause)}).`, {
      cause,
    })
  } finally {
    response.destroy()
  }
}

/** The code of an error of the system or of Node; never its message, which can quote what was sent. */
function nameOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' && /^\w{1,40}$/.test(code) ? code : 'unknown reason'
}
