/** Only the owner of the vault and holders of the control key can use these operations of the control plane. */

import { EVENT_TYPES } from '../../domain/webhook/events.js'
import { detached } from '../../framework/operation.js'
import { arrayOf, count, object, text, textMap, texts } from '../../framework/output.js'
import type { Lane } from '../../framework/ports/deliveries.js'
import { closedInput } from '../../framework/schema.js'
import { closeListener, LISTENER_NAME, noteReports, openListener, takeWaiting } from '../webhook/listener.js'
import { readBody } from '../webhook/noun.js'
import { on, readTimeout } from './declare.js'

const MAX_TAKEN = 16
const MAX_REPORTS = 100
/** Each webhook needs an address. No request is sent to this address, because the listener takes the events. */
const NO_ADDRESS = 'http://localhost/'

/** Only `coffer webhook listen` and the library call these operations, so they have no commands. */
const INTERNAL = { cli: { isInternal: true }, examples: [] } as const

const id = { type: 'string', description: 'The id of the webhook of the listener.' } as const

export const listenerOutput = object({
  id: text,
  url: text,
  events: texts,
  public_key: { ...text, description: 'Verifies the signatures, PEM.' },
})

export const takenOutput = object({
  id: { ...text, description: 'The id of the delivery.' },
  attempt: count,
  type: text,
  headers: textMap,
  body: { ...text, description: 'The signed text. It must be sent unchanged.' },
})

const report = {
  type: 'object',
  properties: {
    id: { type: 'string', maxLength: 100 },
    attempt: { type: 'integer', minimum: 1, maximum: 100 },
    status: { type: 'integer', minimum: 100, maximum: 999 },
    answer: { type: 'string', maxLength: 10_000 },
    failure: { type: 'string', maxLength: 1000 },
  },
  required: ['id', 'attempt'],
  additionalProperties: false,
} as const

export const listenerOperations = [
  detached({
    ...on('listener open', 'POST /webhooks/listeners'),
    plaintext: 'refused',
    summary: 'Create a webhook whose events the caller takes and sends itself.',
    details: 'A webhook whose events nobody has taken for 2 minutes is deleted.',
    input: closedInput([], {
      url: {
        type: 'string',
        flag: 'address',
        description: 'The address that the caller sends the events to. The server does not use this address.',
      },
      events: {
        type: 'array',
        items: { type: 'string', suggestions: EVENT_TYPES },
        maxItems: 100,
        flag: 'event',
        description: 'The types of events. Default: all.',
      },
    }),
    output: listenerOutput,
    ...INTERNAL,
    check: ({ url = NO_ADDRESS, events = EVENT_TYPES }) =>
      readBody({ name: LISTENER_NAME, url, events: [...events] }),
    async run(session, _, attributes) {
      const { tenant } = session.caller
      const silenceOf = (lane: string) => session.deliveries.silenceOf({ kind: 'delivery', tenant, lane })
      const { publicKey: public_key } = await session.signer()
      return session.inUnit(async (context) => {
        const { id, url, events } = await openListener(context, attributes, silenceOf)
        return { id, url, events, public_key }
      })
    },
  }),
  detached({
    ...on('listener take', 'POST /webhooks/listeners/{id}/take'),
    plaintext: 'refused',
    summary: 'Wait for events of the webhook, and take them.',
    details:
      'The caller sends each event, and reports the answer within 60 s. Otherwise the event can be taken again.',
    input: closedInput(['id'], {
      id,
      count: {
        type: 'integer',
        minimum: 1,
        maximum: MAX_TAKEN,
        description: `At most this many events; default ${MAX_TAKEN}.`,
      },
      timeout: {
        type: 'string',
        flag: 'wait',
        description: 'How long to wait for an event, such as 300ms or 20s; at most 1m, default 2s.',
      },
    }),
    output: arrayOf(takenOutput),
    ...INTERNAL,
    check: readTimeout,
    run: (session, { id, count = MAX_TAKEN }, waitMs) => takeWaiting(session, id, { most: count, waitMs }),
  }),
  detached({
    ...on('listener report', 'POST /webhooks/listeners/{id}/reports'),
    plaintext: 'refused',
    summary: 'Report the answers to events. An event without a 2xx answer can be taken again later.',
    input: closedInput(['id', 'reports'], {
      id,
      reports: {
        type: 'array',
        items: report,
        maxItems: MAX_REPORTS,
        flag: 'report',
        description: 'A report, as JSON.',
      },
    }),
    ...INTERNAL,
    run: (session, { id, reports }) =>
      session.inUnit((context) => noteReports(context, id, reports)).then(() => undefined),
  }),
  detached({
    ...on('listener close', 'DELETE /webhooks/listeners/{id}'),
    plaintext: 'refused',
    summary: 'Delete the webhook of a listener, with its waiting events.',
    input: closedInput(['id'], { id }),
    ...INTERNAL,
    run: async (session, { id }): Promise<undefined> => {
      const lane: Lane = { kind: 'delivery', tenant: session.caller.tenant, lane: id }
      await session.inUnit((context) => closeListener(context, id))
      session.deliveries.enqueue([lane])
    },
  }),
]
