/** The HTTP service of a vault that a test has opened. Sockets, the control plane and the dashboard are optional. */
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { type Answerer, createAnswerer } from '../../src/http/answerer.js'
import { type Handler, toHandler } from '../../src/http/handler.js'
import type { AnswererOptions } from '../../src/http/options.js'
import * as http from '../../src/http/server.js'
import { completeService, type ServiceOptions } from '../../src/http/service.js'
import { registry } from '../../src/operations/all.js'
import type { App } from '../../src/vault/app.js'

const describe = (host: App): ServiceOptions => ({ host, registry, authenticate, version: '0' })

export function createHandler(app: App, options: Partial<ServiceOptions> = {}): Handler {
  return handlerOf(completeService({ ...describe(app), ...options }))
}

export function handlerOf(options: AnswererOptions): Handler {
  return toHandler(createAnswerer(options))
}

export function startServer(app: App, sockets: http.SocketOptions) {
  return serveHttp(describe(app), sockets)
}

export function serveHttp(service: ServiceOptions, sockets: http.SocketOptions = {}) {
  return http.startServer(
    createAnswerer(completeService({ ...service, allowHosts: sockets.allowHosts ?? [] })),
    service,
    sockets,
  )
}

/** Serves `answerer` on a free port of 127.0.0.1. */
export function serve(answerer: Answerer, options: Partial<http.SocketService & http.SocketOptions> = {}) {
  const service = { host: { createUuid: () => 'below-http' }, cors: false, ...options }
  return http.startServer(answerer, service, { addresses: ['127.0.0.1'], port: 0, ...options })
}
