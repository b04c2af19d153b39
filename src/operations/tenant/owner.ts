/** The owner of a tenant is the only member with the role OWNER. */
import type { MemberRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { requires } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import { idOf, inputSchema } from '../../framework/schema.js'
import { findNewest, readAll } from '../../storage/store.js'
import { modified } from '../manage.js'
import { memberOutput, members, viewMember } from '../member/noun.js'

const isOwner = { field: 'role', value: 'OWNER' }

const getOwner = query({
  name: 'tenant owner',
  summary: 'Show the member who owns your tenant.',
  access: requires('tenant:read'),
  route: 'GET /tenants/self/owner',
  output: memberOutput,
  examples: ['coffer tenant owner'],
  log: { operation: 'read', message: 'Tenant owner retrieved' },
  async run(context) {
    const { store, caller, audit } = context
    const owner = await findNewest(store, 'member', caller.tenant, isOwner)
    if (owner === undefined) throw new CofferError('not_found', 'This tenant has no owner.')
    audit.record('member', owner.id)
    return viewMember(store, owner)
  },
})

const transferOwner = change({
  name: 'tenant transfer-owner',
  summary: 'Make another member the owner of your tenant.',
  details:
    'The previous owner becomes an ADMIN. Coffer stores and shows roles, but roles do not restrict anything: everyone who\n' +
    'can open the vault is still allowed to do everything.',
  access: requires('tenant:update'),
  route: 'PUT /tenants/self/owner',
  input: inputSchema(['member_id'], {
    member_id: idOf('member', 'The id of the membership of the new owner; or the e-mail address.'),
  }),
  output: memberOutput,
  cli: { positionals: ['member_id'] },
  examples: ['coffer tenant transfer-owner ada@example.com'],
  log: { operation: 'update', message: 'Tenant owner changed', derivesNoEvent: true },
  async run(context, { member_id }) {
    const { store } = context
    const next = await members.require(context, member_id)
    if ((await store.get('user', 0, next.user_id)) === undefined)
      throw new CofferError('unprocessable', 'This member has no user, so it cannot own a tenant.')
    return viewMember(store, next.role === 'OWNER' ? next : await makeOwner(context, next))
  },
})

async function makeOwner(context: Context, next: MemberRecord): Promise<MemberRecord> {
  const { store, caller, audit } = context
  for (const before of await readAll(store, 'member', caller.tenant, isOwner))
    await members.change(context, before, { role: 'ADMIN' })
  const owner = await members.change(context, next, { role: 'OWNER' })
  const tenant = await context.tenant()
  await store.replace('tenant', 0, { ...tenant, owner_id: owner.user_id, ...modified(context) })
  audit.record('tenant', tenant.id)
  return owner
}

export const ownerOperations = [getOwner, transferOwner] as const
