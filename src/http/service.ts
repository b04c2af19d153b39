import { ACCEPT_PATH } from '../domain/invitation/invitation.js'
import type { Registry } from '../framework/registry.js'
import { answerResult, answerText } from './exchange.js'
import { createDocument } from './openapi/openapi.js'
import type { AnswererOptions } from './options.js'
import { createAcceptPage } from './pages/accept-page.js'
import { createPages } from './pages/pages.js'
import { createRateLimit, type Rate } from './rate-limit.js'
import { DEFAULT_BODY_LIMIT_BYTES, DEFAULT_PREFIX, type SocketService } from './server.js'

const KEY_PATH = '/keys/webhooks.v1.key'

export interface ServiceOptions
  extends Omit<SocketService, 'host'>,
    Pick<AnswererOptions, 'host' | 'authenticate' | 'forms' | 'allowHosts'>,
    Partial<Pick<AnswererOptions, 'pages'>> {
  registry: Registry
  version: string
  rate?: Rate | undefined
}

export function completeService(options: ServiceOptions): AnswererOptions {
  const { host, registry, version, rate, pages = [], forms = [], ...rest } = options
  const { prefix = DEFAULT_PREFIX, bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES, cors = true } = options
  const clock = () => performance.now()
  const accept = createAcceptPage(host, clock)
  const reference = createPages(() => createDocument(registry, { version, prefix, bodyLimitBytes }))
  const answerReady = async () => {
    await host.store.checkReady()
    const sink = host.logSink?.status()
    const log_sink = sink && { state: sink.state, records_behind: sink.behind }
    return answerResult(200, {
      status: 'ok',
      ...(host.acceptsTestKeys && { test_keys: true }),
      ...(log_sink && { log_sink }),
    })
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
