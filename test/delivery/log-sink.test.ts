/** The log sink: nothing is lost when the sink or the server ends, and no secret is sent. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import t, { type Test } from 'tap'
import { LogSink, type SinkSender } from '../../src/delivery/log-sink.js'
import { createSinkSender } from '../../src/delivery/sink-sender.js'
import type { LogRecord } from '../../src/domain/records/records.js'
import { CofferError } from '../../src/errors.js'
import { createWorkplace, runCommand, serveFor, startProcess } from '../http/process.js'
import { openTestVault } from '../support/test-vault.js'

const CARD = '4242424242424242'
const DAY_MS = 24 * 60 * 60_000

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const logged = async () => {
    const ids: string[] = []
    for (let page = 1; ; page++) {
      const { data } = await vault.ask('log list', { page, size: 100 })
      ids.push(...(data as unknown as { id: string }[]).map(({ id }) => id))
      if (data.length < 100) return ids
    }
  }
  const add = async (count: number, from = 0) => {
    for (let made = 0; made < count; made++)
      await vault.ask('token create', { id: `token-${from + made}`, type: 'token', data: CARD })
  }
  return { ...vault, logged, add }
}

/**
 * Runs a sink that keeps the records that it receives. The function `act` may make an attempt fail, before or after
 * the sink has received the records.
 */
function run(
  t: Test,
  app: Awaited<ReturnType<typeof openTestVault>>['app'],
  act: (attempt: number, isReceived: boolean) => unknown = () => undefined,
) {
  const received: LogRecord[] = []
  const notices: string[] = []
  const pauses: number[] = []
  const stopping = new AbortController()
  let attempt = 0
  let tell = () => {}
  const sender: SinkSender = {
    id: 'test://sink/',
    close: async () => undefined,
    send: async (records, signal) => {
      attempt++
      // This fake request ends when the sink is stopped, like a real request.
      await Promise.race([act(attempt, false), signal.aborted || once(signal, 'abort')])
      signal.throwIfAborted()
      received.push(...records)
      tell()
      await act(attempt, true)
    },
  }
  const sink = new LogSink({
    store: app.store,
    sender,
    notice: (text) => notices.push(text),
    wait: async (ms) => {
      pauses.push(ms)
      await new Promise((resolve) => setTimeout(resolve, 1))
    },
  })
  app.attachLogSink(sink)
  const running = sink.run(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await running
  }
  t.teardown(stop)
  const until = async (isSo: () => boolean) => {
    while (!isSo())
      await new Promise<void>((resolve) => {
        tell = resolve
        setTimeout(resolve, 10)
      })
  }
  const ids = () => received.map(({ id }) => id)
  return { sink, received, ids, notices, pauses, until, stop }
}

const unreachable = () => {
  throw new CofferError('unavailable', 'sink:1 cannot be reached (ECONNREFUSED).')
}

t.test('each record reaches the sink once and in order, also after a restart of the sink', async (t) => {
  const { app, add, logged } = await open(t)
  await add(250)
  const first = run(t, app)
  await first.until(() => first.received.length >= 250)
  await first.stop()
  await add(40, 250)
  const second = run(t, app)
  await second.until(() => second.received.length >= 40)
  await second.until(() => second.sink.status().behind === 0)
  const all = [...first.ids(), ...second.ids()]
  t.same(all.toReversed(), (await logged()).slice(-all.length))
  t.equal(new Set(all).size, all.length)
  t.match(second.sink.status(), { state: 'working', behind: 0, sent: 40, lost: 0 })
})

t.test(
  'before a server stops, it sends the newest records to the sink, but it does not wait for an unreachable sink',
  async (t) => {
    const { app, add, logged } = await open(t)
    const { received, ids, until, stop } = run(t, app)
    await until(() => received.length > 0)
    await add(150)
    await stop()
    t.same(ids().toReversed(), await logged())
    const dead = run(t, app, unreachable)
    await add(1, 150)
    await dead.until(() => dead.sink.status().failures > 0)
    await dead.stop()
    t.equal(dead.received.length, 0)
  },
)

t.test(
  'a sink that was unreachable gets all records later, and two notices report the failure and its end',
  async (t) => {
    const { app, add, logged } = await open(t)
    await add(120)
    let isDead = true
    const { sink, received, ids, notices, pauses, until } = run(t, app, () => isDead && unreachable())
    await until(() => sink.status().failures >= 9)
    t.match(sink.status(), { state: 'failing', sent: 0, failure: /ECONNREFUSED/ })
    t.ok(sink.status().behind >= 120)
    t.same(pauses.slice(0, 9), [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
    isDead = false
    await until(() => received.length >= 120 && sink.status().behind === 0)
    t.same(ids().toReversed(), await logged())
    t.match(notices, [/receives nothing\. sink:1 cannot be reached/, /receives records again/])
    t.equal(notices.length, 2)
  },
)

t.test('if the answer of the sink is lost, the server sends the records again', async (t) => {
  const { app, add, logged } = await open(t)
  await add(10)
  const { ids, until } = run(t, app, (attempt, isReceived) => attempt === 1 && isReceived && unreachable())
  await until(() => ids().length >= 20)
  t.same([...new Set(ids())].toReversed(), await logged())
})

t.test('while a sink is slow, the server sends it only one part of the log at a time', async (t) => {
  const { app, add } = await open(t)
  await add(350)
  const sizes: number[] = []
  let waiting: (() => void)[] = []
  const { received, until } = run(t, app, async (_, isReceived) => {
    if (isReceived) return
    sizes.push(waiting.length)
    await new Promise<void>((resolve) => waiting.push(resolve))
  })
  while (received.length < 350) {
    await until(() => waiting.length > 0)
    t.equal(waiting.length, 1, 'one request at a time')
    await add(1, 1000 + sizes.length)
    for (const go of waiting) go()
    waiting = []
  }
  t.ok(sizes.length >= 4)
})

t.test('logs.keep deletes no record that the sink has not received', async (t) => {
  const { app, ask, clock, add, logged } = await open(t)
  await ask('config set', { name: 'logs.keep', value: '30d' })
  await add(200)
  let isDead = true
  const { sink, ids, until } = run(t, app, () => isDead && unreachable())
  await until(() => sink.status().failures > 0)
  for (let day = 0; day < 40; day++) {
    clock.now += DAY_MS
    await app.store.write(async (writer) => writer.storeTime({ isTrusted: true }))
  }
  await app.sweep()
  const before = await logged()
  t.ok(before.length >= 200)
  isDead = false
  await until(() => sink.status().behind === 0 && ids().length >= 200)
  t.same(ids().toReversed(), before.slice(before.length - ids().length))
  t.equal(sink.status().lost, 0)
  await app.sweep()
  t.ok((await logged()).length < 64, 'then they are deleted')
})

t.test('records that were deleted while the vault had no sink are counted and reported', async (t) => {
  const { app, ask, clock, add } = await open(t)
  await ask('config set', { name: 'logs.keep', value: '30d' })
  await add(100)
  clock.now += 40 * DAY_MS
  await app.store.write(async (writer) => writer.storeTime({ isTrusted: true }))
  await app.sweep()
  await add(1, 100)
  const { sink, notices, until } = run(t, app)
  await until(() => notices.length > 0)
  t.ok(sink.status().lost >= 64)
  t.match(notices, [/\d+ log records were deleted because of age before the log sink received them/])
})

t.test(
  'an HTTP sink gets lines of JSON in a request with a bearer token, and only a 2xx response confirms the records',
  async (t) => {
    const requests: { headers: Record<string, unknown>; body: string; url: string | undefined }[] = []
    let status = 500
    const port = await listen(t, (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        requests.push({ headers: request.headers, url: request.url, body: Buffer.concat(chunks).toString() })
        response.statusCode = status
        response.setHeader('location', '/elsewhere')
        response.end('x')
      })
    })
    const sender = createSinkSender(`http://127.0.0.1:${port}/logs?key=hidden`, { token: 'word' })
    t.teardown(() => sender.close())
    t.equal(sender.id, `http://127.0.0.1:${port}/logs`)
    const { signal } = new AbortController()
    for (status of [500, 307, 404])
      await t.rejects(sender.send([RECORD], signal), {
        code: 'unavailable',
        message: new RegExp(`${status}`),
      })
    status = 204
    await sender.send([RECORD, RECORD], signal)
    t.equal(requests.length, 4, 'redirects are not followed')
    const { headers, body, url } = requests.at(-1)!
    t.match(headers, { authorization: 'Bearer word', 'content-type': 'application/x-ndjson' })
    t.equal(url, '/logs?key=hidden')
    t.same(body, `${JSON.stringify(RECORD)}\n`.repeat(2))
  },
)

t.test(
  'a syslog sink gets messages in the format of RFC 5424, over UDP or over TCP with octet counting',
  async (t) => {
    const { signal } = new AbortController()
    const texts: string[] = []
    const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
      const chunks: Buffer[] = []
      socket.on('data', (chunk) => chunks.push(chunk))
      socket.on('end', () => {
        texts.push(Buffer.concat(chunks).toString())
        socket.end()
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    await createSinkSender(`syslog+tcp://127.0.0.1:${port}`).send([RECORD, RECORD], signal)
    const line = `<110>1 2026-01-02T03:04:05.678Z - coffer - token.create - \ufeff${JSON.stringify(RECORD)}`
    t.equal(texts[0], `${Buffer.byteLength(line)} ${line}`.repeat(2))
    t.notMatch(texts[0], /[\n\u001b]/)
    const dead = createSinkSender('syslog+tcp://127.0.0.1:9')
    await t.rejects(dead.send([RECORD], signal), { code: 'unavailable', message: /ECONNREFUSED/ })
    const socket = createSocket('udp4').bind(0, '127.0.0.1')
    await once(socket, 'listening')
    t.teardown(() => socket.close())
    const message = once(socket, 'message')
    await createSinkSender(`syslog+udp://127.0.0.1:${socket.address().port}`).send([RECORD], signal)
    t.equal(String((await message)[0]), line)
    for (const address of ['logs', 'ftp://x/', 'http://user:word@localhost/', 'https://x/#y', 'syslog://x'])
      t.throws(() => createSinkSender(address), { code: 'usage' }, address)
  },
)

t.test(
  'a server that is killed repeatedly loses no log record, and sends no secret to the sink',
  async (t) => {
    const received: string[] = []
    let answers = 0
    const port = await listen(t, (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        received.push(...Buffer.concat(chunks).toString().trimEnd().split('\n'))
        // The sink drops every second answer. Therefore some kills come before the server has stored the position of
        // these records.
        if (answers++ % 2 === 0) response.destroy()
        else response.end()
      })
    })
    const place = createWorkplace()
    const { stdout } = await runCommand(place, ['init', '--starter-apps', '-o', 'json'])
    const { key } = JSON.parse(stdout).applications.private
    let made = 0
    for (let round = 0; round < 3; round++) {
      const { announcement, child, ended } = await startProcess(place, [
        '--log-sink',
        `http://127.0.0.1:${port}/`,
      ])
      const headers = { 'svc-api-key': key, 'content-type': 'application/json' }
      const before = received.length
      for (let each = 0; each < 30; each++) {
        const body = JSON.stringify({ id: `token-${made}`, type: 'card_number', data: CARD })
        const answer = await fetch(`${announcement.url}/tokens`, { method: 'POST', headers, body })
        t.equal(answer.status, 201)
        made++
      }
      while (received.length === before) await new Promise((resolve) => setTimeout(resolve, 10))
      child.kill('SIGKILL')
      await ended
    }
    const last = await serveFor(t, ['--log-sink', `http://127.0.0.1:${port}/`], place)
    const isMissing = () => {
      const ids = new Set(received.map((line) => JSON.parse(line).entity_id))
      return Array.from({ length: made }, (_, number) => `token-${number}`).some((id) => !ids.has(id))
    }
    while (isMissing()) await new Promise((resolve) => setTimeout(resolve, 20))
    const ready = await (await fetch(`${last.announcement.url}/readyz`)).json()
    t.match(ready, { log_sink: { state: /^(starting|working|failing)$/, records_behind: Number } })
    const all = received.join('\n')
    t.notOk(all.includes(CARD) || all.includes(key))
  },
)

const RECORD: LogRecord = {
  id: '00000000-0000-4000-8000-000000000000',
  tenant_id: '00000000-0000-4000-8000-000000000001',
  entity_type: 'token',
  entity_id: 'a\u001b[31m\nb',
  operation: 'create',
  message: 'Token created',
  created_at: '2026-01-02T03:04:05.678+00:00',
  trace_id: 'trace',
}

async function listen(t: Test, answer: RequestListener): Promise<number> {
  const server = createHttpServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
