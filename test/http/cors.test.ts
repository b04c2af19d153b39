import t, { type Test } from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { Handler } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { serveHttp } from '../support/serve-http.js'
import { createHandler } from '../support/service.js'
import { openTestVault, permissionsOf, type TestVault } from '../support/test-vault.js'
import { sendRaw } from './socket.js'

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

/** The CORS headers of an answer. */
function corsOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))
}

const OPEN = { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED }

t.test('a preflight on every known path is answered without a key', async (t) => {
  const { ask } = await start(t)
  const paths = new Map<string, string[]>()
  for (const { endpoint } of registry.routed)
    paths.set(endpoint.path, [...(paths.get(endpoint.path) ?? []), endpoint.method])
  for (const [path, methods] of paths) {
    const answer = await ask(`OPTIONS ${path.replaceAll(/\{[^}]*\}/g, 'x')}`, {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type,svc-api-key,x-mine',
    })
    t.equal(answer.status, 204, path)
    t.equal(await answer.text(), '')
    const { 'access-control-allow-methods': allowed = '', ...others } = corsOf(answer)
    for (const method of methods) t.ok(allowed.split(', ').includes(method), `${method} ${path}`)
    t.same(others, {
      ...OPEN,
      'access-control-allow-headers': 'content-type,svc-api-key,x-mine',
      'access-control-max-age': '600',
    })
  }
  const page = await ask('OPTIONS /healthz', { 'access-control-request-method': 'GET' })
  t.equal(page.headers.get('access-control-allow-methods'), 'GET, HEAD')
  t.notOk(page.headers.has('access-control-allow-headers'), 'none were asked for')
  const out = await ask('OPTIONS /documents', { 'access-control-request-method': 'POST' })
  t.equal(out.headers.get('access-control-allow-methods'), 'DELETE, GET, HEAD, PATCH, POST, PUT')
})

t.test('a preflight allows a private network only when it is asked to', async (t) => {
  const { ask } = await start(t)
  const name = 'access-control-allow-private-network'
  const plain = { 'access-control-request-method': 'GET' }
  t.equal((await ask('OPTIONS /tokens', plain)).headers.get(name), null)
  const asked = await ask('OPTIONS /tokens', { ...plain, 'access-control-request-private-network': 'true' })
  t.equal(asked.headers.get(name), 'true')
})

t.test('only a preflight for a known path is answered with 204', async (t) => {
  const { ask } = await start(t)
  const plain = { 'access-control-request-method': 'GET' }
  t.equal((await ask('OPTIONS /nothing', plain)).status, 404)
  const other = await ask('OPTIONS /tokens')
  t.equal(other.status, 405)
  t.equal(other.headers.get('allow'), 'GET, HEAD, POST')
  const hostile = { ...plain, 'access-control-request-headers': 'a;b' }
  t.equal((await ask('OPTIONS /tokens', hostile)).headers.get('access-control-allow-headers'), null)
})

t.test('pages read answers and errors, except those to keys of servers', async (t) => {
  const { vault, ask } = await start(t)
  const keyed = async (type: 'public' | 'private' | 'management') => {
    const { key } = await vault.createApplication(type, { permissions: permissionsOf(type) })
    return { 'svc-api-key': key, 'content-type': 'application/json' }
  }
  const open = await keyed('public')
  const cases: [number, Response][] = [
    [201, await ask('POST /tokens', open, '{"type":"token","data":"x"}')],
    [400, await ask('POST /tokens', open, '{"type":"token"}')],
    [400, await ask('POST /tokens', open, '{')],
    [403, await ask('GET /tokens', open)],
    [401, await ask('GET /tokens')],
    [401, await ask('GET /tokens', { 'svc-api-key': 'key_unknown' })],
    [404, await ask('GET /nothing')],
    [404, await ask('POST /documents')],
    [405, await ask('PUT /tokens')],
    [200, await ask('GET /healthz')],
    [200, await ask('GET /openapi.json')],
  ]
  for (const [status, answer] of cases) {
    t.equal(answer.status, status)
    t.same(corsOf(answer), OPEN, `${status} of ${await answer.text()}`.slice(0, 80))
  }
  for (const type of ['private', 'management'] as const) {
    const headers = await keyed(type)
    for (const line of ['GET /applications/key', 'GET /tokens/none', 'GET /logs', 'GET /tokens?size=0'])
      t.same(corsOf(await ask(line, headers)), {}, `${line} with a ${type} key`)
    t.same(corsOf(await ask('POST /tokens', headers, '{')), {}, `an error with a ${type} key`)
  }
})

t.test('the names follow the prefix', async (t) => {
  const { ask } = await start(t, { prefix: 'bt' })
  t.equal(
    (await ask('GET /healthz')).headers.get('access-control-expose-headers'),
    EXPOSED.replaceAll('SVC', 'BT'),
  )
})

t.test('switched off, nothing says that pages may read anything', async (t) => {
  const { vault, ask } = await start(t, { cors: false })
  const { key } = await vault.createApplication('public', { permissions: ['token:create'] })
  const preflight = await ask('OPTIONS /tokens', { 'access-control-request-method': 'GET' })
  t.equal(preflight.status, 405)
  for (const answer of [
    preflight,
    await ask('GET /healthz'),
    await ask('GET /applications/key', { 'svc-api-key': key }),
  ])
    t.same(corsOf(answer), {})
})

t.test('an answer to what is no valid request can be read by pages too', async (t) => {
  const { vault } = await start(t)
  for (const cors of [true, false]) {
    const service = { host: vault.app, registry, authenticate, version: '0', cors }
    const server = await serveHttp(service, { port: 0, addresses: ['127.0.0.1'] })
    t.teardown(() => server.stop())
    const text = await sendRaw(
      server.port,
      `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    )
    t.match(text, /^HTTP\/1\.1 431 /)
    t.equal(/access-control-allow-origin: \*/i.test(text), cors)
  }
})
