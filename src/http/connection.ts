/** A client's connection: serves its requests one after another, and answers bytes that are not a valid request. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { CofferError, validationError } from '../errors.js'
import { ALL_METHODS, answerProblem, type HttpResponse } from './exchange.js'
import { HEALTH_PATH } from './pages/pages.js'
import { ServedRequest, type Service } from './served-request.js'

/** ms that a client has to read the answer to an invalid request before the connection is closed. */
const LINGER_MS = 1_000
/** Nothing more is read while more requests than this await their answers: each takes 50 times its bytes of memory. */
const MOST_AHEAD = 64
/** Waiting requests with a chunked body, of all connections: Node keeps an object for each chunk, up to 9 MiB in all. */
const MOST_CHUNKED = 16

export class Connection {
  readonly #socket: Socket
  readonly #service: Service
  readonly #waiting: ServedRequest[] = []
  #open = 0
  /** Waiting requests with a chunked body. */
  #chunked = 0
  #last: IncomingMessage | undefined
  /** The answer to an invalid request, sent after the answers to the requests before it. */
  #refusal: string | undefined
  /** The error of an invalid request. Nothing after it is parsed. */
  fault: CofferError | undefined

  constructor(socket: Socket, service: Service) {
    this.#socket = socket
    this.#service = service
    // Node listens no more after a CONNECT; an error that nobody listens for would end the process. `close` follows.
    socket.on('error', () => undefined)
    socket.once('close', () => {
      this.#waiting.length = 0
      this.#countChunked(-this.#chunked)
    })
    // Node resumes it for the body of each request, and when the client has taken answers.
    socket.on('resume', () => this.#open > MOST_AHEAD && socket.pause())
  }

  get isIdle(): boolean {
    return this.#open === 0
  }

  /** Whether only one request is in progress. */
  get isLast(): boolean {
    return this.#open === 1
  }

  receive(message: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    if (this.fault !== undefined) return
    const hosts = countHosts(message)
    if (hosts > 1 || (hosts === 0 && message.httpVersion === '1.1')) {
      this.refuse(validationError('A request must have exactly one Host header.'), message.method)
      return
    }
    if (this.#open > 0 && isChunked(message) && !this.#admitsChunks()) {
      message.resume()
      this.refuse(
        new CofferError('unavailable', 'Too many chunked requests await earlier answers.'),
        message.method,
      )
      return
    }
    const request = new ServedRequest(this.#service, this, message, response, expectsContinue)
    this.#last = message
    this.#open++
    if (this.#open > MOST_AHEAD) this.#socket.pause()
    if (this.#open === 1) this.#start(request)
    else this.#waiting.push(request)
  }

  /** Requests of many connections take turns too. The check of health never waits, as it tells that the server is alive. */
  #start(request: ServedRequest): void {
    const turn = request.target === HEALTH_PATH ? undefined : this.#service.budget.turns.take()
    const serve = () => this.#socket.writable && void request.serve()
    if (turn === undefined) serve()
    else void turn.then(serve)
  }

  /** Call when a request is answered, or the client has disconnected. */
  end(): void {
    this.#open--
    if (this.#open === MOST_AHEAD) this.#socket.resume()
    const next = this.#waiting.shift()
    if (next !== undefined && isChunked(next)) this.#countChunked(-1)
    // In a later turn of the event loop: a client that sends thousands of requests at once must not hold up the others.
    if (next !== undefined) setImmediate(() => this.#start(next))
    if (this.#open === 0 && this.#refusal !== undefined) this.#send(this.#refusal)
  }

  #admitsChunks(): boolean {
    if (this.#service.budget.chunked >= MOST_CHUNKED) return false
    this.#countChunked(1)
    return true
  }

  #countChunked(change: number): void {
    this.#chunked += change
    this.#service.budget.chunked += change
  }

  /**
   * Answers invalid bytes with `error`, after the answers to the requests before them. If they are part of a body, fails
   * the read of that body instead.
   */
  refuse(error: CofferError, method = '-'): void {
    if (this.fault !== undefined) return
    this.fault = error
    if (this.#open > 0 && this.#last?.complete === false) {
      this.#last.emit('fault', error)
      return
    }
    const { traceHeader, headers, createTraceId, record } = this.#service
    const traceId = createTraceId()
    const answer = answerProblem(error, traceId)
    Object.assign(answer.headers, headers, { [traceHeader]: traceId })
    if (error.code === 'method_not_allowed') answer.headers.allow = ALL_METHODS
    if (this.#open > 0) this.#refusal = formatLast(answer)
    else this.#send(formatLast(answer))
    record?.({ method, route: '-', status: error.status, ms: 0, traceId })
  }

  #send(text: string): void {
    if (this.#socket.writable) this.#socket.end(text)
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }
}

function isChunked({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined
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

/** The bytes of an answer that is the last one of its connection. */
function formatLast({ status, headers, body }: HttpResponse): string {
  const all = { ...headers, connection: 'close', 'content-length': String(Buffer.byteLength(body)) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

type ParserError = Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number }

export function describeParserError(error: ParserError): CofferError {
  const { code } = error
  if (code === 'HPE_HEADER_OVERFLOW')
    return new CofferError('headers_too_large', 'The request line and headers are larger than 16 KiB.')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new CofferError('request_timeout', 'The request took too long to arrive.')
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return new CofferError('too_large', 'The extensions of the chunks are too large.')
  if (code === 'HPE_INVALID_METHOD' && /^[A-Z]{1,30} \S+ HTTP\//.test(faultyLine(error)))
    return new CofferError('method_not_allowed', 'This HTTP method is not supported.')
  return validationError('This is not a valid HTTP/1.1 request.')
}

/** The packet from the line on in which the parser stopped. */
function faultyLine({ rawPacket, bytesParsed = 0 }: ParserError): string {
  const text = rawPacket?.toString('latin1') ?? ''
  return text.slice(text.lastIndexOf('\n', bytesParsed) + 1)
}
