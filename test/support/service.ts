/** The HTTP service of a vault that a test has opened, with and without sockets. */
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { type AnswererOptions, createAnswerer } from '../../src/http/answerer.js'
import type { RunningServer, SocketOptions } from '../../src/http/server.js'
import { completeService, type Handler, type ServiceOptions, toHandler } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import type { App } from '../../src/vault/app.js'
import { serveHttp } from './serve-http.js'

const describe = (host: App): ServiceOptions => ({ host, registry, authenticate, version: '0' })

export function createHandler(app: App, options: Partial<ServiceOptions> = {}): Handler {
  return handlerOf(completeService({ ...describe(app), ...options }))
}

export function handlerOf(options: AnswererOptions): Handler {
  return toHandler(createAnswerer(options))
}

export function startServer(app: App, sockets: SocketOptions): Promise<RunningServer> {
  return serveHttp(describe(app), sockets)
}
