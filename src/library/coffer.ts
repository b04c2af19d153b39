/** A vault in the caller's process: what the functions of the library open. */
import type { Client } from '../client/typed-client.js'
import { resultOf } from '../framework/operation.js'
import { createHandler as createAnswer, type Handler } from '../http/handle.js'
import { completeService } from '../http/start.js'
import type { OperationName, ResultOf } from '../operations/all.js'
import type { App } from '../vault/app.js'
import type { AskOptions, Coffer, HandlerOptions, Tenant } from './api.js'
import { clientOver } from './client.js'
import { serviceOf } from './service.js'

/** Requests have it where they name no host. */
const ORIGIN = 'http://localhost'

/** What a vault was opened with. */
export interface Opened {
  app: App
  tenant: Tenant
  keys: Readonly<Record<string, string>>
  options: HandlerOptions
}

export class OpenCoffer implements Coffer {
  readonly tenant: Readonly<Tenant>
  readonly keys: Readonly<Record<string, string>>
  readonly #app: App
  readonly #options: HandlerOptions
  #handle: Handler | undefined

  constructor({ app, tenant, keys, options }: Opened) {
    this.tenant = tenant
    this.keys = keys
    this.#app = app
    this.#options = options
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
    return resultOf(await this.#app.ask({ operation, input, as })) as ResultOf<Name>
  }

  as(key: string): Client {
    const { prefix } = this.#options
    return clientOver((url, init) => this.fetch(url, init), { url: ORIGIN, key, ...(prefix && { prefix }) })
  }

  createHandler(options: HandlerOptions): Handler {
    return createAnswer(completeService(this.serviceOf(options)))
  }

  serviceOf(options: HandlerOptions) {
    return serviceOf(this.#app, { ...this.#options, ...options })
  }

  admitOthers(): void {
    this.#app.admitOthers()
  }

  stop(): Promise<void> {
    return this.#app.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}
