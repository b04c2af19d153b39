/** Events without an attempt are still stored in batches, and come first in a list of deliveries. */
import type { DeliveryRecord } from '../../domain/records/records.js'
import { batchIdOf } from '../../domain/webhook/event-batch.js'
import type { Context, Session } from '../../framework/context.js'
import type { Condition, StoreReader } from '../../storage/store.js'
import { countUntried, readDeliveries } from './waiting.js'

const AT_ONCE = 20

/** `id`: the id of a webhook or of a delivery. */
export interface UntriedFilter {
  id?: string | undefined
  event?: string | undefined
}

export interface Untried {
  deliveries: DeliveryRecord[]
  total: number
}

/** Skips `first` matching events, and reads at most `size`, newest first. */
export async function readUntried(
  session: Session,
  { id, event }: UntriedFilter,
  { first, size }: { first: number; size: number },
): Promise<Untried> {
  const matches = (each: DeliveryRecord) => event === undefined || each.event.type === event
  const found = await session.inUnit(async (context) => {
    const webhooks = Object.keys((await context.tenant()).webhooks ?? {})
    if (id === undefined || webhooks.includes(id)) return { webhooks: id === undefined ? webhooks : [id] }
    return { one: await findUntried(context.store, context.caller.tenant, id) }
  })
  if (found.webhooks === undefined) {
    const all = found.one === undefined ? [] : [found.one].filter(matches)
    return { deliveries: all.slice(first, first + size), total: all.length }
  }
  // Without a filter by event, the index gives the total, so only the events of the page are read.
  const counted = event === undefined ? await count(session, found.webhooks) : undefined
  if (counted !== undefined && counted <= first) return { deliveries: [], total: counted }
  const deliveries: DeliveryRecord[] = []
  let passed = 0
  const where = id === undefined ? undefined : { field: 'webhook', value: id }
  for await (const batch of eachBatch(session, where)) {
    if (counted !== undefined && deliveries.length === size) break
    for (const each of batch.reverse().filter(matches)) {
      if (passed >= first && deliveries.length < size) deliveries.push(each)
      passed++
    }
  }
  return { deliveries, total: counted ?? passed }
}

/** `id`: the id of a delivery. Returns undefined after the first attempt to send the event. */
export async function findUntried(
  reader: StoreReader,
  tenant: number,
  id: string,
): Promise<DeliveryRecord | undefined> {
  const waiting = await reader.get('waiting_batch', tenant, batchIdOf(id))
  return waiting && (await readDeliveries(reader, tenant, waiting)).find((each) => each.id === id)
}

function count(session: Session, webhooks: readonly string[]): Promise<number> {
  return session.inUnit(async ({ store, caller: { tenant } }) => {
    let total = 0
    for (const id of webhooks) total += await countUntried(store, { tenant, id })
    return total
  })
}

/** Yields the events of each batch, newest batch first. Each unit of work reads a few batches. */
async function* eachBatch(session: Session, where: Condition | undefined): AsyncGenerator<DeliveryRecord[]> {
  const seek = async ({ store, caller: { tenant } }: Context, below: number | undefined) => {
    const query = { size: AT_ONCE, below, ...(where && { where }) }
    const locations = await store.seek('waiting_batch', tenant, query)
    const batches: DeliveryRecord[][] = []
    for (const location of locations) {
      const waiting = await store.open(location)
      if (waiting !== undefined) batches.push(await readDeliveries(store, tenant, waiting))
    }
    return { batches, last: locations.length < AT_ONCE ? undefined : locations.at(-1)!.seq }
  }
  for (let below: number | undefined = Number.MAX_SAFE_INTEGER; below !== undefined; ) {
    const from: number = below
    const { batches, last } = await session.inUnit((context) => seek(context, from))
    yield* batches
    below = last
  }
}
