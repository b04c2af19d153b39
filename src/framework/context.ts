/** The tools of handlers: within one unit of work, within several, and without an open vault. */
import type { RandomSource } from '../crypto/ports.js'
import type { Transform } from '../domain/access/permissions.js'
import type { Turns } from '../domain/expression/budget.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { EntityType } from '../domain/records/log-record.js'
import type { TenantRecord } from '../domain/records/records.js'
import type { SettingName, SettingValue } from '../domain/settings.js'
import type { WebhookEvent } from '../domain/webhook/events.js'
import type { Durability, StoreReader, StoreWriter } from '../storage/store.js'
import type { Caller } from './caller/caller.js'
import type { UnitContainerSets } from './container-sets.js'
import type { AnyDeclaration, LogEntry } from './declaration.js'
import type { ResponseLimits } from './limits.js'
import type { Background, Claims } from './ports/background.js'
import type { ControlPlane } from './ports/control.js'
import type { DeliveryPort, Waiting } from './ports/deliveries.js'
import type { Outbound } from './ports/outbound.js'
import type { FindReactors, ReactorRuntime } from './ports/reactors.js'
import type { OfflineVault, OpenVault } from './ports/vault.js'

export interface Effects {
  readonly random: RandomSource
  readonly deliveries: DeliveryPort
  /** The runtime starts at the first call. */
  readonly reactors: FindReactors
  readonly background: Background
  readonly claims: Claims
  createUuid(): string
  expressions(): Promise<Expressions>
  readonly turns: Turns
  /** The sender starts at the first call. */
  outbound(): Promise<Outbound>
  /** Compares two results of `hashSecret` in constant time. */
  isEqualSecret(a: string, b: string): boolean
}

export interface Audit {
  /**
   * Logs in the same unit of work. `entry`: by default the operation's `log`; null logs nothing. `transform`:
   * how a token's data was shown or used. `about`: attributes of the entity. An event that needs no others
   * then does not read the entity.
   */
  record(
    entityType: EntityType,
    entityId: string,
    entry?: LogEntry | null,
    transform?: Transform,
    about?: object,
  ): void
  /** Sends webhooks an event that is not derived from the recorded entries. */
  emit(event: WebhookEvent): void
}

/** Tools of a handler within one unit of work. The engine may run the unit again. */
export interface Context
  extends Pick<Effects, 'random' | 'createUuid' | 'expressions' | 'turns' | 'isEqualSecret'> {
  readonly store: StoreWriter
  readonly caller: Caller
  /** ms since the epoch, constant within the unit of work. */
  readonly now: number
  readonly date: string
  hashSecret(text: string): Promise<string>
  /**
   * These tools for another caller. `log` replaces the default log entry; null disables logging. `recorded`
   * collects the entries; by default the unit does.
   */
  as(caller: Caller, log?: LogEntry | null, recorded?: AuditEntry[]): Context
  tenant(): Promise<TenantRecord>
  setting<N extends SettingName>(name: N): Promise<SettingValue<N>>
  /** @throws CofferError `forbidden` for a caller that is not the owner */
  vault(): OpenVault
  readonly audit: Audit
  readonly containerSets: UnitContainerSets
  /** Sends the unit's mail and events after its commit. */
  enqueue(waiting: readonly Waiting[]): void
}

export type OperationInput = Record<string, unknown>

export interface AuditEntry {
  readonly type: EntityType
  readonly id: string
  readonly as?: LogEntry | undefined
  readonly transform?: Transform | undefined
  readonly about?: object | undefined
  readonly event?: WebhookEvent
  readonly actor: Caller['actor']
}

type Call = [caller: Caller, definition: AnyDeclaration, input: OperationInput]

/**
 * Tools of a handler of several units of work, for example a handler that waits for something slow. Each unit
 * reads the caller's current rights, and is refused if the caller may no longer perform the operation.
 */
export interface Session extends Omit<Effects, 'random' | 'isEqualSecret'> {
  /** Has the rights of the beginning. Decide by the caller of a {@link Context} instead. */
  readonly caller: Caller
  readonly traceId: string
  readonly limits: ResponseLimits
  /**
   * Runs `work` as a unit of work with log records. Durability `soon` (for reads) resolves shortly before the
   * sync.
   */
  inUnit<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /**
   * Like `inUnit`, but its result is the answer. If there is an idempotency key, the unit stores the answer.
   */
  conclude<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /** The item of a list as the caller may see it. Called for items that are encoded before the list is complete. */
  present<T>(item: T): T
  /**
   * Like `inUnit`, but without regard to the caller's current rights, because it records what was done.
   * Contract: `work` gives the caller nothing, and decides nothing by the rights.
   */
  record<T>(work: (context: Context) => Promise<T>, durability?: Durability): Promise<T>
  /**
   * Runs in `reader`'s unit of work, or in its own. @throws CofferError `unauthenticated`, `forbidden` if the
   * caller may no longer perform the operation
   */
  requireRights(reader?: StoreReader): Promise<void>
  vault: Context['vault']
  /**
   * Checks the input of another operation. The returned function runs that operation as `caller`. @throws
   * CofferError like `perform`
   */
  prepare(...call: Call): Promise<(context: Context) => Promise<unknown>>
  /**
   * @throws CofferError `forbidden` for a caller that is not the owner, `not_found` without a control plane
   */
  control(): ControlPlane
  perform(...call: [...Call, limits?: ResponseLimits]): Promise<unknown>
}

/** Tools of a handler that needs exclusive access to the vault, or no vault. It always runs for the owner. */
export interface OfflineSession {
  readonly vault: OfflineVault
  /** The reactor runtime with the settings of a new vault. Every call returns the same one. */
  reactors(): Promise<ReactorRuntime>
  notice(text: string): Promise<void>
  /**
   * Asks a person, unless --yes was given. @throws CofferError `interrupted` on no, `usage` if nobody can be
   * asked
   */
  confirm(question: string): Promise<void>
  ask(definition: AnyDeclaration): Promise<unknown>
}
