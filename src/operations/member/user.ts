/**
 * Users. A person is one user in the whole vault, found by the e-mail address, and may be a member of several tenants.
 */
import { formatDate } from '../../domain/dates.js'
import { normalizeEmail } from '../../domain/email.js'
import type { PersonNames } from '../../domain/invitation.js'
import type { UserRecord } from '../../domain/records.js'
import { findNewest } from '../../storage/pages.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'

export async function findUser(reader: StoreReader, email: string): Promise<UserRecord | undefined> {
  return findNewest(reader, 'user', 0, { field: 'email', value: normalizeEmail(email) })
}

export async function findMember(reader: StoreReader, tenant: number, userId: string) {
  return findNewest(reader, 'member', tenant, { field: 'user', value: userId })
}

export async function isMember(reader: StoreReader, tenant: number, email: string): Promise<boolean> {
  const user = await findUser(reader, email)
  return user !== undefined && (await findMember(reader, tenant, user.id)) !== undefined
}

/** Adds the tenant to the user with this address, or creates the user. The names of an existing user are kept. */
export async function joinTenant(
  store: StoreWriter,
  tenant: number,
  { email, ...names }: PersonNames & { email: string },
  createUuid: () => string,
): Promise<UserRecord> {
  const known = await findUser(store, email)
  if (known === undefined) {
    const user = { id: createUuid(), tenants: [tenant], email, ...names, created_at: formatDate(store.now) }
    await store.insert('user', 0, user, { fresh: true })
    return user
  }
  const tenants = [...new Set([...(known.tenants ?? []), tenant])]
  const user = { ...names, ...known, tenants }
  await store.replace('user', 0, user)
  return user
}

/** Removes the tenant from the user; a user without tenants is removed, the vault's owner excepted. */
export async function leaveTenant(store: StoreWriter, tenant: number, userId: string): Promise<void> {
  const user = await store.get('user', 0, userId)
  if (user?.tenants === undefined) return
  const tenants = user.tenants.filter((each) => each !== tenant)
  if (tenants.length === 0) await store.remove('user', 0, userId)
  else await store.replace('user', 0, { ...user, tenants })
}
