/** The dashboard at `/`: signing in, the rights of its session, and the records of what the session does. */
import t, { type Test } from 'tap'
import { createVaultAnswerer } from '../../src/control/answerer.js'
import { ControlState, openControlled } from '../../src/control/control-state.js'
import { Dashboard } from '../../src/control/dashboard.js'
import { redactBody } from '../../src/control/requests.js'
import type { OperationInput } from '../../src/framework/context.js'
import { toHandler } from '../../src/http/handler.js'
import type { OperationName, ResultOf } from '../../src/operations/all.js'
import { openEphemeral } from '../../src/vault/open.js'
import { seedVault } from '../../src/vault/sample-applications.js'

const ORIGIN = 'http://localhost:4999'
const rule = (container: string, description: string, more = {}) => {
  const granted = { priority: 1, transform: 'reveal', permissions: ['token:read'] }
  return { ...granted, container, description, ...more }
}
const SEED = {
  applications: [
    {
      name: 'support',
      type: 'private',
      rules: [
        rule('/pci/', 'no cards', { transform: 'mask' }),
        rule('/pii/', 'people', { priority: 2, permissions: ['token:search'] }),
      ],
    },
  ],
  tokens: [
    { id: 'card-1', type: 'card', data: { number: '4242424242424242' } },
    { id: 'name-1', type: 'token', data: 'Ada', containers: ['/pii/'] },
  ],
}

/** Opens a vault without a control plane. */
async function openPlain() {
  const { app } = await openEphemeral({ tenantName: 'test' })
  return { control: new ControlState(app), applications: await seedVault(app, SEED) }
}

/** If `isPlain` is true, the function opens the service of a vault on disk, without a control plane. */
async function open(t: Test, isPlain = false) {
  const opened = isPlain ? await openPlain() : await openControlled({ tenantName: 'test' }, SEED)
  t.teardown(() => opened.control.close())
  const { control } = opened
  let now = 0
  const dashboard = new Dashboard(control, { prefix: 'svc', isSecure: false, clock: () => now })
  const key = isPlain ? undefined : 'ctl_test'
  const handle = toHandler(createVaultAnswerer({}, { control, key, dashboard, prefix: 'svc' }))
  let secrets: Record<string, string> = {}
  const send = async (path: string, body?: unknown, more: Record<string, string> = {}) => {
    const headers = { ...secrets, 'content-type': 'application/json', ...more }
    const init = body === undefined ? { headers } : { method: 'POST', body: JSON.stringify(body), headers }
    const answer = await handle(new Request(`${ORIGIN}${path}`, init))
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, json: text && JSON.parse(text) }
  }
  const draw = () => dashboard.listenAt(ORIGIN).split('#login=')[1]!
  const signIn = async () => {
    const answer = await send('/_dashboard/session', { login: draw() })
    const cookie = answer.headers.get('set-cookie')!.split(';')[0]!
    secrets = { cookie, 'coffer-page-secret': answer.json.page_secret }
    return answer
  }
  /** After a call of this function, requests send only the given cookies. */
  const present = (given: Record<string, string>) => {
    secrets = given
  }
  /** Sends a request to the path from which the page gets its data. */
  const asks = (body: object) => send('/_dashboard/ask', body)
  const ask = (operation: string, input = {}) => asks({ operation, input })
  /** Performs an operation as the owner of the vault. */
  const own = async <N extends OperationName>(operation: N, input: object = {}) =>
    (await control.app.ask({ operation, input: input as OperationInput, as: { reveal: false } }))
      .result as ResultOf<N>
  const api = (path: string, apiKey = opened.applications.support!.key) =>
    handle(new Request(`${ORIGIN}${path}`, { headers: { 'svc-api-key': apiKey } }))
  const advance = (ms: number) => {
    now += ms
  }
  return { control, send, asks, ask, own, api, draw, signIn, present, advance }
}

t.test('the key of the control plane is compared in constant time', async (t) => {
  const { control, api } = await open(t)
  const { isEqualSecret } = control.app
  const compared: boolean[] = []
  control.app.isEqualSecret = (a, b) => {
    compared.push(isEqualSecret(a, b))
    return compared.at(-1)!
  }
  t.equal((await api('/_coffer/clock', 'ctl_test')).status, 200)
  t.equal((await api('/_coffer/clock', 'ctl_tesu')).status, 401)
  t.same(compared, [true, false])
})

t.test('a sign-in link works once, within two minutes', async (t) => {
  const { send, draw, signIn, advance } = await open(t)
  t.match(await send('/_dashboard/session'), { status: 200, json: { is_signed_in: false } })
  const answer = await signIn()
  t.equal(answer.status, 200)
  t.match(answer.json, { page_secret: /^[\w-]{43}$/ })
  t.match(
    answer.headers.get('set-cookie'),
    /^coffer_page_[\w-]{8}=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/_dashboard$/,
  )
  t.equal(answer.headers.get('access-control-allow-origin'), null)
  t.match(await send('/_dashboard/session'), {
    json: {
      is_signed_in: true,
      header: 'SVC-API-KEY',
      tenants: [{ name: 'test' }],
      controls: { state: true },
    },
  })
  const login = draw()
  t.equal((await send('/_dashboard/session', { login })).status, 200)
  t.match(await send('/_dashboard/session', { login }), { status: 403, json: { detail: /used before/ } })
  const late = draw()
  advance(2 * 60_000 + 1)
  for (const wrong of [late, 'x', '', 1, undefined])
    t.equal((await send('/_dashboard/session', { login: wrong })).status, 403)
  advance(12 * 60 * 60_000)
  t.match(
    await send('/_dashboard/session'),
    { json: { is_signed_in: false } },
    'the session ends after some hours',
  )
})

t.test('the cookie of the dashboard is useless without the secret of the page', async (t) => {
  const { send, asks, ask, signIn, present } = await open(t)
  const both = async () => {
    const { headers, json } = await signIn()
    return { cookie: headers.get('set-cookie')!.split(';')[0]!, 'coffer-page-secret': json.page_secret }
  }
  const first = await both()
  const second = await both()
  const [{ cookie }, { 'coffer-page-secret': secret }] = [first, second]
  const paths = (given: Record<string, string>) => {
    present(given)
    const request = { method: 'GET', target: '/tokens', application: 'x' }
    return Promise.all([
      ask('token list'),
      ask('control reset'),
      asks({ after: 0 }),
      asks({ access: { permission: 'token:read', target: '/' } }),
      asks({ request }),
    ])
  }
  for (const [name, given] of Object.entries({
    'the cookie alone': { cookie },
    'with an empty secret': { cookie, 'coffer-page-secret': '' },
    'with the secret of another session': { cookie, 'coffer-page-secret': secret },
    'with itself': { cookie, 'coffer-page-secret': cookie.split('=')[1]! },
    'the secret alone': { 'coffer-page-secret': secret },
  }))
    for (const { status, json } of await paths(given)) {
      t.equal(status, 401, name)
      t.match(json, { detail: /signed out/ })
    }
  present({ cookie })
  t.match(
    await send('/_dashboard/session'),
    { status: 401 },
    'the response does not even contain the version of the program',
  )
  present({ cookie, 'coffer-page-secret': secret })
  t.match(await send('/_dashboard/session'), { json: { is_signed_in: false } })
  for (const given of [first, second]) {
    present(given)
    t.equal((await ask('token list')).status, 200, 'cookie and secret together are accepted')
    t.match(await send('/_dashboard/session'), { json: { is_signed_in: true } })
  }
})

t.test(
  'a session of the dashboard can be used only from this machine, and only by the page of the dashboard',
  async (t) => {
    const { send, draw, signIn, ask } = await open(t)
    t.match(await ask('token list'), { status: 401 }, 'a request without a session is refused')
    await signIn()
    const body = { operation: 'token list' }
    for (const [headers, status] of [
      [{ origin: 'https://evil.example' }, 403],
      [{ 'sec-fetch-site': 'same-site' }, 403],
      [{ 'sec-fetch-site': 'cross-site' }, 403],
      [{ host: 'coffer.example:4999' }, 404],
      [{ 'x-forwarded-for': '192.0.2.1' }, 404],
      [{ forwarded: 'for=192.0.2.1' }, 404],
      [{ 'content-type': 'text/plain' }, 415],
      [{ host: 'localhost:4999', origin: ORIGIN, 'sec-fetch-site': 'same-origin' }, 200],
    ] as const) {
      t.equal((await send('/_dashboard/ask', body, headers)).status, status, JSON.stringify(headers))
      if (status !== 200)
        t.equal(
          (await send('/_dashboard/session', { login: draw() }, headers)).status,
          status,
          'signing in is refused too',
        )
    }
    t.match(await send('/_dashboard/ask'), { status: 405 })
    t.match(await send('/_dashboard/other'), { status: 404 })
    t.match(await send('/tokens'), { status: 401 }, 'no other path accepts the cookie')
  },
)

t.test(
  'a request of the page may be as large as a request to the server, but without a session its body is not read',
  async (t) => {
    const { ask, asks, own, signIn } = await open(t)
    const large = { id: 'large', type: 'token', data: '"'.repeat(400_000) }
    t.match(await ask('token create', large), { status: 401 }, 'without a session, the body is not read')
    await signIn()
    t.match(await ask('token create', large), { status: 201, json: { id: 'large' } })
    const grants = { type: 'private', permissions: ['token:create'] }
    const { id: application } = await own('app create', { name: 'writer', ...grants })
    const send = (data: string) => {
      const body = JSON.stringify({ type: 'token', data })
      return asks({ request: { method: 'POST', target: '/tokens', application, body } })
    }
    t.match(await send('"'.repeat(400_000)), { status: 200, json: { status: 201 } })
    t.match(await send('x'.repeat(1024 * 1024)), { json: { status: 413 } }, 'the limit of the server')
    t.match(await send('x'.repeat(3 * 1024 * 1024)), { status: 413 })
    t.match(await ask('token create', { data: Array(60_000).fill(1) }), { status: 400 }, 'too many values')
  },
)

t.test(
  'a session of the dashboard never gets plaintext, and can perform only the operations that the page needs',
  async (t) => {
    const { ask, asks, signIn } = await open(t)
    await signIn()
    t.match(await ask('token list'), { status: 200, json: { data: [{ id: 'name-1' }, { id: 'card-1' }] } })
    const shown = JSON.stringify([
      (await ask('token list', { reveal: true })).json,
      (await ask('token search', { query: 'id:card-1' })).json,
      (await ask('app list')).json,
      (await ask('log list')).json,
    ])
    t.notMatch(shown, /4242424242424242|"Ada"|key_/)
    for (const operation of [
      ...['token get', 'token detokenize', 'control fork list', 'app regenerate', 'app key create'],
      ...['reactor react', 'seed export', '__proto__', 1],
    ])
      t.match(await asks({ operation }), { status: 403 }, String(operation))
    t.match(await asks({ operation: 'token list', input: 1 }), { status: 403 })
    for (const where of [{ fork: 'x' }, { tenant: 'x' }])
      t.match(await asks({ operation: 'token list', ...where }), { status: 404 })
    t.match(await ask('control clock advance', { by: '1h' }), { status: 200, json: { mode: 'offset' } })
  },
)

t.test(
  'the dashboard shows each request with the reason why it was refused and the rules that decided',
  async (t) => {
    const { api, ask, asks, signIn } = await open(t)
    await signIn()
    await api('/tokens/card-1?unknown=SECRET')
    await api('/tokens/name-1')
    await api('/tokens?type=card&size=5')
    const { json } = await asks({ after: 0 })
    t.match(json, { count: 3, first: 0 })
    const [card, name, list] = json.records
    const decided_by = { priority: 1, description: 'no cards' }
    t.match(card, { status: 200, decisions: [{ permission: 'token:read', transform: 'mask', decided_by }] })
    const passed_over = [{ priority: 1, reason: 'other container' }, { priority: 2 }]
    t.match(name, { status: 403, answer: { detail: /./ }, decisions: [{ container: '/pii/', passed_over }] })
    t.notOk('decided_by' in name.decisions[0])
    t.same(list.query, ['type', 'size'], 'without values')
    t.notOk('query' in card, 'an unknown parameter is hidden, because it may contain anything')
    t.notMatch(JSON.stringify(json), 'SECRET')
    t.match(await asks({ after: 2 }), { json: { count: 3, records: [{ path: '/tokens' }] } })
    t.match(await ask('control request clear'), { status: 204 })
    t.match(await asks({ after: 0 }), { json: { count: 3, first: 3, records: [] } })
  },
)

t.test('the dashboard shows the tokens and requests of a fork separately', async (t) => {
  const { api, asks, control, signIn } = await open(t)
  await signIn()
  const { id, keys, tenant } = await control.fork('worker-2')
  const input = { id: 'name-1' }
  await control.findFork(id).app.ask({ operation: 'token delete', input, as: { reveal: false } })
  for (const key of [undefined, keys.support!, keys.support!]) await api('/tokens/card-1', key)
  const forks = [{ id, name: 'worker-2', requests: 2 }]
  t.match(await asks({ after: 0 }), { json: { count: 1, forks, facts: { counts: { tokens: 2 } } } })
  t.match(await asks({ after: 0, fork: id }), { json: { count: 2 } })
  const own = await asks({ operation: 'token list', fork: id })
  t.match(own, { json: { data: [{ id: 'card-1', tenant_id: tenant.id }] } })
})

t.test(
  'reads by the dashboard are neither logged nor counted, but changes by the dashboard are logged and counted',
  async (t) => {
    const { ask, asks, own, signIn } = await open(t)
    await signIn()
    const before = (await own('log list')).pagination.total_items
    for (const operation of ['token list', 'token search', 'app list', 'log list', 'invite outbox'])
      t.equal((await ask(operation)).status, 200, operation)
    const { json: first } = await asks({ after: 0 })
    t.match(first, { facts: { counts: { tokens: 2, applications: 1 }, applications: [{ name: 'support' }] } })
    await asks({ access: { permission: 'token:read', target: 'card-1' } })
    t.equal((await own('log list')).pagination.total_items, before)
    t.notOk(
      'facts' in (await asks({ after: 0, version: first.version })).json,
      'the page is told that nothing has changed',
    )
    t.equal((await ask('token create', { type: 'token', data: 'SECRET' })).status, 201)
    const { data } = await own('log list')
    t.match(data[0], { message: 'Token created', actor_type: 'user' })
    const { json } = await asks({ after: 0, version: first.version })
    t.match(json.facts, { counts: { tokens: 3 }, actors: { [data[0]!.actor_id!]: 'owner' } })
  },
)

t.test(
  'the dashboard shows no data in errors that reactor code returns or in requests that convert token intents',
  async (t) => {
    const { ask, asks, own, signIn } = await open(t)
    await signIn()
    const code = `module.exports = async ({ args: { mark } }) => ({ res: { statusCode: 400, body: { detail: mark },
    headers: { 'content-type': 'application/problem+json' } } })`
    const { id } = await own('reactor create', { name: 'r', code })
    const user = await own('app create', { name: 'user', type: 'private', permissions: ['token:use'] })
    const post = (target: string, sent: object) =>
      asks({ request: { method: 'POST', target, application: user.id, body: JSON.stringify(sent) } })
    const react = (args: unknown) => post(`/reactors/${id}/react`, { args })
    t.match(await react({ mark: '{{ name-1 }}' }), {
      json: { status: 400, answer: { detail: /^\(/ } },
    })
    t.match(
      (await react(1)).json,
      { status: 400, answer: { errors: { args: [String] } } },
      'problems of the server are shown',
    )
    t.match(
      (await post('/proxy', {})).json.answer,
      { detail: /^Send the key of a proxy/ },
      'problems of a proxy are shown too',
    )
    const naming = `module.exports = async ({ args: { mark } }) => ({
    tokenize: { [mark.name ?? mark]: { type: 'token', data: 1, mask: '{{ bad }}' } } })`
    const namer = await own('reactor create', { name: 'namer', code: naming })
    const refused = await post(`/reactors/${namer.id}/react`, { args: { mark: '{{ name-1 }}' } })
    t.match(
      refused.json,
      { status: 400, answer: { errors: '(object)' } },
      'an error with names that code chose is not shown',
    )
    t.notMatch(JSON.stringify(refused.json), /Ada/)
    const thrown = '{"proxy_error":{"type":"urn:coffer:problem:reactor-failed"}}'
    const type = 'urn:coffer:problem:reactor-failed'
    t.same(redactBody(thrown, new Set(), undefined, true), { type }, 'the type says that code failed')
    const intent = await own('intent create', { type: 'token', data: 'MARKED' })
    const made = await ask('token create', { token_intent_id: intent.id, mask: '{{ data }}' })
    t.equal(made.status, 400)
    t.notMatch(JSON.stringify([made.json, (await asks({ after: 0 })).json]), /MARKED|"Ada"/)
  },
)

t.test(
  'a request that the dashboard sends has the rights of an application, and its response has no data',
  async (t) => {
    const { asks, own, signIn } = await open(t)
    const request = (target: unknown, given: object = {}) =>
      asks({ request: { method: 'GET', target, ...given } })
    t.match(await request('/tokens'), { status: 401 })
    await signIn()
    const [{ id: application }] = (await asks({ after: 0 })).json.facts.applications
    t.match(await request('/tokens/card-1', { application }), {
      status: 200,
      json: {
        status: 200,
        application_id: application,
        decisions: [{ transform: 'mask' }],
        answer: { id: 'card-1' },
      },
    })
    for (const [status, target, given] of [
      [403, '/tokens/name-1', { application }],
      [401, '/tokens', {}],
      [401, '/tokens', { key: 'key_wrong' }],
      [404, '/tokens', { application: 'x' }],
      [404, '/_coffer/clock', { application }],
      [404, '/_dashboard/session', { application }],
    ] as const)
      t.match(await request(target, given), { json: { status } }, target)
    for (const target of ['tokens', '//evil.example/', 'http://evil.example/', '/tokens\r\nx: y', 1])
      t.equal((await request(target)).status, 400, String(target))
    t.equal((await request('/tokens', { method: 'BREW' })).status, 400)
    const using = await own('app create', { name: 'u', type: 'private', permissions: ['token:use'] })
    const proxied = (header: unknown, value: unknown) =>
      request('/proxy', { application: using.id, proxy: { header, value } })
    t.match(await proxied('SVC-PROXY-URL', 'http://elsewhere.example/v1'), {
      json: { status: 403, destination: 'http://elsewhere.example/v1', proxy_header: 'SVC-PROXY-URL' },
    })
    t.match(await proxied('SVC-PROXY-KEY', 'none'), { json: { status: 404, proxy_header: 'SVC-PROXY-KEY' } })
    for (const [header, value] of [
      ['SVC-API-KEY', 'x'],
      ['host', 'x'],
      ['SVC-PROXY-URL', 'http://a.example\r\nx: y'],
      ['SVC-PROXY-URL', ''],
      ['SVC-PROXY-URL', `http://a.example/${'a'.repeat(2000)}`],
      ['SVC-PROXY-URL', 1],
    ])
      t.equal((await proxied(header, value)).status, 400, String(header))
    const permissions = ['token:read', 'token:create']
    const wide = await own('app create', {
      name: 'w',
      type: 'private',
      rules: [rule('/', 'all', { permissions })],
    })
    const read = await request('/tokens/card-1', { application: wide.id })
    t.match(read, {
      json: {
        status: 200,
        decisions: [{ transform: 'reveal' }],
        answer: { data: { number: '(16 characters)' } },
      },
    })
    const body = JSON.stringify({ type: 'token', data: 'MARKED' })
    const sent = { method: 'POST', application: wide.id, body, type: 'application/json' }
    const made = await request('/tokens', sent)
    t.match(made, { json: { status: 201, answer: { type: 'token' } } })
    const told = [read.json, made.json, (await asks({ after: 0 })).json]
    t.notMatch(JSON.stringify(told), /4242424242424242|MARKED/)
    const { data } = await own('log list')
    t.match(
      data[0],
      { message: 'Token created', actor_id: wide.id },
      'the request is logged like any other request',
    )
  },
)

t.test('the dashboard shows which rule decides on access, or why no rule applies', async (t) => {
  const { asks, signIn } = await open(t)
  await signIn()
  const decide = (target: string, more: object = {}) =>
    asks({ access: { permission: 'token:read', target, ...more } })
  const [masked] = (await decide('/pci/high/')).json
  t.match(masked, { transform: 'mask', decisions: [{ decided_by: { priority: 1 } }] })
  t.match(await decide('card-1'), { json: [{ transform: 'mask' }] })
  const [refused] = (await decide('name-1')).json
  t.notOk('transform' in refused)
  const passed_over = [{ reason: 'other container' }, { reason: 'other permissions' }]
  t.match(refused.decisions, [{ passed_over }])
  t.match(await decide('none'), { status: 404 })
  t.match(await decide('/pci/', { permission: 'token:fly' }), { status: 400 })
  t.same((await decide('/pci/', { application: 'x' })).json, [])
})

t.test(
  'the dashboard gets no key, no configuration of a reactor, and output of code only without data',
  async (t) => {
    const { ask, own, signIn } = await open(t)
    await signIn()
    const grants = { type: 'private', permissions: ['token:read'], create_key: true }
    const made = await ask('app create', { name: 'new', ...grants })
    t.match(made, { status: 201, json: { name: 'new', keys: [] } })
    t.notOk('key' in made.json)
    t.strictSame(Object.keys((await ask('control fork create')).json), ['id'])
    const code = `module.exports = async ({ configuration }) => {
    console.log("PRINTED"); throw new Error("THROWN " + configuration.KEY) }`
    const reactor = await ask('reactor create', { name: 'noisy', code, configuration: { KEY: 'SETTING' } })
    t.match(reactor, { status: 201, json: { configuration: { KEY: /^$/ } } })
    const { id } = reactor.json
    await t.rejects(own('reactor react', { id }))
    const list = await ask('reactor list')
    const seen = [list, await ask('reactor patch', { id, name: 'loud' }), await ask('reactor logs', { id })]
    t.same(
      seen.map(({ status }) => status),
      [200, 204, 200],
    )
    const told = JSON.stringify([reactor, ...seen].map(({ json }) => json))
    t.notMatch(told.replaceAll(JSON.stringify(code), ''), /PRINTED|SETTING|THROWN/)
    const withheld = '[withheld: it would reveal data of a token]'
    t.match(await ask('reactor scrubbed-logs', { id }), {
      json: [{ console: [{ level: 'log', text: 'PRINTED' }], errors: { error: [withheld] } }],
    })
  },
)

/** Code that prints and throws `args.text` and the data of the token card-1 in many ways. */
const NOISY = `module.exports = async ({ args, configuration, svc }) => {
  const { data } = await svc.tokens.retrieve('card-1')
  await svc.tokens.create({ id: 'made', type: 'token', data: 'WRITTEN-' + 12345 })
  console.log('begun')
  console.log(args.text, { data }, [...data.number].join('-'))
  console.log(Buffer.from(args.text).toString('base64'), args.sent)
  console.log('WRITTEN-12345', configuration.KEY)
  for (const part of data.number.match(/.{4}/g)) console.log('part', part)
  throw Object.assign(new Error('failed for ' + args.text), { status: 400, errors: { [data.number]: ['no'] } })
}`

t.test('the dashboard shows output and errors of code without the data that the code received', async (t) => {
  const { control, ask, own, signIn } = await open(t)
  await signIn()
  const permissions = ['token:read', 'token:create']
  const rules = [rule('/', 'all', { permissions })]
  const application = await own('app create', { name: 'a', type: 'private', rules })
  const given = { name: 'noisy', code: NOISY, configuration: { KEY: 'CONFIGURED' }, application }
  const { id } = await own('reactor create', given)
  await own('token create', { id: 'secret-1', type: 'token', data: 'HIDDEN-VALUE-77' })
  const args = { text: '{{ secret-1 }}', sent: 'SENT-AS-IT-IS' }
  await t.rejects(own('reactor react', { id, args }), { code: 'reactor_failed' })
  const [run] = await own('reactor logs', { id })
  t.match(run!.console.map(({ text }) => text).join(), 'HIDDEN-VALUE-77', 'the owner sees the output')
  const { status, json } = await ask('reactor scrubbed-logs', { id })
  t.equal(status, 200)
  const base64 = Buffer.from('HIDDEN-VALUE-77').toString('base64')
  const plain = ['HIDDEN-VAL', '4242424242424242', '4-2-4-2', base64, 'SENT-AS', 'WRITTEN', 'CONFIGURED']
  for (const each of plain) t.notMatch(JSON.stringify(json), each)
  t.notMatch(JSON.stringify((await ask('reactor logs', { id })).json), /begun|failed for/)

  await own('reactor patch', {
    id,
    code: `module.exports = async ({ args }) => { console.log('begun'); console.log(args.text) }`,
  })
  await own('reactor react', { id, args }).catch(() => undefined)
  const [, quiet] = (await ask('reactor scrubbed-logs', { id })).json
  t.match(quiet.console, [{ text: 'begun' }, { text: /^\[withheld/ }], 'the rest of the output is shown')

  // The dashboard does not compare long output with the data of the run, so it withholds long output. The dashboard
  // also withholds output that an earlier version of Coffer recorded.
  await own('reactor patch', { id, code: `module.exports = async () => console.log('x '.repeat(10_000))` })
  await own('reactor react', { id, args }).catch(() => undefined)
  await control.app.store.write(async (store) => {
    const { records } = await store.find('reactor_log', 1, { page: 1, size: 100 })
    const { scrubbed: _, ...old } = records.find(({ id }) => id === quiet.id)!
    await store.replace('reactor_log', 1, old)
  })
  const runs = (await ask('reactor scrubbed-logs', { id })).json
  for (const each of runs.slice(1)) t.match(each.console, [{ level: 'warn', text: /^\[withheld/ }])
})

t.test('the setting no_reveal also applies to requests of the dashboard', async (t) => {
  const { ask, own, signIn } = await open(t)
  await signIn()
  const fingerprint = async () => (await ask('token list')).json.data[0].fingerprint
  t.ok(await fingerprint())
  await own('config set', { name: 'no_reveal', value: 'true' })
  t.notOk(await fingerprint())
  t.match(await ask('token search', { query: 'data:4242' }), { status: 403 })
})

t.test(
  'requests to a vault without a control plane are recorded only while a session of the dashboard exists',
  async (t) => {
    const { api, control, send, signIn, advance } = await open(t, true)
    await api('/tokens/card-1')
    t.equal(control.requests.after(0).count, 0)
    await signIn()
    t.match(await send('/_dashboard/session'), { json: { controls: { faults: false, state: false } } })
    await api('/tokens/card-1')
    t.match(control.requests.after(0), { records: [{ operation: 'token get' }] })
    t.match(await send('/_dashboard/ask', { operation: 'control reset' }), { status: 404 })
    advance(13 * 60 * 60_000)
    await api('/tokens/card-1')
    t.equal(control.requests.after(0).count, 1)
  },
)
