/** The HTTP server: sockets and time limits. A server that stops still answers accepted requests, up to `stopMs`. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { CofferError, codeOf, usage } from '../errors.js'
import type { Host } from '../framework/host.js'
import type { Answerer } from './answerer.js'
import { ByteBudget } from './byte-budget.js'
import { createCorsHeaders, headerNames } from './headers.js'
import type { AnswererOptions } from './options.js'
import { Connection } from './socket/connection.js'
import { describeParserError } from './socket/parser-error.js'
import type { Service } from './socket/served-request.js'

export const DEFAULT_PORT = 4010
export const DEFAULT_PREFIX = 'svc'
export const DEFAULT_BODY_LIMIT_BYTES = 1024 * 1024
export const LOOPBACK: readonly string[] = ['127.0.0.1', '::1']

export const SERVER_LIMITS = {
  headersMs: 5_000,
  requestMs: 10_000,
  keepAliveMs: 30_000,
  /** A client that does not read its answer is disconnected after this time. */
  stallMs: 30_000,
  /** A stop waits at most this time for requests in progress. */
  stopMs: 8_000,
}

const HEADER_LIMIT_BYTES = 16_384
const MAX_CONNECTIONS = 10_000
/** A client that neither sends nor reads anything for this time is disconnected. */
const SILENCE_MS = 120_000
/** A stop keeps idle connections open for this time, because a request may be about to arrive. */
const STOP_GRACE_MS = 100
const CHECK_MS = 500
const FREE_PORT_TRIES = 20
const ABSENT = ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EPROTONOSUPPORT']

export interface SocketOptions {
  /** 0 chooses a port that is free on every address. */
  port?: number
  /**
   * Default: both loopback addresses. Addresses that the machine does not have are skipped, except the first address.
   */
  addresses?: readonly string[]
  /** PEM texts. */
  tls?: { cert: string; key: string }
  limits?: typeof SERVER_LIMITS
  /** `localhost`, IP addresses and the host of the setting `public_url` are always accepted. */
  allowHosts?: readonly string[]
}

/** `cors` is true by default. */
export interface SocketService
  extends Pick<AnswererOptions, 'record' | 'reportFault'>,
    Partial<Pick<AnswererOptions, 'prefix' | 'bodyLimitBytes' | 'cors'>> {
  host: Pick<Host, 'createUuid'> & Partial<Pick<Host, 'ownPorts'>>
}

export interface RunningServer {
  readonly port: number
  /** Stops accepting connections. Resolves when all accepted requests are answered, or after `stopMs`. */
  stop(): Promise<void>
}

/** Resolves when the server accepts requests. @throws CofferError `unavailable`, `usage` for invalid TLS files */
export async function startServer(
  answerer: Answerer,
  service: SocketService,
  { port = DEFAULT_PORT, addresses = LOOPBACK, tls, limits = SERVER_LIMITS }: SocketOptions = {},
): Promise<RunningServer> {
  const { host, record, reportFault, cors = true, prefix = DEFAULT_PREFIX } = service
  const server = new HttpServer(limits, {
    answerer,
    record,
    reportFault,
    stallMs: limits.stallMs,
    isStopping: false,
    budget: new ByteBudget(service.bodyLimitBytes),
    traceHeader: headerNames(prefix).traceId,
    headers: cors ? createCorsHeaders(prefix) : {},
    keepAliveLines: createKeepAliveLines(limits.keepAliveMs),
    createTraceId: host.createUuid,
  })
  // Loaded only for TLS, so that other servers start sooner.
  const create = tls === undefined ? createServer : (await import('node:https')).createServer
  const pem = tls && { ...tls, handshakeTimeout: SERVER_LIMITS.headersMs }
  const listening = await listen(() => server.create(create, pem), addresses, port)
  host.ownPorts?.add(listening.port)
  const stop = () => server.stop(listening.servers).finally(() => host.ownPorts?.delete(listening.port))
  return { port: listening.port, stop }
}

/** The returned function formats the date at most once a second. */
function createKeepAliveLines(keepAliveMs: number): () => string {
  const rest = `connection: keep-alive\r\nkeep-alive: timeout=${Math.floor(keepAliveMs / 1000)}\r\n`
  let [second, lines] = [0, '']
  return () => {
    const now = Math.floor(Date.now() / 1000)
    if (now !== second) lines = `date: ${new Date(now * 1000).toUTCString()}\r\n${rest}`
    second = now
    return lines
  }
}

class HttpServer {
  readonly #connections = new Map<Duplex, Connection>()
  readonly #limits: typeof SERVER_LIMITS
  readonly #service: Service

  constructor(limits: typeof SERVER_LIMITS, service: Service) {
    this.#limits = limits
    this.#service = service
  }

  create(create: (options: object) => Server, pem: object | undefined): Server {
    const { headersMs, requestMs, keepAliveMs } = this.#limits
    const options = {
      ...pem,
      maxHeaderSize: HEADER_LIMIT_BYTES,
      // Coffer checks the header Host itself, so that the error is a problem document.
      requireHostHeader: false,
      connectionsCheckingInterval: CHECK_MS,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: keepAliveMs,
    }
    let server: Server
    try {
      server = create(options)
    } catch (cause) {
      const message = 'A TLS server cannot use this certificate and key. Give both as PEM files.'
      throw usage(message, { cause })
    }
    server.maxConnections = MAX_CONNECTIONS
    server.timeout = SILENCE_MS
    // A client that has closed its sending side still receives its answer.
    Object.assign(server, { httpAllowHalfOpen: true })
    const receive = (expectsContinue: boolean) => (message: IncomingMessage, response: ServerResponse) =>
      this.#connections.get(message.socket)?.receive(message, response, expectsContinue)
    server.on('request', receive(false))
    server.on('checkExpectation', receive(false))
    server.on('checkContinue', receive(true))
    // This event comes before the TLS handshake.
    server.on('connection', () => this.#service.budget.accept())
    server.on(pem === undefined ? 'connection' : 'secureConnection', (socket: Socket) => this.#admit(socket))
    server.on('connect', ({ method }, socket) =>
      this.#refuse(socket, new CofferError('method_not_allowed', 'This server is not a proxy.'), method),
    )
    server.on('clientError', (error, socket) => this.#refuse(socket, describeParserError(error)))
    return server
  }

  async stop(servers: readonly Server[]): Promise<void> {
    this.#service.isStopping = true
    const closed = servers.map((server) => closeListener(server))
    const timers = [
      // Because of `setImmediate`, the event loop first reads the requests that have arrived during a busy time.
      setTimeout(() => setImmediate(() => this.#closeIdle()), STOP_GRACE_MS),
      setTimeout(() => this.#closeAll(), this.#limits.stopMs),
    ]
    await Promise.all(closed)
    for (const timer of timers) clearTimeout(timer)
    for (const server of servers) server.close()
  }

  /** Node's `closeIdleConnections` does not close connections on which the client has not sent anything yet. */
  #closeIdle(): void {
    for (const [socket, { isIdle }] of this.#connections) if (isIdle) socket.destroy()
  }

  #closeAll(): void {
    for (const socket of this.#connections.keys()) socket.destroy()
  }

  #admit(socket: Socket): void {
    this.#connections.set(socket, new Connection(socket, this.#service))
    socket.once('close', () => this.#connections.delete(socket))
  }

  #refuse(socket: Duplex, error: CofferError, method?: string): void {
    const connection = this.#connections.get(socket)
    if (connection === undefined) socket.destroy()
    else connection.refuse(error, method)
  }
}

/**
 * Resolves when the server no longer listens and all connections are closed. The `close` of an HTTP server would close
 * idle connections at once, although a request may be about to arrive on them.
 */
function closeListener(server: Server): Promise<void> {
  return new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()))
}

/**
 * Listens on the same port of every address. `create` is called for each address.
 * @throws CofferError `unavailable`
 */
export async function listen<S extends NetServer>(
  create: () => S,
  addresses: readonly string[],
  port: number,
): Promise<{ servers: S[]; port: number }> {
  for (let tries = 1; ; tries++) {
    const servers: S[] = []
    let chosen = port
    try {
      for (const host of addresses) {
        const server = create()
        server.listen({ host, port: chosen, ipv6Only: host === '::1' })
        const failure = await once(server, 'listening').catch((error: unknown) => error)
        if (failure instanceof Error && (servers.length === 0 || !ABSENT.includes(codeOf(failure))))
          throw failure
        if (failure instanceof Error) continue
        servers.push(server)
        chosen = (server.address() as { port: number }).port
      }
      return { servers, port: chosen }
    } catch (error) {
      for (const server of servers) server.close()
      const code = codeOf(error) || 'unknown reason'
      if (port === 0 && code === 'EADDRINUSE' && tries < FREE_PORT_TRIES) continue
      if (error instanceof CofferError) throw error
      const messages: Record<string, string> = {
        EADDRINUSE: `Port ${port} is in use.`,
        EACCES: `This user is not allowed to use port ${port}. Choose a port above 1023.`,
      }
      const message = messages[code] ?? `The server could not listen (${code}).`
      throw new CofferError('unavailable', message, { cause: error })
    }
  }
}

export function answerLater(make: () => Promise<Answerer>) {
  let answer: Answerer | undefined
  let making: Promise<Answerer> | undefined
  const begin = () => (making ??= make().then((made) => (answer = made)))
  const answerer: Answerer = (request) => answer?.(request) ?? begin().then((made) => made(request))
  return { answerer, begin }
}
