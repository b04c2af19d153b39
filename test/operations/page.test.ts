import t from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { EncodedJson, LOCAL_LIMITS, type ResponseLimits } from '../../src/framework/limits.js'
import type { readList } from '../../src/framework/list.js'
import { perform } from '../../src/framework/perform.js'
import { refusalOf } from '../support/refusals.js'
import { openTestVault, permissionsOf, requireOperation } from '../support/test-vault.js'

const MIB = 1024 * 1024
const TOKENS = 18
const isOverPostgres = process.env.COFFER_TEST_ENGINE === 'postgres'
/** The limits of local responses, but with a smaller maximum size, so that the tests need less data. */
const SMALL: ResponseLimits = { ...LOCAL_LIMITS, maxBytes: MIB }

const vault = await openTestVault()
const { app, createApplication } = vault
t.teardown(() => app.close())

async function askFor(limits: ResponseLimits, name: string, input: object, key?: string): Promise<unknown> {
  const caller = key === undefined ? await app.owner({ reveal: true }) : await authenticate(app, key)
  return (await perform(app, caller, requireOperation(name), { ...input }, 'trace', { limits })).result
}
const ask = (name: string, input: object) => askFor(SMALL, name, input)
const askAs = (key: string, name: string, input: object) => askFor(SMALL, name, input, key)

const masked = await createApplication('private', { permissions: ['token:read', 'token:search'] })
const management = await createApplication('management', { permissions: permissionsOf('management') })
const data = '漢'.repeat(MIB / 16 / 3)
for (let count = 1; count <= TOKENS; count++)
  await ask('token create', { id: `large-${count}`, type: 'token', data, metadata: { large: 'yes' } })
await ask('token create', { id: 'parent', type: 'token', data: 1 })
for (let count = 1; count <= TOKENS; count++)
  await ask('token link', { parent_id: 'parent', child_id: `large-${count}` })

interface List {
  pagination: { total_items: number; page_number: number }
  data: { id: string; data?: unknown }[]
}

async function countLogs(): Promise<number> {
  return ((await ask('log list', { size: 1 })) as List).pagination.total_items
}

const LARGE_LISTS: [string, Record<string, unknown>][] = [
  ['token list', { metadata: { large: 'yes' } }],
  ['token search', { query: 'metadata.large:yes' }],
  ['token children', { parent_id: 'parent' }],
]

t.test(
  'a page whose UTF-8 exceeds the limit is refused and not logged, and a smaller page is sent',
  async (t) => {
    t.equal(LOCAL_LIMITS.maxBytes, 16 * MIB, 'the default limit')
    for (const [name, input] of LARGE_LISTS) {
      const before = await countLogs()
      const { code, status, errors } = await refusalOf(ask(name, { ...input, size: TOKENS }))
      t.same([code, status], ['page_too_large', 400], name)
      t.same(errors, { size: ['ask for a smaller size; this page exceeds the limit of 1 MiB'] })
      t.equal(await countLogs(), before, 'a refused page logs no read')
      const list = (await ask(name, { ...input, size: 15 })) as List
      t.equal(list.pagination.total_items, TOKENS)
      t.equal(list.data.length, 15)
      t.equal(list.data[0]?.data, data)
      t.equal(await countLogs(), before + 15, 'every returned token is logged')
    }
  },
)

// @ts-expect-error: over HTTP, the result of `readList` is JSON text, so this result has no items. The function
// `readPage` returns items.
export type Items = Awaited<ReturnType<typeof readList>>['data']

t.test('the size limit of a list applies to the returned data and not to the stored data', async (t) => {
  const before = await countLogs()
  const list = (await askAs(masked.key, 'token list', { size: 100 })) as List
  t.equal(list.data.length, TOKENS + 1)
  t.ok(new EncodedJson(list).bytes < 10_000)
  t.equal(await countLogs(), before + TOKENS + 1)
  const search = (await askAs(masked.key, 'token search', { query: 'type:token', size: 100 })) as List
  t.equal(search.data.length, TOKENS + 1)
})

t.test('a page with a single record is returned, even if the record exceeds the limit', async (t) => {
  await ask('token create', { id: 'huge', type: 'token', data: 'x'.repeat(2 * MIB) })
  for (const input of [{ size: 1 }, { id: ['huge'], size: 100 }]) {
    const list = (await ask('token list', input)) as List
    t.equal(String(list.data[0]?.data).length, 2 * MIB)
  }
  t.match(await refusalOf(ask('token list', { size: 2 })), { errors: { size: [/^ask for a smaller size/] } })
  t.equal(((await ask('token get', { id: 'huge' })) as { id: string }).id, 'huge')
  await ask('token delete', { id: 'huge' })
})

t.test(
  'a record that is deleted while a large page is read is left out of the page without an error',
  async (t) => {
    const listing = askAs(masked.key, 'token list', { size: 100 }) as Promise<List>
    await ask('token delete', { id: 'large-1' })
    const { data: items, pagination } = await listing
    // Over PostgreSQL, the two requests use different connections, so the database may execute either request first.
    const totals = isOverPostgres ? [TOKENS, TOKENS + 1] : [TOKENS + 1]
    t.ok(totals.includes(pagination.total_items), 'the total is that at the moment of the request')
    t.ok([TOKENS, TOKENS + 1].includes(items.length))
    const again = (await askAs(masked.key, 'token list', { size: 100 })) as List
    t.same([again.data.length, again.pagination.total_items], [TOKENS, TOKENS])
  },
)

t.test('the size limit also applies to lists of formulas, reactors and log records', async (t) => {
  const tooLarge = { code: 'page_too_large', errors: { size: [/^ask for a smaller size/] } }
  const code = `module.exports = async () => ({}) //${'x'.repeat(255 * 1024)}`
  for (let count = 0; count < 10; count++) {
    const named = { name: `name ${count % 2}` }
    const formula = (await ask('formula create', { ...named, type: 'private', code })) as { id: string }
    await ask('reactor create', { ...named, formula: { id: formula.id } })
  }
  for (const name of ['formula list', 'reactor list']) {
    await t.rejects(askAs(management.key, name, { size: 100 }), tooLarge, name)
    for (const [more, total] of [
      [{}, 10],
      [{ name: '*1' }, 5],
    ] as const) {
      const { data, pagination } = (await askAs(management.key, name, { ...more, size: 3 })) as List
      t.same([data.length, pagination.total_items], [3, total], name)
    }
  }
  const entity_id = '𝒳'.repeat(400)
  const { number, id: tenant_id } = await app.tenant()
  const about = { tenant_id, actor_id: management.id, entity_id, created_at: '2030-01-15T12:00:00.000+00:00' }
  const kinds = { actor_type: 'application', entity_type: 'token', operation: 'read' } as const
  const record = { ...about, ...kinds, id: app.createUuid(), message: 'Token retrieved', trace_id: 'trace' }
  await app.store.write(async (writer) => {
    for (let count = 0; count < 1_000; count++) await writer.log(number, record, writer.now)
  })
  await t.rejects(ask('log list', { size: 10_000 }), tooLarge)
  t.equal(((await ask('log list', { size: 500 })) as List).data.length, 500)
})
