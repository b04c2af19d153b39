/** Batches of `token import`: which rows are created or refused, and what the vault records about a run. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { RowResult } from '../../src/operations/token/import.js'
import { openTestVault, START } from '../support/test-vault.js'

const row = (data: unknown, more: object = {}) => ({ type: 'token', data, ...more })
const statuses = (results: readonly RowResult[]) => results.map(({ status }) => status)

async function open() {
  const vault = await openTestVault()
  const send = async (input: object) => (await vault.ask('token import', { ...input })).results
  const count = async () => (await vault.ask('token list')).pagination.total_items
  return { vault, send, count }
}

t.test(
  'each row of an import batch is created, deduplicated or refused independently of other rows',
  async (t) => {
    const { vault, send, count } = await open()
    t.teardown(() => vault.app.close())
    const rows = [
      row('a', { id: 'first-id' }),
      row('b', { id: 'first-id' }),
      row('c', { deduplicate_token: true }),
      row('c', { deduplicate_token: true }),
      { type: 'card', data: { number: '1' } },
      null,
      'text',
      row('d', { expires_at: '2000-01-01T00:00:00Z' }),
      row('e'),
    ]
    const results = await send({ rows })
    const expected = 'created refused created deduplicated refused refused refused refused created'
    t.same(statuses(results), expected.split(' '))
    t.match(results[1]!.reason, /id already/)
    t.equal(results[3]!.id, results[2]!.id)
    t.match(results[4]!.errors, { 'data.number': [/digits/] })
    t.equal(await count(), 3)
    const { data } = await vault.ask('log list', { entity_type: 'token' })
    t.equal(data.filter(({ operation }) => operation === 'create').length, 3, 'each creation is logged')
    const { id: token_intent_id } = await vault.ask('intent create', row('f'))
    const conversions = await send({
      rows: [{ token_intent_id, id: 'first-id' }, { token_intent_id }, { token_intent_id }],
    })
    t.same(
      statuses(conversions),
      ['refused', 'created', 'refused'],
      'an intent is kept if its row is refused',
    )
  },
)

t.test(
  'in stop mode, the first refused row ends an import batch, and a dry run changes nothing',
  async (t) => {
    const { vault, send, count } = await open()
    t.teardown(() => vault.app.close())
    const rows = [row('a'), row('b', { id: 'x-1' }), row(null), row('c')]
    t.same(statuses(await send({ rows, rehearses: true })), ['created', 'created', 'refused', 'created'])
    t.equal(await count(), 0)
    t.same(statuses(await send({ rows, stops: true })), ['created', 'created', 'refused'])
    t.equal(await count(), 2)
  },
)

t.test('a batch of an import run is imported once, even if it is sent several times', async (t) => {
  const { vault, send, count } = await open()
  t.teardown(() => vault.app.close())
  const run = randomUUID()
  const first = await send({ run, first: 0, rows: [row('a'), row('b')] })
  t.same(await send({ run, first: 0, rows: [row('a'), row('b')] }), first, 'sent again')
  t.same(await send({ run, first: 0, rows: [] }), first, 'asked for')
  t.same(await send({ run, first: 1, rows: [row('b')] }), first.slice(1), 'in parts')
  t.equal(await count(), 2)
  const mixed = { run, first: 2, rows: [row('c'), row(null)], stops: true }
  t.same(statuses(await send(mixed)), ['created', 'refused'])
  t.same(statuses(await send({ run, first: 3, rows: [row(null)], stops: true })), ['refused'])
  t.same(statuses(await send({ run, first: 3, rows: [row('better')], stops: true })), ['created'])
  t.equal(await count(), 4)
  for (const wrong of [0, 1, 5])
    await t.rejects(send({ run, first: wrong, rows: [row('x')] }), { code: 'conflict' })
  await t.rejects(send({ run: randomUUID(), first: 9, rows: [row('x')] }), { code: 'conflict' })
  const { key } = await vault.createApplication('private', { permissions: ['token:create'] })
  await t.rejects(
    vault.askAs(key, 'token import', { run, first: 3, rows: [] }),
    { code: 'conflict' },
    'another actor',
  )
  vault.clock.now = START + 31 * 24 * 3_600_000
  await t.rejects(send({ run, first: 4, rows: [row('x')] }), { message: /older than 30 days/ })
  t.equal(await count(), 4)
})

t.test('the import of a row needs the permission for the containers of the row', async (t) => {
  const { vault } = await open()
  t.teardown(() => vault.app.close())
  const rules = [{ priority: 1, container: '/a/', transform: 'mask', permissions: ['token:create'] }] as const
  const { key } = await vault.createApplication('private', { rules: [...rules] as never })
  const rows = [row('a', { containers: ['/a/'] }), row('b', { containers: ['/b/'] })]
  const { results } = await vault.askAs(key, 'token import', { rows })
  t.same(statuses(results), ['created', 'refused'])
  const reader = await vault.createApplication('private', { permissions: ['token:read'] })
  await t.rejects(vault.askAs(reader.key, 'token import', { rows }), { code: 'forbidden' })
})
