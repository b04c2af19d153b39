import { formatDate } from '../../domain/dates.js'
import type { SettingsRecord, TenantKeyBytes, TenantRecord } from '../../domain/records/records.js'
import { MAX_NAME_LENGTH, NAME_PATTERN } from '../../domain/text/display-name.js'
import { CofferError, conflict, damaged, usage, validationError } from '../../errors.js'
import { writeEntries } from '../../framework/events.js'
import { findNewest, readAll, type StoreReader, type StoreWriter } from '../../storage/store.js'

const MAX_TENANTS = 65_535
/** A text with fewer characters is not compared with the beginnings of ids. */
const MIN_BEGINNING = 4
/** An error message contains at most this many characters of an unknown name. */
const SHOWN = 60

export async function createVaultRecords(
  store: StoreWriter,
  { secretsKey: secrets_key, ownerId: owner_id }: { secretsKey: string; ownerId: string },
): Promise<void> {
  await store.insert('settings', 0, { id: 'vault', secrets_key, owner_id, next_tenant: 1, values: {} })
  await store.insert('user', 0, { id: owner_id, created_at: formatDate(store.now) })
}

/**
 * Creates a tenant that the owner of the vault owns.
 * @throws CofferError `conflict` if the name is in use, or `unprocessable` beyond the limit
 */
export async function createTenant(
  store: StoreWriter,
  { name, keys, createUuid }: { name: string; keys: TenantKeyBytes; createUuid(): string },
): Promise<TenantRecord> {
  const settings = await readSettings(store)
  const { next_tenant: number, owner_id } = settings
  if (number > MAX_TENANTS)
    throw new CofferError(
      'unprocessable',
      `A vault has at most ${MAX_TENANTS} tenants, including deleted ones.`,
    )
  const sameName = await findNewest(store, 'tenant', 0, { field: 'name', value: name.toLowerCase() })
  if (sameName !== undefined) throw conflict('There is already a tenant with this name.')
  const made = { created_by: owner_id, created_at: formatDate(store.now) }
  const tenant: TenantRecord = { number, id: createUuid(), owner_id, name, settings: {}, keys, ...made }
  await store.insert('tenant', 0, tenant, { fresh: true })
  await store.replace('settings', 0, { ...settings, next_tenant: number + 1 })
  const { id: tenant_id } = tenant
  const member = { id: createUuid(), tenant_id, role: 'OWNER', user_id: owner_id, ...made } as const
  await store.insert('member', number, member)
  const as = { operation: 'create', message: 'Tenant created' } as const
  const entry = { type: 'tenant', id: tenant_id, as, actor: { type: 'user', id: owner_id } } as const
  await writeEntries({ store, createUuid }, tenant, [entry], createUuid())
  return tenant
}

/**
 * Finds a tenant by its id, by its name in upper or lower case, or by the beginning of its id if only one tenant
 * matches. If `nameOrId` is absent, finds the oldest tenant.
 * @throws CofferError `not_found`, or `usage` if several tenants have the name
 */
export async function findTenant(store: StoreReader, nameOrId?: string): Promise<TenantRecord> {
  if (nameOrId === undefined) return findOldest(store)
  const values = { id: nameOrId, name: nameOrId.toLowerCase() }
  for (const [field, value] of Object.entries(values)) {
    const { records, total } = await store.find('tenant', 0, { where: { field, value }, page: 1, size: 1 })
    // A tenant can be renamed to the name of another tenant, because an error would disclose that tenant.
    if (total > 1) throw usage('Several tenants have this name. Give an id from: coffer tenant list')
    if (records[0] !== undefined) return records[0]
  }
  const all = nameOrId.length < MIN_BEGINNING ? [] : await readAll(store, 'tenant', 0)
  const [found, ...others] = all.filter(({ id }) => id.startsWith(values.name))
  if (found !== undefined && others.length === 0) return found
  throw new CofferError('not_found', `No tenant "${nameOrId.slice(0, SHOWN)}". List them: coffer tenant list`)
}

async function findOldest(store: StoreReader): Promise<TenantRecord> {
  // Reading a record by its number is faster than a search.
  const first = await store.get('tenant', 0, '1')
  if (first !== undefined) return first
  const { total } = await store.find('tenant', 0, { page: 1, size: 1 })
  const [oldest] = (await store.find('tenant', 0, { page: Math.max(total, 1), size: 1 })).records
  if (oldest !== undefined) return oldest
  throw new CofferError('not_found', 'This vault has no tenant. Create one: coffer tenant create NAME')
}

/** Names of tenants are shown in mails, prompts and tables. @throws CofferError `validation`, without a path */
export function checkTenantName(name: string): void {
  if (name.trim() === '' || [...name].length > MAX_NAME_LENGTH)
    throw validationError(`must have 1 to ${MAX_NAME_LENGTH} characters, not all of them blank`)
  if (!new RegExp(NAME_PATTERN, 'u').test(name))
    throw validationError('must be one line without control characters')
}

export async function readSettings(reader: Pick<StoreReader, 'get'>): Promise<SettingsRecord> {
  const settings = await reader.get('settings', 0, 'vault')
  if (settings !== undefined) return settings
  throw damaged('The settings of the vault are missing')
}
