/** A client's connection: the order of its pipelined requests, and answers to bytes that are not a valid request. */
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { CofferError, validationError } from '../errors.js'
import { ALL_METHODS, type Answer, answerProblem } from './exchange.js'

/** ms that a client has to read the answer to an invalid request before the connection is closed. */
const LINGER_MS = 1_000
/** Nothing more is read while more requests than this await their answers: each takes 50 times its bytes of memory. */
const MOST_AHEAD = 64

export class Connection {
  readonly #socket: Socket
  #open = 0
  /** The answer to an invalid request, sent after the answers to the requests before it. */
  #refusal: string | undefined
  #fault: CofferError | undefined
  #last: IncomingMessage | undefined
  readonly #waiting: (() => void)[] = []
  #taken = 0
  #stalled = 0
  #failBody: ((error: CofferError) => void) | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    // Node resumes it for the body of each request, and when the client has taken answers.
    socket.on('resume', () => this.#open > MOST_AHEAD && socket.pause())
  }

  get isIdle(): boolean {
    return this.#open === 0
  }

  /** Whether an invalid request has been received, after which nothing more is parsed. */
  get isBroken(): boolean {
    return this.#fault !== undefined
  }

  /** Whether only one request is in progress. */
  get isLast(): boolean {
    return this.#open === 1
  }

  /** Calls `answer` once all requests before this one are answered, so that one is handled at a time. */
  begin(request: IncomingMessage, answer: () => void): void {
    this.#open++
    if (this.#open > MOST_AHEAD) this.#socket.pause()
    this.#last = request
    if (this.#open === 1) answer()
    else this.#waiting.push(answer)
  }

  /** Call when a request is answered, or the client has disconnected. */
  end(): void {
    this.#open--
    if (this.#open === MOST_AHEAD) this.#socket.resume()
    if (this.#socket.writable) this.#beginNext()
    if (this.#open === 0 && this.#refusal !== undefined) this.#send(this.#refusal)
  }

  /** In a later turn of the event loop: a client that sends thousands of requests at once must not hold up the others. */
  #beginNext(): void {
    const next = this.#waiting.shift()
    if (next !== undefined) setImmediate(next)
  }

  /** Call periodically. Returns for how many calls in a row data was waiting and the client read none of it. */
  countStalls(): number {
    const { bytesWritten, writableLength } = this.#socket
    const taken = bytesWritten - writableLength
    this.#stalled = writableLength === 0 || taken !== this.#taken ? 0 : this.#stalled + 1
    this.#taken = taken
    return this.#stalled
  }

  /** `fail` is called if the rest of the body cannot arrive any more; undefined ends the wait. */
  awaitBody(fail: ((error: CofferError) => void) | undefined): void {
    this.#failBody = fail
    if (this.#fault !== undefined) fail?.(this.#fault)
  }

  /**
   * Answers invalid bytes with `error`, after the answers to the requests before them. If they are part of a body, fails
   * the read of that body instead. Returns whether an answer of its own is sent.
   */
  refuse(error: CofferError, traceId: string, headers: Readonly<Record<string, string>>): boolean {
    if (this.#fault !== undefined) return false
    this.#fault = error
    if (this.#open > 0 && this.#last?.complete === false) {
      this.#failBody?.(error)
      return false
    }
    const answer = answerProblem(error, traceId)
    Object.assign(answer.headers, headers)
    if (error.code === 'method_not_allowed') answer.headers.allow = ALL_METHODS
    if (this.#open > 0) this.#refusal = spellAnswer(answer)
    else this.#send(spellAnswer(answer))
    return true
  }

  #send(text: string): void {
    if (this.#socket.writable) this.#socket.end(text)
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }
}

/** The bytes of an answer that is the last one of its connection. */
function spellAnswer({ status, headers, body }: Answer): string {
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
