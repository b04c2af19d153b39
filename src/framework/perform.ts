/**
 * The only way to run an operation: authorize, check, run, log. Four steps, no hooks. It cannot know whether a
 * command, a request or a reactor asked.
 */

import { formatDate } from '../domain/dates.js'
import type { EntityType } from '../domain/entity-types.js'
import { collect, refuseErrors } from '../domain/property-errors.js'
import type { LogRecord } from '../domain/records.js'
import { CofferError, type PropertyErrors } from '../errors.js'
import type { StoreWriter } from '../storage/store.js'
import type { Caller } from './caller.js'
import type { Host } from './host.js'
import {
  type AnyOperation,
  type Context,
  Existing,
  type LogEntry,
  type OfflineSession,
  type OperationInput,
  type Session,
  successOf,
} from './operation.js'
import { ANYBODY, hand, type Recipient } from './recipient.js'
import { completeValue, keepFitting } from './schema.js'

export interface Outcome<Result = unknown> {
  /** HTTP's word for what happened: the operation's own, or 200 where nothing had to be created. */
  status: number
  result: Result
}

export interface PerformOptions {
  /** What could not be read of the input; it is refused together with what is wrong with the rest. */
  misspelled?: Readonly<PropertyErrors>
  /** Whom the answer is for; what it does not accept is undone. */
  recipient?: Recipient | undefined
}

/**
 * Runs `definition` for `caller` in one transaction, log records included.
 * @throws CofferError `forbidden`, `validation`, and whatever the operation itself or `recipient` refuses.
 */
export async function perform(
  host: Host,
  caller: Caller,
  definition: AnyOperation,
  input: OperationInput,
  traceId: string,
  { misspelled = {}, recipient = ANYBODY }: PerformOptions = {},
): Promise<Outcome> {
  authorize(caller, definition)
  const success = successOf(definition)
  const complete = completeValue(definition.input, input) as OperationInput
  const checked = await checkInput(host, definition, complete, misspelled)
  const session = createSession(host, caller, definition, traceId, recipient)
  const { run, runDetached } = definition
  const isLoggedOnce = definition.audience === 'owner' && definition.log !== undefined
  if (runDetached !== undefined) {
    const result = await runDetached(session, complete, checked)
    if (isLoggedOnce) await session.inUnit(reachTenant)
    return { status: success, result }
  }
  if (run === undefined)
    throw new CofferError('internal', `${definition.name} takes a vault that is not open.`)
  return session.inUnit(async (context) => {
    const out = await run(context, complete, checked)
    if (isLoggedOnce) await reachTenant(context)
    const isExisting = out instanceof Existing
    const result = hand(isExisting ? out.result : out, recipient)
    return { status: isExisting ? 200 : success, result }
  })
}

/**
 * Runs `definition` without an open vault, for the person who holds its secret.
 * @throws CofferError `validation`, and whatever the operation itself refuses.
 */
export async function performOffline(
  session: OfflineSession,
  definition: AnyOperation,
  input: OperationInput,
  validate: Host['validate'],
): Promise<unknown> {
  const complete = completeValue(definition.input, input) as OperationInput
  validate(definition, complete)
  return definition.runOffline!(session, complete)
}

function createSession(
  host: Host,
  caller: Caller,
  definition: AnyOperation,
  traceId: string,
  recipient: Recipient,
): Session {
  // A read's log record may be synced a moment later; whatever changes something is answered after its sync.
  const usual = definition.log?.operation === 'read' ? 'soon' : 'now'
  return {
    caller,
    traceId,
    recipient,
    createUuid: host.createUuid,
    post: host.post,
    reactors: host.reactors,
    inUnit: (work, durability = usual) =>
      host.store.write(async (store) => {
        const reached: ReachedEntity[] = []
        const context = createContext(host, store, caller, reached)
        const out = await work(context)
        if (reached.length > 0) await writeLog(context, definition, reached, traceId)
        return out
      }, durability),
    vault: () => requireOwner(host, caller),
    perform: async (other, inner, input, taker) =>
      (await perform(host, other, inner, input, traceId, { recipient: taker })).result,
  }
}

/** What only the owner is given. @throws CofferError `forbidden` for any other caller */
function requireOwner<T>(granted: T, { grants }: Caller): T {
  if (grants === undefined) return granted
  throw new CofferError('forbidden', 'Only the owner of the vault may do this.')
}

/** The owner may act where no tenant is left; then there is no log either. */
async function reachTenant({ store, caller, reached }: Context): Promise<void> {
  const tenant = await store.get('tenant', 0, String(caller.tenant))
  if (tenant !== undefined) reached('tenant', tenant.id)
}

/** @throws CofferError `forbidden` naming what is missing. */
export function authorize(caller: Caller, { audience, permissions = [] }: AnyOperation): void {
  if (audience === 'owner') requireOwner(undefined, caller)
  const missing = permissions.filter((permission) => !caller.holds(permission))
  if (missing.length === 0) return
  throw new CofferError('forbidden', `This takes the permission ${missing.join(' and ')}.`)
}

/**
 * Says everything that is wrong with the input in itself: what the door could not read, what the schema refuses, what
 * the operation's `check` does. Of one property only the first of these is told: the rest rests on it.
 */
async function checkInput(
  host: Host,
  definition: AnyOperation,
  input: OperationInput,
  misspelled: Readonly<PropertyErrors>,
): Promise<unknown> {
  const refused: PropertyErrors = {}
  collect(refused, '', () => host.validate(definition, input))
  const errors = { ...refused, ...misspelled }
  const isFit = Object.keys(errors).length === 0
  const tools = { expressions: host.expressions, now: () => host.store.read(async ({ now }) => now) }
  let checked: unknown
  try {
    checked = await definition.check?.(isFit ? input : keepFitting(definition.input, input), tools)
  } catch (error) {
    if (!(error instanceof CofferError) || error.errors === undefined) throw error
    refuseErrors({ ...errors, ...error.errors, ...errors })
  }
  refuseErrors(errors)
  return checked
}

interface ReachedEntity {
  type: EntityType
  id: string
  as?: LogEntry
}

function createContext(host: Host, store: StoreWriter, caller: Caller, reached: ReachedEntity[]): Context {
  return {
    store,
    caller,
    now: store.now,
    date: formatDate(store.now),
    random: host.random,
    createUuid: host.createUuid,
    expressions: host.expressions,
    hashSecret: (text) => host.hashSecret(text, store),
    isEqualSecret: host.isEqualSecret,
    vault: () => requireOwner(host, caller),
    tenant: async () => {
      const tenant = await store.get('tenant', 0, String(caller.tenant))
      if (tenant === undefined)
        throw new CofferError('unauthenticated', 'The tenant of this caller does not exist any more.')
      return tenant
    },
    reached: (type, id, as) => {
      reached.push(as === undefined ? { type, id } : { type, id, as })
    },
  }
}

async function writeLog(
  { store, caller, date }: Context,
  definition: AnyOperation,
  reached: readonly ReachedEntity[],
  traceId: string,
): Promise<void> {
  const tenant = await store.get('tenant', 0, String(caller.tenant))
  // A deleted tenant takes its log along, the record of its deletion included.
  if (tenant === undefined) return
  for (const { type, id, as = definition.log } of reached) {
    if (as === undefined) continue
    const record: LogRecord = {
      tenant_id: tenant.id,
      actor_id: caller.actor.id,
      actor_type: caller.actor.type,
      entity_type: type,
      entity_id: id,
      operation: as.operation,
      message: as.message,
      created_at: date,
      trace_id: traceId,
    }
    await store.log(caller.tenant, record)
  }
}
