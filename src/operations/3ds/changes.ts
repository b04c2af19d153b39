/**
 * Changes of sessions. Each change stores the session, and returns the session with a log entry and events.
 * `tellByCaller` and `tellBySystem` write the log entry. The first emits the events, and the second returns them.
 */
import { formatDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ThreeDsSessionRecord } from '../../domain/records/records.js'
import type { ThreeDsTimerRecord } from '../../domain/records/threeds-record.js'
import * as states from '../../domain/threeds/session.js'
import { STEP_MESSAGES } from '../../domain/threeds/steps.js'
import type { EventType, WebhookEvent } from '../../domain/webhook/events.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import type { LogEntry } from '../../framework/declaration.js'
import { type EventTools, writeEntries } from '../../framework/events.js'
import type { Waiting } from '../../framework/ports/deliveries.js'
import { readSetting } from '../../framework/setting.js'
import type { StoreReader } from '../../storage/store.js'
import { keepPlace } from './place.js'

export const THREE_DS = 'threeds_session'

export interface Told {
  session: ThreeDsSessionRecord
  entry: LogEntry
  events: readonly WebhookEvent[]
}

type Actor = { by?: string }

const updated = (message: string): LogEntry => ({ operation: 'update', message })

export function notFound(): CofferError {
  return new CofferError('not_found', 'There is no 3DS session with this id, or it has expired.')
}

/** @throws CofferError `not_found`, also if the session belongs to another tenant */
export async function requireSession(
  store: StoreReader,
  tenant: number,
  id: string,
): Promise<ThreeDsSessionRecord> {
  const session = await store.get(THREE_DS, tenant, id)
  if (session !== undefined) return session
  throw notFound()
}

export function eventAbout(type: EventType, session: ThreeDsSessionRecord, more: object = {}): WebhookEvent {
  return { type, about: omitUndefined({ ...session, card_brand: session.brands[0], ...more }) }
}

/** `by`: the caller. If `by` is undefined, `modified_by` keeps its value. */
export async function storeSession(
  { store }: Pick<EventTools, 'store'>,
  tenant: number,
  session: ThreeDsSessionRecord,
  { by }: Actor,
): Promise<ThreeDsSessionRecord> {
  const changed = {
    ...session,
    modified_at: formatDate(store.now),
    ...(by !== undefined && { modified_by: by }),
  }
  const { expires_at } = session
  const expires = expires_at === undefined ? {} : { expires: Date.parse(expires_at) }
  await store.replace(THREE_DS, tenant, changed, expires)
  return changed
}

/** Returns undefined if the method step was already done. */
export async function notifyMethod(
  tools: EventTools,
  tenant: number,
  session: ThreeDsSessionRecord,
): Promise<Told | undefined> {
  const done = states.completeMethod(session)
  if (done === undefined) return undefined
  const stored = await storeSession(tools, tenant, done, {})
  return {
    session: stored,
    entry: updated(STEP_MESSAGES.method),
    events: [eventAbout('3ds.session.method-completed', stored)],
  }
}

/** Authenticates a session with a checked request. @throws CofferError `conflict`, `threeds_failed` */
export async function startAuthentication(
  tools: EventTools,
  tenant: number,
  session: ThreeDsSessionRecord,
  wishes: states.AuthenticationWishes,
  actor: Actor = {},
): Promise<Told & { session: states.Authenticated }> {
  const { store, createUuid } = tools
  const ids = { acs_transaction_id: createUuid(), ds_transaction_id: createUuid() }
  const begun = states.authenticate(session, wishes, ids, store.now)
  const completes = states.isPending(begun) && (await readSetting(store, 'threeds.challenges')) === 'complete'
  const next = completes ? states.decide(begun, undefined, 'setting') : await startTimer(tools, tenant, begun)
  const stored = await storeSession(tools, tenant, next, actor)
  await keepPlace(store, tenant, session.id)
  const { expires_at } = session
  const about = { authentication_status: begun.authentication.first.status, expires_at }
  const events = [eventAbout('3ds.session.authenticated', stored, about)]
  if (completes && states.isChallenged(stored)) events.push(endEvent(stored))
  return { session: stored as states.Authenticated, entry: updated(STEP_MESSAGES.authenticated), events }
}

/** A browser challenge needs no timer, because no event is sent when the time of this challenge is over. */
async function startTimer(
  { store, createUuid }: EventTools,
  tenant: number,
  session: states.Authenticated,
): Promise<states.Authenticated> {
  if (!states.isPending(session) || session.authentication.challenge.kind !== 'decoupled') return session
  const { authentication } = session
  const { challenge } = authentication
  const timer = createUuid()
  const record = { id: timer, session_id: session.id }
  await store.insert('threeds_timer', tenant, record, { fresh: true, expires: challenge.until })
  return { ...session, authentication: { ...authentication, challenge: { ...challenge, timer } } }
}

/** Stores a challenge that has ended, or that the cardholder has answered wrongly. */
export async function storeChallenge(
  tools: EventTools,
  tenant: number,
  session: states.Challenged,
): Promise<Told> {
  const { timer, ended } = session.authentication.challenge
  if (ended !== undefined && timer !== undefined) await stopTimer(tools, tenant, timer)
  const stored = (await storeSession(tools, tenant, session, {})) as states.Challenged
  const message = ended === undefined ? STEP_MESSAGES.answered : STEP_MESSAGES.ended
  return { session: stored, entry: updated(message), events: ended === undefined ? [] : [endEvent(stored)] }
}

function endEvent(session: states.Challenged): WebhookEvent {
  if (session.authentication.challenge.kind === 'decoupled')
    return eventAbout('3ds.session.decoupled-challenge-notification', session)
  const authentication_status = states.toldStatus(session)
  return eventAbout('3ds.session.challenge-completed', session, { authentication_status })
}

/** The timer is missing if it has expired and the sweep has removed it. */
async function stopTimer({ store }: EventTools, tenant: number, timer: string): Promise<void> {
  if ((await store.get('threeds_timer', tenant, timer)) !== undefined)
    await store.remove('threeds_timer', tenant, timer)
}

/** Ends the decoupled challenge whose timer has expired. Returns the events to enqueue after the commit. */
export async function endByTimer(
  tools: EventTools,
  tenant: number,
  { id, session_id }: ThreeDsTimerRecord,
): Promise<Waiting[]> {
  const { store } = tools
  if ((await store.purge('threeds_timer', tenant, id)) === undefined) return []
  const session = await store.get(THREE_DS, tenant, session_id)
  return session === undefined ? [] : endIfDue(tools, tenant, session)
}

/**
 * Ends a decoupled challenge whose time is over, unless the challenge has already ended. Returns the events to enqueue
 * after the commit.
 */
export async function endIfDue(
  tools: EventTools,
  tenant: number,
  session: ThreeDsSessionRecord,
): Promise<Waiting[]> {
  if (!states.isPending(session) || session.authentication.challenge.kind !== 'decoupled') return []
  const settled = states.settle(session, tools.store.now)
  if (!states.isChallenged(settled) || states.isPending(settled)) return []
  return tellBySystem(tools, tenant, await storeChallenge(tools, tenant, settled))
}

export function tellByCaller({ audit }: Context, { session, entry, events }: Told): void {
  audit.record(THREE_DS, session.id, entry)
  for (const event of events) audit.emit(event)
}

/** Returns the events to enqueue after the commit. */
export async function tellBySystem(
  tools: EventTools,
  tenant: number,
  { session: { id }, entry: as, events }: Told,
  traceId = tools.createUuid(),
): Promise<Waiting[]> {
  const owner = await tools.store.get('tenant', 0, String(tenant))
  if (owner === undefined) return []
  const actor = { type: 'system' } as const
  const told = events.map((event) => ({ type: THREE_DS, id, event, actor }) as const)
  return writeEntries(tools, owner, [{ type: THREE_DS, id, as, actor }, ...told], traceId)
}
