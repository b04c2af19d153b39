/** Removes a webhook, its subscription and its waiting events. */
import type { WebhookRecord } from '../../domain/records/records.js'
import type { Effects } from '../../framework/context.js'
import { writeEntries } from '../../framework/events.js'
import type { DeliveryPort } from '../../framework/ports/deliveries.js'
import { removeAll } from '../../framework/unit.js'
import { eachRecord, type Store, type StoreWriter } from '../../storage/store.js'
import { subscribe } from './subscription.js'

const MAX_REMOVED = 10_000
/** A listener that sent no request for this time counts as ended. */
const ABANDONED_MS = 2 * 60_000

/** Also removes the subscription of the webhook. */
export async function removeWaiting(store: StoreWriter, tenant: number, id: string): Promise<void> {
  await subscribe(store, tenant, { id })
  const where = { field: 'webhook', value: id }
  const of = { store, caller: { tenant } }
  await removeAll(of, 'waiting_batch', where)
  // Deliveries beyond the limit are no longer sent, and expire later.
  await removeAll(of, 'delivery', where, MAX_REMOVED)
}

/** `silenceMs`: the time since the last request of the listener to this process, if there was a request. */
export function isAbandoned(
  { listener }: WebhookRecord,
  now: number,
  silenceMs: number | undefined,
): boolean {
  if (listener === undefined) return false
  // `silenceMs` is real time, and takes precedence because a test may move the clock of a vault in memory.
  return (silenceMs ?? now - Date.parse(listener.seen_at)) > ABANDONED_MS
}

/** Removes each webhook whose listener has ended without removing the webhook. */
export async function removeAbandoned(
  {
    store,
    createUuid,
    silenceOf,
  }: Pick<Effects, 'createUuid'> & Pick<DeliveryPort, 'silenceOf'> & { store: Store },
  tenant: number,
): Promise<void> {
  const isOver = (hook: WebhookRecord, now: number) =>
    isAbandoned(hook, now, silenceOf({ kind: 'delivery', tenant, lane: hook.id }))
  const found = await store.read(async (reader) => {
    const ids: string[] = []
    for await (const hook of eachRecord(reader, 'webhook', tenant))
      if (isOver(hook, reader.now)) ids.push(hook.id)
    return ids
  })
  for (const id of found)
    await store.write(async (writer) => {
      const hook = await writer.get('webhook', tenant, id)
      const owner = await writer.get('tenant', 0, String(tenant))
      if (hook === undefined || owner === undefined || !isOver(hook, writer.now)) return
      await removeWaiting(writer, tenant, id)
      await writer.remove('webhook', tenant, id)
      const as = { operation: 'delete', message: 'Webhook deleted: its listener has ended' } as const
      await writeEntries(
        { store: writer, createUuid },
        owner,
        [{ type: 'webhook', id, as, actor: { type: 'system' } }],
        createUuid(),
      )
    })
}
