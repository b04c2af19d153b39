import { randomUUID } from 'node:crypto'
import { createHttpClient, type Fetch, type HttpClientOptions } from '../client/http-client.js'
import { pause } from '../client/pause.js'
import { createSocketFetch, readServerUrl, type SocketOptions } from '../client/socket-fetch.js'
import { type Client, createMethods, createTypedClient, type Methods } from '../client/typed-client.js'
import { invalid } from '../errors.js'
import type { OperationInput } from '../framework/context.js'
import { CONTROL_PATH } from '../framework/declaration.js'
import { resultOf } from '../framework/outcome.js'

import type { RoutedOperation } from '../framework/registry.js'
import { type OperationName, type ResultOf, registry } from '../operations/all.js'

type ControlName = Extract<OperationName, `control ${string}`>
type Controls = Methods<ControlName>['control']

export interface ForkOptions {
  name?: string
}

/**
 * The control plane of a vault. If the vault is not in memory, calls for state and clock reject with `not_found`.
 * `requests.list` and `webhooks` wait until `count` records match. After `timeout` (default 2 s) these calls resolve to
 * the records that match at that time.
 */
export type Control<Fork, Key extends string | undefined = string | undefined> = Controls & {
  /** The key for `/_coffer/` on the server. Undefined if requests cannot reach the control plane. */
  readonly key: Key
  /**
   * Creates a fork: a tenant with the data that the vault began with, and with its own keys, log, clock and faults.
   * Each parallel test worker can have a fork. The vault's server accepts the keys of forks too. `stop` deletes the
   * fork.
   */
  fork(options?: ForkOptions): Promise<Fork>
}

/** A fork on a server in another process. */
export interface RemoteFork<Names extends string = string> extends AsyncDisposable {
  readonly url: string
  readonly tenant: ResultOf<'control fork create'>['tenant']
  readonly keys: Readonly<Record<Names, string>>
  readonly control: Controls
  /** Returns a client for the application with this key. `retries`: default 0. */
  as(key: string, options?: Pick<ClientOptions, 'retries'>): Client
  /** Deletes the fork. */
  stop(): Promise<void>
}

export interface ClientOptions
  extends Pick<HttpClientOptions, 'key' | 'prefix' | 'retries' | 'signal' | 'timeoutMs'>,
    SocketOptions {
  /** The address of the server: https, or http on this machine. */
  url: string
}

/**
 * Returns a client of any server with this API: `client.tokens.create({ … })`. A method resolves to the answer, or
 * rejects with the CofferError of the server. If the server is busy, the client retries.
 * @throws CofferError `usage`
 */
export function createClient(options: ClientOptions): Client {
  const { fetch, ...others } = reach(options)
  return clientOver(fetch, others)
}

/**
 * Returns the control plane of a server in another process, such as `coffer serve --ephemeral`. `key`: the control key.
 * @throws CofferError `usage`
 */
export function createControl<Names extends string = string>(
  options: ClientOptions,
): Control<RemoteFork<Names>, string> {
  const { fetch, ...others } = reach(options)
  const controlsAt = (path: string) => {
    const below: Fetch = (url, init) => fetch(url.replace(CONTROL_PATH, path), init)
    const client = createHttpClient({ ...others, ...effects, fetch: below })
    return createControls(async (definition, input) => resultOf(await client.call(definition, input)))
  }
  const controls = controlsAt(CONTROL_PATH)
  const fork = async (options: ForkOptions = {}): Promise<RemoteFork<Names>> => {
    const { id, tenant, keys } = await controls.forks.create(options)
    const stop = () => controls.forks.delete({ id })
    return {
      url: others.url,
      tenant,
      keys: keys as Record<Names, string>,
      control: controlsAt(`${CONTROL_PATH}/forks/${id}`),
      as: (key, { retries = 0 } = {}) => clientOver(fetch, { ...others, key, retries }),
      stop,
      [Symbol.asyncDispose]: stop,
    }
  }
  return { ...controls, key: options.key, fork }
}

/** @internal */
export function createControls(
  call: (definition: RoutedOperation, input: OperationInput) => Promise<unknown>,
): Controls {
  return createMethods<ControlName, RoutedOperation>(registry.controls, (definition, input) => {
    for (const name of ['by', 'timeout'])
      if (typeof input[name] === 'number') throw invalid(name, `needs a unit, such as '${input[name]}ms'`)
    return call(definition, input)
  }).control
}

/** @internal */
export function clientOver(fetch: Fetch, options: Omit<HttpClientOptions, keyof typeof effects | 'fetch'>) {
  return createTypedClient({ ...options, ...effects, fetch })
}

const effects = { wait: pause, random: Math.random, createKey: randomUUID }

function reach({ ca, insecure, ...options }: ClientOptions) {
  const sockets = { ca, insecure }
  return { ...options, url: readServerUrl(options.url, sockets), fetch: createSocketFetch(sockets).fetch }
}
