import t from 'tap'
import { openTestVault, permissionsOf } from '../support/test-vault.js'

const KIB = 1024
const MIB = 1024 * KIB

const { app, ask, askAs, createApplication } = await openTestVault()
t.teardown(() => app.close())

const rule = {
  priority: 1,
  container: '/',
  transform: 'reveal' as const,
  permissions: permissionsOf('private'),
}
const worker = await createApplication('private', { rules: [rule] })

/** What the code's `raw` is, when it is run as the worker. */
async function run(body: string): Promise<unknown> {
  const code = `module.exports = async ({ svc }) => { ${body} }`
  const formula = await ask('formula create', { name: 'f', type: 'private', code })
  const reactor = { name: 'r', formula: { id: formula.id }, application: { id: worker.id } }
  const { id } = await ask('reactor create', reactor)
  return (await askAs(worker.key, 'reactor react', { id })).raw
}

const readsOf = async (entity_id: string) =>
  (await ask('log list', { entity_id })).data.filter(({ operation }) => operation === 'read').length

t.test('an answer of the client has at most 4 MiB of UTF-8; what is refused was not read', async (t) => {
  const third = '漢'.repeat(MIB / 2)
  for (const id of ['a', 'b', 'c'])
    await ask('token create', { id: `third-${id}`, type: 'token', data: third })
  const raw = await run(`
    const sizes = [1, 2, 3]
    const list = (size) => svc.tokens.list({ size }).then(({ data }) => data.map(({ data }) => data.length),
      ({ status, data }) => [status, data.errors])
    const search = (size) => svc.tokens.search({ size }).then(({ data }) => data.length, ({ status }) => status)
    return { raw: [await list(2), await list(3), await search(2), await search(3)] }`)
  t.same(raw, [
    [MIB / 2, MIB / 2].slice(0, 2),
    [400, { size: ['ask for a smaller size; this page exceeds the limit of 4 MiB'] }],
    2,
    400,
  ])
  t.equal(await readsOf('third-c'), 2)
  t.equal(await readsOf('third-a'), 0)
  await ask('token create', { id: 'beyond', type: 'token', data: 'x'.repeat(4 * MIB) })
  t.same(
    await run(`
      const refused = (work) => work.then(() => 'answered', ({ status, message }) => [status, message])
      return { raw: [await refused(svc.tokens.retrieve('beyond')), await refused(svc.tokens.list({ id: 'beyond' }))] }`),
    Array(2).fill([400, 'The answer exceeds the limit of 4 MiB.']),
  )
  t.equal(await readsOf('beyond'), 0)
})

t.test('what the client is given and what the code returns is counted in UTF-8', async (t) => {
  t.same(
    await run(`
      const data = '漢'.repeat(${Math.floor(MIB / 3) - 50})
      const { id } = await svc.tokens.create({ type: 'token', data })
      const kept = await svc.tokens.retrieve(id)
      const beyond = await svc.tokens.create({ type: 'token', data: '漢'.repeat(${MIB} - 100) })
        .then(() => 'created', (error) => error.message)
      return { raw: [kept.data === data, beyond] }`),
    [true, 'The arguments of tokens.create are too large'],
  )
  const most = Math.floor(MIB / 3) - 1
  t.equal(String(await run(`return { raw: '漢'.repeat(${most}) }`)).length, most)
  const failure = await run(`return { raw: '漢'.repeat(${most + 1}) }`).catch((error: unknown) => error)
  t.match(failure, {
    status: 500,
    errors: { error: [`The result has ${3 * (most + 1) + 2} bytes; at most ${MIB} are allowed`] },
  })
  const quotes = '"'.repeat(MIB / 2 - 1)
  t.equal(
    await run(`return { raw: '"'.repeat(${MIB / 2 - 1}) }`),
    quotes,
    'also what is escaped twice on its way',
  )
})

t.test('arguments are bounded together with what their tokens hold', async (t) => {
  const formula = {
    name: 'f',
    type: 'private',
    code: 'module.exports = async ({ args }) => ({ raw: args.a.length })',
  }
  const { id } = await ask('formula create', formula)
  const reactor = await ask('reactor create', { name: 'r', formula: { id } })
  for (let count = 0; count < 6; count++)
    await ask('token create', { id: `part-${count}`, type: 'token', data: 'x'.repeat(3 * MIB) })
  const react = (parts: string[]) =>
    askAs(worker.key, 'reactor react', { id: reactor.id, args: { a: parts } })
  const name = (count: number) => `{{ part-${count} }}`
  t.match(await react([0, 1, 2].map(name)), { raw: 3 })
  const refused = { status: 400, errors: { args: [/^must have at most 16 MiB/] } }
  for (const parts of [[0, 1, 2, 3, 4, 5].map(name), Array.from({ length: 6 }, (_, at) => `${name(0)}${at}`)])
    t.match(await react(parts).catch((error: unknown) => error), refused)
  const elsewhere = { ...rule, container: '/elsewhere/' }
  const { key } = await createApplication('private', { rules: [elsewhere] })
  const payload = [0, 1, 2, 3, 4, 5].map(name)
  await t.rejects(
    askAs(key, 'token detokenize', { payload }),
    { code: 'forbidden' },
    'who may not read tokens does not learn their size',
  )
})
