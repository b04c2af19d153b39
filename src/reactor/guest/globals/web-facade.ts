/** `fetch`, `Headers`, `Request` and `Response` for reactor code: our own small classes over a call of the host. */
import { Buffer as NodeBuffer } from 'node:buffer'
import type { FetchRequest, FetchResponse } from '../../messages.js'
import { Pairs } from '../pairs.js'
import { viewMemory } from '../shield.js'
import { type Buffer, toBuffer } from './buffer-facade.js'
import type { AbortSignal } from './events-facade.js'
import { URL, URLSearchParams } from './url-facade.js'

type Bytes = Uint8Array<ArrayBuffer>
type HeadersInit = Headers | Record<string, unknown> | Iterable<[string, unknown]>
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

export class Headers extends Pairs {
  readonly #values = new Map<string, string>()

  constructor(init?: HeadersInit | null) {
    super()
    if (init === undefined || init === null) return
    const entries = Symbol.iterator in init ? (init as Iterable<[string, unknown]>) : Object.entries(init)
    for (const [name, value] of entries) this.append(name, value)
  }

  append(name: unknown, value: unknown): void {
    const key = toHeaderName(name)
    const before = this.#values.get(key)
    this.#values.set(key, before === undefined ? toHeaderValue(value) : `${before}, ${toHeaderValue(value)}`)
  }
  set(name: unknown, value: unknown): void {
    this.#values.set(toHeaderName(name), toHeaderValue(value))
  }
  get(name: unknown): string | null {
    return this.#values.get(toHeaderName(name)) ?? null
  }
  has(name: unknown): boolean {
    return this.#values.has(toHeaderName(name))
  }
  delete(name: unknown): void {
    this.#values.delete(toHeaderName(name))
  }
  *[Symbol.iterator](): Generator<[string, string]> {
    for (const name of [...this.#values.keys()].sort()) yield [name, this.#values.get(name)!]
  }
}

function toHeaderName(name: unknown): string {
  const text = String(name)
  if (!NAME.test(text)) throw new TypeError('Invalid header name')
  return text.toLowerCase()
}

function toHeaderValue(value: unknown): string {
  const text = String(value).trim()
  if (/[\0\r\n]/.test(text)) throw new TypeError('Invalid header value: it has a line break')
  return text
}

/** Access to the bytes of a body, for this file only: `take` marks it as read, `peek` does not. */
let take: (body: Body) => Bytes
let peek: (body: Body) => Bytes

/** A body that can be read once. */
class Body {
  readonly #bytes: Bytes
  #isUsed = false

  static {
    peek = (body) => body.#bytes
    take = (body) => {
      if (body.#isUsed) throw new TypeError('The body was read already')
      body.#isUsed = true
      return body.#bytes
    }
  }
  constructor(bytes: Bytes) {
    this.#bytes = bytes
  }
  get bodyUsed(): boolean {
    return this.#isUsed
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return take(this).slice().buffer
  }
  async bytes(): Promise<Bytes> {
    return take(this).slice()
  }
  /** For compatibility with the `node-fetch` package. */
  async buffer(): Promise<Buffer> {
    return toBuffer(take(this).slice())
  }
  async text(): Promise<string> {
    return toText(take(this))
  }
  async json(): Promise<unknown> {
    return JSON.parse(toText(take(this)))
  }
}

function toText(bytes: Bytes): string {
  return NodeBuffer.from(bytes)
    .toString('utf8')
    .replace(/^\uFEFF/, '')
}

interface ResponseInit extends Partial<Omit<FetchResponse, 'headers' | 'body'>> {
  headers?: HeadersInit
}

export class Response extends Body {
  readonly #init: Required<ResponseInit> & { headers: Headers }

  constructor(body?: unknown, init: ResponseInit = {}) {
    super(toBytes(body).bytes)
    const { url = '', status = 200, statusText = '', redirected = false } = init
    const headers = new Headers(init.headers)
    this.#init = {
      url: String(url),
      status: Number(status),
      statusText: String(statusText),
      redirected: Boolean(redirected),
      headers,
    }
  }
  get url(): string {
    return this.#init.url
  }
  get status(): number {
    return this.#init.status
  }
  get statusText(): string {
    return this.#init.statusText
  }
  get redirected(): boolean {
    return this.#init.redirected
  }
  get headers(): Headers {
    return this.#init.headers
  }
  get ok(): boolean {
    return this.status >= 200 && this.status < 300
  }
  get type(): string {
    return 'basic'
  }
  clone(): Response {
    return new Response(peek(this), this.#init)
  }
}

interface RequestInit {
  method?: unknown
  headers?: HeadersInit
  body?: unknown
  redirect?: unknown
  signal?: AbortSignal | null
}

/** The message for the host; reads the body. */
let describe: (request: Request) => FetchRequest

export class Request extends Body {
  readonly #url: string
  readonly #method: string
  readonly #headers: Headers
  readonly #redirect: string
  readonly #signal: AbortSignal | undefined

  static {
    describe = (request) => {
      const redirect = request.#redirect
      if (!['follow', 'manual', 'error'].includes(redirect))
        throw new TypeError('redirect is follow, manual or error')
      const method = request.#method
      const bytes = take(request)
      if (bytes.length > 0 && (method === 'GET' || method === 'HEAD'))
        throw new TypeError(`${method} takes no body`)
      return {
        url: request.#url,
        method,
        headers: [...request.#headers],
        redirect: redirect as FetchRequest['redirect'],
        ...(bytes.length === 0 ? {} : { body: NodeBuffer.from(bytes).toString('base64') }),
      }
    }
  }
  constructor(input: unknown, init: RequestInit = {}) {
    const from = input instanceof Request ? input : undefined
    const { bytes, type } =
      'body' in init ? toBytes(init.body) : { bytes: from === undefined ? toBytes('').bytes : peek(from) }
    super(bytes)
    this.#url = from?.url ?? new URL(input).toString()
    this.#method = String(init.method ?? from?.method ?? 'GET').toUpperCase()
    this.#headers = new Headers(init.headers ?? from?.headers)
    this.#redirect = String(init.redirect ?? from?.redirect ?? 'follow')
    this.#signal = init.signal ?? from?.signal
    if (type !== undefined && !this.#headers.has('content-type')) this.#headers.set('content-type', type)
  }
  get url(): string {
    return this.#url
  }
  get method(): string {
    return this.#method
  }
  get headers(): Headers {
    return this.#headers
  }
  get redirect(): string {
    return this.#redirect
  }
  get signal(): AbortSignal | undefined {
    return this.#signal
  }
}

/** The bytes of a body and its default content type. */
function toBytes(body: unknown): { bytes: Bytes; type?: string } {
  if (body === undefined || body === null) return { bytes: new Uint8Array(0) }
  const memory = viewMemory(body)
  if (memory !== undefined) return { bytes: new Uint8Array(memory) }
  const type =
    body instanceof URLSearchParams
      ? 'application/x-www-form-urlencoded;charset=UTF-8'
      : 'text/plain;charset=UTF-8'
  return { bytes: new Uint8Array(NodeBuffer.from(String(body))), type }
}

/** `call` makes the host send the request. */
export function createFetch(call: (request: FetchRequest) => Promise<FetchResponse>) {
  return async (input: unknown, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init)
    const { signal } = request
    signal?.throwIfAborted()
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
    const answered = call(describe(request))
    const { body, ...rest } = await (signal === undefined ? answered : Promise.race([answered, aborted]))
    return new Response(NodeBuffer.from(body, 'base64'), rest)
  }
}
