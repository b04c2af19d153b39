import type { Answerer } from '../../src/http/answerer.js'
import {
  type RunningServer,
  type SocketOptions,
  type SocketService,
  startServer,
} from '../../src/http/server.js'
import { answererFactory, type ServiceOptions } from '../../src/http/start.js'

/** Serves without the control plane and the dashboard. */
export function serveHttp(service: ServiceOptions, sockets: SocketOptions = {}): Promise<RunningServer> {
  return startServer(answererFactory(service, sockets.allowHosts ?? [])({}), service, sockets)
}

/** Serves `answerer` on 127.0.0.1 and a free port. */
export function serve(
  answerer: Answerer,
  options: Partial<SocketService & SocketOptions> = {},
): Promise<RunningServer> {
  const service = { host: { createUuid: () => 'below-http' }, cors: false, ...options }
  return startServer(answerer, service, { addresses: ['127.0.0.1'], port: 0, ...options })
}
