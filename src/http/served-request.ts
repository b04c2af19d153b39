/** One request on a socket: reads its body up to a limit, and sends its response as fast as the client reads it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { ByteCollector } from '../domain/proxy/collect-bytes.js'
import { type CofferError, validationError } from '../errors.js'
import type { AccessEntry } from './access-log.js'
import type { Answerer } from './answerer.js'
import { type ByteBudget, ByteLease } from './byte-budget.js'
import type { HttpRequest, HttpResponse } from './exchange.js'

/** Bytes of an unwanted body that are discarded, so that the client can send it and then read the answer. */
const DRAIN_LIMIT_BYTES = 8 * 1024 * 1024
/** Responses up to this size are written in one call. */
const CHUNK_BYTES = 64 * 1024

/** The settings and functions that all connections of a server share. */
export interface Service {
  answerer: Answerer
  budget: ByteBudget
  /** A client that reads nothing of a waiting response is disconnected after this time. */
  stallMs: number
  isStopping: boolean
  /** The name of the trace id's header. */
  traceHeader: string
  /** Further headers of answers to bytes that are not a valid request. */
  headers: Readonly<Record<string, string>>
  createTraceId(): string
  record?: ((entry: AccessEntry) => void) | undefined
  /** Receives the error of a response that could not be sent. */
  reportFault?: ((error: unknown, traceId: string) => void) | undefined
}

/** The connection of a request, as far as the request needs it. */
interface Line {
  /** Why nothing more of the connection is parsed. */
  readonly fault: CofferError | undefined
  /** Whether only one request is in progress. */
  readonly isLast: boolean
  /** Call when a request is answered, or the client has disconnected. */
  end(): void
}

export class ServedRequest implements HttpRequest {
  readonly method: string
  readonly target: string
  readonly headers: HttpRequest['headers']
  readonly client: string
  readonly lease: ByteLease
  readonly #service: Service
  readonly #connection: Line
  readonly #message: IncomingMessage
  readonly #response: ServerResponse
  /** Whether the client waits for `100 Continue` before it sends the body. */
  #awaitsContinue: boolean

  constructor(
    service: Service,
    connection: Line,
    message: IncomingMessage,
    response: ServerResponse,
    expectsContinue: boolean,
  ) {
    this.#service = service
    this.#connection = connection
    this.#message = message
    this.#response = response
    this.#awaitsContinue = expectsContinue
    this.method = message.method ?? ''
    this.target = message.url ?? '/'
    this.headers = message.headers
    this.client = message.socket.remoteAddress ?? ''
    this.lease = new ByteLease(service.budget)
  }

  async serve(): Promise<void> {
    const { answerer, reportFault, createTraceId } = this.#service
    const response = this.#response
    let isDone = false
    response.once('close', () => {
      this.#connection.end()
      if (isDone) this.lease.end()
    })
    try {
      await this.#send(await answerer(this))
    } catch (error) {
      // A response that cannot be sent must not affect other connections.
      this.#message.socket.destroy()
      reportFault?.(error, createTraceId())
    }
    // The bytes are counted until the work is finished, even if the client has disconnected.
    isDone = true
    if (response.closed) this.lease.end()
  }

  readBody(limitBytes: number): Promise<Uint8Array | undefined> {
    const message = this.#message
    if (Number(message.headers['content-length'] ?? 0) > limitBytes) return Promise.resolve(undefined)
    if (this.#awaitsContinue) this.#response.writeContinue()
    this.#awaitsContinue = false
    return new Promise((resolve, reject) => {
      const bytes = new ByteCollector()
      const read = (chunk: Buffer) => {
        if (bytes.length + chunk.length > limitBytes) {
          message.off('data', read)
          resolve(undefined)
          return
        }
        bytes.add(chunk)
        try {
          this.lease.take(chunk.length)
        } catch (error) {
          message.off('data', read)
          reject(error)
        }
      }
      message.on('data', read)
      message.once('end', () => resolve(bytes.join()))
      message.once('close', () => {
        // Every body ends with it; an error made for each of them would cost a tenth of a POST.
        if (message.readableEnded) return
        reject(validationError('The connection closed before the body was complete.'))
      })
      message.once('fault', reject)
      if (this.#connection.fault !== undefined) reject(this.#connection.fault)
    })
  }

  /** Calls `listener` also for a client that only says that it will send no more, as one does that has left. */
  onLeave(listener: () => void): void {
    const { socket } = this.#message
    const response = this.#response
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

  /** Resolves when the response is with the socket, or the client has left. */
  async #send({ status, headers, body, bytes, more = [], stream, cutAt }: HttpResponse): Promise<void> {
    const [message, response] = [this.#message, this.#response]
    const isComplete = message.complete
    const { isStopping, stallMs } = this.#service
    if (cutAt === 'start') return void message.socket.destroy()
    if (!isComplete || (isStopping && this.#connection.isLast)) headers.connection = 'close'
    if (stream !== undefined) {
      this.lease.settle(0)
      response.writeHead(status, headers)
      await writeStream(response, stream)
      return void response.end()
    }
    const first = bytes ?? body
    const length = more.reduce((sum, piece) => sum + Buffer.byteLength(piece), Buffer.byteLength(first))
    this.lease.settle(length)
    if (status !== 204) headers['content-length'] = String(length)
    response.writeHead(status, headers)
    if (cutAt !== undefined) {
      response.write(Buffer.from(first).subarray(0, cutAt), () => message.socket.destroy())
      return
    }
    const isLarge = length > CHUNK_BYTES && message.method !== 'HEAD'
    if (isComplete && !isLarge) return void response.end(first)
    if (isLarge) {
      response.setTimeout(stallMs)
      await writeStream(response, chunksOf([first, ...more.splice(0)]))
    } else response.write(first)
    // Closing with unread bytes would reset the connection, and the client could lose the response.
    if (isComplete || this.#awaitsContinue || this.#connection.fault !== undefined) response.end()
    else this.#drain()
  }

  /** Discards the rest of the body up to a limit, and then ends the response. */
  #drain(): void {
    const [message, response] = [this.#message, this.#response]
    const end = () => void response.end()
    for (const event of ['fault', 'close', 'end']) message.once(event, end)
    let left = DRAIN_LIMIT_BYTES
    message.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) message.destroy()
    })
    message.resume()
  }
}

/**
 * Writes `stream` as fast as the client reads it, and leaves it when the client has disconnected. An error of the stream
 * closes the connection, so that the client sees that the response is incomplete.
 */
async function writeStream(response: ServerResponse, stream: AsyncIterable<Uint8Array>): Promise<void> {
  const source = stream[Symbol.asyncIterator]()
  const closed = new Promise<undefined>((resolve) => response.once('close', () => resolve(undefined)))
  while (!response.destroyed) {
    const next = await Promise.race([source.next(), closed]).catch(() => {
      response.destroy()
      return undefined
    })
    if (next === undefined || next.done === true) return
    const written = new Promise<void>((resolve) => response.write(next.value, () => resolve()))
    await Promise.race([written, closed])
  }
  // Not awaited: a source that waits for its next piece ends when that comes, or never.
  void source.return?.()?.catch(() => undefined)
}

/** Empties `pieces`, yielding to the event loop after each chunk. */
async function* chunksOf(pieces: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    const whole = Buffer.from(piece)
    for (let at = 0; at < whole.length; at += CHUNK_BYTES) {
      yield whole.subarray(at, at + CHUNK_BYTES)
      await setImmediate()
    }
  }
}
