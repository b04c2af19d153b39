/** Assembles the HTTP service of an open vault. */
import { ACCEPT_PATH } from '../domain/invitation/invitation.js'
import type { Registry } from '../framework/registry.js'
import type { AccessEntry } from './access-log.js'
import { type Answerer, type AnswererOptions, createAnswerer } from './answerer.js'
import { answerResult, type HttpRequest } from './exchange.js'
import { createHostCheck } from './hosts.js'
import { createDocument } from './openapi/openapi.js'
import { createAcceptPage } from './pages/accept-page.js'
import { createPages, type Page } from './pages/pages.js'
import { createRateLimit, type Rate } from './rate-limit.js'
import type { RunningServer } from './server.js'
import {
  DEFAULT_BODY_LIMIT_BYTES,
  DEFAULT_PREFIX,
  listenFor,
  type SocketOptions,
  type SocketService,
} from './sockets.js'

export interface ServiceOptions extends SocketService {
  registry: Registry
  authenticate: AnswererOptions['authenticate']
  /** The version of Coffer, for the OpenAPI document. */
  version: string
  rate?: Rate
  /** Additional pages, and handlers of what they send, by path. */
  pages?: ReadonlyMap<string, Page>
  forms?: ReadonlyMap<string, Page>
  observe?(entry: AccessEntry, request: HttpRequest): void
  /** Makes the answerer, of those that `create` makes. */
  middleware?(create: CreateAnswerer): Answerer
}

/** Makes an answerer of the service with these changes. */
export type CreateAnswerer = (
  changes: { [K in keyof ServiceOptions]?: ServiceOptions[K] | undefined },
) => Answerer

/** The options of an answerer, completed with pages, rate limit and clock. */
export function completeService(options: ServiceOptions): AnswererOptions {
  const { host, registry, version, rate, pages = [], forms = [], ...rest } = options
  const { prefix = DEFAULT_PREFIX, bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES, cors = true } = options
  const clock = () => performance.now()
  const accept = createAcceptPage(host, (count) => host.random.bytes(count), clock)
  const reference = createPages(() => createDocument(registry, { version, prefix, bodyLimitBytes }))
  const answerReady = async () => {
    await host.store.checkReady()
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

/** Resolves when requests are accepted. @throws CofferError as {@link listenFor} */
export function serveHttp(service: ServiceOptions, sockets: SocketOptions = {}): Promise<RunningServer> {
  return listenFor(createServiceAnswerer(service, sockets.allowHosts ?? []), service, sockets)
}
