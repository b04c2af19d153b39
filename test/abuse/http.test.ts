import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { AccessEntry } from '../../src/http/access-log.js'
import { createAnswerer } from '../../src/http/answerer.js'
import { SERVER_LIMITS } from '../../src/http/server.js'
import { completeService } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { readAnswers, sendRaw, spellRequest } from '../http/socket.js'
import { serve } from '../support/serve-http.js'
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
  const [answer] = readAnswers(await sendRaw(port, spellRequest('GET /healthz', { Connection: 'close' })))
  if (answer?.status !== 200) throw new Error('the server does not go on')
  if (faults.length > 0) throw new Error('something failed on our side', { cause: faults[0] })
})

t.teardown(async () => {
  await server.stop()
  await vault.app.close()
})

const key = { 'SVC-API-KEY': KEY, Connection: 'close' }
const json = { ...key, 'Content-Type': 'application/json' }

/** Sends bytes and expects one answer of our shape. */
async function expectProblem(
  t: Test,
  name: string,
  status: number,
  parts: string | Uint8Array | (string | Uint8Array)[],
): Promise<void> {
  const text = await sendRaw(port, parts)
  const answers = readAnswers(text)
  t.equal(answers.length, 1, `${name}: one answer`)
  const [answer] = answers
  t.equal(answer?.status, status, name)
  t.match(answer?.headers['content-type'], /^application\/problem\+json/, name)
  t.ok(answer?.headers['svc-trace-id'], name)
  const problem = JSON.parse(answer?.body || '{}') as { status: number; instance: string }
  t.match(problem, { type: /^urn:coffer:problem:/, title: /./, status, detail: /./, instance: /./ }, name)
  t.equal(problem.instance, answer?.headers['svc-trace-id'])
  t.notMatch(text, SECRET, `${name}: nothing of the request comes back`)
}

t.test('bodies that mean nothing or two things are 400', async (t) => {
  const bodies: [string, string][] = [
    ['duplicate keys', `{"type":"token","data":"${SECRET}","data":1}`],
    ['__proto__, escaped', `{"type":"token","data":1,"\\u005f\\u005fproto__":{"a":"${SECRET}"}}`],
    ['10,000 levels', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
    ['levels without end', '['.repeat(BODY_LIMIT_BYTES)],
    ['a number that changes', '{"type":"token","data":9007199254740993}'],
    ['a lone surrogate', '{"type":"token","data":"\\ud83d"}'],
    ['two values', `${'{"type":"token","data":1}'.repeat(2)}`],
    ['an empty body', ''],
    ['a wrong type', `{"type":["${SECRET}"]}`],
    ['a top-level array', '[]'],
  ]
  for (const [name, body] of bodies)
    await expectProblem(t, name, 400, spellRequest('POST /tokens', json, body))
  const invalid = Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d])
  const head = spellRequest('POST /tokens', { ...json, 'Content-Length': String(invalid.length) })
  await expectProblem(t, 'invalid UTF-8', 400, [head, invalid])
})

t.test('what is too large is refused, and the refusal can be read', async (t) => {
  const large = 'x'.repeat(BODY_LIMIT_BYTES + 1)
  await expectProblem(t, 'a body over the limit', 413, spellRequest('POST /tokens', json, large))
  const chunk = `${(10_000).toString(16)}\r\n${'x'.repeat(10_000)}\r\n`
  const chunked = `POST /tokens HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${KEY}\r\nTransfer-Encoding: chunked\r\n\r\n`
  await expectProblem(t, 'a chunked body over the limit', 413, [
    chunked,
    ...Array.from({ length: 100 }, () => chunk),
    '0\r\n\r\n',
  ])
  const megabyte = Buffer.alloc(1_000_000, 'x')
  const head = spellRequest('POST /tokens', { ...json, 'Content-Length': '7000000' })
  await expectProblem(t, '7 MB', 413, [head, ...Array.from({ length: 7 }, () => megabyte)])
  const endless = spellRequest('POST /tokens', { ...json, 'Content-Length': '1000000000000' })
  const text = await sendRaw(port, [endless, ...Array.from({ length: 12 }, () => megabyte)])
  t.match(text, /^(HTTP\/1\.1 413 |$)/, 'beyond 8 MiB of the rest the connection is cut')
  await expectProblem(
    t,
    'a header of 16 KiB',
    431,
    spellRequest('GET /tokens', { ...key, 'X-Long': 'x'.repeat(17_000) }),
  )
  await expectProblem(t, 'a URL of 16 KiB', 431, spellRequest(`GET /tokens/${'x'.repeat(17_000)}`, key))
  await expectProblem(t, 'an id of 8 KiB', 404, spellRequest(`GET /nothing/${'x'.repeat(8_000)}`, key))
  await expectProblem(t, 'many headers', 431, spellRequest('GET /tokens', many(3_000)))
  await expectProblem(t, 'a chunk extension', 413, [chunked, `5;${'x'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`])
})

function many(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`X-${at}`, 'y']))
}

t.test('what comes too slowly is 408', async (t) => {
  const slowHeaders = expectProblem(
    t,
    'headers that never end',
    408,
    'GET /tokens HTTP/1.1\r\nHost: x\r\nX-Slow: ',
  )
  const head = spellRequest('POST /tokens', { ...json, 'Content-Length': '100' })
  const slowBody = expectProblem(t, 'a body that never ends', 408, [head, '{"name":'])
  const slowUnknown = expectProblem(t, 'a body nobody waits for', 404, [
    head.replace('/tokens', '/x'),
    '{"name":',
  ])
  await Promise.all([slowHeaders, slowBody, slowUnknown])
})

t.test('unknown methods are 405, here and below HTTP', async (t) => {
  for (const method of ['PUT', 'OPTIONS', 'TRACE', 'QUERY', 'BREW', 'CONNECT'])
    await expectProblem(t, method, 405, spellRequest(`${method} /tokens`, key))
  const head = await sendRaw(port, spellRequest('HEAD /tokenize', key))
  t.match(head, /^HTTP\/1\.1 405 [\s\S]*\r\nallow: POST\r\n[\s\S]*\r\n\r\n$/i, 'HEAD has no body')
})

t.test('what is not HTTP/1.1 is 400', async (t) => {
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
    const text = await sendRaw(port, bytes, { halfClose: true })
    const [answer] = readAnswers(text)
    t.equal(answer?.status, 400, name)
    t.match(JSON.parse(answer?.body || '{}'), { type: 'urn:coffer:problem:validation', status: 400 }, name)
  }
})

t.test('nothing is smuggled past the border of a request', async (t) => {
  const smuggled = 'DELETE /tokens/smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
  const lines = `POST /tokens HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${KEY}\r\n`
  const cases: [string, string][] = [
    ['both lengths', `${lines}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ['two lengths', `${lines}Content-Length: 2\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`],
    ['a length with a sign', `${lines}Content-Length: +2\r\n\r\n{}${smuggled}`],
    ['chunked twice', `${lines}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ['not chunked at the end', `${lines}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`],
    ['an odd spelling', `${lines}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ['a bad chunk length', `${lines}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n${smuggled}`],
    ['a chunk without end', `${lines}Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n${smuggled}`],
  ]
  for (const [name, text] of cases) {
    await expectProblem(t, name, 400, text)
    t.match(await vault.ask('token get', { id: 'smuggled' }), { data: 1 }, name)
  }
})

t.test('pipelined requests are answered in order, whatever comes after them', async (t) => {
  const get = (id: string) => spellRequest(`GET /tokens/${id}`, { 'SVC-API-KEY': KEY })
  const mixed = readAnswers(await sendRaw(port, `${get('one')}${get('two')}GARBAGE\r\n\r\n`))
  t.same(
    mixed.map(({ status }) => status),
    [200, 200, 400],
  )
})

t.test('a client that closed its half still gets its answer', async (t) => {
  const body = '{"type":"token","data":"half"}'
  const [answer] = readAnswers(
    await sendRaw(port, spellRequest('POST /tokens', { ...json, Connection: 'keep-alive' }, body), {
      halfClose: true,
    }),
  )
  t.equal(answer?.status, 201)
  const cut = spellRequest('POST /tokens', { ...json, 'Content-Length': '100' })
  const [refusal] = readAnswers(await sendRaw(port, [cut, '{"name":'], { halfClose: true }))
  t.equal(refusal?.status, 400, 'also when its body is cut off')
})

t.test('clients that vanish in the middle leave nothing behind', async (t) => {
  const whole = spellRequest('POST /tokens', json, '{"id":"gone","type":"token","data":1}')
  for (let length = 1; length < whole.length; length += 7) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'connect')
    await new Promise<void>((resolve) => socket.write(whole.slice(0, length), () => resolve()))
    socket.resetAndDestroy()
  }
  await t.rejects(
    vault.ask('token get', { id: 'gone' }),
    { code: 'not_found' },
    'half a request does nothing',
  )
})

t.test('clients that vanish once they have asked for a tunnel end nothing', async (t) => {
  for (const method of ['CONNECT', 'GET', 'OPTIONS', 'NONSENSE'])
    for (let count = 0; count < 20; count++) {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      await once(socket, 'connect')
      const text = `${method} a:1 HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n`
      await new Promise<void>((resolve) => socket.write(text, () => resolve()))
      socket.resetAndDestroy()
      await once(socket, 'close')
    }
  const line = 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'
  await expectProblem(t, 'a tunnel', 405, line)
})

t.test('no line of the log holds a key, a query, an id or a body', async (t) => {
  const text = JSON.stringify(entries)
  t.ok(entries.length > 50)
  t.notMatch(text, new RegExp(`${SECRET}|${KEY}|smuggled`))
})
