/**
 * The library: a vault in this process and its HTTP server, to embed in tests. A handler answers a `Request` with a
 * `Response` and needs no port.
 */

import { authenticate } from './framework/authenticate.js'
import { createHandler as createAnswer } from './http/handle.js'
import type { RunningServer } from './http/server.js'
import { completeService, type ServiceOptions, type SocketOptions, serveHttp } from './http/start.js'
import { registry } from './operations/all.js'
import type { App } from './vault/app.js'
import { openEphemeral } from './vault/open.js'
import { VERSION } from './version.js'

export { CofferError, type ErrorCode, type Problem } from './errors.js'
export type { RunningServer } from './http/server.js'
export type { SocketOptions } from './http/start.js'
export { type ResultOf, registry } from './operations/all.js'
export type { App } from './vault/app.js'
export { createVault, type Opener, openEphemeral, openVault, type VaultLocation } from './vault/open.js'

export type HandlerOptions = Omit<ServiceOptions, 'host' | 'registry' | 'authenticate' | 'version'>

function serviceOf(app: App, options: HandlerOptions): ServiceOptions {
  return { ...options, host: app, registry, authenticate, version: VERSION }
}

/** The HTTP API of `app` as a function; requests are authenticated as over a socket. */
export function createHandler(
  app: App,
  options: HandlerOptions = {},
): (request: Request) => Promise<Response> {
  return createAnswer(completeService(serviceOf(app, options)))
}

/** Serves the HTTP API of `app` on a port; on loopback unless `sockets.addresses` is set. Does not close the vault. */
export function startServer(
  app: App,
  sockets: SocketOptions = {},
  options: HandlerOptions = {},
): Promise<RunningServer> {
  return serveHttp(serviceOf(app, options), sockets)
}

/** A vault in memory with one tenant, for a test suite. */
export function openTestVault(): Promise<App> {
  return openEphemeral({ tenantName: 'test' })
}
