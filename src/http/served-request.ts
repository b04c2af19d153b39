/** One request on a socket: reads its body up to a limit, and sends its response as fast as the client reads it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { ByteCollector } from '../domain/proxy/collect-bytes.js'
import { type CofferError, validationError } from '../errors.js'
import type { Answerer } from './answerer.js'
import { type ByteBudget, ByteLease } from './byte-budget.js'
import { formatHead, type HttpRequest, type HttpResponse } from './exchange.js'
import type { AnswererOptions } from './options.js'

/** Bytes of an unwanted body that are discarded, so that the client can send it and then read the answer. */
const DRAIN_LIMIT_BYTES = 8 * 1024 * 1024
/** A client has to read parts of a larger response in time. */
const LARGE_BYTES = 64 * 1024

export interface Service extends Pick<AnswererOptions, 'record' | 'reportFault'> {
  answerer: Answerer
  budget: ByteBudget
  /** A client that reads nothing of a waiting response is disconnected after this time. */
  stallMs: number
  isStopping: boolean
  traceHeader: string
  /** Further headers of answers to bytes that are not a valid request. */
  headers: Readonly<Record<string, string>>
  /** Headers of an answer after which the connection stays open. */
  keepAliveLines(): string
  createTraceId(): string
}

/** The connection of a request. `end`: the request is answered, or the client has disconnected. */
interface Line {
  readonly isLast: boolean
  end(): void
}

export class ServedRequest implements HttpRequest {
  method: string
  target: string
  headers: HttpRequest['headers']
  lease: ByteLease
  readonly #connection: Line
  readonly #service: Service
  readonly #message: IncomingMessage
  readonly #response: ServerResponse
  /** Why the rest of the body cannot be read. */
  #fault: CofferError | undefined
  /** Whether the client waits for `100 Continue` before it sends the body. */
  #awaitsContinue: boolean
  /** The answer is sent, or the client has disconnected. */
  #isClosed = false
  #isDone = false

  constructor(
    connection: Line,
    service: Service,
    message: IncomingMessage,
    response: ServerResponse,
    expectsContinue: boolean,
  ) {
    this.#connection = connection
    this.#service = service
    this.#message = message
    this.#response = response
    this.#awaitsContinue = expectsContinue
    this.method = message.method ?? ''
    this.target = message.url ?? '/'
    this.headers = message.headers
    this.lease = new ByteLease(service.budget)
  }

  get client(): string {
    return this.#message.socket.remoteAddress ?? ''
  }

  /** Fails the read of the body. False if the body is complete. */
  fail(error: CofferError): boolean {
    if (this.#message.complete) return false
    this.#fault = error
    this.#message.emit('fault', error)
    return true
  }

  async serve(): Promise<void> {
    const { answerer, reportFault, createTraceId } = this.#service
    try {
      await this.#send(await answerer(this))
    } catch (error) {
      // A response that cannot be sent must not affect other connections.
      this.#message.socket.destroy()
      reportFault?.(error, createTraceId())
    }
    // The bytes are counted until the work is finished, even if the client has disconnected.
    this.#isDone = true
    if (this.#isClosed) this.lease.end()
  }

  /** Call when the answer is sent, or the client has disconnected. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#isDone) this.lease.end()
    this.#connection.end()
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

  /** A promise unless the answer is sent at once. */
  #send(answer: HttpResponse): Promise<void> | undefined {
    const { headers, body, bytes, stream, cutAt } = answer
    if (cutAt === 'start') return void this.#message.socket.destroy()
    if (!this.#message.complete || (this.#service.isStopping && this.#connection.isLast))
      headers.connection = 'close'
    const length = stream === undefined ? (bytes?.length ?? Buffer.byteLength(body)) : 0
    this.lease.settle(length)
    if (length <= LARGE_BYTES && this.#sendAtOnce(answer, length)) return undefined
    return this.#sendByNode(answer, length)
  }

  async #sendByNode(answer: HttpResponse, length: number): Promise<void> {
    const { status, headers, body, bytes, stream, cutAt } = answer
    const message = this.#message
    const response = this.#response
    const isComplete = message.complete
    response.once('close', () => this.close())
    if (stream !== undefined) {
      // An error of the stream closes the connection, so that the client sees that the response is incomplete.
      response.writeHead(status, headers)
      await pipeline(stream, response, { end: false }).catch(() => response.destroy())
    } else {
      // A large text would be copied with the headers, and once more for what the client does not read at once.
      const content = bytes ?? (length > LARGE_BYTES ? Buffer.from(body) : body)
      if (status !== 204) headers['content-length'] = String(length)
      response.writeHead(status, headers)
      if (typeof cutAt === 'number')
        return void response.write(Buffer.from(content).subarray(0, cutAt), () => message.socket.destroy())
      if (length > LARGE_BYTES) response.setTimeout(this.#service.stallMs)
      if (isComplete) return void response.end(content)
      response.write(content)
    }
    // Closing with unread bytes would reset the connection, and the client could lose the response.
    if (isComplete || this.#awaitsContinue || this.#fault !== undefined) response.end()
    else this.#drain()
  }

  /** In one write, in half the time. False if Node has to send it, as with headers that are not ours. */
  #sendAtOnce({ status, headers, body, bytes, stream, cutAt }: HttpResponse, length: number): boolean {
    const { socket, httpVersion, method } = this.#message
    const response = this.#response
    const isOther =
      (bytes ?? stream ?? cutAt ?? headers.connection ?? headers['content-security-policy']) !== undefined
    if (isOther || !response.shouldKeepAlive || httpVersion !== '1.1' || response.socket !== socket)
      return false
    let text = formatHead(status, headers)
    if (text === undefined) return false
    if (status !== 204) text += `content-length: ${length}\r\n`
    text += `${this.#service.keepAliveLines()}\r\n`
    const encoding = length === body.length ? 'latin1' : 'utf8'
    socket.write(method === 'HEAD' ? text : text + body, encoding, () => {
      // Has Node begin with the next request of the connection.
      response.emit('finish')
      this.close()
    })
    return true
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
