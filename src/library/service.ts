/** The HTTP service of an open vault, as this program serves it. */
import { authenticate } from '../framework/authenticate.js'
import type { ServiceOptions } from '../http/start.js'
import { registry } from '../operations/all.js'
import type { App } from '../vault/app.js'
import { VERSION } from '../version.js'

export type AppServiceOptions = Omit<ServiceOptions, 'host' | 'registry' | 'authenticate' | 'version'>

export function serviceOf(app: App, options: AppServiceOptions): ServiceOptions {
  return { ...options, host: app, registry, authenticate, version: VERSION }
}
