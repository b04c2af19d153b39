/** After a jump of the clock, the vault does its due work in the order of the due times. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ControlState, openControlled, TestClock } from '../../src/control/control-state.js'
import { startServer } from '../../src/index.js'
import { createVault } from '../../src/vault/open.js'
import { startReceiver } from '../delivery/receiver.js'
import { createKey, locate, ask as performAsOwner } from '../support/vault.js'

const NOW = '2030-01-15T12:00:00.000+00:00'
const EVENTS = ['account-updater.job.completed', 'network-token.updated', 'token.expired'] as const
const after = (days: number) =>
  new Date(Date.parse(NOW) + days * 86_400_000).toISOString().replace('Z', '+00:00')

async function open(t: Test, allowNet: string[] = ['127.0.0.1']) {
  const receiver = await startReceiver()
  t.teardown(() => receiver.close())
  const server = await startServer({ allowNet })
  t.teardown(() => server.stop())
  const { control } = server
  const ask = server.ask.bind(server)
  await control.clock.set({ mode: 'frozen', at: NOW })
  await ask('webhook create', { name: 'w', url: receiver.url, events: [...EVENTS] })
  const upload = async (delay: string, text: string) => {
    await ask('config set', { name: 'account_updater.delay', value: delay })
    const job = await ask('updater job create')
    const { status } = await fetch(job.upload_url!, { method: 'PUT', body: text })
    t.equal(status, 200)
    return job.id
  }
  return { server, control, receiver, ask, upload }
}

/**
 * Prepares a job after 50 days, a job after 10 days, a token that expires after 30 days, and a network token that
 * changes after 20 days.
 */
async function prepare({ ask, upload }: Awaited<ReturnType<typeof open>>) {
  const data = { number: '4111111111111111', expiration_month: 12, expiration_year: 2035 }
  const card = await ask('token create', { type: 'card', data, expires_at: after(30) })
  const text = `token\n${card.id}\n`
  const late = await upload('50d', text)
  const early = await upload('10d', text)
  await ask('config set', { name: 'network_tokens.inactive_after', value: '20d' })
  const networkToken = await ask('network-token create', { token_id: card.id })
  return { card, late, early, networkToken }
}

t.test('work that is due within a jump is done in order, as if the clock had not jumped', async (t) => {
  const opened = await open(t)
  const { control, receiver, ask } = opened
  const { card, late, early, networkToken } = await prepare(opened)
  t.match(await control.clock.advance({ by: '90d' }), { mode: 'frozen', now: after(90) })

  t.match(await ask('updater job get', { id: early }), { results: { UPD_PAN: 1 } }, 'before the expiry')
  t.match(
    await ask('updater job get', { id: late }),
    { results: { ERR_INVALID_TOKEN: 1 } },
    'after the expiry',
  )
  const { download_url = '' } = await ask('updater job get', { id: early })
  t.match(await (await fetch(download_url)).text(), /UPD_PAN/, 'the result can be downloaded after the jump')
  t.match(await ask('network-token get', { id: networkToken.id }), {
    status: 'inactive',
    modified_at: after(20),
  })
  const shown = receiver.received.map(({ body: { event } }) => {
    const { job, network_token, token } = event.data
    return [event.type, (job ?? network_token ?? token).id, event.timestamp]
  })
  const [completed, updated, expired] = EVENTS
  t.strictSame(
    shown,
    [
      [completed, early, after(10)],
      [updated, networkToken.id, after(20)],
      // The token expired after 30 days. The vault notices the expiry at the next stop of the clock, after 50 days.
      [expired, card.id, after(50)],
      [completed, late, after(50)],
    ],
    'the events arrive in the order of their times',
  )
  const listed = await control.webhooks({ count: 4, timeout: '1m' })
  t.strictSame(
    listed.map(({ type, state, created_at }) => [type, state, created_at]),
    shown.map(([type, , at]) => [type, 'sent', at]),
    'older events are listed too',
  )
  await control.clock.advance({ by: '1h' })
  t.equal((await fetch(download_url)).status, 403, 'for an hour')
  await control.clock.advance({ by: '22h' })
  t.equal((await ask('webhook deliveries')).pagination.total_items, 4, 'for a day after the jump')
  await control.clock.advance({ by: '1h' })
  t.equal((await ask('webhook deliveries')).pagination.total_items, 0)
})

t.test('an event that could not be sent during a jump is sent after the jump', async (t) => {
  const opened = await open(t)
  const { control, receiver } = opened
  const answer = receiver.state.answer
  receiver.state.answer = (response) => response.writeHead(503).end()
  await prepare(opened)
  await control.clock.advance({ by: '90d' })
  const failed = await control.webhooks({ count: 4, timeout: '1m' })
  t.equal(failed.length, 4)
  t.strictSame([...new Set(failed.map(({ state }) => state))], ['waiting'])
  receiver.state.answer = answer
  await control.clock.advance({ by: '1h' })
  const sent = await control.webhooks({ count: 4, timeout: '1m' })
  t.strictSame(
    sent.map(({ state, created_at }) => [state, created_at]),
    failed.map(({ created_at }) => ['sent', created_at]),
  )
})

t.test('after a jump, an event waits if its host is not allowed or if a listener must take it', async (t) => {
  const opened = await open(t, [])
  const { control, ask } = opened
  const listener = await control.listeners.open({ events: [...EVENTS] })
  await prepare(opened)
  // Without this call, the webhook of the listener would be deleted, because nobody would take its events.
  t.strictSame(await control.listeners.take({ id: listener.id, timeout: '1ms' }), [])
  await control.clock.advance({ by: '90d' })
  t.equal((await control.webhooks({ count: 4, timeout: '1m' })).length, 4)
  const taken: string[] = []
  while (taken.length < 4) {
    const events = await control.listeners.take({ id: listener.id, timeout: '1m' })
    taken.push(...events.map(({ body }) => JSON.parse(body).event.timestamp))
  }
  t.strictSame(taken, [after(10), after(20), after(50), after(50)])
  t.equal((await ask('webhook deliveries', { state: 'waiting' })).pagination.total_items, 8)
})

t.test('setting the clock to a later time is a jump too, and a reset ends a jump', async (t) => {
  const opened = await open(t)
  const { control, ask } = opened
  const { early, networkToken } = await prepare(opened)
  await control.clock.set({ mode: 'offset', at: after(40) })
  t.match(await ask('network-token get', { id: networkToken.id }), { modified_at: after(20) })
  t.match(await ask('updater job get', { id: early }), { status: 'completed' })
  const jump = control.clock.advance({ by: '90d' })
  await Promise.all([jump, control.reset()])
  const { mode, now } = await control.clock.get()
  t.equal(mode, 'real')
  t.ok(Math.abs(Date.parse(now) - Date.now()) < 60_000, now)
})

t.test('two jumps at the same time add up, and the clock never goes back', async (t) => {
  const opened = await open(t)
  const { control, receiver } = opened
  await prepare(opened)
  await Promise.all([control.clock.advance({ by: '25d' }), control.clock.advance({ by: '65d' })])
  t.match(await control.clock.get(), { mode: 'frozen', now: after(90) })
  const times = receiver.received.map(({ body }) => body.event.timestamp)
  t.equal(times.length, 4)
  t.strictSame(times, [...times].sort())
})

t.test('a jump has a limited number of stops, and the earliest due times come first', async (t) => {
  const { control } = await openControlled({ tenantName: 'test', clock: () => Date.parse(NOW) }, undefined)
  t.teardown(() => control.close())
  const { app } = control
  const ask = (operation: string, input: object) =>
    app.ask({ operation, input: { ...input }, as: { reveal: false } } as Parameters<typeof app.ask>[0])
  for (const [days, number] of [
    [3, '4111111111111111'],
    [1, '5555555555554444'],
    [1, '378282246310005'],
    [2, '4242424242424242'],
  ] as const) {
    await ask('config set', { name: 'network_tokens.inactive_after', value: `${days}d` })
    const data = { number, expiration_month: 12, expiration_year: 2035 }
    await ask('network-token create', { data })
  }
  const find = async (until: number, most: number) =>
    (await app.deliveries.findOrdered(Date.parse(after(until)), most)).map(({ at, records }) => [
      new Date(at).toISOString().replace('Z', '+00:00'),
      records.length,
    ])
  const all = [
    [after(1), 2],
    [after(2), 1],
    [after(3), 1],
  ]
  t.strictSame(await find(9, 10), all)
  t.strictSame(await find(9, 2), all.slice(0, 2))
  t.strictSame(await find(2, 10), all.slice(0, 2), 'what is due at the end of the jump is included')
  await control.advanceClock(9 * 86_400_000)
  t.strictSame(await find(9, 10), [])
})

t.test('a vault on disk whose clock may be moved, as in the demo, keeps the events of a jump', async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'coffer-jump-'))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  const clock = new TestClock(() => Date.parse(NOW))
  const location = { ...locate(join(place, 'vault'), clock.now), clockEnd: clock.end }
  const app = await createVault(location, 'first', createKey().create)
  const control = new ControlState(app, undefined, undefined, clock)
  t.teardown(() => control.close())
  const events = ['network-token.updated']
  await performAsOwner(app, 'webhook create', { name: 'w', url: 'https://shop.example/', events })
  await performAsOwner(app, 'config set', { name: 'network_tokens.inactive_after', value: '20d' })
  const data = { number: '4111111111111111', expiration_month: 12, expiration_year: 2035 }
  await performAsOwner(app, 'network-token create', { data })
  await control.advanceClock(90 * 86_400_000)
  t.match((await performAsOwner(app, 'webhook deliveries')).data, [{ created_at: after(20) }])
})
