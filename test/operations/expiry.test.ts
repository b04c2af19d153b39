/**
 * Expired tokens disappear from reads at once, and from the disk at the next sweep. The log and the usage report keep
 * their records of expired tokens.
 */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { ownerCaller } from '../../src/framework/caller/caller.js'
import { openTestVault, START, setSetting } from '../support/test-vault.js'

const HOUR_MS = 60 * 60 * 1000
const soon = new Date(START + HOUR_MS).toISOString()

t.test('an expired token is purged with its links, and its expiry is logged', async (t) => {
  const { app, ask, clock } = await openTestVault()
  for (const id of ['short', 'again', 'other', 'third'])
    await ask('token create', { id, type: 'token', data: id, ...(/t$|n$/.test(id) && { expires_at: soon }) })
  for (const link of ['short other', 'third short', 'third other']) {
    const [parent_id, child_id] = link.split(' ')
    await ask('token link', { parent_id, child_id })
  }
  t.equal(await app.sweep(), 0, 'nothing has expired yet')
  clock.now += HOUR_MS
  t.equal((await ask('token list')).pagination.total_items, 2, 'reads hide the token at once')
  t.equal((await app.store.read((reader) => reader.findExpired(9))).length, 2, 'the disk still has the token')
  await ask('token create', { id: 'again', type: 'token', data: 'new' })
  t.equal(await app.sweep(), 1)
  t.strictSame(await app.store.read((reader) => reader.findExpired(9)), [])
  const links = await app.store.read((reader) => reader.find('association', 1, { page: 1, size: 9 }))
  t.match(links.records, [{ parent_id: 'third', child_id: 'other' }])
  const { data: again } = await ask('log list', { entity_id: 'again' })
  t.match(again, [{ message: 'Token created' }, { message: 'Token expired' }, { message: 'Token created' }])
  const { id: _, ...record } = (await ask('log list', { entity_id: 'short', size: 1 })).data[0]!
  t.strictSame(record, {
    tenant_id: (await app.tenant()).id,
    actor_type: 'system',
    entity_type: 'token',
    entity_id: 'short',
    operation: 'delete',
    message: 'Token expired',
    created_at: '2030-01-15T13:00:00.000+00:00',
  })
})

t.test('a token intent expires after the time in the setting, and its expiry is logged', async (t) => {
  const { app, ask, clock } = await openTestVault()
  for (const wrong of ['0h', '49h', '90m'])
    await t.rejects(setSetting(app, 'token_intents.ttl', wrong), /whole hours from 1h to 48h/, wrong)
  await setSetting(app, 'token_intents.ttl', '1h')
  const card = { type: 'card', data: { number: '4242424242424242' } }
  const { id, expires_at } = await ask('intent create', card)
  t.equal(expires_at, '2030-01-15T13:00:00.000+00:00')
  await setSetting(app, 'token_intents.ttl', '48h')
  t.match(await ask('intent create', card), { expires_at: '2030-01-17T12:00:00.000+00:00' })
  clock.now += HOUR_MS
  await t.rejects(ask('intent get', { id }), { code: 'not_found' })
  t.equal(await app.sweep(), 1)
  const { data } = await ask('log list', { entity_id: id })
  t.match(data[0], { message: 'Token intent expired', entity_type: 'token_intent', actor_type: 'system' })
})

t.test('if two conversions of an intent run concurrently, exactly one succeeds', async (t) => {
  const { app, ask, settle } = await openTestVault()
  const { id } = await ask('intent create', { type: 'token', data: 'once' })
  const owner = async () => ownerCaller(1, app.createUuid(), { reveal: false })
  const both = [1, 2].map(() => settle(owner, 'token create', { token_intent_id: id }))
  t.strictSame((await Promise.all(both)).map(({ status }) => status).sort(), [201, 400])
  t.equal((await ask('token list')).pagination.total_items, 1)
})

t.test('a sweep purges expired tokens of every tenant', async (t) => {
  const vault = await openTestVault()
  await vault.createTenant('second')
  const card = { type: 'card', data: { number: '4242424242424242' }, expires_at: soon }
  const payload = Array.from({ length: 450 }, (_, data) => ({ type: 'token', data, expires_at: soon }))
  await vault.ask('token tokenize', { payload })
  await vault.ask('token create', card, 'second')
  vault.clock.now += HOUR_MS
  t.equal(await vault.app.sweep(), 451)
  const logs = await vault.ask('log list', { size: 1 }, 'second')
  t.match(logs.data[0], { entity_type: 'card', message: 'Token expired', actor_type: 'system' })
  const first = await vault.ask('log list', { size: 1000 })
  t.equal(first.data.filter(({ message }) => message === 'Token expired').length, 450)
})

t.test('no log record is dropped within an hour after a jump of the clock', async (t) => {
  const { app, ask, clock } = await openTestVault()
  await ask('config set', { name: 'logs.keep', value: '2d' })
  await ask('token tokenize', { payload: Array.from({ length: 100 }, (_, index) => `text ${index}`) })
  const count = async () => (await ask('log list', { size: 1 })).pagination.total_items
  const before = await count()
  clock.now += 30 * 24 * HOUR_MS
  await app.sweep()
  clock.now += HOUR_MS - 1
  await app.sweep()
  t.equal(await count(), before)
  clock.now += 1
  // Over PostgreSQL, log entries can be dropped only after they were moved to blocks. The entries are moved shortly
  // after their commit.
  for (let tries = 0; (await count()) >= before - 50; tries++) {
    if (tries === 100) throw new Error(`${await count()} of ${before} records are left`)
    await setTimeout(20)
    await app.sweep()
  }
})

t.test(
  'the usage report keeps the creation time of the newest token of each type, even after this token is purged',
  async (t) => {
    const { app, ask, clock } = await openTestVault()
    t.teardown(() => app.close())
    const dateIn = (ms: number) => new Date(clock.now + ms).toISOString().replace('Z', '+00:00')
    const create = (id: string, hours: number) =>
      ask('token create', { id, type: 'token', data: id, expires_at: dateIn(hours * HOUR_MS) })
    const pass = async (hours: number) => {
      for (let hour = 0; hour < hours; hour++) {
        clock.now += HOUR_MS
        await app.sweep()
      }
    }
    const report = async () => (await ask('tenant usage')).token_report
    await create('one', 2)
    const first = dateIn(0)
    await pass(4)
    t.match(await report(), { metrics_by_type: { token: { count: 0, last_created_at: first } } })
    await create('two', 1000)
    clock.now += 1000
    await create('one', 2)
    const last = dateIn(0)
    clock.now += 3 * HOUR_MS
    const token = { count: 1, last_created_at: last }
    t.match(await report(), { metrics_by_type: { token }, monthly_active_tokens: 2 })
    await pass(1)
    t.match(await report(), { metrics_by_type: { token }, monthly_active_tokens: 2 })
  },
)
