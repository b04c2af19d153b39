/** Roles of members: who is given which, and how they are changed. */
import t from 'tap'
import type { InvitationView } from '../../src/domain/invitation/invitation.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { List } from '../../src/framework/page.js'
import { createHandler } from '../../src/http/handle.js'
import { completeService } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { acceptInvitation } from '../../src/operations/invite/accept-invitation.js'
import type { OutboxMail } from '../../src/operations/invite/outbox.js'
import type { MemberView } from '../../src/operations/member/member.js'
import { openTestVault, type TestVault } from './vault.js'

/** Invites somebody, who accepts. `before`: what happens to the invitation meanwhile. */
async function join(
  { app, ask }: TestVault,
  input: Record<string, unknown>,
  before: (id: string) => Promise<unknown> = async () => {},
): Promise<MemberView> {
  const { id } = (await ask('invite create', input)) as InvitationView
  await before(id)
  const { link = 'x:' } = (await ask('invite outbox', { id })) as OutboxMail
  const secret = new URL(link).searchParams.get('token') ?? ''
  const outcome = await acceptInvitation(app, { secret, names: {}, traceId: 'trace' })
  if ('reason' in outcome) throw new Error(outcome.reason)
  return outcome.member
}

t.test('who accepts is given the role of the invitation, sent again or not', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  t.match(await join(vault, { email: 'ada@example.com' }), { role: 'ADMIN' })
  t.match(await join(vault, { email: 'eve@example.com', role: 'READ_ONLY' }), { role: 'READ_ONLY' })
  const resend = (id: string) => vault.ask('invite resend', { id })
  t.match(await join(vault, { email: 'bob@example.com', role: 'READ_ONLY' }, resend), { role: 'READ_ONLY' })
})

t.test('a role is changed, shown and logged, and the user stays', async (t) => {
  const vault = await openTestVault()
  const { app, ask, askAs, createApplication, clock } = vault
  t.teardown(() => app.close())
  const { id, user } = await join(vault, { email: 'ada@example.com' })
  const editor = await createApplication('management', { permissions: ['tenant:member:update'] })
  clock.now += 1000
  const changed = (await askAs(editor.key, 'member update', { id, role: 'READ_ONLY' })) as MemberView
  t.match(changed, {
    id,
    role: 'READ_ONLY',
    user,
    modified_by: editor.id,
    modified_at: '2030-01-15T12:00:01.000+00:00',
  })
  const { data } = (await ask('member list', { user_id: [user.id] })) as List<MemberView>
  t.same(data, [changed])
  const logs = (await ask('log list', { entity_type: 'member', entity_id: id })) as List<object>
  t.match(logs.data, [
    { operation: 'update', message: 'Member updated', actor_id: editor.id, actor_type: 'application' },
    { operation: 'create' },
  ])
  t.match(await ask('member update', { id, role: 'ADMIN' }), { role: 'ADMIN' })
})

t.test('a role is sent as JSON, or as what clients call a JSON patch', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { id } = await join(vault, { email: 'ada@example.com' })
  const { key } = await vault.createApplication('management', { permissions: ['tenant:member:update'] })
  const handle = createHandler(completeService({ host: vault.app, registry, authenticate, version: '0.0.0' }))
  const put = async (type: string | undefined, body: unknown) => {
    const headers = { 'svc-api-key': key, ...(type === undefined ? {} : { 'content-type': type }) }
    const init = { method: 'PUT', headers, body: Buffer.from(JSON.stringify(body)) }
    return (await handle(new Request(`http://localhost/tenants/self/members/${id}`, init))).status
  }
  for (const type of [
    'application/json',
    'application/json-patch+json',
    'Application/JSON-Patch+json; charset=utf-8',
    undefined,
  ])
    t.equal(await put(type, { role: 'READ_ONLY' }), 200, type ?? 'no content type')
  t.equal(await put('application/json-patch+json', [{ op: 'replace', path: '/role', value: 'ADMIN' }]), 400)
  t.equal(await put('application/merge-patch+json', { role: 'ADMIN' }), 415)
  t.equal(await put('application/json-patch+json; charset=latin1', { role: 'ADMIN' }), 415)
})
