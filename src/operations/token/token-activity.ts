/**
 * Activity of tokens by month, and the last creation of each type, for the usage report. A token that does not expire
 * counts for the month of its creation by itself, with {@link TokenRecord.counts}. An activity record is written for a use
 * in a later month, and for a token that is gone, expires, or has an id that was active earlier in the month.
 */
import { monthOf } from '../../domain/dates.js'
import type { ActivityRecord, TokenRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/operation.js'

type Reached = Pick<TokenRecord, 'id' | 'created_at'>

export async function recordUse(context: Context, { id, created_at }: Reached): Promise<void> {
  // In the month of its creation it is counted already.
  if (created_at.startsWith(monthOf(context.date))) return
  const activity = activityOf(id, context.date)
  if ((await context.store.get('activity', context.caller.tenant, activity.id)) !== undefined) return
  await insert(context, activity)
}

/** Records a token's creation. Returns whether the token counts by itself. `isFresh`: its id was never used before. */
export async function recordCreation(
  context: Context,
  { id, type, expires }: { id: string; type: string; expires: number | undefined },
  isFresh: boolean,
): Promise<boolean> {
  const activity = activityOf(id, context.date)
  const isKnown =
    !isFresh && (await context.store.get('activity', context.caller.tenant, activity.id)) !== undefined
  if (!isKnown && expires === undefined) return true
  // A reused id counts as one active token of the month, but as two creations: the second has a record without month.
  const counted = isKnown ? { ...activity, id: `created/${context.createUuid()}`, month: '' } : activity
  await insert(context, { ...counted, created: type })
  return false
}

/** Writes activity records for a token that no longer counts by itself. */
export async function settleActivity(context: Context, record: TokenRecord): Promise<void> {
  const { id, type, created_at, counts } = record
  if (counts === undefined) return
  const { store, caller } = context
  await insert(context, activityOf(id, created_at))
  const last = { id: lastId(type), month: '', at: created_at }
  const known = await store.get('activity', caller.tenant, last.id)
  if (known === undefined) await insert(context, last)
  else if (known.at < created_at) await store.replace('activity', caller.tenant, last)
}

/** The number of tokens of the type, and when the last one was created, even if it is gone. */
export async function measureType({ store, caller }: Context, type: string) {
  const { tenant } = caller
  const first = { page: 1, size: 1 }
  const living = await store.find('token', tenant, { where: { field: 'type', value: type }, ...first })
  const noted = await store.find('activity', tenant, { where: { field: 'created', value: type }, ...first })
  const settled = await store.get('activity', tenant, lastId(type))
  const dates = [living.records[0]?.created_at, noted.records[0]?.at, settled?.at]
  const last_created_at = dates
    .filter((date) => date !== undefined)
    .sort()
    .at(-1)
  return last_created_at === undefined ? undefined : { count: living.total, last_created_at }
}

/** How many tokens were active in the present month. */
export async function countActive({ store, caller, date }: Context): Promise<number> {
  const search = { where: { field: 'month', value: monthOf(date) }, page: 1, size: 1 }
  const created = await store.locate('token', caller.tenant, search)
  return created.total + (await store.locate('activity', caller.tenant, search)).total
}

function activityOf(id: string, date: string): ActivityRecord {
  const month = monthOf(date)
  return { id: `${month}/${id}`, month, at: date }
}

/** The id of the record of the last creation among settled tokens of the type. */
function lastId(type: string): string {
  return `last/${type}`
}

async function insert({ store, caller }: Context, record: ActivityRecord): Promise<void> {
  await store.insert('activity', caller.tenant, record, { fresh: true })
}
