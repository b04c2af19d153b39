/** Stores the events of a unit of work for the webhooks that subscribe to them, in that unit. */
import { formatDate } from '../domain/dates.js'
import type { DeliveryRecord, Kind, TenantRecord } from '../domain/records/records.js'
import { describeEvent, eventOf } from '../domain/webhook/events.js'
import type { StoreReader, StoreWriter } from '../storage/store.js'
import type { Caller } from './caller/caller.js'
import type { AuditEntry } from './operation.js'
import type { Waiting } from './ports/deliveries.js'

const KEPT_MS = 24 * 60 * 60 * 1000

type Actor = Omit<Caller['actor'], 'id'> & { id?: string }

export interface EventTools {
  readonly store: StoreWriter
  createUuid(): string
}

/** Returns what is to be enqueued after the commit. */
export async function storeEvents(
  { store, createUuid }: EventTools,
  tenant: TenantRecord,
  entries: readonly (Partial<Omit<AuditEntry, 'actor'>> & { actor: Actor })[],
  trace_id: string,
): Promise<Waiting[]> {
  const { id: tenant_id, number, webhooks = {} } = tenant
  const waiting: Waiting[] = []
  const now = formatDate(store.now)
  for (const { type: entity, id = '', as, told, actor } of entries) {
    const type = told?.type ?? (as === undefined || as.isTold ? undefined : eventOf(entity!, as.operation))
    const hooks = Object.keys(webhooks).filter((hook) => type !== undefined && webhooks[hook]!.includes(type))
    if (type === undefined || hooks.length === 0) continue
    const kind = entity === 'card' || entity === 'bank' ? 'token' : (entity as Kind)
    const about = told?.about ?? (await store.get(kind, number, id)) ?? { id }
    const data = { ...describeEvent({ ...told, type, about }), actor: await nameActor(store, number, actor) }
    const event = { id: createUuid(), type, timestamp: now, trace_id, data }
    for (const webhook_id of hooks) {
      const times = { due_at: now, created_at: now, queued_at: now }
      const to = { id: createUuid(), tenant_id, webhook_id, event }
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
