/**
 * `URL`, `Headers`, `Request`, `Response` and `fetch` for reactor code. The classes are our own. Only the URL parser is
 * Node's.
 */
import { Buffer as NodeBuffer } from 'node:buffer'
import { URLSearchParams as NodeParams, URL as NodeURL } from 'node:url'
import type { FetchRequest, FetchResponse } from '../messages.js'
import { type Buffer, toBuffer } from './bytes.js'
import type { AbortSignal } from './events.js'
import { Blob, contentOf, encodeForm, FormData, parseForm } from './forms.js'
import { Pairs } from './pairs.js'
import { type Any, define, guard, Hidden, requireMemory, viewMemory } from './shield.js'
import {
  collect,
  isDisturbed,
  isLocked,
  ReadableStream,
  ReadableStreamDefaultReader,
  streamOf,
} from './streams.js'

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
  getSetCookie(): string[] {
    const all = this.get('set-cookie')
    return all === null ? [] : [all]
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
  if (/[\0\r\n]/.test(text))
    throw new TypeError('Invalid header value: it has a line break or a NUL character')
  return text
}

type Bytes = Uint8Array<ArrayBuffer>

const WITHOUT_BODY: readonly number[] = [101, 204, 205, 304]

/**
 * Bytes, a stream of the code, or nothing. `stream` can also be a stream of `bytes`, which is created when the code
 * asks for a stream.
 */
interface Content {
  bytes?: Bytes | undefined
  stream?: ReadableStream | undefined
}

type Message = Content & { isUsed: boolean; url: string; headers: Headers }

const messages = new Hidden<Message>()
const requests = new Hidden<{ method: string; redirect: string; signal: AbortSignal | undefined }>()
const responses = new Hidden<object>()

const NOTHING: Bytes = new Uint8Array(0)

function isUsed({ isUsed, stream }: Message): boolean {
  return isUsed || (stream !== undefined && isDisturbed(stream))
}

/** @throws TypeError if the body was read, or if a reader of the code holds the stream of the body */
function requireUnused(message: Message): void {
  const { stream } = message
  if (isUsed(message)) throw new TypeError('The body was read already')
  if (stream !== undefined && isLocked(stream)) throw new TypeError('The body is locked to a reader')
}

/** @throws TypeError, RangeError, and what the source of a stream throws */
async function take(body: Body): Promise<Bytes> {
  const message = messages.get(body)
  requireUnused(message)
  const { bytes, stream } = message
  if (bytes === undefined && stream === undefined) return NOTHING
  message.isUsed = true
  return stream === undefined ? bytes! : collect(stream)
}

class Body {
  constructor(message: Omit<Message, 'isUsed'>) {
    messages.set(this, { ...message, isUsed: false })
  }
  get body(): ReadableStream | null {
    const message = messages.get(this)
    const { bytes, stream } = message
    if (stream !== undefined || bytes === undefined) return stream ?? null
    const made = streamOf(message.isUsed ? NOTHING : bytes)
    message.stream = made
    // After the body was read as a whole, the stream of the body stays locked, so that nobody can read the stream.
    if (message.isUsed) new ReadableStreamDefaultReader(made)
    return made
  }
  get bodyUsed(): boolean {
    return isUsed(messages.get(this))
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await take(this)).slice().buffer
  }
  async bytes(): Promise<Bytes> {
    return (await take(this)).slice()
  }
  /** For compatibility with the `node-fetch` package. */
  async buffer(): Promise<Buffer> {
    return toBuffer((await take(this)).slice())
  }
  async blob(): Promise<Blob> {
    const type = messages.get(this).headers.get('content-type') ?? ''
    return new Blob([await take(this)], { type })
  }
  /** @throws TypeError if the body is no form */
  async formData(): Promise<FormData> {
    const type = messages.get(this).headers.get('content-type') ?? ''
    return parseForm(await take(this), type)
  }
  async text(): Promise<string> {
    const memory = requireMemory(await take(this))
    return guard(() => memory.toString('utf8')).replace(/^\uFEFF/, '')
  }
  async json(): Promise<unknown> {
    return JSON.parse(await this.text())
  }
}
messages.addMembers(Body, { reads: 'url headers' })

type ResponseInit = Partial<Omit<FetchResponse, 'headers' | 'body'>> & { headers?: unknown }

export class Response extends Body {
  constructor(body?: unknown, init: ResponseInit = {}) {
    const { url = '', status: code = 200, statusText = '', redirected = false } = init
    const { content, type } = toContent(body)
    const headers = new Headers(init.headers)
    super({ ...content, url: String(url), headers })
    if (type !== undefined && !headers.has('content-type')) headers.set('content-type', type)
    const status = Number(code)
    const facts = { status, ok: status >= 200 && status < 300, type: 'basic' }
    responses.set(this, { ...facts, statusText: String(statusText), redirected: Boolean(redirected) })
  }
  static json(value: unknown, init: ResponseInit = {}): Response {
    const headers = new Headers(init.headers)
    if (!headers.has('content-type')) headers.set('content-type', 'application/json')
    return new Response(JSON.stringify(value), { ...init, headers })
  }
  clone(): Response {
    const message = messages.get(this)
    requireUnused(message)
    return new Response(split(message), { ...message, ...responses.get(this) })
  }
}
responses.addMembers(Response, { reads: 'status ok type statusText redirected' })

type RequestInit = { [name in 'method' | 'headers' | 'body' | 'redirect']?: unknown } & {
  signal?: AbortSignal | null
}

export class Request extends Body {
  constructor(input: unknown, init: RequestInit = {}) {
    const from = input instanceof Request ? { ...messages.get(input), ...requests.get(input) } : undefined
    if (from !== undefined && !('body' in init)) requireUnused(from)
    const { bytes, stream } = from ?? {}
    const kept: ReturnType<typeof toContent> = { content: { bytes, stream } }
    const { content, type } = 'body' in init ? toContent(init.body) : kept
    const headers = new Headers(init.headers ?? from?.headers)
    super({ ...content, url: from?.url ?? `${new URL(input)}`, headers })
    requests.set(this, {
      method: String(init.method ?? from?.method ?? 'GET').toUpperCase(),
      redirect: String(init.redirect ?? from?.redirect ?? 'follow'),
      signal: init.signal ?? from?.signal,
    })
    if (type !== undefined && !headers.has('content-type')) headers.set('content-type', type)
  }
}
requests.addMembers(Request, { reads: 'method redirect signal' })

function split(message: Message): unknown {
  if (message.bytes !== undefined || message.stream === undefined) return message.bytes
  const [own, other] = Reflect.apply(ReadableStream.prototype.tee, message.stream, [])
  message.stream = own
  return other
}

/** @throws TypeError if a stream was read or is locked */
function toContent(body: unknown): { content: Content; type?: string } {
  if (body === undefined || body === null) return { content: {} }
  if (body instanceof ReadableStream) {
    if (isLocked(body) || isDisturbed(body)) throw new TypeError('The stream was read already, or is locked')
    return { content: { stream: body } }
  }
  const memory = viewMemory(body)
  if (memory !== undefined) return { content: { bytes: new Uint8Array(memory) } }
  if (body instanceof Blob || body instanceof FormData) {
    const { bytes, type } = body instanceof Blob ? contentOf(body) : encodeForm(body)
    return { content: { bytes }, ...(type !== '' && { type }) }
  }
  const type = body instanceof URLSearchParams ? 'application/x-www-form-urlencoded' : 'text/plain'
  const bytes = new Uint8Array(NodeBuffer.from(String(body)))
  return { content: { bytes }, type: `${type};charset=UTF-8` }
}

async function describe(request: Request): Promise<FetchRequest> {
  const { url, headers } = messages.get(request)
  const { method, redirect } = requests.get(request)
  if (!['follow', 'manual', 'error'].includes(redirect))
    throw new TypeError('redirect is follow, manual or error')
  const body = requireMemory(await take(request)).toString('base64')
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
    const answered = describe(request).then((described) => {
      signal?.throwIfAborted()
      return call(described)
    })
    const { body, ...rest } = await (signal === undefined ? answered : Promise.race([answered, aborted]))
    const isBare = requests.get(request).method === 'HEAD' || WITHOUT_BODY.includes(rest.status)
    return new Response(isBare ? null : NodeBuffer.from(body, 'base64'), rest)
  }
}
