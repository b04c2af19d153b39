/**
 * The events that one unit of work stores together. One record for all events costs much less than one record for each
 * event and webhook.
 */
import type {
  BatchedEvent,
  DeliveryRecord,
  EventBatchRecord,
  WaitingBatchRecord,
} from '../records/records.js'

const COUNT_BITS = 7
const MAX_EVENTS = 2 ** COUNT_BITS - 1
const MAX_CHARACTERS = 256 * 1024
/**
 * The last hexadecimal digits of the id of an event or delivery are the index of the event in its batch. In the id of
 * the batch, these digits are zeros.
 */
const PLACE_DIGITS = 2

export interface SubscribedEvent {
  event: BatchedEvent
  webhooks: readonly string[]
  characters: number
}

type Common = Pick<EventBatchRecord, 'tenant_id' | 'trace_id' | 'actors' | 'created_at' | 'kept_from'>

/** Keeps the order of the events. Each batch has one waiting record for each webhook. */
export function formBatches(
  events: readonly SubscribedEvent[],
  common: Common,
  createUuid: () => string,
): { batch: EventBatchRecord; waiting: WaitingBatchRecord[] }[] {
  const parts: SubscribedEvent[][] = []
  let filled = 0
  for (const event of events) {
    const part = parts.at(-1)
    if (part === undefined || part.length === MAX_EVENTS || filled + event.characters > MAX_CHARACTERS) {
      parts.push([event])
      filled = event.characters
    } else {
      part.push(event)
      filled += event.characters
    }
  }
  return parts.map((part) => {
    const batch = { id: batchId(createUuid()), ...common, events: part.map(({ event }) => event) }
    return { batch, waiting: formWaiting(part, batch, createUuid) }
  })
}

function formWaiting(
  part: readonly SubscribedEvent[],
  { id: batch_id, created_at, kept_from, trace_id }: EventBatchRecord,
  createUuid: () => string,
): WaitingBatchRecord[] {
  const ofWebhooks = new Map<string, number[]>()
  for (const [place, { webhooks }] of part.entries())
    for (const webhook of webhooks) {
      const places = ofWebhooks.get(webhook)
      if (places === undefined) ofWebhooks.set(webhook, [place])
      else places.push(place)
    }
  return [...ofWebhooks].map(([webhook_id, places]) => {
    const times = { created_at, ...(kept_from !== undefined && { kept_from }) }
    return { id: batchId(createUuid()), webhook_id, batch_id, places, ...times, trace_id }
  })
}

export function batchIdOf(deliveryId: string): string {
  return batchId(deliveryId)
}

const batchId = (id: string) => numbered(id, 0)

function numbered(id: string, place: number): string {
  return `${id.slice(0, -PLACE_DIGITS)}${place.toString(16).padStart(PLACE_DIGITS, '0')}`
}

export function deliveriesOf(
  { id, webhook_id, places, created_at, kept_from }: WaitingBatchRecord,
  batch: EventBatchRecord,
  state: 'waiting' | 'dropped' = 'waiting',
): DeliveryRecord[] {
  const { tenant_id, trace_id, actors, events } = batch
  const times = {
    ...{ created_at, queued_at: created_at },
    ...(kept_from !== undefined && { kept_from }),
    ...(state === 'waiting' && { due_at: created_at }),
  }
  return places.map((place) => {
    const { type, actor, data } = events[place]!
    const told = { type, timestamp: created_at, trace_id, data: { ...data, actor: actors[actor]! } }
    const event = { id: numbered(batch.id, place), ...told }
    const to = { id: numbered(id, place), tenant_id, webhook_id }
    return { ...to, event, state, attempts: 0, ...times }
  })
}

export function withoutFirst(waiting: WaitingBatchRecord, count: number): WaitingBatchRecord | undefined {
  const places = waiting.places.slice(count)
  return places.length === 0 ? undefined : { ...waiting, places }
}

export function countValues({ webhook_id, places }: WaitingBatchRecord): string[] {
  return countKeys(webhook_id)
    .filter(({ weight }) => (places.length & weight) !== 0)
    .map(({ value }) => value)
}

/**
 * To count the waiting events of a webhook, multiply each `weight` by the number of rows with `value`, and add the
 * products.
 */
export function countKeys(webhookId: string): { value: string; weight: number }[] {
  return Array.from({ length: COUNT_BITS }, (_, bit) => {
    const weight = 2 ** bit
    return { value: `${webhookId}/${weight}`, weight }
  })
}
