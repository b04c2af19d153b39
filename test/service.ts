/** The HTTP service of a vault that a test has opened, with and without sockets. */
import { createVaultService, type VaultServiceOptions } from '../src/control/service.js'
import { createHandler as createAnswer, type Handler } from '../src/http/handle.js'
import type { RunningServer } from '../src/http/server.js'
import type { SocketOptions } from '../src/http/sockets.js'
import { completeService, serveHttp } from '../src/http/start.js'
import type { App } from '../src/vault/app.js'

export function createHandler(app: App, options: Omit<VaultServiceOptions, 'host'> = {}): Handler {
  return createAnswer(completeService(createVaultService({ ...options, host: app })))
}

export function startServer(app: App, sockets: SocketOptions): Promise<RunningServer> {
  return serveHttp(createVaultService({ host: app }), sockets)
}
