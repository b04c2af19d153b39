/** Makes the records of a vault that was copied in part agree with each other, and writes its logs anew. */
import { containerSet, containerSetId } from '../domain/access/container.js'
import { formatDate } from '../domain/dates.js'
import type { TenantRecord } from '../domain/records/records.js'
import type { RecoveredLogs } from '../storage/barrier/recovered-logs.js'
import { eachRecord, readAll } from '../storage/pages.js'
import type { Store } from '../storage/store.js'

/** Log records that are written in one unit of work. */
const BATCH = 5000

interface Context {
  secretsKey: string
  createUuid(): string
}

/** Adds what had to be left out, and log records that are missing, to `skipped`, by kind. */
export async function mendRecords(
  store: Store,
  logs: RecoveredLogs,
  skipped: Record<string, number>,
  context: Context,
): Promise<void> {
  const tenants = await readAll(store, 'tenant', 0)
  await mendSettings(store, tenants, context)
  for (const tenant of tenants) {
    const loose = await removeLooseLinks(store, tenant.number)
    if (loose > 0) skipped.association = (skipped.association ?? 0) + loose
    await mendContainers(store, tenant.number)
    const missing = await writeLog(store, tenant, logs, context)
    if (missing > 0) skipped.log = (skipped.log ?? 0) + missing
  }
}

/** Missing settings are created with a new secrets key, after which no API key is valid. */
async function mendSettings(
  store: Store,
  tenants: readonly TenantRecord[],
  { secretsKey, createUuid }: Context,
) {
  await store.write(async (writer) => {
    if ((await writer.get('settings', 0, 'vault')) !== undefined) return
    const next_tenant = Math.max(0, ...tenants.map(({ number }) => number)) + 1
    const owner_id = tenants[0]?.owner_id ?? createUuid()
    const settings = { id: 'vault' as const, secrets_key: secretsKey, owner_id, next_tenant, values: {} }
    await writer.insert('settings', 0, settings)
  })
}

/** Removes associations of tokens that are missing. */
async function removeLooseLinks(store: Store, tenant: number): Promise<number> {
  const links = await readAll(store, 'association', tenant)
  return store.write(async (writer) => {
    let removed = 0
    for (const { id, parent_id, child_id } of links) {
      const ends = [await writer.get('token', tenant, parent_id), await writer.get('token', tenant, child_id)]
      if (!ends.includes(undefined)) continue
      await writer.remove('association', tenant, id)
      removed++
    }
    return removed
  })
}

/** Adds missing container sets, by which callers who may read only some containers find tokens. */
async function mendContainers(store: Store, tenant: number): Promise<void> {
  const sets = new Map<string, string[]>()
  for await (const { containers } of eachRecord(store, 'token', tenant))
    sets.set(containerSetId(containers), containerSet(containers))
  await store.write(async (writer) => {
    for (const [id, containers] of sets)
      if ((await writer.get('containers', tenant, id)) === undefined)
        await writer.insert('containers', tenant, { id, containers })
  })
}

/** Returns how many records are known to be missing. */
async function writeLog(
  store: Store,
  { id, number }: TenantRecord,
  logs: RecoveredLogs,
  { createUuid }: Context,
): Promise<number> {
  const { records, missing } = logs.of(number)
  for (let first = 0; first < records.length; first += BATCH)
    await store.write(async (writer) => {
      for (const record of records.slice(first, first + BATCH)) await writer.log(number, record)
    })
  const known = missing === 0 ? 'none known' : `${missing} or more`
  await store.write(async (writer) =>
    writer.log(number, {
      tenant_id: id,
      actor_type: 'system',
      entity_type: 'tenant',
      entity_id: id,
      operation: 'update',
      message: `Vault copied without what was damaged; log records missing: ${known}`,
      created_at: formatDate(writer.now),
      trace_id: createUuid(),
    }),
  )
  return missing
}
