/**
 * Reads the time line of the dashboard: all records with one trace id. The records are found in indexes, so the cost
 * does not depend on the size of the log.
 */
import { isObject } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import type {
  DeliveryRecord,
  DestinationState,
  Kind,
  LogRecord,
  RecordOf,
} from '../domain/records/records.js'
import { invalid } from '../errors.js'
import type { List } from '../framework/page.js'
import { listTracedLogs } from '../operations/log/noun.js'
import { readDeliveries } from '../operations/webhook/waiting.js'
import type { Condition, StoreReader } from '../storage/store.js'
import { performUndone } from './page-work.js'
import type { Place } from './place.js'

/** The time line shows the newest records of each kind, at most this many. */
const MOST = 100
/** For an entity, the time line shows deliveries only for the newest requests, at most this many. */
const MOST_TRACES = 20
const MAX_LENGTH = 400

/** `at`: ISO 8601. */
interface Common<K extends string> {
  kind: K
  id: string
  at: string
  trace_id: string
}

export type TrailItem =
  | (Common<'log'> & Pick<LogRecord, 'message' | 'operation' | 'entity_type' | 'entity_id'> & Actor & Named)
  | (Common<'delivery'> & {
      webhook_id: string
      webhook?: string
      type: string
      state: DeliveryRecord['state'] | 'blocked'
      attempts: number
      status?: number
      failure?: string
    })
  | (Common<'mail'> & { to: string; state: string })
  | (Common<'run'> & { reactor_id: string; outcome: string; status: number })
  | (Common<'callback'> & { reactor_id: string; attempts: number })
  | (Common<'job'> & { status: string })

type Actor = Pick<LogRecord, 'actor_id' | 'actor_type'>
/** `entity_name`: undefined if the entity has no name or is deleted. */
type Named = { entity_name?: string }

/** `items`: oldest first. `isCut`: older items were left out. */
export interface Trail {
  items: TrailItem[]
  isCut: boolean
}

/**
 * Reads the time line of a trace id. If `trace` is undefined, reads the log records and the deliveries of `entity`.
 * @throws CofferError `validation`
 */
export async function readTrail(
  { control: { app, lock }, tenant }: Place,
  { trace, entity }: Record<string, unknown>,
): Promise<Trail> {
  const value = trace ?? entity
  if (typeof value !== 'string' || value === '' || value.length > MAX_LENGTH)
    throw invalid('trace', `needs 1 to ${MAX_LENGTH} characters`)
  return lock.shared(async () => {
    const { number } = await app.tenant(tenant)
    return app.store.read((reader) =>
      trace === undefined ? readOfEntity(reader, number, value) : readOfTrace(reader, number, value),
    )
  })
}

async function readOfTrace(reader: StoreReader, tenant: number, trace: string): Promise<Trail> {
  const { logs, isCut } = await findLogs(reader, tenant, { field: 'trace', value: trace })
  const shown = (await nameEntities(reader, tenant, logs)).map(viewLog)
  return { items: inOrder([...shown, ...(await readOthers(reader, tenant, trace))]), isCut }
}

async function readOfEntity(reader: StoreReader, tenant: number, entity: string): Promise<Trail> {
  const { logs, isCut } = await findLogs(reader, tenant, { field: 'entity', value: entity })
  const items = (await nameEntities(reader, tenant, logs)).map(viewLog)
  const traces = [...new Set(logs.map(({ trace_id }) => trace_id))].slice(0, MOST_TRACES)
  for (const trace of traces) {
    const deliveries = (await readDeliveriesOf(reader, tenant, trace)).filter(isAbout(entity))
    items.push(...(await nameWebhooks(reader, tenant, deliveries.slice(0, MOST))))
  }
  return { items: inOrder(items), isCut }
}

/** Newest first. */
async function findLogs(reader: StoreReader, tenant: number, where: Condition) {
  const query = { where, page: 1, size: MOST + 1, isUncounted: true }
  const { records } = await reader.find('log', tenant, query)
  return { logs: records.slice(0, MOST), isCut: records.length > MOST }
}

export type TracedLogs = List<Omit<LogRecord, 'transform'> & Named>

/**
 * Lists log records like `log list`, and adds trace ids and names of entities. The audit log does not record this read.
 * @throws CofferError like `log list`
 */
export async function readLog(place: Place, input: Record<string, unknown>): Promise<TracedLogs> {
  const { app, lock } = place.control
  return lock.shared(async () => {
    const { result } = await performUndone(place, listTracedLogs, input)
    const list = result as TracedLogs
    const { number } = await app.tenant(place.tenant)
    const data = await app.store.read((reader) => nameEntities(reader, number, list.data))
    return { ...list, data }
  })
}

/** Types of entities with a name. Each type is also a kind of record. */
const NAMED = ['application', 'reactor', 'proxy', 'webhook'] as const

async function nameEntities<T extends Pick<LogRecord, 'entity_type' | 'entity_id'>>(
  reader: StoreReader,
  tenant: number,
  logs: readonly T[],
): Promise<(T & Named)[]> {
  const names = new Map<string, string | undefined>()
  for (const { entity_type: type, entity_id: id } of logs) {
    const kind = NAMED.find((each) => each === type)
    if (kind !== undefined && !names.has(id)) names.set(id, (await reader.get(kind, tenant, id))?.name)
  }
  return logs.map((log) => ({ ...log, ...omitUndefined({ entity_name: names.get(log.entity_id) }) }))
}

/** The order of items with the same time: each kind comes after the kinds that can cause it. */
const RANKS: Record<TrailItem['kind'], number> = { log: 0, run: 1, job: 2, callback: 3, delivery: 4, mail: 5 }

function inOrder(items: TrailItem[]): TrailItem[] {
  // Log records arrive newest first. The sort keeps the order of items with the same time and rank.
  return items
    .toReversed()
    .sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || RANKS[a.kind] - RANKS[b.kind])
}

function viewLog(record: LogRecord & Named): TrailItem {
  const {
    id,
    created_at: at,
    trace_id,
    message,
    operation,
    entity_type,
    entity_id,
    actor_id,
    actor_type,
    entity_name,
  } = record
  const about = {
    message,
    operation,
    entity_type,
    entity_id,
    ...omitUndefined({ actor_id, actor_type, entity_name }),
  }
  return { kind: 'log', id, at, trace_id, ...about }
}

async function readOthers(reader: StoreReader, tenant: number, trace: string): Promise<TrailItem[]> {
  const find = <K extends Kind>(kind: K) => newestOf(reader, kind, tenant, trace)
  const deliveries = (await readDeliveriesOf(reader, tenant, trace)).slice(0, MOST)
  const common = { trace_id: trace }
  return [
    ...(await nameWebhooks(reader, tenant, deliveries)),
    ...(await find('mail')).map(({ id, created_at: at, to, state }): TrailItem => {
      return { kind: 'mail', id, at, to, state, ...common }
    }),
    ...(await find('reactor_log')).map(({ id, created_at: at, reactor_id, outcome, status }): TrailItem => {
      return { kind: 'run', id, at, reactor_id, outcome, status, ...common }
    }),
    ...(await find('callback')).map(({ id, created_at: at, reactor_id, attempts }): TrailItem => {
      return { kind: 'callback', id, at, reactor_id, attempts, ...common }
    }),
    ...(await find('account_updater_job')).flatMap((job): TrailItem[] => {
      if ('job_id' in job) return []
      return [{ kind: 'job', id: job.id, at: job.created_at, status: job.status, ...common }]
    }),
  ]
}

/** Newest first. */
async function newestOf<K extends Kind>(
  reader: StoreReader,
  kind: K,
  tenant: number,
  trace: string,
): Promise<RecordOf[K][]> {
  const query = { where: { field: 'trace', value: trace }, size: MOST }
  const records: RecordOf[K][] = []
  for (const location of await reader.seek(kind, tenant, query)) {
    const record = await reader.open(location)
    if (record !== undefined) records.push(record)
  }
  return records
}

/** Returns deliveries that were attempted, then deliveries that wait for their first attempt. */
async function readDeliveriesOf(
  reader: StoreReader,
  tenant: number,
  trace: string,
): Promise<DeliveryRecord[]> {
  const found = await newestOf(reader, 'delivery', tenant, trace)
  for (const waiting of await newestOf(reader, 'waiting_batch', tenant, trace)) {
    if (found.length >= MOST) break
    found.push(...(await readDeliveries(reader, tenant, waiting)).reverse())
  }
  return found
}

function isAbout(entity: string) {
  return ({ event }: DeliveryRecord) =>
    Object.values(event.data).some((each) => isObject(each) && each.id === entity)
}

/** A delivery that waits for a blocked address was never attempted, so only the webhook contains the failure. */
function describeState({ state, failure }: DeliveryRecord, destination: DestinationState | undefined) {
  const isBlocked = state === 'waiting' && destination?.state === 'blocked'
  return isBlocked ? { state: 'blocked' as const, failure: destination.failure } : { state, failure }
}

async function nameWebhooks(
  reader: StoreReader,
  tenant: number,
  deliveries: readonly DeliveryRecord[],
): Promise<TrailItem[]> {
  const webhooks = new Map<string, RecordOf['webhook'] | undefined>()
  for (const { webhook_id: id } of deliveries)
    if (!webhooks.has(id)) webhooks.set(id, await reader.get('webhook', tenant, id))
  return deliveries.map((delivery): TrailItem => {
    const { id, created_at: at, event, webhook_id, attempts, status } = delivery
    const webhook = webhooks.get(webhook_id)
    const { trace_id, type } = event
    const about = { webhook: webhook?.name, status, ...describeState(delivery, webhook?.destination) }
    return { kind: 'delivery', id, at, trace_id, type, webhook_id, attempts, ...omitUndefined(about) }
  })
}
