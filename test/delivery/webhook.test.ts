/** Webhooks: their events, signatures and retries, and the data that they must not contain. */
import t, { type Test } from 'tap'
import { type Coffer, openTestVault, startServer } from '../../src/index.js'
import { findLeaks } from '../support/leak.js'
import { type Answer, isSigned, sortedJson, startReceiver } from './receiver.js'

t.setTimeout(180_000)
// These tests spend most of their time waiting, so they run in parallel.
t.jobs = 3

const SECRETS = {
  number: '4242424242424242',
  cvc: '987',
  code: 'a-secret-in-code',
  config: 'a-secret-setting',
}
const PAUSES_S = [1, 4, 16, 64, 256, 1024, 2400, 2400, 2400]
const NOW = '2030-01-15T12:00:00.000+00:00'
/**
 * The time limit for the wait for an event. A busy machine can need a minute. The wait ends as soon as the expected
 * event arrives.
 */
const LONG = '1m'

/** Opens a vault whose clock stands still. The webhooks of the vault may call this machine. */
async function open(t: Test, events: readonly string[], answer?: Answer) {
  const receiver = await startReceiver(answer)
  const vault = await openTestVault({ allowNet: ['127.0.0.1'] })
  t.teardown(async () => {
    await vault.stop()
    receiver.close()
  })
  await vault.control.clock.set({ mode: 'frozen', at: NOW })
  const body = { name: 'hook', url: receiver.url, events, notify_email: 'ada@example.com' }
  const hook = await vault.ask('webhook create', body)
  return { vault, receiver, hook, body, deliveries: async () => (await vault.ask('webhook deliveries')).data }
}

const failing: Answer = (response) => response.writeHead(500).end('not now')

const createCard = (vault: Coffer, id = 'card-1') =>
  vault.ask('token create', { id, type: 'card', data: { number: SECRETS.number } })

t.test('an event is signed as documented and describes what happened', async (t) => {
  const { vault, receiver } = await open(t, ['token.created'], (response) => void response.end('thanks'))
  const key = await (await vault.fetch('/keys/webhooks.v1.key')).text()
  t.match(key, /^-----BEGIN PUBLIC KEY-----\n[\s\S]+-----END PUBLIC KEY-----\n$/)
  const { id: actor } = (await vault.ask('app list')).data.find(({ type }) => type === 'private')!
  const answer = await vault.fetch('/tokens', {
    method: 'POST',
    headers: { 'svc-api-key': vault.keys.private!, 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'card-1', type: 'card', data: { number: SECRETS.number, cvc: SECRETS.cvc } }),
  })
  t.equal(answer.status, 201)
  const [delivery] = await vault.control.webhooks({ timeout: LONG })
  const [sent] = receiver.received
  t.ok(isSigned(sent!, key))
  t.notOk(
    isSigned({ ...sent!, body: { ...sent!.body, more: 1 } }, key),
    'the signature does not match another body',
  )
  t.match(sent!.headers, { 'content-type': 'application/json', 'svc-signature-version': 'v1' })
  t.match(sent!.body, {
    delivered_at: NOW,
    event: {
      type: 'token.created',
      timestamp: NOW,
      tenant_id: vault.tenant.id,
      trace_id: answer.headers.get('svc-trace-id'),
      data: {
        token: { id: 'card-1', type: 'card', containers: ['/pci/high/'], created_by: actor, created_at: NOW },
        actor: { id: actor, type: 'application', name: 'starter private' },
      },
    },
  })
  t.match(delivery, { state: 'sent', attempts: 1, status: 200, answer: 'thanks', payload: sent!.body })
  t.equal(sent!.text, sortedJson(sent!.body), 'the JSON has no white space')
})

t.test('all events have the documented content and contain no secret', async (t) => {
  const code = `module.exports = async ({ args }) => { if (args.fail) throw new Error(args.card + '${SECRETS.code}'); return { raw: 1 } }`
  const { vault, receiver, body, hook } = await open(t, ['token.created'])
  const { keys } = vault
  const ask = vault.ask.bind(vault)
  const events = await ask('webhook event-types')
  await ask('webhook update', { id: hook.id, ...body, events })
  await createCard(vault)
  await t.rejects(createCard(vault), { code: 'conflict' }, 'a refused request sends no event')
  await ask('token get', { id: 'card-1' }, { reveal: true })
  await ask('token update', { id: 'card-1', metadata: { a: 'b' } })
  await ask('token detokenize', { payload: '{{ card-1 }}' }, { reveal: true })
  const { number, cvc } = SECRETS
  const intent = await ask('intent create', { type: 'card', data: { number, cvc } })
  await ask('token create', { token_intent_id: intent.id, id: 'converted' })
  const configuration = { KEY: SECRETS.config }
  const reactor = await ask('reactor create', { name: 'r', code, configuration })
  const react = (args: object) =>
    ask('reactor react', { id: reactor.id, args: { card: '{{ card-1 | json: "$.number" }}', ...args } })
  await react({})
  await t.rejects(react({ fail: true }), { code: 'reactor_failed' })
  const { asyncReactorRequestId } = await ask('reactor react-async', { id: reactor.id, args: {} })
  await vault.control.webhooks({ timeout: LONG, event: 'reactor.completed', count: 2 })
  const destination = await startReceiver()
  t.teardown(() => destination.close())
  const destination_url = `${destination.url}/v1`
  const proxy = await ask('proxy create', { name: 'p', destination_url, configuration })
  const call = { path: '/{{ card-1 | json: "$.number" }}?q=1', body: { card: '{{ card-1 }}' } }
  await ask('proxy call', { target: proxy.id, ...call })
  await ask('proxy call', { target: `${destination.url}/v2`, ...call })
  const app = await ask('app create', { name: 'a', type: 'private', permissions: ['token:read'] })
  const key = await ask('app key create', { application_id: app.id })
  await ask('app key delete', { application_id: app.id, id: key.id })
  const session = await ask('session create', {}, { key: keys.public! })
  const authorized = { nonce: session.nonce, permissions: ['token:read'] }
  await ask('session authorize', authorized, { key: keys.private! })
  const invited = await ask('invite create', { email: 'eve@example.com' })
  await ask('invite resend', { id: invited.id })
  const mail = (await ask('invite outbox', { id: invited.id })) as { link: string }
  const member = await ask('invite accept', { link: mail.link })
  const withdrawn = await ask('invite create', { email: 'mallory@example.com' })
  await ask('invite delete', { id: withdrawn.id })
  await ask('tenant update', { name: 'renamed' })
  await ask('member delete', { id: member.id })
  await ask('app delete', { id: app.id })
  await ask('proxy delete', { id: proxy.id })
  await ask('reactor delete', { id: reactor.id })
  await ask('token delete', { id: 'card-1' })
  const found = await vault.control.webhooks({ timeout: LONG, count: 34 })
  const told = found.map(({ payload }) => (payload as { event: { type: string; data: object } }).event)
  t.strictSame(
    told.map(({ type }) => type),
    [
      ...['token.created', 'token.read', 'token.updated', 'token.read'],
      ...['token-intent.created', 'token.created', 'token-intent.converted'],
      ...['reactor.created', 'reactor.invoked', 'reactor.completed', 'reactor.invoked', 'reactor.failed'],
      ...['reactor.invoked', 'reactor.completed', 'proxy.created', 'proxy.invoked', 'proxy.invoked'],
      ...['application.created', 'application.key.created', 'application.key.deleted'],
      ...['session.created', 'session.authorized', 'tenant.invitation.created', 'tenant.invitation.resent'],
      ...['tenant.invitation.accepted', 'tenant.member.created', 'tenant.invitation.created'],
      ...['tenant.invitation.deleted', 'tenant.updated', 'tenant.member.deleted'],
      ...['application.deleted', 'proxy.deleted', 'reactor.deleted', 'token.deleted'],
    ],
  )
  const dataOf = (type: string, at = 0) => told.filter((each) => each.type === type)[at]?.data
  const withActor = (objects: object) => ({ ...objects, actor: { type: 'user', id: vault.tenant.owner_id } })
  t.strictSame(dataOf('token.read'), withActor({ token: { id: 'card-1', type: 'card' } }))
  t.strictSame(
    dataOf('token-intent.converted'),
    withActor({ token_intent: { id: intent.id, type: 'card' }, token: { id: 'converted', type: 'card' } }),
  )
  const about = { reactor: { id: reactor.id, name: 'r', elapsed_ms: Number } }
  t.match(dataOf('reactor.completed'), { ...about, request: { invocation_type: 'sync' } })
  t.match(dataOf('reactor.failed'), { reactor: { ...about.reactor, error: 'Reactor Runtime Error' } })
  t.match(dataOf('reactor.completed', 1), {
    request: { id: asyncReactorRequestId, invocation_type: 'async' },
  })
  t.match(dataOf('proxy.invoked'), {
    proxy: { id: proxy.id, name: 'p', type: 'configured', response: { status: 200, elapsed_ms: Number } },
    destination: { request: { method: 'POST', url: `${destination.url}/v1` }, response: { status: 200 } },
  })
  t.match(dataOf('proxy.invoked', 1), { proxy: { type: 'ephemeral' } })
  t.strictSame(
    dataOf('application.key.deleted'),
    withActor({ application_key: { id: key.id, application_id: app.id } }),
  )
  t.match(dataOf('session.authorized'), {
    session: { issued_to_application: { name: 'starter public' }, permissions: ['token:read'] },
    actor: { type: 'application', name: 'starter private' },
  })
  t.match(dataOf('tenant.member.created'), { member: { role: 'ADMIN' }, actor: { name: 'eve@example.com' } })
  const { id, email, role, expires_at, created_by, created_at } = withdrawn
  t.strictSame(
    dataOf('tenant.invitation.deleted'),
    withActor({ invitation: { id, email, role, expires_at, created_by, created_at } }),
  )
  const { code: inCode, config } = SECRETS
  const made = [app.key!, key.key!, proxy.key, session.session_key, session.nonce, mail.link]
  const texts = receiver.received.map(({ text, body }) => ({
    name: body.event.type,
    bytes: Buffer.from(text),
  }))
  t.strictSame(findLeaks([number, inCode, config, ...made], texts), [])
  t.notMatch(
    receiver.received.map(({ text }) => text).join(),
    /"(data|mask|masked|cvc|key|hash|code|configuration|secret|link)":(?!\{"(actor|token|proxy|reactor|session|application|tenant|member|invitation|destination))/,
  )
})

t.test('when a token expires, the vault sends an event', async (t) => {
  const { vault, receiver } = await open(t, ['token.expired'])
  const expires_at = '2030-01-15T13:00:00Z'
  await vault.ask('token create', { id: 'short', type: 'token', data: 'x', expires_at })
  await vault.control.clock.advance({ by: '2h' })
  t.match(receiver.received[0]?.body, {
    event: { type: 'token.expired', data: { token: { id: 'short' }, actor: { type: 'system' } } },
  })
})

t.test('when an old key expires after its grace time, the vault sends an event', async (t) => {
  const { vault, receiver } = await open(t, ['application.key.deleted'])
  const draft = { name: 'shop', type: 'private', permissions: ['token:read'] } as const
  const { id, keys } = await vault.ask('app create', draft)
  await vault.ask('app regenerate-with-grace', { id, grace: '1h' })
  await vault.control.clock.advance({ by: '30m' })
  t.same(receiver.received, [], 'not yet')
  await vault.control.clock.advance({ by: '31m' })
  const application_key = { id: keys![0]!.id, application_id: id }
  t.match(receiver.received[0]?.body, {
    event: { type: 'application.key.deleted', data: { application_key, actor: { type: 'system' } } },
  })
})

t.test(
  'attempts to send an event follow the clock with growing pauses, and the last failure disables the webhook',
  async (t) => {
    const { vault, receiver, hook, body, deliveries } = await open(t, ['token.created'], failing)
    await createCard(vault)
    await vault.control.webhooks({ timeout: LONG })
    let now = Date.parse(NOW)
    for (const [at, seconds] of PAUSES_S.entries()) {
      t.equal(receiver.received.length, at + 1)
      now += seconds * 1000
      await vault.control.clock.set({ mode: 'frozen', at: new Date(now - 1).toISOString() })
      t.equal(receiver.received.length, at + 1, 'not before')
      t.match(await deliveries(), [{ state: 'waiting', attempts: at + 1, status: 500, answer: 'not now' }])
      await vault.control.clock.advance({ by: '1ms' })
    }
    t.equal(receiver.received.length, 10)
    t.equal(new Set(receiver.received.map(({ body }) => body.event.id)).size, 1, 'the event keeps its id')
    t.equal(new Set(receiver.received.map(({ body }) => body.delivered_at)).size, 10)
    t.match(await deliveries(), [{ state: 'failed', attempts: 10, failure: /500/ }])
    t.match(await vault.ask('webhook get', { id: hook.id }), { status: 'disabled' })
    const { data: mails } = (await vault.ask('invite outbox')) as { data: { id: string }[] }
    t.match(mails, [{ to: 'ada@example.com', state: 'outbox', subject: 'A Coffer webhook is disabled' }])
    t.match(await vault.ask('invite outbox', { id: mails[0]!.id }), {
      text: /webhook "hook"[\s\S]*coffer webhook/,
    })
    await createCard(vault, 'meanwhile')
    await t.rejects(vault.ask('webhook resend', { id: (await deliveries())[0]!.id }), { code: 'conflict' })
    await vault.ask('webhook update', { id: hook.id, ...body })
    receiver.state.answer = (response) => void response.end()
    await createCard(vault, 'afterwards')
    await vault.control.webhooks({ timeout: LONG, state: 'sent' })
    t.equal((await deliveries()).length, 2, 'events are not sent to a disabled webhook')
    const failed = (await deliveries()).find(({ state }) => state === 'failed')!
    t.match(await vault.ask('webhook resend', { id: failed.id }), { state: 'waiting', attempts: 0 })
    await vault.control.webhooks({ timeout: LONG, state: 'sent', count: 2 })
    t.equal(
      receiver.received.at(-1)!.body.event.id,
      receiver.received[0]!.body.event.id,
      'the event is sent again with the same id',
    )
  },
)

t.test(
  'events that wait when a webhook is disabled are not sent after the webhook is enabled again',
  async (t) => {
    const { vault, receiver, hook, body, deliveries } = await open(t, ['token.created'], failing)
    await createCard(vault)
    await vault.control.webhooks({ timeout: LONG })
    await vault.ask('webhook update', { id: hook.id, ...body, status: 'disabled' })
    await vault.control.clock.advance({ by: '500ms' })
    await vault.ask('webhook update', { id: hook.id, ...body })
    await vault.control.clock.advance({ by: '1s' })
    t.equal(receiver.received.length, 1)
    t.match(await deliveries(), [{ state: 'dropped' }])
  },
)

t.test(
  'a webhook receiver that does not answer times out after 10 s and delays no other event',
  async (t) => {
    const { vault, receiver, deliveries } = await open(t, ['token.created'], () => {})
    const began = performance.now()
    await createCard(vault, 'one')
    await receiver.waitFor(1)
    await createCard(vault, 'two')
    await receiver.waitFor(2)
    t.ok(
      performance.now() - began < 5_000,
      'the second event is sent while the first event waits for its answer',
    )
    await vault.control.webhooks({ timeout: LONG, count: 2 })
    t.match(await deliveries(), [{ failure: 'There was no answer within 10 s.' }, { failure: String }])
    t.ok(performance.now() - began > 9_900)
  },
)

t.test('a webhook does not follow a redirect, and a missing answer counts as a failure', async (t) => {
  const elsewhere = await startReceiver()
  t.teardown(() => elsewhere.close())
  const { vault, receiver, deliveries } = await open(t, ['token.created'], (response) =>
    response.writeHead(307, { location: elsewhere.url }).end(),
  )
  await createCard(vault, 'one')
  await vault.control.webhooks({ timeout: LONG })
  t.match(await deliveries(), [{ status: 307, state: 'waiting', failure: /307/ }])
  t.strictSame(elsewhere.received, [])
  receiver.state.answer = (response) => void response.destroy()
  await createCard(vault, 'two')
  await vault.control.webhooks({ timeout: LONG, count: 2 })
  const [delivery] = await deliveries()
  t.match(delivery, { state: 'waiting', attempts: 1, failure: /gave no answer/ })
  t.notOk('status' in delivery!)
})

t.test('no event is sent to a host that is not allowed, or to the server itself', async (t) => {
  const receiver = await startReceiver()
  const server = await startServer({ allowNet: ['localhost'] })
  t.teardown(async () => {
    await server.stop()
    receiver.close()
  })
  const create = (name: string, url: string) =>
    server.ask('webhook create', { name, url, events: ['token.created'] })
  const hooks = [
    await create('another', receiver.url),
    await create('itself', `${server.url}/tokens`),
    await create('its dashboard', `http://localhost:${server.port}/`),
  ]
  await createCard(server)
  const found = await server.control.webhooks({ timeout: LONG, count: 3 })
  t.equal(found.length, 3)
  for (const { state, attempts, failure } of found) {
    t.strictSame([state, attempts], ['waiting', 0], 'this does not count as an attempt')
    t.match(
      failure,
      /cannot be called: (the host \S+ is not on the list of --allow-net|it is this server itself)/,
    )
  }
  t.strictSame(receiver.received, [])
  for (const { id } of hooks) t.match(await server.ask('webhook get', { id }), { status: 'enabled' })
})

t.test('deleting a webhook deletes its deliveries', async (t) => {
  const { vault, receiver, hook, deliveries } = await open(t, ['token.created'], failing)
  for (let count = 0; count < 120; count++) await createCard(vault, `card-${count}`)
  await vault.control.webhooks({ timeout: LONG, count: 100 })
  await vault.ask('webhook delete', { id: hook.id })
  t.strictSame(await deliveries(), [])
  const { length } = receiver.received
  await vault.control.clock.advance({ by: '1h' })
  t.equal(receiver.received.length, length)
})

t.test('the deliveries of a webhook are kept for 24 hours', async (t) => {
  const { vault, deliveries } = await open(t, ['token.created'])
  await createCard(vault)
  await vault.control.webhooks({ timeout: LONG })
  await vault.control.clock.advance({ by: '23h' })
  t.equal((await deliveries()).length, 1)
  await vault.control.clock.advance({ by: '2h' })
  t.strictSame(await deliveries(), [])
})

t.test('a fork sends its own events, and signs them with the key of its server', async (t) => {
  const { vault, receiver } = await open(t, ['token.created'])
  const fork = await vault.control.fork()
  t.strictSame((await fork.ask('webhook list')).data, [], 'the fork begins without the webhooks of the vault')
  await fork.ask('webhook create', { name: 'own', url: receiver.url, events: ['token.created'] })
  await createCard(fork)
  await fork.control.webhooks({ timeout: LONG })
  const key = await (await vault.fetch('/keys/webhooks.v1.key')).text()
  t.ok(isSigned(receiver.received[0]!, key))
  t.equal(receiver.received[0]!.body.event.tenant_id, fork.tenant.id)
})

t.test('if the clock moves in real time, an event is retried, but not before the retry is due', async (t) => {
  let refused = 0
  const { vault, receiver } = await open(t, ['token.created'], (response) =>
    response.writeHead(refused++ === 0 ? 500 : 200).end(),
  )
  await vault.control.clock.set({ mode: 'offset', at: NOW })
  await createCard(vault)
  await receiver.waitFor(2)
  await vault.control.webhooks({ timeout: LONG, state: 'sent' })
  const [one, other] = receiver.received.map(({ body }) => Date.parse(body.delivered_at))
  t.ok(other! - one! >= 1000, `the attempt came ${other! - one!} ms later, not before it was due`)
})
