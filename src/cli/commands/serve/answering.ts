/** Answers the requests of `coffer serve`. Loaded when it listens: nothing needs it sooner. */
import { createControlMiddleware, type MiddlewareOptions } from '../../../control/middleware.js'
import { authenticate } from '../../../framework/authenticate.js'
import type { Answerer } from '../../../http/answerer.js'
import { createServiceAnswerer, type ServiceOptions } from '../../../http/start.js'
import { registry } from '../../../operations/all.js'
import { VERSION } from '../../../version.js'

export type ServedOptions = Omit<ServiceOptions, 'registry' | 'authenticate' | 'version' | 'middleware'>

export function createServerAnswerer(
  service: ServedOptions,
  control: MiddlewareOptions,
  allowHosts: readonly string[],
): Answerer {
  const middleware = createControlMiddleware(control)
  return createServiceAnswerer(
    { ...service, registry, authenticate, version: VERSION, middleware },
    allowHosts,
  )
}
