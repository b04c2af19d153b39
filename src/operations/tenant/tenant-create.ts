/** How a tenant comes to be: its record with its keys, its owner as a member, and the log record that says so. */
import { formatDate } from '../../domain/dates.js'
import type { SettingsRecord, TenantKeyBytes, TenantRecord } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import type { StoreWriter } from '../../storage/store.js'

const MOST_TENANTS = 65_535

/** `createUuid` and `keys` bring the randomness. */
export interface NewTenant {
  name: string
  keys: TenantKeyBytes
  createUuid(): string
}

/** The first record of a vault, and the user who owns it. */
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

/**
 * Another tenant of the vault, owned by the vault's owner.
 * @throws CofferError `conflict` for a name that is taken, `unprocessable` when a vault can hold no more
 */
export async function createTenant(
  store: StoreWriter,
  { name, keys, createUuid }: NewTenant,
): Promise<TenantRecord> {
  const settings = await store.get('settings', 0, 'vault')
  if (settings === undefined) throw new CofferError('vault_damaged', 'The settings of the vault are missing.')
  const { next_tenant: number, owner_id } = settings
  if (number > MOST_TENANTS)
    throw new CofferError('unprocessable', `A vault has had at most ${MOST_TENANTS} tenants.`)
  const sameName = await store.find('tenant', 0, {
    where: { field: 'name', value: name.toLowerCase() },
    page: 1,
    size: 1,
  })
  if (sameName.total > 0) throw new CofferError('conflict', 'There is a tenant with this name already.')
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

/**
 * The tenant with this id, or this name (whatever its case).
 * @throws CofferError `not_found`, `usage` for a name that several have
 */
export async function findTenant(store: Pick<StoreWriter, 'find'>, nameOrId: string): Promise<TenantRecord> {
  for (const field of ['id', 'name']) {
    const where = { field, value: field === 'name' ? nameOrId.toLowerCase() : nameOrId }
    const { records, total } = await store.find('tenant', 0, { where, page: 1, size: 1 })
    // A tenant may call itself as it likes: that another has the name already is nothing it may learn.
    if (total > 1)
      throw new CofferError('usage', 'Several tenants have this name. Name one by its id: coffer tenant list')
    const [tenant] = records
    if (tenant !== undefined) return tenant
  }
  throw new CofferError('not_found', 'There is no tenant with this name or id. Run: coffer tenant list')
}
