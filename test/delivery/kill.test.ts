/**
 * Kills the program between the commit of mail and events and their delivery, or later. No mail or event may be lost.
 */
import t, { type Test } from 'tap'
import { createWorkplace, request, runCommand, startCommand, startProcess } from '../http/process.js'
import { startReceiver } from './receiver.js'
import { startMailServer } from './server.js'

const ROUNDS = 3
const OF_ROUND = 8

t.setTimeout(180_000)

/**
 * Creates a vault, and returns functions that run commands and servers in it. The function `ask` sends requests such as
 * `POST /tokens`.
 */
async function openPlace(t: Test) {
  const place = createWorkplace()
  t.teardown(() => place.remove())
  const run = async (line: string) => {
    const { code, stdout, stderr } = await runCommand(place, line.split(' '))
    if (code !== 0) throw new Error(`coffer ${line}: ${stderr}`)
    return stdout
  }
  await run('init --quiet')
  const keys: Record<string, string | undefined> = {}
  const start = async (...words: string[]) => {
    const starter = keys.private === undefined ? ['--starter-apps'] : []
    const server = await startProcess(place, [...starter, ...words])
    const { management, private: backend } = server.announcement.applications
    keys.management ??= management?.key
    keys.private ??= backend?.key
    const ask = async (line: string, body?: object) => {
      const key = line.includes('/tokens') ? keys.private : keys.management
      const answer = await request(server.announcement, key, line, body)
      if (answer.status >= 300) throw new Error(`${line}: ${answer.status}`)
    }
    const end = (signal: NodeJS.Signals) => {
      server.child.kill(signal)
      return server.ended
    }
    return { ask, end }
  }
  return { place, run, start }
}

/** Creates a vault as `openPlace` does, and starts a receiver for events of one type. */
async function openHooked(t: Test, event: string, ...words: string[]) {
  const receiver = await startReceiver()
  t.teardown(() => receiver.close())
  const { run, start } = await openPlace(t)
  const server = await start(...words)
  await server.ask('POST /webhooks', { name: 'hook', url: receiver.url, events: [event] })
  return { receiver, run, start, server }
}

const ALLOWED = ['--allow-net', '127.0.0.1']

t.test('an event whose server was killed is delivered after the restart with the same id', async (t) => {
  const { receiver, run, start, ...first } = await openHooked(t, 'token.created', ...ALLOWED)
  let { server } = first
  const expected: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    // The receiver does not answer. Therefore each event is committed, and no event is delivered.
    receiver.state.answer = () => {}
    const ids = Array.from({ length: OF_ROUND }, (_, at) => `token-${round}-${at}`)
    await Promise.all(ids.map((id) => server.ask('POST /tokens', { id, type: 'token', data: 'x' })))
    await server.end('SIGKILL')
    expected.push(...ids)
    receiver.state.answer = (response) => response.end()
    const before = receiver.received.length
    server = await start(...ALLOWED)
    await receiver.waitFor(before + OF_ROUND)
  }
  const ids = new Map<string, string>()
  for (const { body } of receiver.received) {
    const { id, data } = body.event
    t.equal(ids.get(data.token.id) ?? id, id, 'a repeated event keeps its id')
    ids.set(data.token.id, id)
  }
  t.same([...ids.keys()].sort(), expected.sort(), 'no event is lost')
  const { length } = receiver.received
  await server.end('SIGTERM')
  const { data } = JSON.parse(await run('webhook deliveries --size 100'))
  t.equal(data.length, ROUNDS * OF_ROUND)
  for (const { state, attempts } of data) t.same([state, attempts], ['sent', 1])
  t.equal(receiver.received.length, length, 'a delivered event is not sent again')
})

t.test(
  'a server prints one notice for a host that is not allowed, and a command that allows the host sends all events',
  async (t) => {
    const { receiver, run, server } = await openHooked(t, 'token.created')
    for (let count = 0; count < 3; count++) await server.ask('POST /tokens', { type: 'token', data: 'x' })
    const { stderr } = await server.end('SIGTERM')
    t.equal(stderr.match(/Webhook "hook": .*--allow-net/g)?.length, 1, stderr)
    t.notMatch(stderr, receiver.url)
    t.equal(receiver.received.length, 0)
    const [id = ''] = (await run('webhook deliveries -o id')).split('\n')
    await run(`webhook resend ${id} ${ALLOWED.join(' ')}`)
    t.equal(
      receiver.received.length,
      3,
      'the command sends the event, and all others that waited for the host, before it ends',
    )
    const shown = await run(`webhook deliveries ${id} -o table`)
    t.match(shown, /^id: +[0-9a-f-]{36}\n/)
    t.match(shown, /payload: +\{.*"type":"token\.created"/)
  },
)

t.test('a command that creates a webhook warns if the vault will send no event to the webhook', async (t) => {
  const { place } = await openPlace(t)
  const create = (...words: string[]) => {
    const line = 'webhook create --address https://example.com:8443/events --event token.created'
    return runCommand(place, [...line.split(' '), ...words])
  }
  const blocked = await create('--name', 'blocked')
  t.equal(blocked.code, 0)
  t.match(JSON.parse(blocked.stdout), { destination: { state: 'blocked', failure: /example.com:8443/ } })
  t.match(
    blocked.stderr,
    /^warning: Events of this webhook wait .* start Coffer with --allow-net example.com:8443$/m,
  )
  const allowed = await create('--name', 'allowed', '--allow-net', 'example.com')
  t.notMatch(allowed.stderr, /warning/)
  t.notOk('destination' in JSON.parse(allowed.stdout))
})

t.test(
  'the event of a read is sent at once, although the log record of the read is synced later',
  async (t) => {
    const { receiver, run, server } = await openHooked(t, 'token.read', ...ALLOWED)
    await server.ask('POST /tokens', { id: 'token-1', type: 'token', data: 'x' })
    const beganMs = performance.now()
    for (let count = 1; count <= OF_ROUND; count++) {
      await server.ask(`GET ${count % 2 === 0 ? '/tokens' : '/tokens/token-1'}`)
      await receiver.waitFor(count)
    }
    t.ok(
      performance.now() - beganMs < 20_000,
      'no event waits for the check that the server makes every 30 s',
    )
    await server.end('SIGTERM')
    await run('token list')
    const [read] = JSON.parse(await run('webhook deliveries hook')).data
    t.match(
      read,
      { payload: { event: { type: 'token.read' } }, failure: /cannot be called/ },
      'a read by a command sends an event too',
    )
  },
)

/**
 * Creates a vault like `openPlace`, and starts a mail server that sends no greeting while it is silent. While the mail
 * server is silent, each mail is committed and no mail is sent.
 */
async function openMailed(t: Test) {
  let greeted = () => {}
  const state = { isSilent: true, reached: Promise.resolve() }
  const beSilent = () => {
    state.isSilent = true
    state.reached = new Promise<void>((resolve) => {
      greeted = resolve
    })
  }
  const greet = async () => {
    greeted()
    if (state.isSilent) await new Promise(() => {})
  }
  const mail = await startMailServer({ greet })
  t.teardown(() => mail.close())
  const opened = await openPlace(t)
  await opened.run(`config set mail.url smtp://localhost:${mail.port}`)
  beSilent()
  return { ...opened, mail, state, beSilent, recipients: () => mail.received.flatMap(({ to }) => to).sort() }
}

t.test(
  'if a server is killed after a commit and before it sends the mail, the mail is sent once after the restart',
  async (t) => {
    const { mail, start, state, beSilent, recipients } = await openMailed(t)
    const expected: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      beSilent()
      const server = await start()
      const emails = Array.from({ length: 5 }, (_, at) => `p${round}-${at}@example.com`)
      await Promise.all(emails.map((email) => server.ask('POST /tenants/self/invitations', { email })))
      await state.reached
      await server.end('SIGKILL')
      t.equal(mail.received.length, expected.length, 'no mail was sent before the restart')
      state.isSilent = false
      expected.push(...emails)
      const next = await start()
      await mail.waitFor(expected.length)
      await next.end('SIGTERM')
    }
    t.same(recipients(), expected.sort(), 'each once')
  },
)

t.test('if a command is killed while it sends mail, the next command sends the mail', async (t) => {
  const { place, run, state, recipients } = await openMailed(t)
  const { child, ended } = startCommand(place, ['invite', 'create', '--email', 'ada@example.com'])
  await state.reached
  child.kill('SIGKILL')
  await ended
  state.isSilent = false
  await run('invite create --email eve@example.com')
  t.same(recipients(), ['ada@example.com', 'eve@example.com'])
})

t.test('a server that stops does not wait for a silent mail server', async (t) => {
  const { run, start, state } = await openMailed(t)
  const server = await start()
  await server.ask('POST /tenants/self/invitations', { email: 'ada@example.com' })
  await state.reached
  const asked = performance.now()
  t.equal((await server.end('SIGTERM')).code, 0)
  t.ok(
    performance.now() - asked < 5_000,
    'the server stops early, although the time limit for a greeting is ten seconds',
  )
  t.match(JSON.parse(await run('invite outbox')).data, [{ state: 'waiting' }])
})
