/** Lists deliveries to webhooks, sent and waiting, for the owner of the vault only. */
import type { DeliveryRecord } from '../../domain/records/records.js'
import { payloadOf, SENT_EVENT_TYPES } from '../../domain/webhook/events.js'
import { conflict } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { Context } from '../../framework/context.js'
import { owner } from '../../framework/declaration.js'
import { keptUntil } from '../../framework/events.js'
import { readList } from '../../framework/list.js'
import { change, list } from '../../framework/operation.js'
import { anyJson, component, count, date, enumOf, text, uuid } from '../../framework/output.js'
import { listOutput, pageInput } from '../../framework/page.js'
import { closedInput, type Infer, idOf, onlyOf } from '../../framework/schema.js'
import { requireRecord } from '../../framework/unit.js'
import type { Condition } from '../../storage/store.js'

export const webhookId = idOf('webhook', 'The id of the webhook, or its name.')

const STATES = ['waiting', 'sent', 'failed', 'dropped'] as const

const columns = ['id', 'type', 'state', 'attempts', 'status', 'failure', 'created_at']
export const deliveryOutput = component('WebhookDelivery', columns, {
  id: uuid,
  webhook_id: uuid,
  type: text,
  payload: anyJson('The body that is sent.'),
  state: enumOf(...STATES),
  attempts: count,
  'due_at?': date,
  'attempted_at?': date,
  'status?': count,
  'answer?': { ...text, description: 'The beginning of the answer.' },
  'failure?': text,
  created_at: date,
})

export const deliveryFilters = {
  id: { ...webhookId, description: 'The id or name of a webhook, or the id of a delivery.' },
  event: {
    type: 'string',
    ...onlyOf(SENT_EVENT_TYPES),
    description: 'Only events of this type, such as token.created.',
  },
  state: { type: 'string', enum: STATES, description: `Only those that are ${STATES.join(', ')}.` },
} as const

export const listDeliveries = list({
  name: 'webhook deliveries',
  access: owner,
  summary: 'List what was sent to webhooks in the last 24 hours and what waits: payload, answer, attempts.',
  details:
    'A dropped one waited when its webhook was disabled. One whose host is not named with --allow-net waits until it is.',
  input: closedInput([], { ...deliveryFilters, ...pageInput(100) }),
  output: listOutput(deliveryOutput),
  cli: { positionals: ['id'] },
  examples: ['coffer webhook deliveries', 'coffer webhook deliveries --state failed -o ndjson'],
  run: (session, { id, event, state, ...paging }) => {
    const and: Condition[] = []
    if (id !== undefined) and.push({ or: [{ ids: [id] }, { field: 'webhook', value: id }] })
    if (state !== undefined) and.push({ field: 'state', value: state })
    const listing = {
      where: async () => (and.length === 0 ? undefined : { and }),
      matches: event === undefined ? undefined : (record: DeliveryRecord) => record.event.type === event,
      show: ({ caller }: Context, record: DeliveryRecord) => viewDelivery(record, caller),
    }
    return readList(session, { kind: 'delivery', ...listing }, paging)
  },
})

export const resendDelivery = change({
  name: 'webhook resend',
  access: owner,
  summary: 'Send an event to a webhook again, with the same event id.',
  input: closedInput(['id'], { id: { type: 'string', description: 'The id of the delivery.' } }),
  output: deliveryOutput,
  cli: { positionals: ['id'] },
  examples: [
    `coffer webhook create --name reads --address https://example.com/reads --event token.read --quiet && coffer token get card-1 --quiet && coffer webhook resend "$(coffer webhook deliveries --size 1 -o id)"`,
  ],
  async run(context, { id }) {
    const { store, caller, date } = context
    const { webhook_id, tenant_id, event, created_at } = await requireRecord(context, 'delivery', id)
    const hook = await store.get('webhook', caller.tenant, webhook_id)
    if (hook?.status !== 'enabled')
      throw conflict('The webhook is disabled. Enable it: coffer webhook update')
    const to = { id, tenant_id, webhook_id, event, created_at, due_at: date, queued_at: date }
    const record: DeliveryRecord = { ...to, state: 'waiting', attempts: 0 }
    await store.replace('delivery', caller.tenant, record, keptUntil(record))
    context.enqueue([{ kind: 'delivery', tenant: caller.tenant, lane: webhook_id, id }])
    return viewDelivery(record, caller)
  },
})

/** In no-reveal mode without fingerprints, which would confirm guesses. */
function viewDelivery(record: DeliveryRecord, { isNoReveal }: Caller): Infer<typeof deliveryOutput> {
  const { event, tenant_id: _, queued_at: __, ...shown } = record
  const text = JSON.stringify(payloadOf(record))
  const leave = (name: string, value: unknown) => (isNoReveal && name === 'fingerprint' ? undefined : value)
  return { ...shown, type: event.type, payload: JSON.parse(text, leave) }
}
