import { checkEmail } from '../../domain/invitation/mail-server.js'
import { addError, collect, refuseErrors } from '../../domain/property-errors.js'
import { readDestination } from '../../domain/proxy/proxy.js'
import type { DestinationState, WebhookRecord } from '../../domain/records/records.js'
import { suggestName } from '../../domain/text/nearest.js'
import { EVENT_TYPES } from '../../domain/webhook/events.js'
import { CofferError, type PropertyErrors } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { readListByCursor } from '../../framework/list.js'
import { detached, list, query } from '../../framework/operation.js'
import { audit, component, count, date, enumOf, object, text, texts, uuid } from '../../framework/output.js'
import { cursorOutput } from '../../framework/page.js'
import { displayName, type Infer, inputSchema } from '../../framework/schema.js'
import { eachRecord } from '../../storage/store.js'
import { chosenId, manage } from '../manage.js'
import { listDeliveries, resendDelivery, webhookId } from './delivery.js'
import { removeWaiting } from './remove-webhook.js'
import { subscribe } from './subscription.js'
import { triggerEvent } from './trigger.js'
import { refusalOf } from './waiting.js'

const MAX_WEBHOOKS = 5
const STATUSES = ['enabled', 'disabled'] as const

export const webhookOutput = component('Webhook', ['id', 'name', 'url', 'events', 'status', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  status: enumOf(...STATUSES),
  name: text,
  url: text,
  'notify_email?': text,
  events: texts,
  ...audit,
  'destination?': {
    description: 'Why events wait. Absent if no problem with the address is known.',
    ...object({
      state: {
        ...enumOf('blocked', 'failing'),
        description: 'blocked: the server must not call the address. failing: many attempts in a row failed.',
      },
      since: date,
      failure: text,
      'next_attempt_at?': date,
    }),
  },
  'dropped?': {
    description: 'Events that were removed without an attempt, because too many events waited.',
    ...object({ count, last_at: date }),
  },
})

const body = {
  name: displayName,
  url: {
    type: 'string',
    flag: 'address',
    description: 'The URL that events are sent to: https://example.com/events.',
  },
  events: {
    type: 'array',
    items: { type: 'string', suggestions: EVENT_TYPES },
    maxItems: 100,
    flag: 'event',
    description: 'The type of an event, such as token.created; see coffer webhook event-types.',
  },
  notify_email: { type: 'string', description: 'The address that gets a mail when the webhook is disabled.' },
} as const
const REQUIRED = ['name', 'url', 'events'] as const

export const webhookStatus = {
  type: 'string',
  enum: STATUSES,
  default: 'enabled',
  description: `One of ${STATUSES.join(', ')}. Events are not sent to a disabled webhook, not even later.`,
} as const

const webhooks = manage({
  name: 'webhook',
  kind: 'webhook',
  path: '/webhooks',
  permission: 'webhooks',
  alsoPermission: 'webhook',
  id: webhookId,
  output: webhookOutput,
  view: (_, record) => view(record),
})

const CREATE =
  'coffer webhook create --name billing --address https://example.com/events --event token.created'
const CREATED = `"$(${CREATE} -o id)"`

export const createWebhook = detached({
  ...webhooks.createDeclaration,
  plaintext: 'refused',
  summary: 'Send events to an address.',
  details:
    'Each event is sent as a signed POST of JSON. Without a 2xx answer within 10 s, the event is sent again. After 10\n' +
    'attempts in about 2½ hours, the webhook is disabled. The server sends events only to hosts of --allow-net.',
  input: inputSchema(REQUIRED, body),
  examples: [CREATE],
  check: readBody,
  async run(session, _, attributes) {
    const failure = refusalOf(await session.outbound(), attributes.url)
    return session.conclude((context) => addWebhook(context, attributes, { failure }))
  },
})

interface NewWebhook {
  /** The reason why the server is not allowed to call the address. */
  failure: string | undefined
  /** The id that a seed has chosen. */
  id?: string | undefined
  status?: WebhookRecord['status'] | undefined
  hasListener?: boolean
}

export async function addWebhook(
  context: Context,
  attributes: WebhookAttributes,
  { failure, id, status = 'enabled', hasListener = false }: NewWebhook,
) {
  await requireRoom(context, hasListener)
  const { date } = context
  const listener = hasListener ? { seen_at: date } : undefined
  const state = { status, enabled_at: date, dropped: undefined, listener } as const
  const destination = describeRefusal(failure, date)
  const record = await webhooks.add(context, { ...attributes, ...state, destination }, chosenId(id))
  await subscribe(context.store, context.caller.tenant, record)
  return view(record)
}

/** Webhooks of listeners have a separate limit. @throws CofferError `unprocessable` */
async function requireRoom(context: Context, hasListener: boolean): Promise<void> {
  const { webhooks: known = {} } = await context.tenant()
  if (Object.keys(known).length < MAX_WEBHOOKS) return
  let count = 0
  for await (const { listener } of eachRecord(context.store, 'webhook', context.caller.tenant))
    if ((listener !== undefined) === hasListener) count++
  if (count < MAX_WEBHOOKS) return
  const limit = hasListener
    ? `At most ${MAX_WEBHOOKS} listeners can listen to a tenant. Stop one of them. The place of a listener that was killed is free after 2 minutes.`
    : `A tenant has at most ${MAX_WEBHOOKS} webhooks. Delete one first.`
  throw new CofferError('unprocessable', limit)
}

/** If the address was already blocked, `since` stays unchanged. */
function describeRefusal(
  failure: string | undefined,
  date: string,
  before?: DestinationState,
): DestinationState | undefined {
  if (failure === undefined) return undefined
  return { state: 'blocked', since: before?.state === 'blocked' ? before.since : date, failure }
}

const listWebhooks = list({
  ...webhooks.listDeclaration,
  summary: 'List webhooks, newest first.',
  output: cursorOutput(webhookOutput),
  examples: ['coffer webhook list'],
  run: (session) =>
    readListByCursor(
      session,
      { about: 'webhook list', kind: 'webhook', show: (_, record) => view(record) },
      {},
    ),
})

const updateWebhook = detached({
  ...webhooks.updateDeclaration,
  plaintext: 'refused',
  summary: 'Replace the attributes of a webhook, and enable it again, unless --status is disabled.',
  input: inputSchema(['id', ...REQUIRED], {
    id: webhookId,
    ...body,
    status: webhookStatus,
  }),
  examples: [
    `coffer webhook update ${CREATED} --name billing --address https://example.com/v2 --event token.read`,
  ],
  check: readBody,
  async run(session, { id, status = 'enabled' }, attributes) {
    const failure = refusalOf(await session.outbound(), attributes.url)
    return session.conclude(async (context) => {
      const before = await webhooks.require(context, id)
      const { date } = context
      const enabled_at = before.status === 'enabled' ? before.enabled_at : date
      // Earlier failures are removed, because the address may have changed or may work again.
      const destination = describeRefusal(failure, date, before.destination)
      const record = await webhooks.change(context, before, {
        ...attributes,
        status,
        enabled_at,
        destination,
      })
      await subscribe(context.store, context.caller.tenant, record)
      lookAgain(context, id)
      return view(record)
    })
  },
})

const deleteWebhook = webhooks.delete({
  summary: 'Delete a webhook and its waiting events.',
  examples: [`coffer webhook delete ${CREATED} --yes`],
  confirmation: 'This deletes the webhook and its deliveries,',
  async before(context, { id }) {
    await removeWaiting(context.store, context.caller.tenant, id)
    lookAgain(context, id)
  },
})

const listEventTypes = query({
  name: 'webhook event-types',
  summary: 'List the types of events.',
  access: webhooks.listDeclaration.access,
  route: 'GET /webhooks/event-types',
  output: texts,
  examples: ['coffer webhook event-types'],
  run: async () => [...EVENT_TYPES],
})

/** After the commit, the queue looks for waiting events of the webhook. */
function lookAgain(context: Context, id: string): void {
  context.enqueue([{ kind: 'delivery', tenant: context.caller.tenant, lane: id }])
}

const view = ({ enabled_at: _, listener: __, ...shown }: WebhookRecord): Infer<typeof webhookOutput> => shown

export type WebhookAttributes = ReturnType<typeof readBody>

type Given = Partial<Record<'name' | 'url' | 'notify_email', string> & { events: (string | undefined)[] }>

/**
 * Returns the attributes as they are stored. For `notify_email`, empty text means no address.
 * @throws CofferError `validation`
 */
export function readBody({ name = '', url = '', events = [], notify_email: email }: Given) {
  const notify_email = email === '' ? undefined : email
  const errors: PropertyErrors = {}
  // Examples in the documentation of the service write event types with colons instead of dots.
  const types = events.flatMap((each) => (each === undefined ? [] : each.replaceAll(':', '.')))
  const wrong = types.find((type) => !EVENT_TYPES.includes(type))
  const advice = (wrong && suggestName(wrong, EVENT_TYPES)) || ': see GET /webhooks/event-types'
  if (events.length === 0 || wrong !== undefined)
    addError(errors, 'events', `must be types of events, at least one${advice}`)
  if (readDestination(url, /[#\\]/) === undefined)
    addError(
      errors,
      'url',
      'must be an https or http URL without user and fragment, of at most 2000 characters',
    )
  if (notify_email !== undefined) collect(errors, 'notify_email', () => checkEmail(notify_email))
  refuseErrors(errors)
  return { name, url, events: [...new Set(types)], notify_email }
}

export const noun = {
  name: 'webhook',
  summary: 'Send events to an address',
  operations: [
    createWebhook,
    listWebhooks,
    webhooks.get(`coffer webhook get ${CREATED}`),
    updateWebhook,
    deleteWebhook,
    listEventTypes,
    listDeliveries,
    resendDelivery,
    triggerEvent,
  ],
}
