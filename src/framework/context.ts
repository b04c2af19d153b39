import type { Cipher, ClientEncryption, RandomSource, Signer } from '../crypto/ports.js'
import type { Transform } from '../domain/access/permissions.js'
import type { Turns } from '../domain/expression/budget.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { CodeFault } from '../domain/reactor/code-fault.js'
import type { EntityType } from '../domain/records/log-record.js'
import type { TenantRecord } from '../domain/records/records.js'
import type { SettingName, SettingValue } from '../domain/settings.js'
import type { TriggeredEvent, WebhookEvent } from '../domain/webhook/events.js'
import type { Durability, StoreReader, StoreWriter } from '../storage/store.js'
import type { AuditEntry, SubjectCollector } from './audit-entry.js'
import type { Caller } from './caller/caller.js'
import type { UnitContainerSets } from './container-sets.js'
import type { AnyDeclaration, LogEntry } from './declaration.js'
import type { ResponseLimits } from './limits.js'
import type { Background, Claims } from './ports/background.js'
import type { ControlPlane } from './ports/control.js'
import type { DeliveryPort, Waiting } from './ports/deliveries.js'
import type { Linker } from './ports/linker.js'
import type { Outbound } from './ports/outbound.js'
import type { OwnServer } from './ports/own-server.js'
import type { FindReactors, ReactorRuntime } from './ports/reactors.js'
import type { OfflineVault, OpenVault } from './ports/vault.js'

export interface Effects {
  readonly random: RandomSource
  readonly deliveries: DeliveryPort
  /** Finds the runtime of reactors. The first call starts the runtime. */
  readonly reactors: FindReactors
  /** Returns the linker of npm packages. The first call loads the linker. */
  linker(): Promise<Linker>
  /**
   * Compiles code in a child process, without running it. Resolves to the reasons why the code cannot run.
   * @throws CofferError `unavailable`, `rate_limited`
   */
  compile(code: string): Promise<readonly CodeFault[]>
  readonly background: Background
  readonly claims: Claims
  createUuid(): string
  expressions(): Promise<Expressions>
  readonly turns: Turns
  /** Returns the sender of requests to other servers. The first call starts the sender. */
  outbound(): Promise<Outbound>
  readonly ownServer: OwnServer
  createRunKey(): RunKey
  /** Signs events. The first call may create the key of the vault. */
  signer(): Promise<Signer>
  /** Compares two results of `hashSecret` in constant time. */
  isEqualSecret(a: string, b: string): boolean
  /** Returns a cipher with a key of 32 bytes that a record contains. */
  createCipher(key: Uint8Array): Cipher
  /** Returns the encryption with the keys of clients. The first call loads the code of the encryption. */
  clientEncryption(): Promise<ClientEncryption>
}

/**
 * A new key of a run. When the key has been handed out, only `isKey` is kept. `isKey` compares the digest of a text
 * with the digest of the key in constant time.
 */
export interface RunKey {
  key: string
  isKey(text: string): boolean
}

export interface Audit {
  /**
   * Logs an access to the entity, in the same unit of work. `entry`: the default is the operation's `log`, and null
   * logs nothing. `transform`: how the data of a token was shown or used. `about`: attributes of the entity. An event
   * that needs only the attributes in `about` is built without reading the entity.
   */
  record(
    entityType: EntityType,
    entityId: string,
    entry?: LogEntry | null,
    transform?: Transform,
    about?: object,
  ): void
  /** Sends an event in addition to the events that follow from the recorded entries. */
  emit(event: WebhookEvent): void
  /** Sends a test event, for which nothing in the vault has changed. */
  trigger(event: TriggeredEvent): void
}

/** The facts that a handler may read about the HTTP request of its operation. */
export interface RequestOrigin {
  /** Scheme, host and path prefix under which the client reaches this server. Undefined if the request has no valid host. */
  readonly base: string | undefined
  readonly accept: string | undefined
}

/** The tools of a handler within one unit of work. The engine may run the unit again. */
export interface Context
  extends Pick<
    Effects,
    'random' | 'createUuid' | 'expressions' | 'turns' | 'isEqualSecret' | 'createCipher' | 'clientEncryption'
  > {
  readonly store: StoreWriter
  readonly caller: Caller
  /** ms since the epoch. `now` does not change within a unit of work. */
  readonly now: number
  readonly date: string
  /** The trace id of the operation. Records for later work, such as mail, keep this id. */
  readonly traceId: string
  /** Undefined if no HTTP request performs the operation. */
  readonly origin: RequestOrigin | undefined
  hashSecret(text: string): Promise<string>
  /**
   * Returns a context for another caller. `log` replaces the default log entry, and null logs nothing. `recorded`
   * collects the log entries. Without `recorded`, the entries are added to the entries of the unit of work.
   */
  as(caller: Caller, log?: LogEntry | null, recorded?: AuditEntry[]): Context
  tenant(): Promise<TenantRecord>
  setting<N extends SettingName>(name: N): Promise<SettingValue<N>>
  /** @throws CofferError `forbidden` if the caller is not the owner */
  vault(): OpenVault
  readonly audit: Audit
  readonly containerSets: UnitContainerSets
  /** Sends the mail and events of the unit after its commit. */
  enqueue(waiting: readonly Waiting[]): void
}

export type OperationInput = Record<string, unknown>

type Call = [caller: Caller, definition: AnyDeclaration, input: OperationInput]

/**
 * The tools of a handler that needs several units of work, for example because it waits for something slow.
 * Each unit reads the caller's current rights. A unit fails if the caller may no longer perform the
 * operation.
 */
export interface Session
  extends Omit<Effects, 'random' | 'compile' | 'isEqualSecret' | 'createCipher' | 'clientEncryption'> {
  /**
   * The caller with the rights from the beginning of the operation. For decisions, use the caller of a {@link
   * Context}.
   */
  readonly caller: Caller
  readonly traceId: string
  /**
   * Collects the records that the operation's answer describes. Undefined if the answer is not stored. If reactor code
   * sends requests to this server during the operation, the collector also gets the records of these requests.
   */
  readonly subjects: SubjectCollector | undefined
  /** The header Host of the request, if the operation was called over HTTP. */
  readonly reachedAt: string | undefined
  readonly limits: ResponseLimits
  /**
   * Runs `work` as a unit of work with log records. With durability `soon` (for reads), the promise resolves
   * before the log records are synced to disk.
   */
  inUnit<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /**
   * Like `inUnit`, but the result is the answer of the operation. With an idempotency key, the unit also
   * stores this answer.
   */
  conclude<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /**
   * Adapts an item of a list to what the caller may see. A list that encodes its items one by one calls `present` for
   * each item.
   */
  present<T>(item: T): T
  /**
   * Like `inUnit`, but does not check the caller's current rights, because `work` only records what has already
   * happened. Requires: `work` returns no data to the caller and makes no decision from the caller's rights.
   */
  record<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /**
   * Checks the rights in `reader`'s unit of work. Without `reader`, the function checks the rights in its own unit of
   * work.
   * @throws CofferError `unauthenticated`, or `forbidden` if the caller may no longer perform the operation
   */
  requireRights(reader?: StoreReader): Promise<void>
  vault: Context['vault']
  /**
   * Validates the input of an operation that this operation performs. The returned function runs that
   * operation as `caller`.
   * @throws CofferError like `perform`
   */
  prepare(...call: Call): Promise<(context: Context) => Promise<unknown>>
  /**
   * @throws CofferError `forbidden` if the caller is not the owner, or `not_found` if the server has no
   * control plane
   */
  control(): ControlPlane
  perform(...call: [...Call, limits?: ResponseLimits]): Promise<unknown>
}

/**
 * The tools of a handler that needs exclusive access to the vault, or no vault. The caller is always the
 * owner.
 */
export interface OfflineSession {
  readonly vault: OfflineVault
  /** The reactor runtime with the settings of a new vault. Every call returns the same runtime. */
  reactors(): Promise<ReactorRuntime>
  notice(text: string): Promise<void>
  /**
   * Asks a person, unless --yes was given.
   * @throws CofferError `interrupted` if the answer is no, or `usage` if nobody can be asked
   */
  confirm(question: string): Promise<void>
  ask(definition: AnyDeclaration): Promise<unknown>
}
