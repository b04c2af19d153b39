import type { Client } from '../client/typed-client.js'
import { createVaultAnswerer } from '../control/answerer.js'
import type { ControlState } from '../control/control-state.js'
import { isObject } from '../domain/json/json.js'
import { usage } from '../errors.js'
import { isStream } from '../framework/content.js'
import { resultOf } from '../framework/outcome.js'
import { type Handler, toHandler } from '../http/handler.js'
import type { Rate } from '../http/rate-limit.js'
import { DEFAULT_PREFIX } from '../http/server.js'
import type { OperationName, ResultOf } from '../operations/all.js'
import { type ClientOptions, type Control, clientOver, createControls, type ForkOptions } from './clients.js'

/** The origin of requests to a vault without a server. */
const ORIGIN = 'http://localhost'

export interface HandlerOptions {
  /** The prefix of header names: `svc` (the default) gives `SVC-API-KEY`. */
  prefix?: string
  /** The largest request body. Default: 1 MiB. */
  bodyLimitBytes?: number
  /** Whether web pages of other origins may read answers (CORS). Default: true. */
  cors?: boolean
  /** The number of requests that one application may send in a period. Further requests are answered with 429. */
  rate?: Rate
}

export interface Tenant {
  id: string
  name: string
  owner_id: string
}

/** Without `key`, the caller is the owner of the vault. With `key`, the caller is an application. */
export interface AskOptions {
  /** The name or id of the tenant in which the owner acts. Default: the first tenant. */
  tenant?: string
  /** Whether the owner sees data in plaintext. Default: false. */
  reveal?: boolean
  key?: string
}

/** A vault in memory. HTTP requests reach the control plane of the vault after `startServer`. */
export interface TestVault<Names extends string = string> extends Coffer<Names> {
  readonly control: Control<Coffer<Names>, string>
}

/**
 * A vault and its HTTP server. A fork has no control key of its own, because the control key of the server is also
 * valid for its forks.
 */
export interface CofferServer<
  Names extends string = string,
  Key extends string | undefined = string | undefined,
> extends Coffer<Names> {
  readonly url: string
  readonly port: number
  readonly control: Control<CofferServer<Names, undefined>, Key>
}

/** @internal The parts of an open vault. */
export interface Opened {
  control: ControlState
  keys: Readonly<Record<string, string>>
  options: HandlerOptions
  /** The key of the vault's control plane over HTTP, if there is one. */
  controlKey?: string | undefined
  url?: string
  port?: number
}

export class Coffer<Names extends string = string> {
  /** The first tenant. */
  readonly tenant: Readonly<Tenant>
  /** The API keys that were created when the vault was opened, by the names of their applications. */
  readonly keys: Readonly<Record<Names, string>>
  /** The control plane: restores states, sets the clock, makes requests fail, and lists requests. */
  readonly control: Control<Coffer<Names>>
  /** The address of the vault's server, if there is one. */
  readonly url: string | undefined
  readonly port: number | undefined
  readonly #opened: Opened
  readonly #stop: () => Promise<void>
  #handle: Handler | undefined
  #stopping: Promise<void> | undefined

  /** @internal */
  constructor(opened: Opened, { id, name, owner_id }: Tenant, stop = () => opened.control.close()) {
    this.#opened = opened
    this.#stop = stop
    this.tenant = { id, name, owner_id }
    this.keys = opened.keys as Record<Names, string>
    this.url = opened.url
    this.port = opened.port
    const controls = createControls(({ name }, input) => this.ask(name as OperationName, input))
    this.control = { ...controls, key: opened.controlKey, fork: (options) => this.#fork(options) }
  }

  /** @internal @throws TypeError for a vault that this library has not opened */
  static partsOf(vault: Coffer): Opened {
    if (#opened in vault) return vault.#opened
    throw new TypeError('Pass the vault that openVault or openTestVault returns.')
  }

  async #fork(options?: ForkOptions): Promise<Coffer<Names>> {
    const { control: base, controlKey: _, ...shared } = this.#opened
    const { id, keys } = await this.control.forks.create(options)
    const control = base.findFork(id)
    const tenant = await control.app.tenant()
    return new Coffer({ ...shared, control, keys }, tenant, () => base.deleteFork(id))
  }

  /** Answers a request without a socket. `input` may be a path such as `/tokens`. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    this.#handle ??= createHandler(this)
    return this.#handle(
      new Request(typeof input === 'string' ? new URL(input, this.url ?? ORIGIN) : input, init),
    )
  }

  /** Performs an operation by its name, such as `token create`. @throws CofferError as the operation does */
  async ask<Name extends OperationName>(
    operation: Name,
    input: Record<string, unknown> = {},
    { key, tenant, reveal = false }: AskOptions = {},
  ): Promise<ResultOf<Name>> {
    if (!isObject(input)) throw usage(`"${operation}" takes its input as one object.`)
    const as = key === undefined ? { reveal, tenant } : { key }
    return resultOf(await this.#opened.control.app.ask({ operation, input, as })) as ResultOf<Name>
  }

  /**
   * Returns a client for the application with this key: `vault.as(key).tokens.create({ … })`. The client uses no
   * socket. `retries`: default 0, so that a test sees each refusal.
   * @throws CofferError `usage` for a key that no header can contain
   */
  as(key: string, { retries = 0 }: Pick<ClientOptions, 'retries'> = {}): Client {
    const { prefix } = this.#opened.options
    const options = { url: this.url ?? ORIGIN, key, retries, ...(prefix && { prefix }) }
    return clientOver((url, { body, ...init }) => {
      const content = isStream(body)
        ? { body: ReadableStream.from(body), duplex: 'half' as const }
        : { body: body ?? null }
      return this.fetch(url, { ...init, ...content })
    }, options)
  }

  /** Stops the server, if there is one, and closes the vault. */
  async stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    await this.#stopping
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

/**
 * Returns the HTTP API of `vault` as a function, which checks no host names and does not limit the requests in
 * progress.
 */
export function createHandler(vault: Coffer, given: HandlerOptions = {}): Handler {
  const { control, controlKey: key, options } = Coffer.partsOf(vault)
  const chosen = { ...options, ...given }
  return toHandler(createVaultAnswerer(chosen, { control, key, prefix: chosen.prefix ?? DEFAULT_PREFIX }))
}
