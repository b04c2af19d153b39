/** Rules of the decisions that depend on time, by advancing the clock: sessions, kept answers, invitations, mail. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { openControlled } from '../../src/control/open.js'
import { openTestVault } from '../../src/index.js'
import { startMailServer } from '../mail/server.js'

const START = Date.parse('2030-01-01T00:00:00Z')

t.test('sessions end, created and authorized', async (t) => {
  const vault = await openTestVault({ clock: () => START })
  t.teardown(() => vault.stop())
  const { clock } = vault.control
  const create = () => vault.ask('session create', {}, { key: vault.keys.public! })
  const authorize = (nonce: string, more = {}) =>
    vault.ask(
      'session authorize',
      { nonce, permissions: ['token:create'], ...more },
      { key: vault.keys.private! },
    )
  const use = async (key: string) => {
    const headers = { 'svc-api-key': key, 'content-type': 'application/json' }
    const body = '{"type":"token","data":1}'
    return (await vault.fetch('/tokens', { method: 'POST', headers, body })).status
  }
  const [short, long, late] = [await create(), await create(), await create()]
  await authorize(short.nonce)
  await authorize(long.nonce, { expires_at: '2030-01-01T10:00:00Z' })
  t.same([await use(short.session_key), await use(long.session_key)], [201, 201])
  await clock.set({ mode: 'offset', at: short.expires_at })
  await clock.advance({ by: '1s' })
  t.same([await use(short.session_key), await use(long.session_key)], [401, 201])
  await t.rejects(authorize(late.nonce), 'a nonce ends with its session')
  await clock.advance({ by: '10h' })
  t.equal(await use(long.session_key), 401)
})

t.test('an answer is kept for its idempotency key, and then forgotten', async (t) => {
  const vault = await openTestVault({ clock: () => START })
  t.teardown(() => vault.stop())
  const post = async () => {
    const headers = {
      'svc-api-key': vault.keys.private!,
      'svc-idempotency-key': 'once',
      'content-type': 'application/json',
    }
    const answer = await vault.fetch('/tokens', {
      method: 'POST',
      headers,
      body: '{"type":"token","data":1}',
    })
    const { id } = (await answer.json()) as { id: string }
    return { id, isReplayed: answer.headers.get('svc-idempotent-replayed') === 'true' }
  }
  const first = await post()
  await vault.control.clock.advance({ by: '23h' })
  t.same(await post(), { id: first.id, isReplayed: true })
  await vault.control.clock.advance({ by: '2h' })
  const second = await post()
  t.equal(second.isReplayed, false)
  t.not(second.id, first.id)
})

t.test('an expired answer whose id a request with the same key gives makes room for it', async (t) => {
  let now = START
  const vault = await openTestVault({ clock: () => now })
  t.teardown(() => vault.stop())
  const post = async (body: object) => {
    const headers = {
      'svc-api-key': vault.keys.private!,
      'svc-idempotency-key': 'once',
      'content-type': 'application/json',
    }
    const init = { method: 'POST', headers, body: JSON.stringify({ type: 'token', ...body }) }
    const answer = await vault.fetch('/tokens', init)
    return { ...((await answer.json()) as { id: string }), status: answer.status }
  }
  const { id } = await post({ data: 1, expires_at: '2030-01-01T00:01:00Z' })
  // Not by the control plane, whose clock would have the expired token purged.
  now += 120_000
  const second = await post({ data: 2, id })
  t.match(second, { status: 201, id })
  t.same(await post({ data: 3, id }), second)
})

t.test('an expired token leaves its id, and stays counted for its month', async (t) => {
  const vault = await openTestVault({ clock: () => START })
  t.teardown(() => vault.stop())
  const create = (expires_at?: string) =>
    vault.ask('token create', { id: 'brief', type: 'token', data: 1, ...(expires_at && { expires_at }) })
  const usage = async () => (await vault.ask('tenant usage')).token_report
  await create('2030-01-02T00:00:00Z')
  await t.rejects(create(), { code: 'conflict' })
  await vault.control.clock.advance({ by: '25h' })
  t.match(await usage(), { monthly_active_tokens: 1, metrics_by_type: { token: { count: 0 } } })
  await t.rejects(create('2030-01-02T00:00:00Z'), {
    code: 'validation',
    message: /^expires_at: must be in the future/,
  })
  t.match(await create(), { created_at: '2030-01-02T01:00:00.000+00:00' })
})

t.test('log records are dropped once they are older than the settings keep them', async (t) => {
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
  t.ok((await count()) < before - 100, 'before the clock answered')
  t.match(await vault.ask('log verify'), { is_whole: true })
})

t.test('what a run of react-async answered is kept for a day', async (t) => {
  const seed = { reactors: [{ name: 'one', code: 'module.exports = async () => ({ raw: { one: 1 } })' }] }
  const vault = await openTestVault({ seed, clock: () => START })
  t.teardown(() => vault.stop())
  const { id } = (await vault.ask('reactor list')).data[0]!
  const { asyncReactorRequestId: request_id } = await vault.ask('reactor react-async', { id })
  const read = () => vault.ask('reactor result', { id, request_id })
  for (let isThere = false; !isThere; ) {
    isThere = await read().then(
      () => true,
      (error: { code: string }) => error.code !== 'not_found',
    )
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await vault.control.clock.advance({ by: '23h' })
  t.match(await read(), { raw: { one: 1 } })
  await vault.control.clock.advance({ by: '2h' })
  await t.rejects(read(), { code: 'not_found' })
})

t.test('the link of an invitation works for 72 hours, and what is sent again for 72 more', async (t) => {
  const vault = await openTestVault({ clock: () => START })
  t.teardown(() => vault.stop())
  const { clock } = vault.control
  const { id } = await vault.ask('invite create', { email: 'ada@example.com' })
  const linkOf = async () => ((await vault.control.outbox({ id })) as { link: string }).link
  const open = async (link: string) => (await vault.fetch(link)).status
  const first = await linkOf()
  t.equal(await open(first), 200)
  const resent = await vault.ask('invite resend', { id })
  t.equal(resent.expires_at, '2030-01-07T00:00:00.000+00:00', 'from its end, which is later than now')
  t.equal(await open(first), 410, 'older links die')
  const second = await linkOf()
  await clock.advance({ by: '143h' })
  t.equal(await open(second), 200)
  await clock.advance({ by: '2h' })
  t.equal(await open(second), 410)
  t.match(
    await vault.ask('invite resend', { id }),
    { expires_at: '2030-01-10T01:00:00.000+00:00' },
    'from now',
  )
})

t.test('an invitation that is sent again lasts from then on', async (t) => {
  const vault = await openTestVault({ clock: () => START })
  t.teardown(() => vault.stop())
  const { clock } = vault.control
  const { id, expires_at } = await vault.ask('invite create', { email: 'ada@example.com' })
  const other = await vault.ask('invite create', { email: 'eve@example.com' })
  const lifeMs = Date.parse(expires_at!) - START
  await clock.advance({ by: `${lifeMs / 1000 - 60}s` })
  await vault.ask('invite resend', { id })
  await clock.advance({ by: '2m' })
  t.match(await vault.ask('invite get', { id }), { status: 'PENDING' })
  t.match(await vault.ask('invite get', { id: other.id }), { status: 'EXPIRED' })
  await clock.advance({ by: `${lifeMs / 1000}s` })
  t.match(await vault.ask('invite get', { id }), { status: 'EXPIRED' })
})

t.test('mail that could not be sent is tried again before the clock answers', async (t) => {
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as { port: number }
  await new Promise((resolve) => closed.close(resolve))
  const mail = await startMailServer({ isPlain: true })
  const { plane } = await openControlled({ tenantName: 'test', clock: () => START }, undefined)
  t.teardown(async () => {
    await plane.close()
    await mail.close()
  })
  const { app } = plane
  const ask = async (operation: 'config set' | 'invite create' | 'invite outbox', input: object) =>
    (await app.ask({ operation, input: { ...input }, as: { reveal: false } })).result
  const use = (to: number) => ask('config set', { name: 'mail.url', value: `smtp://127.0.0.1:${to}` })
  await use(port)
  const faults: unknown[] = []
  app.mail.publicUrl = 'http://localhost'
  await app.mail.resume({
    notice: () => {},
    fault: (error) => faults.push(error),
  })
  await ask('invite create', { email: 'ada@example.com' })
  await app.mail.settle()
  t.match(await ask('invite outbox', {}), { data: [{ state: 'waiting', attempts: 1 }] })
  await use(mail.port)
  await plane.advanceClock(1)
  t.equal(mail.received.length, 0, 'not before it is due')
  await plane.advanceClock(60 * 60_000)
  t.match(mail.received, [{ to: ['ada@example.com'] }])
  t.match(await ask('invite outbox', {}), { data: [{ state: 'sent', attempts: 2 }] })
  t.same(faults, [])
})
