import t from 'tap'
import { Turns } from '../../src/domain/expression/budget.js'
import type { CofferError } from '../../src/errors.js'
import { findExpressions } from '../../src/operations/token/detokenize.js'
import { openTestVault, permissionsOf, setSetting } from './vault.js'

type Json = Record<string, unknown>

const vault = await openTestVault()
const { app, ask, askAs, createApplication, createTenant } = vault
t.teardown(() => app.close())

const manager = await createApplication('management', { permissions: permissionsOf('management') })
const worker = await createApplication('private', { permissions: permissionsOf('private') })

const PARAMETER = { name: 'name', type: 'string' }
const formulaBody = (code: string, more: Json = {}): Json => ({
  name: 'a formula',
  type: 'private',
  code,
  ...more,
})

async function createFormula(code: string, more: Json = {}): Promise<Json & { id: string }> {
  return (await ask('formula create', formulaBody(code, more))) as Json & { id: string }
}

/** A reactor of a new formula with this code. */
async function createReactor(code: string, formulaMore: Json = {}, more: Json = {}): Promise<string> {
  const { id } = await createFormula(code, formulaMore)
  const reactor = (await ask('reactor create', { name: 'a reactor', formula: { id }, ...more })) as {
    id: string
  }
  return reactor.id
}

const react = (id: string, args?: Json, key = worker.key) =>
  askAs(key, 'reactor react', { id, ...(args === undefined ? {} : { args }) })

async function failureOf(work: Promise<unknown>): Promise<CofferError> {
  try {
    await work
  } catch (error) {
    return error as CofferError
  }
  throw new Error('it succeeded')
}

async function createToken(input: Json): Promise<string> {
  return ((await ask('token create', { type: 'token', ...input })) as { id: string }).id
}

const logsOf = async (entity_id: string) =>
  (
    (await ask('log list', { entity_id })) as {
      data: { operation: string; message: string; entity_type: string; actor_id: string }[]
    }
  ).data

const ECHO =
  'module.exports = async ({ args, configuration, svc }) => ({ raw: { args, configuration, svc } })'

t.test('a formula is created, shown, replaced and deleted', async (t) => {
  const given = formulaBody(ECHO, {
    description: 'd',
    configuration: [{ name: 'KEY', type: 'string', description: 'k', more: 1 }],
    request_parameters: [PARAMETER],
    more: 1,
  })
  const created = (await askAs(manager.key, 'formula create', given)) as Json & { id: string }
  t.match(created, {
    name: 'a formula',
    description: 'd',
    type: 'private',
    status: 'verified',
    code: ECHO,
    created_by: manager.id,
    configuration: [{ name: 'KEY', type: 'string', description: 'k' }],
    request_parameters: [{ name: 'name', type: 'string', optional: false }],
  })
  t.notOk('more' in created || 'modified_at' in created || 'icon' in created)
  t.same(await askAs(manager.key, 'formula get', { id: created.id }), created)
  const replaced = (await askAs(manager.key, 'formula update', {
    id: created.id,
    ...formulaBody('x', { configuration: null }),
  })) as Json
  t.match(replaced, {
    id: created.id,
    code: 'x',
    configuration: [],
    request_parameters: [],
    created_at: created.created_at,
    modified_by: manager.id,
  })
  t.notOk('description' in replaced, 'what is left out is removed')
  await askAs(manager.key, 'formula delete', { id: created.id })
  await t.rejects(ask('formula get', { id: created.id }), { code: 'not_found' })
  t.same(
    (await logsOf(created.id)).map(({ operation, entity_type }) => [operation, entity_type]),
    [
      ['delete', 'reactor_formula'],
      ['update', 'reactor_formula'],
      ['read', 'reactor_formula'],
      ['create', 'reactor_formula'],
    ],
  )
})

t.test('a formula is refused under the property that is wrong', async (t) => {
  const string = (name: string) => ({ name, type: 'string' })
  const cases: [Json, string][] = [
    [{ name: 'x'.repeat(201) }, 'name'],
    [{ type: 'public' }, 'type'],
    [{ code: '' }, 'code'],
    [{ icon: 'data:image/png;base64,AAAA' }, 'icon'],
    [{ configuration: [string('a.b')] }, 'configuration[0].name'],
    [{ configuration: [{ name: 'a', type: 'object' }] }, 'configuration[0].type'],
    [{ request_parameters: [string('a'), string('a.b')] }, 'request_parameters[1].name'],
  ]
  for (const [change, path] of cases) {
    const { code, errors } = await failureOf(ask('formula create', formulaBody(ECHO, change)))
    t.same([code, Object.keys(errors ?? {})], ['validation', [path]], path)
  }
})

t.test('official formulas are made by the owner, and seen and used by every tenant', async (t) => {
  const official = await createFormula(ECHO, { type: 'official', name: 'Official echo' })
  await t.rejects(askAs(manager.key, 'formula create', formulaBody(ECHO, { type: 'official' })), {
    code: 'forbidden',
  })
  await t.rejects(askAs(manager.key, 'formula update', { id: official.id, ...formulaBody(ECHO) }), {
    code: 'forbidden',
  })
  await t.rejects(askAs(manager.key, 'formula delete', { id: official.id }), { code: 'forbidden' })
  const other = await createTenant('other')
  t.match(await ask('formula get', { id: official.id }, other), { id: official.id, type: 'official' })
  const mine = await createFormula(ECHO)
  await t.rejects(ask('formula get', { id: mine.id }, other), { code: 'not_found' }, 'private ones are not')
  const reactor = (await ask('reactor create', { name: 'r', formula: { id: official.id } }, other)) as {
    id: string
  }
  await t.rejects(
    ask('formula delete', { id: official.id }),
    { code: 'conflict' },
    'a reactor of another tenant uses it',
  )
  await ask('reactor delete', { id: reactor.id }, other)
  t.match(await ask('formula update', { id: official.id, ...formulaBody('y', { type: 'official' }) }), {
    code: 'y',
  })
  t.equal(
    (await failureOf(ask('formula update', { id: official.id, ...formulaBody('y') }))).errors?.type?.[0],
    'must stay official',
  )
  const listed = (await ask('formula list', {}, other)) as { data: Json[]; pagination: Json }
  t.same(
    listed.data.map(({ id }) => id),
    [official.id],
  )
  await ask('formula delete', { id: official.id })
})

t.test('lists are newest first, counted and found by name', async (t) => {
  const tenant = await createTenant('lists')
  for (const name of ['Alpha', 'beta', 'alphabet', 'Gamma'])
    await ask('formula create', formulaBody(ECHO, { name }), tenant)
  const names = async (query: Json) => {
    const { data, pagination } = (await ask('formula list', query, tenant)) as {
      data: { name: string }[]
      pagination: { total_items: number }
    }
    return [data.map(({ name }) => name), pagination.total_items]
  }
  t.same(await names({}), [['Gamma', 'alphabet', 'beta', 'Alpha'], 4])
  t.same(await names({ page: 2, size: 3 }), [['Alpha'], 4])
  t.same(await names({ name: 'ALPHA' }), [['alphabet', 'Alpha'], 2])
  t.same(await names({ name: '*bet*' }), [['alphabet', 'beta'], 2])
  t.same(await names({ name: 'bet*' }), [['beta'], 1])
  t.same(await names({ page: 9 }), [[], 4])
})

t.test('a reactor is created, shown, replaced, listed and deleted', async (t) => {
  const formula = await createFormula(ECHO, {
    configuration: [
      { name: 'KEY', type: 'string' },
      { name: 'n', type: 'number' },
      { name: 'on', type: 'boolean' },
    ],
  })
  const body = {
    name: 'r1',
    formula: { id: formula.id, name: 'ignored' },
    configuration: { KEY: 5, n: '07'.slice(1), on: 'TRUE' },
    application: { id: worker.id },
  }
  const created = (await askAs(manager.key, 'reactor create', body)) as Json & { id: string }
  t.match(created, {
    name: 'r1',
    configuration: { KEY: '5', n: '7', on: 'true' },
    application: { id: worker.id, name: 'a private application', type: 'private' },
  })
  t.same(created.formula, await ask('formula get', { id: formula.id }), 'the formula is nested in full')
  t.same(await ask('reactor get', { id: created.id }), created)
  await t.rejects(ask('formula delete', { id: formula.id }), { code: 'conflict' })
  const replaced = (await ask('reactor update', {
    id: created.id,
    name: 'r2',
    configuration: { KEY: 'k', n: 1, on: false },
  })) as Json
  t.match(replaced, { id: created.id, name: 'r2', configuration: { KEY: 'k', n: '1', on: 'false' } })
  t.notOk('application' in replaced, 'without an application it is unbound')
  const { data, pagination } = (await ask('reactor list', { id: [created.id], name: 'R2' })) as {
    data: Json[]
    pagination: Json
  }
  t.match([data[0]?.id, pagination.total_items], [created.id, 1])
  t.same(((await ask('reactor list', { name: 'nothing*' })) as { data: Json[] }).data, [])
  await ask('reactor delete', { id: created.id })
  await t.rejects(ask('reactor get', { id: created.id }), { code: 'not_found' })
  await ask('formula delete', { id: formula.id })
})

t.test('what a reactor may not be is refused under its property', async (t) => {
  const { id } = await createFormula(ECHO, { configuration: [{ name: 'n', type: 'number' }] })
  const formula = { id }
  const cases: [Json, string][] = [
    [{ formula: { id: 'nothing' } }, 'formula.id'],
    [{ formula, configuration: {} }, 'configuration.n'],
    [{ formula }, 'configuration.n'],
    [{ formula, configuration: { n: 'x' } }, 'configuration.n'],
    [{ formula, configuration: { n: 1, m: 2 } }, 'configuration.m'],
    [{ formula, configuration: { n: 1 }, application: { id: manager.id } }, 'application.id'],
    [{ formula, configuration: { n: 1 }, application: { id: 'nothing' } }, 'application.id'],
    [{ formula, configuration: [1] }, 'configuration'],
    [{ formula: {} }, 'formula.id'],
  ]
  for (const [change, path] of cases) {
    const { code, errors } = await failureOf(ask('reactor create', { name: 'r', ...change }))
    t.same([code, Object.keys(errors ?? {})], ['validation', [path]], path)
  }
})

t.test('a run is given cast arguments and configuration, detokenized', async (t) => {
  const id = await createReactor(
    ECHO,
    {
      configuration: [{ name: 'n', type: 'number' }],
      request_parameters: [
        { name: 'card.number', type: 'string' },
        { name: 'card.year', type: 'number' },
        { name: 'test', type: 'boolean', optional: true },
      ],
    },
    { configuration: { n: '5' } },
  )
  const token = await createToken({
    id: 'card-1',
    data: { number: 4242, year: '2030', note: '{{ card-1 }}' },
  })
  const response = (await react(id, {
    card: `{{ ${token} }}`,
    text: `a {{ ${token} | json: '$.number' }} b {{card-1}}`,
    plain: '{ { }',
    list: [`{{ card-1 | json: '$.year' }}`],
  })) as { raw: Json }
  t.same(response.raw, {
    args: {
      card: { number: '4242', year: 2030, note: '{{ card-1 }}' },
      text: 'a 4242 b {"note":"{{ card-1 }}","number":4242,"year":"2030"}',
      plain: '{ { }',
      list: ['2030'],
    },
    configuration: { n: 5 },
    svc: null,
  })
  t.same(
    (await logsOf('card-1')).map(({ operation, message, actor_id }) => [operation, message, actor_id]),
    [
      ['use', 'Token used', worker.id],
      ['create', 'Token created', (await app.tenant()).owner_id],
    ],
  )
  t.match(await logsOf(id), [
    { operation: 'react', message: 'Reactor invoked', entity_type: 'reactor', actor_id: worker.id },
    {},
  ])
})

t.test('what is wrong with arguments is refused before anything runs', async (t) => {
  const id = await createReactor(ECHO, { request_parameters: [{ name: 'a.b', type: 'number' }] })
  const cases: [Json | undefined, string, RegExp][] = [
    [undefined, 'args.a.b', /required/],
    [{ a: { B: 1 } }, 'args.a.b', /required/],
    [{ a: { b: 'x' } }, 'args.a.b', /number/],
    [{ a: { b: 1 }, c: ['{{ nothing }}'] }, 'args.c[0]', /does not exist/],
    [{ a: { b: 1 }, c: { d: '{{ nothing' } }, 'args.c.d', /closing/],
    [{ a: { b: 1 }, c: '{{ }}' }, 'args.c', /token id/],
    [{ a: { b: 1 }, c: '{{ x | nope }}' }, 'args.c', /filter/],
  ]
  for (const [args, path, message] of cases) {
    const { code, errors } = await failureOf(react(id, args))
    t.match([code, errors?.[path]?.[0]], ['validation', message], JSON.stringify(args))
  }
  await t.rejects(react('nothing'), { code: 'not_found' })
  await t.rejects(react(id, {}, manager.key), { code: 'forbidden' })
})

t.test('a hundred distinct tokens may be named, and each as often as one likes', async (t) => {
  const id = await createReactor('module.exports = async ({ args }) => ({ raw: args.all.length })')
  const ids: string[] = []
  for (let count = 0; count < 101; count++) ids.push(await createToken({ id: `many-${count}`, data: count }))
  const all = [...ids.slice(0, 100), ...ids.slice(0, 100)].map((each) => `{{ ${each} }}`)
  t.same(await react(id, { all }), { raw: 200 })
  const { errors } = await failureOf(react(id, { all: [...all, `{{ ${ids[100]} }}`] }))
  t.match(errors?.args?.[0], /more than 100 tokens/)
})

t.test('no more expressions are compiled than show that the tokens are too many', async (t) => {
  const expressions = await app.expressions()
  const compiled = t.capture(expressions, 'compile', expressions.compile)
  const document = Array.from({ length: 1000 }, (_, at) => `{{ many-${at} }}`)
  const finding = findExpressions(document, { expressions: async () => expressions, turns: new Turns() })
  await t.rejects(finding, { code: 'validation' })
  t.equal(compiled().length, 101)
})

t.test('token:use is needed on each container of what is used', async (t) => {
  const id = await createReactor(ECHO)
  const inside = await createToken({ id: 'inside', data: 1, containers: ['/pci/high/'] })
  const outside = await createToken({ id: 'outside', data: 2, containers: ['/pci/', '/other/'] })
  const rules = [
    { priority: 1, container: '/pci/', transform: 'redact' as const, permissions: ['token:use' as const] },
  ]
  const { key } = await createApplication('private', { rules })
  t.match(
    await react(id, { a: `{{ ${inside} }}` }, key),
    { raw: { args: { a: 1 } } },
    'the data is raw whatever the transform',
  )
  await t.rejects(react(id, { a: `{{ ${outside} }}` }, key), { code: 'forbidden' })
  t.equal((await logsOf('outside')).length, 1, 'a refused run uses nothing')
})

t.test('undeclared arguments are stripped where the vault says so', async (t) => {
  const id = await createReactor(ECHO, { request_parameters: [{ name: 'a.b', type: 'string' }] })
  const args = { a: { b: 'x', c: 1 }, d: 2 }
  t.match(await react(id, args), { raw: { args } })
  await setSetting(app, 'reactors.undeclared_args', 'strip')
  t.same(((await react(id, args)) as { raw: { args: Json } }).raw.args, { a: { b: 'x' } })
  await setSetting(app, 'reactors.undeclared_args', undefined)
})

t.test('a changed formula is run at once; a configuration that no longer fits it is 400', async (t) => {
  const { id: formula } = await createFormula('module.exports = async () => ({ raw: 1 })')
  const { id } = (await ask('reactor create', { name: 'r', formula: { id: formula } })) as { id: string }
  t.same(await react(id), { raw: 1 })
  const change = (code: string, more: Json = {}) =>
    ask('formula update', { id: formula, ...formulaBody(code, more) })
  await change('module.exports = async () => ({ raw: 2 })')
  t.same(await react(id), { raw: 2 })
  await change(ECHO, { configuration: [{ name: 'KEY', type: 'string' }] })
  await t.rejects(react(id), { code: 'validation', errors: { 'configuration.KEY': ['is required'] } })
})

t.test('what the code returns to be tokenized becomes tokens, all or none', async (t) => {
  const before = ((await ask('token list', { size: 1 })) as { pagination: { total_items: number } })
    .pagination.total_items
  const id = await createReactor(
    'module.exports = async ({ args }) => ({ raw: { ok: true }, tokenize: args.payload })',
  )
  const { key } = await createApplication('private', { permissions: ['token:use'] })
  const payload = {
    card: { type: 'card', data: { number: '4242424242424242' } },
    note: 'n',
    none: null,
    list: [1, true],
  }
  const { tokens, raw } = (await react(id, { payload }, key)) as {
    tokens: { card: Json; note: string; list: string[] }
    raw: Json
  }
  t.same(raw, { ok: true })
  t.match(tokens.card, { type: 'card', data: { number: 'XXXXXXXXXXXX4242' } })
  t.match(await ask('token get', { id: tokens.note }), { data: 'n', type: 'token' }, 'without token:create')
  t.equal(tokens.list.length, 2)
  const refused = await failureOf(
    react(id, { payload: ['good', { type: 'card', data: { number: '1' } }] }, key),
  )
  t.match(refused, { code: 'validation', status: 400 })
  t.ok(Object.keys(refused.errors ?? {})[0]?.endsWith('data.number'))
  const after = ((await ask('token list', { size: 1 })) as { pagination: { total_items: number } }).pagination
    .total_items
  t.equal(after - before, 4, 'nothing of the refused one')
  t.same(await react(id, {}), { raw: { ok: true } })
  t.same(await react(await createReactor('module.exports = async () => undefined')), {})
})

t.test('the client acts for the bound application, in the vault, with its permissions', async (t) => {
  const code = `module.exports = async ({ svc, args }) => {
    const made = await svc.tokens.create({ type: 'token', data: { ssn: '123456789' }, searchIndexes: ['{{ data.ssn }}'], mask: { ssn: '{{ data.ssn | reveal_last: 4 }}' }, containers: ['/pii/'] })
    const child = await svc.tokens.createChild(made.id, { type: 'token', data: 'child', containers: ['/pii/'] })
    const found = await svc.tokens.search({ query: 'data:123456789' })
    const children = await svc.tokens.listChildren(made.id)
    const patched = await svc.tokens.update(made.id, { metadata: { a: 'b' } })
    await svc.tokens.deleteAssociation(made.id, child.id)
    await svc.tokens.createAssociation(child.id, made.id)
    const read = await svc.tokens.retrieve(made.id)
    const listed = await svc.tokens.list({ type: 'token', metadata: { a: 'b' } })
    const byTypes = await svc.tokens.list({ types: 'card, bank' })
    const refused = []
    for (const query of [{ types: 'card,' }, { type: '' }, { id: [''] }, { metadata: {} }, { metadata: 'x' }])
      refused.push(await svc.tokens.list(query).catch((e) => e.status))
    const ids = await svc.tokenize({ x: 'y' }).catch((e) => e.status)
    await svc.tokens.delete(child.id)
    const gone = await svc.tokens.retrieve(child.id).catch((e) => [e.status, e.data.title, e.data.instance !== ''])
    return { raw: { made, found: found.pagination.total_items, children: children.data.map((c) => c.id === child.id), patched: patched.metadata, read: read.data, listed: listed.data.length, byTypes: byTypes.data.length, refused, ids, gone } }
  }`
  const rules = [
    { priority: 1, container: '/pii/', transform: 'mask' as const, permissions: permissionsOf('private') },
  ]
  const bound = await createApplication('private', { rules })
  const id = await createReactor(code, {}, { application: { id: bound.id } })
  const { raw } = (await react(id)) as { raw: Json & { made: Json & { id: string } } }
  t.match(raw, {
    made: { data: { ssn: 'XXXXX6789' }, search_indexes: ['{{ data.ssn }}'], created_by: bound.id },
    found: 1,
    children: [true],
    patched: { a: 'b' },
    read: { ssn: 'XXXXX6789' },
    listed: 1,
    byTypes: 0,
    refused: [400, 400, 400, 400, 400],
    ids: 403,
    gone: [404, 'Not Found', true],
  })
  t.match((await logsOf(raw.made.id)).at(-1), { operation: 'create', actor_id: bound.id })
  await ask('app delete', { id: bound.id })
  await t.rejects(
    react(id),
    { code: 'reactor_failed', status: 500, errors: { error: [/null/] } },
    'a deleted application is unbound',
  )
  t.notOk('application' in ((await ask('reactor get', { id })) as Json))
})

t.test('an application that expired may do nothing in a reactor either', async (t) => {
  const bound = await createApplication('private', { permissions: permissionsOf('private') })
  await ask('app update', {
    id: bound.id,
    name: 'short',
    permissions: ['token:create'],
    expires_at: '2030-01-15T12:00:01Z',
  })
  const id = await createReactor(
    'module.exports = async ({ svc }) => ({ raw: await svc.tokens.create({ type: "token", data: 1 }).catch((e) => e.status) ?? 0 })',
    {},
    { application: { id: bound.id } },
  )
  t.match(await react(id), { raw: { data: undefined } })
  vault.clock.now += 2_000
  t.same(await react(id), { raw: 403 })
})

t.test('runs are kept for the owner, bounded, and go with the reactor', async (t) => {
  const code =
    'module.exports = async ({ args }) => { console.log("got", args.n); if (args.n % 2) throw new Error("odd"); return {} }'
  const id = await createReactor(code)
  const runs = async () =>
    ((await ask('reactor logs', { id, number: 100 })) as { console: { text: string }[] }[]).toReversed()
  await react(id, { n: 2 })
  await failureOf(react(id, { n: 3 }))
  const [odd, even] = await runs()
  t.match(even, {
    reactor_id: id,
    outcome: 'done',
    status: 200,
    console: [{ level: 'log', text: 'got 2' }],
    trace_id: /^[0-9a-f-]{36}$/,
  })
  t.match(odd, {
    outcome: 'reactor_failed',
    status: 500,
    errors: { error: ['odd'] },
    stack: /reactor\.js:1:/,
  })
  t.same(
    (await logsOf(id)).map(({ operation }) => operation),
    ['react', 'create'],
    'a failed run is no react record',
  )
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
})

t.test('a run of the owner reads its tokens, and nothing is shown to another tenant', async (t) => {
  const id = await createReactor('module.exports = async ({ args }) => ({ raw: args.a })')
  await createToken({ id: 'mine', data: 'v' })
  t.same(await ask('reactor react', { id, args: { a: '{{ mine }}' } }), { raw: 'v' })
  const other = await createTenant('stranger')
  const { key } = await createApplication('private', { permissions: ['token:use'] }, other)
  await t.rejects(react(id, {}, key), { code: 'not_found' })
})

t.test('the client goes by the prefix of the server, and limits by the settings of the vault', async (t) => {
  const other = await openTestVault()
  t.teardown(() => other.app.close())
  await setSetting(other.app, 'reactors.time_limit_ms', '700')
  await setSetting(other.app, 'reactors.result_limit_bytes', '1024')
  await setSetting(other.app, 'reactors.isolation', 'process')
  other.app.configureReactors({ prefix: 'bt', allowNet: ['localhost:1'] })
  const run = async (code: string) => {
    const { id } = (await other.ask('reactor create', { name: 'r', code })) as { id: string }
    return other.ask('reactor react', { id })
  }
  t.same(await run('module.exports = async (req) => ({ raw: Object.keys(req) })'), {
    raw: ['args', 'configuration', 'bt', 'req', 'logger'],
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
  await t.rejects(run('module.exports = async () => fetch("http://localhost:1/")'), {
    code: 'reactor_failed',
    errors: { error: [/ECONNREFUSED/] },
  })
  await setSetting(other.app, 'reactors.time_limit_ms', '100')
  await t.rejects(
    run('module.exports = async () => { for (;;); }'),
    { message: /100 ms/ },
    'from the next run on',
  )
})
