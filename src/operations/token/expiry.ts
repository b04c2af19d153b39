/** Purges expired tokens, which reads already ignore, and log records that are no longer kept. */
import { formatDate } from '../../domain/dates.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { settingOf } from '../../domain/settings.js'
import type { Host } from '../../framework/host.js'
import { removeAnswersAbout } from '../../framework/idempotency/answer-records.js'
import type { StoreWriter } from '../../storage/store.js'
import { entityTypeOf } from './token-access.js'
import { removeLinks } from './token-links.js'

/** Records purged in one unit of work, to limit how long other calls wait. */
const BATCH = 200
/** Blocks of a tenant's log that are dropped in one unit of work. */
const BLOCKS = 64
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Purges at most `limit` expired records of all tenants, and logs each token's expiry; resolves to their number. After a
 * jump of the clock it also writes the time, so that a later sweep can tell a wrong clock from elapsed time. Stops when
 * `isOver` returns true.
 */
export async function sweepExpired(
  host: Pick<Host, 'store' | 'createUuid'>,
  limit: number,
  isOver: () => boolean,
): Promise<number> {
  await dropOldLogs(host)
  let swept = 0
  do {
    const most = Math.min(BATCH, limit - swept)
    const isDue = await host.store.read(
      async (reader) => reader.clock.isJump || (await reader.findExpired(1)).length > 0,
    )
    if (!isDue) return swept
    const count = await host.store.write((writer) => purgeSome(writer, most, host.createUuid(), isOver))
    if (count === 0) return swept
    swept += count
  } while (swept < limit && !isOver())
  return swept
}

/** Applies the setting `logs.keep`. A clock that has just jumped drops nothing. */
async function dropOldLogs({ store }: Pick<Host, 'store'>): Promise<void> {
  const before = await store.read(async (reader) => {
    const keep = settingOf((await reader.get('settings', 0, 'vault'))?.values ?? {}, 'logs.keep')
    const until = Math.min(reader.now, reader.clock.purgeUntil)
    return keep === 'forever' ? 0 : until - Number.parseInt(keep, 10) * DAY_MS
  })
  while (before > 0 && (await store.write((writer) => writer.dropLogs(before, BLOCKS))) > 0);
}

async function purgeSome(store: StoreWriter, limit: number, traceId: string, isOver: () => boolean) {
  if (store.clock.isJump) store.noteTime()
  const expired = await store.findExpired(limit)
  let purged = 0
  for (const { kind, tenant, record } of expired) {
    if (purged > 0 && isOver()) break
    if (kind === 'token') await purgeToken(store, tenant, record.id, traceId)
    else if ('id' in record) await store.purge(kind, tenant, record.id)
    purged++
  }
  return purged
}

/**
 * If the token has expired, purges it, its links and the answers stored about it, and logs the expiry.
 * Contract: called before an id is reused, so that no link of the old token leads to the new one.
 */
export async function purgeToken(store: StoreWriter, tenant: number, id: string, traceId: string) {
  const record = await store.purge('token', tenant, id)
  if (record === undefined) return
  await removeLinks(store, tenant, id)
  await removeAnswersAbout(store, tenant, { kind: 'token', id })
  await writeExpiry(store, tenant, record, traceId)
}

async function writeExpiry(store: StoreWriter, tenant: number, record: TokenRecord, trace_id: string) {
  await store.log(tenant, {
    tenant_id: record.tenant_id,
    actor_type: 'system',
    entity_type: entityTypeOf(record),
    entity_id: record.id,
    operation: 'delete',
    message: 'Token expired',
    created_at: formatDate(store.now),
    trace_id,
  })
}
