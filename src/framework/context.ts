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
  /** The first call starts the runtime. */
  readonly reactors: FindReactors
  /** The first call loads the linker. */
  linker(): Promise<Linker>
  /**
   * Compiles code in a child process, without running the code. Returns the reasons why the code cannot run.
   * @throws CofferError `unavailable`, `rate_limited`
   */
  compile(code: string): Promise<readonly CodeFault[]>
  readonly background: Background
  readonly claims: Claims
  createUuid(): string
  expressions(): Promise<Expressions>
  readonly turns: Turns
  /** The first call starts the sender. */
  outbound(): Promise<Outbound>
  readonly ownServer: OwnServer
  createRunKey(): RunKey
  /** The first call may create the signing key of the vault. */
  signer(): Promise<Signer>
  /** Compares results of `hashSecret` in constant time. */
  isEqualSecret(a: string, b: string): boolean
  /** `key`: 32 bytes. */
  createCipher(key: Uint8Array): Cipher
  /** The first call loads the code of the encryption. */
  clientEncryption(): Promise<ClientEncryption>
}

/** After `key` is handed out, only its digest is kept. `isKey` compares digests in constant time. */
export interface RunKey {
  key: string
  isKey(text: string): boolean
}

export interface Audit {
  /**
   * Logs an access to the entity, in the same unit of work. `entry`: the default is the `log` of the operation, and
   * null logs nothing. `transform`: how the data of a token was shown or used. `about`: attributes of the entity. If an
   * event needs only these attributes, the entity is not read.
   */
  record(
    entityType: EntityType,
    entityId: string,
    entry?: LogEntry | null,
    transform?: Transform,
    about?: object,
  ): void
  /** Sends an event in addition to the events of the recorded entries. */
  emit(event: WebhookEvent): void
  /** Sends a test event, without a change in the vault. */
  trigger(event: TriggeredEvent): void
}

export interface RequestOrigin {
  /** The scheme, host and path prefix by which the client reaches this server. Undefined without a valid host. */
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
  /** In ms since the epoch. Does not change within a unit of work. */
  readonly now: number
  readonly date: string
  /** Records for later work, such as mail, keep this id. */
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
 * The tools of a handler that needs several units of work, for example because the handler waits for something slow.
 * Each unit reads the current rights of the caller. A unit fails if the caller may no longer perform the operation.
 */
export interface Session
  extends Omit<Effects, 'random' | 'compile' | 'isEqualSecret' | 'createCipher' | 'clientEncryption'> {
  /** Has the rights from the beginning of the operation. For decisions, use the caller of a {@link Context}. */
  readonly caller: Caller
  readonly traceId: string
  /**
   * Collects the records that the answer describes, also in requests that reactor code sends to this server. Undefined
   * if the answer is not stored.
   */
  readonly subjects: SubjectCollector | undefined
  /** The header Host, if the operation was called over HTTP. */
  readonly reachedAt: string | undefined
  readonly limits: ResponseLimits
  /**
   * Runs `work` as a unit of work with log records. With durability `soon` (for reads), does not wait until the log
   * records are synced to disk.
   */
  inUnit<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /**
   * Like `inUnit`, but the result is the answer of the operation. With an idempotency key, the unit also stores the
   * answer.
   */
  conclude<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /** Adapts one item to the rights of the caller, for a list that encodes its items one by one. */
  present<T>(item: T): T
  /**
   * Like `inUnit`, but without a check of the rights, because `work` only records what has already happened. Requires:
   * `work` returns no data to the caller, and makes no decision from the rights of the caller.
   */
  record<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /**
   * Without `reader`, uses a new unit of work.
   * @throws CofferError `unauthenticated`, or `forbidden` if the caller may no longer perform the operation
   */
  requireRights(reader?: StoreReader): Promise<void>
  vault: Context['vault']
  /**
   * Validates the input of an operation. The returned function performs the operation as `caller`.
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

/** The tools of a handler that needs exclusive access to the vault, or no vault. The caller is always the owner. */
export interface OfflineSession {
  readonly vault: OfflineVault
  /** The runtime has the settings of a new vault. Every call returns the same runtime. */
  reactors(): Promise<ReactorRuntime>
  notice(text: string): Promise<void>
  /**
   * Asks a person, unless --yes was given.
   * @throws CofferError `interrupted` if the answer is no, or `usage` if nobody can be asked
   */
  confirm(question: string): Promise<void>
  ask(definition: AnyDeclaration): Promise<unknown>
}
