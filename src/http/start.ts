import { isIPv4, isIPv6 } from 'node:net'
import { ACCEPT_PATH } from '../domain/invitation/invitation.js'
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { CofferError } from '../errors.js'
import type { Host } from '../framework/host.js'
import type { Registry } from '../framework/registry.js'
import { type Answerer, type AnswererOptions, createAnswerer } from './answerer.js'
import { answerResult, answerText, type HttpRequest } from './exchange.js'
import { createDocument } from './openapi/openapi.js'
import { createAcceptPage } from './pages/accept-page.js'
import { createPages } from './pages/pages.js'
import { createRateLimit, type Rate } from './rate-limit.js'
import { DEFAULT_BODY_LIMIT_BYTES, DEFAULT_PREFIX, type SocketService } from './server.js'

const KEY_PATH = '/keys/webhooks.v1.key'

export interface ServiceOptions
  extends Omit<SocketService, 'host'>,
    Pick<AnswererOptions, 'host' | 'authenticate' | 'observe' | 'forms'>,
    Partial<Pick<AnswererOptions, 'pages'>> {
  registry: Registry
  version: string
  rate?: Rate
}

export type CreateAnswerer = (
  changes: { [K in keyof ServiceOptions]?: ServiceOptions[K] | undefined },
) => Answerer

export function completeService(options: ServiceOptions): AnswererOptions {
  const { host, registry, version, rate, pages = [], forms = [], ...rest } = options
  const { prefix = DEFAULT_PREFIX, bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES, cors = true } = options
  const clock = () => performance.now()
  const accept = createAcceptPage(host, clock)
  const reference = createPages(() => createDocument(registry, { version, prefix, bodyLimitBytes }))
  const answerReady = async () => {
    await host.store.checkReady()
    return answerResult(200, { status: 'ok' })
  }
  const answerKey = async () => answerText(200, 'text/plain; charset=utf-8', (await host.signer()).publicKey)
  return {
    ...rest,
    host,
    registry,
    prefix,
    bodyLimitBytes,
    cors,
    clock,
    pages: new Map([
      ...reference,
      ['/readyz', answerReady],
      [KEY_PATH, answerKey],
      [ACCEPT_PATH, accept.page],
      ...pages,
    ]),
    forms: new Map([[ACCEPT_PATH, accept.form], ...forms]),
    ...(rate === undefined ? {} : { rateLimit: createRateLimit(rate, clock) }),
  }
}

/** Makes answerers for a service with changes; with `allowHosts`, for these and other usual hosts alone. */
export function answererFactory(service: ServiceOptions, allowHosts?: readonly string[]): CreateAnswerer {
  return (changes) => {
    const options = completeService({ ...service, ...changes } as ServiceOptions)
    const check = allowHosts === undefined ? {} : { checkHost: createHostCheck(options.host, allowHosts) }
    return createAnswerer({ ...options, ...check })
  }
}

/**
 * Against DNS rebinding: a web page makes a name of its own resolve to this machine, and its requests have
 * that name as host. IP addresses cannot be rebound. Also accepts `localhost`, `names` and the setting
 * `public_url`.
 */
export function createHostCheck({ store }: Pick<Host, 'store'>, names: readonly string[]) {
  const own = new Set(['localhost', ...names].map((name) => name.toLowerCase()))
  let lastHost: unknown
  let known: { counter: number | undefined; name: string | undefined } | undefined
  const findPublicName = async () => {
    const counter = store.changeCounter(['settings'])
    if (counter !== undefined && known?.counter === counter) return known.name
    const settings = await store.read((reader) => reader.get('settings', 0, 'vault'))
    const url = settings?.values?.public_url
    known = { counter, name: typeof url === 'string' ? new URL(url).hostname : undefined }
    return known.name
  }
  const requirePublic = async (names: readonly string[]) => {
    const publicName = await findPublicName()
    if (names.every((name) => name === publicName)) return
    throw new CofferError(
      'misdirected',
      'This server does not serve that host name. Its operator can allow the name with --allow-host NAME or the setting public_url.',
    )
  }
  return (request: HttpRequest): Promise<void> | undefined => {
    // Most requests have the host of the request before.
    const { host } = request.headers
    if (host !== undefined && host === lastHost && request.target.startsWith('/')) return undefined
    const strange = readNames(request).filter((name) => !isAddress(name) && !own.has(name))
    if (strange.length > 0) return requirePublic(strange)
    lastHost = host
    return undefined
  }
}

/** The host names in a request, in lower case: of the header Host, which HTTP/1.0 can omit, and of an absolute URL. */
function readNames({ headers, target }: HttpRequest): string[] {
  const url = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(target)
  return (url === null ? [headers.host] : [headers.host, url[1]])
    .filter((authority) => authority !== undefined)
    .map((authority) => /^(\[[^\]]*\]|[^:]*)(?::\d{0,5})?$/.exec(String(authority))?.[1]?.toLowerCase() ?? '')
}

function isAddress(name: string): boolean {
  return isIPv4(name) || (name.startsWith('[') && isIPv6(name.slice(1, -1)))
}

export type Handler = (request: Request) => Promise<Response>

export function toHandler(answerer: Answerer): Handler {
  return async (request) => {
    const { pathname, search } = new URL(request.url)
    const answer = await answerer({
      method: request.method,
      target: pathname + search,
      headers: Object.fromEntries(request.headers),
      readBody: (limitBytes) => collectBytes(request.body ?? [], limitBytes),
      onLeave: (listener) => {
        if (request.signal.aborted) listener()
        else request.signal.addEventListener('abort', listener)
      },
    })
    const { status, headers, body, bytes, stream, cutAt } = answer
    const content = bytes ?? body
    if (cutAt !== undefined) return new Response(cutContent(content, cutAt), { status, headers })
    if (stream !== undefined) return new Response(ReadableStream.from(stream), { status, headers })
    const isBare = content.length === 0 || request.method === 'HEAD'
    return new Response(isBare ? null : content, { status, headers })
  }
}

/** As `fetch` sees a connection that ends too early. */
function cutContent(content: string | Uint8Array, at: 'start' | number): ReadableStream {
  const ended = () => new TypeError('fetch failed', { cause: new Error('The connection was cut.') })
  if (at === 'start') throw ended()
  return new ReadableStream({
    start: (controller) => controller.enqueue(Buffer.from(content).subarray(0, at)),
    pull: (controller) => controller.error(ended()),
  })
}
