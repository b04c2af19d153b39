/**
 * A request that advances the clock is answered only after old log records and old keys are purged and mail is sent.
 */
import t from 'tap'
import { openControlled } from '../../src/control/control-state.js'
import { openTestVault } from '../../src/index.js'
import { startMailServer } from '../delivery/server.js'

const START = Date.parse('2030-01-01T00:00:00Z')

t.test('log records are deleted when they are older than the setting logs.keep allows', async (t) => {
  const vault = await openTestVault({ clock: () => START })
  t.teardown(() => vault.stop())
  const { clock } = vault.control
  const payload = Array.from({ length: 400 }, (_, index) => `text ${index}`)
  await vault.ask('token tokenize', { payload })
  await vault.ask('config set', { name: 'logs.keep', value: '2d' })
  const count = async () => (await vault.ask('log list', { size: 1 })).pagination.total_items
  const before = await count()
  await clock.advance({ by: '1d' })
  t.equal(await count(), before, 'not yet')
  await clock.advance({ by: '2d' })
  t.ok((await count()) < before - 100, 'the records were dropped before the clock answered')
  t.match(await vault.ask('log verify'), { is_whole: true })
})

t.test('an old key is accepted until its grace time has passed on the clock of the server', async (t) => {
  const vault = await openTestVault({ clock: () => START })
  t.teardown(() => vault.stop())
  const { clock } = vault.control
  await clock.set({ mode: 'frozen', at: '2030-01-01T00:00:00Z' })
  const draft = { name: 'shop', type: 'private', permissions: ['token:read'] } as const
  const { id, key: old } = await vault.ask('app create', draft)
  const { key } = await vault.ask('app regenerate-with-grace', { id, grace: '1h' })
  const statusWith = async (each = '') =>
    (await vault.fetch('/tokens', { headers: { 'svc-api-key': each } })).status
  await clock.advance({ by: '59m' })
  t.same([await statusWith(old), await statusWith(key)], [200, 200])
  await clock.advance({ by: '1m' })
  t.same([await statusWith(old), await statusWith(key)], [401, 200])
  const { data } = await vault.ask('log list', { entity_id: id })
  t.match(data[0], { message: 'Application key expired' }, 'the key had expired before the clock answered')
})

t.test(
  'a request that advances the clock is answered only after mail that could not be sent has been retried',
  async (t) => {
    const mail = await startMailServer({ isPlain: true })
    const { control } = await openControlled({ tenantName: 'test', clock: () => START }, undefined)
    t.teardown(async () => {
      await control.close()
      await mail.close()
    })
    const { app } = control
    const ask = async (operation: 'config set' | 'invite create' | 'invite outbox', input: object) =>
      (await app.ask({ operation, input: { ...input }, as: { reveal: false } })).result
    const use = (to: number) => ask('config set', { name: 'mail.url', value: `smtp://127.0.0.1:${to}` })
    await use(1)
    const faults: unknown[] = []
    app.deliveries.listenAt('http://localhost')
    await app.deliveries.resume({ notice: () => {}, fault: (error) => faults.push(error) })
    await ask('invite create', { email: 'ada@example.com' })
    await app.deliveries.settle()
    t.match(await ask('invite outbox', {}), { data: [{ state: 'waiting', attempts: 1 }] })
    await use(mail.port)
    await control.advanceClock(1)
    t.equal(mail.received.length, 0, 'the mail is not sent before it is due')
    await control.advanceClock(60 * 60_000)
    t.match(mail.received, [{ to: ['ada@example.com'] }])
    t.match(await ask('invite outbox', {}), { data: [{ state: 'sent', attempts: 2 }] })
    t.same(faults, [])
  },
)
