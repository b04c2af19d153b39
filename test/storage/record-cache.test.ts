/** Opened records that are kept: one version of a row is never taken for another. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import type { ApplicationRecord, RecordOf } from '../../src/domain/records/records.js'
import { RecordCache } from '../../src/storage/barrier/record-cache.js'
import type { Row } from '../../src/storage/engine.js'
import type { StoreReader } from '../../src/storage/store.js'
import { openTestVault } from '../operations/vault.js'
import { digest } from './powers.js'

function rowOf(name: string, rev: number, nonce: string): Row {
  const sealed = new Uint8Array(Buffer.from(nonce.padEnd(60, '.')))
  const id = digest(name, 16)
  return {
    kind: 6,
    tenant: 1,
    id,
    seq: 1,
    rev,
    created: 1,
    modified: 0,
    expires: 0,
    keys: new Uint8Array(0),
    sealed,
  }
}

t.test('a version is opened once, and every other version anew', async (t) => {
  const cache = new RecordCache()
  const opened: string[] = []
  const open = (what: string) => (row: Row) => {
    opened.push(`${what} ${row.rev}`)
    return { id: what, permissions: [] } as unknown as RecordOf['application']
  }
  const first = cache.open('application', rowOf('a', 1, 'one'), open('a'))
  t.equal(cache.open('application', rowOf('a', 1, 'one'), open('a')), first)
  cache.open('application', rowOf('a', 2, 'two'), open('a'))
  cache.open('application', rowOf('a', 2, 'another seal of the same number'), open('a'))
  cache.open('application', rowOf('b', 1, 'one'), open('b'))
  t.strictSame(opened, ['a 1', 'a 2', 'a 2', 'b 1'])
  cache.forget(digest('b', 16))
  cache.open('application', rowOf('b', 1, 'one'), open('b'))
  t.equal(opened.length, 5, 'what was forgotten is opened again')
  t.ok(Object.isFrozen(first) && Object.isFrozen((first as ApplicationRecord).permissions))
})

t.test('what is kept of a row does not keep the bytes that it was read out of', async (t) => {
  const cache = new RecordCache()
  const openFrom = (frame: Buffer) => {
    const row = { ...rowOf('a', 1, 'one'), sealed: frame.subarray(100, 160) }
    cache.open('application', row, () => ({ id: 'a' }) as unknown as RecordOf['application'])
    return new WeakRef(frame.buffer)
  }
  const frame = openFrom(Buffer.allocUnsafeSlow(1_000_000))
  setFlagsFromString('--expose-gc')
  // A reference that was looked at lives until the turn is over.
  await new Promise(setImmediate)
  runInNewContext('gc')()
  t.equal(frame.deref(), undefined)
})

t.test('tokens are never kept', async (t) => {
  const cache = new RecordCache()
  let opened = 0
  const open = () => ({ id: String(++opened) }) as unknown as RecordOf['token']
  for (let time = 0; time < 3; time++) cache.open('token', rowOf('a', 1, 'one'), open)
  t.equal(opened, 3)
})

t.test('keeps so many and no more', async (t) => {
  const cache = new RecordCache()
  let opened = 0
  const open = () => ({ id: String(++opened) }) as unknown as RecordOf['application']
  for (let index = 0; index < 4097; index++) cache.open('application', rowOf(`${index}`, 1, 'one'), open)
  cache.open('application', rowOf('4096', 1, 'one'), open)
  t.equal(opened, 4097, 'the newest is kept')
  cache.open('application', rowOf('0', 1, 'one'), open)
  t.equal(opened, 4098, 'the oldest is not')
})

t.test(
  'what a name led to is found under the change counter it was read under, and under no other',
  async (t) => {
    const cache = new RecordCache()
    const record = { id: 'a' } as unknown as RecordOf['application']
    cache.keep('application', 1, 'a', 5, record)
    t.equal(cache.find('application', 1, 'a', 5), record)
    t.equal(cache.find('application', 1, 'a', 6), undefined, 'another change counter')
    t.equal(cache.find('application', 2, 'a', 5), undefined, 'another tenant')
    t.equal(cache.find('api_key', 1, 'a', 5), undefined, 'another kind')
    cache.keep('application', 1, 'b', 6, record)
    t.equal(cache.find('application', 1, 'a', 5), undefined, 'what was read before is gone')
    cache.forget(digest('a', 16))
    t.equal(cache.find('application', 1, 'b', 6), undefined, 'where a row is removed, nothing is left of it')
    for (let index = 0; index < 4097; index++) cache.keep('tenant', 0, `${index}`, 1, record)
    t.equal(cache.find('tenant', 0, '0', 1), undefined, 'so many and no more')
    t.equal(cache.find('tenant', 0, '4096', 1), record)
    t.notOk(cache.keeps('token'))
  },
)

t.test('a name always leads to the record as it is now, whatever was done and undone', async (t) => {
  const { app } = await openTestVault()
  const names = ['a', 'b', 'c']
  const record = (id: string, name: string) =>
    ({ id, name, type: 'public', permissions: [], rules: [] }) as unknown as ApplicationRecord
  const model = new Map<string, string>()
  const check = async (reader: StoreReader, expected: Map<string, string>) => {
    for (const id of names) t.equal((await reader.get('application', 1, id))?.name, expected.get(id))
  }
  const step = fc.record({ id: fc.constantFrom(...names), remove: fc.boolean() })
  const unit = fc.record({ steps: fc.array(step, { maxLength: 3 }), fails: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(unit, { maxLength: 8 }), async (units) => {
      for (const { steps, fails } of units) {
        let wanted = model
        const work = app.store.write(async (writer) => {
          wanted = new Map(model)
          for (const [index, { id, remove }] of steps.entries()) {
            const isThere = wanted.has(id)
            if (remove && isThere) await writer.remove('application', 1, id)
            else if (isThere) await writer.replace('application', 1, record(id, `${index}`))
            else await writer.insert('application', 1, record(id, `${index}`))
            if (remove && isThere) wanted.delete(id)
            else wanted.set(id, `${index}`)
            await check(writer, wanted)
          }
          if (fails) throw new Error('undone')
        })
        await (fails ? t.rejects(work, { message: 'undone' }) : work)
        if (!fails) {
          model.clear()
          for (const [id, name] of wanted) model.set(id, name)
        }
        await app.store.read((reader) => check(reader, model))
        await app.store.write((writer) => check(writer, model))
      }
    }),
    { numRuns: 60 },
  )
})

t.test('what a failed unit of work wrote is seen by nobody, though its number is used again', async (t) => {
  const { app, createApplication } = await openTestVault()
  const { id } = await createApplication('public', { permissions: ['token:create'] })
  const read = () => app.store.read((reader) => reader.get('application', 1, id))
  const before = (await read())!
  const failing = app.store.write(async (writer) => {
    await writer.replace('application', 1, { ...before, name: 'never' })
    t.equal((await writer.get('application', 1, id))?.name, 'never', 'the work sees what it wrote')
    throw new Error('undone')
  })
  await t.rejects(failing, { message: 'undone' })
  t.equal((await read())?.name, before.name)
  await app.store.write((writer) => writer.replace('application', 1, { ...before, name: 'renamed' }))
  t.equal((await read())?.name, 'renamed')
})
