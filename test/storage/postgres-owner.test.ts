/** Two servers share a vault in PostgreSQL, and at the same time change the owner of a tenant or create merchants. */
import t from 'tap'
import { addMember } from '../../src/operations/member/noun.js'
import { createVault, openVault } from '../../src/vault/open.js'
import { ask, createKey, locate } from '../support/vault.js'
import { startPostgres } from './postgres-server.js'

const server = await startPostgres()
t.teardown(() => server.stop())

t.test('a tenant has exactly one owner, and each name of a merchant is used once', async (t) => {
  const address = await server.createDatabase()
  const key = createKey()
  const apps = [
    await createVault(locate(address), 'first', key.create),
    await openVault(locate(address), key.choose),
  ] as const
  t.teardown(() => Promise.all(apps.map((app) => app.close())))
  const [app] = apps
  const tenant = await app.tenant()
  const added: string[] = []
  for (const email of ['ada@example.com', 'eve@example.com']) {
    const person = { email, role: 'READ_ONLY' } as const
    const member = await app.store.write((store) => addMember(store, tenant, person, app.createUuid))
    added.push(member.id)
  }
  const changes = [...added, ...added].flatMap((member_id) =>
    apps.map((each) => ask(each, 'tenant transfer-owner', { member_id })),
  )
  await Promise.all(changes)
  const { data } = await ask(apps[1], 'member list')
  const owners = (data as { id: string; role: string; user: { id: string } }[]).filter(
    ({ role }) => role === 'OWNER',
  )
  t.equal(owners.length, 1)
  t.ok(added.includes(owners[0]!.id))
  for (const each of apps) t.equal((await ask(each, 'tenant get')).owner_id, owners[0]!.user.id)

  const made = await Promise.allSettled(
    [...apps, ...apps].map((each) => ask(each, 'tenant merchant create', { name: 'shop' })),
  )
  t.equal(made.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const each of made) if (each.status === 'rejected') t.match(each.reason, { code: 'conflict' })
})
