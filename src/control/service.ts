/** Puts together the HTTP service of a vault, for the command line and the library. Loaded when a server listens. */
import { authenticate } from '../framework/caller/authenticate.js'
import type { ServiceOptions } from '../http/start.js'
import { registry } from '../operations/all.js'
import { VERSION } from '../version.js'
import { createControlMiddleware, type MiddlewareOptions } from './middleware.js'

export type VaultServiceOptions = Omit<ServiceOptions, 'registry' | 'authenticate' | 'version' | 'middleware'>

/** The service of the vault `options.host`, with its control plane if `control` is given. */
export function createVaultService(
  options: VaultServiceOptions,
  control?: MiddlewareOptions,
): ServiceOptions {
  const service = { ...options, registry, authenticate, version: VERSION }
  return control === undefined ? service : { ...service, middleware: createControlMiddleware(control) }
}
