/** Calls through proxies, sentence by sentence, to a stub of another server. */
import t, { type Test } from 'tap'
import type { Rule } from '../../src/domain/access/access.js'
import { createHandler } from '../support/service.js'
import { openTestVault } from '../support/test-vault.js'
import { startStub } from './stub.js'

const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' }

async function open(t: Test, allowed: 'stub' | 'nothing' = 'stub') {
  const vault = await openTestVault()
  const stub = await startStub()
  t.teardown(() => stub.close())
  t.teardown(() => vault.app.close())
  vault.app.configureReactors({ allowNet: allowed === 'stub' ? [`127.0.0.1:${stub.port}`] : [] })
  const handler = createHandler(vault.app, { bodyLimitBytes: 65_536 })
  const backend = await vault.createApplication('private', { permissions: ['proxy:invoke'] })
  await vault.ask('token create', { id: 'card-1', type: 'card', data: CARD })
  await vault.ask('token create', { id: 'text-1', type: 'token', data: 'a b&c="ü"/' })
  await vault.ask('token create', { id: 'dots', type: 'token', data: '..' })
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
  const logs = async (type: string) => {
    const { data } = (await vault.ask('log list', { entity_type: type, size: 100 })) as {
      data: { operation: string; entity_id: string; actor_id: string; actor_type: string }[]
    }
    return data.filter(({ operation }) => operation === 'use')
  }
  const create = async (input: object) =>
    (await vault.ask('proxy create', { name: 'p', destination_url: `${stub.url}/base/`, ...input })) as {
      id: string
      key: string
    }
  return { ...vault, stub, handler, backend, call, logs, create }
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

t.test('what has no expression passes byte for byte, both ways', async (t) => {
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
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
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

t.test('expressions in body, headers, query and path', async (t) => {
  const { stub, call, logs } = await open(t)
  const body = `{"n": 1.0, "{{ card-1 }}": "k", "card": "{{ card-1 }}", "text": "x {{ card-1 | json: '$.number' }}"}`
  await call(`/a/%7B%7B%20text-1%20%7D%7D/b?q={{+card-1+|+json:+'$.cvc'+}}&z=%7b%7btext-1}}`, {
    ...json(body),
    headers: { 'content-type': 'application/json', authorization: `Bearer {{ card-1 | json: '$.number' }}` },
  })
  const text = encodeURIComponent('a b&c="ü"/')
  const received = stub.received.pop()!
  t.equal(received.url, `/a/${text}/b?q=123&z=${text}`)
  t.equal(received.headers.authorization, 'Bearer 4242424242424242')
  t.equal(
    received.body,
    `{"n": 1.0, "{{ card-1 }}": "k", "card": ${JSON.stringify(CARD)}, "text": "x 4242424242424242"}`,
  )
  await call('', {
    method: 'POST',
    body: `<n>{{ card-1 | json: '$.number' }}</n>`,
    headers: { 'content-type': 'text/xml' },
  })
  t.equal(stub.received.pop()?.body, '<n>4242424242424242</n>')
  const form = new URLSearchParams({
    number: "{{ card-1 | json: '$.number' }}",
    note: '{{ text-1 }}',
    a: 'b c',
  })
  await call('', { method: 'POST', body: form })
  t.equal(stub.received.pop()?.body, `number=4242424242424242&note=${text}&a=b+c`)
  const seen = await logs('card')
  t.same(
    seen.map(({ entity_id }) => entity_id),
    ['card-1', 'card-1', 'card-1'],
  )
  t.equal((await logs('token')).length, 5, 'cards are tokens')
})

t.test('a value never changes the form of what it is put into', async (t) => {
  const { ask, stub, call } = await open(t)
  const data = 'x\r\nHost: evil.example\r\n\r\n{"a":1}'
  await ask('token create', { id: 'lines', type: 'token', data })
  const refused = await call('', { headers: { 'x-note': '{{ lines }}' } })
  t.equal(refused.status, 400)
  t.match(refused.json.proxy_error?.errors, { 'headers.x-note': [/one line/] })
  t.notOk(refused.text.includes('evil'))
  for (const path of ['/v1/{{ dots }}/admin', '/v1/..%2fadmin', '/..;x/a', '/a%5c..%5cb'])
    t.equal((await call(path.replaceAll(' ', '%20'))).status, 400, path)
  t.same(stub.received, [], 'nothing was sent')
  await call('/{{%20lines%20}}', json({ a: '{{ lines }}' }))
  const received = stub.received.pop()!
  t.equal(received.url, `/${encodeURIComponent(data)}`)
  t.same(JSON.parse(received.body), { a: data })
})

t.test('the target: a proxy by its key, or a URL', async (t) => {
  const { app, ask, stub, call, create, createApplication, createTenant, logs, backend } = await open(t)
  const proxy = await create({})
  await call('/x?a=1', {
    headers: { 'svc-proxy-key': proxy.key, 'svc-proxy-url': 'http://elsewhere.example' },
  })
  t.equal(stub.received.pop()?.url, '/base/x?a=1', 'the URL is ignored beside a key')
  await call(`/x?a=1&svc-proxy-key=${proxy.key}&b=%20`)
  t.equal(stub.received.pop()?.url, '/base/x?a=1&b=%20', 'the key is taken out')
  await call(`?svc-proxy-key=${proxy.key}`)
  t.equal(stub.received.pop()?.url, '/base')
  t.same(
    (await logs('proxy')).map(({ entity_id, actor_id }) => [entity_id, actor_id]),
    Array.from({ length: 3 }, () => [proxy.id, backend.id]),
  )
  await call('', { headers: { 'svc-proxy-url': `${stub.url}/deep//` } })
  t.equal(stub.received.pop()?.url, '/deep')
  t.equal((await logs('proxy')).length, 3, 'without a proxy there is none to log')
  const unknown = await call('', { headers: { 'svc-proxy-key': '1111111111111111111111' } })
  t.match(unknown, { status: 404, json: { proxy_error: { status: 404, title: 'Not Found' } } })
  t.equal(unknown.headers.get('svc-proxy-destination-status'), null)
  t.equal((await call('', { headers: { 'svc-proxy-url': '' } })).status, 400)
  for (const url of ['ftp://a', 'http://u:p@127.0.0.1', `${stub.url}/?x`, `${stub.url}/#x`, '/x'])
    t.equal((await call('', { headers: { 'svc-proxy-url': url } })).status, 400, url)
  await createTenant('second')
  const theirs = await createApplication('private', { permissions: ['proxy:invoke'] }, 'second')
  t.equal((await call('', { headers: { 'svc-proxy-key': proxy.key } }, theirs.key)).status, 404)
  await ask('tenant update', { name: 'default', settings: { disable_ephemeral_proxy: 'true' } })
  t.equal((await call('')).status, 403)
  t.equal((await call('', { headers: { 'svc-proxy-key': proxy.key } })).status, 200)
  t.ok(app)
})

t.test('who may call, and on which tokens', async (t) => {
  const { ask, askAs, stub, call, createApplication, create } = await open(t)
  const reader = await createApplication('private', { permissions: ['token:read'] })
  const manager = await createApplication('management', { permissions: ['proxy:read'] })
  const page = await createApplication('public', { permissions: ['token:create'] })
  t.match(await call('', {}, ''), { status: 401, json: { proxy_error: { status: 401 } } })
  t.equal((await call('', {}, 'key_1111111111111111111111')).status, 401)
  for (const { key } of [reader, manager, page]) t.equal((await call('', {}, key)).status, 403)
  const rule: Rule = { priority: 1, container: '/pci/', transform: 'redact', permissions: ['proxy:invoke'] }
  const narrow = await createApplication('private', { rules: [rule] })
  t.equal(
    (await call('', json({ a: '{{ card-1 }}' }), narrow.key)).status,
    200,
    'the data, whatever the transform',
  )
  t.same(JSON.parse(stub.received.pop()!.body), { a: CARD })
  t.match(
    await ask('log reveals', { token: 'card-1' }),
    { count: 1, seen_by: [{ operation: 'use', actor_id: narrow.id }] },
    'which counts as given in the clear',
  )
  t.equal((await call('', json({ a: '{{ text-1 }}' }), narrow.key)).status, 403)
  t.equal((await call('', json({ a: '{{ nobody }}' }), narrow.key)).status, 400)
  const user = await createApplication('private', { permissions: ['token:use'] })
  t.equal((await call('', json({ a: '{{ text-1 }}' }), user.key)).status, 200)
  const { session_key, nonce } = (await askAs(page.key, 'session create')) as Record<string, string>
  t.equal((await call('', {}, session_key)).status, 403)
  await askAs(user.key, 'session authorize', { nonce, permissions: ['proxy:invoke'] })
  const answer = await call('', json({ a: '{{ text-1 }}' }), session_key)
  t.equal(answer.status, 200, 'a session with proxy:invoke of an authorizer with token:use')
  t.equal(answer.headers.get('access-control-allow-origin'), '*')
  t.equal((await call('', {}, user.key)).headers.get('access-control-allow-origin'), null)
  stub.received.length = 0
  const keyless = await create({ require_auth: false })
  const keyed = (init: RequestInit = {}) =>
    call('', { ...init, headers: { ...init.headers, 'svc-proxy-key': keyless.key } }, '')
  t.equal((await keyed()).status, 200, 'without a key')
  t.equal((await keyed(json({ a: '{{ text-1 }}' }))).status, 403, 'no application, no data')
  await ask('proxy patch', { id: keyless.id, application: { id: user.id } })
  t.equal((await keyed(json({ a: '{{ text-1 }}' }))).status, 200)
  await ask('proxy patch', { id: keyless.id, application: { id: narrow.id } })
  t.equal((await keyed(json({ a: '{{ text-1 }}' }))).status, 403)
  await ask('app delete', { id: narrow.id })
  t.equal((await keyed(json({ a: '{{ card-1 }}' }))).status, 403)
  await ask('proxy patch', { id: keyless.id, require_auth: true })
  t.equal((await keyed()).status, 401)
})

t.test('limits and errors of ours', async (t) => {
  const { call, create, stub } = await open(t)
  const tokens = (count: number) => json({ a: Array.from({ length: count }, (_, at) => `{{ token-${at} }}`) })
  t.match((await call('', tokens(21))).json.proxy_error?.errors, { body: [/at most 20/] })
  t.match((await call('', tokens(20))).json.proxy_error, {
    status: 400,
    title: 'Invalid proxy request',
    detail: /^Failed to detokenize some tokens: token-0, token-1, /,
    errors: { 'body.a[0]': [/not exist/] },
  })
  const long = { method: 'POST', body: 'x'.repeat(65_537) }
  t.match(await call('', long), { status: 413, json: { proxy_error: { status: 413 } } })
  t.equal((await call('', { ...long, body: 'x'.repeat(65_536) })).status, 200)
  t.match(await call('', json('{"a": "{{ card-1 }}"')), {
    status: 400,
    json: { proxy_error: { status: 400 } },
  })
  t.equal((await call('', json({ a: '{{ card-1 | no_such_filter }}' }))).status, 400)
  t.equal((await call('', json({ a: '{{ card-1' }))).status, 400)
  t.equal((await call('?a={{%20card-1')).status, 400)
  t.match(await call('', { method: 'HEAD' }), { status: 405 })
  t.equal((await call('', { method: 'OPTIONS' })).headers.get('allow'), 'GET, POST, PUT, PATCH, DELETE')
  stub.received.length = 0
  const plain = await create({ disable_detokenization: true })
  const headers = { 'svc-proxy-key': plain.key, 'content-type': 'application/json', 'x-a': '{{ card-1 }}' }
  await call('/%7B%7Bcard-1%7D%7D?q={{card-1}}', { method: 'POST', body: '{"a":"{{ card-1 }}"', headers })
  t.match(stub.received, [{ url: '/base/%7B%7Bcard-1%7D%7D?q={{card-1}}', body: '{"a":"{{ card-1 }}"' }])
  t.equal(stub.received[0]?.headers['x-a'], '{{ card-1 }}')
})

t.test('a host that is not allowed is not called', async (t) => {
  const { call, stub, logs } = await open(t, 'nothing')
  const refused = await call('', json({ a: '{{ card-1 }}' }))
  t.match(refused, { status: 403, json: { proxy_error: { detail: /--allow-net/ } } })
  t.same(stub.received, [])
  t.same(await logs('card'), [], 'and no token was used')
})

t.test('code changes requests and answers, or answers itself', async (t) => {
  const { ask, call, create, stub, createApplication } = await open(t)
  const code = `module.exports = async ({ args, req, res, configuration, logger, svc }) => {
    logger.info('seen')
    if (args !== req || res !== undefined || svc !== null) throw new Error('wrong')
    return { body: { ...args.body, path: args.path, query: args.query, method: args.method, by: configuration.who },
      headers: { ...args.headers, 'x-code': 'yes', host: 'evil.example', 'content-length': '1', 'svc-x': '1', connection: 'x' } }
  }`
  const wrapped = `module.exports = async ({ args }) => ({ req: { body: JSON.stringify(args.body) + ' ', headers: args.headers } })`
  const back = `module.exports = async ({ args, req, res }) => {
    if (args !== req || args !== res) throw new Error('wrong')
    return { res: { body: { was: args.body }, headers: { 'x-back': args.headers['content-type'], 'set-cookie': 'a=b' } } }
  }`
  const proxy = await create({
    configuration: { who: 'coffer' },
    request_transforms: [{ code }, { type: 'code', code: wrapped }],
    response_transform: { code: back },
  })
  const headers = { 'svc-proxy-key': proxy.key, 'content-type': 'application/json' }
  const init = { method: 'POST', body: JSON.stringify({ n: "{{ card-1 | json: '$.number' }}" }), headers }
  const answer = await call('/a?b=c', init)
  const received = stub.received.pop()!
  const sent = { n: CARD.number, path: '/a', query: '?b=c', method: 'POST', by: 'coffer' }
  t.equal(received.body, `${JSON.stringify(sent)} `)
  t.equal(received.headers.host, `127.0.0.1:${stub.port}`)
  t.equal(received.headers['content-length'], String(received.body.length))
  t.equal(received.headers['x-code'], 'yes')
  t.equal(received.headers['svc-x'], undefined)
  t.same(JSON.parse(answer.text), { was: { ok: true } })
  t.equal(answer.headers.get('x-back'), 'application/json')
  t.equal(answer.headers.get('set-cookie'), null)
  stub.answer = (_, response) => response.writeHead(404).end('plain')
  t.match(await call('', init), { status: 404, text: 'plain' }, 'transforms of answers run on 2xx only')

  const answering = `module.exports = async () => ({ res: { statusCode: 418, headers: { 'x-t': 'pot' }, body: { tea: true } } })`
  stub.received.length = 0
  await ask('proxy patch', { id: proxy.id, request_transforms: [{ code: answering }] })
  const own = await call('', init)
  t.match(own, { status: 418, json: { tea: true } })
  t.equal(own.headers.get('svc-proxy-destination-status'), null)
  t.same(stub.received, [], 'nothing is sent')

  for (const [broken, status] of [
    ['module.exports = async () => { throw new Error(1) }', 500],
    ['module.exports = async () => 1', 500],
    [`module.exports = async () => ({ headers: { 'a b': 'x' } })`, 500],
    [`module.exports = async () => ({ headers: { a: 'x\\r\\ny' } })`, 500],
    ['module.exports = (', 422],
  ] as const) {
    await ask('proxy patch', { id: proxy.id, request_transforms: [{ code: broken }] })
    const failed = await call('', init)
    t.match(failed, { status, json: { proxy_error: { status } } }, broken)
    t.notOk(failed.text.includes(CARD.number))
  }
  t.same(stub.received, [])

  const bound = await createApplication('private', { permissions: ['token:create', 'token:read'] })
  const creating = `module.exports = async ({ args, svc }) => ({ body: { id: (await svc.tokens.create({ type: 'token', data: 1 })).id } })`
  await ask('proxy patch', {
    id: proxy.id,
    application: { id: bound.id },
    request_transform: { code: creating },
  })
  stub.answer = (_, response) => response.end()
  t.equal((await call('', init)).status, 200)
  const { id } = JSON.parse(stub.received.pop()!.body) as { id: string }
  t.match(await ask('token get', { id }), { data: 1, created_by: bound.id })
})

t.test('a mask hides every group of every match', async (t) => {
  const { call, create, stub, ask } = await open(t)
  const mask = {
    type: 'mask',
    matcher: 'regex',
    expression: '([0-9]{4})(-?)([0-9]{4})[0-9]{4}',
    replacement: '•',
  }
  const proxy = await create({ response_transforms: [mask] })
  const headers = { 'svc-proxy-key': proxy.key }
  stub.answer = (_, response) => response.end('a 1234-56789012 ü😀 123456789012')
  t.equal((await call('', { headers })).text, 'a •••••••••9012 ü😀 ••••••••9012')
  const all = { ...mask, expression: '(.+)', replacement: '😀' }
  await ask('proxy patch', { id: proxy.id, response_transforms: [all] })
  stub.answer = (_, response) => response.end('é😀x')
  t.equal((await call('', { headers })).text, '😀😀😀')
  stub.answer = (_, response) => response.end(Buffer.from([0xff, 0xfe]))
  t.match(await call('', { headers }), { status: 502, json: { proxy_error: { status: 502 } } })
  stub.answer = (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x')
  t.equal((await call('', { headers })).status, 502)
})

t.test('the command shows what it would send, masked, and the whole answer', async (t) => {
  const { ask, stub, create } = await open(t)
  const proxy = await create({})
  const input = { target: proxy.id, path: '/x?y={{card-1|json:"$.number"}}', body: { card: '{{ card-1 }}' } }
  const dry = await ask('proxy call', { ...input, dry_run: true })
  t.match(dry, {
    method: 'POST',
    url: `${stub.url}/base/x?y=XXXXXXXXXXXX4242`,
    body: { card: { number: 'XXXXXXXXXXXX4242' } },
  })
  t.same(stub.received, [])
  const answer = (await ask('proxy call', { ...input, headers: { Accept: '*/*' } })) as object
  t.match(answer, {
    res: { statusCode: 200, headers: { 'svc-proxy-destination-status': '200' }, body: { ok: true } },
  })
  t.match(stub.received, [{ url: `/base/x?y=${CARD.number}`, headers: { accept: '*/*' } }])
  for (const target of [proxy.key, stub.url])
    t.match(await ask('proxy call', { target, method: 'GET' }), { res: { body: { ok: true } } })
  await t.rejects(ask('proxy call', { target: 'nobody' }), { code: 'not_found' })
})

t.test('a call without a key makes tokens only as the application of the proxy', async (t) => {
  const { ask, call, create, createApplication, stub } = await open(t)
  const made = await create({
    require_auth: false,
    request_transform: { type: 'tokenize', options: { token: { type: 'token', data: '{{ req.a }}' } } },
  })
  const keyless = () => {
    const { headers, ...rest } = json({ a: 'value' })
    return call('', { ...rest, headers: { ...headers, 'svc-proxy-key': made.key } }, '')
  }
  t.match(await keyless(), { status: 403, json: { proxy_error: { status: 403 } } })
  t.equal(stub.received.length, 0, 'nothing is sent')
  const bound = await createApplication('private', { permissions: ['token:read'] })
  await ask('proxy patch', { id: made.id, application: { id: bound.id } })
  t.equal((await keyless()).status, 200)
  const { data } = (await ask('token list', { type: ['token'] })) as { data: object[] }
  t.match(data[0], { created_by: bound.id })
  await ask('app delete', { id: bound.id })
  t.equal((await keyless()).status, 403)
})

t.test('answers of more than 1 MiB are not parsed by the server', async (t) => {
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

t.test('other requests get their turn between transforms of a large body', async (t) => {
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
  t.ok(longest < all / 2, `${Math.round(longest)} of ${Math.round(all)} ms`)
})

t.test('a dry run shows no value of the configuration', async (t) => {
  const { ask, create } = await open(t)
  const { id } = await create({ configuration: { KEY: 'a-secret' } })
  const headers = { 'x-a': '{{ config: KEY }}', 'x-b': "{{ proxy | json: '$.config' }}" }
  const shown = await ask('proxy call', { target: id, headers, dry_run: true })
  t.match(shown, { headers: { 'x-a': 'REDACTED', 'x-b': '{"KEY":"REDACTED"}' } })
})

t.test('in no-reveal mode neither configuration nor an error of code tells anything', async (t) => {
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
})
