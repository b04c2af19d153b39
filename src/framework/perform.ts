/**
 * The only way to run an operation: authorize, check, run, log. It is the same for commands, HTTP requests and reactor
 * code.
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
  HttpAnswer,
  type LogEntry,
  type OfflineSession,
  type OperationInput,
  type Outcome,
  type Session,
  successOf,
} from './operation.js'
import { LOCAL_RECIPIENT, type Recipient, toAnswer } from './recipient.js'
import { completeValue, keepFitting } from './schema.js'

export interface PerformOptions {
  /** Errors of properties that could not be parsed; reported together with those of validation. */
  misspelled?: Readonly<PropertyErrors>
  /** Limits the size of the answer; the transaction of a refused answer is rolled back. */
  recipient?: Recipient | undefined
}

/** @throws CofferError `forbidden`, `validation`, those of the operation and of `recipient` */
export async function perform(
  host: Host,
  caller: Caller,
  definition: AnyOperation,
  input: OperationInput,
  traceId: string,
  { misspelled = {}, recipient = LOCAL_RECIPIENT }: PerformOptions = {},
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
    return result instanceof HttpAnswer ? toOutcome(result) : { status: success, result }
  }
  if (run === undefined) throw new CofferError('internal', `${definition.name} cannot run on an open vault.`)
  return session.inUnit(async (context) => {
    const out = await run(context, complete, checked)
    if (isLoggedOnce) await reachTenant(context)
    if (out instanceof HttpAnswer) return toOutcome(out)
    const isExisting = out instanceof Existing
    const result = toAnswer(isExisting ? out.result : out, recipient)
    return { status: isExisting ? 200 : success, result }
  })
}

function toOutcome({ answer: { statusCode, headers, body } }: HttpAnswer): Outcome {
  return { status: statusCode, headers, result: body }
}

/** Runs `definition` without an open vault, as the owner. @throws CofferError `validation`, those of the operation */
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
  // A read may be answered before its log record is synced; a change may not.
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

/** Returns `granted` for the owner only. @throws CofferError `forbidden` */
function requireOwner<T>(granted: T, { grants }: Caller): T {
  if (grants === undefined) return granted
  throw new CofferError('forbidden', 'Only the owner of the vault may do this.')
}

/** Logs an operation of the owner for the tenant; without a tenant there is no log. */
async function reachTenant({ store, caller, reached }: Context): Promise<void> {
  const tenant = await store.get('tenant', 0, String(caller.tenant))
  if (tenant !== undefined) reached('tenant', tenant.id)
}

/** @throws CofferError `forbidden` naming the missing permissions, or the type of application */
export function authorize(caller: Caller, definition: AnyOperation): void {
  const { audience, permissions = [], needsOnePermission = false, onlyFor } = definition
  if (audience === 'owner') requireOwner(undefined, caller)
  if (caller.session?.isAuthorized === false)
    throw new CofferError('forbidden', 'This session is not authorized yet.')
  if (onlyFor !== undefined && (caller.applicationType !== onlyFor || caller.session !== undefined))
    throw new CofferError('forbidden', `This requires the key of a ${onlyFor} application.`)
  const missing = needsOnePermission
    ? caller.holds(...permissions)
      ? []
      : permissions
    : permissions.filter((permission) => !caller.holds(permission))
  if (missing.length === 0) return
  const names = missing.join(needsOnePermission ? ' or ' : ' and ')
  throw new CofferError('forbidden', `This requires the permission ${names}.`)
}

/**
 * Reports all errors of the input together: of parsing, of the schema and of the operation's `check`. For one property
 * the errors of the earliest of these steps are reported, because the later ones follow from them.
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

export interface ReachedEntity {
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

/** Contract: once for what one operation reached, in its unit. */
export async function writeLog(
  { store, caller, date }: Context,
  definition: AnyOperation,
  reached: readonly ReachedEntity[],
  traceId: string,
): Promise<void> {
  const tenant = await store.get('tenant', 0, String(caller.tenant))
  // The log of a deleted tenant is deleted with it, so its deletion is not logged.
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
