/**
 * The waiting events of a webhook. Before the first attempt, an event is in a batch. After a failed attempt, the
 * event is a delivery.
 */
import { formatDate } from '../../domain/dates.js'
import type {
  DeliveryRecord,
  DestinationState,
  WaitingBatchRecord,
  WebhookRecord,
} from '../../domain/records/records.js'
import { countKeys, deliveriesOf, withoutFirst } from '../../domain/webhook/event-batch.js'
import { CofferError } from '../../errors.js'
import { type EventTools, keptUntil, writeEntries } from '../../framework/events.js'
import type { Outbound } from '../../framework/ports/outbound.js'
import type { Condition, Store, StoreReader, StoreWriter } from '../../storage/store.js'

/**
 * The limit for the untried events of one webhook, and also for the deliveries of one webhook that wait for a retry.
 * Above the limit, the oldest events or deliveries are dropped.
 */
export const MAX_WAITING = 10_000
const AT_ONCE = 200
const A_FEW = 20
/** Must be longer than any unit of work, and longer than the clock difference between servers. */
const CERTAIN_MS = 5 * 60_000

export interface Hook {
  tenant: number
  id: string
}

const untried = (id: string): Condition => ({ field: 'webhook', value: id })

const triedAgain = (id: string): Condition => ({
  and: [
    { field: 'webhook', value: id },
    { field: 'state', value: 'waiting' },
  ],
})

export async function countUntried(reader: StoreReader, { tenant, id }: Hook): Promise<number> {
  const count = async (where: Condition) =>
    (await reader.locate('waiting_batch', tenant, { where, page: 1, size: 1 })).total
  if ((await count(untried(id))) === 0) return 0
  let events = 0
  for (const { value, weight } of countKeys(id)) events += weight * (await count({ field: 'count', value }))
  return events
}

export async function oldestBatches(
  reader: StoreReader,
  { tenant, id }: Hook,
  size: number,
): Promise<WaitingBatchRecord[]> {
  const found: WaitingBatchRecord[] = []
  const query = { where: untried(id), above: -1, size }
  for (const location of await reader.seek('waiting_batch', tenant, query)) {
    const waiting = await reader.open(location)
    if (waiting !== undefined) found.push(waiting)
  }
  return found
}

export async function readDeliveries(
  reader: StoreReader,
  tenant: number,
  waiting: WaitingBatchRecord,
  state?: 'waiting' | 'dropped',
): Promise<DeliveryRecord[]> {
  const batch = await reader.get('event_batch', tenant, waiting.batch_id)
  return batch === undefined ? [] : deliveriesOf(waiting, batch, state)
}

/**
 * Turns the events of these batches into deliveries. `taken`: at most `most` deliveries, which the caller sends within
 * `leaseMs`. Events that must not be sent become dropped deliveries. `left`: the batches that still have events.
 */
export async function takeEvents(
  store: StoreWriter,
  { tenant, id }: Hook,
  batchIds: readonly string[],
  { most, leaseMs }: { most: number; leaseMs: number },
): Promise<{ taken: DeliveryRecord[]; left: string[] }> {
  const hook = await store.get('webhook', tenant, id)
  const taken: DeliveryRecord[] = []
  let made = 0
  for (const [at, batchId] of batchIds.entries()) {
    const waiting = await store.get('waiting_batch', tenant, batchId)
    if (waiting === undefined) continue
    const isSent = mayBeSent(waiting, hook)
    const all = await readDeliveries(store, tenant, waiting, isSent ? 'waiting' : 'dropped')
    const some = isSent ? all.slice(0, most - taken.length) : all
    for (const each of some) {
      const delivery = isSent ? { ...each, due_at: formatDate(store.now + leaseMs) } : each
      await store.insert('delivery', tenant, delivery, { ...keptUntil(delivery), fresh: true })
      if (isSent) taken.push(delivery)
    }
    const rest = some.length === all.length ? undefined : withoutFirst(waiting, some.length)
    await replaceWaiting(store, tenant, waiting, rest)
    made += some.length
    if (taken.length === most || made >= AT_ONCE)
      return { taken, left: batchIds.slice(rest === undefined ? at + 1 : at) }
  }
  return { taken, left: [] }
}

export function mayBeSent(
  { created_at }: Pick<WaitingBatchRecord, 'created_at'>,
  hook: WebhookRecord | undefined,
): boolean {
  return hook?.status === 'enabled' && created_at >= hook.enabled_at
}

async function replaceWaiting(
  store: StoreWriter,
  tenant: number,
  { id }: WaitingBatchRecord,
  rest: WaitingBatchRecord | undefined,
): Promise<void> {
  if (rest === undefined) await store.remove('waiting_batch', tenant, id)
  else await store.replace('waiting_batch', tenant, rest, keptUntil(rest))
}

/** Returns the reason why the server is not allowed to call the address. Does not resolve the host name. */
export function refusalOf(outbound: Outbound, url: string): string | undefined {
  try {
    outbound.reach(new URL(url))
    return undefined
  } catch (error) {
    if (error instanceof CofferError && error.code === 'forbidden') return error.message
    throw error
  }
}

export async function noteDestination(
  store: StoreWriter,
  { tenant, id }: Hook,
  destination: DestinationState | undefined,
): Promise<void> {
  const hook = await store.get('webhook', tenant, id)
  if (hook === undefined) return
  const { destination: before, ...rest } = hook
  if (isKnown(before, destination)) return
  const since = before?.state === destination?.state ? before?.since : destination?.since
  const known = destination && { ...destination, ...(since !== undefined && { since }) }
  await store.replace('webhook', tenant, known === undefined ? rest : { ...rest, destination: known })
}

/** Whether two states are the same, except `since`. */
export function isKnown(before: DestinationState | undefined, now: DestinationState | undefined): boolean {
  if (before === undefined || now === undefined) return before === now
  const { state, failure, next_attempt_at } = now
  const isSame = state === before.state && failure === before.failure
  return isSame && next_attempt_at === before.next_attempt_at
}

/** Drops the oldest events beyond {@link MAX_WAITING}. `spare`: how many untried events can still be added. */
export async function dropExcess(
  store: Store,
  hook: Hook,
  createUuid: EventTools['createUuid'],
): Promise<{ dropped: number; spare: number }> {
  const { before, untried, tried } = await store.read(async (reader) => ({
    before: await droppedOf(reader, hook),
    untried: (await countUntried(reader, hook)) - MAX_WAITING,
    tried: (await countTriedAgain(reader, hook)) - MAX_WAITING,
  }))
  let dropped = 0
  const drop = async (most: number, dropSome: typeof dropBatches) => {
    for (let left = most; left > 0; ) {
      const count = await store.write(async (writer) => {
        // If the stored number of dropped events has changed, another process drops the same events.
        if ((await droppedOf(writer, hook)) !== before + dropped) return 0
        const count = await dropSome(writer, hook, left)
        if (count > 0) await noteDropped({ store: writer, createUuid }, hook, count)
        return count
      })
      if (count === 0) return
      left -= count
      dropped += count
    }
  }
  await drop(untried, dropBatches)
  await drop(tried, dropDeliveries)
  return { dropped, spare: Math.max(0, -untried) }
}

async function droppedOf(reader: StoreReader, { tenant, id }: Hook): Promise<number> {
  return (await reader.get('webhook', tenant, id))?.dropped?.count ?? 0
}

export async function countTriedAgain(reader: StoreReader, { tenant, id }: Hook): Promise<number> {
  return (await reader.locate('delivery', tenant, { where: triedAgain(id), page: 1, size: 1 })).total
}

async function dropBatches(store: StoreWriter, hook: Hook, most: number): Promise<number> {
  let count = 0
  // Reads only a few batches at a time, because a batch can contain many events.
  for (let read = 0; count < most && read < AT_ONCE; read += A_FEW) {
    const some = await oldestBatches(store, hook, A_FEW)
    for (const waiting of some) {
      const dropped = Math.min(waiting.places.length, most - count)
      if (dropped > 0) await replaceWaiting(store, hook.tenant, waiting, withoutFirst(waiting, dropped))
      count += dropped
    }
    if (some.length < A_FEW) break
  }
  return count
}

async function dropDeliveries(store: StoreWriter, { tenant, id }: Hook, most: number): Promise<number> {
  const query = { where: triedAgain(id), above: -1, size: Math.min(AT_ONCE, most) }
  const locations = await store.seek('delivery', tenant, query)
  for (const location of locations) {
    const record = await store.open(location)
    if (record !== undefined) await store.remove('delivery', tenant, record.id)
  }
  return locations.length
}

async function noteDropped(tools: EventTools, { tenant, id }: Hook, count: number): Promise<void> {
  const { store, createUuid } = tools
  const hook = await store.get('webhook', tenant, id)
  const owner = await store.get('tenant', 0, String(tenant))
  if (hook === undefined || owner === undefined) return
  const dropped = { count: (hook.dropped?.count ?? 0) + count, last_at: formatDate(store.now) }
  await store.replace('webhook', tenant, { ...hook, dropped })
  const message = `Webhook events dropped: ${count}`
  const as = { operation: 'update', message, derivesNoEvent: true } as const
  await writeEntries(tools, owner, [{ type: 'webhook', id, as, actor: { type: 'system' } }], createUuid())
}

/**
 * Removes batches that were stored before the oldest waiting batch, because their events no longer wait for a webhook.
 * A removed batch is older than the oldest waiting batch by at least {@link CERTAIN_MS}, because concurrent units of
 * work can be stored in a different order than they began.
 */
export async function removeTaken(store: Store, tenant: number): Promise<void> {
  for (let found = AT_ONCE; found === AT_ONCE; ) {
    const ids = await store.read(async (reader) => {
      const [first] = await reader.seek('waiting_batch', tenant, { above: -1, size: 1 })
      const oldest = first && (await reader.open(first))
      const below = (oldest === undefined ? reader.now : Date.parse(oldest.created_at)) - CERTAIN_MS
      const where = { range: 'created', below } as const
      const ids: string[] = []
      for (const location of await reader.seek('event_batch', tenant, { where, above: -1, size: AT_ONCE })) {
        if (first !== undefined && location.seq > first.seq) break
        const batch = await reader.open(location)
        if (batch !== undefined) ids.push(batch.id)
      }
      return ids
    })
    found = ids.length
    if (found > 0)
      await store.write(async (writer) => {
        for (const id of ids)
          if ((await writer.get('event_batch', tenant, id)) !== undefined)
            await writer.remove('event_batch', tenant, id)
      }, 'soon')
  }
}
