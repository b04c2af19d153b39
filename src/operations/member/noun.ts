import { GIVEN_ROLES, ROLES, type Role } from '../../domain/access/permissions.js'
import { formatDate } from '../../domain/dates.js'
import type { PersonNames } from '../../domain/invitation/invitation.js'
import { normalizeEmail } from '../../domain/invitation/mail-server.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { MemberRecord, TenantRecord, UserRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import { anyKey } from '../../framework/declaration.js'
import { change, list, query } from '../../framework/operation.js'
import { arrayOf, component, date, enumOf, optionalAudit, text, uuid } from '../../framework/output.js'
import { pageInput } from '../../framework/page.js'
import { filterBy, type Infer, idOf, inputSchema } from '../../framework/schema.js'
import { findNewest, readAll, type StoreReader, type StoreWriter } from '../../storage/store.js'
import { manage, whereIn } from '../manage.js'

const columns = ['id', 'role', 'user.email', 'user.first_name', 'user.last_name', 'created_at']
export const memberOutput = component('Member', columns, {
  id: uuid,
  tenant_id: uuid,
  role: enumOf(...ROLES),
  user: component('User', [], {
    id: uuid,
    'email?': text,
    'first_name?': text,
    'last_name?': text,
    'picture?': text,
  }),
  ...optionalAudit,
  'created_date?': { ...date, description: 'Equal to created_at.' },
})

export type MemberView = Infer<typeof memberOutput>

export const givenRole = {
  type: 'string',
  enum: GIVEN_ROLES,
  description: `The role: one of ${GIVEN_ROLES.join(', ')}.`,
} as const
const id = idOf('member', 'The id of the membership, not of the user; or the e-mail address.')

export const members = manage({
  name: 'member',
  kind: 'member',
  path: '/tenants/self/members',
  permission: 'tenant:member',
  id,
  output: memberOutput,
  view: ({ store }, record) => viewMember(store, record),
})

const listMembers = list({
  ...members.listDeclaration,
  summary: 'List the members of your tenant, newest first.',
  input: inputSchema([], { user_id: filterBy('Only the membership of this user.'), ...pageInput(50) }),
  examples: ['coffer member list'],
  run: (session, { user_id, ...asked }) =>
    members.list(session, { ...asked, where: whereIn('user', user_id) }),
})

const updateMember = change({
  ...members.updateDeclaration,
  summary: 'Change the role of a member.',
  details:
    'The role of the owner cannot be changed. Coffer stores and shows roles, but roles do not restrict anything.',
  http: { body: { types: ['application/json', 'application/json-patch+json'] } },
  input: inputSchema(['id', 'role'], { id, role: givenRole }),
  examples: ['coffer member update ada@example.com --role READ_ONLY'],
  async run(context, input) {
    const before = await members.require(context, input.id)
    if (before.role === 'OWNER')
      throw new CofferError('unprocessable', 'The role of the owner of a tenant cannot be changed.')
    return viewMember(context.store, await members.change(context, before, { role: input.role }))
  },
})

const listRoles = query({
  name: 'member roles',
  summary: 'List the roles of members.',
  access: anyKey,
  route: 'GET /roles',
  output: arrayOf(component('Role', ['name'], { name: enumOf(...ROLES) })),
  examples: ['coffer member roles'],
  run: async () => ROLES.map((name) => ({ name })),
})

const deleteMember = members.delete({
  summary: 'Remove a member from your tenant.',
  details: 'The owner cannot be removed.',
  examples: ['coffer member delete ada@example.com --yes'],
  confirmation: 'This removes all access of member',
  async before({ store, caller }, { role, user_id }) {
    if (role === 'OWNER')
      throw new CofferError('unprocessable', 'The owner of a tenant cannot be removed from it.')
    await leaveTenant(store, caller.tenant, user_id)
  },
})

export async function viewMember(
  reader: StoreReader,
  { id, tenant_id, role, user_id, ...made }: MemberRecord,
): Promise<MemberView> {
  const user = await reader.get('user', 0, user_id)
  const { tenants: _, created_at: __, ...view } = user ?? { id: user_id, created_at: '' }
  const { created_at: created_date } = made
  return { id, tenant_id, role, user: view, ...made, ...omitUndefined({ created_date }) }
}

/**
 * Must be called before the tenant is deleted. The users and invitation links belong to the vault, so the deletion of
 * the tenant does not remove them.
 */
export async function removePeople(store: StoreReader & StoreWriter, tenant: number): Promise<void> {
  for (const { user_id } of await readAll(store, 'member', tenant)) await leaveTenant(store, tenant, user_id)
  const where = { field: 'tenant', value: String(tenant) }
  for (const { id } of await readAll(store, 'link', 0, where)) await store.remove('link', 0, id)
}

function findUser(reader: StoreReader, email: string): Promise<UserRecord | undefined> {
  return findNewest(reader, 'user', 0, { field: 'email', value: normalizeEmail(email) })
}

export async function isMember(reader: StoreReader, tenant: number, email: string): Promise<boolean> {
  const user = await findUser(reader, email)
  if (user === undefined) return false
  return (await findNewest(reader, 'member', tenant, { field: 'user', value: user.id })) !== undefined
}

/** Creates the user if no user has this address. An existing user keeps the stored names. */
export async function addMember(
  store: StoreWriter,
  { number, id: tenant_id }: TenantRecord,
  person: PersonNames & { email: string; role: Role; createdBy?: string },
  createUuid: () => string,
): Promise<MemberRecord> {
  const { email, role, createdBy, ...names } = person
  const created_at = formatDate(store.now)
  const known = await findUser(store, email)
  const tenants = [...new Set([...(known?.tenants ?? []), number])]
  const user: UserRecord = { id: createUuid(), email, ...names, created_at, ...known, tenants }
  if (known === undefined) await store.insert('user', 0, user, { fresh: true })
  else await store.replace('user', 0, user)
  const made = { created_by: createdBy ?? user.id, created_at }
  const member: MemberRecord = { id: createUuid(), tenant_id, role, user_id: user.id, ...made }
  await store.insert('member', number, member, { fresh: true })
  return member
}

/** Removes the tenant from the user. A user without tenants is removed too, unless the user owns the vault. */
export async function leaveTenant(store: StoreWriter, tenant: number, userId: string): Promise<void> {
  const user = await store.get('user', 0, userId)
  if (user?.tenants === undefined) return
  const tenants = user.tenants.filter((each) => each !== tenant)
  if (tenants.length === 0) await store.remove('user', 0, userId)
  else await store.replace('user', 0, { ...user, tenants })
}

export const noun = {
  name: 'member',
  summary: 'List, change and remove members of your tenant',
  operations: [listMembers, updateMember, deleteMember, listRoles],
}
