/**
 * `request`, `get` and `Agent` of `http` and `https`, on top of `fetch`. Therefore code reaches the same hosts and has
 * the same limits as with `fetch`. Code gets no socket of a connection. A request is sent when the code has called
 * `end`, and the answer arrives as a whole.
 */

import { fetch } from 'coffer:internals'
import { EventEmitter } from 'node:events'
import { Readable, Writable } from 'node:stream'

type Headers = Record<string, string | string[]>
type Listener = (response: IncomingMessage) => void
type Done = (error?: Error | null) => void

export interface RequestOptions {
  protocol?: string
  hostname?: string
  host?: string
  port?: string | number
  path?: string
  method?: string
  headers?: Record<string, unknown> | readonly unknown[]
  auth?: string
  timeout?: number
  signal?: AbortSignal
  agent?: unknown
}

/** `fetch` has the same limit. */
const MAX_BODY_BYTES = 1024 * 1024

/**
 * These options change the receiver or the sender of a request. A request with one of these options is refused, because
 * without the option it would have another receiver or sender.
 */
const REFUSED = [
  'ca',
  'cert',
  'key',
  'passphrase',
  'pfx',
  'createConnection',
  'lookup',
  'socketPath',
] as const

function makeError(Class: ErrorConstructor, code: string, message: string): Error {
  return Object.assign(new Class(message), { code })
}

export function validateHeaderName(name: unknown): void {
  if (typeof name !== 'string' || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
    throw makeError(TypeError, 'ERR_INVALID_HTTP_TOKEN', `Header name must be a valid HTTP token ["${name}"]`)
}

export function validateHeaderValue(name: unknown, value: unknown): void {
  if (value === undefined)
    throw makeError(TypeError, 'ERR_HTTP_INVALID_HEADER_VALUE', `Invalid value for header "${name}"`)
  if (/[^\t\x20-\x7e\x80-\xff]/.test(String(value)))
    throw makeError(TypeError, 'ERR_INVALID_CHAR', `Invalid character in header content ["${name}"]`)
}

/** @throws TypeError for an invalid protocol, host name or path, RangeError if the port is not a number */
function describeAddress(options: RequestOptions, usualProtocol: string): URL {
  const { protocol = usualProtocol, hostname, host = 'localhost', path = '/', port } = options
  const name = String(hostname ?? host)
  if (protocol !== usualProtocol)
    throw makeError(
      TypeError,
      'ERR_INVALID_PROTOCOL',
      `Protocol "${protocol}" not supported. Expected "${usualProtocol}"`,
    )
  if (/[/?#@\\\s]/.test(name) || /[^\x21-\xff]/.test(name))
    throw makeError(TypeError, 'ERR_INVALID_URL', `"${name}" is not the name of a host`)
  if (/[^\x21-\xff]/.test(path))
    throw makeError(TypeError, 'ERR_UNESCAPED_CHARACTERS', 'Request path contains unescaped characters')
  if (port !== undefined && (!/^\d{0,5}$/.test(String(port)) || Number(port) > 65_535))
    throw makeError(RangeError, 'ERR_SOCKET_BAD_PORT', `"${port}" is not a port`)
  const place = hostname === undefined && /:\d+$/.test(name) ? name : bracket(name)
  const url = new URL(`${protocol}//${place}`)
  if (port !== undefined && String(port) !== '') url.port = String(port)
  // A path that begins with two slashes would name another host if it were resolved as a URL. Therefore the path is
  // appended as text.
  const target = path.startsWith('/') ? path : `/${path}`
  return new URL(`${url.origin}${target}`)
}

const bracket = (name: string) => (name.includes(':') && !name.startsWith('[') ? `[${name}]` : name)

function readOptions(
  given: unknown[],
  usualProtocol: string,
): { options: RequestOptions; listener?: Listener } {
  const listener = given.find((each): each is Listener => typeof each === 'function')
  const all = given.filter((each) => typeof each !== 'function' && each !== undefined && each !== null)
  const options: RequestOptions = {}
  for (const each of all) {
    const isUrl = typeof each === 'string' || each instanceof URL
    Object.assign(options, isUrl ? urlToOptions(new URL(String(each)), usualProtocol) : each)
  }
  return { options, ...(listener && { listener }) }
}

function urlToOptions(url: URL, usualProtocol: string): RequestOptions {
  const { protocol, hostname, port, pathname, search, username, password } = url
  const auth =
    username === '' ? {} : { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` }
  return { protocol: protocol || usualProtocol, hostname, port, path: `${pathname}${search}`, ...auth }
}

/** An agent does nothing, because there are no connections. Packages set options of agents, and extend this class. */
export class Agent extends EventEmitter {
  readonly options: object
  readonly sockets = {}
  readonly freeSockets = {}
  readonly requests = {}
  maxSockets = Infinity
  maxFreeSockets = 256
  keepAlive: boolean

  constructor(options: { keepAlive?: boolean } = {}) {
    super()
    const { keepAlive = false } = options ?? {}
    this.options = { ...options }
    this.keepAlive = keepAlive
  }
  destroy(): void {}
  getName(): string {
    return ''
  }
}

/** Accepts listeners for all events, but calls only the listeners of `connect`, `secureConnect` and `timeout`. */
class Socket extends EventEmitter {
  readonly encrypted: boolean
  readonly authorized: boolean
  readonly connecting = false
  readonly destroyed = false
  readonly writable = true
  readonly readable = true

  constructor(encrypted: boolean) {
    super()
    this.encrypted = encrypted
    this.authorized = encrypted
  }
  setKeepAlive(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setTimeout(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
  end(): this {
    return this
  }
  destroy(): this {
    return this
  }
}

export class IncomingMessage extends Readable {
  statusCode = 0
  statusMessage = ''
  headers: Headers = {}
  rawHeaders: string[] = []
  readonly trailers = {}
  readonly rawTrailers = []
  readonly httpVersion = '1.1'
  readonly httpVersionMajor = 1
  readonly httpVersionMinor = 1
  readonly url = ''
  readonly method = null
  complete = false
  aborted = false
  readonly req: ClientRequest
  readonly socket: Socket
  readonly connection: Socket
  readonly #bytes: Uint8Array

  constructor(response: Response, bytes: Uint8Array, request: ClientRequest) {
    super({ read: () => undefined })
    const { socket } = request
    this.req = request
    this.statusCode = response.status
    this.statusMessage = response.statusText
    this.socket = socket
    this.connection = socket
    this.#bytes = bytes
    for (const [name, value] of response.headers) {
      this.headers[name] = name === 'set-cookie' ? [value] : value
      this.rawHeaders.push(name, value)
    }
    if (this.#bytes.length > 0) this.push(Buffer.from(this.#bytes))
    this.push(null)
    this.complete = true
  }
  get headersDistinct(): Record<string, string[]> {
    return Object.fromEntries(Object.entries(this.headers).map(([name, value]) => [name, [value].flat()]))
  }
  setTimeout(): this {
    return this
  }
}

export class ClientRequest extends Writable {
  readonly method: string
  readonly protocol: string
  readonly host: string
  readonly path: string
  readonly agent: unknown
  aborted = false
  finishedSending = false
  reusedSocket = false
  maxHeadersCount: number | null = null
  res: IncomingMessage | undefined
  readonly socket: Socket
  readonly connection: Socket
  readonly #url: URL
  readonly #headers = new Map<string, { name: string; value: string | string[] }>()
  readonly #chunks: Buffer[] = []
  readonly #abort = new AbortController()
  #length = 0
  #timer: unknown

  constructor(usualProtocol: string, given: unknown[]) {
    // The stream must not be destroyed after the last write, because the answer comes later.
    super({ autoDestroy: false })
    const { options, listener } = readOptions(given, usualProtocol)
    for (const name of REFUSED)
      if ((options as Record<string, unknown>)[name] !== undefined)
        throw makeError(
          TypeError,
          'ERR_INVALID_ARG_VALUE',
          `The option "${name}" of a request is not available to reactor code`,
        )
    this.#url = describeAddress(options, usualProtocol)
    this.method = String(options.method ?? 'GET').toUpperCase()
    this.protocol = this.#url.protocol
    this.host = this.#url.hostname
    this.path = `${this.#url.pathname}${this.#url.search}`
    this.agent = options.agent
    this.socket = new Socket(this.protocol === 'https:')
    this.connection = this.socket
    this.#setAll(options.headers)
    if (!this.hasHeader('host')) this.setHeader('Host', this.#url.host)
    const { auth } = options
    if (typeof auth === 'string' && !this.hasHeader('authorization'))
      this.setHeader('Authorization', `Basic ${Buffer.from(auth).toString('base64')}`)
    if (listener !== undefined) this.once('response', listener)
    if (options.timeout !== undefined) this.setTimeout(options.timeout)
    const { signal } = options
    if (signal !== undefined) {
      const stop = () => this.destroy((signal.reason as Error | undefined) ?? undefined)
      if (signal.aborted) process.nextTick(stop)
      else signal.addEventListener('abort', stop, { once: true })
    }
    process.nextTick(() => {
      if (this.destroyed) return
      this.emit('socket', this.socket)
      this.socket.emit('connect')
      if (this.protocol === 'https:') this.socket.emit('secureConnect')
    })
  }

  #setAll(headers: RequestOptions['headers'] = {}): void {
    if (!Array.isArray(headers)) {
      for (const [name, value] of Object.entries(headers))
        if (value !== undefined) this.setHeader(name, value)
    } else if (headers.every(Array.isArray)) {
      for (const [name, value] of headers as [string, string][]) this.setHeader(name, value)
    } else for (let at = 0; at < headers.length; at += 2) this.setHeader(headers[at], headers[at + 1])
  }

  get headersSent(): boolean {
    return this.finishedSending
  }
  setHeader(name: unknown, value: unknown): this {
    validateHeaderName(name)
    const values = Array.isArray(value) ? value.map(String) : String(value)
    for (const each of [values].flat()) validateHeaderValue(name, each)
    this.#headers.set(String(name).toLowerCase(), { name: String(name), value: values })
    return this
  }
  getHeader(name: string): string | string[] | undefined {
    return this.#headers.get(String(name).toLowerCase())?.value
  }
  hasHeader(name: string): boolean {
    return this.#headers.has(String(name).toLowerCase())
  }
  removeHeader(name: string): void {
    this.#headers.delete(String(name).toLowerCase())
  }
  getHeaders(): Headers {
    return Object.fromEntries([...this.#headers].map(([name, { value }]) => [name, value]))
  }
  getHeaderNames(): string[] {
    return [...this.#headers.keys()]
  }
  getRawHeaderNames(): string[] {
    return [...this.#headers.values()].map(({ name }) => name)
  }
  flushHeaders(): void {}
  setNoDelay(): this {
    return this
  }
  setSocketKeepAlive(): this {
    return this
  }
  setTimeout(ms: number, listener?: () => void): this {
    if (listener !== undefined) this.once('timeout', listener)
    clearTimeout(this.#timer as number)
    if (ms > 0)
      this.#timer = setTimeout(() => {
        this.socket.emit('timeout')
        this.emit('timeout')
      }, ms)
    return this
  }
  abort(): void {
    this.aborted = true
    this.emit('abort')
    this.destroy()
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Done): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk)
    this.#length += bytes.length
    if (this.#length > MAX_BODY_BYTES)
      done(new RangeError(`The body of a request is limited to ${MAX_BODY_BYTES} bytes`))
    else {
      this.#chunks.push(bytes)
      done()
    }
  }
  override _final(done: Done): void {
    this.finishedSending = true
    void this.#send()
    done()
  }
  override _destroy(error: Error | null, done: Done): void {
    clearTimeout(this.#timer as number)
    this.#abort.abort()
    const isEarly = this.res === undefined
    const reason = error ?? (isEarly ? makeError(Error, 'ECONNRESET', 'socket hang up') : null)
    if (!isEarly && !this.res!.readableEnded && error !== null) this.res!.destroy(error)
    done(reason)
  }

  async #send(): Promise<void> {
    try {
      const isBare = this.method === 'GET' || this.method === 'HEAD'
      const body = Buffer.concat(this.#chunks)
      const response = await fetch(String(this.#url), {
        method: this.method,
        headers: [...this.#headers.values()].flatMap(({ name, value }) =>
          [value].flat().map((each): [string, string] => [name, each]),
        ),
        redirect: 'manual',
        signal: this.#abort.signal,
        ...(isBare && body.length === 0 ? {} : { body }),
      })
      const bytes = new Uint8Array(await response.arrayBuffer())
      if (this.destroyed) return
      this.#receive(new IncomingMessage(response, bytes, this))
    } catch (error) {
      this.destroy(error as Error)
    }
  }

  #receive(message: IncomingMessage): void {
    clearTimeout(this.#timer as number)
    this.res = message
    message.once('end', () => this.destroy())
    // Without a listener, nobody would read the body of the answer.
    if (!this.emit('response', message)) message.resume()
  }
}

export class Server {
  constructor() {
    throw new Error('Reactor code cannot listen for requests')
  }
}
