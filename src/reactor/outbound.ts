/** Sends requests of proxies, to judged addresses alone. Connections are kept, and judgements of names for a few seconds. */
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, Agent as TlsAgent } from 'node:https'
import { isIP } from 'node:net'
import { BoundedMap } from '../bounded-map.js'
import { collectBytes } from '../domain/collect-bytes.js'
import { CofferError, codeOf } from '../errors.js'
import {
  answerWhole,
  type Destination,
  lateError,
  leftError,
  type Outbound,
  type OutboundAnswer,
  type OutboundRequest,
  type Sending,
  WAIT_MS,
} from '../framework/outbound-port.js'
import { createAllowList } from './allow-list.js'
import {
  chooseAddresses,
  isThisMachine,
  portOf,
  type Resolved,
  resolveName,
  trustAlso,
} from './destination.js'
import type { FetchOptions } from './fetch.js'

/** Shorter than servers keep connections, so that a request is seldom sent on one that is being closed. */
const KEEP_IDLE_MS = 1_000
const MOST_IDLE = 64
const MOST_HEADER_BYTES = 64 * 1024
/** What is less, such as 101, is no answer, or none that a status line can have. */
const LEAST_STATUS = 200
/** Destinations that are remembered after they were judged, and for how long. */
const MOST_REMEMBERED = 256
const REMEMBER_MS = 5_000
/** Failures before anything was sent, after which the next address of the host is tried. */
const UNCONNECTED = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL']

export interface OutboundOptions extends FetchOptions {
  /** The ports that this process listens on; no request is sent to them, whatever is allowed. */
  ownPorts: ReadonlySet<number>
  waitMs?: number
}

export interface LastingOutbound extends Outbound {
  close(): void
}

/** A destination whose addresses are allowed, until a time in ms of a monotonic clock. */
interface Judged {
  addresses: readonly Resolved[]
  destination: Destination
  until: number
}

/** @throws CofferError `usage` for an invalid entry of `allowNet` */
export function createOutbound(options: OutboundOptions): LastingOutbound {
  const { allowNet, ca, ownPorts, resolve = resolveName, waitMs = WAIT_MS } = options
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
  const judged = new BoundedMap<string, Judged>(MOST_REMEMBERED)
  /** At each call, because servers begin and end. */
  const refuseOwn = (url: URL, { addresses, destination }: Judged): Destination => {
    if (ownPorts.has(portOf(url)) && addresses.some(({ address }) => isThisMachine(address)))
      throw new CofferError('forbidden', 'The destination is this server itself.')
    return destination
  }
  const judge = async (url: URL): Promise<Destination> => {
    const addresses = await chooseAddresses(list, url, resolve).catch((error: unknown) => {
      throw describeRefusal(error)
    })
    const forget = () => judged.delete(url.origin)
    const destination = createDestination(url, addresses, { agents, waitMs, forget })
    const fresh = { addresses, destination, until: performance.now() + REMEMBER_MS }
    judged.set(url.origin, fresh)
    return refuseOwn(url, fresh)
  }
  return {
    reach: (url) => {
      const known = judged.get(url.origin)
      return known !== undefined && known.until > performance.now() ? refuseOwn(url, known) : judge(url)
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

interface Means {
  agents: { plain: Agent; tls: TlsAgent }
  waitMs: number
  /** Called when none of the addresses could be connected to. */
  forget(): void
}

function createDestination(
  url: URL,
  addresses: readonly Resolved[],
  { agents, waitMs, forget }: Means,
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
  const send = isTls ? httpsRequest : httpRequest
  const ask = ({ method, target, headers, body }: OutboundRequest, { sent, left }: Sending) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      let request: ClientRequest
      let isOver = false
      const finish = (settle: () => void) => {
        if (isOver) return
        isOver = true
        clearTimeout(late)
        settle()
      }
      const stop = (describe: () => CofferError) =>
        finish(() => {
          reject(describe())
          request?.destroy()
        })
      const late = setTimeout(() => stop(() => lateError(waitMs)), waitMs)
      left?.(() => stop(leftError))
      const options = { ...fixed, method, path: target, headers: spellHeaders(headers, url, method, body) }
      const attempt = ([first, ...others]: readonly Resolved[]) => {
        if (isOver) return
        let isFailed = false
        const fail = (cause?: Error) => {
          if (isFailed || isOver) return
          isFailed = true
          const isUnconnected = UNCONNECTED.includes(nameOf(cause))
          if (isUnconnected && others.length > 0) return attempt(others)
          if (isUnconnected) forget()
          const message = `The destination gave no answer (${nameOf(cause)}).`
          finish(() => reject(new CofferError('bad_gateway', message, { cause })))
        }
        // The address itself, so that nothing is resolved again; agents keep connections by it.
        request = send({ ...options, host: first!.address })
        request.once('finish', sent)
        request.on('error', fail)
        // Without an error: it wanted another protocol.
        request.once('close', fail)
        request.once('response', (response) => {
          if (response.statusCode! >= LEAST_STATUS) return finish(() => resolve(response))
          fail()
          request.destroy()
        })
        request.end(body)
      }
      attempt(addresses)
    })
  return { send: async (request, sending) => describeAnswer(await ask(request, sending), waitMs) }
}

/** Names and values in turn, which Node checks and writes as they are. */
function spellHeaders(headers: OutboundRequest['headers'], { host }: URL, method: string, body: Uint8Array) {
  const hasLength = body.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method)
  const spelled = ['host', host]
  for (const name of Object.keys(headers)) spelled.push(name, headers[name]!)
  if (hasLength) spelled.push('content-length', String(body.length))
  return spelled
}

/** Contract: called once the parser is through with what came together with the headers. */
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
  const code = codeOf(error)
  return /^\w{1,40}$/.test(code) ? code : 'unknown reason'
}
