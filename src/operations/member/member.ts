/** Members of the tenant. Accepting an invitation creates one. */

import { GIVEN_ROLES, ROLES } from '../../domain/access/roles.js'
import type { MemberRecord, UserRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import { operation } from '../../framework/operation.js'
import { arrayOf, component, enumOf, optionalAudit, text, uuid } from '../../framework/output.js'
import { pageInput } from '../../framework/page.js'
import { filterBy, type Infer, idOf, inputSchema } from '../../framework/schema.js'
import { readAll } from '../../storage/pages.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'
import { anyOf, manage, modified } from '../manage.js'
import { leaveTenant } from './user.js'

const userOutput = component('User', [], {
  id: uuid,
  'email?': text,
  'first_name?': text,
  'last_name?': text,
  'picture?': text,
})
export const memberOutput = component(
  'Member',
  ['id', 'role', 'user.email', 'user.first_name', 'user.last_name', 'created_at'],
  {
    id: uuid,
    tenant_id: uuid,
    role: enumOf(...ROLES),
    user: userOutput,
    ...optionalAudit,
  },
)

export type MemberView = Infer<typeof memberOutput>

const id = idOf('member', 'The id of the membership, not of the user; or the e-mail address.')

const members = manage({
  name: 'member',
  called: 'a member',
  title: 'Member',
  kind: 'member',
  path: '/tenants/self/members',
  permission: 'tenant:member',
  id,
  output: memberOutput,
  view: ({ store }, record) => viewMember(store, record),
})

export const listMembers = operation({
  ...members.listing,
  summary: 'List the members of your tenant, newest first.',
  input: inputSchema([], { user_id: filterBy('Only the membership of this user.'), ...pageInput(50) }),
  examples: ['coffer member list'],
  runDetached: (session, { user_id, ...asked }) =>
    members.list(session, asked, undefined, anyOf('user', user_id)),
})

export const updateMember = operation({
  ...members.updating,
  summary: 'Change the role of a member.',
  details: 'The role of the owner cannot be changed. Roles are recorded and shown; they limit nothing here.',
  alsoContentType: 'application/json-patch+json',
  input: inputSchema(['id', 'role'], {
    id,
    role: { type: 'string', enum: GIVEN_ROLES, description: `One of ${GIVEN_ROLES.join(', ')}.` },
  }),
  examples: ['coffer member update ada@example.com --role READ_ONLY'],
  async run(context, input) {
    const before = await members.require(context, input.id)
    if (before.role === 'OWNER')
      throw new CofferError('unprocessable', 'The role of the owner of a tenant cannot be changed.')
    const record = { ...before, role: input.role, ...modified(context) }
    return viewMember(context.store, await members.replace(context, record))
  },
})

export const listRoles = operation({
  name: 'member roles',
  summary: 'List the roles of members.',
  permissions: [],
  route: 'GET /roles',
  input: inputSchema([], {}),
  output: arrayOf(component('Role', ['name'], { name: enumOf(...ROLES) })),
  examples: ['coffer member roles'],
  run: async () => ROLES.map((name) => ({ name })),
})

export const deleteMember = members.delete({
  summary: 'Remove a member, with all access to your tenant.',
  details: 'The owner cannot be removed.',
  examples: ['coffer member delete ada@example.com --yes'],
  destroys: 'This removes all access of member',
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
  return { id, tenant_id, role, user: user === undefined ? { id: user_id } : viewUser(user), ...made }
}

function viewUser({ tenants: _, created_at: __, ...view }: UserRecord): MemberView['user'] {
  return view
}

/** Called before a tenant is deleted, because records of the vault refer to its members and invitation links. */
export async function removePeople(store: StoreReader & StoreWriter, tenant: number): Promise<void> {
  for (const { user_id } of await readAll(store, 'member', tenant)) await leaveTenant(store, tenant, user_id)
  const where = { field: 'tenant', value: String(tenant) }
  for (const { id } of await readAll(store, 'link', 0, where)) await store.remove('link', 0, id)
}
