import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { AccessEntry } from '../../src/http/access-log.js'
import { createAnswerer } from '../../src/http/answerer.js'
import { SERVER_LIMITS } from '../../src/http/server.js'
import { completeService } from '../../src/http/service.js'
import { registry } from '../../src/operations/all.js'
import { readAnswers, requestText, sendRaw } from '../http/socket.js'
import { serve } from '../support/service.js'
import { openTestVault, permissionsOf } from '../support/test-vault.js'

const BODY_LIMIT_BYTES = 100_000
const SECRET = '4242424242424242'

const entries: AccessEntry[] = []
const faults: unknown[] = []
const record = (entry: AccessEntry) => entries.push(entry)
const vault = await openTestVault()
const KEY = (await vault.createApplication('private', { permissions: permissionsOf('private') })).key
const service = { host: vault.app, registry, authenticate, version: '0', bodyLimitBytes: BODY_LIMIT_BYTES }
const reportFault = (error: unknown) => faults.push(error)
const server = await serve(createAnswerer(completeService({ ...service, record, reportFault })), {
  limits: { ...SERVER_LIMITS, headersMs: 600, requestMs: 900 },
  record,
})
const { port } = server
for (const id of ['one', 'two', 'smuggled']) await vault.ask('token create', { id, type: 'token', data: 1 })

t.afterEach(async () => {
  const [answer] = readAnswers(await sendRaw(port, requestText('GET /healthz', { Connection: 'close' })))
  if (answer?.status !== 200) throw new Error('the server does not go on')
  if (faults.length > 0) throw new Error('something failed on our side', { cause: faults[0] })
})

t.teardown(async () => {
  await server.stop()
  await vault.app.close()
})

const key = { 'SVC-API-KEY': KEY, Connection: 'close' }
const json = { ...key, 'Content-Type': 'application/json' }

type Row = [status: number, name: string, ...parts: (string | Uint8Array)[]]

/** Sends the bytes of a row and expects a single problem document. */
async function expectProblem(t: Test, [status, name, ...parts]: Row): Promise<void> {
  const text = await sendRaw(port, parts)
  const [answer, ...others] = readAnswers(text)
  t.same([answer?.status, others], [status, []], `${name}: there is one response`)
  t.match(answer?.headers['content-type'], /^application\/problem\+json/, name)
  const problem = JSON.parse(answer?.body || '{}') as { instance: string }
  t.match(problem, { type: /^urn:coffer:problem:/, title: /./, status, detail: /./, instance: /./ }, name)
  t.equal(problem.instance, answer?.headers['svc-trace-id'], name)
  t.notMatch(text, SECRET, `${name}: the response repeats no part of the request`)
}

/** Declares a test that sends the rows one after another, each on a new connection. */
const refuses = (title: string, rows: Row[]) =>
  t.test(title, async (t) => {
    for (const row of rows) await expectProblem(t, row)
  })

const post = (body: string) => requestText('POST /tokens', json, body)
const postOf = (length: number) => requestText('POST /tokens', { ...json, 'Content-Length': String(length) })
const lines = `POST /tokens HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${KEY}\r\n`
const chunked = `${lines}Transfer-Encoding: chunked\r\n\r\n`

refuses('bodies that are invalid or ambiguous get 400', [
  [400, 'duplicate keys', post(`{"type":"token","data":"${SECRET}","data":1}`)],
  [400, '__proto__', post(`{"type":"token","data":1,"\\u005f\\u005fproto__":{"a":"${SECRET}"}}`)],
  [400, '10,000 levels', post(`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`)],
  [400, 'levels without end', post('['.repeat(BODY_LIMIT_BYTES))],
  [400, 'a number that changes', post('{"type":"token","data":9007199254740993}')],
  [400, 'a lone surrogate', post('{"type":"token","data":"\\ud83d"}')],
  [400, 'two values', post('{"type":"token","data":1}'.repeat(2))],
  [400, 'an empty body', post('')],
  [400, 'a wrong type', post(`{"type":["${SECRET}"]}`)],
  [400, 'a top-level array', post('[]')],
  [400, 'invalid UTF-8', postOf(6), Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x7d])],
])

const megabyte = Buffer.alloc(1_000_000, 'x')
const chunk = `${(10_000).toString(16)}\r\n${'x'.repeat(10_000)}\r\n`
const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`X-${at}`, 'y']))

refuses('a request that is too large is refused, and the client can read the refusal', [
  [413, 'a body over the limit', post('x'.repeat(BODY_LIMIT_BYTES + 1))],
  [413, 'a chunked body over the limit', chunked, ...Array(100).fill(chunk), '0\r\n\r\n'],
  [413, '7 MB', postOf(7_000_000), ...Array(7).fill(megabyte)],
  [431, 'a header of 16 KiB', requestText('GET /tokens', { ...key, 'X-Long': 'x'.repeat(17_000) })],
  [431, 'a URL of 16 KiB', requestText(`GET /tokens/${'x'.repeat(17_000)}`, key)],
  [404, 'an id of 8 KiB', requestText(`GET /nothing/${'x'.repeat(8_000)}`, key)],
  [431, 'many headers', requestText('GET /tokens', many)],
  [413, 'a chunk extension', chunked, `5;${'x'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`],
])

t.test(
  'a slow request gets 408, and the server closes the connection after 8 MiB of a body that it does not need',
  async (t) => {
    const rows: Row[] = [
      [408, 'headers that never end', 'GET /tokens HTTP/1.1\r\nHost: x\r\nX-Slow: '],
      [408, 'a body that never ends', postOf(100), '{"type":'],
      [404, 'a body nobody waits for', postOf(100).replace('/tokens', '/x'), '{"type":'],
    ]
    await Promise.all(rows.map((row) => expectProblem(t, row)))
    t.match(await sendRaw(port, [postOf(1e12), ...Array(12).fill(megabyte)]), /^(HTTP\/1\.1 413 |$)/)
  },
)

refuses(
  'unknown methods get 405, even those that Node itself would refuse',
  ['PUT', 'OPTIONS', 'TRACE', 'QUERY', 'BREW', 'CONNECT'].map((method) => [
    ...([405, method, requestText(`${method} /tokens`, key)] as const),
  ]),
)

const smuggled = requestText('DELETE /tokens/smuggled', key)

refuses('no second request can be hidden in the body of a request', [
  [
    400,
    'both lengths',
    `${lines}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [400, 'two lengths', `${lines}Content-Length: 2\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`],
  [400, 'a length with a sign', `${lines}Content-Length: +2\r\n\r\n{}${smuggled}`],
  ...['chunked, chunked', 'chunked, identity', 'xchunked'].map(
    (coding): Row => [
      ...([400, coding, `${lines}Transfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n${smuggled}`] as const),
    ],
  ),
  [400, 'a bad chunk length', `${chunked}zz\r\n\r\n${smuggled}`],
  [400, 'a chunk without end', `${chunked}2\r\n{}x\r\n0\r\n\r\n${smuggled}`],
])

t.test(
  'no request that was hidden in a body was performed, and a message that is not HTTP/1.1 gets 400',
  async (t) => {
    t.match(await vault.ask('token get', { id: 'smuggled' }), { data: 1 })
    const cases: [string, string | Uint8Array][] = [
      ['garbage', 'hello\r\n\r\n'],
      ['a TLS greeting', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])],
      ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['HTTP/9', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
      ['no host', 'GET /healthz HTTP/1.1\r\n\r\n'],
      ['two hosts', 'GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
      ['a space before the colon', 'GET / HTTP/1.1\r\nHost : x\r\n\r\n'],
      ['a NUL in a header', 'GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n'],
      ['raw UTF-8 in the path', Buffer.from('GET /tokens/é HTTP/1.1\r\nHost: x\r\n\r\n')],
      ['a folded header', 'GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n'],
      ['a bare line feed in a header', 'GET / HTTP/1.1\r\nHost: x\r\nX: a\nb\r\n\r\n'],
    ]
    for (const [name, bytes] of cases) {
      const [answer] = readAnswers(await sendRaw(port, bytes, { halfClose: true }))
      t.equal(answer?.status, 400, name)
      t.match(JSON.parse(answer?.body || '{}'), { type: 'urn:coffer:problem:validation', status: 400 }, name)
    }
  },
)

t.test('pipelined requests are answered in order, even if an invalid request follows them', async (t) => {
  const get = (id: string) => requestText(`GET /tokens/${id}`, { 'SVC-API-KEY': KEY })
  const mixed = readAnswers(await sendRaw(port, `${get('one')}${get('none')}GARBAGE\r\n\r\n`))
  t.match(mixed, [{ status: 200 }, { status: 404 }, { status: 400 }])
  t.equal(mixed.length, 3)
})

t.test('a client that has closed its sending side still gets its response', async (t) => {
  const kept = { ...json, Connection: 'keep-alive' }
  const whole = requestText('POST /tokens', kept, '{"type":"token","data":"half"}')
  const [answer] = readAnswers(await sendRaw(port, whole, { halfClose: true }))
  t.equal(answer?.status, 201)
  const [refusal] = readAnswers(await sendRaw(port, [postOf(100), '{"name":'], { halfClose: true }))
  t.equal(refusal?.status, 400, 'a client whose body is incomplete also gets a response')
})

/** Opens one client for each text. Each client sends its text and then disconnects. */
async function vanish(texts: readonly string[]) {
  for (const text of texts) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    await once(socket, 'connect')
    await new Promise<void>((resolve) => socket.write(text, () => resolve()))
    socket.resetAndDestroy()
    await once(socket, 'close')
  }
}

t.test('clients that disconnect during a request leave no request unfinished', async (t) => {
  const whole = post('{"id":"gone","type":"token","data":1}')
  await vanish(Array.from({ length: whole.length / 7 }, (_, at) => whole.slice(0, at * 7 + 1)))
  await t.rejects(
    vault.ask('token get', { id: 'gone' }),
    { code: 'not_found' },
    'an incomplete request changes nothing',
  )
})

t.test('clients that disconnect after an upgrade request do not end the server', async (t) => {
  for (const method of ['CONNECT', 'GET', 'OPTIONS', 'NONSENSE'])
    await vanish(Array(20).fill(requestText(`${method} a:1`, { Upgrade: 'x', Connection: 'Upgrade' })))
  await expectProblem(t, [405, 'a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'])
})

t.test('no line of the server log contains a key, a query, an id or a body', async (t) => {
  const text = JSON.stringify(entries)
  t.ok(entries.length > 50)
  const noRoute = entries.map(({ method, route, status }) => `${method} ${route} ${status}`)
  for (const entry of ['GET - 400', 'CONNECT - 405', '- - 400']) t.ok(noRoute.includes(entry), entry)
  t.notMatch(text, new RegExp(`${SECRET}|${KEY}|smuggled`))
})
