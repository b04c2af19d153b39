/** The end of tokens whose time is over: from then on no read finds them, and this inputSchema them off the disk. */
import { formatDate } from '../../domain/dates.js'
import type { TokenRecord } from '../../domain/records.js'
import type { Host } from '../../framework/host.js'
import type { StoreWriter } from '../../storage/store.js'
import { entityTypeOf } from './token-access.js'
import { removeLinks } from './token-links.js'

/** So many go in one unit of work: others wait no longer than that. */
const BATCH = 200

/**
 * Purges at most `limit` records whose time is over, whichever tenant they are of, each token with its log record.
 * Gives the number of those purged. After a jump of the clock the time is noted, so that a later sweep tells a clock that
 * was wrong from time that passed. `isOver` is asked after each record whether to leave the rest.
 */
export async function sweepExpired(
  host: Pick<Host, 'store' | 'createUuid'>,
  limit: number,
  isOver: () => boolean = () => false,
): Promise<number> {
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

async function purgeSome(
  store: StoreWriter,
  limit: number,
  traceId: string,
  isOver: () => boolean,
): Promise<number> {
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
 * Purges the token with this id if its time is over: its links go with it, and the log says that it expired. An id is
 * given again only after this, so that no link of the old token leads to the new one.
 */
export async function purgeToken(
  store: StoreWriter,
  tenant: number,
  id: string,
  traceId: string,
): Promise<void> {
  const record = await store.purge('token', tenant, id)
  if (record === undefined) return
  await removeLinks(store, tenant, id)
  await writeExpiry(store, tenant, record, traceId)
}

async function writeExpiry(
  store: StoreWriter,
  tenant: number,
  record: TokenRecord,
  trace_id: string,
): Promise<void> {
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
