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
  await app.post.resume({
    publicUrl: 'http://localhost',
    notice: () => {},
    fault: (error) => faults.push(error),
  })
  await ask('invite create', { email: 'ada@example.com' })
  await app.post.settle()
  t.match(await ask('invite outbox', {}), { data: [{ state: 'waiting', attempts: 1 }] })
  await use(mail.port)
  await plane.advanceClock(1)
  t.equal(mail.received.length, 0, 'not before it is due')
  await plane.advanceClock(60 * 60_000)
  t.match(mail.received, [{ to: ['ada@example.com'] }])
  t.match(await ask('invite outbox', {}), { data: [{ state: 'sent', attempts: 2 }] })
  t.same(faults, [])
})
