/** The owner of a tenant changes, and there is always exactly one owner. */
import t, { type Test } from 'tap'
import type { MemberRecord } from '../../src/domain/records/records.js'
import { addMember } from '../../src/operations/member/noun.js'
import { openTestVault } from '../support/test-vault.js'

const EMAILS = ['ada@example.com', 'eve@example.com', 'grace@example.com', 'alan@example.com']

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { app, ask } = vault
  const tenant = await app.tenant()
  const add = (email: string) =>
    app.store.write((store) => addMember(store, tenant, { email, role: 'READ_ONLY' }, app.createUuid))
  const added: MemberRecord[] = []
  for (const email of EMAILS) added.push(await add(email))
  const first = await ask('tenant owner')
  const owners = async () => (await ask('member list')).data.filter(({ role }) => role === 'OWNER')
  return { ...vault, tenant, added, first, owners }
}

t.test('a member becomes the owner, and the previous owner becomes an ADMIN', async (t) => {
  const { ask, added, first, owners, tenant } = await open(t)
  const [ada] = added
  const changed = await ask('tenant transfer-owner', { member_id: ada!.id })
  t.match(changed, { id: ada!.id, role: 'OWNER', user: { email: 'ada@example.com' }, modified_at: String })
  t.strictSame(await ask('tenant owner'), changed)
  t.strictSame(
    (await owners()).map(({ id }) => id),
    [ada!.id],
  )
  const { data } = await ask('member list')
  t.match(
    data.find(({ id }) => id === first.id),
    { role: 'ADMIN' },
  )
  t.match(await ask('tenant get'), { owner_id: ada!.user_id, modified_by: tenant.owner_id })
  t.match((await ask('log list', { entity_type: 'tenant', size: 5 })).data, [
    { operation: 'read' },
    { operation: 'update', message: 'Tenant owner changed', actor_id: tenant.owner_id },
  ])
  const { data: logged } = await ask('log list', { entity_type: 'member' })
  const updated = logged.filter(({ operation }) => operation === 'update').map((each) => each.entity_id)
  t.strictSame(updated.sort(), [first.id, ada!.id].sort())
})

t.test('the new owner cannot be removed, and the previous owner can', async (t) => {
  const { ask, statusOf, app, added, first } = await open(t)
  const owner = () => app.owner({ reveal: false })
  await ask('tenant transfer-owner', { member_id: added[0]!.id })
  t.equal(await statusOf(owner, 'member delete', { id: added[0]!.id }), 422)
  t.equal(await statusOf(owner, 'member update', { id: added[0]!.id, role: 'ADMIN' }), 422)
  t.equal(await statusOf(owner, 'member delete', { id: first.id }), 204)
  t.equal(await statusOf(owner, 'tenant transfer-owner', { member_id: first.id }), 404)
  t.equal(await statusOf(owner, 'member list'), 200, 'the owner of the vault may still do everything')
})

t.test('commands act as the owner of the vault, also after the tenant has another owner', async (t) => {
  const { ask, added, tenant } = await open(t)
  await ask('tenant transfer-owner', { member_id: added[0]!.id })
  const { created_by } = await ask('token create', { type: 'token', data: 'x' })
  t.equal(created_by, tenant.owner_id)
})

t.test('a member without a user cannot own a tenant', async (t) => {
  const { ask, app, added, owners, first } = await open(t)
  await app.store.write((store) => store.remove('user', 0, added[0]!.user_id))
  await t.rejects(ask('tenant transfer-owner', { member_id: added[0]!.id }), { code: 'unprocessable' })
  t.match(await owners(), [{ id: first.id }])
})

t.test('concurrent changes leave exactly one owner', async (t) => {
  const { ask, added, owners } = await open(t)
  const changes = [...added, ...added].map(({ id }) => ask('tenant transfer-owner', { member_id: id }))
  await Promise.all(changes)
  const [owner, ...others] = await owners()
  t.strictSame(others, [])
  t.strictSame(await ask('tenant owner'), owner)
  t.equal((await ask('tenant get')).owner_id, owner?.user.id)
})

t.test('if concurrent requests create merchants with one name, one merchant is created', async (t) => {
  const { ask } = await open(t)
  const made = await Promise.allSettled(EMAILS.map(() => ask('tenant merchant create', { name: 'shop' })))
  t.equal(made.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const each of made) if (each.status === 'rejected') t.match(each.reason, { code: 'conflict' })
  t.equal((await ask('tenant merchant list')).pagination.total_items, 1)
})

t.test('an application can be created with the type and the rights of each template', async (t) => {
  const { ask } = await open(t)
  for (const { name, application_type: type, rules, permissions } of await ask('app template list'))
    t.match(await ask('app create', { name, type, rules, permissions }), { type, rules, permissions })
})

t.test('a deleted tenant leaves no merchants', async (t) => {
  const { ask, app, createTenant } = await open(t)
  const id = await createTenant('other')
  await ask('tenant merchant create', { name: 'shop' }, id)
  const { number } = await app.tenant(id)
  await ask('tenant delete', {}, id)
  const { total } = await app.store
    .read((reader) => reader.find('merchant', number, { page: 1, size: 1 }))
    .catch(() => ({ total: 0 }))
  t.equal(total, 0)
})
