/** Users. A person is one user in the vault, found by the e-mail address, and may be a member of several tenants. */

import type { Role } from '../../domain/access/roles.js'
import { formatDate } from '../../domain/dates.js'
import { normalizeEmail } from '../../domain/invitation/email.js'
import type { PersonNames } from '../../domain/invitation/invitation.js'
import type { MemberRecord, TenantRecord, UserRecord } from '../../domain/records/records.js'
import { findNewest } from '../../storage/pages.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'

async function findUser(reader: StoreReader, email: string): Promise<UserRecord | undefined> {
  return findNewest(reader, 'user', 0, { field: 'email', value: normalizeEmail(email) })
}

export async function isMember(reader: StoreReader, tenant: number, email: string): Promise<boolean> {
  const user = await findUser(reader, email)
  if (user === undefined) return false
  return (await findNewest(reader, 'member', tenant, { field: 'user', value: user.id })) !== undefined
}

type Person = PersonNames & { email: string }

/** `createdBy`: by default the person. */
export async function addMember(
  store: StoreWriter,
  { number, id: tenant_id }: TenantRecord,
  { role, createdBy, ...person }: Person & { role: Role; createdBy?: string },
  createUuid: () => string,
): Promise<MemberRecord> {
  const { id: user_id } = await joinTenant(store, number, person, createUuid)
  const made = { created_by: createdBy ?? user_id, created_at: formatDate(store.now) }
  const member: MemberRecord = { id: createUuid(), tenant_id, role, user_id, ...made }
  await store.insert('member', number, member, { fresh: true })
  return member
}

/** Adds the tenant to the user with this address, or creates the user. The names of an existing user are kept. */
async function joinTenant(
  store: StoreWriter,
  tenant: number,
  { email, ...names }: Person,
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
