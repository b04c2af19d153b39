/** The steps that every request passes before its operation runs, and the headers of every response. */
import t, { type Test } from 'tap'
import { CofferError, ERRORS } from '../../src/errors.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { Endpoint } from '../../src/framework/registry.js'
import type { AccessEntry } from '../../src/http/access-log.js'
import { createAnswerer } from '../../src/http/answerer.js'
import { readQuery } from '../../src/http/input.js'
import type { AnswererOptions } from '../../src/http/options.js'
import { createRateLimit, parseRate } from '../../src/http/rate-limit.js'
import { createRouter } from '../../src/http/router.js'
import { completeService } from '../../src/http/service.js'
import { registry } from '../../src/operations/all.js'
import { refusal } from '../support/refusals.js'
import { openTestVault, permissionsOf } from '../support/test-vault.js'
import { createContract, documentOf } from './contract.js'

interface Asked {
  headers?: Record<string, string>
  body?: string
  key?: string
}

const contract = createContract(documentOf(registry))

async function open(t: Test, changes: Partial<AnswererOptions> = {}) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const entries: AccessEntry[] = []
  const faults: unknown[] = []
  const answerer = createAnswerer({
    ...completeService({ host: vault.app, registry, authenticate, version: '0', cors: false }),
    record: (entry) => entries.push(entry),
    reportFault: (error) => faults.push(error),
    ...changes,
  })
  const all = await vault.createApplication('private', { permissions: permissionsOf('private') })
  const reader = await vault.createApplication('private', { permissions: ['token:read'] })
  const names = { key: `${changes.prefix?.toLowerCase() ?? 'svc'}-api-key` }
  /** Sends a request. `line` has the method and the target. If `key` is empty, the request has no API key. */
  const ask = async (line: string, { headers = {}, body = '', key = all.key }: Asked = {}) => {
    const at = line.indexOf(' ')
    const answer = await answerer({
      method: line.slice(0, at),
      target: line.slice(at + 1),
      headers: { ...(key && { [names.key]: key }), ...headers },
      readBody: async (limit) => (body.length > limit ? undefined : Buffer.from(body)),
    })
    const breach = answer.status < 400 ? undefined : contract.findProblemBreach(answer)
    if (breach !== undefined) throw new Error(`${line}: ${breach}\n${answer.body}`)
    const isJson = answer.headers['content-type']?.includes('json')
    return { ...answer, json: isJson ? JSON.parse(answer.body) : undefined }
  }
  return { vault, ask, answerer, all, reader, entries, faults }
}

const TOKEN = '{"type":"token","data":1}'

t.test('every response has the right status and content type, and the trace id of its request', async (t) => {
  const { ask } = await open(t)
  const made = await ask('POST /tokens', { body: TOKEN, headers: { 'svc-trace-id': 'mine' } })
  t.equal(made.status, 201)
  t.same(made.headers, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'svc-trace-id': 'mine',
  })
  const gone = await ask(`DELETE /tokens/${made.json.id}`)
  t.match(gone, { status: 204, body: /^$/ })
  t.notOk('content-type' in gone.headers)
  for (const traceId of ['x'.repeat(128), '!~', '', 'x'.repeat(129), 'a b', 'é', 'a\tb']) {
    const { json, headers } = await ask('GET /tokens/none', { headers: { 'svc-trace-id': traceId } })
    const isFit = /^[!-~]{1,128}$/.test(traceId)
    t.equal(
      headers['svc-trace-id'] === traceId,
      isFit,
      'the trace id of the client is used if it may be logged',
    )
    t.equal(json.instance, headers['svc-trace-id'])
  }
})

t.test('a request is refused if its key is deleted while the body arrives', async (t) => {
  const { vault, ask, answerer } = await open(t)
  const permissions = permissionsOf('private')
  for (const [target, body] of [
    ['/tokens', TOKEN],
    ['/tokens', '{"type":"none"}'],
    ['/detokenize', '{}'],
    ['/tokens/search', '{}'],
  ] as const) {
    const { id, key } = await vault.createApplication('private', { permissions })
    const { status } = await answerer({
      method: 'POST',
      target,
      headers: { 'svc-api-key': key, 'content-type': 'application/json' },
      readBody: async () => {
        await vault.ask('app delete', { id })
        return Buffer.from(body)
      },
    })
    t.equal(status, 401, `${target} ${body}`)
  }
  t.equal((await ask('GET /tokens')).json.data.length, 0)
})

t.test('a known path answers 405 to HTTP methods that the path does not have', async (t) => {
  const { ask } = await open(t)
  const cases: [string, string][] = [
    ['PUT /tokens', 'GET, HEAD, POST'],
    ['get /tokens', 'GET, HEAD, POST'],
    ['OPTIONS /tokens/a', 'DELETE, GET, HEAD, PATCH'],
    ['PUT /tokens/search', 'DELETE, GET, HEAD, PATCH, POST'],
    ['HEAD /tokenize', 'POST'],
    ['POST /healthz', 'GET, HEAD'],
  ]
  for (const [line, allow] of cases) t.match(await ask(line), { status: 405, headers: { allow } }, line)
})

t.test(
  'the path of a request is split before it is decoded, and a single slash at its end is ignored',
  async (t) => {
    const { ask } = await open(t)
    t.equal((await ask('GET http://elsewhere:1/healthz?x=1')).status, 200)
    const router = createRouter(registry)
    const read = (path: string) => {
      const match = router.match('GET', path)
      return 'operation' in match ? match.parameters() : match
    }
    const ids: [string, string][] = [
      ['plain/', 'plain'],
      ['a%2Fb', 'a/b'],
      ['..%2f..%2Fetc', '../../etc'],
      ['..', '..'],
      ['%00', '\0'],
      ['%C3%A9', 'é'],
      ['a;b={{c}}', 'a;b={{c}}'],
      ['search', 'search'],
    ]
    for (const [path, id] of ids) t.same(read(`/tokens/${path}`), { id }, path)
    t.same(read('/%74okens/a'), { id: 'a' })
    t.same(read('/tokens/'), {}, 'the path is that of the list and not of a token with an empty id')
    t.same(read('/tokens/a%20b/children'), { parent_id: 'a b' })
    const unknown = '/tokens// /tokens/a// //tokens /tokens/a/b /nothing/../tokens /tokens/a/../b /Tokens *'
    for (const path of unknown.split(' '))
      t.match(
        refusal(() => read(path)),
        { code: 'not_found' },
        path,
      )
    for (const id of ['%zz', '%', '%C3', '%ED%A0%80', 'é'])
      t.match(
        refusal(() => read(`/tokens/${id}`)),
        { code: 'validation' },
        id,
      )
  },
)

/** The query parameters of a list by page number, and of a list by cursor. */
const QUERY: Endpoint['query'] = {
  id: { type: 'array', items: { type: 'string' } },
  metadata: { type: 'object', additionalProperties: { type: 'string' } },
  filter: { type: 'object', additionalProperties: { type: 'string' }, maxProperties: 1 },
  deep: { type: 'boolean' },
  page: { type: 'integer' },
}

t.test('query parameters are parsed to the types of their schema', async (t) => {
  const read = (search: string) => readQuery({ query: QUERY, path: '/things' } as Endpoint, search)
  const cases: [string, object][] = [
    ['', {}],
    ['id=a&id=b', { id: ['a', 'b'] }],
    ['page=2&deep=true', { page: 2, deep: true }],
    ['page=1e1&deep=yes', { page: '1e1', deep: 'yes' }],
    ['unknown=1&unknown=2&unknown[]=x&idx=1&', {}],
    ['metadata.k=v&metadata.k=w&metadata.x=y', { metadata: { k: 'v', x: 'y' } }],
    ['metadata[k]=v&metadata%5Bx.y%5D=a%20b+c', { metadata: { k: 'v', 'x.y': 'a b c' } }],
    ['metadata.toString=x&metadata.k', { metadata: { toString: 'x', k: '' } }],
    ['metadata=%7B%22a.b%5Bc%22%3A%22%7B%22%7D', { metadata: { 'a.b[c': '{' } }],
    ['metadata={"k":"v"}&metadata.k=w&metadata[x]=y&metadata={"x":"z"}', { metadata: { k: 'v', x: 'y' } }],
    ['__proto__=x&constructor.prototype=y&toString=z', {}],
    ['id=%26%3D%2B', { id: ['&=+'] }],
  ]
  for (const [search, input] of cases) {
    const found = read(search)
    t.same(found.parseErrors, {}, search)
    t.strictSame(JSON.parse(JSON.stringify(found.input)), input, search)
  }
  const wrong =
    'page=1&page=2 metadata metadata=x metadata=[1] metadata={"k":"v","k":"w"} metadata.=x metadata[]=x metadata[=x metadata[k=x metadata[k]l=x id[]=x id.x=y page[]=2 filter.a=1&filter.b=2 filter.a=1&filter={"a":"1"}'
  for (const search of wrong.split(' '))
    t.same(Object.keys(read(search).parseErrors), [/^\w+/.exec(search)![0]], search)
  for (const search of ['id=%zz', 'x=%ff', 'id=é'])
    t.match(
      refusal(() => read(search)),
      { code: 'validation' },
      search,
    )
})

t.test('a request body is parsed as its content type says, or refused', async (t) => {
  const { ask } = await open(t)
  const json = 'application/json'
  const types: [number, string, string?][] = [
    [201, 'Application/JSON; charset=UTF-8'],
    [201, 'application/json;charset="utf-8";x=y'],
    [201, json, 'identity'],
    [415, 'text/plain'],
    [415, ''],
    [415, 'application/merge-patch+json'],
    [415, 'application/json, text/plain'],
    [415, 'application/json; charset=latin1'],
    [415, json, 'gzip'],
  ]
  for (const [status, type, encoding = ''] of types) {
    const headers = { 'content-type': type, 'content-encoding': encoding }
    t.equal((await ask('POST /tokens', { headers, body: TOKEN })).status, status, `${type} ${encoding}`)
  }
  t.equal((await ask('POST /tokens', { body: TOKEN })).status, 201)
  t.equal((await ask('POST /tokens', { body: '{"data":' })).status, 400)
  for (const [status, type] of [
    [404, 'application/merge-patch+json; charset=utf-8'],
    [415, json],
  ] as const)
    t.equal((await ask('PATCH /tokens/a', { headers: { 'content-type': type }, body: '{}' })).status, status)
  t.equal((await ask('PATCH /tokens/a', { body: '{}' })).status, 415)
})

t.test('a request body may have at most 50,000 values and property names', async (t) => {
  const { ask } = await open(t)
  const post = (values: string) => ask('POST /tokens', { body: `{"type":"token","data":${values}}` })
  const list = (one: string, count: number) => `[${Array(count).fill(one).join(',')}]`
  const names = `{${Array.from({ length: 25_001 }, (_, at) => `"n${at}":0`).join(',')}}`
  for (const body of [list('[]', 50_000), list('{}', 50_000), list('0', 50_000), names])
    t.match(await post(body), { status: 400, json: { detail: /more than 50000 values and property names/ } })
  t.equal((await post(list('0', 49_900))).status, 201)
  t.equal((await post(list(`"${',[]'.repeat(300_000)}"`, 1))).status, 201, 'a text counts as one value')
})

t.test(
  'the server uses the configured prefix in header names, and ignores headers with another prefix',
  async (t) => {
    const { ask, all } = await open(t, { prefix: 'BT' })
    const good = await ask('GET /tokens', { headers: { 'bt-trace-id': 'mine' } })
    t.match(good, { status: 200, headers: { 'bt-trace-id': 'mine' } })
    const bad = await ask('GET /tokens', { key: '', headers: { 'svc-api-key': all.key } })
    t.match(bad, {
      status: 401,
      json: { detail: /BT-API-KEY.* SVC-API-KEY need: coffer serve --prefix svc$/ },
    })
    t.equal(bad.headers['www-authenticate'], 'ApiKey name="BT-API-KEY"')
  },
)

t.test('if a caller accepts JSON but not problem+json, problems are sent as plain JSON', async (t) => {
  const { ask } = await open(t)
  const plain = ['application/json', 'text/html, application/json;q=0.9']
  const others = ['*/*', 'application/*', 'application/problem+json'].map(
    (type) => `application/json, ${type}`,
  )
  for (const accept of [...plain, ...others, 'text/html', '']) {
    const type = `application/${plain.includes(accept) ? '' : 'problem+'}json; charset=utf-8`
    t.equal((await ask('GET /nothing', { headers: { accept } })).headers['content-type'], type, accept)
  }
})

t.test('if a filter of a list has a value that no record can have, the list is empty', async (t) => {
  const { ask, vault } = await open(t)
  await ask('POST /tokens', { body: TOKEN })
  const auditor = await vault.createApplication('management', { permissions: ['log:read'] })
  const count = async (line: string, key?: string) => (await ask(line, key ? { key } : {})).json.data.length
  for (const value of ['__proto__', 'constructor', 'nonsense']) {
    t.equal(await count(`GET /tokens?type=${value}`), 0, value)
    t.equal(await count(`GET /logs?entity_type=${value}`, auditor.key), 0, value)
  }
  t.equal(await count('GET /tokens?type=token'), 1)
})

t.test('only the log of the operator contains the details of an internal failure', async (t) => {
  const message = 'Cannot write /var/lib/acme/vault/journal-1: no space is left on the disk.'
  const errors = (['storage_failed', 'vault_damaged', 'vault_missing'] as const).map(
    (code) => new CofferError(code, message),
  )
  for (const error of [...errors, new TypeError('4242424242424242')]) {
    const { code } = error as Partial<CofferError>
    const { ask, faults } = await open(t, { authenticate: () => Promise.reject(error) })
    const { status, json, body } = await ask('GET /tokens')
    t.equal(status, ERRORS[code ?? 'internal'].status)
    t.equal(json.type, `urn:coffer:problem:${(code ?? 'internal').replace('_', '-')}`)
    t.notMatch(body, /acme|journal|4242424242|TypeError/)
    if (code === undefined) t.match(json.detail, `Reference: ${json.instance}`)
    t.same(faults, [error])
  }
})

t.test('every request is logged with its route, without ids, keys, queries or bodies', async (t) => {
  let now = 0
  const { ask, all, entries } = await open(t, { clock: () => (now += 5) })
  const headers = { 'svc-trace-id': 'x' }
  const lines = ['GET /tokens/secret-id?q=secret', 'GET /nothing/secret', 'GET /tokens/a', 'GET /healthz']
  for (const line of lines) await ask(line, { headers, ...(line.endsWith('/a') && { key: 'secret' }) })
  const entry = { method: 'GET', ms: 5, traceId: 'x' }
  t.same(entries, [
    { ...entry, route: '/tokens/{id}', operation: 'token get', status: 404, applicationId: all.id },
    { ...entry, route: '-', operation: undefined, status: 404, applicationId: undefined },
    { ...entry, route: '/tokens/{id}', operation: 'token get', status: 401, applicationId: undefined },
    { ...entry, route: '/healthz', operation: undefined, status: 200, applicationId: undefined },
  ])
})

t.test(
  'each application has its own rate limit, and a response with 429 says when to try again',
  async (t) => {
    let now = 0
    const clock = () => now
    const { ask, reader } = await open(t, { clock, rateLimit: createRateLimit(parseRate('2/m'), clock) })
    const get = (key = reader.key) => ask('GET /tokens', { key })
    for (const status of [200, 200]) t.equal((await get()).status, status)
    t.match(await get(), { status: 429, headers: { 'retry-after': '30' } })
    t.equal(
      (await ask('GET /tokens')).status,
      200,
      'the rate limit of one application does not apply to another application',
    )
    now = 29_999
    t.equal((await get()).headers['retry-after'], '1')
    now = 30_000
    for (const status of [200, 429]) t.equal((await get()).status, status)
    for (const text of ['0/s', '1', '1/d', '-1/s', '1.5/s', ''])
      t.throws(() => parseRate(text), { code: 'usage' }, text)
  },
)
