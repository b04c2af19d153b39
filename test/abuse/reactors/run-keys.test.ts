/**
 * Attacks with the key of a run, and with other API keys, on the server that runs the code. The key of a run is
 * accepted only in requests that the same run sends to its own server.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { openTestVault, startServer } from '../../../src/index.js'

const KEY = /key_run_[1-9A-HJ-NP-Za-km-z]{22}/
const WITHHELD = 'key_run_[withheld]'

/**
 * Functions for the code of the tests. `send` sends a request with a key. `read` returns the status and the text of
 * its response.
 */
const TOOLS = `
  const send = (url, key, method, body, more) => fetch(url, { method, headers: { 'svc-api-key': key, 'content-type': 'application/json', ...more }, body: body === undefined ? undefined : JSON.stringify(body), redirect: 'follow' })
  const read = async (response) => [response.status, await response.text()]
  const failed = ({ message }) => message`

type Json = Record<string, unknown>
type Runtime = { image?: 'node-bt' | 'node22' | 'node24'; permissions?: string[] }

/** A server, and a stub that holds each request until the test answers it. */
async function open(t: Test, options: { ownHosts?: string[]; allowNet?: string[]; port?: number } = {}) {
  const held: { path: string; answer: ServerResponse }[] = []
  const wakes: (() => void)[] = []
  const stub = createServer((request, answer) => {
    held.push({ path: request.url ?? '', answer })
    for (const wake of wakes.splice(0)) wake()
  })
  await new Promise<void>((resolve) => stub.listen(0, '127.0.0.1', resolve))
  const stubHost = `127.0.0.1:${(stub.address() as AddressInfo).port}`
  const { allowNet = [], ...rest } = options
  const server = await startServer({ ...rest, allowNet: [stubHost, ...allowNet] })
  t.teardown(async () => {
    stub.close()
    stub.closeAllConnections()
    await server.stop()
  })
  const headers = { 'svc-api-key': server.keys.private, 'content-type': 'application/json' }
  /** Creates a reactor whose function has the body `body`. */
  const create = async (body: string, runtime: Runtime = {}, more: Json = {}): Promise<string> => {
    const code = `module.exports = async ({ args, configuration, applicationOptions: { apiKey, baseUrl } }) => { ${TOOLS}
      const call = (method, path, body, more) => send(baseUrl + path, apiKey, method, body, more).then(read, failed)
      ${body} }`
    const whole = { name: 'r', code, runtime: { image: 'node22', ...runtime }, ...more }
    return (await server.ask('reactor create', whole)).id
  }
  const request = async (path: string, method = 'GET', body?: unknown, more: Record<string, string> = {}) => {
    const init = { method, headers: { ...headers, ...more } }
    const answer = await fetch(
      `${server.url}${path}`,
      body === undefined ? init : { ...init, body: JSON.stringify(body) },
    )
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, text, json: () => JSON.parse(text) }
  }
  const react = (id: string, args: Json = {}, more: Record<string, string> = {}) =>
    request(`/reactors/${id}/react`, 'POST', { args }, more)
  return {
    server,
    create,
    request,
    react,
    stub: `http://${stubHost}`,
    /** Creates a reactor, runs it, and returns the value `raw` of its result. */
    run: async (body: string, runtime?: Runtime, args?: Json) =>
      (await react(await create(body, runtime), args)).json().raw,
    /** Resolves when the code has sent a request to the stub. */
    nextHeld: async () => {
      while (held.length === 0) await new Promise<void>((resolve) => wakes.push(resolve))
      return held.shift()!
    },
  }
}

t.test('the key of a run is refused after the run, and no stored record contains the key', async (t) => {
  const { server, create, react, request } = await open(t)
  const id = await create(
    'console.log("key", apiKey, { apiKey }); if (args.fails) throw new Error(apiKey); await call("GET", "/tokens/" + apiKey); return { raw: apiKey }',
    { permissions: ['token:create', 'token:read'] },
  )
  const idempotent = { 'svc-idempotency-key': 'once' }
  const { raw: key } = (await react(id, {}, idempotent)).json()
  t.match(key, KEY)
  const refused = await request('/tokens', 'POST', { type: 'token', data: 1 }, { 'svc-api-key': key })
  t.equal(refused.status, 401, 'over a socket')
  const headers = { 'svc-api-key': key }
  t.equal((await server.fetch('/tokens', { headers })).status, 401, 'without a socket')
  const again = await open(t)
  t.equal((await again.request('/tokens', 'GET', undefined, headers)).status, 401, 'at another server')

  const replayed = await react(id, {}, idempotent)
  t.equal(replayed.headers.get('svc-idempotent-replayed'), 'true')
  t.same(replayed.json(), { raw: WITHHELD }, 'the stored answer has no key')

  const failure = await react(id, { fails: true })
  t.equal(failure.status, 502)
  t.same(failure.json().errors, { error: [WITHHELD] })

  const { asyncReactorRequestId: run } = (
    await request(`/reactors/${id}/react-async`, 'POST', { args: {} })
  ).json()
  let result = await request(`/reactors/${id}/results/${run}`)
  while (result.status === 404) result = await request(`/reactors/${id}/results/${run}`)
  t.same(result.json(), { raw: WITHHELD }, 'the stored result has no key')

  const runs = await server.ask('reactor logs', { id })
  t.equal(runs.length, 3)
  for (const { console } of runs)
    t.match(console[0], { text: /^key key_run_\[withheld\].*key_run_\[withheld\]/ })
  const kept = [
    runs,
    await server.ask('reactor scrubbed-logs', { id }),
    await server.ask('app list'),
    await server.ask('log list'),
    await server.ask('reactor list'),
    await server.control.requests.list({}),
  ]
  t.notMatch(JSON.stringify(kept), KEY)
  t.match(JSON.stringify(kept.at(-1)), `/tokens/${WITHHELD}`, 'the requests include that of the code')
})

t.test('only the code of a run can use the key of the run', async (t) => {
  const { server, create, react, request, stub, nextHeld, run } = await open(t)
  const second = await open(t)
  const token = await server.ask('token create', { type: 'token', data: 'x' })
  const permissions = ['token:create', 'token:read']
  const id = await create(
    `await fetch('${stub}/' + apiKey); return { raw: await call('POST', '/tokens', { type: 'token', data: 1 }) }`,
    { permissions },
  )
  const running = react(id)
  const { path, answer } = await nextHeld()
  const key = path.slice(1)
  t.match(key, KEY)
  const headers = { 'svc-api-key': key }
  t.equal((await request(`/tokens/${token.id}`, 'GET', undefined, headers)).status, 401, 'over a socket')
  t.equal((await server.fetch(`/tokens/${token.id}`, { headers })).status, 401, 'without a socket')
  t.equal((await second.request('/tokens', 'GET', undefined, headers)).status, 401, 'another process')
  const inOther = 'return { raw: await send(baseUrl + "/tokens", args.key, "GET").then(read, failed) }'
  t.match(await run(inOther, { permissions }, { key }), /not on the list of --allow-net/, 'another run')
  answer.end()
  t.equal((await running).json().raw[0], 201, 'its own run')
})

t.test('a request that the code has not awaited is refused after the run', async (t) => {
  const { server, create, react } = await open(t)
  const id = await create(
    'call("POST", "/tokens", { type: "token", data: "late" }); await call("GET", "/healthz"); return {}',
    { permissions: ['token:create'] },
  )
  // The fault holds the request until the run has ended.
  await server.control.faults.set({ rules: [{ operation: 'token create', kind: 'delay', delay_ms: 1_000 }] })
  t.equal((await react(id)).status, 200)
  const [late] = await server.control.requests.list({ operation: 'token create', count: 1, timeout: '20s' })
  t.match(late, { status: 401, fault: 'delay' })
  t.equal((await server.ask('token list')).data.length, 0)
})

t.test('the key of a run loses rights that are removed during the run', async (t) => {
  const { server, create, react, stub, nextHeld } = await open(t)
  const rights = { name: 'bound', type: 'private', permissions: ['token:create'] }
  const { id: application } = await server.ask('app create', rights)
  const post = "await call('POST', '/tokens', { type: 'token', data: 1 })"
  const id = await create(
    `const first = ${post}; await fetch('${stub}/wait'); return { raw: [first[0], (${post})[0]] }`,
    { image: 'node-bt' },
    { application: { id: application } },
  )
  const running = react(id)
  const { answer } = await nextHeld()
  await server.ask('app delete', { id: application })
  answer.end()
  t.same((await running).json().raw, [201, 401])
})

t.test('code cannot reach the server by another spelling of its address or by a redirect', async (t) => {
  const { server, run, stub, nextHeld, create, react } = await open(t, {
    ownHosts: ['api.example.test'],
    allowNet: ['api.example.test', 'localhost'],
  })
  const { port } = server
  const permissions = ['token:create', 'token:use']
  const cases: [url: string, outcome: number | RegExp][] = [
    [`http://LOCALHOST:${port}`, 201],
    [`http://user:word@localhost:${port}`, 201],
    ['https://API.example.test', 201],
    ['https://api.example.test:443', 201],
    [`http://localhost:${port}@evil.example`, /host evil\.example is not on the list/],
    [`http://localhost.:${port}`, /it is this server itself|cannot be resolved/],
    [`http://127.0.0.1:${port}`, /not on the list/],
    [`https://localhost:${port}`, /it is this server itself/],
    [`http://localhost.evil.example:${port}`, /not on the list/],
    ['http://api.example.test', /cannot be resolved|no answer|has no address|private address/],
    ['https://api.example.test:8443', /cannot be resolved|no answer|has no address|private address/],
    ['https://api.example.test.evil.example', /not on the list/],
  ]
  const body = `const raw = []
    for (const url of args.urls) raw.push(await send(url + '/tokens', args.key ?? apiKey, 'POST', { type: 'token', data: 1 }).then(({ status }) => status, failed))
    return { raw }`
  const outcomes = await run(body, { permissions }, { urls: cases.map(([url]) => url) })
  for (const [index, [url, outcome]] of cases.entries())
    if (typeof outcome === 'number') t.equal(outcomes[index], outcome, url)
    else t.match(outcomes[index], outcome, url)
  const key = server.keys.private
  const urls = [server.url, 'https://api.example.test']
  t.same(
    await run(body, { permissions }, { urls, key }),
    [201, 201],
    'code can use another key on allowed hosts',
  )
  const spelled = cases.filter(([, outcome]) => typeof outcome !== 'number')
  const refused = await run(body, { permissions }, { urls: spelled.map(([url]) => url), key })
  for (const [index, [url, outcome]] of spelled.entries())
    t.match(refused[index], outcome, `${url} with another key`)

  const redirected = create(
    `return { raw: await send('${stub}/elsewhere', args.key ?? apiKey, 'POST', { type: 'token', data: 1 }).then(read, failed) }`,
    { permissions },
  )
  for (const location of [`${server.url}/tokens`, 'https://api.example.test/tokens'])
    for (const args of [{}, { key }]) {
      const running = react(await redirected, args)
      const { answer } = await nextHeld()
      answer.writeHead(307, { location }).end()
      t.match((await running).json().raw, /it is this server itself|this name means this server/, location)
    }

  // The destination of a proxy answers with a redirect to the API of the server.
  const proxied = create(
    `return { raw: await send(baseUrl + '/proxy/x', apiKey, 'POST', {}, { 'svc-proxy-url': '${stub}' }).then((r) => [r.status, r.headers.get('location'), r.redirected]) }`,
    { permissions },
  )
  // Without a stored proxy, POST /proxy needs the key of a private application.
  const running = react(await proxied)
  const { answer } = await nextHeld()
  answer.writeHead(307, { location: `${server.url}/tokens` }).end()
  t.same((await running).json().raw, [307, `${server.url}/tokens`, false])
})

t.test('the key of a run reaches neither the control plane nor the dashboard', async (t) => {
  const { server, run } = await open(t)
  const paths = ['/_coffer/requests', '/_coffer/reset', '/_dashboard/session', '/_dashboard/ask']
  const body =
    'const raw = []; for (const path of args.paths) for (const method of ["GET", "POST"]) raw.push((await call(method, path, method === "POST" ? {} : undefined))[0]); return { raw }'
  const raw = await run(body, { permissions: ['token:create'] }, { paths })
  t.same(raw, Array(2 * paths.length).fill(404))
  const withControlKey =
    'return { raw: await send(baseUrl + "/_coffer/requests", args.key, "GET").then(read, failed) }'
  const given = { key: server.control.key }
  t.match(await run(withControlKey, { permissions: ['token:create'] }, given), /not on the list/)
})

t.test(
  'a request with the key of a run acts in the tenant of the caller and has the trace id of the run',
  async (t) => {
    const { server, run, create, react } = await open(t)
    await server.ask('tenant create', { name: 'other' })
    const foreign = await server.ask('token create', { type: 'token', data: 'x' }, { tenant: 'other' })
    const read = 'return { raw: (await call("GET", "/tokens/" + args.id))[0] }'
    t.equal(await run(read, { permissions: ['token:read'] }, { id: foreign.id }), 404)
    const traced = await create(
      `const r = await send(baseUrl + '/tokens', apiKey, 'GET', undefined, { 'svc-trace-id': 'forged' }); return { raw: r.headers.get('svc-trace-id') }`,
      { permissions: ['token:read'] },
    )
    const answer = await react(traced, {}, { 'svc-trace-id': 'the-run' })
    t.same(answer.json(), { raw: 'the-run' })
  },
)

t.test('a caller in no-reveal mode gets no data through requests with the key of the run', async (t) => {
  const { server, create, react } = await open(t)
  const data = 'PLAINTEXT-OF-A-TOKEN'
  const { id: token } = await server.ask('token create', { type: 'token', data })
  const rules = [
    { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read', 'token:use'] },
  ]
  const app = await server.ask('app create', { name: 'bound', type: 'private', rules })
  const id = await create(
    `const got = [await call('GET', '/tokens/' + args.id), await call('POST', '/detokenize', '{{ ' + args.id + ' }}'), await call('POST', '/proxy', {}, { 'svc-proxy-url': baseUrl })]; console.log(got[0][1]); return { raw: got.map(([status, text]) => [status, text.split('').reverse().join('')]) }`,
    { image: 'node-bt' },
    { application: { id: app.id } },
  )
  const reversed = [...data].reverse().join('')
  t.match((await react(id, { id: token })).text, reversed, 'without this mode, the code reads the data')
  const hidden = await react(id, { id: token }, { 'svc-no-reveal': 'true' })
  t.equal(hidden.status, 200)
  t.notMatch(hidden.text, reversed)
  const [run] = await server.ask('reactor logs', { id })
  t.match(run!.console[0]!.text, data, 'the owner sees what the code printed')
  t.notMatch(
    JSON.stringify(await server.ask('reactor scrubbed-logs', { id })),
    data,
    'the dashboard does not',
  )
})

t.test(
  'the dashboard does not show data that reactor code got from the destination of a proxy',
  async (t) => {
    const { server, create, react, stub, nextHeld } = await open(t)
    const id = await create(
      `const [, text] = await call('POST', '/proxy', {}, { 'svc-proxy-url': '${stub}' }); console.log(text); return {}`,
      { image: 'node-bt' },
      { application: { id: (await server.ask('app whoami', {}, { key: server.keys.private })).id } },
    )
    const running = react(id)
    const { answer } = await nextHeld()
    const data = 'DATA-OF-THE-DESTINATION'
    answer
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ id: 'x1', number: data }))
    t.equal((await running).status, 200)
    t.match((await server.ask('reactor logs', { id }))[0], { console: [{ text: new RegExp(data) }] })
    t.notMatch(JSON.stringify(await server.ask('reactor scrubbed-logs', { id })), data)
  },
)

t.test(
  'code with the idempotency key of its caller does not get the stored answer of the caller',
  async (t) => {
    const { server, create, react, request } = await open(t)
    const key = { 'svc-idempotency-key': 'shared' }
    const own = await request('/tokens', 'POST', { type: 'token', data: 'of the caller' }, key)
    t.equal(own.status, 201)
    const post = `await call('POST', '/tokens', { type: 'token', data: 'of the code' }, { 'svc-idempotency-key': 'shared' })`
    const id = await create(`const [, text] = ${post}; return { raw: JSON.parse(text).id }`, {
      permissions: ['token:create'],
    })
    const outer = { 'svc-idempotency-key': 'outer' }
    const first = (await react(id)).json().raw
    t.not(first, own.json().id)
    t.equal((await react(id)).json().raw, first, 'a second run gets the stored answer of the first')
    t.equal((await react(id, {}, outer)).json().raw, first)
    t.equal((await react(id, {}, outer)).headers.get('svc-idempotent-replayed'), 'true')
    await server.ask('token delete', { id: first })
    const after = await react(id, {}, outer)
    t.equal(after.headers.get('svc-idempotent-replayed'), null, 'the answer was deleted with the token')
    t.not(after.json().raw, first)
  },
)

t.test('the limits of a run apply to its requests', async (t) => {
  const { server, create, react, run } = await open(t)
  const id = await create('for (;;) await call("GET", "/healthz")', { permissions: ['token:read'] })
  t.match((await react(id)).json(), { errors: { error: [/more than 1000 calls/] } })
  const rules = [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }]
  const app = await server.ask('app create', { name: 'reader', type: 'private', rules })
  for (let count = 0; count < 6; count++)
    await server.ask('token create', {
      type: 'token',
      data: `${count}`.repeat(900_000),
      deduplicate_token: false,
    })
  const list = await create(
    'return { raw: await call("GET", "/tokens?size=10") }',
    { image: 'node-bt' },
    { application: { id: app.id } },
  )
  t.match((await react(list)).json().raw, [400, /smaller size; this page exceeds the limit of 4 MiB/])
  const large = `return { raw: await call('POST', '/tokens', { type: 'token', data: 'x'.repeat(1100000) }) }`
  t.match(JSON.stringify(await run(large, { permissions: ['token:create'] })), /too large|limited to/)
})

t.test('the key of a run works in a fork, and a reset waits for the run', async (t) => {
  const { server, create, react, stub, nextHeld } = await open(t)
  const fork = await server.control.fork()
  const post = "await call('POST', '/tokens', { type: 'token', data: 1 })"
  const code = `module.exports = async ({ applicationOptions: { apiKey, baseUrl } }) => { ${TOOLS}
    const call = (method, path, body) => send(baseUrl + path, apiKey, method, body).then(read, failed)
    return { raw: (${post})[0] } }`
  const runtime = { image: 'node22', permissions: ['token:create'] }
  const { id: inFork } = await fork.ask('reactor create', { name: 'r', code, runtime })
  const headers = { 'svc-api-key': fork.keys.private, 'content-type': 'application/json' }
  const reacted = await fetch(`${server.url}/reactors/${inFork}/react`, {
    method: 'POST',
    headers,
    body: '{"args":{}}',
  })
  t.same(await reacted.json(), { raw: 201 })
  t.equal((await fork.ask('token list')).data.length, 1)
  t.equal((await server.ask('token list')).data.length, 0)

  const id = await create(`await fetch('${stub}/wait'); return { raw: (${post})[0] }`, {
    permissions: ['token:create'],
  })
  const running = react(id)
  const { answer } = await nextHeld()
  const resetting = server.control.reset()
  answer.end()
  t.same((await running).json(), { raw: 201 }, 'the request of the code does not wait for the reset')
  await resetting
  t.equal((await server.ask('token list')).data.length, 0)
})

t.test(
  'code gets the address of the server, whatever the caller writes into the header Host of its request',
  async (t) => {
    const { server, create } = await open(t)
    const id = await create('return { raw: baseUrl }')
    const { port, url } = server
    const addressFor = async (host: string) => {
      const headers = { host, 'svc-api-key': server.keys.private, 'content-type': 'application/json' }
      const answer = await server.fetch(`/reactors/${id}/react`, {
        method: 'POST',
        headers,
        body: '{"args":{}}',
      })
      return ((await answer.json()) as Json).raw
    }
    t.equal(await addressFor(`127.0.0.1:${port}`), `http://127.0.0.1:${port}`)
    t.equal(await addressFor(`LOCALHOST:${port}`), url)
    for (const host of [
      'localhost:1',
      '10.0.0.1:80',
      `evil.example:${port}`,
      `user@localhost:${port}`,
      `localhost:${port}/x`,
      '',
    ])
      t.equal(await addressFor(host), url, host)
    await t.rejects(startServer({ ownHosts: ['evil.example/path'] }), { code: 'usage', message: /own host/ })
  },
)

/** The body of code that sends a request with the key `args.key`. */
const WITH_OTHER =
  'return { raw: await send(baseUrl + args.path, args.key, args.method, args.body, args.more).then(read, failed) }'
const OTHERS = { allowNet: ['localhost'] }

t.test(
  'code can use a key of an application only if --allow-net lists the server, and the request has only the rights of that key',
  async (t) => {
    const closed = await open(t)
    const request = { path: '/tokens', method: 'POST', body: { type: 'token', data: 1 } }
    const { private: key } = closed.server.keys
    t.match(await closed.run(WITH_OTHER, {}, { ...request, key }), /--allow-net localhost/)
    t.equal((await closed.server.ask('token list')).data.length, 0)

    const { server, run } = await open(t, OTHERS)
    const { keys } = server
    const [status, text] = await run(WITH_OTHER, {}, { ...request, key: keys.private })
    t.equal(status, 201)
    const { id, created_by } = JSON.parse(text)
    const creator = await server.ask('app whoami', {}, { key: keys.private })
    t.equal(created_by, creator.id, 'the application of the key is the actor')
    const get = { path: `/tokens/${id}`, method: 'GET' }
    t.equal((await run(WITH_OTHER, {}, { ...get, key: keys.private }))[0], 200)
    const rights = { permissions: ['token:create', 'token:read'] }
    t.equal((await run(WITH_OTHER, rights, { ...get, key: keys.public }))[0], 403, 'no rights of the run')
    t.equal((await run(WITH_OTHER, rights, { ...get, key: 'key_unknown' }))[0], 401)
    const bare = `return { raw: (await fetch(baseUrl + '/tokens/${id}')).status }`
    t.equal(await run(bare, rights), 401, 'without a key')
  },
)

t.test('a run cannot start another run, even with the key of an application', async (t) => {
  const { server, create, react } = await open(t, OTHERS)
  const id = await create(WITH_OTHER)
  const code = 'module.exports = async () => ({ body: {} })'
  const proxy = await server.ask('proxy create', {
    name: 'p',
    destination_url: 'http://localhost:1',
    request_transforms: [{ type: 'code', code }],
  })
  const key = server.keys.private
  const calls: [path: string, body: Json, more?: Record<string, string>][] = [
    [`/reactors/${id}/react`, { args: { path: '/healthz', method: 'GET' } }],
    [`/reactors/${id}/react`, { args: {}, callback_url: `${server.url}/tokens` }],
    [`/reactors/${id}/react-async`, { args: {} }],
    ['/proxy', {}, { 'svc-proxy-key': proxy.key }],
  ]
  for (const [path, body, more = {}] of calls)
    t.equal((await react(id, { key, path, method: 'POST', body, more })).json().raw[0], 403, path)
  t.equal((await server.ask('reactor logs', { id })).length, calls.length, 'no other run began')
})

t.test(
  'even with the key of an application or of the control plane, code reaches neither the control plane nor the dashboard',
  async (t) => {
    const { server, run } = await open(t, OTHERS)
    const { key } = server.control
    for (const path of ['/_coffer/requests', '/_coffer/reset', '/_dashboard/session', '/_dashboard/ask'])
      for (const method of ['GET', 'POST']) {
        const body = method === 'POST' ? {} : undefined
        t.equal((await run(WITH_OTHER, {}, { key, path, method, body }))[0], 404, `${method} ${path}`)
      }
  },
)

t.test(
  'a request of reactor code with the key of an application acts in the tenant of that application',
  async (t) => {
    const { server, create, react } = await open(t, OTHERS)
    await server.ask('tenant create', { name: 'other' })
    const as = { tenant: 'other' }
    const rules = [
      { priority: 1, container: '/', transform: 'reveal', permissions: ['token:create', 'token:read'] },
    ]
    const app = await server.ask('app create', { name: 'a', type: 'private', rules } as never, as)
    const own = await server.ask('token create', { type: 'token', data: 'own' })
    const foreign = await server.ask('token create', { type: 'token', data: 'foreign' }, as)
    const id = await create(WITH_OTHER)
    const get = async (token: string) =>
      (await react(id, { key: app.key, path: `/tokens/${token}`, method: 'GET' })).json().raw[0]
    t.equal(await get(own.id), 404)
    t.equal(await get(foreign.id), 200)

    // The answer that is stored for the caller must not refer to records of the other tenant.
    const call = () =>
      react(
        id,
        { key: app.key, path: '/tokens', method: 'POST', body: { type: 'token', data: 1 } },
        { 'svc-idempotency-key': 'once' },
      )
    const first = await call()
    t.equal(first.json().raw[0], 201)
    t.equal((await call()).text, first.text)
  },
)

t.test(
  'a request of reactor code with the key of an application is refused after the run has ended',
  async (t) => {
    const { server, create, react } = await open(t, OTHERS)
    const id = await create(
      'send(baseUrl + "/tokens", args.key, "POST", { type: "token", data: "late" }).catch(failed); await send(baseUrl + "/healthz", args.key, "GET"); return {}',
    )
    // The fault holds the request until the run has ended.
    await server.control.faults.set({
      rules: [{ operation: 'token create', kind: 'delay', delay_ms: 1_000 }],
    })
    t.equal((await react(id, { key: server.keys.private })).status, 200)
    const [late] = await server.control.requests.list({ operation: 'token create', count: 1, timeout: '20s' })
    t.match(late, { status: 401, fault: 'delay' })
    t.equal((await server.ask('token list')).data.length, 0)
  },
)

t.test(
  'a caller in no-reveal mode gets no data if reactor code sends requests with the key of an application',
  async (t) => {
    const { server, create, react } = await open(t, OTHERS)
    const data = 'PLAINTEXT-OF-A-TOKEN'
    const token = await server.ask('token create', { type: 'token', data })
    const rules = [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }]
    const { key } = await server.ask('app create', { name: 'reader', type: 'private', rules } as never)
    const id = await create(
      'const [, text] = await send(baseUrl + args.path, args.key, "GET").then(read); return { raw: [...text].reverse().join("") }',
    )
    const args = { key, path: `/tokens/${token.id}` }
    const reversed = [...data].reverse().join('')
    t.match((await react(id, args)).text, reversed)
    const hidden = await react(id, args, { 'svc-no-reveal': 'true' })
    t.equal(hidden.status, 200)
    t.notMatch(hidden.text, reversed)
  },
)

t.test('without a server, code can send requests with the key of an application', async (t) => {
  await using vault = await openTestVault({ allowNet: ['localhost'] })
  const code = `module.exports = async ({ args, applicationOptions: { baseUrl } }) => {
    const answer = await fetch(baseUrl + '/tokens', { method: 'POST', headers: { 'svc-api-key': args.key, 'content-type': 'application/json' }, body: '{"type":"token","data":1}' })
    return { raw: answer.status } }`
  const { id } = await vault.ask('reactor create', { name: 'r', code })
  t.same(await vault.ask('reactor react', { id, args: { key: vault.keys.private } }), { raw: 201 })
})
