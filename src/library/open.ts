/** Opens vaults in the caller's process, and serves them. */
import { readFile } from 'node:fs/promises'
import { ControlState } from '../control/control-state.js'
import { drawControlKey, openControlled } from '../control/open.js'
import type { RunningServer } from '../http/server.js'
import { LOOPBACK } from '../http/sockets.js'
import { serveHttp } from '../http/start.js'
import { openVault as openApp } from '../vault/open.js'
import type {
  Coffer,
  CofferServer,
  HandlerOptions,
  ReactorAccess,
  ServerOptions,
  TestVaultOptions,
  VaultOptions,
} from './api.js'
import { OpenCoffer, type Opened } from './coffer.js'

/**
 * A vault in memory with the contents of `seed`. If that has no list of applications, there is one application of each
 * type, named after the type.
 * @throws CofferError `validation` with the place of every error in the seed
 */
export async function openTestVault(options: TestVaultOptions = {}): Promise<Coffer> {
  refuseUnknown(options, OF_TEST_VAULT)
  const { clock, seed, ...others } = options
  const effects = { tenantName: 'test', ...(clock === undefined ? {} : { clock }) }
  const { plane, applications } = await openControlled(effects, seed)
  const controlKey = drawControlKey(plane.app.random)
  const keys = Object.entries(applications).map(([name, { key }]) => [name, key])
  return new OpenCoffer(await complete(plane, Object.fromEntries(keys), others, controlKey))
}

/** @throws CofferError those of opening a vault, such as `vault_missing` and `vault_locked` */
export async function openVault(options: VaultOptions): Promise<Coffer> {
  refuseUnknown(options, [...OF_HANDLER, 'reactors', 'directory', 'notice', 'keyFile', 'passphrase'])
  const { directory, notice = console.warn, ...others } = options
  const app = await openApp({ directory, pid: process.pid, notice, role: 'server' }, async () =>
    'keyFile' in others
      ? { kind: 'key-file', text: await readFile(others.keyFile, 'utf8') }
      : { kind: 'passphrase', passphrase: others.passphrase },
  )
  const plane = new ControlState(app)
  app.control = plane
  return new OpenCoffer(await complete(plane, {}, others))
}

async function complete(
  plane: ControlState,
  keys: Record<string, string>,
  { reactors, ...options }: HandlerOptions & ReactorAccess,
  controlKey?: string,
): Promise<Opened> {
  const { app } = plane
  app.configureReactors({ ...reactors, ...(options.prefix && { prefix: options.prefix }) })
  const { id, name, owner_id } = await app.tenant()
  return { plane, controlKey, tenant: { id, name, owner_id }, keys, options }
}

/** The HTTP API of `vault` as a function. It checks no host names and does not limit the requests in progress. */
export function createHandler(
  vault: Coffer,
  options: HandlerOptions = {},
): (request: Request) => Promise<Response> {
  refuseUnknown(options, OF_HANDLER)
  return requireOpen(vault).createHandler(options)
}

/**
 * Serves a new vault in memory, or `vault`, over HTTP; on loopback unless `addresses` is set, and on a free port unless
 * `port` is. It sends no mail. @throws CofferError `unavailable`, `usage`
 */
export async function startServer(options: ServerOptions = {}): Promise<CofferServer> {
  refuseUnknown(options, [...OF_TEST_VAULT, 'port', 'addresses', 'allowHosts', 'tls', 'vault'])
  const { vault: given, clock, seed, port = 0, addresses, allowHosts, tls, ...handling } = options
  const vault = requireOpen(
    given ?? (await openTestVault({ ...handling, ...(clock && { clock }), ...(seed && { seed }) })),
  )
  const sockets = { ...(addresses && { addresses }), ...(allowHosts && { allowHosts }), ...(tls && { tls }) }
  try {
    const isRemote = addresses?.some((address) => !LOOPBACK.includes(address)) === true
    if (isRemote) vault.admitOthers()
    const dashboard = isRemote ? undefined : vault.createDashboard(tls !== undefined)
    const server = await serveHttp(vault.serviceOf(handling, dashboard), { port, ...sockets })
    const url = `${tls === undefined ? 'http' : 'https'}://localhost:${server.port}`
    vault.listenAt(url)
    dashboard?.listenAt(url)
    return served(vault, { url, port: server.port }, stopper(vault, server, given === undefined))
  } catch (error) {
    if (given === undefined) await vault.stop()
    throw error
  }
}

function stopper(vault: OpenCoffer, server: RunningServer, isOwned: boolean): () => Promise<void> {
  let stopping: Promise<void> | undefined
  return () => (stopping ??= server.stop().finally(() => (isOwned ? vault.stop() : undefined)))
}

/** `vault`, or a fork of it, behind a server. */
function served(
  vault: Coffer,
  place: { url: string; port: number },
  stop: () => Promise<void>,
): CofferServer {
  return {
    ...place,
    tenant: vault.tenant,
    keys: vault.keys,
    fetch: (input, init) => vault.fetch(input, init),
    ask: (operation, input, asking) => vault.ask(operation, input, asking),
    as: (key) => vault.as(key),
    control: {
      ...vault.control,
      fork: async () => {
        const fork = await vault.control.fork()
        return served(fork, place, () => fork.stop())
      },
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

const OF_HANDLER = ['prefix', 'bodyLimitBytes', 'cors', 'rate']
const OF_TEST_VAULT = [...OF_HANDLER, 'reactors', 'seed', 'clock']

/** @throws TypeError for an unknown option, whose effect the caller expects */
function refuseUnknown(options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new TypeError(`There is no option "${unknown}". Options: ${known.join(', ')}.`)
}

/** @throws TypeError for a vault that this library has not opened */
function requireOpen(vault: Coffer): OpenCoffer {
  if (vault instanceof OpenCoffer) return vault
  throw new TypeError('Pass what openVault or openTestVault gives.')
}
