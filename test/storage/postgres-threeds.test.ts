/** Two servers share a vault in PostgreSQL, and each session of 3-D Secure uses both servers. */
import t, { type Test } from 'tap'
import { createVaultAnswerer } from '../../src/control/answerer.js'
import { ControlState } from '../../src/control/control-state.js'
import type { App } from '../../src/vault/app.js'
import { createVault, openVault } from '../../src/vault/open.js'
import { creqOf } from '../http/threeds-shop.js'
import { AUTHENTICATE, BROWSER } from '../operations/documented.js'
import { ask, createKey, locate } from '../support/vault.js'
import { startPostgres } from './postgres-server.js'

const MINUTE_MS = 60_000
const server = await startPostgres()
t.teardown(() => server.stop())

interface Served {
  app: App
  send(line: string, body?: object): Promise<{ status: number; body: Json }>
  /** Sends a form, as a page in a browser does. */
  post(path: string, fields: Record<string, string>): Promise<number>
}
// biome-ignore lint/suspicious/noExplicitAny: a test may read any property of an answer.
type Json = any

function serve(app: App, key: string): Served {
  const answer = createVaultAnswerer({}, { control: new ControlState(app), prefix: 'svc' })
  const call = (method: string, target: string, headers: Record<string, string>, body: string) =>
    answer({
      method,
      target,
      headers: { host: 'vault.test:4010', ...headers },
      readBody: async () => Buffer.from(body),
    })
  return {
    app,
    send: async (line, body) => {
      const [method = '', path = ''] = line.split(' ')
      const headers = { 'svc-api-key': key, 'content-type': 'application/json' }
      const { status, body: text } = await call(method, path, headers, body ? JSON.stringify(body) : '')
      return { status, body: JSON.parse(String(text)) }
    },
    post: async (path, fields) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      return (await call('POST', path, headers, new URLSearchParams(fields).toString())).status
    },
  }
}

async function openServers(t: Test) {
  const clock = { now: Date.parse('2030-01-15T12:00:00Z') }
  const address = await server.createDatabase()
  const key = createKey()
  const place = () => locate(address, () => clock.now)
  const apps = [
    await createVault(place(), 'first', key.create),
    await openVault(place(), key.choose),
  ] as const
  t.teardown(() => Promise.all(apps.map((app) => app.close())))
  const permissions = ['3ds:session:create', '3ds:session:read', '3ds:session:authenticate']
  const shop = await ask(apps[0], 'app create', { name: 'shop', type: 'private', permissions })
  const events = ['3ds.session.challenge-completed', '3ds.session.decoupled-challenge-notification']
  await ask(apps[0], 'webhook create', { name: 'all', url: 'https://example.com/', events })
  const [one, two] = apps.map((app) => serve(app, shop.key)) as [Served, Served]
  const { id: token_id } = await ask(one.app, 'token create', {
    type: 'card',
    data: { number: '4000020000000000' },
  })
  const create = async (by: Served, more: object = {}) => {
    const body = { token_id, device: 'browser', device_info: BROWSER, ...more }
    const made = await by.send('POST /3ds/sessions', body)
    t.equal(made.status, 201)
    return made.body.id as string
  }
  const countEvents = async () => (await ask(one.app, 'webhook deliveries')).pagination.total_items
  return { clock, one, two, create, countEvents }
}

t.test('each step of a challenge can use another server than the previous step', async (t) => {
  const { one, two, create, countEvents } = await openServers(t)
  const id = await create(one)
  t.equal(await two.post(`/3ds/sessions/${id}/method-notification`, {}), 200)
  const first = await one.send(`POST /3ds/sessions/${id}/authenticate`, AUTHENTICATE)
  t.match(first.body, { authentication_status: 'challenge' })
  t.equal((await two.send(`POST /3ds/sessions/${id}/authenticate`, AUTHENTICATE)).status, 409)
  const acs = first.body.acs_transaction_id
  t.equal(await two.post('/3ds/acs/browser/creq', { creq: creqOf({ id, acs }) }), 200)
  const answer = { session: id, acs_transaction_id: acs, code: '1234' }
  t.equal(await one.post('/3ds/acs/browser/answer', answer), 200)
  const result = await two.send(`GET /3ds/sessions/${id}/challenge-result`)
  t.match(result.body, { authentication_status: 'successful', challenge_attempts: '01' })
  t.match((await one.send(`GET /3ds/sessions/${id}`)).body, {
    method: { method_completion_indicator: 'Y' },
    authentication: { authentication_status: 'successful' },
  })
  t.equal(await countEvents(), 1)
})

t.test(
  'if two servers get authentications or answers at the same time, only the first of each kind counts',
  async (t) => {
    const { one, two, create, countEvents } = await openServers(t)
    const id = await create(one)
    const line = `POST /3ds/sessions/${id}/authenticate`
    const all = await Promise.all([one, two, one, two].map((each) => each.send(line, AUTHENTICATE)))
    t.strictSame(all.map(({ status }) => status).sort(), [200, 409, 409, 409])
    const { body } = await two.send(`GET /3ds/sessions/${id}`)
    const acs = body.authentication.acs_transaction_id
    await one.post('/3ds/acs/browser/creq', { creq: creqOf({ id, acs }) })
    const given = { session: id, acs_transaction_id: acs }
    await Promise.all([
      one.post('/3ds/acs/browser/answer', { ...given, code: '1234' }),
      two.post('/3ds/acs/browser/answer', { ...given, action: 'cancel' }),
    ])
    t.equal(await countEvents(), 1, 'one of the two answers decided')
    const results = await Promise.all(
      [one, two].map((each) => each.send(`GET /3ds/sessions/${id}/challenge-result`)),
    )
    t.strictSame(results[0]!.body, results[1]!.body)
  },
)

t.test('if two servers look for ended decoupled challenges, only one of them sends the event', async (t) => {
  const { clock, one, two, create, countEvents } = await openServers(t)
  const id = await create(one, { type: 'merchant' })
  const request = { ...AUTHENTICATE, authentication_type: 'mail-order', decoupled_challenge_max_time: 5 }
  const { body } = await one.send(`POST /3ds/sessions/${id}/authenticate`, request)
  t.match(body, { authentication_status: 'decoupled_challenge' })
  clock.now += MINUTE_MS
  await Promise.all([one.app.sweep(), two.app.sweep()])
  t.equal(await countEvents(), 1)
  t.match((await two.send(`GET /3ds/sessions/${id}/challenge-result`)).body, {
    authentication_status: 'successful',
  })
})
