/** A vault in the caller's process, as the library opens it. */
import type { Client } from '../client/typed-client.js'
import type { ControlState } from '../control/control-state.js'
import { createDashboard, type Dashboard } from '../control/dashboard.js'
import { createVaultService } from '../control/service.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { resultOf } from '../framework/outcome.js'
import { type Handler, toHandler } from '../http/handle.js'
import { DEFAULT_PREFIX } from '../http/sockets.js'
import { createServiceAnswerer } from '../http/start.js'
import type { OperationName, ResultOf } from '../operations/all.js'
import type { AskOptions, Coffer, Control, HandlerOptions, Tenant } from './api.js'
import { clientOver } from './client.js'
import { createControlCalls } from './control.js'

/** For requests that name no host. */
const ORIGIN = 'http://localhost'

/** The parts of an open vault. `controlKey`: the key of its control plane over HTTP, if it has one. */
export interface Opened {
  plane: ControlState
  controlKey?: string | undefined
  tenant: Tenant
  keys: Readonly<Record<string, string>>
  options: HandlerOptions
}

export class OpenCoffer implements Coffer {
  readonly tenant: Readonly<Tenant>
  readonly keys: Readonly<Record<string, string>>
  readonly control: Control
  readonly #opened: Opened
  readonly #stop: (() => Promise<void>) | undefined
  #handle: Handler | undefined

  constructor(opened: Opened, stop?: () => Promise<void>) {
    this.#opened = opened
    this.#stop = stop
    this.tenant = opened.tenant
    this.keys = opened.keys
    this.control = {
      ...createControlCalls((name, input) => this.ask(name, input)),
      ...omitUndefined({ key: opened.controlKey }),
      fork: () => this.#fork(),
    }
  }

  get #plane(): ControlState {
    return this.#opened.plane
  }

  async #fork(): Promise<Coffer> {
    const { id, tenant, keys } = await this.#plane.fork()
    const { plane } = this.#plane.forks.get(id)!
    const { owner_id } = await plane.app.tenant()
    const stop = () => this.#plane.deleteFork(id)
    return new OpenCoffer(
      { plane, tenant: { ...tenant, owner_id }, keys, options: this.#opened.options },
      stop,
    )
  }

  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    this.#handle ??= this.createHandler({})
    return this.#handle(new Request(typeof input === 'string' ? new URL(input, ORIGIN) : input, init))
  }

  async ask<Name extends OperationName>(
    operation: Name,
    input: Record<string, unknown> = {},
    { key, tenant, reveal = false }: AskOptions = {},
  ): Promise<ResultOf<Name>> {
    const as = key === undefined ? { reveal, tenant } : { key }
    return resultOf(await this.#plane.app.ask({ operation, input, as })) as ResultOf<Name>
  }

  as(key: string): Client {
    const { prefix } = this.#opened.options
    return clientOver((url, init) => this.fetch(url, init), { url: ORIGIN, key, ...(prefix && { prefix }) })
  }

  createHandler(options: HandlerOptions): Handler {
    return toHandler(createServiceAnswerer(this.serviceOf(options)))
  }

  createDashboard(isSecure: boolean): Dashboard {
    const { prefix = DEFAULT_PREFIX } = this.#opened.options
    return createDashboard(this.#plane, { prefix, isSecure })
  }

  serviceOf(options: HandlerOptions, dashboard?: Dashboard) {
    const chosen = { ...this.#opened.options, ...options }
    const { prefix = DEFAULT_PREFIX } = chosen
    const { plane, controlKey: key } = this.#opened
    return createVaultService({ ...chosen, host: plane.app }, { plane, key, dashboard, prefix })
  }

  listenAt(url: string): void {
    this.#plane.listenAt(url)
  }

  admitOthers(): void {
    this.#plane.app.admitOthers()
  }

  stop(): Promise<void> {
    return this.#stop === undefined ? this.#plane.close() : this.#stop()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}
