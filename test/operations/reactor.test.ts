import t from 'tap'
import { Turns } from '../../src/domain/expression/budget.js'
import { findExpressions } from '../../src/operations/token/detokenize.js'
import { refusalOf } from '../support/refusals.js'
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

/** A reactor of a new formula with this code. */
async function createReactor(code: string, formulaMore: Json = {}, more: Json = {}): Promise<string> {
  const { id } = await createFormula(code, formulaMore)
  const reactor = await ask('reactor create', { name: 'a reactor', formula: { id }, ...more })
  return reactor.id
}

const react = (id: string, args?: Json, key = worker.key) =>
  askAs(key, 'reactor react', { id, ...(args === undefined ? {} : { args }) })

async function createToken(input: Json): Promise<string> {
  return (await ask('token create', { type: 'token', ...input })).id
}

const logsOf = async (entity_id: string) => (await ask('log list', { entity_id })).data

const ECHO =
  'module.exports = async ({ args, configuration, svc }) => ({ raw: { args, configuration, svc } })'

t.test('official formulas are made by the owner, and seen and used by every tenant', async (t) => {
  const official = await createFormula(ECHO, { type: 'official', name: 'Official echo' })
  const other = await createTenant('other')
  t.match(await ask('formula get', { id: official.id }, other), { id: official.id, type: 'official' })
  const mine = await createFormula(ECHO)
  await t.rejects(ask('formula get', { id: mine.id }, other), { code: 'not_found' }, 'private ones are not')
  const reactor = await ask('reactor create', { name: 'r', formula: { id: official.id } }, other)
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
    (await refusalOf(ask('formula update', { id: official.id, ...formulaBody('y') }))).errors?.type?.[0],
    'must stay official',
  )
  const listed = await ask('formula list', {}, other)
  t.same(
    listed.data.map(({ id }) => id),
    [official.id],
  )
  await ask('formula delete', { id: official.id })
})

t.test('no more expressions are compiled than show that the tokens are too many', async (t) => {
  const expressions = await app.expressions()
  const compiled = t.capture(expressions, 'compile', expressions.compile)
  const document = Array.from({ length: 1000 }, (_, at) => `{{ many-${at} }}`)
  const finding = findExpressions(document, { expressions: async () => expressions, turns: new Turns() })
  await t.rejects(finding, { code: 'validation' })
  t.equal(compiled().length, 101)
})

t.test('undeclared arguments are stripped where the vault says so', async (t) => {
  const id = await createReactor(ECHO, { request_parameters: [{ name: 'a.b', type: 'string' }] })
  const args = { a: { b: 'x', c: 1 }, d: 2 }
  t.match(await react(id, args), { raw: { args } })
  await setSetting(app, 'reactors.undeclared_args', 'strip')
  t.same(((await react(id, args)) as { raw: { args: Json } }).raw.args, { a: { b: 'x' } })
  await setSetting(app, 'reactors.undeclared_args', undefined)
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
  t.notOk('application' in (await ask('reactor get', { id })))
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
  const runs = async () => (await ask('reactor logs', { id, number: 100 })).toReversed()
  await react(id, { n: 2 })
  await refusalOf(react(id, { n: 3 }))
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
    const { id } = await other.ask('reactor create', { name: 'r', code })
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
