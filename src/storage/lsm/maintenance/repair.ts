/** Repairs a salvaged vault: removes links to lost records, makes anew what can be, notes in logs what these lack. */
import { keysOf } from '../../../domain/application.js'
import { containerSet, containerSetId } from '../../../domain/container.js'
import { formatDate } from '../../../domain/dates.js'
import type { TenantRecord } from '../../../domain/records.js'
import { eachRecord, readAll } from '../../pages.js'
import type { Store } from '../../store.js'

/** Gives what was repaired, and what is left to do by hand. `missingLogs`: records known to be missing, by tenant. */
export async function repairRecords(
  store: Store,
  missingLogs: ReadonlyMap<number, number>,
  context: { secretsKey: string; createUuid(): string },
) {
  const repairs = { links_left_out: 0, applications_without_key: 0, settings_lost: false }
  const tenants = await readAll(store, 'tenant', 0)
  repairs.settings_lost = await repairSettings(store, tenants, context)
  for (const tenant of tenants) {
    repairs.links_left_out += await removeLooseLinks(store, tenant.number)
    repairs.applications_without_key += await countKeyless(store, tenant.number)
    await repairContainers(store, tenant.number)
    await noteSalvage(store, tenant, missingLogs.get(tenant.number) ?? 0, context.createUuid())
  }
  return repairs
}

async function repairSettings(
  store: Store,
  tenants: readonly TenantRecord[],
  { secretsKey, createUuid }: { secretsKey: string; createUuid(): string },
): Promise<boolean> {
  return store.write(async (writer) => {
    if ((await writer.get('settings', 0, 'vault')) !== undefined) return false
    const next_tenant = Math.max(0, ...tenants.map(({ number }) => number)) + 1
    const owner_id = tenants[0]?.owner_id ?? createUuid()
    await writer.insert('settings', 0, {
      id: 'vault',
      secrets_key: secretsKey,
      owner_id,
      next_tenant,
      values: {},
    })
    return true
  })
}

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

async function countKeyless(store: Store, tenant: number): Promise<number> {
  const applications = await readAll(store, 'application', tenant)
  return store.read(async (reader) => {
    let count = 0
    for (const application of applications) {
      const entries = keysOf(application).map(({ hash }) => reader.get('api_key', 0, hash))
      if ((await Promise.all(entries)).includes(undefined)) count++
    }
    return count
  })
}

/** Restores the sets of containers, by which tokens are found for callers who may read only some. */
async function repairContainers(store: Store, tenant: number): Promise<void> {
  const sets = new Map<string, string[]>()
  for await (const { containers } of eachRecord(store, 'token', tenant))
    sets.set(containerSetId(containers), containerSet(containers))
  await store.write(async (writer) => {
    for (const [id, containers] of sets) {
      if ((await writer.get('containers', tenant, id)) === undefined)
        await writer.insert('containers', tenant, { id, containers })
    }
  })
}

async function noteSalvage(store: Store, { id, number }: TenantRecord, missing: number, traceId: string) {
  await store.write(async (writer) =>
    writer.log(number, {
      tenant_id: id,
      actor_type: 'system',
      entity_type: 'tenant',
      entity_id: id,
      operation: 'update',
      message: `Vault salvaged; log records missing: ${missing === 0 ? 'none known' : `${missing} or more`}`,
      created_at: formatDate(writer.now),
      trace_id: traceId,
    }),
  )
}
