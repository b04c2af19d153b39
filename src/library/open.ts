import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { ControlState, openControlled } from '../control/control-state.js'
import { withoutServer } from '../control/own-server.js'
import { serveVault } from '../control/serve.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { usage } from '../errors.js'
import type { ReactorOptions } from '../framework/ports/reactors.js'
import type { SocketOptions } from '../http/server.js'
import type { Seed as SeedInput } from '../operations/seed/seed-schema.js'
import { openVault as openApp } from '../vault/open.js'
import { Coffer, type CofferServer, type HandlerOptions, type TestVault } from './coffer.js'

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T

/**
 * The contents of a vault. See `coffer seed apply --help`. Declare a seed `as const` to keep the names of its
 * applications.
 */
export type Seed = DeepReadonly<SeedInput>

/** The names of the API keys of a vault with this seed, if the seed's type contains these names. */
export type KeyNames<S> = S extends { readonly applications: readonly { readonly name: infer Name }[] }
  ? Name & string
  : 'applications' extends keyof S
    ? string
    : 'private' | 'public' | 'management'

/** The hosts that proxies, webhooks and reactor code may reach, and the modules that the code may require. */
type Access = Pick<ReactorOptions, 'allowNet' | 'modulesDirectory'>

export interface TestVaultOptions<S extends Seed = Seed> extends HandlerOptions, Access {
  seed?: S
  /** Returns the time, ms since the epoch. Default: the system's clock. */
  clock?(): number
  /**
   * Directories of projects with `node_modules`. Reactor code may declare the packages that the `package.json` of a
   * project names.
   */
  dependencies?: readonly string[]
}

export interface ServerOptions<S extends Seed = Seed>
  extends TestVaultOptions<S>,
    Pick<SocketOptions, 'port' | 'addresses' | 'allowHosts' | 'tls'> {
  /** Host names that mean this server in the code of reactors: `https://NAME`. */
  ownHosts?: readonly string[]
  /** The vault to serve. `stop` does not close a vault that was given here. Default: a new vault in memory. */
  vault?: Coffer
}

/** The directory of a vault on disk, and the key file or passphrase that opens it. */
export type VaultOptions = HandlerOptions &
  Access & { directory: string; notice?(text: string): void } & ({ keyFile: string } | { passphrase: string })

const HANDLER_OPTIONS = ['prefix', 'bodyLimitBytes', 'cors', 'rate']
const VAULT_OPTIONS = [...HANDLER_OPTIONS, 'allowNet', 'modulesDirectory']
const TEST_OPTIONS = [...VAULT_OPTIONS, 'seed', 'clock', 'dependencies']
const SERVER_OPTIONS = ['vault', 'port', 'addresses', 'allowHosts', 'ownHosts', 'tls']

/** @throws CofferError `usage`, which names the unknown options */
function refuseOthers(given: object, known: readonly string[]): void {
  const others = Object.keys(omitUndefined(given)).filter((name) => !known.includes(name))
  if (others.length > 0)
    throw usage(`Unknown options: ${others.join(', ')}. Known options: ${known.join(', ')}.`)
}

/**
 * Opens a vault in memory with the contents of `seed`. If the seed lists no applications, the vault has one application
 * of each type, named after the type.
 * @throws CofferError `validation` with the place of every error in the seed
 */
export async function openTestVault<const S extends Seed = Record<never, never>>(
  given: TestVaultOptions<S> = {},
): Promise<TestVault<KeyNames<S>>> {
  refuseOthers(given, TEST_OPTIONS)
  const { clock, seed, dependencies, ...options } = given
  const { control, applications } = await openControlled(
    {
      tenantName: 'test',
      ...(clock && { clock }),
      ...(dependencies && { dependencies: dependencies.map((each) => resolve(each)) }),
    },
    seed,
  )
  const keys = Object.fromEntries(Object.entries(applications).map(([name, { key }]) => [name, key]))
  const vault = await open(control, keys, options, control.createKey())
  return vault as TestVault<KeyNames<S>>
}

/** Opens a vault on disk. @throws CofferError `vault_missing`, `vault_locked` and others */
export async function openVault(options: VaultOptions): Promise<Coffer> {
  refuseOthers(options, [...VAULT_OPTIONS, 'directory', 'notice', 'keyFile', 'passphrase'])
  const { directory, notice = console.warn, ...others } = options
  const app = await openApp({ directory, pid: process.pid, notice, role: 'server' }, async () =>
    'keyFile' in others
      ? { kind: 'key-file', text: await readFile(others.keyFile, 'utf8') }
      : { kind: 'passphrase', passphrase: others.passphrase },
  )
  const control = new ControlState(app)
  app.attachControl(control)
  return open(control, {}, others)
}

async function open(
  control: ControlState,
  keys: Record<string, string>,
  { allowNet, modulesDirectory, ...options }: HandlerOptions & Access,
  controlKey?: string,
): Promise<Coffer> {
  const { app } = control
  // The path is made absolute, because a child process has another working directory.
  const absolute = modulesDirectory === undefined ? undefined : resolve(modulesDirectory)
  app.configureReactors(omitUndefined({ allowNet, modulesDirectory: absolute, prefix: options.prefix }))
  app.attachServer(withoutServer(app, { control, ...options }))
  // Due deliveries start only now, because the options say to which hosts deliveries may be sent.
  await app.deliveries.resume({ notice: () => undefined, fault: () => undefined })
  return new Coffer({ control, controlKey, keys, options }, await app.tenant())
}

/**
 * Serves `vault`, or a new vault in memory, over HTTP. Listens on loopback unless `addresses` is set, and on a free
 * port unless `port` is set.
 * @throws CofferError `unavailable`, `usage`
 */
export async function startServer<V extends Coffer>(
  options: ServerOptions & { vault: V },
): Promise<CofferServer<keyof V['keys'] & string, V['control']['key']>>
export async function startServer<const S extends Seed = Record<never, never>>(
  options?: ServerOptions<S> & { vault?: undefined },
): Promise<CofferServer<KeyNames<S>, string>>
export async function startServer(given: ServerOptions = {}): Promise<CofferServer> {
  const { vault: own, port = 0, addresses, allowHosts, ownHosts, tls, ...options } = given
  refuseOthers(given, [...SERVER_OPTIONS, ...(own === undefined ? TEST_OPTIONS : HANDLER_OPTIONS)])
  const vault = own ?? (await openTestVault(options))
  const sockets = omitUndefined({ port, addresses, allowHosts, tls })
  const stopVault = async () => (own === undefined ? vault.stop() : undefined)
  try {
    const opened = Coffer.partsOf(vault)
    const { control, controlKey: key } = opened
    const server = await serveVault(control, { ...opened.options, ...options, ...sockets, ownHosts, key })
    await server.begin()
    const { url, port } = server
    const stop = () => server.stop().finally(stopVault)
    return new Coffer({ ...opened, url, port }, vault.tenant, stop) as CofferServer
  } catch (error) {
    await stopVault()
    throw error
  }
}
