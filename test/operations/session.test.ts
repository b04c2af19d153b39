/** What of sessions the cases of `fixtures/operations` cannot show: what is stored, purged, limited and explained. */
import t from 'tap'
import { MOST_LIVE_SESSIONS } from '../../src/domain/access/session.js'
import type { SessionRecord } from '../../src/domain/records/records.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { explain } from '../../src/framework/caller/explain.js'
import { beginBeyondAuthorizer } from '../../src/vault/sample-applications.js'
import { openTestVault, permissionsOf, requireOperation, setSetting, type TestVault } from './vault.js'

interface Session {
  session_key: string
  nonce: string
}

async function open() {
  const vault = await openTestVault()
  const page = await vault.createApplication('public', { permissions: ['token:create'] })
  const backend = await vault.createApplication('private', { permissions: permissionsOf('private') })
  const create = async () => (await vault.askAs(page.key, 'session create')) as Session
  return { ...vault, page, backend, create }
}

async function readSessions({ app }: TestVault): Promise<SessionRecord[]> {
  return app.store.read(async (store) => (await store.find('session', 0, { page: 1, size: 10 })).records)
}

t.test('of key and nonce only keyed hashes are kept, and nothing once the session has expired', async (t) => {
  const vault = await open()
  const { app, clock, backend, askAs, create } = vault
  const { session_key, nonce } = await create()
  await askAs(backend.key, 'session authorize', { nonce, permissions: ['token:read'] })
  const [record] = await readSessions(vault)
  const text = JSON.stringify(record)
  for (const secret of [session_key, session_key.slice(9), nonce]) t.notOk(text.includes(secret))
  t.match(record, { id: /^[0-9a-f]{64}$/, nonce: /^[0-9a-f]{64}$/ })
  t.not(record?.id, record?.nonce)
  clock.now += 3 * 60_000
  t.same(await readSessions(vault), [], 'an expired session is not found')
  t.equal(await app.sweep(), 1, 'and is purged')
  t.equal(await app.sweep(), 0)
})

t.test('an application has so many live sessions and no more', async (t) => {
  const vault = await open()
  const { app, clock, page, backend, askAs, create } = vault
  const { nonce } = await create()
  const another = await create()
  const expires = clock.now + 60_000
  const fill = (application_id: string, by: string) =>
    app.store.write(async (store) => {
      for (let count = 1; count < MOST_LIVE_SESSIONS; count++) {
        const id = `${application_id}-${count}`
        const authorized = { by, permissions: [], rules: [] }
        const record = { id, tenant: 1, application_id, nonce: id, expires, authorized }
        await store.insert('session', 0, record, { expires, fresh: true })
      }
    })
  await fill('somebody', backend.id)
  await askAs(backend.key, 'session authorize', { nonce, permissions: ['token:read'] })
  const authorize = { nonce: another.nonce, permissions: ['token:read'] }
  const refused = { code: 'rate_limited', status: 429, retryAfterSeconds: 180 }
  await t.rejects(askAs(backend.key, 'session authorize', authorize), refused)
  await fill(page.id, 'somebody')
  await t.rejects(create(), refused)
  clock.now += 60_000
  await create()
  await askAs(backend.key, 'session authorize', authorize)
})

t.test('a nonce of another tenant is unknown', async (t) => {
  const { create, createTenant, createApplication, askAs } = await open()
  await createTenant('second')
  const theirs = await createApplication('private', { permissions: ['token:read'] }, 'second')
  const { nonce } = await create()
  const authorize = { nonce, permissions: ['token:read'] }
  await t.rejects(askAs(theirs.key, 'session authorize', authorize), { code: 'not_found' })
})

t.test('a session ends when either application or the tenant does, at once', async (t) => {
  for (const ending of ['page', 'backend', 'tenant'] as const) {
    const { app, clock, ask, askAs, createApplication } = await openTestVault()
    const expires_at = new Date(clock.now + 1000).toISOString()
    const limits = (name: string) => (name === ending ? { expires_at } : {})
    const page = await createApplication('public', { permissions: ['token:create'], ...limits('page') })
    const backend = await createApplication('private', { permissions: ['token:read'], ...limits('backend') })
    const { session_key, nonce } = (await askAs(page.key, 'session create')) as Session
    await askAs(backend.key, 'session authorize', { nonce, permissions: ['token:read'] })
    const caller = await authenticate(app, session_key)
    t.equal(caller.actor.id, page.id)
    if (ending === 'tenant') await ask('tenant delete')
    else clock.now += 1000
    await t.rejects(authenticate(app, session_key), { code: 'unauthenticated' }, ending)
  }
})

t.test('an explanation says which condition failed, of the session and of its authorizer', async (t) => {
  const { app, ask, askAs, backend, create } = await open()
  await ask('token create', { id: 'card-1', type: 'token', data: 'x', containers: ['/a/'] })
  const { session_key, nonce } = await create()
  const condition = { attribute: 'id', operator: 'equals', value: 'card-2' }
  const rule = { transform: 'reveal', permissions: ['token:read'] }
  const rules = [
    { ...rule, description: 'the other card', priority: 1, conditions: [condition] },
    { ...rule, priority: 2, container: '/a/' },
  ]
  await askAs(backend.key, 'session authorize', { nonce, rules })
  const operation = requireOperation('token get')
  const { decisions, outcome } = await explain(
    app,
    { key: session_key },
    operation,
    { id: 'card-1' },
    { reveal: false },
  )
  t.equal(outcome.status, 200)
  t.same(decisions, [
    {
      of: 'session',
      permission: 'token:read',
      container: '/a/',
      token: 'card-1',
      decided_by: { priority: 2 },
      transform: 'reveal',
      passed_over: [
        { priority: 1, description: 'the other card', reason: 'condition does not hold', condition },
      ],
    },
    {
      of: 'authorizer',
      permission: 'token:read',
      container: '/a/',
      decided_by: 'permissions',
      transform: 'mask',
      passed_over: [],
    },
  ])
})

t.test(
  'servers for trying out begin with sessions beyond their authorizer, unless that was set',
  async (t) => {
    const { app, ask } = await openTestVault()
    const read = async () => {
      const settings = (await ask('config list')) as { name: string; value: unknown }[]
      return settings.find(({ name }) => name === 'sessions.beyond_authorizer')?.value
    }
    t.equal(await read(), false, 'the default of a vault')
    await beginBeyondAuthorizer(app)
    t.equal(await read(), true)
    await setSetting(app, 'sessions.beyond_authorizer', 'false')
    await beginBeyondAuthorizer(app)
    t.equal(await read(), false)
  },
)
