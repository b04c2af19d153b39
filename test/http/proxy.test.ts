/** Behaviour of proxies that is visible only in calls over HTTP. `fixtures/operations` covers the other interfaces. */
import t, { type Test } from 'tap'
import type { Rule } from '../../src/domain/access/access.js'
import { createHandler } from '../support/service.js'
import { openTestVault } from '../support/test-vault.js'
import { startStub } from './stub.js'

const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' }

async function open(t: Test) {
  const vault = await openTestVault()
  const stub = await startStub()
  t.teardown(() => stub.close())
  t.teardown(() => vault.app.close())
  vault.app.configureReactors({ allowNet: [`127.0.0.1:${stub.port}`] })
  const handler = createHandler(vault.app, { bodyLimitBytes: 65_536 })
  const backend = await vault.createApplication('private', { permissions: ['proxy:invoke'] })
  await vault.ask('token create', { id: 'card-1', type: 'card', data: CARD })
  const call = async (path: string, init: RequestInit = {}, key: string | undefined = backend.key) => {
    const headers = {
      ...(key === '' ? {} : { 'svc-api-key': key }),
      'svc-proxy-url': stub.url,
      ...(init.headers as Record<string, string>),
    }
    const answer = await handler(new Request(`http://localhost/proxy${path}`, { ...init, headers }))
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, text, json: parse(text) }
  }
  const create = async (input: object) =>
    (await vault.ask('proxy create', { name: 'p', destination_url: `${stub.url}/base/`, ...input })) as {
      id: string
      key: string
    }
  return { ...vault, stub, backend, call, create }
}

function parse(text: string): { proxy_error?: { status: number; detail: string; errors?: object } } {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

const json = (value: unknown) => ({
  method: 'POST',
  body: typeof value === 'string' ? value : JSON.stringify(value),
  headers: { 'content-type': 'application/json' },
})

t.test('a proxy passes bodies without an expression unchanged in both directions', async (t) => {
  const { stub, call, backend } = await open(t)
  const bytes = Buffer.from(Array.from({ length: 1024 }, (_, at) => at % 256))
  stub.answer = (_, response) => {
    response.writeHead(207, {
      'content-type': 'application/octet-stream',
      'set-cookie': 'a=b',
      'access-control-allow-origin': 'https://evil.example',
      'content-security-policy': 'default-src *',
      'svc-trace-id': 'theirs',
      'x-theirs': 'yes',
      link: ['<a>', '<b>'],
    })
    response.end(bytes)
  }
  const sent = { 'content-type': 'image/png', 'x-mine': 'a, b', 'accept-encoding': 'gzip', te: 'trailers' }
  const expected: Record<string, string | null> = {
    'svc-proxy-destination-status': '207',
    'x-theirs': 'yes',
    link: '<a>, <b>',
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
    'set-cookie': null,
    'access-control-allow-origin': null,
  }
  const url = '/a%2Fb//c?x=1&y=%20&x=2'
  for (const method of ['GET', 'PATCH']) {
    const answer = await call(url, { method, headers: sent, ...(method === 'GET' ? {} : { body: bytes }) })
    t.equal(answer.status, 207)
    for (const [name, value] of Object.entries(expected)) t.equal(answer.headers.get(name), value, name)
    t.not(answer.headers.get('svc-trace-id'), 'theirs')
    const received = stub.received.pop()!
    const host = `127.0.0.1:${stub.port}`
    t.match(received, { method, url, headers: { host, 'x-mine': 'a, b' } })
    for (const name of ['accept-encoding', 'te', 'svc-api-key', 'svc-proxy-url'])
      t.notOk(name in received.headers, name)
    t.notOk(JSON.stringify(received).includes(backend.key))
    if (method !== 'GET') t.equal(received.body, bytes.toString('latin1'))
  }
  const odd = '{"a": 1.0, "b" : 12345678901234567890, "a": 2}'
  await call('', json(odd))
  t.equal(stub.received.pop()?.body, odd, 'JSON without an expression is not parsed')
})

t.test(
  'the target of a proxy call is a URL, or a proxy whose key is in a header or in the query',
  async (t) => {
    const { stub, call, create, createApplication, createTenant } = await open(t)
    const { key } = await create({})
    const ofKey = { headers: { 'svc-proxy-key': key, 'svc-proxy-url': 'http://elsewhere.example' } }
    await call('/x?a=1', ofKey)
    t.equal(stub.received.pop()?.url, '/base/x?a=1', 'the URL is ignored if there is a proxy key')
    await call(`/x?a=1&svc-proxy-key=${key}&b=%20`)
    t.equal(stub.received.pop()?.url, '/base/x?a=1&b=%20', 'the proxy key is removed from the query')
    for (const url of ['', 'ftp://a', `${stub.url}/?x`, `${stub.url}/#x`, '/x'])
      t.equal((await call('', { headers: { 'svc-proxy-url': url } })).status, 400, url)
    await createTenant('second')
    const theirs = await createApplication('private', { permissions: ['proxy:invoke'] }, 'second')
    t.equal((await call('', ofKey, theirs.key)).status, 404, 'the proxy key of another tenant is refused')
  },
)

t.test('a proxy without authentication has exactly the rights of its application', async (t) => {
  const { ask, call, create, createApplication, stub } = await open(t)
  t.match(await call('', {}, ''), { status: 401, json: { proxy_error: { status: 401 } } })
  const rule: Rule = { priority: 1, container: '/pci/', transform: 'redact', permissions: ['proxy:invoke'] }
  const narrow = await createApplication('private', { rules: [rule] })
  const user = await createApplication('private', { permissions: ['token:use'] })
  const { id, key } = await create({ require_auth: false })
  const keyed = (init: RequestInit = {}) =>
    call('', { ...init, headers: { ...init.headers, 'svc-proxy-key': key } }, '')
  const general = json({ a: '{{ general }}' })
  await ask('token create', { id: 'general', type: 'token', data: 1, containers: ['/general/'] })
  t.equal((await keyed()).status, 200, 'the call succeeds without an API key')
  t.equal((await keyed(general)).status, 403, 'a proxy without an application has no access to data')
  const tokenize = { type: 'tokenize', options: { token: { type: 'token', data: '{{ req.a }}' } } }
  await ask('proxy patch', { id, request_transform: tokenize })
  t.match(await keyed(json({ a: 1 })), { status: 403, json: { proxy_error: { status: 403 } } })
  t.equal(stub.received.length, 1, 'no further request is sent to the destination')
  await ask('proxy patch', { id, application: { id: user.id } })
  t.equal((await keyed(general)).status, 200)
  t.match(await ask('token list', { size: 1 }), { data: [{ created_by: user.id }] })
  await ask('proxy patch', { id, application: { id: narrow.id } })
  t.equal((await keyed(general)).status, 403)
  await ask('app delete', { id: narrow.id })
  t.equal((await keyed(json({ a: '{{ card-1 }}' }))).status, 403)
  await ask('proxy patch', { id, require_auth: true })
  t.equal((await keyed()).status, 401)
})

t.test(
  'a proxy refuses large bodies, the methods HEAD and OPTIONS, and hosts that are not allowed',
  async (t) => {
    const { ask, call } = await open(t)
    const long = { method: 'POST', body: 'x'.repeat(65_537) }
    t.match(await call('', long), { status: 413, json: { proxy_error: { status: 413 } } })
    t.match(await call('', { method: 'HEAD' }), { status: 405 })
    t.equal((await call('', { method: 'OPTIONS' })).headers.get('allow'), 'GET, POST, PUT, PATCH, DELETE')
    const elsewhere = { ...long, body: '{{ card-1 }}', headers: { 'svc-proxy-url': 'http://a.example' } }
    t.match(await call('', elsewhere), { status: 403 }, 'the host of the URL must be allowed')
    t.same(
      await ask('log reveals', { token: 'card-1' }),
      { count: 0, seen_by: [], use_count: 0, used_by: [] },
      'no token was used',
    )
  },
)

t.test('code of a proxy cannot set headers of the connection, and its errors reveal no data', async (t) => {
  const { ask, call, create, stub } = await open(t)
  const code = `module.exports = async ({ args }) => ({ body: JSON.stringify(args.body) + ' ', headers: {
    ...args.headers, 'x-code': 'yes', host: 'evil.example', 'content-length': '1', 'svc-x': '1' } })`
  const { id, key } = await create({ request_transforms: [{ code }] })
  const { body } = json({ n: "{{ card-1 | json: '$.number' }}" })
  const init = { method: 'POST', body, headers: { 'svc-proxy-key': key, 'content-type': 'application/json' } }
  await call('', init)
  const sent = `${JSON.stringify({ n: CARD.number })} `
  const host = `127.0.0.1:${stub.port}`
  const headers = { host, 'x-code': 'yes', 'content-length': String(sent.length), 'svc-x': undefined }
  t.match(stub.received.pop(), { body: sent, headers })
  for (const [broken, status] of [
    ['module.exports = async () => 1', 500],
    [`module.exports = async () => ({ headers: { 'a b': 'x' } })`, 500],
    [`module.exports = async () => ({ headers: { a: 'x\\r\\ny' } })`, 500],
    ['module.exports = (', 422],
  ] as const) {
    await ask('proxy patch', { id, request_transforms: [{ code: broken }] })
    const failed = await call('', init)
    t.match(failed, { status, json: { proxy_error: { status } } }, broken)
    t.notOk(failed.text.includes(CARD.number))
  }
  t.same(stub.received, [])
})

t.test('a mask transform of a proxy refuses a body that is not text', async (t) => {
  const { call, create, stub } = await open(t)
  const mask = { type: 'mask', matcher: 'regex', expression: '(.+)', replacement: '😀' }
  const { key } = await create({ response_transforms: [mask] })
  const masked = () => call('', { headers: { 'svc-proxy-key': key } })
  stub.answer = (_, response) => response.end('é😀x')
  t.equal((await masked()).text, '😀😀😀')
  stub.answer = (_, response) => response.end(Buffer.from([0xff, 0xfe]))
  t.match(await masked(), { status: 502, json: { proxy_error: { status: 502 } } })
  stub.answer = (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x')
  t.equal((await masked()).status, 502)
})

t.test('a proxy does not parse responses of more than 1 MiB', async (t) => {
  const { call, create, stub } = await open(t)
  stub.answer = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ a: 'x'.repeat(1024 * 1024) }))
  }
  const transform = (type: string, value: string) => ({ type, options: { value, location: '$.b' } })
  const through = async (response_transform: object) => {
    const { key } = await create({ response_transform })
    return call('', { headers: { 'svc-proxy-key': key } })
  }
  for (const each of [transform('append_json', 'x'), transform('append_text', '{{ res.a }}')])
    t.match(await through(each), { status: 422, json: { proxy_error: { detail: /1048576 bytes/ } } })
  t.equal((await through(transform('append_text', '!'))).text.at(-1), '!')
})

t.test('the server handles other requests while a proxy transforms a large body', async (t) => {
  const { call, create, stub } = await open(t)
  const list = Array.from({ length: 16_000 }, (_, at) => ({ at, text: `value ${at}` }))
  stub.answer = (_, response) =>
    void response.setHeader('content-type', 'application/json').end(JSON.stringify({ list }))
  const response_transforms = Array.from({ length: 10 }, (_, at) => ({
    type: 'append_json',
    options: { value: 'x', location: `$.a${at}` },
  }))
  const { key } = await create({ response_transforms })
  await call('', { headers: { 'svc-proxy-key': key } })
  let longest = 0
  let last = performance.now()
  const began = last
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }, 1)
  t.match(await call('', { headers: { 'svc-proxy-key': key } }), { status: 200, json: { a0: 'x', a9: 'x' } })
  clearInterval(timer)
  const all = performance.now() - began
  t.ok(longest < all / 2, `the longest turn took ${Math.round(longest)} of ${Math.round(all)} ms`)
})

t.test('a dry run of a proxy call shows no value of the configuration', async (t) => {
  const { ask, create } = await open(t)
  const { id } = await create({ configuration: { KEY: 'a-secret' } })
  const headers = { 'x-a': '{{ config: KEY }}', 'x-b': "{{ proxy | json: '$.config' }}" }
  const shown = await ask('proxy call', { target: id, headers, dry_run: true })
  t.match(shown, { headers: { 'x-a': 'REDACTED', 'x-b': '{"KEY":"REDACTED"}' } })
})

t.test(
  'in no-reveal mode, neither the configuration of a proxy nor an error of its code reveals data',
  async (t) => {
    const { ask, call, create, stub } = await open(t)
    const hide = (init: ReturnType<typeof json>, key: string, more: object = {}) =>
      call('', { ...init, headers: { ...init.headers, 'svc-proxy-key': key, 'svc-no-reveal': '1', ...more } })
    const plain = await create({ configuration: { KEY: 'a-secret' } })
    for (const [body, more] of [
      [{ a: '{{ config: KEY }}' }, {}],
      [{ a: '{{ card-1 }}' }, { 'x-a': '{{ proxy | json: "$.request.body" }}' }],
      [{ a: 1 }, { 'x-a': '{{ proxy | json: "$.config.KEY" }}' }],
    ] as const) {
      const answer = await hide(json(body), plain.key, more)
      t.match(answer, { status: 403, json: { proxy_error: { detail: /No-reveal mode/ } } })
    }
    t.equal(stub.received.length, 0)
    const code = 'module.exports = async ({ args }) => { throw new Error(args.body.a) }'
    const { id } = (await ask('reactor create', { name: 'r', code })) as { id: string }
    const number = json({ a: '{{ card-1 | json: "$.number" }}' })
    for (const transform of [{ request_transform: { code } }, { request_reactor_id: id }]) {
      const { key } = await create(transform)
      const { status, text } = await hide(number, key)
      t.equal(status, 500)
      t.notMatch(text, CARD.number)
      t.match(await call('', { ...number, headers: { ...number.headers, 'svc-proxy-key': key } }), {
        text: new RegExp(CARD.number),
      })
    }
    const tokenize = { type: 'tokenize', options: { identifier: 'made', token: { type: 'token', data: 1 } } }
    const value = "{{ transform_identifier: made | json: '$.fingerprint' }}"
    const options = { value, location: '$.print' }
    const { key } = await create({ response_transforms: [tokenize, { type: 'append_json', options }] })
    t.match((await hide(json({ a: 1 }), key)).json, { print: null })
  },
)

t.test(
  'if a caller or application loses rights during a proxy call, the rest of the call runs without these rights',
  async (t) => {
    const { ask, call, create, createApplication, stub } = await open(t)
    const during = `await fetch('${stub.url}/during')`
    /**
     * Calls the proxy and returns the status of its response. When the stub receives a request for `path`, the stub
     * runs `change`.
     */
    const lose = async (
      proxy: { key: string },
      key: string,
      path: string,
      change: () => Promise<unknown>,
    ) => {
      stub.received.length = 0
      stub.answer = async ({ url }, response) => {
        if (url === path) await change()
        response.setHeader('content-type', 'application/json').end('{"ok":true}')
      }
      return (await call('', { ...json({ a: 1 }), headers: { 'svc-proxy-key': proxy.key } }, key)).status
    }
    const reach = () => stub.received.map(({ url }) => url)
    const invoker = async () => createApplication('private', { permissions: ['proxy:invoke'] })
    const remove = (application: { id: string }) => () => ask('app delete', { id: application.id })

    const waiting = await create({
      request_transforms: [{ code: `module.exports = async () => { ${during}; return {} }` }],
    })
    const first = await invoker()
    t.equal(await lose(waiting, first.key, '/during', remove(first)), 401)
    t.same(reach(), ['/during'], 'no request is sent to the destination after the transform')

    const plain = await create({})
    const second = await invoker()
    t.equal(await lose(plain, second.key, '/base', remove(second)), 401, 'the response is not forwarded')
    t.match(
      await ask('log list', { entity_id: plain.id }),
      { data: [{ operation: 'use' }, {}] },
      'the use of the token is logged',
    )

    const third = await invoker()
    const bound = await createApplication('private', { permissions: ['token:read', 'token:create'] })
    const code = `module.exports = async ({ args, svc }) => {
    ${during}
    const status = await svc.tokens.retrieve('card-1').then(() => 200, (error) => error.status)
    return { headers: { ...args.headers, 'x-status': String(status) } }
  }`
    const acting = await create({ request_transforms: [{ code }], application: { id: bound.id } })
    t.equal(await lose(acting, third.key, '/during', remove(bound)), 200)
    t.match(stub.received.at(-1), { url: '/base', headers: { 'x-status': '401' } })

    const maker = await createApplication('private', { permissions: ['token:create'] })
    const make = { type: 'tokenize', options: { token: { type: 'token', data: 'made' } } }
    const steps = [{ code: `module.exports = async () => { ${during}; return {} }` }, make]
    const making = await create({ request_transforms: steps, application: { id: maker.id } })
    const before = (await ask('token list', {})).pagination.total_items
    t.equal(await lose(making, third.key, '/during', remove(maker)), 401)
    t.equal((await ask('token list', {})).pagination.total_items, before, 'no token is created')
    t.same(reach(), ['/during'])

    const keyless = await create({ require_auth: false, request_transforms: steps.slice(0, 1) })
    const close = () => ask('proxy patch', { id: keyless.id, require_auth: true })
    t.equal(await lose(keyless, '', '/during', close), 401, 'the proxy now requires a key')
    t.same(reach(), ['/during'])
  },
)
