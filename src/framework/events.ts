/** Writes the log records of a unit of work, and stores its events for the webhooks that subscribe to them, in that unit. */
import type { Awaitable } from '../domain/awaitable.js'
import { formatDate } from '../domain/dates.js'
import type { DeliveryRecord, Kind, LogRecord, TenantRecord } from '../domain/records/records.js'
import { describeEvent, eventOf } from '../domain/webhook/events.js'
import type { StoreReader } from '../storage/store.js'
import type { Caller } from './caller/caller.js'
import type { AuditEntry, Context } from './context.js'
import type { Waiting } from './ports/deliveries.js'

const KEPT_MS = 24 * 60 * 60 * 1000

type Actor = Omit<Caller['actor'], 'id'> & { id?: string }

type Entry = Omit<AuditEntry, 'actor'> & { readonly actor: Actor }

export type EventTools = Pick<Context, 'store' | 'createUuid'>

/** Returns what is to be enqueued after the commit. */
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
  { id: tenant_id, number, webhooks = {} }: TenantRecord,
  entries: readonly Entry[],
  trace_id: string,
): Promise<Waiting[]> {
  const waiting: Waiting[] = []
  const now = formatDate(store.now)
  for (const { type: entity, id, as, event, actor } of entries) {
    const type =
      event?.type ?? (as === undefined || as.derivesNoEvent ? undefined : eventOf(entity, as.operation))
    const hooks = Object.keys(webhooks).filter((hook) => type !== undefined && webhooks[hook]!.includes(type))
    if (type === undefined || hooks.length === 0) continue
    const kind = entity === 'card' || entity === 'bank' ? 'token' : (entity as Kind)
    const about = event?.about ?? (await store.get(kind, number, id)) ?? { id }
    const data = { ...describeEvent({ ...event, type, about }), actor: await nameActor(store, number, actor) }
    const sent = { id: createUuid(), type, timestamp: now, trace_id, data }
    for (const webhook_id of hooks) {
      const times = { due_at: now, created_at: now, queued_at: now }
      const to = { id: createUuid(), tenant_id, webhook_id, event: sent }
      const record: DeliveryRecord = { ...to, state: 'waiting', attempts: 0, ...times }
      await store.insert('delivery', number, record, { ...keptUntil(record), fresh: true })
      waiting.push({ kind: 'delivery', tenant: number, lane: webhook_id, id: record.id })
    }
  }
  return waiting
}

/** A delivery is kept for a day, whatever becomes of it. */
export function keptUntil({ created_at }: Pick<DeliveryRecord, 'created_at'>): { expires: number } {
  return { expires: Date.parse(created_at) + KEPT_MS }
}

/** The actor with its name: of an application its name, of a user the address. */
async function nameActor(store: StoreReader, tenant: number, actor: Actor) {
  const { type, id = '' } = actor
  const application = type === 'application' ? await store.get('application', tenant, id) : undefined
  const user = type === 'user' ? await store.get('user', 0, id) : undefined
  const name = application?.name ?? user?.email
  return name === undefined ? actor : { ...actor, name }
}
