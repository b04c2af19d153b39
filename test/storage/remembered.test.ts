/**
 * A store that keeps a cache between units of work, on a disk that sometimes fails. Each read must return what a store
 * without a cache returns.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { ApplicationRecord } from '../../src/domain/records/records.js'
import { CofferError } from '../../src/errors.js'
import { createSealedStore } from '../../src/storage/barrier/sealed-store.js'
import type { Store, StoreReader, StoreWriter } from '../../src/storage/store.js'
import { diskOptions } from './disk.js'
import { createFileEngine, type FileEngine, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { newKeyring, newTenant } from './log-vault.js'

const TENANTS = [1, 2]
const IDS = ['a', 'b']
const keyring = newKeyring()

const step = fc.record({
  does: fc.constantFrom('put', 'put', 'put', 'remove', 'drop'),
  tenant: fc.constantFrom(...TENANTS),
  id: fc.constantFrom(...IDS),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
const unit = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  isUndone: fc.boolean(),
  durability: fc.constantFrom('now', 'soon'),
})
const act = fc.record({
  /** Units of work that run at the same time share a frame of the log. */
  units: fc.array(unit, { maxLength: 3 }),
  after: fc.constantFrom('nothing', 'nothing', 'compact', 'reopen'),
  /** The disk fails after this number of its steps. If the units of work take fewer steps, the disk does not fail. */
  faultIn: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
})

let names = 0

async function run(t: Test, writer: StoreWriter, { does, tenant, id }: Step): Promise<void> {
  const known = await writer.get('tenant', 0, `${tenant}`)
  if (known === undefined) {
    if (does !== 'put') return
    await writer.insert('tenant', 0, newTenant(keyring, tenant))
  }
  if (does === 'drop') {
    await writer.removeTenant(tenant)
    t.equal(await writer.get('tenant', 0, `${tenant}`), undefined)
    return
  }
  const before = await writer.get('application', tenant, id)
  if (does === 'put') {
    const record = { id, name: `${names++}` } as ApplicationRecord
    await (before === undefined ? writer.insert : writer.replace).call(writer, 'application', tenant, record)
    t.equal((await writer.get('application', tenant, id))?.name, record.name)
  } else if (does === 'remove' && before !== undefined) {
    await writer.remove('application', tenant, id)
    t.equal(await writer.get('application', tenant, id), undefined)
  }
}

/** Returns the whole content of the store as one text. */
async function readAll(reader: StoreReader): Promise<string> {
  const all: unknown[] = []
  for (const tenant of TENANTS) {
    const known = await reader.get('tenant', 0, `${tenant}`)
    const names = IDS.map(async (id) => (await reader.get('application', tenant, id))?.name ?? '')
    all.push(known === undefined ? 'none' : [known.keys.data, ...(await Promise.all(names))])
    if (known === undefined) await Promise.allSettled(names)
  }
  return JSON.stringify(all)
}

/** Accepts errors of the disk and of the unit of work. @throws `error` if it is any other error */
function expectFailure(error: unknown): void {
  const isExpected = error instanceof CofferError ? error.code === 'storage_failed' : `${error}` === 'undone'
  if (!isExpected) throw error
}

t.test(
  'after any changes, rollbacks and failures, a store with a cache reads the data that is stored',
  async (t) => {
    let faults = 0
    const property = fc.asyncProperty(fc.array(act, { minLength: 2, maxLength: 10 }), async (acts) => {
      const files = new FakeFiles()
      const flushAt = { bytes: 1_000_000, rows: 6 }
      const options = { ...diskOptions(files, 'server'), keys: keyring.engine, flushAt }
      let engine: FileEngine = await createFileEngine(options)
      let store: Store = createSealedStore(engine, keyring)
      const reopen = async () => {
        await store.close().catch(expectFailure)
        engine = await openFileEngine(options)
        store = createSealedStore(engine, keyring)
      }
      for (const { units, after, faultIn } of acts) {
        files.failed = undefined
        files.fault = faultIn === undefined ? undefined : { at: files.steps + faultIn, code: 'EIO' }
        const works = units.map(({ steps, isUndone, durability }) =>
          store.write(
            async (writer) => {
              for (const each of steps) await run(t, writer, each)
              if (isUndone) throw 'undone'
            },
            durability as 'now' | 'soon',
          ),
        )
        await Promise.all(works.map((work) => work.catch(expectFailure)))
        if (after === 'compact') await engine.compact().catch(expectFailure)
        files.fault = undefined
        if (files.failed !== undefined) faults++
        if (after === 'reopen') await reopen()
        // A write with the durability `soon` may be synced between two reads, so both results are correct.
        const readAnew = () => createSealedStore(engine, keyring).read(readAll)
        const [earlier, remembered, later] = [await readAnew(), await store.read(readAll), await readAnew()]
        t.ok([earlier, later].includes(remembered), `${remembered} is neither ${earlier} nor ${later}`)
        const written = await createSealedStore(engine, keyring).write(readAll)
        t.equal(await store.write(readAll), written, 'a writer with a cache sees unsynced changes too')
        // After some failures an engine refuses all writes until it is opened again.
        const isUsable = files.failed === undefined || (await engine.flush().then(() => true, expectFailure))
        if (!isUsable) await reopen()
      }
      await store.close()
      t.strictSame(files.openFiles, [], 'every descriptor is closed')
    })
    await fc.assert(property, { numRuns: 150 })
    t.ok(faults > 20, `the disk failed ${faults} times`)
  },
)
