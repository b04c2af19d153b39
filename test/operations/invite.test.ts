import t, { type Test } from 'tap'
import type { InvitationView } from '../../src/domain/invitation/invitation.js'
import { acceptInvitation, DeadLink, inspectLink } from '../../src/operations/invite/accept-invitation.js'
import { randomSecret } from '../../src/operations/invite/mail.js'
import type { OutboxLetter } from '../../src/operations/invite/noun.js'
import { createHandler } from '../support/service.js'
import { openTestVault, type TestVault } from '../support/test-vault.js'

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  return vault
}

const invite = (vault: TestVault, email = 'ada@example.com', tenant?: string) =>
  vault.ask('invite create', { email }, tenant) as Promise<InvitationView>
const members = async ({ ask }: TestVault, tenant?: string) => (await ask('member list', {}, tenant)).data
const mailOf = ({ ask }: TestVault, id: string, tenant?: string) =>
  ask('invite outbox', { id }, tenant) as Promise<OutboxLetter>

/** Returns the secret in the newest mail of the invitation. */
async function secretOf(vault: TestVault, id: string, tenant?: string): Promise<string> {
  return new URL((await mailOf(vault, id, tenant)).link ?? 'x:').searchParams.get('token') ?? ''
}

const accept = ({ app }: TestVault, secret: string, names = {}) =>
  acceptInvitation(app, { secret, names, traceId: 'trace' })

/** Returns the reason why the link of an invitation is invalid, or `accepted`. */
const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'accepted',
    (error: unknown) => {
      if (error instanceof DeadLink) return error.reason
      throw error
    },
  )

t.test(
  'accepting an invitation creates a member, deletes the invitation and invalidates the link',
  async (t) => {
    const vault = await open(t)
    const { id } = await invite(vault)
    const secret = await secretOf(vault, id)
    t.same(await inspectLink(vault.app, secret), {
      tenantName: 'default',
      email: 'ada@example.com',
      expiresAt: '2030-01-18T12:00:00.000+00:00',
    })
    const outcome = await accept(vault, secret, { first_name: 'Ada', last_name: 'Lovelace' })
    const [member, owner] = await members(vault)
    t.equal(owner?.role, 'OWNER')
    t.same(outcome, member)
    const { id: userId, ...user } = member!.user
    t.same(user, { email: 'ada@example.com', first_name: 'Ada', last_name: 'Lovelace' })
    t.match(member, { role: 'ADMIN', created_by: userId, created_at: '2030-01-15T12:00:00.000+00:00' })
    const forged = `${secret[0] === 'A' ? 'B' : 'A'}${secret.slice(1)}`
    for (const guess of ['', forged, secret.toLowerCase(), `${secret}=`, secret.slice(1)])
      t.equal(await outcomeOf(accept(vault, guess)), 'unknown', guess)
    t.equal(await outcomeOf(accept(vault, secret)), 'used')
    await t.rejects(inspectLink(vault.app, secret), { code: 'not_found', status: 410 })
    await t.rejects(vault.ask('invite get', { id }), { code: 'not_found' })
    t.equal((await mailOf(vault, id)).link, undefined, 'the secret is no longer stored')
    t.match((await vault.ask('log list', {})).data.slice(0, 2), [
      { entity_type: 'member', operation: 'create', message: 'Member created', actor_id: userId },
      { entity_type: 'invitation', operation: 'update', message: 'Invitation accepted', actor_type: 'user' },
    ])
  },
)

t.test('a member gets the role of the invitation, and each change of the role is logged', async (t) => {
  const vault = await open(t)
  const { id: invited } = await vault.ask('invite create', { email: 'ada@example.com', role: 'READ_ONLY' })
  await vault.ask('invite resend', { id: invited })
  const { id, role } = await accept(vault, await secretOf(vault, invited))
  t.equal(role, 'READ_ONLY', 'the role is the same after the invitation was sent again')
  const editor = await vault.createApplication('management', { permissions: ['tenant:member:update'] })
  const handle = createHandler(vault.app)
  const put = async (type: string | undefined, body: unknown) => {
    const headers = { 'svc-api-key': editor.key, ...(type === undefined ? {} : { 'content-type': type }) }
    const init = { method: 'PUT', headers, body: Buffer.from(JSON.stringify(body)) }
    return (await handle(new Request(`http://localhost/tenants/self/members/${id}`, init))).status
  }
  for (const type of ['Application/JSON-Patch+json; charset=utf-8', undefined])
    t.equal(await put(type, { role: 'ADMIN' }), 200, type ?? 'no content type')
  t.equal(await put('application/json-patch+json', [{ op: 'replace', path: '/role', value: 'ADMIN' }]), 400)
  for (const type of ['application/merge-patch+json', 'application/json-patch+json; charset=latin1'])
    t.equal(await put(type, { role: 'ADMIN' }), 415, type)
  t.match(await members(vault), [{ id, role: 'ADMIN', modified_by: editor.id }, { role: 'OWNER' }])
  const logs = await vault.ask('log list', { entity_type: 'member', entity_id: id })
  t.match(logs.data[0], { operation: 'update', message: 'Member updated', actor_id: editor.id })
})

t.test(
  'a current member cannot be invited again in any spelling of the address, and a former member can be invited',
  async (t) => {
    const vault = await open(t)
    const [first, second] = [await invite(vault), await invite(vault)]
    const spare = await secretOf(vault, second.id)
    await accept(vault, await secretOf(vault, first.id))
    await t.rejects(invite(vault, 'ADA@example.com'), { code: 'conflict', status: 409 })
    await t.rejects(vault.ask('invite resend', { id: second.id }), { code: 'conflict' })
    t.equal(await outcomeOf(accept(vault, spare)), 'member', 'another link for the member changes nothing')
    const [member] = await members(vault)
    await vault.ask('member delete', { id: member!.id })
    t.equal((await members(vault)).length, 1)
    t.equal(
      await outcomeOf(accept(vault, spare)),
      'accepted',
      'the second invitation can still be accepted, because it was not used',
    )
    const [again] = await members(vault)
    t.not(again!.id, member!.id)
  },
)

t.test('a person is one user in all tenants, and is deleted with their last membership', async (t) => {
  const vault = await open(t)
  const other = await vault.createTenant('other')
  await accept(vault, await secretOf(vault, (await invite(vault)).id), { first_name: 'Ada' })
  const secret = await secretOf(vault, (await invite(vault, 'Ada@example.com', 'other')).id, 'other')
  await accept(vault, secret, { first_name: 'Eve', last_name: 'Lovelace' })
  const [here] = await members(vault)
  const [there] = await members(vault, 'other')
  t.equal(here!.user.id, there!.user.id)
  t.match(
    there!.user,
    { email: 'ada@example.com', first_name: 'Ada', last_name: 'Lovelace' },
    'the known name of the user is kept',
  )
  t.equal(there!.tenant_id, other)
  const userOf = () => vault.app.store.read((reader) => reader.get('user', 0, here!.user.id))
  await vault.ask('member delete', { id: here!.id })
  t.not(await userOf(), undefined)
  await vault.ask('member delete', { id: there!.id }, 'other')
  t.equal(await userOf(), undefined)
})

t.test('deleting a tenant deletes the members, the mail and the links of the tenant', async (t) => {
  const vault = await open(t)
  await vault.createTenant('other')
  const joined = await secretOf(vault, (await invite(vault, 'ada@example.com', 'other')).id, 'other')
  await accept(vault, joined)
  const [member] = await members(vault, 'other')
  const open_ = await secretOf(vault, (await invite(vault, 'eve@example.com', 'other')).id, 'other')
  await vault.ask('tenant delete', {}, 'other')
  for (const secret of [joined, open_]) t.equal(await outcomeOf(accept(vault, secret)), 'unknown')
  await vault.app.store.read(async (reader) => {
    t.equal(await reader.get('user', 0, member!.user.id), undefined)
    t.equal((await reader.find('link', 0, { page: 1, size: 1 })).total, 0)
    t.equal((await reader.find('user', 0, { page: 1, size: 1 })).total, 1, 'the owner is kept')
  })
})

t.test(
  'the secret of an invitation link is only in the mail, and the vault stores only a hash of the secret',
  async (t) => {
    const vault = await open(t)
    const invitation = await invite(vault)
    const secret = await secretOf(vault, invitation.id)
    const { app } = vault
    const stored = await app.store.read(async (reader) => [
      await reader.get('invitation', 1, invitation.id),
      (await reader.find('link', 0, { page: 1, size: 9 })).records,
      (await reader.find('log', 1, { page: 1, size: 99 })).records,
    ])
    t.notMatch(JSON.stringify([stored, invitation, await vault.ask('invite list')]), secret)
    t.match(JSON.stringify(stored[0]), /"link":"[0-9a-f]{64}"/)
  },
)

t.test('the secret of an invitation link never begins with a hyphen', (t) => {
  const draws = [0xfb, 0xf8, 0x00]
  const secret = randomSecret({ bytes: (count) => new Uint8Array(count).fill(draws.shift()!) })
  t.equal(secret, 'A'.repeat(43))
  t.end()
})
