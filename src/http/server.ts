/** The HTTP server: connections, limits of time and size, and a stop that still answers all accepted requests. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { CofferError, usage, validationError } from '../errors.js'
import type { AccessEntry } from './access-log.js'
import type { Answerer } from './answerer.js'
import { Connection, describeParserError } from './connection.js'
import type { Ask } from './exchange.js'
import { listen } from './listen.js'
import { Load, Share } from './load.js'
import { createRequestBody } from './request-body.js'
import { type Exchange, send } from './send.js'

export interface ServerLimits {
  /** From the start of a connection to the end of its headers. */
  headersMs: number
  /** From the first byte of a request to the last one. */
  requestMs: number
  /** An idle connection is closed after this time. */
  keepAliveMs: number
  /** A client that reads nothing of a waiting answer is disconnected after this time. */
  stallMs: number
  /** The maximum time that a stop waits for requests in progress. */
  stopMs: number
}

export const SERVER_LIMITS: ServerLimits = {
  headersMs: 5_000,
  requestMs: 10_000,
  keepAliveMs: 30_000,
  stallMs: 30_000,
  stopMs: 8_000,
}

/** Of the request line and headers together. */
const HEADER_LIMIT_BYTES = 16_384
const MOST_CONNECTIONS = 10_000
/** A client that neither reads nor writes for this time is disconnected. */
const SILENCE_MS = 120_000
/** At a stop, idle connections stay open for this time, because a request may be about to arrive. */
const STOP_GRACE_MS = 100
/** The interval at which Node checks the time limits. */
const CHECK_MS = 500
/** The number of checks for stalled clients in `stallMs`. */
const STALL_LOOKS = 10

export interface ServerOptions {
  answerer: Answerer
  /** The machine must have the first address; others that it does not have are skipped. */
  addresses: readonly string[]
  /** 0 for any free port; the same on every address. */
  port: number
  /** PEM texts. */
  tls?: { cert: string; key: string }
  limits?: ServerLimits
  /** Counts the bytes of requests in progress. */
  load?: Load
  /** The name of the trace id's header. */
  traceHeader: string
  /** Further headers of answers to bytes that are not a valid request. */
  headers?: Readonly<Record<string, string>>
  createTraceId(): string
  record?(entry: AccessEntry): void
  /** Receives the error of an answer that could not be sent. */
  reportFault?(error: unknown, traceId: string): void
}

export interface RunningServer {
  readonly port: number
  /** Stops accepting connections; resolves when all accepted requests are answered or after `stopMs`. */
  stop(): Promise<void>
}

/** Resolves when requests are accepted. @throws CofferError `unavailable`, `usage` for invalid TLS files */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const create = options.tls === undefined ? createServer : await prepareTls(options.tls)
  const connections = createConnections(options, create)
  const { servers, port } = await listen(() => connections.createServer(), options)
  connections.watch()
  return { port, stop: () => connections.stop(servers) }
}

function createConnections(options: ServerOptions, create: CreateServer) {
  const { limits = SERVER_LIMITS, load = new Load() } = options
  const connections = new Map<Duplex, Connection>()
  let looking: NodeJS.Timeout | undefined
  let isStopping = false
  let whenEmpty: (() => void) | undefined

  return { createServer, watch, stop }

  function createServer(): Server {
    const { tls } = options
    const shape = {
      maxHeaderSize: HEADER_LIMIT_BYTES,
      // Our own check answers with a problem document.
      requireHostHeader: false,
      connectionsCheckingInterval: CHECK_MS,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
    }
    const server = create(shape)
    server.maxConnections = MOST_CONNECTIONS
    server.timeout = SILENCE_MS
    // A client that has closed its side of the connection still gets its answer.
    Object.assign(server, { httpAllowHalfOpen: true })
    const receive = (request: IncomingMessage, response: ServerResponse) => answer(request, response, false)
    server.on('request', receive)
    server.on('checkExpectation', receive)
    server.on('checkContinue', (request, response) => answer(request, response, true))
    server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => admit(socket))
    server.on('connect', ({ method }, socket) =>
      refuse(socket, new CofferError('method_not_allowed', 'This server is not a proxy.'), method),
    )
    server.on('clientError', (error, socket) => refuse(socket, describeParserError(error)))
    return server
  }

  /** Starts to disconnect stalled clients. */
  function watch(): void {
    looking = setInterval(dropStalled, limits.stallMs / STALL_LOOKS).unref()
  }

  async function stop(servers: readonly Server[]): Promise<void> {
    isStopping = true
    // `close` of the HTTP server would also close idle connections, on which a request may be about to arrive.
    for (const server of servers) NetServer.prototype.close.call(server)
    const timers = [setTimeout(closeIdle, STOP_GRACE_MS), setTimeout(closeAll, limits.stopMs)]
    await new Promise<void>((resolve) => {
      whenEmpty = resolve
      if (connections.size === 0) resolve()
    })
    for (const timer of timers) clearTimeout(timer)
    for (const server of servers) server.close()
    clearInterval(looking)
  }

  function dropStalled(): void {
    for (const [socket, connection] of connections)
      if (connection.countStalls() >= STALL_LOOKS) socket.destroy()
  }

  function closeIdle(): void {
    for (const [socket, connection] of connections) if (connection.isIdle) socket.destroy()
  }

  function closeAll(): void {
    for (const socket of connections.keys()) socket.destroy()
  }

  function admit(socket: Duplex): void {
    connections.set(socket, new Connection(socket as Socket))
    // Node listens no more after a CONNECT; an error that nobody listens for would end the process. What follows is `close`.
    socket.on('error', () => undefined)
    socket.once('close', () => {
      connections.delete(socket)
      if (connections.size === 0) whenEmpty?.()
    })
  }

  function refuse(socket: Duplex, error: CofferError, method = '-'): void {
    const connection = connections.get(socket)
    if (connection === undefined) {
      socket.destroy()
      return
    }
    const { traceHeader, headers, createTraceId, record } = options
    const traceId = createTraceId()
    if (connection.refuse(error, traceId, { ...headers, [traceHeader]: traceId }))
      record?.({ method, route: '-', status: error.status, ms: 0, traceId })
  }

  function answer(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const connection = connections.get(request.socket)
    if (connection === undefined || connection.isBroken) return
    const hosts = countHosts(request)
    if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) {
      const error = validationError('A request must have exactly one Host header.')
      refuse(request.socket, error, request.method)
      return
    }
    const invite = expectsContinue ? () => response.writeContinue() : undefined
    connection.begin(request, () => void serve({ request, response, connection }, invite))
  }

  async function serve(exchange: Exchange, invite: (() => void) | undefined): Promise<void> {
    const { request, response, connection } = exchange
    const share = new Share(load)
    let isDone = false
    response.once('close', () => {
      connection.end()
      if (isDone) share.end()
    })
    const body = createRequestBody(request, connection, share, invite)
    const ask: Ask = {
      method: request.method ?? '',
      target: request.url ?? '/',
      headers: request.headers,
      client: request.socket.remoteAddress ?? '',
      share,
      readBody: body.read,
      left: (listener) => onLeave(exchange, listener),
    }
    try {
      await send(await options.answerer(ask), exchange, { share, body, isStopping })
    } catch (error) {
      // An answer that cannot be sent must not affect other connections.
      request.socket.destroy()
      options.reportFault?.(error, options.createTraceId())
    }
    // The bytes are counted until the work is finished, even if the client has disconnected.
    isDone = true
    if (response.closed) share.end()
  }
}

/** Also for a client that only says that it will send no more, as one does that has left. */
function onLeave({ request: { socket }, response }: Exchange, listener: () => void): void {
  if (response.destroyed || socket.readableEnded) {
    listener()
    return
  }
  socket.once('end', listener)
  response.once('close', () => {
    socket.off('end', listener)
    listener()
  })
}

type CreateServer = (shape: object) => Server

async function prepareTls(pem: { cert: string; key: string }): Promise<CreateServer> {
  // Loaded where it is used: a server without TLS is ready sooner.
  const { createServer: create } = await import('node:https')
  return (shape) => {
    try {
      return create({ ...shape, ...pem, handshakeTimeout: SERVER_LIMITS.headersMs })
    } catch (cause) {
      const message = 'The certificate and key do not make a TLS server. Give both as PEM files.'
      throw usage(message, { cause })
    }
  }
}

/** The number of Host headers. Node uses the first of several; RFC 9112 (3.2) requires an error. */
function countHosts({ rawHeaders }: IncomingMessage): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count
}
