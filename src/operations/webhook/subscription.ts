import type { WebhookRecord } from '../../domain/records/records.js'
import type { EventTools } from '../../framework/events.js'
import type { Waiting } from '../../framework/ports/deliveries.js'
import type { StoreWriter } from '../../storage/store.js'
import { addMail } from '../invite/mail.js'

/**
 * Disables a webhook after an event could not be sent. `trace_id`: the trace id of the event. Returns the deliveries to
 * enqueue after the commit.
 */
export async function disableWebhook(
  tools: EventTools,
  tenant: number,
  { id, trace_id }: { id: string; trace_id: string },
): Promise<Waiting[]> {
  const { store } = tools
  const before = await store.get('webhook', tenant, id)
  if (before?.status !== 'enabled') return []
  const record: WebhookRecord = { ...before, status: 'disabled' }
  await store.replace('webhook', tenant, record)
  await subscribe(store, tenant, record)
  const { notify_email: to, name, url } = record
  return to === undefined ? [] : [await addMail(tools, tenant, { to, webhook: { name, url }, trace_id })]
}

/**
 * Copies the subscriptions of the webhook into the record of the tenant, because every request reads that
 * record.
 */
export async function subscribe(
  store: StoreWriter,
  tenant: number,
  { id, status, events }: Pick<WebhookRecord, 'id'> & Partial<WebhookRecord>,
): Promise<void> {
  const record = (await store.get('tenant', 0, String(tenant)))!
  const { [id]: _, ...others } = record.webhooks ?? {}
  const webhooks = events === undefined ? others : { ...others, [id]: status === 'enabled' ? events : [] }
  await store.replace('tenant', 0, { ...record, webhooks })
}
