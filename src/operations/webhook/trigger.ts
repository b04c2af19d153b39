/** Sends a made-up event, so that a user can test the receiver. */
import { suggestName } from '../../domain/text/nearest.js'
import { EVENT_TYPES } from '../../domain/webhook/events.js'
import { sampleEvent, setValues } from '../../domain/webhook/sample-event.js'
import { CofferError, conflict, invalid } from '../../errors.js'
import { owner } from '../../framework/declaration.js'
import { change } from '../../framework/operation.js'
import { anyJson, object, text, texts } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { requireRecord } from '../../framework/unit.js'
import { webhookId } from './delivery.js'

const MAX_SET = 50
const MAX_CHARACTERS = 64 * 1024

export const triggerInput = closedInput(['event'], {
  event: {
    type: 'string',
    suggestions: EVENT_TYPES,
    description: 'The type of the event, such as token.created; see coffer webhook event-types.',
  },
  webhook: {
    ...webhookId,
    description: 'The id or name of the only webhook that gets the event, even without a subscription.',
  },
  set: {
    type: 'object',
    additionalProperties: true,
    maxProperties: MAX_SET,
    description: 'Values that replace made-up values of the event, by path, such as token.type=bank.',
  },
})

export const triggerOutput = object({
  event: text,
  webhooks: { ...texts, description: 'The ids of the webhooks that get the event.' },
  data: anyJson('The data of the event.'),
})

export const triggerEvent = change({
  name: 'webhook trigger',
  access: owner,
  summary: 'Send a made-up event to the webhooks that subscribe to this type, signed like a real event.',
  details:
    'Each type of event can be sent, also types of areas that this server does not emulate. The event has made-up values, and\n' +
    'is delivered, retried and listed like other events: see coffer webhook deliveries.',
  input: triggerInput,
  output: triggerOutput,
  cli: { positionals: ['event'] },
  examples: [
    `coffer webhook create --name reads --address https://example.com/reads --event token.read --quiet && coffer webhook trigger token.read --set token.type=bank`,
  ],
  check: checkTrigger,
  async run(context, { event, webhook, set = {} }) {
    const { createUuid, now, audit } = context
    const data = setValues(sampleEvent(event, { createUuid, now }), set)
    if ('wrongPath' in data)
      throw invalid('set', `${data.wrongPath} is not a path of the event, such as token.type`)
    if (JSON.stringify(data).length > MAX_CHARACTERS)
      throw invalid('set', `makes an event of more than ${MAX_CHARACTERS} characters`)
    const { webhooks: subscriptions = {} } = await context.tenant()
    if (webhook !== undefined) {
      const { status } = await requireRecord(context, 'webhook', webhook)
      if (status !== 'enabled') throw conflict('The webhook is disabled. Enable it: coffer webhook update')
    }
    const subscribed = Object.keys(subscriptions).filter((id) => subscriptions[id]!.includes(event))
    const webhooks = webhook === undefined ? subscribed : [webhook]
    if (webhooks.length === 0)
      throw new CofferError(
        'unprocessable',
        `No enabled webhook subscribes to ${event}. Create one: coffer webhook create --name NAME --address URL --event ${event}. Or name a webhook: --webhook NAME`,
      )
    for (const id of webhooks)
      audit.record('webhook', id, {
        operation: 'update',
        message: 'Webhook event triggered',
        derivesNoEvent: true,
      })
    audit.trigger({ type: event, data, webhooks })
    return { event, webhooks, data }
  },
})

export function checkTrigger({ event = '' }: { event?: string }): void {
  if (EVENT_TYPES.includes(event)) return
  const advice = suggestName(event, EVENT_TYPES) || ': see coffer webhook event-types'
  throw invalid('event', `must be a type of event${advice}`)
}
