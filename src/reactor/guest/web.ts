/** `URL`, `Headers`, `Request`, `Response` and `fetch` for reactor code. The classes are our own, over Node's URL parser. */
import { Buffer as NodeBuffer } from 'node:buffer'
import { URLSearchParams as NodeParams, URL as NodeURL } from 'node:url'
import type { FetchRequest, FetchResponse } from '../messages.js'
import { type Buffer, toBuffer } from './bytes.js'
import type { AbortSignal } from './events.js'
import { type Any, define, guard, Hidden, requireMemory, viewMemory } from './shield.js'

abstract class Pairs {
  abstract [Symbol.iterator](): Generator<[string, string]>

  *keys(): Generator<string> {
    for (const [name] of this) yield name
  }
  *values(): Generator<string> {
    for (const [, value] of this) yield value
  }
  *entries(): Generator<[string, string]> {
    yield* this
  }
  forEach(see: (value: string, name: string, pairs: this) => void, self?: unknown): void {
    for (const [name, value] of this) Reflect.apply(see, self, [value, name, this])
  }
}

const params = new Hidden<NodeParams>()
const urls = new Hidden<NodeURL>()

export class URLSearchParams extends Pairs {
  constructor(init?: unknown) {
    super()
    params.set(this, new NodeParams(toPairs(init)))
  }
  *[Symbol.iterator](): Generator<[string, string]> {
    for (const [name, value] of Array.from(params.get(this))) yield [name, value]
  }
}
define(URLSearchParams.prototype, Symbol.toStringTag, 'URLSearchParams', false)
const paramMethods = 'append delete get getAll has set sort toString'
params.addMembers(URLSearchParams, { reads: 'size', methods: paramMethods })

function toPairs(init: Any): string | [string, string][] {
  if (init === undefined) return []
  if ((typeof init !== 'object' && typeof init !== 'function') || init === null) return `${init}`
  if (!(Symbol.iterator in init)) return Object.entries(init).map(([name, value]) => [name, `${value}`])
  return Array.from(init as Iterable<Iterable<unknown>>, (pair) => {
    const [name, value, ...more] = pair
    if (value === undefined || more.length > 0) throw new TypeError('Each pair must be a name and a value')
    return [`${name}`, `${value}`]
  })
}

export class URL {
  #params: URLSearchParams | undefined

  constructor(url: unknown, base?: unknown) {
    const texts = toTexts(url, base)
    urls.set(
      this,
      guard(() => new NodeURL(...texts)),
    )
  }
  static canParse(url: unknown, base?: unknown): boolean {
    return NodeURL.canParse(...toTexts(url, base))
  }
  static parse(url: unknown, base?: unknown): URL | null {
    const texts = toTexts(url, base)
    return NodeURL.canParse(...texts) ? new URL(...texts) : null
  }
  get searchParams(): URLSearchParams {
    if (this.#params === undefined) {
      this.#params = new URLSearchParams()
      params.set(this.#params, urls.get(this).searchParams)
    }
    return this.#params
  }
}
define(URL.prototype, Symbol.toStringTag, 'URL', false)
const urlParts = 'href protocol username password host hostname port pathname search hash'
urls.addMembers(URL, { reads: 'origin', sets: urlParts, methods: 'toString toJSON' })

function toTexts(url: unknown, base: unknown): [string, string?] {
  return base === undefined ? [`${url}`] : [`${url}`, `${base}`]
}

export class Headers extends Pairs {
  readonly #values = new Map<string, string>()

  constructor(init?: Any) {
    super()
    const given = init ?? {}
    for (const [name, value] of Symbol.iterator in given ? given : Object.entries(given))
      this.append(name, value)
  }
  append(name: unknown, value: unknown): void {
    const key = toHeaderName(name)
    const before = this.#values.get(key)
    this.set(key, before === undefined ? value : `${before}, ${toHeaderValue(value)}`)
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
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text)) throw new TypeError('Invalid header name')
  return text.toLowerCase()
}

function toHeaderValue(value: unknown): string {
  const text = String(value).trim()
  if (/[\0\r\n]/.test(text)) throw new TypeError('Invalid header value: it has a line break')
  return text
}

type Bytes = Uint8Array<ArrayBuffer>
type Message = { bytes: Bytes; bodyUsed?: boolean; url: string; headers: Headers }

const messages = new Hidden<Message>()
const requests = new Hidden<{ method: string; redirect: string; signal: AbortSignal | undefined }>()
const responses = new Hidden<object>()

function take(body: Body): Bytes {
  const message = messages.get(body)
  if (message.bodyUsed) throw new TypeError('The body was read already')
  message.bodyUsed = true
  return message.bytes
}

class Body {
  constructor(message: Message) {
    messages.set(this, { bodyUsed: false, ...message })
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
    const memory = requireMemory(take(this))
    return guard(() => memory.toString('utf8')).replace(/^\uFEFF/, '')
  }
  async json(): Promise<unknown> {
    return JSON.parse(await this.text())
  }
}
messages.addMembers(Body, { reads: 'bodyUsed url headers' })

type ResponseInit = Partial<Omit<FetchResponse, 'headers' | 'body'>> & { headers?: unknown }

export class Response extends Body {
  constructor(body?: unknown, init: ResponseInit = {}) {
    const { url = '', status: code = 200, statusText = '', redirected = false } = init
    super({ bytes: toBytes(body).bytes, url: String(url), headers: new Headers(init.headers) })
    const status = Number(code)
    const facts = { status, ok: status >= 200 && status < 300, type: 'basic' }
    responses.set(this, { ...facts, statusText: String(statusText), redirected: Boolean(redirected) })
  }
  clone(): Response {
    const message = messages.get(this)
    return new Response(message.bytes, { ...message, ...responses.get(this) })
  }
}
responses.addMembers(Response, { reads: 'status ok type statusText redirected' })

type RequestInit = { [name in 'method' | 'headers' | 'body' | 'redirect']?: unknown } & {
  signal?: AbortSignal | null
}

export class Request extends Body {
  constructor(input: unknown, init: RequestInit = {}) {
    const from = input instanceof Request ? { ...messages.get(input), ...requests.get(input) } : undefined
    const kept: ReturnType<typeof toBytes> = { bytes: from?.bytes ?? new Uint8Array(0) }
    const { bytes, type } = 'body' in init ? toBytes(init.body) : kept
    const headers = new Headers(init.headers ?? from?.headers)
    super({ bytes, url: from?.url ?? `${new URL(input)}`, headers })
    requests.set(this, {
      method: String(init.method ?? from?.method ?? 'GET').toUpperCase(),
      redirect: String(init.redirect ?? from?.redirect ?? 'follow'),
      signal: init.signal ?? from?.signal,
    })
    if (type !== undefined && !headers.has('content-type')) headers.set('content-type', type)
  }
}
requests.addMembers(Request, { reads: 'method redirect signal' })

function toBytes(body: unknown): { bytes: Bytes; type?: string } {
  if (body === undefined || body === null) return { bytes: new Uint8Array(0) }
  const memory = viewMemory(body)
  if (memory !== undefined) return { bytes: new Uint8Array(memory) }
  const type = body instanceof URLSearchParams ? 'application/x-www-form-urlencoded' : 'text/plain'
  return { bytes: new Uint8Array(NodeBuffer.from(String(body))), type: `${type};charset=UTF-8` }
}

function describe(request: Request): FetchRequest {
  const { url, headers } = messages.get(request)
  const { method, redirect } = requests.get(request)
  if (!['follow', 'manual', 'error'].includes(redirect))
    throw new TypeError('redirect is follow, manual or error')
  const body = requireMemory(take(request)).toString('base64')
  if (body !== '' && (method === 'GET' || method === 'HEAD')) throw new TypeError(`${method} takes no body`)
  return { url, method, headers: [...headers], redirect: redirect as FetchRequest['redirect'], body }
}

export function createFetch(call: (request: FetchRequest) => Promise<FetchResponse>) {
  return async (input: unknown, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init)
    const { signal } = requests.get(request)
    signal?.throwIfAborted()
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject((signal as Any).reason))
    })
    const answered = call(describe(request))
    const { body, ...rest } = await (signal === undefined ? answered : Promise.race([answered, aborted]))
    return new Response(NodeBuffer.from(body, 'base64'), rest)
  }
}
