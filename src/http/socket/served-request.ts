/** A request on a socket. A streamed response is not sent faster than the client reads. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CofferError } from '../../errors.js'
import type { Answerer } from '../answerer.js'
import { type ByteBudget, ByteLease } from '../byte-budget.js'
import type { HttpRequest, HttpResponse } from '../exchange.js'
import type { AnswererOptions } from '../options.js'
import { RequestBody } from './request-body.js'
import { LARGE_BYTES, sendResponse } from './send-response.js'
import { writePastNode } from './write-past-node.js'

export interface Service extends Pick<AnswererOptions, 'record' | 'reportFault'> {
  answerer: Answerer
  budget: ByteBudget
  stallMs: number
  isStopping: boolean
  traceHeader: string
  headers: Readonly<Record<string, string>>
  keepAliveLines(): string
  createTraceId(): string
}

/** `end` is called when the request is answered or the client has disconnected. */
interface Line {
  /** True if no further request waits on the connection. */
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
  readonly #body: RequestBody
  /** The request is answered, or the client has disconnected. */
  #isClosed = false
  /** The work for the request is finished. */
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
    this.method = message.method ?? ''
    this.target = message.url ?? '/'
    this.headers = message.headers
    this.lease = new ByteLease(service.budget)
    const sendContinue = expectsContinue ? () => response.writeContinue() : undefined
    this.#body = new RequestBody(message, this.lease, sendContinue)
  }

  get isSecure(): boolean {
    return 'encrypted' in this.#message.socket
  }

  get client(): string {
    return this.#message.socket.remoteAddress ?? ''
  }

  readBody(limitBytes: number): Promise<Uint8Array | undefined> {
    return this.#body.read(limitBytes)
  }

  streamBody(limitBytes: number): AsyncIterable<Uint8Array> {
    return this.#body.stream(limitBytes)
  }

  fail(error: CofferError): boolean {
    return this.#body.fail(error)
  }

  async serve(): Promise<void> {
    const { answerer, reportFault, createTraceId } = this.#service
    try {
      await this.#send(await answerer(this))
    } catch (error) {
      // Only this connection is closed. `Connection` then calls `close`.
      this.#message.socket.destroy()
      reportFault?.(error, createTraceId())
    }
    // Even if the client has disconnected, the bytes of the request count in the budget until the work for the request
    // is finished.
    this.#isDone = true
    if (this.#isClosed) this.lease.end()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#isDone) this.lease.end()
    this.#connection.end()
  }

  /**
   * Calls `listener` when the client disconnects or closes its sending side, because a client that gives up may do
   * either. Also calls it after the answer, so `listener` may be called twice.
   */
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

  #send(answer: HttpResponse): Promise<void> | undefined {
    const { headers, body, bytes, stream } = answer
    const [message, response] = [this.#message, this.#response]
    const { isStopping, stallMs, keepAliveLines } = this.#service
    if (answer.cutAt === 'start') return void message.socket.destroy()
    if (!message.complete || (isStopping && this.#connection.isLast)) headers.connection = 'close'
    const length = stream === undefined ? (bytes?.length ?? Buffer.byteLength(body)) : 0
    // A streamed answer keeps the reserved bytes until the stream has ended.
    if (stream === undefined) this.lease.settle(length)
    const close = () => this.close()
    const isSmall = length <= LARGE_BYTES
    if (isSmall && writePastNode(message, response, answer, { length, keepAliveLines, done: close }))
      return undefined
    response.once('close', close)
    return sendResponse(response, answer, { length, body: this.#body, stallMs })
  }
}
