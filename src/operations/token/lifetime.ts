/** Counts the months in which a token is active, and removes a token together with its dependent records. */

import { containerSetId } from '../../domain/access/container.js'
import { type Awaitable, andThen } from '../../domain/awaitable.js'
import { monthOf } from '../../domain/dates.js'
import { type ActivityRecord, associationId, type TokenRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/context.js'
import { type EventTools, writeEntries } from '../../framework/events.js'
import type { Host } from '../../framework/host.js'
import { removeAnswersAbout } from '../../framework/idempotency.js'
import type { Waiting } from '../../framework/ports/deliveries.js'
import { readSetting } from '../../framework/setting.js'
import { readAll, type StoreReader, type StoreWriter } from '../../storage/store.js'
import { purgeKey } from '../application/purge-key.js'
import { eraseCode, stopTimer } from './code-timer.js'
import { entityTypeOf, messageAbout } from './token-attributes.js'

type UnitTools = EventTools & Pick<Host, 'expressions'>

const BATCH = 200
/** One unit of work drops at most this many blocks of a tenant's log. */
const BLOCKS = 64
const DAY_MS = 24 * 60 * 60 * 1000
/** The stored time of the last creation of a type can be too early by less than this time. */
const NOTED_MS = 1000

/** Counts the token as active in the current month. In the month of its creation, a token is always active. */
export function recordUse(
  { store, caller: { tenant }, date }: Context,
  { id, created_at }: Pick<TokenRecord, 'id' | 'created_at'>,
): Awaitable<void> {
  if (created_at.startsWith(monthOf(date))) return
  const activity = activityOf(id, date)
  return andThen(store.get('activity', tenant, activity.id), (known) =>
    known === undefined ? store.insert('activity', tenant, activity) : undefined,
  )
}

/**
 * Ensures that the creation of a token counts exactly once. An index of the months of creation counts tokens without
 * expiry. A token with an expiry gets a record of activity.
 */
export async function countCreation(
  { store, caller: { tenant } }: Context,
  token: TokenRecord,
  state: 'new' | 'changed',
): Promise<void> {
  const { id, type, created_at, expires_at } = token
  const activity = { ...activityOf(id, created_at), ...(state === 'new' && { created: type }) }
  if (expires_at !== undefined) await putActivity(store, tenant, activity)
  else if ((await store.get('activity', tenant, activity.id)) !== undefined)
    await store.remove('activity', tenant, activity.id)
  if (state === 'changed') await recordCreation(store, tenant, token)
}

/** Removes the records that belong to a deleted token. The creation of the token still counts. */
export async function removeDependents({ store, caller: { tenant } }: Context, token: TokenRecord) {
  const { id, created_at, code } = token
  // The reads start together, because PostgreSQL then answers all of them with one statement.
  await Promise.all([
    putActivity(store, tenant, activityOf(id, created_at)),
    recordDeletion(store, tenant, token),
    removeLinks(store, tenant, id),
    removeAnswersAbout(store, tenant, 'token', id),
    stopTimer(store, tenant, code),
  ])
}

/** Keeps the time of the last creation of a type for the usage report, even after the token is deleted. */
function recordCreation(store: StoreWriter, tenant: number, { type, created_at: at }: TokenRecord) {
  return putActivity(store, tenant, { id: `last/${type}`, month: '', at })
}

/**
 * Stores the time of the last creation of a type. Writes nothing if a newer token of the type exists, or if the stored
 * time is less than {@link NOTED_MS} older. Without the second condition, concurrent deletions would all write this
 * record, and would conflict with each other.
 */
async function recordDeletion(store: StoreWriter, tenant: number, token: TokenRecord): Promise<void> {
  const { id, type: value, created_at } = token
  const [location] = await store.seek('token', tenant, { size: 1, where: { field: 'type', value } })
  const newest = location && (await store.open(location))
  if (newest !== undefined && newest.id !== id && newest.created_at >= created_at) return
  const noted = await store.get('activity', tenant, `last/${value}`)
  if (noted === undefined || Date.parse(created_at) - Date.parse(noted.at) >= NOTED_MS)
    await recordCreation(store, tenant, token)
}

async function putActivity(store: StoreWriter, tenant: number, activity: ActivityRecord): Promise<void> {
  const known = await store.get('activity', tenant, activity.id)
  if (known !== undefined && known.at > activity.at) return
  // The record is removed and inserted instead of replaced, because readers find the newest creation of a type by the
  // order of insertion.
  if (known !== undefined) await store.remove('activity', tenant, activity.id)
  await store.insert('activity', tenant, activity)
}

function activityOf(id: string, date: string): ActivityRecord {
  const month = monthOf(date)
  return { id: `${month}/${id}`, month, at: date }
}

export async function measureType({ store, caller: { tenant } }: Context, value: string) {
  const first = { page: 1, size: 1 }
  const living = await store.find('token', tenant, { where: { field: 'type', value }, ...first })
  const noted = await store.find('activity', tenant, { where: { field: 'created', value }, ...first })
  const gone = await store.get('activity', tenant, `last/${value}`)
  const dates = [living.records[0]?.created_at, noted.records[0]?.at, gone?.at]
  const last_created_at = dates
    .filter((date) => date !== undefined)
    .sort()
    .at(-1)
  return last_created_at === undefined ? undefined : { count: living.total, last_created_at }
}

export async function countActive({ store, caller: { tenant }, date }: Context): Promise<number> {
  const search = { where: { field: 'month', value: monthOf(date) }, page: 1, size: 1 }
  const created = await store.locate('token', tenant, search)
  return created.total + (await store.locate('activity', tenant, search)).total
}

type SweepTools = Pick<
  Host,
  'store' | 'createUuid' | 'deliveries' | 'containerSets' | 'expressions' | 'logSink'
>

/**
 * Purges at most `limit` expired records, and resolves to their number. Also drops log records that are older than
 * `logs.keep`. After a jump of the clock, stores the time, so that a later sweep can distinguish a wrong clock from
 * elapsed time.
 */
export async function sweepExpired(
  { store, createUuid, deliveries, containerSets, expressions, logSink }: SweepTools,
  limit: number,
  isOver: () => boolean,
): Promise<number> {
  await dropOldLogs(store, logSink?.status().id)
  let swept = 0
  let count: number
  do {
    const most = Math.min(BATCH, limit - swept)
    const isDue = await store.read(
      async (reader) => reader.clock.isJump || (await reader.findExpired(1)).length > 0,
    )
    const purge = (writer: StoreWriter) => purgeSome({ store: writer, createUuid, expressions }, most, isOver)
    const purged = isDue ? await store.write(purge) : { count: 0, waiting: [], released: new Map() }
    deliveries.enqueue(purged.waiting)
    for (const [tenant, ids] of purged.released) containerSets.release(tenant, ids)
    count = purged.count
    swept += count
  } while (count > 0 && swept < limit && !isOver())
  return swept
}

/**
 * Applies the setting `logs.keep`, but keeps log records that the sink of this server has not received. After
 * a jump of the clock, `purgeBefore` is used in place of the current time.
 */
async function dropOldLogs(store: Host['store'], sink: string | undefined): Promise<void> {
  const before = await store.read(async (reader) => {
    const keep = await readSetting(reader, 'logs.keep')
    const until = Math.min(reader.now, reader.clock.purgeBefore)
    return keep === 'forever' ? 0 : until - Number.parseInt(keep, 10) * DAY_MS
  })
  while (before > 0 && (await store.write((writer) => writer.dropLogs(before, BLOCKS, sink))) > 0);
}

async function purgeSome(tools: UnitTools, limit: number, isOver: () => boolean) {
  const { store } = tools
  if (store.clock.isJump) store.storeTime()
  const waiting: Waiting[] = []
  const released = new Map<number, string[]>()
  let count = 0
  for (const { kind, tenant, record } of await store.findExpired(limit)) {
    if (count > 0 && isOver()) break
    const release = (containers: readonly string[]) =>
      released.set(tenant, [...(released.get(tenant) ?? []), containerSetId(containers)])
    if (kind === 'token' || kind === 'token_intent')
      waiting.push(...(await purgeToken({ ...tools, release }, tenant, record.id, kind)))
    else if (kind === 'api_key') waiting.push(...(await purgeKey(tools, record)))
    else if (kind === 'code_timer') waiting.push(...(await eraseCode(tools, tenant, record)))
    else if (kind === 'threeds_timer') {
      // Imported only here, because every command about tokens loads this file.
      const { endByTimer } = await import('../3ds/changes.js')
      waiting.push(...(await endByTimer(tools, tenant, record)))
    } else if (kind === 'document') {
      const { purgeDocument } = await import('../document/document.js')
      await purgeDocument(store, tenant, record.id)
    } else if ('id' in record) await store.purge(kind, tenant, record.id)
    count++
  }
  return { count, waiting, released }
}

/**
 * If the token or intent has expired, purges this record, its links and the stored answers about it, and logs the
 * expiry. Must be called before an id is used again, so that no link of the old token leads to the new token. Returns
 * the deliveries to enqueue after the commit.
 */
export async function purgeToken(
  tools: EventTools & { release(containers: readonly string[]): void },
  tenant: number,
  id: string,
  kind: 'token' | 'token_intent' = 'token',
): Promise<Waiting[]> {
  const { store, createUuid } = tools
  const record = await store.purge(kind, tenant, id)
  if (record === undefined) return []
  await removeAnswersAbout(store, tenant, kind, id)
  await stopTimer(store, tenant, record.code)
  if (kind === 'token') {
    tools.release(record.containers)
    await removeLinks(store, tenant, id)
    await recordDeletion(store, tenant, record)
  }
  const owner = await store.get('tenant', 0, String(tenant))
  if (owner === undefined) return []
  const as = {
    operation: 'delete',
    message: messageAbout(record, 'Token expired'),
    derivesNoEvent: true,
  } as const
  const emitted = kind === 'token' && { event: { type: 'token.expired', about: { id } } as const }
  const entry = { type: entityTypeOf(record), id, as, actor: { type: 'system' }, ...emitted } as const
  return writeEntries(tools, owner, [entry], createUuid())
}

async function removeLinks(store: StoreWriter, tenant: number, tokenId: string): Promise<void> {
  const where = { or: ['parent', 'child'].map((field) => ({ field, value: tokenId })) }
  for (const { id } of await readAll(store, 'association', tenant, where))
    await store.remove('association', tenant, id)
}

export async function isLinked(store: StoreReader, tenant: number, parentId: string, childId: string) {
  return (await store.get('association', tenant, associationId(parentId, childId))) !== undefined
}
