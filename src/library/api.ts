/** The types of the library. */
import type { Client } from '../client/typed-client.js'
import type { ReactorOptions } from '../framework/ports/reactors.js'
import type { Rate } from '../http/rate-limit.js'
import type { OperationName, ResultOf } from '../operations/all.js'
import type { Seed } from '../operations/seed/seed-schema.js'
import type { ControlCalls } from './control.js'

/** How a vault answers requests. */
export interface HandlerOptions {
  /** The start of header names: `svc` (the default) gives `SVC-API-KEY`. */
  prefix?: string
  /** The largest request body; default 1 MiB. */
  bodyLimitBytes?: number
  /** Whether web pages of other origins may read answers (CORS); default true. */
  cors?: boolean
  /** The limit per application, then 429. */
  rate?: Rate
}

export interface Tenant {
  id: string
  name: string
  owner_id: string
}

/** The caller: the owner of the vault, in the tenant of this name or id (default: the first), or an application. */
export interface AskOptions {
  tenant?: string
  /** Whether the owner sees data in plaintext; default false. */
  reveal?: boolean
  /** The key of the application that asks. */
  key?: string
}

/**
 * The control plane of a vault. Calls for state and clock reject with `not_found` unless the vault is in memory.
 */
export interface Control extends ControlCalls {
  /** The key of `/_coffer/` on the server; absent if requests cannot reach it. */
  readonly key?: string
  /**
   * A tenant of its own with the data that the vault began with, its own keys, log, clock and faults: one for each
   * parallel test worker. The vault's server accepts its keys too. `stop` deletes it.
   */
  fork(): Promise<Coffer>
}

/** An open vault. */
export interface Coffer {
  /** The first tenant. */
  readonly tenant: Readonly<Tenant>
  /** The API keys that were created on opening, by the names of their applications. */
  readonly keys: Readonly<Record<string, string>>
  /** Answers a request without a socket. A path such as `/tokens` is enough. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>
  /** Performs an operation by its name, such as `token create`. @throws CofferError those of the operation */
  ask<Name extends OperationName>(
    operation: Name,
    input?: Record<string, unknown>,
    options?: AskOptions,
  ): Promise<ResultOf<Name>>
  /**
   * A client of the application with this key, without a socket: `vault.as(key).tokens.create({ … })`.
   * @throws CofferError `usage` for a key that no header can carry
   */
  as(key: string): Client
  /** Restores states, sets the clock, makes requests fail, and lists them. */
  readonly control: Control
  /** Stops the server, if there is one, and closes the vault. */
  stop(): Promise<void>
  /** {@link stop}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** The modules and hosts that reactor code may use. */
export interface ReactorAccess {
  reactors?: Pick<ReactorOptions, 'allowNet' | 'modulesDirectory'>
}

export interface TestVaultOptions extends HandlerOptions, ReactorAccess {
  /** The contents of the vault; see `coffer seed apply --help`. */
  seed?: Seed
  /** ms since the epoch; default: the system's clock. */
  clock?(): number
}

export interface ServerOptions extends TestVaultOptions {
  /** 0, the default, for a free one. */
  port?: number
  /** Default: both loopback addresses. */
  addresses?: readonly string[]
  /** Accepted host names besides `localhost`, addresses, and the name in the setting `public_url`. */
  allowHosts?: readonly string[]
  /** PEM texts. */
  tls?: { cert: string; key: string }
  /** Serves this vault instead of a new one in memory; `stop` then leaves it open. */
  vault?: Coffer
}

/** The directory of a vault on disk, and the key file or passphrase that opens it. */
export type VaultOptions = HandlerOptions &
  ReactorAccess & { directory: string; notice?(text: string): void } & (
    | { keyFile: string }
    | { passphrase: string }
  )

/** A vault and its HTTP server. */
export interface CofferServer extends Coffer {
  readonly url: string
  readonly port: number
  readonly control: Control & { fork(): Promise<CofferServer> }
}
