/** The time line of the dashboard: the items with one trace id, and the items about one token. */
import t, { type Test } from 'tap'
import { createVaultAnswerer } from '../../src/control/answerer.js'
import { openControlled } from '../../src/control/control-state.js'
import { readLog, readTrail } from '../../src/control/page-trail.js'
import type { Kind, RecordOf } from '../../src/domain/records/records.js'
import { toHandler } from '../../src/http/handler.js'
import { startReceiver } from '../delivery/receiver.js'

const ORIGIN = 'http://localhost:4999'
const CODE = 'module.exports = async () => ({ raw: { done: true } })'
const PERMISSIONS = ['token:create', 'token:read', 'token:use', 'account-updater:job:create']

t.setTimeout(60_000)

async function open(t: Test) {
  const { control } = await openControlled({ tenantName: 'test' }, { applications: [], tokens: [] })
  const receiver = await startReceiver()
  control.app.configureReactors({ allowNet: ['127.0.0.1'] })
  t.teardown(async () => {
    await control.close()
    receiver.close()
  })
  const ask = async (operation: string, input: object = {}) =>
    // biome-ignore lint/suspicious/noExplicitAny: tests read members of any answer.
    (await control.app.ask({ operation, input, as: { reveal: false } } as never)).result as any
  const { key } = await ask('app create', {
    name: 'backend',
    type: 'private',
    permissions: PERMISSIONS,
  })
  const { key: manager } = await ask('app create', {
    name: 'manager',
    type: 'management',
    permissions: ['tenant:invitation:create'],
  })
  const handle = toHandler(createVaultAnswerer({}, { control, prefix: 'svc' }))
  const call = async (path: string, trace: string, body?: object, apiKey = key) => {
    const headers = { 'svc-api-key': apiKey, 'svc-trace-id': trace, 'content-type': 'application/json' }
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await handle(new Request(`${ORIGIN}${path}`, init))
    return { status: answer.status, text: await answer.text() }
  }
  const place = { control, tenant: undefined }
  const trail = (asked: Record<string, unknown>) => readTrail(place, asked)
  return { control, receiver, ask, call, trail, place, manager }
}

const kindsOf = ({ items }: Awaited<ReturnType<typeof readTrail>>) => items.map(({ kind }) => kind)

t.test('the time line has the log records, runs, deliveries and mails of a trace id, in order', async (t) => {
  const { control, receiver, ask, call, trail, manager } = await open(t)
  const events = ['token.created', 'tenant.invitation.created']
  const hook = await ask('webhook create', { name: 'billing', url: receiver.url, events })
  const blocked = await ask('webhook create', { name: 'blocked', url: 'https://hooks.example/', events })
  t.equal((await call('/tokens', 'trace-token', { id: 'one', type: 'token', data: 'x' })).status, 201)
  await receiver.waitFor(1)
  await control.app.deliveries.settle()
  const created = await trail({ trace: 'trace-token' })
  t.strictSame(kindsOf(created), ['log', 'delivery', 'delivery'])
  t.match(created, {
    isCut: false,
    items: [
      { kind: 'log', operation: 'create', entity_type: 'token', entity_id: 'one', message: 'Token created' },
      { kind: 'delivery', webhook: 'blocked', webhook_id: blocked.id, state: 'blocked', attempts: 0 },
      { kind: 'delivery', webhook: 'billing', webhook_id: hook.id, state: 'sent', attempts: 1, status: 200 },
    ],
  })
  t.notMatch(JSON.stringify(created), /"data"|"payload"|fingerprint/)

  t.equal((await call('/tokens/one', 'trace-read')).status, 200)
  const ofToken = await trail({ entity: 'one' })
  t.strictSame(
    ofToken.items.map(({ kind, trace_id }) => `${kind} ${trace_id}`),
    ['log trace-token', 'delivery trace-token', 'delivery trace-token', 'log trace-read'],
    'the request that created the token is in the time line of the token',
  )

  const reactor = await ask('reactor create', { name: 'one', code: CODE })
  const callback_url = receiver.url
  t.equal((await call(`/reactors/${reactor.id}/react`, 'trace-run', { args: {} })).status, 200)
  t.match(await trail({ trace: 'trace-run' }), {
    items: [{ kind: 'log' }, { kind: 'run', reactor_id: reactor.id, outcome: 'done', status: 200 }],
  })
  receiver.state.answer = (response) => response.writeHead(500).end()
  t.equal(
    (await call(`/reactors/${reactor.id}/react`, 'trace-later', { args: {}, callback_url })).status,
    202,
  )
  await receiver.waitFor(2)
  await control.app.deliveries.settle()
  const later = await trail({ trace: 'trace-later' })
  t.match(
    later.items.find(({ kind }) => kind === 'callback'),
    { reactor_id: reactor.id, attempts: 1, trace_id: 'trace-later' },
  )
  t.notMatch(JSON.stringify(later), /127\.0\.0\.1/, 'the address of a callback may contain a secret')

  const invited = await call('/tenants/self/invitations', 'trace-mail', { email: 'ada@example.com' }, manager)
  t.equal(invited.status, 201, invited.text)
  const mailed = await trail({ trace: 'trace-mail' })
  t.strictSame(kindsOf(mailed).slice(-1), ['mail'])
  t.match(mailed.items.at(-1), { to: 'ada@example.com', state: 'outbox' })
  t.equal((await ask('invite outbox')).data[0].trace_id, 'trace-mail', 'the outbox names the request')

  const job = await call('/account-updater/jobs', 'trace-job', {})
  t.equal(job.status, 201, job.text)
  t.match(await trail({ trace: 'trace-job' }), {
    items: [{ kind: 'log' }, { kind: 'job', status: 'pending' }],
  })
  t.strictSame(await trail({ trace: 'no such trace' }), { items: [], isCut: false })
  for (const asked of [{}, { trace: '' }, { trace: 5 }, { entity: 'x'.repeat(401) }])
    await t.rejects(trail(asked), { code: 'validation' })
})

t.test('if a client repeats a trace id, the time line has the newest 100 records', async (t) => {
  const { call, trail } = await open(t)
  await call('/tokens', 'first', { id: 'one', type: 'token', data: 'x' })
  for (let count = 0; count < 130; count++) await call('/tokens/one', 'repeated')
  const { items, isCut } = await trail({ trace: 'repeated' })
  t.equal(items.length, 100)
  t.equal(isCut, true)
})

t.test(
  'the log of the dashboard has the trace id of each record, and reading this log is not logged',
  async (t) => {
    const { call, ask, place } = await open(t)
    await call('/tokens', 'trace-token', { id: 'one', type: 'token', data: 'x' })
    const before = (await ask('log list')).pagination.total_items
    const { data, pagination } = await readLog(place, { entity_type: 'token' })
    t.match(data[0], { entity_id: 'one', trace_id: 'trace-token' })
    t.equal(pagination.total_items, 1)
    t.equal((await ask('log list')).pagination.total_items, before)
    t.notOk('trace_id' in (await ask('log list')).data[0], 'the log of the API has no trace id')
    await t.rejects(readLog(place, { start_date: 'never' }), { code: 'validation' })
  },
)

t.test('records that an earlier version wrote without a trace id can still be read', async (t) => {
  const { control, receiver, ask, call, trail, manager } = await open(t)
  const hook = { name: 'blocked', url: 'https://hooks.example/', events: ['token.created'] }
  await ask('webhook create', hook)
  await call('/tokens', 'trace-token', { id: 'one', type: 'token', data: 'x' })
  await call('/tenants/self/invitations', 'trace-mail', { email: 'ada@example.com' }, manager)
  await call('/account-updater/jobs', 'trace-job', {})
  const { number } = await control.app.tenant()
  const forget = async <K extends Kind>(kind: K) =>
    control.app.store.write(async (writer) => {
      const { records } = await writer.find(kind, number, { page: 1, size: 10 })
      t.ok(records.length > 0, kind)
      for (const record of records) {
        const { trace_id, ...old } = record as RecordOf[K] & { trace_id?: string }
        t.ok(trace_id)
        await writer.replace(kind, number, old as RecordOf[K])
      }
    })
  for (const kind of ['waiting_batch', 'mail', 'account_updater_job'] as const) await forget(kind)
  t.strictSame(kindsOf(await trail({ trace: 'trace-token' })), ['log'])
  t.match((await ask('webhook deliveries')).data, [{ state: 'waiting', type: 'token.created' }])
  t.match((await ask('invite outbox')).data, [{ to: 'ada@example.com' }])
  const [webhook] = (await ask('webhook list')).data
  await ask('webhook update', { ...hook, id: webhook.id, url: receiver.url })
  await receiver.waitFor(1)
  await control.app.deliveries.settle()
  t.strictSame(
    kindsOf(await trail({ trace: 'trace-token' })),
    ['log', 'delivery'],
    'a delivery has the trace id of its event',
  )
})
