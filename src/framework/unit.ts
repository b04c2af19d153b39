import type { Transform } from '../domain/access/permissions.js'
import { type Awaitable, andThen } from '../domain/awaitable.js'
import { formatDate } from '../domain/dates.js'
import type { EntityType } from '../domain/records/log-record.js'
import type { Kind } from '../domain/records/records.js'
import type { SettingName } from '../domain/settings.js'
import type { TriggeredEvent, WebhookEvent } from '../domain/webhook/events.js'
import { CofferError, conflict } from '../errors.js'
import type { Condition, Durability, StoreReader, StoreWriter } from '../storage/store.js'
import type { AuditEntry, SubjectCollector } from './audit-entry.js'
import { authorizeNow, requireOwner } from './caller/authorize.js'
import { type Caller, currentCaller } from './caller/caller.js'
import { UnitContainerSets } from './container-sets.js'
import type { Context, RequestOrigin } from './context.js'
import type { LogEntry } from './declaration.js'
import { writeEntries } from './events.js'
import type { Host } from './host.js'
import { type IdempotentAnswer, removeAnswersOfDeleted } from './idempotency.js'
import type { ResponseLimits } from './limits.js'
import type { AnyOperation } from './operation.js'
import type { Outcome } from './outcome.js'
import type { Waiting } from './ports/deliveries.js'
import { readSetting } from './setting.js'

/** One run of an operation, without its input. `caller` has the rights from the start of the run. */
export interface Execution {
  host: Host
  caller: Caller
  definition: AnyOperation
  traceId: string
  reachedAt?: string | undefined
  generation: number
  limits: ResponseLimits
  answer?: IdempotentAnswer | undefined
  outer?: SubjectCollector | undefined
  origin?: RequestOrigin | undefined
  /**
   * How each unit of work checks the caller. By default, the current rights must still permit the operation.
   * `admitted`: a relay admitted the caller without a key, so only the rights source is checked. `record`: the rights
   * are not checked.
   */
  rights?: 'admitted' | 'record'
}

/**
 * Runs `work` in a unit and writes its log records. With `toOutcome`, the result of `work` is the answer of the
 * operation, and the unit stores this answer.
 */
export async function runUnit<T>(
  execution: Execution,
  work: (context: Context) => Awaitable<T>,
  durability?: Durability,
  toOutcome?: (out: T) => Outcome,
): Promise<T> {
  const { host, caller, definition, traceId, generation, answer, outer } = execution
  // A read can be answered before its log record is synced to disk. A change is answered after the sync.
  const isRead =
    definition.kind === 'query' || definition.kind === 'list' || definition.log?.operation === 'read'
  const usual = isRead ? 'soon' : 'now'
  let recorded: AuditEntry[] = []
  let waiting: Waiting[] = []
  let released: string[] = []
  const hasDeleted = () => recorded.some(({ as }) => as?.operation === 'delete')
  const conclude = async (context: Context, out: T) => {
    if (hasDeleted()) await removeAnswersOfDeleted(context.store, caller.tenant, recorded)
    if (answer !== undefined && toOutcome !== undefined) await answer.store(context, recorded, toOutcome(out))
    return out
  }
  const out = await host.store.write((store) => {
    recorded = []
    waiting = []
    released = []
    if (host.generation !== generation) throw staleWorkError()
    return andThen(callerOfUnit(execution, store), (current) => {
      const context = new UnitContext(
        host,
        store,
        current,
        definition.log,
        recorded,
        waiting,
        released,
        traceId,
        execution.origin,
      )
      return andThen(work(context), (out) => {
        const writing = recorded.length === 0 ? undefined : writeLog(context, recorded, traceId)
        return andThen(writing, () => (answer === undefined && !hasDeleted() ? out : conclude(context, out)))
      })
    })
  }, durability ?? usual)
  if (answer !== undefined && toOutcome !== undefined) answer.isStored = true
  else answer?.addRecorded(recorded)
  outer?.addRecorded(recorded)
  if (waiting.length > 0) host.deliveries.enqueue(waiting)
  if (released.length > 0) host.containerSets.release(caller.tenant, released)
  return out
}

export function callerOfUnit(
  { caller, definition, rights }: Execution,
  store: StoreReader,
): Awaitable<Caller> {
  if (rights === 'record') return caller
  return rights === 'admitted' ? currentCaller(caller, store) : authorizeNow(caller, definition, store)
}

export function staleWorkError(): CofferError {
  return conflict(
    'The vault was reset, restored or deleted during this operation, so the operation was stopped.',
  )
}

/** Each request creates a context. A class is cheaper to create than an object of functions. */
class UnitContext implements Context {
  readonly store: StoreWriter
  readonly caller: Caller
  readonly now: number
  readonly random: Host['random']
  readonly createUuid: Host['createUuid']
  readonly expressions: Host['expressions']
  readonly turns: Host['turns']
  readonly isEqualSecret: Host['isEqualSecret']
  readonly traceId: string
  readonly origin: RequestOrigin | undefined
  readonly #host: Host
  readonly #log: LogEntry | undefined
  readonly #recorded: AuditEntry[]
  readonly #waiting: Waiting[]
  readonly #released: string[]
  #containerSets: UnitContainerSets | undefined
  #date: string | undefined

  constructor(
    host: Host,
    store: StoreWriter,
    caller: Caller,
    log: LogEntry | undefined,
    recorded: AuditEntry[],
    waiting: Waiting[],
    released: string[],
    traceId: string,
    origin: RequestOrigin | undefined,
  ) {
    this.store = store
    this.caller = caller
    this.now = store.now
    this.random = host.random
    this.createUuid = host.createUuid
    this.expressions = host.expressions
    this.turns = host.turns
    this.isEqualSecret = host.isEqualSecret
    this.#host = host
    this.#log = log
    this.#recorded = recorded
    this.#waiting = waiting
    this.#released = released
    this.traceId = traceId
    this.origin = origin
  }

  get date(): string {
    this.#date ??= formatDate(this.now)
    return this.#date
  }

  get containerSets(): UnitContainerSets {
    this.#containerSets ??= new UnitContainerSets(
      this.#host.containerSets,
      this.store,
      this.caller,
      this.#released,
    )
    return this.#containerSets
  }

  get hashSecret() {
    return (text: string) => this.#host.hashSecret(text, this.store)
  }

  get vault() {
    return () => requireOwner(this.#host, this.caller)
  }

  get createCipher() {
    return this.#host.createCipher
  }

  get clientEncryption() {
    return this.#host.clientEncryption
  }

  get tenant() {
    return async () => {
      const tenant = await this.store.get('tenant', 0, String(this.caller.tenant))
      if (tenant !== undefined) return tenant
      throw new CofferError('unauthenticated', 'The tenant of this caller does not exist any more.')
    }
  }

  get setting() {
    return <N extends SettingName>(name: N) => readSetting(this.store, name)
  }

  get audit() {
    return this
  }

  record(
    type: EntityType,
    id: string,
    entry: LogEntry | null = this.#log ?? null,
    transform?: Transform,
    about?: object,
  ): void {
    this.#recorded.push({ type, id, as: entry ?? undefined, transform, about, actor: this.caller.actor })
  }

  emit(event: WebhookEvent): void {
    this.#emit(event)
  }

  trigger(event: TriggeredEvent): void {
    this.#emit(event)
  }

  #emit(event: WebhookEvent | TriggeredEvent): void {
    this.#recorded.push({ type: 'webhook', id: '', event, actor: this.caller.actor })
  }

  enqueue(waiting: readonly Waiting[]): void {
    for (const each of waiting) this.#waiting.push(each)
  }

  as(caller: Caller, log: LogEntry | null = this.#log ?? null, recorded = this.#recorded): Context {
    const host = this.#host
    return new UnitContext(
      host,
      this.store,
      caller,
      log ?? undefined,
      recorded,
      this.#waiting,
      this.#released,
      this.traceId,
      this.origin,
    )
  }
}

/** Requires: each entry of `recorded` is passed only once, in the unit of work that recorded the entry. */
export function writeLog(context: Context, recorded: readonly AuditEntry[], traceId: string) {
  const { store, caller } = context
  return andThen(store.get('tenant', 0, String(caller.tenant)), (tenant) => {
    // The log of a deleted tenant is deleted with the tenant, so this deletion is not logged.
    const writing = tenant === undefined ? [] : writeEntries(context, tenant, recorded, traceId)
    return andThen(writing, (waiting) => context.enqueue(waiting))
  })
}

export function requireRecord<K extends Kind>(context: Context, kind: K, id: string) {
  return andThen(context.store.get(kind, context.caller.tenant, id), (record) => {
    if (record !== undefined) return record
    throw new CofferError('not_found', `There is no ${kind.replace('_', ' ')} with this id.`)
  })
}

const REMOVED_AT_ONCE = 100

/** Removes records in batches. Stops after about `most` records. */
export async function removeAll(
  { store, caller: { tenant } }: Pick<Context, 'store'> & { caller: Pick<Caller, 'tenant'> },
  kind: Kind,
  where: Condition,
  most = Number.POSITIVE_INFINITY,
): Promise<void> {
  for (let removed = 0; removed < most; removed += REMOVED_AT_ONCE) {
    const { records } = await store.find(kind, tenant, { where, page: 1, size: REMOVED_AT_ONCE })
    if (records.length === 0) return
    for (const { id } of records) await store.remove(kind, tenant, id)
  }
}
