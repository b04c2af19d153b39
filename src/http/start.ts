/** Assembles the HTTP service of an open vault. */
import { ACCEPT_PATH } from '../domain/invitation.js'
import type { Host } from '../framework/host.js'
import type { Registry } from '../framework/registry.js'
import type { AccessEntry } from './access-log.js'
import { type Answerer, type AnswererOptions, createAnswerer } from './answerer.js'
import { nameCorsHeaders } from './cors.js'
import { type Ask, answerResult } from './exchange.js'
import { nameHeaders } from './headers.js'
import { createHostCheck } from './hosts.js'
import { Load } from './load.js'
import { createDocument } from './openapi.js'
import { createAcceptPage } from './pages/accept-page.js'
import { createPages, type Page } from './pages/pages.js'
import { createRateLimit, type Rate } from './rate-limit.js'
import { type RunningServer, type ServerLimits, startServer } from './server.js'

export const DEFAULT_PORT = 4010
export const DEFAULT_PREFIX = 'svc'
export const DEFAULT_BODY_LIMIT_BYTES = 1024 * 1024
export const LOOPBACK: readonly string[] = ['127.0.0.1', '::1']

/** The options of the service, with or without sockets. */
export interface ServiceOptions {
  host: Host
  registry: Registry
  authenticate: AnswererOptions['authenticate']
  /** The version of Coffer, for the OpenAPI document. */
  version: string
  prefix?: string
  bodyLimitBytes?: number
  rate?: Rate
  /** Whether web pages of other origins may read answers (CORS); true if absent. */
  cors?: boolean
  /** Additional pages, and handlers of what they send, by path. */
  pages?: ReadonlyMap<string, Page>
  forms?: ReadonlyMap<string, Page>
  record?(entry: AccessEntry): void
  observe?(entry: AccessEntry, ask: Ask): void
  /** Makes the answerer, of those that `create` makes. */
  middleware?(create: CreateAnswerer): Answerer
  reportFault?(error: unknown, traceId: string): void
}

/** Makes an answerer of the service with these changes. */
export type CreateAnswerer = (
  changes: { [K in keyof ServiceOptions]?: ServiceOptions[K] | undefined },
) => Answerer

/** The options of the sockets. */
export interface SocketOptions {
  port?: number
  addresses?: readonly string[]
  /** Accepted host names besides `localhost`, addresses, and the name in the setting `public_url`. */
  allowHosts?: readonly string[]
  tls?: { cert: string; key: string }
  limits?: ServerLimits
}

/** The options of an answerer, completed with pages, rate limit and clock. */
export function completeService(options: ServiceOptions): AnswererOptions {
  const { host, registry, version, rate, pages = [], forms = [], ...rest } = options
  const { prefix = DEFAULT_PREFIX, bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES, cors = true } = options
  const clock = () => performance.now()
  const accept = createAcceptPage({ powers: host, drawBytes: (count) => host.random.bytes(count), clock })
  const reference = createPages(
    () => createDocument(registry, { version, prefix, bodyLimitBytes }),
    registry.operations,
  )
  const answerReady = async () => {
    await host.store.read((reader) => reader.get('settings', 0, 'vault'))
    return answerResult(200, { status: 'ok' })
  }
  return {
    ...rest,
    host,
    registry,
    prefix,
    bodyLimitBytes,
    cors,
    clock,
    pages: new Map([...reference, ['/readyz', answerReady], [ACCEPT_PATH, accept.page], ...pages]),
    forms: new Map([[ACCEPT_PATH, accept.form], ...forms]),
    ...(rate === undefined ? {} : { rateLimit: createRateLimit(rate, clock) }),
  }
}

/** Answers for a service; with `allowHosts`, for it and other usual hosts alone. */
export function createServiceAnswerer(service: ServiceOptions, allowHosts?: readonly string[]): Answerer {
  const create: CreateAnswerer = (changes) => {
    const options = completeService({ ...service, ...changes } as ServiceOptions)
    const check = allowHosts === undefined ? {} : { checkHost: createHostCheck(options.host, allowHosts) }
    return createAnswerer({ ...options, ...check })
  }
  return service.middleware === undefined ? create({}) : service.middleware(create)
}

/** Resolves when requests are accepted. @throws CofferError as {@link startServer} */
export async function serveHttp(
  service: ServiceOptions,
  sockets: SocketOptions = {},
): Promise<RunningServer> {
  const options = completeService(service)
  const { port = DEFAULT_PORT, addresses = LOOPBACK, allowHosts = [], ...rest } = sockets
  const server = await startServer({
    ...rest,
    port,
    addresses,
    answerer: createServiceAnswerer(service, allowHosts),
    load: new Load(options.bodyLimitBytes),
    traceHeader: nameHeaders(options.prefix).traceId,
    headers: options.cors ? nameCorsHeaders(options.prefix) : {},
    createTraceId: options.host.createUuid,
    ...(options.record === undefined ? {} : { record: options.record }),
    ...(options.reportFault === undefined ? {} : { reportFault: options.reportFault }),
  })
  const { port: own, stop } = server
  options.host.ownPorts?.add(own)
  return { port: own, stop: () => stop().finally(() => options.host.ownPorts?.delete(own)) }
}
