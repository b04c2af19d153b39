/** 3-D Secure under the control plane: decisions, the clock, snapshots, resets, forks and faults. */
import t, { type Test } from 'tap'
import { createControl, startServer } from '../../src/index.js'
import { AUTHENTICATE, BROWSER } from '../operations/documented.js'

type Json = Record<string, unknown>

async function open(t: Test) {
  const server = await startServer()
  t.teardown(() => server.stop())
  const asking =
    (key: string) =>
    async (line: string, body?: object): Promise<{ status: number; body: Json }> => {
      const [method = '', path = ''] = line.split(' ')
      const answer = await fetch(server.url + path, {
        method,
        headers: { 'svc-api-key': key, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: (await answer.json()) as Json }
    }
  const challenge = async (send: ReturnType<typeof asking>, type: 'customer' | 'merchant' = 'customer') => {
    const card = { type: 'card', data: { number: '4000020000000000' } }
    const { body: token } = await send('POST /tokens', card)
    const session = { token_id: token.id, type, device: 'browser', device_info: BROWSER }
    const { body: made } = await send('POST /3ds/sessions', session)
    const request =
      type === 'customer'
        ? AUTHENTICATE
        : { ...AUTHENTICATE, authentication_type: 'other-payment', decoupled_challenge_max_time: 5 }
    await send(`POST /3ds/sessions/${made.id}/authenticate`, request)
    return made.id as string
  }
  return { server, control: server.control, send: asking(server.keys.private), asking, challenge }
}

t.test('a challenge can be decided through the control plane, in the process and over HTTP', async (t) => {
  const { server, control, send, challenge } = await open(t)
  const remote = createControl({ url: server.url, key: control.key })
  for (const threeds of [control.threeds, remote.threeds]) {
    const id = await challenge(send)
    t.equal((await send(`GET /3ds/sessions/${id}/challenge-result`)).status, 409)
    t.match(await threeds.decide({ id, outcome: 'cancelled' }), { id, authentication: Object })
    t.match((await send(`GET /3ds/sessions/${id}/challenge-result`)).body, {
      authentication_status: 'failed',
      challenge_cancel_reason: 'cardholder-canceled',
    })
    await t.rejects(threeds.decide({ id }), { code: 'conflict' })
    await t.rejects(threeds.decide({ id: 'unknown' }), { code: 'not_found' })
  }
  const id = await challenge(send)
  const answer = await fetch(`${server.url}/_coffer/3ds/${id}/complete`, {
    method: 'POST',
    headers: { 'svc-api-key': control.key },
  })
  t.equal(answer.status, 200, 'without a body the scenario of the card decides')
  t.match((await send(`GET /3ds/sessions/${id}/challenge-result`)).body, {
    authentication_status: 'successful',
  })
  const refused = await fetch(`${server.url}/_coffer/3ds/${id}/complete`, {
    method: 'POST',
    headers: { 'svc-api-key': server.keys.private },
  })
  t.equal(refused.status, 401, 'not with the key of an application')
})

t.test('challenges and sessions end by the clock of the control plane', async (t) => {
  const { server, control, send, challenge } = await open(t)
  await server.ask('webhook create', {
    name: 'w',
    url: 'https://example.com/events',
    events: ['3ds.session.decoupled-challenge-notification'],
  })
  await control.clock.set({ mode: 'frozen', at: '2030-01-15T12:00:00Z' })
  const decoupled = await challenge(send, 'merchant')
  const browser = await challenge(send)
  const ended = async () => (await server.ask('webhook deliveries')).pagination.total_items
  await control.clock.advance({ by: '59s' })
  t.equal(await ended(), 0)
  await control.clock.advance({ by: '1s' })
  t.equal(await ended(), 1, 'the event is sent without any request')
  t.match((await send(`GET /3ds/sessions/${decoupled}/challenge-result`)).body, {
    authentication_status: 'successful',
  })
  await control.clock.advance({ by: '9m' })
  t.match((await send(`GET /3ds/sessions/${browser}/challenge-result`)).body, {
    authentication_status_reason: 'timeout-at-acs',
  })
})

t.test('a snapshot restores sessions in progress, and a fork or a reset begins without them', async (t) => {
  const { server, control, send, asking, challenge } = await open(t)
  const id = await challenge(send)
  await control.snapshots.create({ name: 'pending' })
  const result = `GET /3ds/sessions/${id}/challenge-result`
  for (const outcome of ['failed', 'successful'] as const) {
    await control.threeds.decide({ id, outcome })
    t.match((await send(result)).body, { authentication_status: outcome })
    await control.snapshots.restore({ name: 'pending' })
    t.equal((await send(result)).status, 409, 'pending again')
  }
  const fork = await control.fork()
  const inFork = asking(fork.keys.private!)
  t.equal((await inFork(`GET /3ds/sessions/${id}`)).status, 404)
  const own = await challenge(inFork)
  t.equal((await send(`GET /3ds/sessions/${own}`)).status, 404)
  await t.rejects(control.threeds.decide({ id: own }), { code: 'not_found' })
  await fork.control.threeds.decide({ id: own })
  t.equal((await inFork(`GET /3ds/sessions/${own}/challenge-result`)).status, 200)
  await control.reset()
  t.equal((await send(`GET /3ds/sessions/${id}`)).status, 404)
  t.same((await server.ask('3ds list')).data, [])
})

t.test(
  'an injected fault in a 3-D Secure request has the form that errors of the service have',
  async (t) => {
    const { control, send, challenge } = await open(t)
    const id = await challenge(send)
    const rule = { kind: 'status', status: 424 } as const
    await control.faults.set({
      rules: [
        { ...rule, operation: '3ds result' },
        { ...rule, operation: 'token get' },
      ],
    })
    t.strictSame(await send(`GET /3ds/sessions/${id}/challenge-result`), {
      status: 424,
      body: {
        title: '3DS Service Error',
        status: 424,
        detail: "The 3DS service returned an error. See the 'error' field for more details.",
        error: {
          service_status: '502',
          session_id: id,
          error_source: 'Access Control Server',
          message: 'The access control server failed.',
          detail: 'A fault rule of the control plane caused this answer.',
        },
      },
    })
    t.match((await send('GET /tokens/x')).body, { title: 'Failed Dependency', error: undefined })
  },
)
