/** Listens for an answerer, which may be made when the first request comes. */
import { omitUndefined } from '../domain/omit-undefined.js'
import type { Answerer, AnswererOptions } from './answerer.js'
import { ByteBudget } from './byte-budget.js'
import { nameCorsHeaders } from './cors.js'
import { nameHeaders } from './headers.js'
import { type RunningServer, type ServerOptions, startServer } from './server.js'

export const DEFAULT_PORT = 4010
export const DEFAULT_PREFIX = 'svc'
export const DEFAULT_BODY_LIMIT_BYTES = 1024 * 1024
export const LOOPBACK: readonly string[] = ['127.0.0.1', '::1']

export interface SocketOptions extends Partial<Pick<ServerOptions, 'port' | 'addresses' | 'tls' | 'limits'>> {
  /** Accepted host names besides `localhost`, addresses, and the name in the setting `public_url`. */
  allowHosts?: readonly string[]
}

/** The part of a service that its sockets use. By default, web pages of other origins may read answers. */
export interface SocketService
  extends Pick<AnswererOptions, 'host' | 'record' | 'reportFault'>,
    Partial<Pick<AnswererOptions, 'prefix' | 'bodyLimitBytes' | 'cors'>> {}

/** Resolves when requests are accepted. @throws CofferError as {@link startServer} */
export async function listenFor(
  answerer: Answerer,
  service: SocketService,
  { port = DEFAULT_PORT, addresses = LOOPBACK, tls, limits }: SocketOptions = {},
): Promise<RunningServer> {
  const { host, prefix = DEFAULT_PREFIX, bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES } = service
  const { cors = true, record, reportFault } = service
  const server = await startServer({
    ...omitUndefined({ tls, limits, record, reportFault }),
    port,
    addresses,
    answerer,
    budget: new ByteBudget(bodyLimitBytes),
    traceHeader: nameHeaders(prefix).traceId,
    headers: cors ? nameCorsHeaders(prefix) : {},
    createTraceId: host.createUuid,
  })
  host.ownPorts?.add(server.port)
  return { port: server.port, stop: () => server.stop().finally(() => host.ownPorts?.delete(server.port)) }
}

/** An answerer that `make` makes when the first request comes, or at `begin`. */
export function answerLater(make: () => Promise<Answerer>): {
  answerer: Answerer
  begin(): Promise<unknown>
} {
  let made: Promise<Answerer> | undefined
  const begin = () => (made ??= make())
  let answer: Answerer = async (request) => {
    answer = await begin()
    return answer(request)
  }
  return { answerer: (request) => answer(request), begin }
}
