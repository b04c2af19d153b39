import t from 'tap'
import { CofferError, ERRORS } from '../../src/errors.js'
import { createRateLimit, parseRate } from '../../src/http/rate-limit.js'
import { handlerOf } from '../support/service.js'
import { APPLICATIONS, createToy, KEYS, type ToyRequest } from './toy.js'

const json = { 'svc-api-key': KEYS.all, 'content-type': 'application/json' }
const reader = { 'svc-api-key': KEYS.reader }

t.test('an operation answers with its status, its result and the trace id', async (t) => {
  const toy = createToy()
  const made = await toy.ask({ method: 'POST', target: '/things', body: '{"name":"a","data":null}' })
  t.equal(made.status, 201)
  t.same(made.json, { name: 'a', data: null })
  t.same(made.headers, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'svc-trace-id': 'made-1',
  })
  const existing = await toy.ask({
    method: 'POST',
    target: '/things',
    body: '{"name":"a","deduplicate_token":true}',
  })
  t.equal(existing.status, 200)
  const gone = await toy.ask({ method: 'DELETE', target: '/things/a' })
  t.equal(gone.status, 204)
  t.equal(gone.body, '')
  t.notOk('content-type' in gone.headers)
})

t.test('the first of several faults is answered, in the order that callers rely on', async (t) => {
  const toy = createToy({ bodyLimitBytes: 20 })
  const large = `{"name":"${'x'.repeat(30)}"}`
  const cases: [number, ToyRequest][] = [
    [404, { method: 'BREW', target: '/nothing', headers: {} }],
    [405, { method: 'PUT', target: '/things', headers: {} }],
    [401, { method: 'POST', target: '/things', headers: { 'content-type': 'text/plain' }, body: large }],
    [
      403,
      {
        method: 'POST',
        target: '/things',
        headers: { ...reader, 'content-type': 'text/plain' },
        body: large,
      },
    ],
    [
      415,
      { method: 'POST', target: '/things', headers: { ...json, 'content-type': 'text/plain' }, body: large },
    ],
    [413, { method: 'POST', target: '/things', headers: json, body: large }],
    [400, { method: 'POST', target: '/things', headers: json, body: '{"name":' }],
    [400, { target: '/things?size=0', headers: reader }],
    [404, { target: '/things/missing', headers: reader }],
  ]
  for (const [status, request] of cases) {
    const answer = await toy.ask(request)
    t.equal(answer.status, status)
    t.match(answer.json, {
      status,
      title: String,
      detail: String,
      type: /^urn:coffer:problem:/,
      instance: /^made-/,
    })
    t.equal(answer.headers['content-type'], 'application/problem+json; charset=utf-8')
  }
  t.same(toy.seen, [{ id: 'missing' }], 'only the last reached its operation')
})

t.test('a path knows its methods', async (t) => {
  const toy = createToy()
  const cases: [string, string, string][] = [
    ['PUT', '/things', 'GET, HEAD, POST'],
    ['OPTIONS', '/things/a', 'DELETE, GET, HEAD, PATCH'],
    ['HEAD', '/things/a/links/b', 'POST'],
    ['PUT', '/things/search', 'DELETE, GET, HEAD, PATCH, POST'],
    ['get', '/things', 'GET, HEAD, POST'],
    ['POST', '/healthz', 'GET, HEAD'],
  ]
  for (const [method, target, allow] of cases) {
    const answer = await toy.ask({ method, target })
    t.equal(answer.status, 405, `${method} ${target}`)
    t.equal(answer.headers.allow, allow)
  }
})

t.test('paths are split before they are decoded, and one slash at the end means nothing', async (t) => {
  const toy = createToy()
  const ids: [string, string][] = [
    ['/things/plain', 'plain'],
    ['/things/plain/', 'plain'],
    ['/things/a%2Fb', 'a/b'],
    ['/things/..%2f..%2Fetc%2Fpasswd', '../../etc/passwd'],
    ['/things/..', '..'],
    ['/things/%00', '\0'],
    ['/things/%C3%A9', 'é'],
    ['/things/a;b={{c}}', 'a;b={{c}}'],
    ['/things/%7B%7B%20data%20%7D%7D', '{{ data }}'],
    ['/%74hings/a', 'a'],
    ['/things/search', 'search'],
    ['http://elsewhere:1/things/a?x=1', 'a'],
  ]
  for (const [target, id] of ids) {
    const answer = await toy.ask({ target })
    t.equal(answer.status, 200, target)
    t.same(toy.seen.at(-1), { id })
  }
  const refused: [string, number][] = [
    ['/things//', 404],
    ['/things/a//', 404],
    ['//things', 404],
    ['/things/a/b', 404],
    ['/nothing/../things', 404],
    ['/things/a/../missing', 404],
    ['/Things', 404],
    ['*', 404],
    ['/things/%zz', 400],
    ['/things/%', 400],
    ['/things/%C3', 400],
    ['/things/%ED%A0%80', 400],
    ['/things/é', 400],
  ]
  for (const [target, status] of refused) t.equal((await toy.ask({ target })).status, status, target)
  await toy.ask({ target: '/things/' })
  t.same(toy.seen.at(-1), { page: 1, size: 20 }, 'a list, not an empty id')
})

t.test('two parameters of one path arrive under their names, before anything in the body', async (t) => {
  const toy = createToy()
  const answer = await toy.ask({ method: 'POST', target: '/things/a%20b/links/c', body: 'not JSON at all' })
  t.equal(answer.status, 204, 'an operation without a body ignores one')
  t.same(toy.seen, [{ id: 'a b', other_id: 'c' }])
  const patch = { 'svc-api-key': KEYS.all, 'content-type': 'application/merge-patch+json' }
  await toy.ask({ method: 'PATCH', target: '/things/a', headers: patch, body: '{"id":"other","name":"n"}' })
  t.same(toy.seen.at(-1), { id: 'a', name: 'n' })
})

t.test('the query becomes what the schema asks for', async (t) => {
  const toy = createToy()
  const cases: [string, object][] = [
    ['', {}],
    ['?', {}],
    ['?id=a&id=b', { id: ['a', 'b'] }],
    ['?id=a', { id: ['a'] }],
    ['?page=2&size=50', { page: 2, size: 50 }],
    ['?deep=true', { deep: true }],
    ['?unknown=1&unknown=2&unknown[]=x&idx=1&', {}],
    ['?metadata.k=v&metadata.k=w&metadata.x=y', { metadata: { k: 'v', x: 'y' } }],
    ['?metadata[k]=v&metadata%5Bx.y%5D=a%20b+c', { metadata: { k: 'v', 'x.y': 'a b c' } }],
    ['?metadata.toString=x', { metadata: { toString: 'x' } }],
    ['?metadata={"k":"v","x":"y"}', { metadata: { k: 'v', x: 'y' } }],
    ['?metadata=%7B%22a.b%5Bc%22%3A%22%7B%22%7D', { metadata: { 'a.b[c': '{' } }],
    ['?metadata={"k":"v"}&metadata.k=w&metadata[x]=y&metadata={"x":"z"}', { metadata: { k: 'v', x: 'y' } }],
    ['?metadata.k', { metadata: { k: '' } }],
    ['?__proto__=x&constructor.prototype=y&toString=z', {}],
    ['?id=%26%3D%2B', { id: ['&=+'] }],
  ]
  for (const [search, input] of cases) {
    const answer = await toy.ask({ target: `/things${search}` })
    t.equal(answer.status, 200, search)
    const plain = JSON.parse(JSON.stringify(toy.seen.at(-1)))
    t.strictSame(plain, { page: 1, size: 20, ...input }, search)
  }
  t.equal(Object.getPrototypeOf({}), Object.prototype)
  const refused: [string, string | undefined][] = [
    ['?size=0', 'query.size'],
    ['?size=51', 'query.size'],
    ['?size=ten', 'query.size'],
    ['?size=1e1', 'query.size'],
    ['?page=', 'query.page'],
    ['?page=1&page=2', 'query.page'],
    ['?deep=yes', 'query.deep'],
    ['?id=a&id=b&id=c&id=d', 'query.id'],
    ['?metadata.a=1&metadata.b=1&metadata.c=1&metadata.d=1', 'query.metadata'],
    ['?metadata', 'query.metadata'],
    ['?metadata=', 'query.metadata'],
    ['?metadata=x', 'query.metadata'],
    ['?metadata=[1]', 'query.metadata'],
    ['?metadata="k"', 'query.metadata'],
    ['?metadata=null', 'query.metadata'],
    ['?metadata={"k":"v","k":"w"}', 'query.metadata'],
    ['?metadata={"k":1}', 'query.metadata.k'],
    ['?metadata={"k":{"l":"m"}}', 'query.metadata.k'],
    ['?metadata.=x', 'query.metadata'],
    ['?metadata[]=x', 'query.metadata'],
    ['?metadata[=x', 'query.metadata'],
    ['?metadata[k=x', 'query.metadata'],
    ['?metadata[k]l=x', 'query.metadata'],
    ['?id[]=x', 'query.id'],
    ['?id.x=y', 'query.id'],
    ['?page[]=2', 'query.page'],
    ['?id=%zz', undefined],
    ['?x=%ff', undefined],
    ['?id=é', undefined],
  ]
  for (const [search, path] of refused) {
    const { status, json } = await toy.ask({ target: `/things${search}` })
    t.equal(status, 400, search)
    t.same(Object.keys((json as { errors?: object }).errors ?? {}), path === undefined ? [] : [path], search)
  }
})

t.test('a body is taken as the content type says, or refused', async (t) => {
  const toy = createToy()
  const post = (headers: Record<string, string>, body: string | Uint8Array = '{"name":"a"}') =>
    toy.ask({ method: 'POST', target: '/things', headers: { 'svc-api-key': KEYS.all, ...headers }, body })
  const taken = [
    {},
    { 'content-type': 'application/json' },
    { 'content-type': 'Application/JSON; charset=UTF-8' },
    { 'content-type': 'application/json;charset="utf-8";x=y' },
    { 'content-type': 'application/json', 'content-encoding': 'identity' },
  ]
  for (const headers of taken) t.equal((await post(headers)).status, 201, JSON.stringify(headers))
  const refused = [
    { 'content-type': 'text/plain' },
    { 'content-type': '' },
    { 'content-type': 'application/merge-patch+json' },
    { 'content-type': 'application/json, text/plain' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-type': 'application/json; charset=utf-16' },
    { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    { 'content-type': 'multipart/form-data; boundary=x' },
  ]
  for (const headers of refused) t.equal((await post(headers)).status, 415, JSON.stringify(headers))
  const patch = (type?: string) =>
    toy.ask({
      method: 'PATCH',
      target: '/things/a',
      headers: { 'svc-api-key': KEYS.all, ...(type === undefined ? {} : { 'content-type': type }) },
      body: '{}',
    })
  t.equal((await patch('application/merge-patch+json; charset=utf-8')).status, 200)
  t.equal((await patch('application/json')).status, 415)
  t.equal((await patch()).status, 415)
})

t.test('the trace id of the caller is taken where it is fit to be logged', async (t) => {
  const toy = createToy()
  const ask = (traceId: string) =>
    toy.ask({ target: '/things/missing', headers: { 'svc-api-key': KEYS.all, 'svc-trace-id': traceId } })
  for (const traceId of ['abc-1', 'x'.repeat(128), '!~']) {
    const { json, headers } = await ask(traceId)
    t.match(json, { instance: traceId })
    t.equal(headers['svc-trace-id'], traceId)
  }
  for (const traceId of ['', 'x'.repeat(129), 'a b', 'é', 'a\tb']) {
    const { json, headers } = await ask(traceId)
    t.match((json as { instance: string }).instance, /^made-\d+$/)
    t.match(headers['svc-trace-id'], /^made-\d+$/)
  }
})

t.test('a prefix names the headers, and no other is honoured', async (t) => {
  const toy = createToy({ prefix: 'BT' })
  const good = await toy.ask({
    target: '/things',
    headers: { 'bt-api-key': KEYS.all, 'bt-trace-id': 'mine' },
  })
  t.equal(good.status, 200)
  t.equal(good.headers['bt-trace-id'], 'mine')
  const bad = await toy.ask({ target: '/things', headers: { 'svc-api-key': KEYS.all } })
  t.equal(bad.status, 401)
  t.equal(bad.headers['www-authenticate'], 'ApiKey name="BT-API-KEY"')
  t.match(bad.json, { detail: /BT-API-KEY/ })
})

t.test('who wants plain JSON gets problems as plain JSON', async (t) => {
  const toy = createToy()
  const type = async (accept?: string) => {
    const headers = { 'svc-api-key': KEYS.all, ...(accept === undefined ? {} : { accept }) }
    return (await toy.ask({ target: '/nothing', headers })).headers['content-type']
  }
  const problem = 'application/problem+json; charset=utf-8'
  const plain = 'application/json; charset=utf-8'
  t.equal(await type(), problem)
  t.equal(await type('application/json'), plain)
  t.equal(await type('text/html, application/json;q=0.9'), plain)
  t.equal(await type('application/json, */*'), problem)
  t.equal(await type('application/json, application/*'), problem)
  t.equal(await type('application/json, application/problem+json'), problem)
  t.equal(await type('text/html'), problem)
})

t.test('a fault of ours shows its reference and nothing else', async (t) => {
  const toy = createToy()
  const { status, json, body } = await toy.ask({ target: '/things/fault' })
  t.equal(status, 500)
  t.match(json, { type: 'urn:coffer:problem:internal', instance: 'made-1', detail: /Reference: made-1$/ })
  t.notMatch(body, /4242|TypeError/)
  t.equal(toy.faults.length, 1)
})

t.test('callers do not learn where the vault is, and the operator learns what failed', async (t) => {
  const message = 'Cannot write /var/lib/acme/vault/journal-1: no space is left on the disk.'
  for (const code of ['storage_failed', 'vault_damaged', 'vault_missing'] as const) {
    const toy = createToy({
      authenticate: async () => {
        throw new CofferError(code, message)
      },
    })
    const { status, json, body } = await toy.ask({ target: '/things' })
    t.equal(status, ERRORS[code].status)
    t.match(json, { type: `urn:coffer:problem:${code.replace('_', '-')}`, title: ERRORS[code].title })
    t.notMatch(body, /acme|journal/)
    t.match(toy.faults, [{ code, message }])
  }
})

t.test('a body has at most 50,000 values and names', async (t) => {
  const toy = createToy({ bodyLimitBytes: 1_000_000 })
  const post = (body: string) => toy.ask({ method: 'POST', target: '/things', body })
  const list = (one: string, count: number) => `{"name":"a","data":[${Array(count).fill(one).join(',')}]}`
  for (const [name, body] of [
    ['lists', list('[]', 50_000)],
    ['objects', list('{}', 50_000)],
    ['numbers', list('0', 50_000)],
    ['names', `{${Array.from({ length: 25_001 }, (_, at) => `"n${at}":0`).join(',')}}`],
    ['nothing that an object could be', `[${Array(60_000).fill('[]').join(',')}]`],
  ] as const) {
    const { status, json } = await post(body)
    t.equal(status, 400, name)
    t.match(json, { detail: /it has more than 50000 values and property names/ }, name)
  }
  t.equal((await post(list('[]', 49_990))).status, 201)
  t.equal((await post(list(`"${',[]'.repeat(300_000)}"`, 1))).status, 201, 'text counts as one')
})

t.test('every request is recorded by its route, without ids, keys, queries or bodies', async (t) => {
  let now = 0
  const toy = createToy({ clock: () => (now += 5) })
  await toy.ask({ target: '/things/secret-id?q=secret', headers: { ...json, 'svc-trace-id': 'x' } })
  await toy.ask({ target: '/nothing/secret', headers: {} })
  await toy.ask({ target: '/things/a', headers: { 'svc-api-key': 'secret' } })
  await toy.ask({ target: '/healthz', headers: {} })
  t.same(toy.entries, [
    {
      method: 'GET',
      route: '/things/{id}',
      status: 200,
      ms: 5,
      traceId: 'x',
      applicationId: APPLICATIONS.all,
    },
    { method: 'GET', route: '-', status: 404, ms: 5, traceId: 'made-1' },
    { method: 'GET', route: '/things/{id}', status: 401, ms: 5, traceId: 'made-2' },
    { method: 'GET', route: '/healthz', status: 200, ms: 5, traceId: 'made-3' },
  ])
})

t.test('the rate limit is each application’s own, and says when to come back', async (t) => {
  let now = 0
  const clock = () => now
  const toy = createToy({ clock, rateLimit: createRateLimit(parseRate('2/m'), clock) })
  const get = (headers: Record<string, string> = reader) => toy.ask({ target: '/things', headers })
  t.equal((await get()).status, 200)
  t.equal((await get()).status, 200)
  const refused = await get()
  t.equal(refused.status, 429)
  t.equal(refused.headers['retry-after'], '30')
  t.match(refused.json, { type: 'urn:coffer:problem:rate-limited' })
  t.equal((await get(json)).status, 200, 'another application is not concerned')
  now = 29_999
  t.equal((await get()).headers['retry-after'], '1')
  now = 30_000
  t.equal((await get()).status, 200)
  t.equal((await get()).status, 429)
  for (const text of ['0/s', '1', '1/d', '-1/s', '1.5/s', ''])
    t.throws(() => parseRate(text), { code: 'usage' }, text)
})

t.test('the same server is a function of the platform’s own Request', async (t) => {
  const { options, seen } = createToy({ bodyLimitBytes: 50 })
  const handle = handlerOf(options)
  const url = 'http://localhost/things'
  const made = await handle(new Request(url, { method: 'POST', headers: json, body: '{"name":"a"}' }))
  t.equal(made.status, 201)
  t.same(await made.json(), { name: 'a' })
  t.match(made.headers.get('svc-trace-id'), /^made-/)
  const large = await handle(new Request(url, { method: 'POST', headers: json, body: 'x'.repeat(51) }))
  t.equal(large.status, 413)
  const gone = await handle(new Request(`${url}/a%2Fb`, { method: 'DELETE', headers: json }))
  t.equal(gone.status, 204)
  t.equal(gone.body, null)
  t.same(seen.at(-1), { id: 'a/b' })
})
