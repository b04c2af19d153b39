import { omitUndefined } from '../domain/omit-undefined.js'
import { answerLater, DEFAULT_PREFIX, LOOPBACK, type SocketOptions, startServer } from '../http/server.js'
import type { VaultServiceOptions } from './answerer.js'
import type { ControlState } from './control-state.js'
import { Dashboard } from './dashboard.js'

export interface ServeOptions extends VaultServiceOptions, Omit<SocketOptions, 'limits'> {
  key?: string | undefined
  /** Whether there is a dashboard, for this machine only; default true. */
  hasDashboard?: boolean
  place?: string
  /** The host name in URLs; default `localhost`. */
  hostName?: string
  prepare?(): Promise<void>
}

/**
 * Listens before the code that answers is loaded. `begin` or the first request loads it.
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
  const { answerer, begin } = answerLater(async () => {
    const [{ createVaultAnswerer }] = await Promise.all([import('./answerer.js'), prepare?.()])
    const hosts = [hostName, ...allowHosts]
    return createVaultAnswerer(options, { control, key, dashboard, prefix, allowHosts: hosts })
  })
  const sockets = { ...omitUndefined({ port, tls }), addresses }
  const server = await startServer(answerer, { ...options, host: app }, sockets)
  const url = `${tls === undefined ? 'http' : 'https'}://${hostName}:${server.port}`
  control.listenAt(url)
  return { url, port: server.port, pageUrl: dashboard?.listenAt(url), begin, stop: server.stop }
}
