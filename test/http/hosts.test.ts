import t from 'tap'
import type { HttpRequest } from '../../src/http/exchange.js'
import { createHostCheck } from '../../src/http/steps/check-host.js'
import { openEphemeral } from '../support/ephemeral.js'
import { createHandler, startServer } from '../support/service.js'
import { setSetting } from '../support/test-vault.js'
import { createWorkplace, serveFor, startProcess } from './process.js'
import { readAnswers, requestText, sendRaw } from './socket.js'

const app = await openEphemeral({ tenantName: 'test' })
t.teardown(() => app.close())

const OURS =
  'localhost|LocalHost:4010|localhost:|127.0.0.1|127.0.0.1:80|192.0.2.7:4010|0.0.0.0|[::1]|[2001:DB8::7]:1|[::ffff:192.0.2.7]|Vault.Test:4010'
const NOT_OURS = [
  '|:4010|evil.example:4010|localhost.evil.example|evil.localhost|localhost.|127.0.0.1.nip.example|127.0.0.1.',
  '127.1|127.0.0.01|2130706433|0x7f000001|0177.0.0.1|::1|[localhost]|[127.0.0.1]|[::1].evil.example|[::1',
  'localhost@evil.example|evil.example@localhost|localhost:80@evil.example|localhost:80:80|localhost:port',
  'localhost, evil.example|localhost/evil.example|localhost evil.example|vault.test.evil.example|vault%2etest|ｌocalhost',
].join('|')

const askOf = (host: string | undefined, target = '/healthz'): HttpRequest => ({
  method: 'GET',
  target,
  headers: host === undefined ? {} : { host },
  readBody: async () => undefined,
})

t.test(
  'a request is accepted only if its host is localhost, an IP address or a configured name, in upper or lower case and with any port',
  async (t) => {
    const check = createHostCheck(app, ['vault.TEST'])
    for (const host of OURS.split('|')) t.equal(check(askOf(host)), undefined, host)
    for (const host of NOT_OURS.split('|'))
      await t.rejects(Promise.resolve(check(askOf(host))), { code: 'misdirected', status: 421 }, host)
    t.equal(check(askOf(undefined)), undefined, 'a request of HTTP/1.0 needs no host')
  },
)

t.test('the host in an absolute request URL is checked in addition to the header Host', async (t) => {
  const check = createHostCheck(app, [])
  t.equal(check(askOf('localhost', 'http://127.0.0.1:1/tokens?a=http://evil.example')), undefined)
  t.equal(check(askOf('localhost', '/http://evil.example')), undefined)
  for (const [host, url] of [
    ['localhost', 'http://evil.example/'],
    ['localhost', 'HTTP://evil.example?x'],
    ['localhost', 'http://localhost@evil.example/'],
    ['localhost', 'http:///healthz'],
    ['evil.example', 'http://localhost/'],
  ])
    await t.rejects(Promise.resolve(check(askOf(host, url))), { code: 'misdirected' }, `${host}, ${url}`)
})

t.test('the host name of the setting public_url is accepted while the setting has this name', async (t) => {
  const check = createHostCheck(app, [])
  const verdict = (host: string) =>
    Promise.resolve(check(askOf(host))).then(
      () => true,
      () => false,
    )
  t.notOk(await verdict('vault.example'))
  await setSetting(app, 'public_url', 'https://Vault.Example:8443/base')
  t.ok(await verdict('vault.example'))
  t.ok(await verdict('VAULT.example:1'))
  t.notOk(await verdict('other.example'))
  await setSetting(app, 'public_url', undefined)
  t.notOk(await verdict('vault.example'))
})

t.test(
  'a server checks the host before anything else, and a handler without a server does not check the host',
  async (t) => {
    const server = await startServer(app, { port: 0, addresses: ['127.0.0.1'], allowHosts: ['vault.test'] })
    t.teardown(() => server.stop())
    const send = async (text: string) =>
      readAnswers(await sendRaw(server.port, text, { deadlineMs: 2_000 }))[0]
    const close = 'Connection: close\r\n\r\n'
    for (const line of ['GET /', 'GET /openapi.json', 'POST /tokens', 'GET /nothing', 'GET /%zz', 'GET *']) {
      const answer = await send(`${line} HTTP/1.1\r\nHost: evil.example\r\n${close}`)
      t.match(answer, { status: 421, headers: { 'content-type': /^application\/problem\+json/ } }, line)
      t.match(JSON.parse(answer!.body), { title: 'Misdirected Request', status: 421 })
    }
    const cases: [number, string][] = [
      [200, `GET /healthz HTTP/1.1\r\nHost: vault.test\r\n${close}`],
      [200, 'GET /healthz HTTP/1.0\r\n\r\n'],
      [421, 'GET /healthz HTTP/1.0\r\nHost: evil.example\r\n\r\n'],
      [421, `GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n${close}`],
      [400, 'GET /healthz HTTP/1.0\r\nHost: localhost\r\nhost: evil.example\r\n\r\n'],
    ]
    for (const [status, text] of cases) t.equal((await send(text))?.status, status, text)
    const handle = createHandler(app)
    t.equal((await handle(new Request('http://anything.example/healthz'))).status, 200)
  },
)

t.test('coffer serve takes additional host names from its flag and its variable', async (t) => {
  const place = createWorkplace()
  const statusOf = async (url: string, host: string) => {
    const text = requestText('GET /healthz', { Host: host, Connection: 'close' })
    return readAnswers(await sendRaw(Number(new URL(url).port), text))[0]?.status
  }
  const env = { ...place.env, COFFER_ALLOW_HOST: 'one.test' }
  for (const [names, words] of [
    ['one.test', []],
    ['two.test three.test', ['--allow-host', 'two.test', '--allow-host', 'four.test,three.test']],
  ] as const) {
    const { announcement } = await serveFor(t, ['--ephemeral', ...words], { ...place, env })
    for (const name of names.split(' ')) t.equal(await statusOf(announcement.url, name), 200, name)
    t.equal(await statusOf(announcement.url, 'five.test'), 421)
  }
  const bad = startProcess(place, ['--ephemeral', '--allow-host', 'vault.test:80'])
  await t.rejects(bad, /--allow-host takes names without a port/)
})
