/** Answers the requests of a connection in their order, and refuses bytes that are not a valid request. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { CofferError, validationError } from '../../errors.js'
import { ALL_METHODS, answerProblem, formatHead, HEALTH_PATH, type HttpResponse } from '../exchange.js'
import { ServedRequest, type Service } from './served-request.js'

/** A client has this time to read the answer to an invalid request before the connection is closed. */
const LINGER_MS = 1_000
/**
 * If more requests than this wait for answers, reading pauses, because the memory of a waiting request is 50 times as
 * large as its bytes.
 */
const MAX_AHEAD = 64

export class Connection {
  readonly #socket: Socket
  readonly #service: Service
  /** Requests without a complete answer. The first request is in progress. */
  readonly #requests: ServedRequest[] = []
  #refusal: string | undefined
  /** Whether invalid bytes have arrived. Bytes after invalid bytes are not parsed. */
  #isFaulty = false

  constructor(socket: Socket, service: Service) {
    this.#socket = socket
    this.#service = service
    // Node removes its own listeners at a CONNECT, and an error without a listener would end the process. The event
    // `close` follows the error.
    socket.on('error', () => undefined)
    socket.once('close', () => {
      const [request] = this.#requests.splice(0)
      request?.close()
    })
    // Node can resume the socket to read a body, or after the client has read answers. If too many requests wait,
    // pauses the socket again.
    socket.on('resume', () => this.#requests.length > MAX_AHEAD && socket.pause())
  }

  get isIdle(): boolean {
    return this.#requests.length === 0
  }

  get isLast(): boolean {
    return this.#requests.length === 1
  }

  receive(message: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    if (this.#isFaulty) return
    const hosts = countHosts(message.rawHeaders)
    // Node uses the first of repeated headers. RFC 9112 (3.2) requires an error for a repeated Host.
    if (hosts > 1 || (hosts === 0 && message.httpVersion === '1.1')) {
      this.refuse(validationError('A request must have exactly one Host header.'), message.method)
      return
    }
    const request = new ServedRequest(this, this.#service, message, response, expectsContinue)
    // A waiting request must not have a chunked body. Node keeps an object for each chunk, so a body of small chunks
    // would take 9 MiB of memory.
    if (!this.isIdle && message.headers['transfer-encoding'] !== undefined) {
      message.resume()
      const text =
        'This chunked request came before the previous request was answered. Wait for that answer first.'
      this.refuse(new CofferError('unavailable', text), message.method)
      return
    }
    const count = this.#requests.push(request)
    if (count > MAX_AHEAD) this.#socket.pause()
    if (count === 1) this.#start(request)
  }

  /** The health check does not wait for the budget, so that a busy server can show that it is alive. */
  #start(request: ServedRequest): void {
    const turn = request.target === HEALTH_PATH ? undefined : this.#service.budget.take()
    const serve = () => this.#socket.writable && void request.serve()
    if (turn === undefined) serve()
    else void turn.then(serve)
  }

  end(): void {
    this.#requests.shift()
    const [next] = this.#requests
    if (this.#requests.length === MAX_AHEAD) this.#socket.resume()
    // Starts the next request in a later iteration of the event loop, so that a client with thousands of requests does
    // not delay other clients.
    if (next !== undefined) setImmediate(() => this.#start(next))
    else if (this.#refusal !== undefined) this.#send(this.#refusal)
  }

  /**
   * If the invalid bytes belong to a body, the request with this body fails. Otherwise the error is sent after the
   * answers to earlier requests.
   */
  refuse(error: CofferError, method = '-'): void {
    if (this.#isFaulty) return
    this.#isFaulty = true
    if (this.#requests.at(-1)?.fail(error)) return
    const { traceHeader, headers, createTraceId, record } = this.#service
    const traceId = createTraceId()
    const answer = answerProblem(error, traceId)
    Object.assign(answer.headers, headers, { [traceHeader]: traceId })
    if (error.code === 'method_not_allowed') answer.headers.allow = ALL_METHODS
    if (this.isIdle) this.#send(formatLast(answer))
    else this.#refusal = formatLast(answer)
    record?.({ method, route: '-', status: error.status, ms: 0, traceId })
  }

  #send(text: string): void {
    if (this.#socket.writable) this.#socket.end(text)
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }
}

function countHosts(rawHeaders: readonly string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count
}

function formatLast({ status, headers, body }: HttpResponse): string {
  const all = { ...headers, connection: 'close', 'content-length': String(Buffer.byteLength(body)) }
  return `${formatHead(status, all)}\r\n${body}`
}
