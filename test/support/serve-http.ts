import { type RunningServer, type SocketOptions, startServer } from '../../src/http/server.js'
import { answererFactory, type ServiceOptions } from '../../src/http/start.js'

/** Serves without the control plane and the dashboard. */
export function serveHttp(service: ServiceOptions, sockets: SocketOptions = {}): Promise<RunningServer> {
  return startServer(answererFactory(service, sockets.allowHosts ?? [])({}), service, sockets)
}
