import t from 'tap'
import { refusalOf } from '../support/refusals.js'
import { createHandler } from '../support/service.js'
import { openTestVault, permissionsOf, setSetting } from '../support/test-vault.js'

type Json = Record<string, unknown>

const vault = await openTestVault()
const { app, ask, askAs, createApplication, createTenant } = vault
t.teardown(() => app.close())

const worker = await createApplication('private', { permissions: permissionsOf('private') })

const formulaBody = (code: string, more: Json = {}): Json => ({
  name: 'a formula',
  type: 'private',
  code,
  ...more,
})

async function createFormula(code: string, more: Json = {}): Promise<Json & { id: string }> {
  return await ask('formula create', formulaBody(code, more))
}

/** Creates a reactor with a new formula that has this code. */
async function createReactor(code: string, formulaMore: Json = {}, more: Json = {}): Promise<string> {
  const { id } = await createFormula(code, formulaMore)
  const reactor = await ask('reactor create', { name: 'a reactor', formula: { id }, ...more })
  return reactor.id
}

const react = (id: string, args?: Json, key = worker.key) =>
  askAs(key, 'reactor react', { id, ...(args === undefined ? {} : { args }) })

const logsOf = async (entity_id: string) => (await ask('log list', { entity_id })).data

const ECHO =
  'module.exports = async ({ args, configuration, svc }) => ({ raw: { args, configuration, svc } })'

t.test(
  'every tenant can read and use official formulas, and an official formula cannot become private',
  async (t) => {
    const official = await createFormula(ECHO, { type: 'official', name: 'Official echo' })
    const other = await createTenant('other')
    t.match(await ask('formula list', {}, other), { data: [{ id: official.id, type: 'official' }] })
    const mine = await createFormula(ECHO)
    await t.rejects(
      ask('formula get', { id: mine.id }, other),
      { code: 'not_found' },
      'private formulas are visible only in their tenant',
    )
    const reactor = await ask('reactor create', { name: 'r', formula: { id: official.id } }, other)
    await t.rejects(
      ask('formula delete', { id: official.id }),
      { code: 'conflict' },
      'the formula cannot be deleted, because another tenant uses it',
    )
    await ask('reactor delete', { id: reactor.id }, other)
    const error = await refusalOf(ask('formula update', { id: official.id, ...formulaBody('y') }))
    t.match(error.errors, { type: ['must stay official'] })
    await ask('formula delete', { id: official.id })
  },
)

t.test('arguments that a reactor does not declare are removed if the setting requires it', async (t) => {
  const id = await createReactor(ECHO, { request_parameters: [{ name: 'a.b', type: 'string' }] })
  const args = { a: { b: 'x', c: 1 }, d: 2 }
  t.match(await react(id, args), { raw: { args } })
  await setSetting(app, 'reactors.undeclared_args', 'strip')
  t.same(((await react(id, args)) as { raw: { args: Json } }).raw.args, { a: { b: 'x' } })
  await setSetting(app, 'reactors.undeclared_args', undefined)
})

t.test(
  'the client in reactor code has every method, and works until the bound application is deleted',
  async (t) => {
    const code = `module.exports = async ({ svc }) => {
    const made = await svc.tokens.create({ type: 'token', data: { ssn: '123456789' }, searchIndexes: ['{{ data.ssn }}'], mask: { ssn: '{{ data.ssn | reveal_last: 4 }}' }, containers: ['/pii/'] })
    const child = await svc.tokens.createChild(made.id, { type: 'token', data: 'child', containers: ['/pii/'] })
    const found = await svc.tokens.search({ query: 'data:123456789' })
    const children = await svc.tokens.listChildren(made.id)
    const patched = await svc.tokens.update(made.id, { metadata: { a: 'b' } })
    await svc.tokens.deleteAssociation(made.id, child.id)
    await svc.tokens.createAssociation(child.id, made.id)
    const read = await svc.tokens.retrieve(made.id)
    const listed = await svc.tokens.list({ type: 'token', metadata: { a: 'b' } })
    const refused = []
    for (const query of [{ types: 'card,' }, { type: '' }, { id: [''] }, { metadata: {} }, { metadata: 'x' }])
      refused.push(await svc.tokens.list(query).catch((e) => e.status))
    const ids = await svc.tokenize({ x: 'y' }).catch((e) => e.status)
    await svc.tokens.delete(child.id)
    const gone = await svc.tokens.retrieve(child.id).catch((e) => [e.status, e.data.title])
    return { raw: { made, counts: [found, listed, children].map(({ data }) => data.length), patched: patched.metadata, read: read.data, refused, ids, gone } }
  }`
    const permissions = permissionsOf('private')
    const rules = [{ priority: 1, container: '/pii/', transform: 'mask' as const, permissions }]
    const bound = await createApplication('private', { rules })
    const id = await createReactor(code, {}, { application: { id: bound.id } })
    const { raw } = (await react(id)) as { raw: Json & { made: Json & { id: string } } }
    t.match(raw, {
      made: { data: { ssn: 'XXXXX6789' }, created_by: bound.id },
      counts: [1, 1, 1],
      patched: { a: 'b' },
      read: { ssn: 'XXXXX6789' },
      refused: [400, 400, 400, 400, 400],
      ids: 403,
      gone: [404, 'Not Found'],
    })
    t.match((await logsOf(raw.made.id)).at(-1), { operation: 'create', actor_id: bound.id })
    await ask('app delete', { id: bound.id })
    await t.rejects(
      react(id),
      { code: 'reactor_failed', errors: { error: [/null/] } },
      'the reactor is no longer bound to an application',
    )
  },
)

t.test('an expired application has no rights in a reactor', async (t) => {
  const expires_at = '2030-01-15T12:00:01Z'
  const bound = await createApplication('private', { permissions: ['token:create'], expires_at })
  const create = 'svc.tokens.create({ type: "token", data: 1 }).then(() => "made", (e) => e.status)'
  const code = `module.exports = async ({ svc }) => ({ raw: await ${create} })`
  const id = await createReactor(code, {}, { application: { id: bound.id } })
  t.same(await react(id), { raw: 'made' })
  vault.clock.now += 2_000
  t.same(await react(id), { raw: 403 })
})

t.test(
  'the logs of a limited number of runs are kept for the owner, and deleted with the reactor',
  async (t) => {
    const code = `module.exports = async ({ args }) => {
    console.log("got", args.n)
    if (args.n % 2) throw new Error("odd")
    return {}
  }`
    const id = await createReactor(code)
    const runs = async () => (await ask('reactor logs', { id, number: 100 })).toReversed()
    await react(id, { n: 2 })
    await refusalOf(react(id, { n: 3 }))
    const [odd, even] = await runs()
    const console = [{ level: 'log', text: 'got 2' }]
    t.match(even, { reactor_id: id, outcome: 'done', status: 200, console, trace_id: /^[0-9a-f-]{36}$/ })
    const failed = { outcome: 'reactor_failed', status: 500, errors: { error: ['odd'] } }
    t.match(odd, { ...failed, stack: /reactor\.js:3:/ })
    for (let count = 0; count < 220; count++) await react(id, { n: 2 * count })
    const kept = await runs()
    t.equal(kept.length, 100)
    t.equal(kept[0]?.console[0]?.text, 'got 438')
    await ask('reactor delete', { id })
    await t.rejects(runs(), { code: 'not_found' })
    const left = await app.store.read(async (store) =>
      store.find('reactor_log', 1, { where: { field: 'reactor', value: id }, page: 1, size: 1 }),
    )
    t.equal(left.total, 0)
  },
)

t.test(
  'the name of the client in reactor code is the prefix of the server, and settings limit the runs',
  async (t) => {
    const other = await openTestVault()
    t.teardown(() => other.app.close())
    await setSetting(other.app, 'reactors.time_limit_ms', '700')
    await setSetting(other.app, 'reactors.result_limit_bytes', '1024')
    await setSetting(other.app, 'reactors.isolation', 'process')
    other.app.configureReactors({ prefix: 'bt', allowNet: ['localhost:1'] })
    const run = async (code: string) => {
      const { id } = await other.ask('reactor create', { name: 'r', code })
      return other.ask('reactor react', { id })
    }
    t.same(await run('module.exports = async (req) => ({ raw: Object.keys(req) })'), {
      raw: ['args', 'configuration', 'bt', 'applicationOptions', 'req', 'logger'],
    })
    await t.rejects(run('module.exports = async () => { for (;;); }'), {
      code: 'reactor_timeout',
      status: 408,
      message: /700 ms/,
    })
    await t.rejects(run('module.exports = async () => ({ raw: "x".repeat(1023) })'), {
      code: 'reactor_failed',
      errors: { error: [/1025 bytes; at most 1024/] },
    })
    // On a busy machine, the start of the request alone can take longer than the limit of the endless code.
    await setSetting(other.app, 'reactors.time_limit_ms', '10000')
    await t.rejects(run('module.exports = async () => fetch("http://localhost:1/")'), {
      code: 'reactor_failed',
      errors: { error: [/ECONNREFUSED/] },
    })
    await setSetting(other.app, 'reactors.time_limit_ms', '100')
    await t.rejects(
      run('module.exports = async () => { for (;;); }'),
      { message: /100 ms/ },
      'a changed setting applies from the next run',
    )
  },
)

const KIB = 1024
const MIB = 1024 * KIB
const rule = { priority: 1, transform: 'reveal' as const, permissions: permissionsOf('private') }
const limited = await openTestVault()
t.teardown(() => limited.app.close())
const revealed = await limited.createApplication('private', { rules: [{ ...rule, container: '/' }] })

/**
 * Runs the code with the rights of an application that sees all data. The function returns the value `raw` of the
 * result.
 */
async function run(body: string): Promise<unknown> {
  const code = `module.exports = async ({ svc }) => { ${body} }`
  const reactor = { name: 'r', code, application: { id: revealed.id } }
  const { id } = await limited.ask('reactor create', reactor)
  return (await limited.askAs(revealed.key, 'reactor react', { id })).raw
}

t.test(
  'the client in reactor code gets answers of at most 4 MiB of UTF-8, and a refused read is not logged',
  async (t) => {
    const readsOf = async (entity_id: string) =>
      (await limited.ask('log list', { entity_id })).data.filter(({ operation }) => operation === 'read')
        .length
    const data = '漢'.repeat(MIB / 2)
    for (const id of ['third-a', 'third-b', 'third-c'])
      await limited.ask('token create', { id, type: 'token', data })
    const raw = await run(`
    const told = (work) => work.then(({ data }) => data.length, ({ status, data }) => [status, data.errors])
    const ask = (name, size) => told(svc.tokens[name]({ size }))
    return { raw: [await ask('list', 2), await ask('list', 3), await ask('search', 2), await ask('search', 3)] }`)
    const refused = [400, { size: ['ask for a smaller size; this page exceeds the limit of 4 MiB'] }]
    t.same(raw, [2, refused, 2, refused])
    t.same([await readsOf('third-c'), await readsOf('third-a')], [2, 0])
    await limited.ask('token create', { id: 'beyond', type: 'token', data: 'x'.repeat(4 * MIB) })
    const told = '.then(() => "answered", ({ status, message }) => [status, message])'
    t.same(await run(`return { raw: await svc.tokens.retrieve('beyond')${told} }`), [
      400,
      'The answer exceeds the limit of 4 MiB.',
    ])
    t.equal(await readsOf('beyond'), 0)
  },
)

t.test('the sizes of arguments of the client and of results of code are measured in UTF-8', async (t) => {
  const created = await run(`
    const create = (length) => svc.tokens.create({ type: 'token', data: '漢'.repeat(length) })
    return { raw: [(await create(${Math.floor(MIB / 3) - 50})).type, await create(${MIB} - 100).catch(String)] }`)
  t.same(created, ['token', 'RangeError: The arguments of tokens.create are too large'])
  const most = Math.floor(MIB / 3) - 1
  t.equal(String(await run(`return { raw: '漢'.repeat(${most}) }`)).length, most)
  const message = `The result has ${3 * (most + 1) + 2} bytes; at most ${MIB} are allowed`
  await t.rejects(run(`return { raw: '漢'.repeat(${most + 1}) }`), {
    code: 'reactor_failed',
    errors: { error: [message] },
  })
  const quotes = '"'.repeat(MIB / 2 - 1)
  t.equal(
    await run(`return { raw: '"'.repeat(${MIB / 2 - 1}) }`),
    quotes,
    'the size is also correct for text that is escaped twice',
  )
})

t.test('the size limit of reactor arguments includes the data of the tokens in the arguments', async (t) => {
  const code = 'module.exports = async ({ args }) => ({ raw: args.a.length })'
  const { id } = await limited.ask('reactor create', { name: 'r', code })
  const payload = Array.from({ length: 6 }, (_, at) => `{{ part-${at} }}`)
  for (const part of payload) {
    const token = { id: part.slice(3, -3), type: 'token', data: 'x'.repeat(3 * MIB) }
    await limited.ask('token create', token)
  }
  const reactTo = (a: string[]) => limited.askAs(revealed.key, 'reactor react', { id, args: { a } })
  t.match(await reactTo(payload.slice(3)), { raw: 3 })
  const refused = { code: 'validation', errors: { args: [/^must have at most about 16 million characters/] } }
  for (const a of [payload, payload.map((_, at) => `${payload[0]}${at}`)])
    await t.rejects(reactTo(a), refused)
  const { key } = await limited.createApplication('private', {
    rules: [{ ...rule, container: '/elsewhere/' }],
  })
  const asking = limited.askAs(key, 'token detokenize', { payload })
  await t.rejects(asking, { code: 'forbidden' }, 'a caller who may not read tokens does not learn their size')
})

t.test(
  'code with a configurable image gets any JSON as its body, and expressions in the body are replaced',
  async (t) => {
    const handle = createHandler(app)
    await ask('token create', { id: 'of-body', type: 'token', data: { n: 1 } })
    const create = async (image: string) => {
      const runtime = { image }
      const code = 'module.exports = async ({ req, args }) => ({ raw: { req: req ?? "null", args } })'
      return ((await ask('reactor create', { name: image, code, runtime })) as { id: string }).id
    }
    const post = async (id: string, body: string) => {
      const headers = { 'svc-api-key': worker.key, 'content-type': 'application/json' }
      const request = new Request(`http://localhost/reactors/${id}/react`, { method: 'POST', headers, body })
      const answer = await handle(request)
      return [answer.status, (await answer.json()) as Json] as const
    }
    const [modern, old] = [await create('node24'), await create('node-bt')]
    for (const [body, req] of [
      ['["{{ of-body }}", "{{ of-body | json: \'$.n\' }}"]', [{ n: 1 }, 1]],
      ['"{{ of-body }}"', { n: 1 }],
      ['5', 5],
      ['null', 'null'],
      ['{"m":"{{ of-body }}"}', { m: { n: 1 } }],
    ] as const) {
      t.same(await post(modern, body), [200, { raw: { req, args: {} } }], body)
      const isObject = body.startsWith('{')
      const [status, answer] = await post(old, body)
      t.equal(status, isObject ? 200 : 400, `${body} with node-bt`)
      if (!isObject) t.match(answer, { detail: 'The request body must be a JSON object.' })
    }
    t.match(await post(modern, '["{{ none }}"]'), [400, {}], 'an expression of an unknown token')
  },
)
