/**
 * A listener is a program, such as `coffer webhook listen`, that takes the events of a webhook and sends these events
 * itself. The listener sends the events from its own machine, so the server never connects to the address.
 */
import { formatDate } from '../../domain/dates.js'
import { canonicalJson } from '../../domain/json/json.js'
import type { DeliveryRecord, WebhookRecord } from '../../domain/records/records.js'
import { pauseAfter, payloadOf } from '../../domain/webhook/events.js'
import { CofferError } from '../../errors.js'
import type { Context, Session } from '../../framework/context.js'
import { keptUntil } from '../../framework/events.js'
import type { Lane } from '../../framework/ports/deliveries.js'
import { requireRecord } from '../../framework/unit.js'
import { eachRecord } from '../../storage/store.js'
import { addWebhook, type WebhookAttributes } from './noun.js'
import { isAbandoned, removeWaiting } from './remove-webhook.js'
import { MAX_ANSWER_CHARACTERS, signedHeaders } from './signed-request.js'
import { oldestBatches, takeEvents } from './waiting.js'

/** If a listener does not report the answer to an event within this time, the event can be taken again. */
const LEASE_MS = 60_000
/** The shortest time between two updates of `seen_at`. */
const SEEN_EVERY_MS = 30_000
/** A waiting request polls at this interval, because no signal announces due retries or events from other servers. */
const ASKED_EVERY_MS = 1000
/** After events with this many characters in total, no further event is taken. */
const MAX_CHARACTERS = 1024 * 1024
const RETRIES_AT_ONCE = 100

export const LISTENER_NAME = 'coffer webhook listen'

export interface TakenEvent {
  /** The id of the delivery. */
  id: string
  /** The number of the first attempt is 1. */
  attempt: number
  type: string
  headers: Record<string, string>
  body: string
}

export interface Report {
  id: string
  attempt: number
  status?: number | undefined
  answer?: string | undefined
  failure?: string | undefined
}

/** `silenceOf`: see {@link isAbandoned}. */
export async function openListener(
  context: Context,
  attributes: WebhookAttributes,
  silenceOf: (id: string) => number | undefined,
) {
  const as = (operation: 'create' | 'delete', message: string) =>
    context.as(context.caller, { operation, message })
  const { store, caller } = context
  for await (const hook of eachRecord(store, 'webhook', caller.tenant))
    if (isAbandoned(hook, context.now, silenceOf(hook.id)))
      await removeListener(as('delete', 'Webhook deleted: its listener has ended'), hook.id)
  return addWebhook(as('create', 'Webhook created'), attributes, { failure: undefined, hasListener: true })
}

/** @throws CofferError `not_found` */
export async function closeListener(context: Context, id: string): Promise<void> {
  await requireListener(context, id)
  await removeListener(context.as(context.caller, { operation: 'delete', message: 'Webhook deleted' }), id)
}

async function removeListener(context: Context, id: string): Promise<void> {
  await removeWaiting(context.store, context.caller.tenant, id)
  await context.store.remove('webhook', context.caller.tenant, id)
  context.audit.record('webhook', id)
}

/**
 * Waits until the webhook has events, at most `waitMs`. Resolves to at most `most` events.
 * @throws CofferError `not_found`
 */
export async function takeWaiting(
  session: Session,
  id: string,
  { most, waitMs }: { most: number; waitMs: number },
): Promise<TakenEvent[]> {
  const lane: Lane = { kind: 'delivery', tenant: session.caller.tenant, lane: id }
  const { deliveries } = session
  await deliveries.awaitChange(lane, 0, 0)
  for (let leftMs = waitMs; ; ) {
    const since = deliveries.changesOf(lane)
    const taken = await session.inUnit((context) => takeDue(context, id, most))
    if (taken.length > 0) return sign(session, taken)
    if (leftMs <= 0) return []
    leftMs -= await deliveries.awaitChange(lane, since, Math.min(leftMs, ASKED_EVERY_MS))
  }
}

async function sign(session: Session, taken: readonly DeliveryRecord[]): Promise<TakenEvent[]> {
  const signer = await session.signer()
  const prefix = session.ownServer.prefix()
  return taken.map(({ attempted_at = '', ...record }) => {
    const body = canonicalJson(payloadOf({ ...record, attempted_at }))
    const headers = signedHeaders(signer, prefix, body)
    return { id: record.id, attempt: record.attempts + 1, type: record.event.type, headers, body }
  })
}

/** Leases due events. In the returned events, `attempted_at` is the current time. */
async function takeDue(context: Context, id: string, most: number): Promise<DeliveryRecord[]> {
  const { store, caller, now, date } = context
  const hook = await requireListener(context, id)
  if (now - Date.parse(hook.listener.seen_at) > SEEN_EVERY_MS)
    await store.replace('webhook', caller.tenant, { ...hook, listener: { seen_at: date } })
  const taken: DeliveryRecord[] = []
  let characters = 0
  const add = (record: DeliveryRecord) => {
    taken.push({ ...record, attempted_at: date })
    characters += JSON.stringify(record.event).length
  }
  const isFull = () => taken.length >= most || characters > MAX_CHARACTERS
  for (const record of await findRetries(context, id, most)) {
    if (isFull()) break
    const leased = { ...record, due_at: formatDate(now + LEASE_MS) }
    await store.replace('delivery', caller.tenant, leased, keptUntil(leased))
    add(record)
  }
  const of = { tenant: caller.tenant, id }
  // Takes one event at a time, because a single event may be large.
  while (!isFull()) {
    const [oldest] = await oldestBatches(store, of, 1)
    if (oldest === undefined) break
    const { taken: some } = await takeEvents(store, of, [oldest.id], { most: 1, leaseMs: LEASE_MS })
    for (const record of some) add(record)
  }
  return taken
}

/** Returns due events, oldest first: at least `most`, unless fewer events are due. */
async function findRetries(
  { store, caller, now }: Context,
  id: string,
  most: number,
): Promise<DeliveryRecord[]> {
  const where = {
    and: [
      { field: 'webhook', value: id },
      { field: 'state', value: 'waiting' },
    ],
  }
  const found: DeliveryRecord[] = []
  for (let above = -1; found.length < most; ) {
    const page = await store.seek('delivery', caller.tenant, { where, above, size: RETRIES_AT_ONCE })
    for (const location of page) {
      const record = await store.open(location)
      if (record !== undefined && Date.parse(record.due_at ?? '') <= now) found.push(record)
      above = Math.max(above, location.seq)
    }
    if (page.length < RETRIES_AT_ONCE) return found
  }
  return found
}

/** Ignores a report if the event does not wait for the answer to this attempt. */
export async function noteReports(context: Context, id: string, reports: readonly Report[]): Promise<void> {
  await requireListener(context, id)
  for (const report of reports) await noteReport(context, id, report)
}

async function noteReport(context: Context, id: string, report: Report): Promise<void> {
  const { store, caller, now, date } = context
  const found = await store.get('delivery', caller.tenant, report.id)
  const { webhook_id, state, attempts } = found ?? {}
  if (found === undefined || webhook_id !== id || state !== 'waiting' || attempts !== report.attempt - 1)
    return
  const { due_at: _, status: __, answer: ___, failure: ____, ...kept } = found
  const { status, answer, failure } = describeAnswer(report)
  const pauseMs = failure === undefined ? undefined : pauseAfter(report.attempt)
  const record: DeliveryRecord = {
    ...kept,
    attempts: report.attempt,
    attempted_at: date,
    state: failure === undefined ? 'sent' : pauseMs === undefined ? 'failed' : 'waiting',
    ...(status !== undefined && { status }),
    ...(answer !== undefined && { answer }),
    ...(failure !== undefined && { failure }),
    ...(pauseMs !== undefined && { due_at: formatDate(now + pauseMs) }),
  }
  await store.replace('delivery', caller.tenant, record, keptUntil(record))
}

function describeAnswer({ status, answer, failure }: Report) {
  const isFailed = failure !== undefined || status === undefined || status > 299
  const reason = status === undefined ? 'There was no answer.' : `The answer has the status ${status}.`
  return {
    status,
    answer: answer?.slice(0, MAX_ANSWER_CHARACTERS),
    failure: isFailed ? (failure ?? reason) : undefined,
  }
}

async function requireListener(context: Context, id: string) {
  const hook = await requireRecord(context, 'webhook', id)
  if (hook.listener !== undefined) return hook as WebhookRecord & Required<Pick<WebhookRecord, 'listener'>>
  throw new CofferError('not_found', 'This webhook has no listener. The server sends its events itself.')
}
