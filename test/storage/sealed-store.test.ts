import t, { type Test } from 'tap'
import type { RecordOf, TokenRecord } from '../../src/domain/records/records.js'
import { RecordCache } from '../../src/storage/barrier/record-cache.js'
import { createSealedStore } from '../../src/storage/barrier/sealed-store.js'
import { select } from '../../src/storage/barrier/sealing.js'
import type { Draft, Engine, EngineWriter, Row } from '../../src/storage/engine.js'
import type { Condition } from '../../src/storage/store.js'
import { createTestEngine } from '../support/ephemeral.js'
import { newKeyring, newTenant } from './log-vault.js'

const START = Date.parse('2030-01-01T00:00:00Z')
const keyring = newKeyring()

/** The parts of a row that an engine receives. */
type Given = Pick<Row, 'kind' | 'id' | 'keys' | 'sealed'>

/** Wraps an engine. The wrapper keeps the rows that were put, and can return other rows in place of stored rows. */
function watch(engine: Engine) {
  const drafts: Given[] = []
  const forge: { row?: (row: Row) => Row } = {}
  const put = (writer: EngineWriter) => (draft: Draft) => {
    const seal = (rev: number) => {
      const sealed = draft.seal(rev)
      drafts.push({ ...draft, sealed })
      return sealed
    }
    return writer.put({ ...draft, seal })
  }
  const get =
    (writer: EngineWriter) =>
    async (...args: Parameters<EngineWriter['get']>) => {
      const row = await writer.get(...args)
      return row && (forge.row?.(row) ?? row)
    }
  const write = (work: (writer: EngineWriter) => unknown, durability?: 'now' | 'soon') =>
    engine.write((writer) => work(changed(writer, { put: put(writer), get: get(writer) })), durability)
  return { drafts, forge, engine: changed(engine, { write: write as Engine['write'] }) }
}

/** Returns a copy of the object with some methods replaced. */
function changed<T extends object>(object: T, methods: Partial<T>): T {
  return new Proxy(object, {
    get: (_, name) => {
      const member = methods[name as keyof T] ?? object[name as keyof T]
      return typeof member === 'function' ? member.bind(object) : member
    },
  })
}

async function open(t: Test) {
  const clock = { now: START }
  const watched = watch(await createTestEngine({ keys: keyring.engine, clock: () => clock.now }))
  const store = createSealedStore(watched.engine, keyring)
  t.teardown(() => store.close())
  await store.write(async (writer) => {
    for (const number of [1, 2]) await writer.insert('tenant', 0, newTenant(keyring, number))
  })
  watched.drafts.length = 0
  return { store, drafts: watched.drafts, forge: watched.forge, clock }
}

function token(id: string, change: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id,
    tenant_id: 'tenant-1',
    type: 'token',
    data: 'plain secret',
    fingerprint: `print-${id}`,
    fingerprint_expression: '{{ data }}',
    containers: ['/a/b/'],
    metadata: { Customer: 'Ada' },
    created_by: 'owner',
    created_at: '',
    ...change,
  }
}

t.test('a record in the store can be found by each of its look-up keys', async (t) => {
  const { store } = await open(t)
  await store.write(async (writer) => writer.insert('token', 1, token('one'), { search: ['Ada Lovelace'] }))
  const find = (where: object) =>
    store.read(async (reader) => (await reader.find('token', 1, { where, page: 1, size: 5 } as never)).total)
  t.same(await store.read((reader) => reader.get('token', 1, 'one')), token('one'))
  t.equal(
    await find({ field: 'folded.Customer', value: 'ada' }),
    1,
    'the record is found by its lower-cased metadata value',
  )
  t.equal(
    await find({ field: 'entry.Customer', value: 'Ada' }),
    1,
    'the record is found by its exact metadata value',
  )
  t.equal(await find({ field: 'entry.Customer', value: 'ada' }), 0)
  t.equal(await find({ field: 'search', value: 'ada lovelace' }), 1, 'the record is found by a search index')
  t.equal(await find({ field: 'ancestor', value: '/a/' }), 1, 'the record is found by a parent container')
  t.equal(await find({ and: [{ field: 'type', value: 'token' }, { not: { ids: ['one'] } }] }), 0)
})

t.test('the rows and keys that an engine receives contain no plaintext', async (t) => {
  const { store, drafts } = await open(t)
  await store.write(async (writer) => {
    await writer.insert('token', 1, token('same'))
    await writer.insert('token', 2, token('same'))
  })
  const [first, second] = drafts.filter(({ kind }) => kind === 3) as [Given, Given]
  for (const { sealed, keys, id } of [first, second])
    for (const bytes of [sealed, keys, id])
      t.notMatch(Buffer.from(bytes).toString('latin1'), /plain secret|same|Ada|ada/)
  t.not(Buffer.compare(first.id, second.id), 0, 'an id has different row ids in two tenants')
  const split = (keys: Uint8Array) =>
    Array.from({ length: keys.length / 8 }, (_, at) =>
      Buffer.from(keys.subarray(8 * at, 8 * at + 8)).toString('hex'),
    )
  t.equal(split(first.keys).length, new Set(split(first.keys)).size, 'each key is passed once')
  t.same(
    split(first.keys).filter((key) => split(second.keys).includes(key)),
    [],
    'two tenants have no key in common',
  )
})

t.test('a row moved to another id, or an older version of a row, cannot be decrypted', async (t) => {
  const { store, forge } = await open(t)
  await store.write(async (writer) => {
    await writer.insert('token', 1, token('one'))
    await writer.insert('token', 1, token('two', { data: 'other' }))
  })
  let older: Row | undefined
  forge.row = (row) => {
    if (row.kind === 3) older ??= row
    return row
  }
  await store.write((writer) => writer.get('token', 1, 'one'))
  await store.write((writer) => writer.replace('token', 1, token('one', { data: 'newer' })))
  const get = (id: string) => store.write((writer) => writer.get('token', 1, id))
  forge.row = (row) => (row.kind === 3 ? { ...row, sealed: older!.sealed } : row)
  await t.rejects(get('one'), { code: 'vault_damaged' }, 'an older version of the row is refused')
  // The forged row also has the revision of the other row, so only the id of the forged row is wrong.
  forge.row = (row) => (row.kind === 3 ? { ...row, sealed: older!.sealed, rev: older!.rev } : row)
  await t.rejects(get('two'), { code: 'vault_damaged' }, 'another row')
  delete forge.row
  t.match(await store.read((reader) => reader.get('token', 1, 'one')), { data: 'newer' })
})

t.test('an id can be used again only after its token has expired or was removed', async (t) => {
  const { store, clock } = await open(t)
  const insert = (change: Partial<TokenRecord> = {}, expires?: number) =>
    store.write(async (writer) =>
      writer.insert('token', 1, token('one', change), expires === undefined ? {} : { expires }),
    )
  await insert({}, START + 1000)
  await t.rejects(insert(), { code: 'conflict' })
  clock.now += 1000
  t.equal(await store.read((reader) => reader.get('token', 1, 'one')), undefined, 'expired')
  await insert({ data: 'second' })
  t.match(await store.read((reader) => reader.get('token', 1, 'one')), { data: 'second' })
  const remove = () => store.write((writer) => writer.remove('token', 1, 'one'))
  const replace = () => store.write((writer) => writer.replace('token', 1, token('one')))
  await remove()
  for (const work of [remove, replace]) await t.rejects(work(), { code: 'not_found' })
  await insert({ data: 'third' })
  t.match(await store.read((reader) => reader.get('token', 1, 'one')), { data: 'third' })
})

t.test(
  'a cached record is found by its kind, tenant, id and counter, and the cache holds a limited number of records',
  async (t) => {
    const cache = new RecordCache()
    const record = { id: 'a', permissions: [] } as unknown as RecordOf['application']
    cache.put('application', 1, 'a', 5, record)
    t.ok(Object.isFrozen(record.permissions))
    const found = [
      ...[cache.find('application', 1, 'a', 5), cache.find('application', 1, 'a', 6)],
      ...[cache.find('application', 2, 'a', 5), cache.find('api_key', 1, 'a', 5)],
    ]
    t.strictSame(found, [record, undefined, undefined, undefined])
    for (let index = 0; index < 4097; index++) cache.put('tenant', 0, `${index}`, 1, record as never)
    t.equal(cache.find('tenant', 0, '0', 1), undefined)
    t.notOk(cache.holds('token'))
  },
)

t.test('removing a tenant removes the records and the keys of the tenant', async (t) => {
  const { store } = await open(t)
  await store.write(async (writer) => writer.insert('token', 1, token('one')))
  const before = await store.write((writer) => writer.fingerprint(1, 'text'))
  t.match(before, /^[1-9A-HJ-NP-Za-km-z]{43,44}$/)
  t.not(
    await store.write((writer) => writer.fingerprint(2, 'text')),
    before,
    'the new tenant has another fingerprint',
  )
  await store.write((writer) => writer.removeTenant(1))
  await t.rejects(
    store.read((reader) => reader.get('token', 1, 'one')),
    { code: 'not_found' },
  )
  t.equal(await store.read((reader) => reader.get('tenant', 0, '1')), undefined)
  t.match(await store.read((reader) => reader.get('tenant', 0, '2')), { name: 'tenant 2' })
})

t.test(
  'an engine receives the simplest form of a condition, so a condition with one key is read from an index',
  async (t) => {
    const field = { field: 'type', value: 'card' }
    const whereOf = (condition: Condition) => select(keyring.vault, 'token', 1, condition).where
    t.strictSame(whereOf({ and: [{ and: [field] }, { and: [] }] }), whereOf(field))
    t.notOk(
      'where' in select(keyring.vault, 'token', 1, { and: [{ and: [] }] }),
      'everything has no condition',
    )
  },
)
