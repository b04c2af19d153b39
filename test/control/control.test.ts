/** The control plane as methods of the library: state, forks, clock and requests. */
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { createControl, openTestVault, type Seed, startServer } from '../../src/index.js'
import { Coffer } from '../../src/library/coffer.js'

const NOW = 'module.exports = async () => ({ raw: [Date.now(), new Date().toISOString(), typeof Date()] })'
const PERMISSIONS = ['token:create', 'token:read', 'token:update', 'token:use'] as const
const SEED: Seed = {
  applications: [
    { name: 'backend', type: 'private', permissions: [...PERMISSIONS] },
    { name: 'short', type: 'private', permissions: ['token:read'], expires_at: '2030-01-02T00:00:00Z' },
    { name: 'ops', type: 'management', permissions: ['report:read', 'log:read'] },
  ],
  tokens: [
    { id: 'card-1', type: 'card', data: { number: '4242424242424242' } },
    { id: 'brief', type: 'token', data: 1, expires_at: '2030-01-03T00:00:00Z' },
  ],
  reactors: [{ name: 'now', code: NOW }],
  invitations: [{ email: 'ada@example.com' }],
}
const START = Date.parse('2030-01-01T00:00:00Z')

const open = () => openTestVault({ seed: SEED, clock: () => START })
const idsOf = async (vault: Coffer) =>
  (await vault.ask('token list', { size: 100 })).data.map(({ id }) => id).sort()
const add = (vault: Coffer, id: string) => vault.ask('token create', { id, type: 'token', data: id })

t.test('reset and snapshots restore the former data, including logs and keys', async (t) => {
  const vault = await open()
  t.teardown(() => vault.stop())
  const { snapshots, reset } = vault.control
  await add(vault, 'one')
  await snapshots.create({ name: 'with one' })
  for (const id of ['one', 'card-1']) await vault.ask('token delete', { id })
  const late = { name: 'late', type: 'private', permissions: ['token:read'] } as const
  const { key } = await vault.ask('app create', late)
  await vault.ask('tenant create', { name: 'late' })
  await snapshots.restore({ name: 'with one' })
  t.same(await idsOf(vault), ['brief', 'card-1', 'one'])
  await t.rejects(vault.ask('token list', {}, { key: key! }), { code: 'unauthenticated' })
  t.match(await vault.ask('tenant list'), { length: 1 })
  await reset()
  t.same(await idsOf(vault), ['brief', 'card-1'])
  t.match(await vault.ask('log verify'), { is_whole: true })
  const read = { message: 'Token retrieved' }
  t.match(await vault.ask('log list'), { data: [read, read] })
  const headers = { 'svc-api-key': vault.keys.backend! }
  t.equal((await vault.fetch('/tokens/card-1', { headers })).status, 200)
  t.same(await snapshots.list(), ['with one'])
  for (let round = 0; round < 30; round++) {
    await add(vault, `round-${round}`)
    await snapshots.create({ name: 'again' })
  }
  t.equal((await idsOf(vault)).length, 32, 'many layers are merged into one')
  await snapshots.delete({ name: 'again' })
  for (const name of ['restore', 'delete'] as const)
    await t.rejects(snapshots[name]({ name: 'again' }), { code: 'not_found' })
})

t.test('work that is still running when the data is replaced does not change the new data', async (t) => {
  const code = `module.exports = async (req) => {
    await new Promise((resolve) => setTimeout(resolve, 1200))
    await req.svc.tokens.create({ type: 'token', data: 'from code' })
    return { tokenize: { type: 'token', data: 'of the answer' } }
  }`
  const reactors = [{ name: 'late', application: 'backend', code }]
  const { applications } = SEED
  const server = await startServer({ seed: { applications: applications!, reactors } })
  t.teardown(() => server.stop())
  const changes: [string, isFork: boolean, (vault: Coffer) => Promise<unknown>][] = [
    ...[false, true].flatMap((isFork): typeof changes => [
      ['reset', isFork, ({ control }) => control.reset()],
      ['restore', isFork, ({ control }) => control.snapshots.restore({ name: 'before' })],
    ]),
    ['deletion', true, (vault) => vault.stop()],
  ]
  for (const [name, isFork, change] of changes) {
    const vault = isFork ? await server.control.fork() : server
    const title = `${name}${isFork ? ' of a fork' : ''}`
    await vault.control.snapshots.create({ name: 'before' })
    await vault.control.faults.set({ rules: [{ method: 'POST', kind: 'delay', delay_ms: 1000 }] })
    const headers = { 'svc-api-key': vault.keys.backend!, 'content-type': 'application/json' }
    const body = JSON.stringify({ id: 'late', type: 'token', data: 1 })
    const held = fetch(`${server.url}/tokens`, { method: 'POST', headers, body })
    const { id } = (await vault.ask('reactor list')).data[0]!
    const asked = vault.ask('reactor react', { id, args: {} })
    asked.catch(() => undefined)
    const { asyncReactorRequestId } = await vault.ask('reactor react-async', { id, args: {} })
    await wait(200)
    await change(vault)
    const late = await held
    t.equal(late.status, 409, title)
    t.match(await late.json(), { detail: /reset, restored or deleted/ }, title)
    if (name === 'deletion') continue
    await t.rejects(asked, { code: 'conflict' }, title)
    await wait(700)
    t.same(await idsOf(vault), [], title)
    t.same((await vault.ask('log list', { entity_type: 'token' })).data, [], `${title}: nothing is logged`)
    t.same(await vault.control.requests.list({ status: 409 }), [], `${title}: the request is not recorded`)
    const result = vault.ask('reactor result', { id, request_id: asyncReactorRequestId })
    await t.rejects(result, { code: 'not_found' }, title)
    t.match(await vault.ask('log verify'), { is_whole: true })
  }
})

t.test('/healthz is answered while a reset waits for a slow client', async (t) => {
  const server = await startServer({ seed: SEED })
  t.teardown(() => server.stop())
  const slow = connect(Number(new URL(server.url).port), 'localhost')
  slow.on('error', () => undefined)
  const head = `Host: localhost\r\nSVC-API-KEY: ${server.keys.backend}\r\nContent-Length: 9\r\n`
  await new Promise((resolve) => slow.write(`POST /tokens HTTP/1.1\r\n${head}\r\n{`, resolve))
  await wait(200)
  let isReset = false
  const reset = server.control.reset().then(() => {
    isReset = true
  })
  await wait(50)
  t.equal((await fetch(`${server.url}/healthz`)).status, 200)
  t.notOk(isReset)
  slow.destroy()
  await reset
})

t.test('if a fork is deleted while the fork checks a key, no request of another fork fails', async (t) => {
  const server = await startServer({ seed: SEED })
  t.teardown(() => server.stop())
  const [gone, own] = [await server.control.fork(), await server.control.fork()]
  const { store } = Coffer.partsOf(server).control!.findFork(gone.tenant.id).app
  const { read } = store
  store.read = async (work) => {
    store.read = read
    await gone.stop()
    return read(work)
  }
  const headers = { 'SVC-API-KEY': own.keys.backend! }
  t.equal((await fetch(`${server.url}/tokens/card-1`, { headers })).status, 200)
  t.equal(store.read, read, 'the fork was deleted meanwhile')
})

t.test('a fork has its own tenant, which begins with the data of the seed', async (t) => {
  const server = await startServer({ seed: SEED, clock: () => START })
  t.teardown(() => server.stop())
  await add(server, 'later')
  const [left, right] = [await server.control.fork(), await server.control.fork()]
  await add(left, 'left')
  t.same(await idsOf(left), ['brief', 'card-1', 'left'])
  t.same(await idsOf(right), ['brief', 'card-1'])
  t.equal(new Set([server, left, right].map(({ tenant }) => tenant.id)).size, 3)
  const get = async (vault: Coffer, path: string) => {
    const headers = { 'svc-api-key': vault.keys.backend! }
    const answer = await fetch(`${server.url}${path}`, { headers })
    return [answer.status, ((await answer.json()) as { tenant_id?: string }).tenant_id]
  }
  for (const path of ['/tokens/left', '/tokens/card-1']) t.same(await get(left, path), [200, left.tenant.id])
  for (const vault of [right, server]) t.same((await get(vault, '/tokens/left'))[0], 404)
  t.same((await get(server, '/tokens/later'))[0], 200)
  await t.rejects(left.ask('token list', {}, { key: server.keys.backend! }), { code: 'unauthenticated' })
  t.match(await left.ask('log verify'), { is_whole: true })
  const logged = (await left.ask('log list', { size: 100 })).data
  t.ok(
    logged.length > 0 && logged.every(({ tenant_id }) => tenant_id === left.tenant.id),
    'the fork has its own log',
  )
  await left.control.clock.advance({ by: '30d' })
  t.same([(await idsOf(left)).includes('brief'), (await idsOf(right)).includes('brief')], [false, true])
  await left.control.reset()
  t.same(await idsOf(left), ['brief', 'card-1'], 'the fork has the data with which it began')
  const url = `${server.url}/_coffer/forks/${left.tenant.id}/requests`
  const headers = { 'svc-api-key': server.control.key! }
  t.equal((await fetch(url, { headers })).status, 200)
  await left.stop()
  t.equal((await fetch(url, { headers })).status, 404)
  t.same((await get(left, '/tokens'))[0], 401, 'the keys of the fork are deleted')
})

t.test('the link of an invitation works only in the vault or fork that created it', async (t) => {
  const vault = await open()
  const server = await startServer({ vault })
  t.teardown(async () => {
    await server.stop()
    await vault.stop()
  })
  const all = [vault, await server.control.fork(), await server.control.fork()]
  const linkIn = async (of: Coffer) => {
    const { data } = (await of.ask('invite outbox', {})) as { data: { link?: string }[] }
    return data[0]!.link!
  }
  const links = await Promise.all(all.map(linkIn))
  t.equal(new Set(links).size, 3, 'each fork has its own links')
  const counts = () => Promise.all(all.map(async (of) => (await of.ask('member list', {})).data.length))
  const [before = 0] = await counts()
  const expected = [before, before, before]
  for (const at of [2, 1, 0]) {
    const html = await (await fetch(links[at]!)).text()
    const read = (pattern: RegExp) => pattern.exec(html)![1]!
    const body = new URLSearchParams({ token: read(/name="token" value="([^"]*)"/), first_name: 'Ada' })
    const action = new URL(read(/<form method="post" action="([^"]*)"/), links[at])
    t.match(await (await fetch(action, { method: 'POST', body })).text(), 'You are a member')
    expected[at]! += 1
    t.same(await counts(), expected)
  }
  t.equal((await fetch(links[1]!)).status, 410)
  t.equal((await fetch(`${server.url}/invitations/accept?token=${'A'.repeat(43)}`)).status, 404)
})

t.test('forks and snapshots share the encrypted rows of the seed instead of copying them', async (t) => {
  const data = 'x'.repeat(20_000)
  const tokens = Array.from({ length: 200 }, (_, at) => ({ id: `token-${at}`, type: 'token' as const, data }))
  const vault = await openTestVault({ seed: { tokens } })
  t.teardown(() => vault.stop())
  const measure = () => process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed
  // Creates a first fork, because the first fork prepares the data that all later forks share.
  await vault.control.fork()
  const before = measure()
  const forks: Coffer[] = []
  for (let count = 0; count < 30; count++) {
    forks.push(await vault.control.fork())
    await vault.control.snapshots.create({ name: `snapshot ${count}` })
  }
  const perFork = (measure() - before) / forks.length
  t.ok(perFork < 1_000_000, `each fork of 4 MB of data takes ${Math.round(perFork / 1024)} KiB`)
  await forks[0]!.ask('token delete', { id: 'token-0' })
  const count = async (fork: Coffer) => (await fork.ask('token list', { size: 1 })).pagination.total_items
  t.same([await count(forks[0]!), await count(forks[1]!), await count(vault)], [199, 200, 200])
})

t.test(
  'a snapshot that is taken while 50 clients write contains the changes of each request completely or not at all',
  async (t) => {
    const vault = await open()
    t.teardown(() => vault.stop())
    const client = vault.as(vault.keys.backend!)
    let isOver = false
    let made = 0
    const clients = Array.from({ length: 50 }, async (_, worker) => {
      for (let round = 0; !isOver; round++) {
        await client.tokens.tokenize({ payload: [`left ${worker}/${round}`, `right ${worker}/${round}`] })
        made++
      }
    })
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const [index, name] of names.entries()) {
      while (made < index * 50) await new Promise((resolve) => setImmediate(resolve))
      await vault.control.snapshots.create({ name })
    }
    isOver = true
    await Promise.all(clients)
    let last = 0
    for (const name of names) {
      await vault.control.snapshots.restore({ name })
      const { total_items } = (await vault.ask('token list', { size: 1 })).pagination
      t.ok(
        total_items % 2 === 0 && total_items >= last,
        `the snapshot has ${total_items} tokens and no half of a request`,
      )
      last = total_items
      t.match(await vault.ask('log verify'), { is_whole: true })
    }
    t.ok(last >= 400, 'the clients wrote meanwhile')
  },
)

t.test('everything that depends on time follows the clock of the control plane', async (t) => {
  const vault = await open()
  t.teardown(() => vault.stop())
  const { clock } = vault.control
  t.match(await clock.get(), { mode: 'real', now: '2030-01-01T00:00:00.000+00:00', offset_ms: 0 })
  const headers = { 'svc-api-key': vault.keys.short! }
  const statusOf = async () => (await vault.fetch('/tokens', { headers })).status
  t.equal(await statusOf(), 200)
  t.match(await clock.advance({ by: '25h' }), { mode: 'offset', now: '2030-01-02T01:00:00.000+00:00' })
  t.equal(await statusOf(), 401, 'the key of an application has expired')
  await clock.advance({ by: '24h' })
  t.same(await idsOf(vault), ['card-1'], 'the token has expired')
  const { data } = await vault.ask('log list', { size: 100, entity_id: 'brief' })
  const purged = { operation: 'delete', actor_type: 'system', created_at: '2030-01-03T01:00:00.000+00:00' }
  t.match(data[0], purged, 'the token was purged before the clock answered')
  await clock.advance({ by: '24h' })
  t.match(await vault.ask('invite list'), { data: [{ status: 'EXPIRED' }] }, 'the invitation has expired')
  await clock.set({ mode: 'frozen', at: '2040-05-06T07:08:09Z' })
  const { created_at } = await vault.ask('token create', { type: 'token', data: 1 })
  t.equal(created_at, '2040-05-06T07:08:09.000+00:00')
  await wait(5)
  t.match(await clock.get(), { mode: 'frozen', now: created_at })
  const [reactor] = (await vault.ask('reactor list')).data
  const run = async () =>
    ((await vault.ask('reactor react', { id: reactor!.id })) as { raw: [number, string, string] }).raw
  const at = '2040-05-06T07:08:09.000Z'
  t.same(await run(), [Date.parse(at), at, 'string'], 'Date in a reactor has the time of the clock')
  await clock.set({ mode: 'offset', at: '2050-01-01T00:00:00Z' })
  t.match((await run())[1], /^2050-01-01T00:00/)
  t.match(await clock.set({ mode: 'real' }), { mode: 'real', offset_ms: 0 })
  await clock.set({ mode: 'frozen', at: '9998-12-31T23:00:00Z' })
  for (const by of ['soon', '1h'])
    await t.rejects(clock.advance({ by }), { code: 'validation', message: /^by: / })
  for (const at of ['soon', '9999-01-01'])
    await t.rejects(clock.set({ mode: 'frozen', at }), { code: 'validation', message: /^at: / })
})

t.test(
  'advancing the clock erases expired card codes, and restoring a state restores its card codes',
  async (t) => {
    let real = START
    const data = { number: '4242424242424242', cvc: '123' }
    const tokens = [{ id: 'seeded', type: 'card' as const, data }]
    const vault = await openTestVault({ seed: { tokens }, clock: () => real })
    t.teardown(() => vault.stop())
    const { clock, snapshots, reset } = vault.control
    const codeOf = async (id: string, of: Coffer = vault) =>
      ((await of.ask('token get', { id }, { reveal: true })).data as { cvc?: string }).cvc
    const sealed = async (id: string) => {
      const { app } = Coffer.partsOf(vault).control!
      return app.store.read(async (reader) => (await reader.get('token', 1, id))?.code)
    }
    t.equal(await codeOf('seeded'), '123')
    await clock.advance({ by: '59m' })
    t.equal(await codeOf('seeded'), '123')
    await vault.ask('token create', { id: 'made', type: 'card', data })
    await snapshots.create({ name: 'minute left' })
    await clock.advance({ by: '1m' })
    t.equal(await codeOf('seeded'), undefined)
    t.equal(await sealed('seeded'), undefined, 'the code was erased before the clock answered')
    t.equal(await codeOf('made'), '123')

    await clock.advance({ by: '100h' })
    await snapshots.restore({ name: 'minute left' })
    t.same([await codeOf('seeded'), await codeOf('made')], ['123', '123'], 'both codes are restored')
    await clock.advance({ by: '59s' })
    t.equal(await codeOf('seeded'), '123')
    await clock.advance({ by: '1s' })
    t.same([await codeOf('seeded'), await codeOf('made')], [undefined, '123'])
    await clock.advance({ by: '59m' })
    t.equal(await codeOf('made'), undefined)
    t.equal(await sealed('made'), undefined, 'the timer of the code was set again')

    real += 10 * 3_600_000
    await reset()
    t.equal(
      await codeOf('seeded'),
      '123',
      'the codes of the seed count as new, however long the server has run',
    )
    await clock.advance({ by: '59m' })
    t.equal(await codeOf('seeded'), '123')
    const fork = await vault.control.fork()
    await clock.advance({ by: '1m' })
    t.same([await codeOf('seeded'), await codeOf('seeded', fork)], [undefined, '123'])
    await fork.control.clock.advance({ by: '1h' })
    t.equal(await codeOf('seeded', fork), undefined)
    await fork.control.reset()
    t.equal(await codeOf('seeded', fork), '123')
  },
)

t.test('the record of a request says if its key was missing, unknown or not examined', async (t) => {
  const vault = await startServer({ seed: SEED })
  t.teardown(() => vault.stop())
  const ask = (headers: Record<string, string>) => vault.fetch('/tokens/none', { headers })
  await ask({})
  await ask({ 'svc-api-key': 'key_1111111111111111111111' })
  await ask({ 'other-api-key': 'key_1111111111111111111111' })
  await vault.control.faults.set({ rules: [{ kind: 'status', status: 503 }] })
  await ask({ 'svc-api-key': vault.keys.backend! })
  await vault.control.faults.clear()
  await ask({ 'svc-api-key': vault.keys.backend! })
  const told = (await vault.control.requests.list()).map(({ key_state, key_header }) => [
    key_state,
    key_header,
  ])
  t.same(told, [
    ['none', undefined],
    ['unknown', 'SVC-API-KEY'],
    ['none', 'OTHER-API-KEY'],
    ['not_examined', 'SVC-API-KEY'],
    [undefined, 'SVC-API-KEY'],
  ])
})

t.test('requests are recorded without their data, and tests can wait for a request', async (t) => {
  const vault = await open()
  t.teardown(() => vault.stop())
  const { requests, faults } = vault.control
  const headers = {
    ...{ 'svc-api-key': vault.keys.backend!, 'content-type': 'application/json', 'svc-trace-id': 'trace-1' },
  }
  const post = (path: string, body: unknown) =>
    vault.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const get = () => vault.fetch('/tokens/one', { headers })
  const data = { id: 'SECRET', 'SECRET name': ['SECRET'], number: 5555 }
  const sent = { id: 'one', type: 'token', data, mask: 'SECRET', metadata: { a: 'SECRET' }, SECRET: 1 }
  await post('/tokens', sent)
  await post('/tokenize', { id: 'SECRET', type: 'SECRET' })
  await post('/tokens?x=SECRET', { type: 'card', data: 'SECRET' })
  await post('/tokens', { type: 'SECRET', containers: ['SECRET'], data: 5555 })
  await get()
  const list = await requests.list()
  t.notMatch(JSON.stringify(list), /SECRET|5555|key_[0-9A-Za-z]{10}/)
  t.match(list[0], {
    ...{ method: 'POST', path: '/tokens', operation: 'token create', status: 201, trace_id: 'trace-1' },
    at: '2030-01-01T00:00:00.000+00:00',
    application_id: /./,
    key_header: 'SVC-API-KEY',
    request: {
      id: 'one',
      type: 'token',
      data: { id: '(6 characters)', number: '(number)', '…': '(1 more)' },
      mask: '(6 characters)',
    },
    answer: { id: 'one', fingerprint: /^\(\d+ characters\)$/ },
  })
  t.match(list[1], {
    operation: 'token tokenize',
    request: { id: '(6 characters)', type: '(6 characters)' },
  })
  const problem = { title: 'Bad Request', errors: { data: [/./] } }
  t.match(list[2], { status: 400, answer: problem }, 'the record shows the problem of the response')
  t.match(await requests.list({ operation: 'token create', status: 201 }), { length: 1 })
  const misspelled = 'operation: is not the name of an operation; did you mean token create?'
  await t.rejects(requests.list({ operation: 'tokens create' }), { message: misspelled })
  const rules = [{ operation: 'token crate', kind: 'drop' as const }]
  await t.rejects(faults.set({ rules }), { message: `rules[0].${misspelled}` })
  const waiting = requests.list({ operation: 'token get', count: 3, timeout: '30s' })
  for (let round = 0; round < 2; round++) await get()
  t.match(await waiting, { length: 3 })
  const started = performance.now()
  const few = await requests.list({ operation: 'token get', count: 9, timeout: '300ms' })
  t.match(few, { length: 3 }, 'after the timeout, the requests so far are returned')
  t.ok(performance.now() - started > 250)
  for (let round = 0; round < 1000; round++) await vault.fetch('/healthz')
  t.match(await requests.list(), { length: 1000 })
  await requests.clear()
  t.same(await requests.list(), [])
  t.match(await vault.control.outbox(), { pagination: { total_items: 1 } })
})

t.test('requests for areas that are not emulated are counted, without the ids in their paths', async (t) => {
  const server = await startServer()
  t.teardown(() => server.stop())
  const { control, keys, url } = server
  t.same(await control.notEmulated(), [])
  const ask = (line: string, headers: Record<string, string> = {}) => {
    const [method = '', path = ''] = line.split(' ')
    return fetch(url + path, { method, headers })
  }
  const id = '0d7f2bb0-52f5-4d6b-9f0d-6a6f7c1e2b3a'
  const lines = [
    `GET /agentic/${id}?a=SECRET`,
    `GET /agentic/${id.replace('0', '1')}/`,
    'DELETE /agentic/SECRET-1',
    `POST /tenants/${id}/merchants/SECRET/services`,
    'POST /connections/a/b/c/d/e/f/g/h/i/j',
    `POST /connections/jobs/${'secret'.repeat(20)}`,
  ]
  for (const line of lines) t.equal((await ask(line, { 'svc-api-key': keys.private })).status, 501, line)
  const preflight = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
  t.equal((await ask('OPTIONS /agentic', preflight)).status, 204)
  for (const line of ['GET /nothing', 'GET /tokens/none', 'PUT /tokens']) await ask(line)
  const counted = await control.notEmulated()
  t.same(
    counted.map(({ method, path, count }) => `${method} ${path} ${count}`),
    [
      'GET /agentic/{} 2',
      'DELETE /agentic/{} 1',
      'POST /tenants/{}/merchants/{}/services 1',
      'POST /connections/a/b/c/d/e/f/… 1',
      'POST /connections/jobs/{} 1',
    ],
  )
  t.match(counted[0], { area: 'Payments by agents' })
  t.notMatch(JSON.stringify(counted), /secret/i)
  const remote = createControl({ url, key: control.key })
  t.same(await remote.notEmulated(), counted, 'over HTTP')
  const fork = await control.fork()
  await ask('GET /agentic', { 'svc-api-key': fork.keys.private! })
  t.match(await fork.control.notEmulated(), [{ path: '/agentic', count: 1 }], 'a fork has its own counts')
  t.match(await control.notEmulated(), { length: counted.length })
  await control.faults.set({ rules: [{ path: '/tokens', kind: 'status', status: 501 }] })
  const answer = await ask('GET /tokens')
  t.match(
    await answer.json(),
    { status: 501, title: 'Not Implemented' },
    'a request that a fault answered is not counted',
  )
  t.match(await control.notEmulated(), { length: counted.length })
  await control.requests.clear()
  t.same(await control.notEmulated(), [])
  await ask('GET /agentic')
  await control.reset()
  t.same(await control.notEmulated(), [])
})

t.test(
  'an application cannot use the control plane, and without a server there is no dashboard',
  async (t) => {
    const vault = await open()
    t.teardown(() => vault.stop())
    const operations = ['control reset', 'control clock get', 'control request list', 'control page'] as const
    for (const operation of operations)
      await t.rejects(vault.ask(operation, {}, { key: vault.keys.ops! }), { code: 'forbidden' })
    await t.rejects(
      vault.control.page(),
      { code: 'not_found', message: /coffer serve/ },
      'there is no page without a server',
    )
  },
)

t.test('the control plane counts how often each caller got the data of a token in plaintext', async (t) => {
  const granted = { priority: 1, container: '/', permissions: ['token:read'], transform: 'reveal' } as const
  const vault = await openTestVault({
    seed: {
      applications: [
        {
          name: 'teller',
          type: 'private',
          rules: [{ description: 'all', ...granted, permissions: ['token:read'] }],
        },
        { name: 'clerk', type: 'private', permissions: ['token:read', 'token:use', 'token:search'] },
      ],
      tokens: [
        { id: 'seen', type: 'card', data: { number: '4242424242424242' } },
        { id: 'unseen', type: 'token', data: 'secret' },
      ],
      reactors: [{ name: 'echo', code: 'module.exports = async () => ({ raw: {} })' }],
    },
  })
  t.teardown(() => vault.stop())
  const reveals = (token: string) => vault.control.reveals({ token })
  const [teller, clerk] = [vault.keys.teller!, vault.keys.clerk!]
  for (const id of ['seen', 'unseen']) await vault.ask('token get', { id }, { key: clerk })
  await vault.ask('token list')
  await vault.ask('token search', { query: 'id:unseen' }, { key: clerk })
  await vault.ask('seed export', { synthesize: true })
  for (const id of ['seen', 'unseen', 'never there'])
    t.same(await reveals(id), { count: 0, seen_by: [], use_count: 0, used_by: [] })
  await vault.ask('token get', { id: 'seen' }, { key: teller })
  await vault.ask('token list', {}, { key: teller })
  const [reactor] = (await vault.ask('reactor list')).data
  await vault.ask('reactor react', { id: reactor!.id, args: { card: '{{ seen }}' } })
  await vault.ask('seed export', {}, { reveal: true })
  await vault.ask('token delete', { id: 'seen' })
  const told = await reveals('seen')
  const list = (actors: typeof told.seen_by) =>
    actors.map(({ actor_type, count }) => `${actor_type} ${count}`)
  t.equal(told.count, 3, 'a use does not count as a reveal')
  t.same(list(told.seen_by), ['user 1', 'application 2'])
  t.equal(told.use_count, 1)
  t.same(list(told.used_by), ['user 1'])
  t.same(await vault.ask('log reveals', { token: 'seen' }), told)
  t.ok(
    (await vault.ask('log reveals')).count > told.count,
    'without a token, the reveals of all tokens are counted',
  )
  await t.rejects(vault.ask('log reveals', { token: 'seen' }, { key: clerk }), { code: 'forbidden' })
})

t.test('if a method gets a wrong argument, its error says which arguments it accepts', async (t) => {
  await using server = await startServer()
  const remote = createControl({ url: server.url, key: server.control.key })
  const rules = { code: 'usage', message: '"control fault set" takes one object: { rules }.' }
  for (const { faults, requests, clock, snapshots, fork, webhooks } of [server.control, remote]) {
    for (const wrong of [[{ kind: 'drop' }], 'drop', null, 1])
      await t.rejects(faults.set(wrong as never), rules, JSON.stringify(wrong))
    await t.rejects(snapshots.list('a' as never), { message: '"control snapshot list" takes nothing.' })
    await t.rejects(fork('worker' as never), { message: '"control fork create" takes one object: { name }.' })
    const number = { message: "timeout: needs a unit, such as '500ms'" }
    await t.rejects(requests.list({ count: 1, timeout: 500 as never }), number)
    await t.rejects(clock.advance({ by: 90 as never }), { message: "by: needs a unit, such as '90ms'" })
    const none = { operation: 'token create', count: 1, timeout: '50ms' }
    t.same(await requests.list(none), [], 'the call does not fail, and returns an empty list')
    t.same(await webhooks({ timeout: '50ms' }), [])
  }
  const get = { code: 'usage', message: '"token get" takes one object: { id }.' }
  await t.rejects(server.as(server.keys.private).tokens.get('card-1' as never), get)
  t.throws(() => server.as(undefined as never), { code: 'usage', message: /^Give an API key/ })
})
