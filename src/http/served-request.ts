/** One request on a socket: reads its body up to a limit, and sends its response as fast as the client reads it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { ByteCollector } from '../domain/proxy/collect-bytes.js'
import { type CofferError, validationError } from '../errors.js'
import type { AccessEntry } from './access-log.js'
import type { Answerer } from './answerer.js'
import { type ByteBudget, ByteLease } from './byte-budget.js'
import type { HttpRequest, HttpResponse } from './exchange.js'

/** Bytes of an unwanted body that are discarded, so that the client can send it and then read the answer. */
const DRAIN_LIMIT_BYTES = 8 * 1024 * 1024
/** A client has to read parts of a larger response in time. */
const LARGE_BYTES = 64 * 1024

export interface Service {
  answerer: Answerer
  budget: ByteBudget
  /** A client that reads nothing of a waiting response is disconnected after this time. */
  stallMs: number
  isStopping: boolean
  traceHeader: string
  /** Further headers of answers to bytes that are not a valid request. */
  headers: Readonly<Record<string, string>>
  createTraceId(): string
  record: ((entry: AccessEntry) => void) | undefined
  /** Receives the error of a response that could not be sent. */
  reportFault: ((error: unknown, traceId: string) => void) | undefined
}

export class ServedRequest implements HttpRequest {
  method: string
  target: string
  headers: HttpRequest['headers']
  client: string
  lease: ByteLease
  readonly #service: Service
  readonly #message: IncomingMessage
  readonly #response: ServerResponse
  /** Why the rest of the body cannot be read. */
  #fault: CofferError | undefined
  /** Whether the client waits for `100 Continue` before it sends the body. */
  #awaitsContinue: boolean

  constructor(
    service: Service,
    message: IncomingMessage,
    response: ServerResponse,
    expectsContinue: boolean,
  ) {
    this.#service = service
    this.#message = message
    this.#response = response
    this.#awaitsContinue = expectsContinue
    this.method = message.method ?? ''
    this.target = message.url ?? '/'
    this.headers = message.headers
    this.client = message.socket.remoteAddress ?? ''
    this.lease = new ByteLease(service.budget)
  }

  /** Fails the read of the body. False if the body is complete. */
  fail(error: CofferError): boolean {
    if (this.#message.complete) return false
    this.#fault = error
    this.#message.emit('fault', error)
    return true
  }

  /** `line` is the connection: `end` is called when the request is answered, or the client has disconnected. */
  async serve(line: { readonly isLast: boolean; end(): void }): Promise<void> {
    const { answerer, reportFault, createTraceId } = this.#service
    const response = this.#response
    let isDone = false
    response.once('close', () => {
      line.end()
      if (isDone) this.lease.end()
    })
    try {
      await this.#send(await answerer(this), line)
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
        try {
          if (bytes.length + chunk.length <= limitBytes) {
            this.lease.take(chunk.length)
            bytes.add(chunk)
            return
          }
          resolve(undefined)
        } catch (error) {
          reject(error)
        }
        message.off('data', read)
      }
      message.on('data', read)
      message.once('end', () => resolve(bytes.join()))
      message.once('close', () => {
        // Every body ends with it; an error made for each of them would cost a tenth of a POST.
        if (message.readableEnded) return
        reject(validationError('The connection closed before the body was complete.'))
      })
      message.once('fault', reject)
      if (this.#fault !== undefined) reject(this.#fault)
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

  async #send(
    { status, headers, body, bytes, stream, cutAt }: HttpResponse,
    line: { readonly isLast: boolean },
  ): Promise<void> {
    const [message, response] = [this.#message, this.#response]
    const isComplete = message.complete
    if (cutAt === 'start') return void message.socket.destroy()
    const { isStopping, stallMs } = this.#service
    if (!isComplete || (isStopping && line.isLast)) headers.connection = 'close'
    if (stream !== undefined) {
      // An error of the stream closes the connection, so that the client sees that the response is incomplete.
      this.lease.settle(0)
      response.writeHead(status, headers)
      await pipeline(stream, response, { end: false }).catch(() => response.destroy())
    } else {
      const length = bytes?.length ?? Buffer.byteLength(body)
      this.lease.settle(length)
      // A large text would be copied with the headers, and once more for what the client does not read at once.
      const content = bytes ?? (length > LARGE_BYTES ? Buffer.from(body) : body)
      if (status !== 204) headers['content-length'] = String(length)
      response.writeHead(status, headers)
      if (cutAt !== undefined)
        return void response.write(Buffer.from(content).subarray(0, cutAt), () => message.socket.destroy())
      if (length > LARGE_BYTES) response.setTimeout(stallMs)
      if (isComplete) return void response.end(content)
      response.write(content)
    }
    // Closing with unread bytes would reset the connection, and the client could lose the response.
    if (isComplete || this.#awaitsContinue || this.#fault !== undefined) response.end()
    else this.#drain()
  }

  /** Discards the rest of the body up to a limit, and then ends the response. */
  #drain(): void {
    const [message, response] = [this.#message, this.#response]
    for (const event of ['fault', 'close', 'end']) message.once(event, () => void response.end())
    let left = DRAIN_LIMIT_BYTES
    message.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) message.destroy()
    })
    message.resume()
  }
}
