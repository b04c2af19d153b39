/** What of keys and sessions the cases of `fixtures/operations` cannot show: what is stored, purged, limited and explained. */
import t from 'tap'
import { API_KEY } from '../../src/domain/access/application.js'
import type { SessionRecord } from '../../src/domain/records/records.js'
import { isKey, randomKey } from '../../src/domain/text/base58.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { CallerCache } from '../../src/framework/caller/caller.js'
import { explain } from '../../src/framework/caller/explain.js'
import { perform } from '../../src/framework/perform.js'
import { inspectLink } from '../../src/operations/invite/accept-invitation.js'
import { MOST_LIVE_SESSIONS } from '../../src/operations/session/noun.js'
import { beginBeyondAuthorizer } from '../../src/vault/sample-applications.js'
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

t.test('a nonce of another tenant is unknown', async (t) => {
  const { create, createTenant, createApplication, askAs } = await open()
  await createTenant('second')
  const theirs = await createApplication('private', { permissions: ['token:read'] }, 'second')
  const { nonce } = await create()
  const authorize = { nonce, permissions: ['token:read'] }
  await t.rejects(askAs(theirs.key, 'session authorize', authorize), { code: 'not_found' })
})

t.test('keys, nonces and links are compared by the vault, in constant time', async (t) => {
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
    // Over PostgreSQL a unit of work may run again.
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

t.test('a session ends with its tenant, at once', async (t) => {
  const { app, ask, create } = await open()
  const { session_key } = await create()
  await authenticate(app, session_key)
  await ask('tenant delete')
  await t.rejects(authenticate(app, session_key), { code: 'unauthenticated' })
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
      const settings = await ask('config list')
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

t.test('a key that was checked lives as long as all that it stands on, and no longer', async (t) => {
  const { app, clock, ask, createApplication, createTenant } = await openTestVault()
  const refused = { code: 'unauthenticated' }
  const grants = { permissions: ['token:create'] } as const
  const { id, key } = await createApplication('public', grants)
  const first = await authenticate(app, key)
  const isCounted = app.store.changeCounter(['api_key']) !== undefined
  t.equal((await authenticate(app, key)) === first, isCounted, 'what is current is not looked up again')
  const forged = key.replace(/.$/, (last) => (last === '2' ? '3' : '2'))
  await t.rejects(authenticate(app, forged), refused)
  await ask('app update', { id, name: 'renamed', permissions: ['token:create', 'token:update'] })
  t.ok((await authenticate(app, key)).holds('token:update'), 'a change counts at once')
  const { key: other = '' } = await ask('app regenerate', { id })
  await t.rejects(authenticate(app, key), refused, 'a key that was replaced')
  const { id: second, key: another = '' } = await ask('app key create', { application_id: id })
  await authenticate(app, another)
  await ask('app key delete', { application_id: id, id: second })
  await t.rejects(authenticate(app, another), refused, 'a key that was deleted')
  t.ok(await authenticate(app, other), 'and the others stay')
  await ask('app delete', { id })
  await t.rejects(authenticate(app, other), refused, 'a deleted application')

  const expires_at = new Date(clock.now + 1000).toISOString()
  const { key: short } = await createApplication('public', { ...grants, expires_at })
  t.ok(await authenticate(app, short))
  clock.now += 1000
  await t.rejects(authenticate(app, short), refused, 'one whose time is over')

  await createTenant('second')
  const tenant = await app.tenant('second')
  const { key: theirs } = await createApplication('public', grants, 'second')
  t.ok(await authenticate(app, theirs))
  await app.store.write((writer) => writer.removeTenant(tenant.number))
  await t.rejects(authenticate(app, theirs), refused, 'a deleted tenant')
})

t.test('so many callers are known and no more, each by its own key', async (t) => {
  const { app } = await openTestVault()
  const callers = new CallerCache((message, length) => new Uint8Array(length).fill(message[0]!))
  const caller = await app.owner({ reveal: false })
  callers.put('a', 1, caller)
  t.equal(callers.find('a', 1), caller)
  t.equal(callers.find('a', 2), undefined, 'under another change counter')
  t.equal(callers.find('b', 1), undefined, 'by another key')
  callers.put('b', 2, caller)
  t.equal(callers.find('a', 1), undefined)
  t.equal(callers.find('a', 2), undefined, 'of what went before nothing is left')
})

t.test('a key is key_ and 22 base58 characters that hold its 128 bits', async (t) => {
  const keys = [0, 1, 255].map((byte) =>
    randomKey({ bytes: (count) => new Uint8Array(count).fill(byte) }, API_KEY),
  )
  for (const key of keys) t.ok(/^key_[1-9A-HJ-NP-Za-km-z]{22}$/.test(key) && isKey(key, API_KEY))
  t.equal(new Set(keys).size, 3)
  const [key] = keys as [string]
  for (const text of ['', 'key_', `${key} `, key.slice(1), key.replace('1', '0'), `${key}1`])
    t.notOk(isKey(text, API_KEY), text)
})
