/** Behaviour of keys and sessions that the cases in `fixtures/operations` do not cover. */
import t from 'tap'
import type { SessionRecord } from '../../src/domain/records/records.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { explain } from '../../src/framework/caller/explain.js'
import { perform } from '../../src/framework/perform.js'
import { inspectLink } from '../../src/operations/invite/accept-invitation.js'
import { MAX_LIVE_SESSIONS } from '../../src/operations/session/noun.js'
import { beginAsService } from '../../src/vault/sample-applications.js'
import {
  openTestVault,
  permissionsOf,
  requireOperation,
  setSetting,
  type TestVault,
} from '../support/test-vault.js'

async function open() {
  const vault = await openTestVault()
  const page = await vault.createApplication('public', { permissions: ['token:create'] })
  const backend = await vault.createApplication('private', { permissions: permissionsOf('private') })
  const create = async () => await vault.askAs(page.key, 'session create')
  return { ...vault, page, backend, create }
}

async function readSessions({ app }: TestVault): Promise<SessionRecord[]> {
  return app.store.read(async (store) => (await store.find('session', 0, { page: 1, size: 10 })).records)
}

t.test('API keys and nonces are stored as keyed hashes, and an expired session leaves no hash', async (t) => {
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
  t.equal(await app.sweep(), 1, 'an expired session is purged')
  t.equal(await app.sweep(), 0)
})

t.test('an application may have live sessions only up to its limit', async (t) => {
  const vault = await open()
  const { app, clock, page, backend, askAs, create } = vault
  const { nonce } = await create()
  const another = await create()
  const expires = clock.now + 60_000
  const fill = (application_id: string, by: string) =>
    app.store.write(async (store) => {
      for (let count = 1; count < MAX_LIVE_SESSIONS; count++) {
        const id = `${application_id}-${count}`
        const authorized = { by, permissions: [], rules: [] }
        const made = { told_as: id, created_at: '', tenant: 1, application_id }
        const record = { id, ...made, nonce: id, expires, authorized }
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

t.test('API keys, nonces and link secrets are compared in constant time', async (t) => {
  const { app, ask, backend, create } = await open()
  const { session_key, nonce } = await create()
  const { id } = await ask('invite create', { email: 'ada@example.com' })
  const { link } = (await ask('invite outbox', { id })) as { link: string }
  let compared = 0
  const isEqualSecret: typeof app.isEqualSecret = (a, b) => {
    compared++
    return app.isEqualSecret(a, b)
  }
  const host = { ...app, isEqualSecret }
  const counting = async <T>(what: string, count: number, work: () => Promise<T>) => {
    compared = 0
    const result = await work()
    // There can be more comparisons than expected, because a unit of work over PostgreSQL can run again.
    t.ok(compared >= count, `${what}: ${compared} comparisons`)
    return result
  }
  const caller = await counting('an API key', 2, () => authenticate(host, backend.key))
  const rights = { nonce, permissions: ['token:read'] }
  const definition = requireOperation('session authorize')
  await counting('a nonce', 1, () => perform(host, caller, definition, rights, 'trace'))
  await counting('the key of a session', 1, () => authenticate(host, session_key))
  await counting('a link', 1, () => inspectLink(host, new URL(link).searchParams.get('token')!))
})

t.test('the deletion of a tenant immediately ends the sessions of the tenant', async (t) => {
  const { app, ask, create } = await open()
  const { session_key } = await create()
  await authenticate(app, session_key)
  await ask('tenant delete')
  await t.rejects(authenticate(app, session_key), { code: 'unauthenticated' })
})

t.test(
  'the explanation of a session names the condition that does not hold, and what the grants of the authorizer decide',
  async (t) => {
    const { app, ask, askAs, backend, create } = await open()
    await ask('token create', { id: 'card-1', type: 'token', data: 'x', containers: ['/a/'] })
    const { session_key, nonce } = await create()
    const condition = { attribute: 'id', operator: 'equals', value: 'card-2' }
    const rule = { transform: 'reveal', permissions: ['token:read'] }
    const rules = [
      { ...rule, priority: 1, conditions: [condition] },
      { ...rule, priority: 2, container: '/a/' },
    ]
    await askAs(backend.key, 'session authorize', { nonce, rules })
    const operation = requireOperation('token get')
    const about = { id: 'card-1' }
    const { decisions } = await explain(app, { key: session_key }, operation, about)
    const reason = 'condition does not hold'
    t.match(decisions, [
      { of: 'session', decided_by: { priority: 2 }, passed_over: [{ priority: 1, reason, condition }] },
      { of: 'authorizer', decided_by: 'permissions', transform: 'mask', passed_over: [] },
    ])
  },
)

t.test(
  'a test server turns sessions.beyond_authorizer on by default, unless somebody has set this setting',
  async (t) => {
    const { app, ask } = await openTestVault()
    const read = async () => (await ask('config get', { name: 'sessions.beyond_authorizer' })).value
    t.equal(await read(), false, 'a vault does not allow this by default')
    await beginAsService(app)
    t.equal(await read(), true)
    await setSetting(app, 'sessions.beyond_authorizer', 'false')
    await beginAsService(app)
    t.equal(await read(), false)
  },
)

t.test(
  'an API key that the server has accepted is cached, and a key that differs slightly is refused',
  async (t) => {
    const { app, page, createApplication, createTenant } = await open()
    const refused = { code: 'unauthenticated' }
    const first = await authenticate(app, page.key)
    const isCounted = app.store.changeCounter(['api_key']) !== undefined
    t.equal((await authenticate(app, page.key)) === first, isCounted)
    await t.rejects(
      authenticate(
        app,
        page.key.replace(/.$/, (last) => (last === '2' ? '3' : '2')),
      ),
      refused,
    )
    await createTenant('second')
    const tenant = await app.tenant('second')
    const theirs = await createApplication('public', { permissions: ['token:create'] }, 'second')
    await authenticate(app, theirs.key)
    await app.store.write((writer) => writer.removeTenant(tenant.number))
    await t.rejects(authenticate(app, theirs.key), refused, 'a key of a deleted tenant is refused')
  },
)

/**
 * Authenticates the same key twice, as two HTTP requests would. The second call uses the cached key if no record on
 * which the key depends has changed.
 */
const authenticateTwice = async (app: TestVault['app'], key: string) => {
  for (let round = 0; round < 2; round++) await authenticate(app, key, { allowsCached: true })
}

t.test('after the grace time, an old API key is refused, even if it was cached', async (t) => {
  const { app, clock, ask, askAs, backend } = await open()
  const { id, key: old } = backend
  const refused = { code: 'unauthenticated' }
  await authenticateTwice(app, old)
  const renewed = await ask('app regenerate-with-grace', { id, grace: '1h' })
  const expires_at = '2030-01-15T13:00:00.000+00:00'
  t.match(renewed, { key: /^key_/, keys: [{ key: renewed.key }, { expires_at }] })
  t.notOk(renewed.keys[0]?.expires_at, 'the new key does not expire')
  t.match(await ask('app key list', { application_id: id }), [{ id: renewed.keys[0]!.id }, { expires_at }])
  for (const key of [old, renewed.key!]) await authenticateTwice(app, key)
  clock.now += 3_600_000 - 1
  await authenticateTwice(app, old)
  t.match(await askAs(old, 'app whoami'), { id })
  clock.now += 1
  await t.rejects(authenticate(app, old, { allowsCached: true }), refused)
  await t.rejects(askAs(old, 'app whoami'), refused)
  await authenticateTwice(app, renewed.key!)
  t.match(
    await ask('app key list', { application_id: id }),
    { length: 1 },
    'the old key is hidden before it is purged',
  )

  const about = { entity_id: id, entity_type: 'application' }
  t.equal(await app.sweep(), 1)
  t.equal(await app.sweep(), 0)
  const [expired, regenerated] = (await ask('log list', about)).data
  const by = { actor_type: 'system', operation: 'update' }
  t.match(expired, { message: 'Application key expired', ...by })
  t.match(regenerated, { message: /regenerated, with a grace time/, operation: 'update', actor_type: 'user' })
  const stored = await app.store.read((reader) => reader.get('application', 1, id))
  t.match(stored?.keys, { length: 1 })
  await authenticateTwice(app, renewed.key!)
})

t.test('an API key without an expiry date expires at the time that its application sets', async (t) => {
  const { app, clock, ask, backend } = await open()
  const { id, key } = backend
  await ask('app regenerate-with-grace', { id, grace: '1h' })
  await app.store.write(async (store) => {
    const { keys = [] } = (await store.get('application', 1, id)) ?? {}
    const record = (await store.get('api_key', 0, keys[1]!.hash))!
    await store.replace('api_key', 0, record)
  })
  await authenticate(app, key)
  clock.now += 3_600_000
  await t.rejects(authenticate(app, key), { code: 'unauthenticated' })
})

t.test(
  'an old API key is revoked early if it is deleted, if a newer key is generated, or if its application is deleted',
  async (t) => {
    const { app, clock, ask, backend, createApplication } = await open()
    const refused = { code: 'unauthenticated' }
    const { id, key: first } = backend
    const second = await ask('app regenerate-with-grace', { id, grace: '2h' })
    const oldId = second.keys[1]!.id
    await ask('app key delete', { application_id: id, id: oldId })
    await t.rejects(authenticate(app, first), refused)
    const third = await ask('app regenerate-with-grace', { id, grace: '1h' })
    const fourth = await ask('app regenerate-with-grace', { id, grace: '7d' })
    t.same(
      fourth.keys.map((key) => key.expires_at),
      [undefined, '2030-01-22T12:00:00.000+00:00', '2030-01-15T13:00:00.000+00:00'],
      'a key that expires earlier keeps its time',
    )
    await authenticateTwice(app, second.key!)
    await ask('app regenerate', { id })
    for (const key of [second.key!, third.key!, fourth.key!]) await t.rejects(authenticate(app, key), refused)
    const other = await createApplication('private', { permissions: ['token:read'] })
    await ask('app regenerate-with-grace', { id: other.id, grace: '1h' })
    await ask('app delete', { id: other.id })
    await t.rejects(authenticate(app, other.key), refused)
    clock.now += 8 * 24 * 3_600_000
    t.equal(await app.sweep(), 0, 'no record of these keys is left')
  },
)

t.test(
  'a grace time is at most 7 days, and old keys in their grace time count towards the limit of keys',
  async (t) => {
    const { ask, clock, createApplication } = await open()
    const { id } = await createApplication('private', { permissions: ['token:read'] })
    for (const grace of ['8d', '169h', '0h', '1', '', '2030-01-16', '-1h'])
      await t.rejects(
        ask('app regenerate-with-grace', { id, grace }),
        { code: 'validation', errors: { grace: ['must be a duration such as 15m, 1h or 7d, at most 7d'] } },
        grace,
      )
    for (let count = 1; count < 20; count++) await ask('app regenerate-with-grace', { id, grace: '168h' })
    const full = {
      code: 'conflict',
      message: /has 20 keys already\. Delete one first, or leave out --grace\./,
    }
    await t.rejects(ask('app regenerate-with-grace', { id, grace: '1h' }), full)
    await t.rejects(ask('app key create', { application_id: id }), { code: 'conflict' })
    clock.now += 7 * 24 * 3_600_000
    await ask('app key create', { application_id: id })
    t.match(
      await ask('app key list', { application_id: id }),
      { length: 2 },
      'expired keys do not count towards the limit',
    )
  },
)

t.test('a log record has the trace id of its request, and callers of deleted tenants get 401', async (t) => {
  const { app, ask } = await open()
  const owner = await app.owner({ reveal: false })
  await perform(
    app,
    owner,
    requireOperation('token create'),
    { id: 'one', type: 'token', data: 1 },
    'trace-7',
  )
  const { records } = await app.store.read((reader) => reader.find('log', 1, { page: 1, size: 1 }))
  t.match(records, [{ entity_id: 'one', trace_id: 'trace-7' }])
  await ask('tenant delete')
  const reading = perform(app, owner, requireOperation('tenant get'), {}, 'trace')
  await t.rejects(reading, { code: 'unauthenticated' })
})
