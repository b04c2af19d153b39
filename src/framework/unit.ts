/** One unit of work of an operation: its context, its log records, and the answer that is stored in it. */
import { formatDate } from '../domain/dates.js'
import type { LogRecord, RecordOf } from '../domain/records/records.js'
import { CofferError, conflict } from '../errors.js'
import type { Durability, StoreWriter } from '../storage/store.js'
import { versionOf } from './caller/authenticate.js'
import { requireCurrent } from './caller/cached-caller.js'
import type { Caller } from './caller/caller.js'
import { type IdempotentAnswer, removeAnswersOfDeleted } from './idempotency.js'
import type { ResponseLimits } from './limits.js'
import type { AnyOperation, AuditEntry, Context, Host, LogEntry } from './operation.js'
import type { Outcome } from './outcome.js'

/** A caller, who has the permissions of the operation, and what its run needs besides the input. */
export interface Facts {
  host: Host
  caller: Caller
  definition: AnyOperation
  traceId: string
  generation: number
  limits: ResponseLimits
  answer?: IdempotentAnswer | undefined
  outer?: IdempotentAnswer | undefined
}

/** Runs `work` in a unit and writes its log records. With `toOutcome` its result is the answer, stored in that unit. */
export async function runUnit<T>(
  { host, caller, definition, traceId, generation, answer, outer }: Facts,
  work: (context: Context) => Promise<T>,
  durability?: Durability,
  toOutcome?: (out: T) => Outcome,
): Promise<T> {
  // A read may be answered before its log record is synced; a change may not.
  const usual = definition.log?.operation === 'read' ? 'soon' : 'now'
  let recorded: AuditEntry[] = []
  const out = await host.store.write(async (store) => {
    recorded = []
    requireGeneration(host, generation)
    if (caller.cached !== undefined) requireCurrent(caller.cached, versionOf(store))
    const context = createContext(host, store, caller, definition.log, (entry) => recorded.push(entry))
    const out = await work(context)
    if (recorded.length > 0) {
      await writeLog(context, recorded, traceId)
      if (recorded.some(({ as }) => as?.operation === 'delete'))
        await removeAnswersOfDeleted(store, caller.tenant, recorded)
    }
    if (answer !== undefined && toOutcome !== undefined) await answer.store(context, recorded, toOutcome(out))
    return out
  }, durability ?? usual)
  if (answer !== undefined && toOutcome !== undefined) answer.isStored = true
  else answer?.addRecorded(recorded)
  outer?.addRecorded(recorded)
  return out
}

/** @throws CofferError `conflict` for work that began before the data of `host` was replaced */
export function requireGeneration(host: Pick<Host, 'generation'>, generation: number): void {
  if (host.generation === generation) return
  throw staleWorkError()
}

export function staleWorkError(): CofferError {
  return conflict('The vault was reset, restored or deleted while this was under way, so it was not done.')
}

/** Returns `granted` for the owner only. @throws CofferError `forbidden` */
export function requireOwner<T>(granted: T, { grants }: Caller): T {
  if (grants === undefined) return granted
  throw new CofferError('forbidden', 'Only the owner of the vault may do this.')
}

/** @param log that of the operation, for entities that are recorded without another */
function createContext(
  host: Host,
  store: StoreWriter,
  caller: Caller,
  log: LogEntry | undefined,
  record: (entry: AuditEntry) => void,
): Context {
  return {
    store,
    caller,
    now: store.now,
    date: formatDate(store.now),
    random: host.random,
    createUuid: host.createUuid,
    expressions: host.expressions,
    turns: host.turns,
    hashSecret: (text) => host.hashSecret(text, store),
    isEqualSecret: host.isEqualSecret,
    vault: () => requireOwner(host, caller),
    tenant: async () => {
      const tenant = await store.get('tenant', 0, String(caller.tenant))
      if (tenant === undefined)
        throw new CofferError('unauthenticated', 'The tenant of this caller does not exist any more.')
      return tenant
    },
    audit: {
      record: (type, id, as = log, transform) =>
        record({ type, id, as: as ?? undefined, transform, actor: caller.actor }),
    },
    as: (other, otherLog) => createContext(host, store, other, otherLog, record),
  }
}

/** Contract: once for what one operation recorded, in its unit. */
export async function writeLog(
  { store, caller, now, date }: Context,
  recorded: readonly AuditEntry[],
  traceId: string,
): Promise<void> {
  const tenant = await store.get('tenant', 0, String(caller.tenant))
  // The log of a deleted tenant is deleted with it, so its deletion is not logged.
  if (tenant === undefined) return
  for (const { type, id, as, transform, actor = caller.actor } of recorded) {
    if (as === undefined) continue
    const entry: LogRecord = {
      tenant_id: tenant.id,
      actor_id: actor.id,
      actor_type: actor.type,
      entity_type: type,
      entity_id: id,
      operation: as.operation,
      message: as.message,
      created_at: date,
      trace_id: traceId,
    }
    if (transform !== undefined) entry.transform = transform
    const logging = store.log(caller.tenant, entry, now)
    if (logging !== undefined) await logging
  }
}

/** The record with this id in the caller's tenant. @throws CofferError `not_found` */
export async function requireRecord<
  K extends 'application' | 'invitation' | 'member' | 'proxy' | 'reactor' | 'token',
>({ store, caller }: Context, kind: K, id: string): Promise<RecordOf[K]> {
  const record = await store.get(kind, caller.tenant, id)
  if (record === undefined) throw new CofferError('not_found', `There is no ${kind} with this id.`)
  return record
}
