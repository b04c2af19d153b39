/**
 * Puts the records of a salvaged vault in order: what leads to a record that is lost goes, what can be made anew is made,
 * and each tenant's log says what it lacks.
 */

import { containerSet, containerSetId } from '../../domain/container.js'
import { formatDate } from '../../domain/dates.js'
import type { Kind, RecordOf, TenantRecord } from '../../domain/records.js'
import type { Store } from '../store.js'

const PAGE = 1000

/** What mending did, for those who ask what they have to do themselves. */
export interface Mended {
  /** Links that led to a lost token. */
  links_left_out: number
  /** Applications whose key works no more; it can be regenerated. */
  applications_without_key: number
  /** The vault's settings were lost: they begin anew, and no API key from before works. */
  settings_lost: boolean
}

/** @param missingLogs log records known to be missing, by tenant. */
export async function mendRecords(
  store: Store,
  missingLogs: ReadonlyMap<number, number>,
  powers: { secretsKey: string; createUuid(): string },
): Promise<Mended> {
  const mended: Mended = { links_left_out: 0, applications_without_key: 0, settings_lost: false }
  const tenants = await collect(store, 'tenant', 0)
  mended.settings_lost = await mendSettings(store, tenants, powers)
  for (const tenant of tenants) {
    mended.links_left_out += await removeLooseLinks(store, tenant.number)
    mended.applications_without_key += await countKeyless(store, tenant.number)
    await mendContainers(store, tenant.number)
    await noteSalvage(store, tenant, missingLogs.get(tenant.number) ?? 0, powers.createUuid())
  }
  return mended
}

async function mendSettings(
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
  const links = await collect(store, 'association', tenant)
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
  const applications = await collect(store, 'application', tenant)
  return store.read(async (reader) => {
    let count = 0
    for (const { key_hash } of applications)
      if ((await reader.get('api_key', 0, key_hash)) === undefined) count++
    return count
  })
}

/** By these sets tokens are found for those who may read only some. */
async function mendContainers(store: Store, tenant: number): Promise<void> {
  const sets = new Map<string, string[]>()
  for await (const { containers } of each(store, 'token', tenant))
    sets.set(containerSetId(containers), containerSet(containers))
  await store.write(async (writer) => {
    for (const [id, containers] of sets) {
      if ((await writer.get('containers', tenant, id)) === undefined)
        await writer.insert('containers', tenant, { id, containers })
    }
  })
}

async function noteSalvage(
  store: Store,
  { id, number }: TenantRecord,
  missing: number,
  traceId: string,
): Promise<void> {
  await store.write((writer) =>
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

async function* each<K extends Kind>(store: Store, kind: K, tenant: number): AsyncGenerator<RecordOf[K]> {
  for (let page = 1; ; page++) {
    const { records, total } = await store.read((reader) => reader.find(kind, tenant, { page, size: PAGE }))
    yield* records
    if (page * PAGE >= total) return
  }
}

async function collect<K extends Kind>(store: Store, kind: K, tenant: number): Promise<RecordOf[K][]> {
  const records: RecordOf[K][] = []
  for await (const record of each(store, kind, tenant)) records.push(record)
  return records
}
