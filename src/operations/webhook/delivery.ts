/** Lists and resends deliveries to webhooks. Only the owner of the vault is allowed to use these operations. */
import type { DeliveryRecord, WebhookRecord } from '../../domain/records/records.js'
import { EVENT_TYPES, payloadOf } from '../../domain/webhook/events.js'
import { conflict } from '../../errors.js'
import type { Context, Session } from '../../framework/context.js'
import { owner } from '../../framework/declaration.js'
import { keptUntil } from '../../framework/events.js'
import { type Listing, readPage } from '../../framework/list.js'
import { change, list } from '../../framework/operation.js'
import { anyJson, component, count, date, enumOf, text, uuid } from '../../framework/output.js'
import { type List, listOf, listOutput, pageInput } from '../../framework/page.js'
import { closedInput, type Infer, idOf, onlyOf } from '../../framework/schema.js'
import { requireRecord } from '../../framework/unit.js'
import type { Condition } from '../../storage/store.js'
import { findUntried, readUntried } from './untried.js'
import { mayBeSent } from './waiting.js'

export const webhookId = idOf('webhook', 'The id of the webhook, or its name.')

const STATES = ['waiting', 'sent', 'failed', 'dropped'] as const

const columns = ['id', 'type', 'state', 'attempts', 'status', 'failure', 'created_at']
export const deliveryOutput = component('WebhookDelivery', columns, {
  id: uuid,
  webhook_id: uuid,
  type: text,
  payload: { ...anyJson('The body that is sent.'), inNoReveal: withoutFingerprints },
  state: enumOf(...STATES),
  attempts: count,
  'due_at?': date,
  'attempted_at?': date,
  'status?': count,
  'answer?': { ...text, description: 'The beginning of the answer.' },
  'failure?': text,
  created_at: date,
})

type View = Infer<typeof deliveryOutput>

/** Removes the fingerprints of tokens, because a fingerprint would confirm a guess of the data. */
function withoutFingerprints(payload: unknown): unknown {
  return JSON.parse(JSON.stringify(payload), (name, value) => (name === 'fingerprint' ? undefined : value))
}

export const deliveryFilters = {
  id: { ...webhookId, description: 'The id or name of a webhook, or the id of a delivery.' },
  event: {
    type: 'string',
    ...onlyOf(EVENT_TYPES),
    description: 'Only events of this type, such as token.created.',
  },
  state: {
    type: 'string',
    enum: STATES,
    description: `Only deliveries in this state: ${STATES.join(', ')}.`,
  },
} as const

export const listDeliveries = list({
  name: 'webhook deliveries',
  access: owner,
  summary: 'List the events of webhooks from the last 24 hours, with state, payload, answer and attempts.',
  details:
    'Events that were never tried come first. Dropped events were waiting when their webhook was disabled. Events wait\n' +
    'until --allow-net names the host of their webhook.',
  input: closedInput([], { ...deliveryFilters, ...pageInput(100) }),
  output: listOutput(deliveryOutput),
  cli: { positionals: ['id'] },
  examples: ['coffer webhook deliveries', 'coffer webhook deliveries --state failed -o ndjson'],
  async run(session, { page = 1, size = 20, ...filters }): Promise<List<View>> {
    const show = createShow()
    const first = (page - 1) * size
    const mayBeUntried = filters.state === undefined || filters.state === 'waiting'
    const untried = mayBeUntried ? await readUntried(session, filters, { first, size }) : NONE
    const shown = await session.inUnit(async (context) => {
      const views: View[] = []
      for (const each of untried.deliveries) views.push(await show(context, each))
      return views
    })
    const rest = { first: Math.max(0, first - untried.total), size: size - shown.length }
    const tried = await readTried(session, { ...listingOf(filters), show }, rest)
    return listOf([...shown, ...tried.data], untried.total + tried.total, { page, size })
  },
})

const NONE = { deliveries: [], total: 0 }

interface Filters {
  id?: string
  event?: string
  state?: (typeof STATES)[number]
}

function listingOf({
  id,
  event,
  state,
}: Filters): Pick<Listing<'delivery', View>, 'kind' | 'where' | 'matches'> {
  const and: Condition[] = []
  if (id !== undefined) and.push({ or: [{ ids: [id] }, { field: 'webhook', value: id }] })
  if (state !== undefined) and.push({ field: 'state', value: state })
  return {
    kind: 'delivery',
    where: async () => (and.length === 0 ? undefined : { and }),
    matches: event === undefined ? undefined : (record) => record.event.type === event,
  }
}

/** Skips `first` deliveries, and reads at most `size`. `total`: the number of matching deliveries. */
async function readTried(
  session: Session,
  listing: Listing<'delivery', View>,
  { first, size }: { first: number; size: number },
): Promise<{ data: View[]; total: number }> {
  const read = (page: number, of = size) => readPage(session, listing, { page, size: of })
  if (size === 0) return { data: [], total: (await read(1, 1)).pagination.total_items! }
  // A range of `size` deliveries that does not begin at the start of a page is in two pages.
  const page = Math.floor(first / size) + 1
  const skipped = first % size
  const { data, pagination } = await read(page)
  const next = skipped === 0 ? [] : (await read(page + 1)).data
  return { data: [...data, ...next].slice(skipped, skipped + size), total: pagination.total_items! }
}

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
    const untried = await findUntried(store, caller.tenant, id)
    const found = untried ?? (await requireRecord(context, 'delivery', id))
    const { webhook_id } = found
    const hook = await store.get('webhook', caller.tenant, webhook_id)
    if (hook?.status !== 'enabled')
      throw conflict('The webhook is disabled. Enable it: coffer webhook update')
    const lane = { kind: 'delivery', tenant: caller.tenant, lane: webhook_id } as const
    if (untried !== undefined) {
      context.enqueue([lane])
      return viewDelivery(untried, hook)
    }
    const { attempted_at: _, status: __, answer: ___, failure: ____, ...kept } = found
    const again = { due_at: date, queued_at: date, state: 'waiting', attempts: 0 } as const
    const record: DeliveryRecord = { ...kept, ...again }
    await store.replace('delivery', caller.tenant, record, keptUntil(record))
    context.enqueue([{ ...lane, id }])
    return viewDelivery(record, hook)
  },
})

/** The returned function reads each webhook only once. */
function createShow() {
  const hooks = new Map<string, WebhookRecord | undefined>()
  return async ({ store, caller }: Context, record: DeliveryRecord): Promise<View> => {
    const { webhook_id: id } = record
    if (!hooks.has(id)) hooks.set(id, await store.get('webhook', caller.tenant, id))
    return viewDelivery(record, hooks.get(id))
  }
}

function viewDelivery(record: DeliveryRecord, hook: WebhookRecord | undefined): View {
  const { event, tenant_id: _, queued_at: __, kept_from: ___, ...shown } = record
  const payload = JSON.parse(JSON.stringify(payloadOf(record)))
  return { ...shown, ...describeWaiting(record, hook), type: event.type, payload }
}

/** Returns the values that the webhook stores once for all its waiting deliveries. */
function describeWaiting(
  record: DeliveryRecord,
  hook: WebhookRecord | undefined,
): Partial<Pick<View, 'state' | 'due_at' | 'failure'>> {
  const { state, attempts, failure, queued_at } = record
  if (state !== 'waiting') return {}
  const isUntried = attempts === 0
  if (isUntried && !mayBeSent({ created_at: queued_at }, hook)) return { state: 'dropped' }
  const { destination } = hook ?? {}
  if (destination === undefined) return {}
  const { next_attempt_at } = destination
  return {
    failure: failure ?? destination.failure,
    ...(isUntried && next_attempt_at !== undefined && { due_at: next_attempt_at }),
  }
}
