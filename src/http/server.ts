/** The HTTP server: its connections, limits of time, and a stop that still answers all accepted requests. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { CofferError, usage } from '../errors.js'
import { ByteBudget } from './byte-budget.js'
import { Connection, describeParserError } from './connection.js'
import { listen } from './listen.js'
import type { Service } from './served-request.js'

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

/** The limit of the request line and headers together. */
const HEADER_LIMIT_BYTES = 16_384
const MOST_CONNECTIONS = 10_000
/** A client that neither reads nor writes for this time is disconnected. */
const SILENCE_MS = 120_000
/** At a stop, idle connections stay open for this time, because a request may be about to arrive. */
const STOP_GRACE_MS = 100
/** The interval at which Node checks the time limits. */
const CHECK_MS = 500

export interface ServerOptions
  extends Pick<Service, 'answerer' | 'traceHeader' | 'createTraceId' | 'record' | 'reportFault'>,
    Partial<Pick<Service, 'budget' | 'headers'>> {
  /** The machine must have the first address; others that it does not have are skipped. */
  addresses: readonly string[]
  /** 0 for any free port; the same on every address. */
  port: number
  /** PEM texts. */
  tls?: { cert: string; key: string }
  limits?: ServerLimits
}

export interface RunningServer {
  readonly port: number
  /** Stops accepting connections; resolves when all accepted requests are answered or after `stopMs`. */
  stop(): Promise<void>
}

/** Resolves when requests are accepted. @throws CofferError `unavailable`, `usage` for invalid TLS files */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const create = options.tls === undefined ? createServer : await prepareTls(options.tls)
  const connections = new Connections(options)
  const { servers, port } = await listen(() => connections.createServer(create), options)
  return { port, stop: () => connections.stop(servers) }
}

class Connections {
  readonly #bySocket = new Map<Duplex, Connection>()
  readonly #limits: ServerLimits
  readonly #service: Service
  #whenEmpty: (() => void) | undefined

  constructor({
    limits = SERVER_LIMITS,
    budget = new ByteBudget(),
    headers = {},
    ...service
  }: ServerOptions) {
    this.#limits = limits
    this.#service = { ...service, budget, headers, stallMs: limits.stallMs, isStopping: false }
  }

  createServer(create: CreateServer): Server {
    const { headersMs, requestMs, keepAliveMs } = this.#limits
    const server = create({
      maxHeaderSize: HEADER_LIMIT_BYTES,
      // Our own check answers with a problem document.
      requireHostHeader: false,
      connectionsCheckingInterval: CHECK_MS,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: keepAliveMs,
    })
    server.maxConnections = MOST_CONNECTIONS
    server.timeout = SILENCE_MS
    // A client that has closed its side of the connection still gets its answer.
    Object.assign(server, { httpAllowHalfOpen: true })
    const receive = (message: IncomingMessage, response: ServerResponse) =>
      this.#bySocket.get(message.socket)?.receive(message, response, false)
    server.on('request', receive)
    server.on('checkExpectation', receive)
    server.on('checkContinue', (message, response) =>
      this.#bySocket.get(message.socket)?.receive(message, response, true),
    )
    const isTls = create !== createServer
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => this.#admit(socket))
    server.on('connect', ({ method }, socket) =>
      this.#refuse(socket, new CofferError('method_not_allowed', 'This server is not a proxy.'), method),
    )
    server.on('clientError', (error, socket) => this.#refuse(socket, describeParserError(error)))
    return server
  }

  async stop(servers: readonly Server[]): Promise<void> {
    this.#service.isStopping = true
    // `close` of the HTTP server would also close idle connections, on which a request may be about to arrive.
    for (const server of servers) NetServer.prototype.close.call(server)
    const timers = [
      setTimeout(() => this.#destroy(({ isIdle }) => isIdle), STOP_GRACE_MS),
      setTimeout(() => this.#destroy(() => true), this.#limits.stopMs),
    ]
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve
      if (this.#bySocket.size === 0) resolve()
    })
    for (const timer of timers) clearTimeout(timer)
    for (const server of servers) server.close()
  }

  #destroy(isChosen: (connection: Connection) => boolean): void {
    for (const [socket, connection] of this.#bySocket) if (isChosen(connection)) socket.destroy()
  }

  #admit(socket: Socket): void {
    this.#bySocket.set(socket, new Connection(socket, this.#service))
    socket.once('close', () => {
      this.#bySocket.delete(socket)
      if (this.#bySocket.size === 0) this.#whenEmpty?.()
    })
  }

  #refuse(socket: Duplex, error: CofferError, method?: string): void {
    const connection = this.#bySocket.get(socket)
    if (connection === undefined) socket.destroy()
    else connection.refuse(error, method)
  }
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
