/** Removes a webhook, its subscription and its waiting events. */
import type { WebhookRecord } from '../../domain/records/records.js'
import type { Effects } from '../../framework/context.js'
import { writeEntries } from '../../framework/events.js'
import type { DeliveryPort } from '../../framework/ports/deliveries.js'
import { removeAll } from '../../framework/unit.js'
import { eachRecord, type Store, type StoreWriter } from '../../storage/store.js'
import { subscribe } from './subscription.js'

const MAX_REMOVED = 10_000
/** A listener that took no events for this time has ended without removing its webhook. */
const ABANDONED_MS = 2 * 60_000

/** Removes the subscription of the webhook, and the events that wait for the webhook. */
export async function removeWaiting(store: StoreWriter, tenant: number, id: string): Promise<void> {
  await subscribe(store, tenant, { id })
  const where = { field: 'webhook', value: id }
  const of = { store, caller: { tenant } }
  await removeAll(of, 'waiting_batch', where)
  // The function removes a limited number of deliveries. The remaining deliveries are no longer sent, and expire
  // later.
  await removeAll(of, 'delivery', where, MAX_REMOVED)
}

/**
 * `silenceMs`: how long ago this process saw the listener. `silenceMs` is undefined if this process never saw the
 * listener.
 */
export function isAbandoned(
  { listener }: WebhookRecord,
  now: number,
  silenceMs: number | undefined,
): boolean {
  if (listener === undefined) return false
  // If this process has seen the listener, the real time counts, because a test may move the clock of a vault
  // in memory.
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
