/** Creates and finds tenants. */
import { formatDate } from '../../domain/dates.js'
import type { SettingsRecord, TenantKeyBytes, TenantRecord } from '../../domain/records/records.js'
import { CofferError, conflict, usage } from '../../errors.js'
import { findNewest, readAll } from '../../storage/pages.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'
import { readSettings } from '../config/settings-record.js'

const MOST_TENANTS = 65_535
/** Shorter text is not looked for as the beginning of an id. */
const LEAST_BEGINNING = 4

/** Creates the records of a new vault: its settings, and the user who owns it. */
export async function createVaultRecords(
  store: StoreWriter,
  { secretsKey, ownerId }: { secretsKey: string; ownerId: string },
): Promise<void> {
  const settings: SettingsRecord = {
    id: 'vault',
    secrets_key: secretsKey,
    owner_id: ownerId,
    next_tenant: 1,
    values: {},
  }
  await store.insert('settings', 0, settings)
  await store.insert('user', 0, { id: ownerId, created_at: formatDate(store.now) })
}

/** The vault's owner owns the tenant. @throws CofferError `conflict` for a name in use, `unprocessable` beyond the limit */
export async function createTenant(
  store: StoreWriter,
  { name, keys, createUuid }: { name: string; keys: TenantKeyBytes; createUuid(): string },
): Promise<TenantRecord> {
  const settings = await readSettings(store)
  const { next_tenant: number, owner_id } = settings
  if (number > MOST_TENANTS)
    throw new CofferError(
      'unprocessable',
      `A vault can have at most ${MOST_TENANTS} tenants, deleted ones included.`,
    )
  const sameName = await findNewest(store, 'tenant', 0, { field: 'name', value: name.toLowerCase() })
  if (sameName !== undefined) throw conflict('There is already a tenant with this name.')
  const created_at = formatDate(store.now)
  const tenant: TenantRecord = {
    number,
    id: createUuid(),
    owner_id,
    name,
    settings: {},
    keys,
    created_by: owner_id,
    created_at,
  }
  await store.insert('tenant', 0, tenant, { fresh: true })
  await store.replace('settings', 0, { ...settings, next_tenant: number + 1 })
  await store.insert('member', number, {
    id: createUuid(),
    tenant_id: tenant.id,
    role: 'OWNER',
    user_id: owner_id,
    created_by: owner_id,
    created_at,
  })
  await store.log(number, {
    tenant_id: tenant.id,
    actor_id: owner_id,
    actor_type: 'user',
    entity_type: 'tenant',
    entity_id: tenant.id,
    operation: 'create',
    message: 'Tenant created',
    created_at,
    trace_id: createUuid(),
  })
  return tenant
}

/** Finds by id, name (in any case) or unique start of an id. @throws CofferError `not_found`, `usage` for a shared name */
export async function findTenant(store: StoreReader, nameOrId: string): Promise<TenantRecord> {
  for (const field of ['id', 'name']) {
    const where = { field, value: field === 'name' ? nameOrId.toLowerCase() : nameOrId }
    const { records, total } = await store.find('tenant', 0, { where, page: 1, size: 1 })
    // A tenant may rename itself to any name, because a refusal would disclose the names of other tenants.
    if (total > 1) throw usage('Several tenants have this name. Give an id from: coffer tenant list')
    const [tenant] = records
    if (tenant !== undefined) return tenant
  }
  const beginning = nameOrId.toLowerCase()
  const all = beginning.length < LEAST_BEGINNING ? [] : await readAll(store, 'tenant', 0)
  const [found, ...others] = all.filter(({ id }) => id.startsWith(beginning))
  if (found !== undefined && others.length === 0) return found
  throw new CofferError('not_found', 'There is no tenant with this name or id. Run: coffer tenant list')
}
