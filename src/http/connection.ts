/**
 * One client's connection: how many of its requests are unanswered, and how a request that never became one is
 * refused in our own shape. It knows bytes and order, not what is asked.
 */
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { CofferError } from '../errors.js'
import { type Answer, answerProblem } from './exchange.js'

/** How long a refused client may take to read the refusal before the connection is cut. */
const LINGER_MS = 1_000

export class Connection {
  readonly #socket: Socket
  #open = 0
  /** What is said when everything before it is answered. */
  #refusal: string | undefined
  #fault: CofferError | undefined
  #last: IncomingMessage | undefined
  readonly #waiting: (() => void)[] = []
  #taken = 0
  #stalled = 0
  #failBody: ((error: CofferError) => void) | undefined

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** No request is under way. */
  get isIdle(): boolean {
    return this.#open === 0
  }

  /** Nothing that comes from this client can be understood any more. */
  get isBroken(): boolean {
    return this.#fault !== undefined
  }

  /** The request under way is the last one that came. */
  get isLast(): boolean {
    return this.#open === 1
  }

  /** `answer` is called once every request before this one is answered: who sends many at once has one under way. */
  begin(request: IncomingMessage, answer: () => void): void {
    this.#open++
    this.#last = request
    if (this.#open === 1) answer()
    else this.#waiting.push(answer)
  }

  /** One more answer is out, or its client is gone. */
  end(): void {
    this.#open--
    if (this.#socket.writable) this.#waiting.shift()?.()
    if (this.#open === 0 && this.#refusal !== undefined) this.#send(this.#refusal)
  }

  /** Looked at from time to time: how often in a row something waited to be sent and none of it was taken. */
  countStalls(): number {
    const { bytesWritten, writableLength } = this.#socket
    const taken = bytesWritten - writableLength
    this.#stalled = writableLength === 0 || taken !== this.#taken ? 0 : this.#stalled + 1
    this.#taken = taken
    return this.#stalled
  }

  /** Who waits for a body is told when the rest of it can never come; undefined: nobody waits any more. */
  awaitBody(fail: ((error: CofferError) => void) | undefined): void {
    this.#failBody = fail
    if (this.#fault !== undefined) fail?.(this.#fault)
  }

  /**
   * Refuses what came instead of a request, after the answers to those before it. When it is the body of one that is
   * broken, whoever reads that is told instead. True when the refusal is an answer of its own.
   */
  refuse(error: CofferError, traceId: string, traceHeader: string): boolean {
    if (this.#fault !== undefined) return false
    this.#fault = error
    if (this.#open > 0 && this.#last?.complete === false) {
      this.#failBody?.(error)
      return false
    }
    const answer = answerProblem(error, traceId)
    answer.headers[traceHeader] = traceId
    if (error.code === 'method_not_allowed') answer.headers.allow = 'DELETE, GET, HEAD, PATCH, POST, PUT'
    if (this.#open > 0) this.#refusal = spellAnswer(answer)
    else this.#send(spellAnswer(answer))
    return true
  }

  #send(text: string): void {
    if (this.#socket.writable) this.#socket.end(text)
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }
}

/** `answer` as it goes over the wire, the last of its connection. */
function spellAnswer({ status, headers, body }: Answer): string {
  const all = { ...headers, connection: 'close', 'content-length': String(Buffer.byteLength(body)) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

type ParserError = Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number }

/** What Node's parser complains of, in our words. */
export function describeParserError(error: ParserError): CofferError {
  const { code } = error
  if (code === 'HPE_HEADER_OVERFLOW')
    return new CofferError('headers_too_large', 'The request line and headers are larger than 16 KiB.')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new CofferError('request_timeout', 'The request took too long to arrive.')
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return new CofferError('too_large', 'The extensions of the chunks are too large.')
  if (code === 'HPE_INVALID_METHOD' && /^[A-Z]{1,30} \S+ HTTP\//.test(faultyLine(error)))
    return new CofferError('method_not_allowed', 'This method is not known here.')
  return new CofferError('validation', 'This is not an HTTP/1.1 request that can be understood.')
}

/** The line that the parser stopped in, and what follows it. */
function faultyLine({ rawPacket, bytesParsed = 0 }: ParserError): string {
  const text = rawPacket?.toString('latin1') ?? ''
  return text.slice(text.lastIndexOf('\n', bytesParsed) + 1)
}
