/** Writes the log records of a unit of work, and stores the events to which webhooks subscribe. */
import type { Awaitable } from '../domain/awaitable.js'
import { formatDate } from '../domain/dates.js'
import type { DeliveryRecord, Kind, LogRecord, TenantRecord } from '../domain/records/records.js'
import { formBatches, type SubscribedEvent } from '../domain/webhook/event-batch.js'
import {
  describeEvent,
  type EventType,
  eventOf,
  isComplete,
  type TriggeredEvent,
} from '../domain/webhook/events.js'
import type { StoreReader } from '../storage/store.js'
import type { AuditEntry } from './audit-entry.js'
import type { Caller } from './caller/caller.js'
import type { Context } from './context.js'
import type { Waiting } from './ports/deliveries.js'

const KEPT_MS = 24 * 60 * 60 * 1000

type Actor = Omit<Caller['actor'], 'id'> & { id?: string }

type Entry = Omit<AuditEntry, 'actor'> & { readonly actor: Actor }

type EventTimes = Pick<DeliveryRecord, 'created_at' | 'kept_from'>

export type EventTools = Pick<Context, 'store' | 'createUuid'>

/** Returns the deliveries to enqueue after the commit. */
export function writeEntries(
  { store, createUuid }: EventTools,
  tenant: TenantRecord,
  entries: readonly Entry[],
  trace_id: string,
): Awaitable<Waiting[]> {
  for (const { type: entity_type, id: entity_id, as, transform, actor } of entries) {
    if (as === undefined) continue
    const record: Omit<LogRecord, 'created_at'> = {
      id: createUuid(),
      tenant_id: tenant.id,
      actor_type: actor.type,
      entity_type,
      entity_id,
      operation: as.operation,
      message: as.message,
      trace_id,
    }
    if (actor.id !== undefined) record.actor_id = actor.id
    if (transform !== undefined) record.transform = transform
    store.log(tenant.number, record, store.now)
  }
  if (tenant.webhooks === undefined) return []
  return storeEvents({ store, createUuid }, tenant, entries, trace_id)
}

async function storeEvents(
  { store, createUuid }: EventTools,
  { id: tenant_id, number, webhooks: subscriptions = {} }: TenantRecord,
  entries: readonly Entry[],
  trace_id: string,
): Promise<Waiting[]> {
  const events: SubscribedEvent[] = []
  const actors = new Map<Actor, { at: number; named: object }>()
  const subscribers = new Map<EventType, string[]>()
  const describe = async (entry: Entry): Promise<TriggeredEvent | undefined> => {
    if (isTriggered(entry.event)) return entry.event
    const type = typeOf(entry)
    if (type === undefined) return undefined
    const webhooks = subscribers.get(type) ?? subscribersOf(subscriptions, type)
    subscribers.set(type, webhooks)
    if (webhooks.length === 0) return undefined
    const about = await findSubject(store, number, entry, type)
    return { type, webhooks, data: describeEvent({ ...entry.event, type, about }) }
  }
  for (const entry of entries) {
    const { type, webhooks = [], data } = (await describe(entry)) ?? {}
    if (type === undefined || data === undefined) continue
    const known = actors.get(entry.actor)
    const actor = known ?? { at: actors.size, named: await nameActor(store, number, entry.actor) }
    actors.set(entry.actor, actor)
    const event = { type, actor: actor.at, data }
    events.push({ event, webhooks, characters: JSON.stringify(event).length })
  }
  const named = [...actors.values()].map((actor) => actor.named)
  const times = {
    created_at: formatDate(store.now),
    ...(store.keptFrom > store.now && { kept_from: formatDate(store.keptFrom) }),
  }
  const common = { tenant_id, trace_id, actors: named, ...times }
  const options = { ...keptUntil(common), fresh: true }
  const queued: Waiting[] = []
  for (const { batch, waiting } of formBatches(events, common, createUuid)) {
    await store.insert('event_batch', number, batch, options)
    for (const each of waiting) {
      await store.insert('waiting_batch', number, each, options)
      const { id, webhook_id: lane, places } = each
      queued.push({ kind: 'delivery', tenant: number, lane, batch: { id, count: places.length } })
    }
  }
  return queued
}

function subscribersOf(subscriptions: NonNullable<TenantRecord['webhooks']>, type: EventType): string[] {
  return Object.keys(subscriptions).filter((id) => subscriptions[id]!.includes(type))
}

function isTriggered(event: Entry['event']): event is TriggeredEvent {
  return event !== undefined && 'data' in event
}

function typeOf({ type: entity, as, event }: Entry): EventType | undefined {
  if (event !== undefined && !isTriggered(event)) return event.type
  return as === undefined || as.derivesNoEvent ? undefined : eventOf(entity, as.operation)
}

async function findSubject(
  store: StoreReader,
  tenant: number,
  { type: entity, id, about, event }: Entry,
  type: EventType,
): Promise<object> {
  if (event !== undefined && !isTriggered(event)) return event.about
  if (about !== undefined && isComplete(type, about)) return about
  const kind = entity === 'card' || entity === 'bank' ? 'token' : (entity as Kind)
  return (await store.get(kind, tenant, id)) ?? { id }
}

/** An event is kept for one day, even if the event was delivered. */
export function keptUntil({ created_at, kept_from = created_at }: EventTimes): { expires: number } {
  return { expires: Date.parse(kept_from) + KEPT_MS }
}

async function nameActor(
  store: StoreReader,
  tenant: number,
  actor: Actor,
): Promise<Actor & { name?: string }> {
  const { type, id = '' } = actor
  const application = type === 'application' ? await store.get('application', tenant, id) : undefined
  const user = type === 'user' ? await store.get('user', 0, id) : undefined
  const name = application?.name ?? user?.email
  return name === undefined ? actor : { ...actor, name }
}
