/**
 * Listeners fetch the events of a webhook from the server, and send them to addresses that the server cannot reach.
 */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import {
  createControl,
  listen,
  openTestVault,
  startServer,
  type WebhookAttempt,
  type WebhookOptions,
} from '../../src/index.js'
import { createVaultHome } from '../cli/home.js'
import { createWorkplace, runCommand, serveFor, startCommand, startProcess } from '../http/process.js'
import { isSigned, type Received, startReceiver } from './receiver.js'

t.setTimeout(120_000)

const MINUTE_MS = 60_000
/** Nothing listens on port 9 of this machine. */
const DEAD = 'http://127.0.0.1:9/events'

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.stop())
  const receiver = await startReceiver()
  t.teardown(() => receiver.close())
  return { vault, receiver, createToken: (id: string, more = {}) => createToken(vault, id, more) }
}

function createToken(vault: Pick<Awaited<ReturnType<typeof openTestVault>>, 'ask'>, id: string, more = {}) {
  return vault.ask('token create', { id, type: 'token', data: 'x', ...more })
}

/** Listens until the test ends. `attempts` contains the attempts that the listener has reported. */
async function listenIn(t: Test, vault: Parameters<typeof listen>[0], options: WebhookOptions = {}) {
  const attempts: WebhookAttempt[] = []
  const problems: string[] = []
  let tell = () => {}
  const listener = await listen(vault, {
    onProblem: (text) => {
      problems.push(text)
      tell()
    },
    onEvent: (event) => {
      attempts.push(event)
      tell()
    },
    ...options,
  })
  t.teardown(() => listener.stop())
  const until = async (isSo: () => boolean) => {
    while (!isSo())
      await new Promise<void>((resolve) => {
        tell = resolve
      })
  }
  return {
    listener,
    attempts,
    problems,
    until,
    waitFor: (count: number) => until(() => attempts.length >= count),
  }
}

t.test(
  'a listener sends events with their real signature to an address that the server is not allowed to call',
  async (t) => {
    const { vault, receiver, createToken } = await open(t)
    const { listener, attempts, waitFor } = await listenIn(t, vault.control, {
      to: `${receiver.url}?secret=1`,
      events: ['token.created'],
    })
    t.match(await vault.ask('webhook get', { id: listener.id }), {
      name: 'coffer webhook listen',
      url: receiver.url,
      events: ['token.created'],
    })
    await createToken('card-1')
    await vault.ask('token get', { id: 'card-1' })
    await createToken('card-2')
    await waitFor(2)
    t.match(attempts, [
      { type: 'token.created', attempt: 1, status: 200, isDelivered: true, retryMs: undefined },
      { type: 'token.created', isDelivered: true },
    ])
    t.same(receiver.types(), ['token.created', 'token.created'], 'the event token.read has no listener')
    t.equal(receiver.received[0]!.url, '/events?secret=1')
    t.ok(receiver.received.every((each) => isSigned(each, listener.publicKey)))
    t.match(receiver.received[0]!.headers, { 'svc-signature-version': 'v1', 'user-agent': 'coffer' })
    const { data } = await vault.ask('webhook deliveries')
    t.match(data, [
      { state: 'sent', attempts: 1, status: 200 },
      { state: 'sent', attempts: 1, status: 200 },
    ])
    await listener.stop()
    t.same((await vault.ask('webhook list')).data, [], 'the end of the listener deletes the webhook')
  },
)

t.test(
  'a listener sends an event again with the same id if the response is not 2xx, at the times of the usual retries',
  async (t) => {
    const { vault, receiver, createToken } = await open(t)
    receiver.state.answer = (response) => {
      response.statusCode = receiver.received.length < 3 ? 503 : 204
      response.end('later')
    }
    const { attempts, waitFor } = await listenIn(t, vault.control, {
      to: receiver.url,
      events: ['token.created'],
    })
    await createToken('card-1')
    await waitFor(1)
    t.match(attempts[0], { status: 503, isDelivered: false, retryMs: 1000, answer: 'later' })
    await vault.control.clock.advance({ by: '1h' })
    await waitFor(2)
    t.match(attempts[1], { attempt: 2, status: 503, retryMs: 4000 })
    await vault.control.clock.advance({ by: '1h' })
    await waitFor(3)
    t.match(attempts[2], { attempt: 3, status: 204, isDelivered: true })
    t.equal(new Set(receiver.received.map(({ body }) => body.event.id)).size, 1)
    t.equal((await vault.ask('webhook list')).data.length, 1, 'a jump of the clock does not end the listener')
  },
)

t.test('an event that is due is retried even if many older events wait for a later retry', async (t) => {
  const { vault, createToken } = await open(t)
  let isBroken = true
  const receiver = await startReceiver()
  t.teardown(() => receiver.close())
  receiver.state.answer = (response) => {
    response.statusCode = isBroken ? 503 : 204
    response.end()
  }
  await vault.control.clock.set({ mode: 'frozen', at: '2030-01-01T00:00:00Z' })
  const { attempts, waitFor } = await listenIn(t, vault.control, {
    to: receiver.url,
    events: ['token.created', 'token.deleted'],
  })
  // The test lets this many events fail until each event waits 16 s for its next attempt.
  const MANY = 101
  const reported = async (attempt: number) => {
    const read = async (page: number) => (await vault.ask('webhook deliveries', { page, size: 100 })).data
    const isReported = async () =>
      [...(await read(1)), ...(await read(2))].filter(({ attempts }) => attempts === attempt).length === MANY
    while (!(await isReported()));
  }
  for (let at = 0; at < MANY; at++) await createToken(`card-${at}`)
  await reported(1)
  for (let attempt = 2; attempt <= 3; attempt++) {
    await vault.control.clock.advance({ by: '1h' })
    await reported(attempt)
  }
  await vault.ask('token delete', { id: 'card-0' })
  await waitFor(MANY * 3 + 1)
  t.match(attempts.at(-1), { type: 'token.deleted', attempt: 1, status: 503 })
  while (!(await vault.ask('webhook deliveries', { size: 1 })).data.every(({ attempts }) => attempts === 1));
  isBroken = false
  await vault.control.clock.advance({ by: '2s' })
  await waitFor(MANY * 3 + 2)
  t.match(attempts.at(-1), { type: 'token.deleted', attempt: 2, status: 204 })
})

t.test('a listener continues if no server listens at the address to which it sends events', async (t) => {
  const { vault, createToken } = await open(t)
  const { attempts, waitFor } = await listenIn(t, vault.control, { to: DEAD, events: ['token.created'] })
  await createToken('card-1')
  await waitFor(1)
  t.match(attempts, [{ failure: /127\.0\.0\.1:9 cannot be reached \(ECONNREFUSED\)/, retryMs: 1000 }])
  for (let attempt = 2; attempt <= 10; attempt++) {
    await vault.control.clock.advance({ by: '1h' })
    await waitFor(attempt)
  }
  t.match(attempts.at(-1), { attempt: 10, retryMs: undefined, isDelivered: false })
  const [hook] = (await vault.ask('webhook list')).data
  t.equal(hook!.status, 'enabled', 'failures do not disable the webhook of a listener')
  await createToken('card-2')
  await waitFor(11)
})

t.test(
  'if there are two listeners, each gets every event, and listeners do not count towards the limit of 5 webhooks',
  async (t) => {
    const { vault, createToken } = await open(t)
    const types: string[][] = [[], []]
    const listeners = await Promise.all(
      types.map((list) =>
        listenIn(t, vault.control, {
          events: ['token.created', 'token.deleted'],
          to: async (request) => {
            list.push(((await request.json()) as { event: { type: string } }).event.type)
            return new Response()
          },
        }),
      ),
    )
    for (let made = 0; made < 5; made++)
      await vault.ask('webhook create', {
        name: `hook ${made}`,
        url: 'https://example.com/',
        events: ['token.read'],
      })
    await t.rejects(
      vault.ask('webhook create', { name: 'sixth', url: 'https://example.com/', events: ['token.read'] }),
      { code: 'unprocessable' },
    )
    await createToken('card-1')
    await vault.ask('token delete', { id: 'card-1' })
    for (const { waitFor } of listeners) await waitFor(2)
    for (const list of types) t.same(list.sort(), ['token.created', 'token.deleted'])
    t.equal(
      ((await vault.ask('seed export')) as { webhooks: object[] }).webhooks.length,
      5,
      'a seed has no listeners',
    )
    for (let made = 2; made < 5; made++) await listenIn(t, vault.control)
    await t.rejects(listen(vault.control), { code: 'unprocessable', message: /At most 5 listeners/ })
  },
)

t.test('if the function that receives an event throws an error, the attempt counts as failed', async (t) => {
  const { vault, createToken } = await open(t)
  const { attempts, waitFor } = await listenIn(t, vault.control, {
    to: () => {
      throw new Error('secret')
    },
  })
  await createToken('card-1')
  await waitFor(1)
  t.match(attempts, [{ isDelivered: false, failure: /has thrown an error/ }])
  t.notMatch(JSON.stringify(await vault.ask('webhook deliveries')), 'secret')
})

t.test('after a reset, a listener creates its webhook again', async (t) => {
  const { vault, createToken } = await open(t)
  const { listener, attempts, problems, until } = await listenIn(t, vault.control, {
    events: ['token.created'],
  })
  await vault.control.reset()
  await until(() => problems.length > 0)
  t.match(problems, [/is gone, for example after a reset/])
  // The listener reports the loss before it creates its webhook again.
  while ((await vault.ask('webhook list')).data.length === 0) await new Promise(setImmediate)
  await createToken('card-1')
  await until(() => attempts.length > 0)
  t.not((await vault.ask('webhook list')).data[0]!.id, listener.id)
  await listener.stop()
  t.same((await vault.ask('webhook list')).data, [])
})

t.test('if there are many large events, a listener receives each event completely', async (t) => {
  const { vault } = await open(t)
  const count = 60
  const { attempts, waitFor } = await listenIn(t, vault.control, { events: ['3ds.session.created'] })
  const set = { 'session.device': 'd'.repeat(60_000) }
  for (let made = 0; made < count; made++)
    await vault.ask('webhook trigger', { event: '3ds.session.created', set })
  await waitFor(count)
  t.equal(new Set(attempts.map(({ payload }) => payload.event.id)).size, count)
  t.ok(attempts.every(({ payload }) => payload.event.data.session.device.length === 60_000))
})

t.test(
  'only the holder of the control key can listen over HTTP, and a listener does not follow a redirect',
  async (t) => {
    await using server = await startServer()
    const { key } = server.control
    for (const [path, method] of [
      ['', 'POST'],
      ['/x/take', 'POST'],
      ['/x/reports', 'POST'],
      ['/x', 'DELETE'],
    ] as const)
      for (const sent of [undefined, server.keys.management!, `${key}x`]) {
        const headers = { ...(sent && { 'svc-control-key': sent }), 'content-type': 'application/json' }
        const body = method === 'POST' ? '{}' : undefined
        const url = `${server.url}/_coffer/webhooks/listeners${path}`
        t.equal(
          (await fetch(url, { method, headers, ...(body && { body }) })).status,
          401,
          `${method} ${path}`,
        )
      }
    const elsewhere = await startReceiver()
    t.teardown(() => elsewhere.close())
    const url = await serveWith(t, (_, response) => {
      response.writeHead(307, { location: elsewhere.url })
      response.end()
    })
    const control = createControl({ url: server.url, key })
    const { attempts, waitFor } = await listenIn(t, control, { to: url })
    await createToken(server, 'card-1')
    await waitFor(1)
    t.match(attempts, [{ status: 307, isDelivered: false }])
    t.equal(elsewhere.received.length, 0)
  },
)

t.test(
  'a listener gets an event again if it does not report the result, and a late or repeated report changes nothing',
  async (t) => {
    const { vault, createToken } = await open(t)
    const { open: begin, take, report } = vault.control.listeners
    const { id } = await begin({ events: ['token.created'] })
    await createToken('card-1')
    const [taken] = await take({ id })
    t.match(taken, { attempt: 1, type: 'token.created', headers: { 'svc-signature': String } })
    t.same(await take({ id, timeout: '0ms' }), [], 'the event is leased')
    await vault.control.clock.advance({ by: '59s' })
    t.same(await take({ id, timeout: '0ms' }), [])
    await vault.control.clock.advance({ by: '2s' })
    const [again] = await take({ id })
    t.match(again, { id: taken!.id, attempt: 1 })
    const reports = [{ id: taken!.id, attempt: 1, status: 500 }]
    await report({ id, reports })
    await report({ id, reports })
    t.match((await vault.ask('webhook deliveries')).data, [{ state: 'waiting', attempts: 1, status: 500 }])
    await report({ id, reports: [{ id: taken!.id, attempt: 3, status: 200 }] })
    t.match((await vault.ask('webhook deliveries')).data, [{ state: 'waiting', attempts: 1 }])
    const { id: other } = await vault.ask('webhook create', {
      name: 'x',
      url: 'https://example.com/',
      events: ['token.read'],
    })
    for (const call of [
      take({ id: other }),
      report({ id: other, reports }),
      vault.control.listeners.close({ id: other }),
    ])
      await t.rejects(call, { code: 'not_found' }, 'other webhooks have no listener')
  },
)

t.test('the webhook of a listener that was killed is deleted after 2 minutes', async (t) => {
  let now = Date.UTC(2030, 0)
  const vault = await openTestVault({ clock: () => now })
  t.teardown(() => vault.stop())
  const hooks = async () => (await vault.ask('webhook list')).data.length
  await vault.ask('control listener open', {})
  await vault.ask('control listener open', {})
  now += MINUTE_MS
  await vault.ask('control listener open', {})
  t.equal(await hooks(), 3)
  now += MINUTE_MS + 1
  const { id } = await vault.ask('control listener open', {})
  t.equal(await hooks(), 2)
  await vault.ask('control listener take', { id, timeout: '0ms' })
  now += 3 * MINUTE_MS
  await vault.ask('control clock advance', { by: '1s' })
  t.equal(await hooks(), 1, 'the server deletes it too, and keeps the listener that it has seen')
})

t.test(
  'a server stops although a listener waits for events, and the listener reports the lost connection',
  async (t) => {
    const server = await startServer()
    const control = createControl({ url: server.url, key: server.control.key })
    const { problems, until, listener } = await listenIn(t, control)
    await server.stop()
    await until(() => problems.length > 0)
    t.match(problems, [/The connection to the server is lost|cannot be reached/])
    await listener.stop()
    t.match(problems.at(-1), /does not answer\. It deletes the webhook by itself/)
  },
)

t.test('coffer webhook listen prints events without control characters, and ends at Ctrl-C', async (t) => {
  const home = await createVaultHome(t)
  const receiver = await startReceiver()
  t.teardown(() => receiver.close())
  const words = [
    'webhook',
    'listen',
    '--forward-to',
    receiver.url,
    '--event',
    'token.created',
    '-o',
    'ndjson',
  ]
  let begin = () => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const listening = home.run(words, {
    interruptAt: '"payload"',
    watch: (text) => text.includes('Listening') && begin(),
  })
  await begun
  await home.createToken({ id: 'card-1', metadata: { note: '\u001b[31mred\u202e' } })
  const { code, stdout, stderr } = await listening
  t.equal(code, 0)
  t.match(stderr, /Listening for 1 type of events\. Events are sent to http:\/\/127\.0\.0\.1:\d+\/events\./)
  t.match(JSON.parse(stdout), { type: 'token.created', attempt: 1, status: 200, payload: { event: {} } })
  t.notMatch(stdout, /[\u0000-\u0009\u001b\u202e]/)
  t.match(JSON.parse(stdout).payload.event.data.token.metadata, { note: '\u001b[31mred\u202e' })
  t.equal(receiver.received.length, 1)
  t.same((await home.json('webhook list --output json')).data, [])
  const key = await home.run('webhook listen --print-key')
  t.match(key, { code: 0, stdout: /^-----BEGIN PUBLIC KEY-----/ })
  t.ok(isSigned(receiver.received[0] as Received, key.stdout))
  for (const [address, expected] of [
    ['ftp://localhost/', 2],
    ['http://user:word@localhost/', 2],
    ['http://localhost/#x', 2],
  ] as const)
    t.match(await home.run(['webhook', 'listen', '--forward-to', address]), {
      code: expected,
      stderr: /--forward-to|forwarded/,
    })
  t.match(await home.run('webhook listen --event token.made'), { code: 2, stderr: /types of events/ })
  t.match(await home.run('webhook listen', { env: { COFFER_NO_REVEAL: '1' } }), { code: 4 })
})

t.test('a listener continues after the server of its vault was killed and started again', async (t) => {
  const place = createWorkplace()
  const receiver = await startReceiver()
  t.teardown(() => receiver.close())
  const { stdout } = await runCommand(place, ['init', '--starter-apps', '-o', 'json'])
  const { key } = JSON.parse(stdout).applications.private
  const create = async ({ url }: { url: string }, id: string) => {
    const headers = { 'svc-api-key': key, 'content-type': 'application/json' }
    const body = JSON.stringify({ id, type: 'token', data: 'x' })
    t.equal((await fetch(`${url}/tokens`, { method: 'POST', headers, body })).status, 201)
  }
  const first = await startProcess(place)
  const words = ['webhook', 'listen', '--forward-to', receiver.url, '--event', 'token.created']
  const listener = startCommand(place, words)
  await once(listener.child.stderr!, 'data')
  await create(first.announcement, 'card-1')
  await receiver.waitFor(1)
  first.child.kill('SIGKILL')
  await first.ended
  const second = await serveFor(t, [], place)
  await create(second.announcement, 'card-2')
  while (!receiver.received.some(({ text }) => text.includes('card-2')))
    await receiver.waitFor(receiver.received.length + 1)
  listener.child.kill('SIGINT')
  const { code, stderr } = await listener.ended
  t.equal(code, 0)
  t.match(stderr, /The server answers again/)
  t.same(JSON.parse((await runCommand(place, ['webhook', 'list', '-o', 'json'])).stdout).data, [])
})

async function serveWith(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
