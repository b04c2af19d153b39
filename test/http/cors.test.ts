import t, { type Test } from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { Handler } from '../../src/http/handler.js'
import { registry } from '../../src/operations/all.js'
import { createHandler, serveHttp } from '../support/service.js'
import { openTestVault, permissionsOf, type TestVault } from '../support/test-vault.js'
import { requestText, sendRaw } from './socket.js'

const EXPOSED = 'SVC-TRACE-ID, SVC-PROXY-DESTINATION-STATUS, Retry-After'

type Options = { cors?: boolean; prefix?: string }

async function start(t: Test, options: Options = {}): Promise<{ vault: TestVault; ask: Ask }> {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const handle = createHandler(vault.app, { ...options })
  return { vault, ask: (line, headers, body) => send(handle, line, headers, body) }
}

type Ask = (line: string, headers?: Record<string, string>, body?: string) => Promise<Response>

function send(handle: Handler, line: string, headers = {}, body?: string): Promise<Response> {
  const [method = '', path = ''] = line.split(' ')
  const sent = { origin: 'https://shop.test', ...headers }
  return handle(new Request(`http://localhost${path}`, { method, headers: sent, ...(body ? { body } : {}) }))
}

/** Returns the CORS headers of a response. */
function corsOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))
}

const OPEN = { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED }

const PREFLIGHT = { 'access-control-request-method': 'GET' }

t.test('a preflight is answered without a key on every known path and on no other path', async (t) => {
  const { ask } = await start(t)
  const asked = { ...PREFLIGHT, 'access-control-request-headers': 'content-type,svc-api-key,x-mine' }
  for (const { endpoint } of registry.routed) {
    const answer = await ask(`OPTIONS ${endpoint.path.replaceAll(/\{[^}]*\}/g, 'x')}`, asked)
    t.match([answer.status, await answer.text()], [204, ''], endpoint.path)
    const { 'access-control-allow-methods': allowed = '', ...others } = corsOf(answer)
    t.ok(allowed.split(', ').includes(endpoint.method), `${endpoint.method} ${endpoint.path}`)
    t.same(others, {
      ...OPEN,
      'access-control-allow-headers': 'content-type,svc-api-key,x-mine',
      'access-control-max-age': '600',
    })
  }
  const hostile = { ...PREFLIGHT, 'access-control-request-headers': 'a;b' }
  const cases: [string, object, string, string | null][] = [
    ['/healthz', PREFLIGHT, 'methods', 'GET, HEAD'],
    ['/agentic', PREFLIGHT, 'methods', 'DELETE, GET, HEAD, PATCH, POST, PUT'],
    ['/healthz', PREFLIGHT, 'headers', null],
    ['/tokens', hostile, 'headers', null],
    ['/tokens', PREFLIGHT, 'private-network', null],
    [
      '/tokens',
      { ...PREFLIGHT, 'access-control-request-private-network': 'true' },
      'private-network',
      'true',
    ],
  ]
  for (const [path, headers, name, value] of cases) {
    const answer = await ask(`OPTIONS ${path}`, { ...headers })
    t.equal(answer.headers.get(`access-control-allow-${name}`), value, `${path} ${name}`)
  }
  t.equal((await ask('OPTIONS /nothing', PREFLIGHT)).status, 404)
  t.equal((await ask('OPTIONS /tokens')).status, 405)
})

t.test('pages can read responses and errors, but not responses to requests with a server key', async (t) => {
  const { vault, ask } = await start(t)
  const keyed = async (type: 'public' | 'private' | 'management') => {
    const { key } = await vault.createApplication(type, { permissions: permissionsOf(type) })
    return { 'svc-api-key': key, 'content-type': 'application/json' }
  }
  const open = await keyed('public')
  const cases: [number, Response][] = [
    [201, await ask('POST /tokens', open, '{"type":"token","data":"x"}')],
    [400, await ask('POST /tokens', open, '{')],
    [403, await ask('GET /tokens', open)],
    [401, await ask('GET /tokens')],
    [501, await ask('POST /agentic')],
    [405, await ask('PUT /tokens')],
    [200, await ask('GET /healthz')],
  ]
  for (const [status, answer] of cases) {
    t.equal(answer.status, status)
    t.same(corsOf(answer), OPEN, `${status} of ${await answer.text()}`.slice(0, 80))
  }
  for (const type of ['private', 'management'] as const)
    for (const line of ['GET /applications/key', 'GET /tokens/none', 'GET /tokens?size=0'])
      t.same(corsOf(await ask(line, await keyed(type))), {}, `${line} with a ${type} key`)
})

t.test(
  'the header names have the prefix, and with CORS off, no response permits pages to read it',
  async (t) => {
    const { ask: askBt } = await start(t, { prefix: 'bt' })
    const exposed = (await askBt('GET /healthz')).headers.get('access-control-expose-headers')
    t.equal(exposed, EXPOSED.replaceAll('SVC', 'BT'))
    const { vault, ask } = await start(t, { cors: false })
    const { key } = await vault.createApplication('public', { permissions: ['token:create'] })
    t.equal((await ask('OPTIONS /tokens', PREFLIGHT)).status, 405)
    for (const line of ['OPTIONS /tokens', 'GET /healthz', 'GET /applications/key'])
      t.same(corsOf(await ask(line, { ...PREFLIGHT, 'svc-api-key': key })), {}, line)
    for (const cors of [true, false]) {
      const service = { host: vault.app, registry, authenticate, version: '0', cors }
      const server = await serveHttp(service, { port: 0, addresses: ['127.0.0.1'] })
      t.teardown(() => server.stop())
      const text = await sendRaw(server.port, requestText('GET /', { X: 'x'.repeat(20_000) }))
      t.match(text, /^HTTP\/1\.1 431 /, 'a response to an invalid request allows pages too')
      t.equal(/access-control-allow-origin: \*/i.test(text), cors)
    }
  },
)
