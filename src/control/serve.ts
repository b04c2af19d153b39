import { omitUndefined } from '../domain/omit-undefined.js'
import { answerLater, DEFAULT_PREFIX, LOOPBACK, type SocketOptions, startServer } from '../http/server.js'
import type { createVaultService, VaultServiceOptions } from './answerer.js'
import type { ControlState } from './control-state.js'
import { Dashboard } from './dashboard.js'
import { createOwnServer, readOwnHosts } from './own-server.js'

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]']

export interface ServeOptions extends VaultServiceOptions, Omit<SocketOptions, 'limits'> {
  key?: string | undefined
  isKeyForOthers?: boolean | undefined
  /** Default: true. A server that other machines can reach has no dashboard. */
  hasDashboard?: boolean
  place?: string
  /** The host name in URLs; default `localhost`. */
  hostName?: string
  /** Requests of reactor code to `https://NAME` with one of these names reach this server. */
  ownHosts?: readonly string[] | undefined
  prepare?(): Promise<void>
}

/**
 * Opens the port before the code that answers requests is loaded. `begin` or the first request loads this code.
 * @throws CofferError `unavailable`, `usage`
 */
export async function serveVault(control: ControlState, options: ServeOptions) {
  const { key, hostName = 'localhost', prepare, port, addresses = LOOPBACK, allowHosts = [], tls } = options
  const { prefix = DEFAULT_PREFIX, hasDashboard = true } = options
  const { app } = control
  const isRemote = addresses.some((address) => !LOOPBACK.includes(address))
  if (isRemote) app.admitOthers()
  const about = { prefix, isSecure: tls !== undefined, ...omitUndefined({ place: options.place }) }
  const dashboard = isRemote || !hasDashboard ? undefined : new Dashboard(control, about)
  const hosts = [hostName, ...allowHosts]
  const ownOrigins = readOwnHosts(options.ownHosts ?? [])
  let service: ReturnType<typeof createVaultService> | undefined
  const { answerer, begin } = answerLater(async () => {
    const [{ createVaultService }] = await Promise.all([import('./answerer.js'), prepare?.()])
    const { isKeyForOthers } = options
    service = createVaultService(options, {
      ...{ control, key, isKeyForOthers, dashboard, prefix },
      allowHosts: hosts,
    })
    return service.answerer
  })
  const sockets = { ...omitUndefined({ port, tls }), addresses }
  const server = await startServer(answerer, { ...options, host: app }, sockets)
  const url = `${tls === undefined ? 'http' : 'https'}://${hostName}:${server.port}`
  control.listenAt(url)
  const detach = app.attachServer(
    createOwnServer(control, {
      url,
      names: [...hosts, ...LOCAL_NAMES],
      ownOrigins,
      answer: async () => {
        await begin()
        return service!.answerOwn
      },
    }),
  )
  const stop = () => {
    control.releaseListeners()
    return server.stop().finally(detach)
  }
  return { url, port: server.port, pageUrl: dashboard?.listenAt(url), begin, stop }
}
