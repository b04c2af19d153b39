/** Replacing `vault.json`: whatever moment it ends at, the vault opens with one of the two, and only the newer stays. */
import t from 'tap'
import { type Header, readHeader } from '../../src/storage/vault-file.js'
import { draftOf } from './engine-suite.js'
import { createFileEngine, openFileEngine } from './engines.js'
import { FakeFiles, type Fault } from './fake-files.js'
import { createClock, digest, engineKeys, repeatableRandom, testHeader } from './powers.js'

const OLD = testHeader('old')
const NEW = testHeader('new')

let opened = 0

function optionsFor(files: FakeFiles, header: Header) {
  const random = repeatableRandom(`header ${opened++}`)
  const powers = { random, keys: engineKeys(random), clock: createClock(), notice: () => undefined }
  return { ...powers, files, directory: '/vault', header, role: 'command' as const }
}

/** A vault with one row, and its header on the way from old to new until the disk stops; true when it was answered. */
async function changeHeader(files: FakeFiles, faultOf: (steps: number) => Fault | undefined) {
  const engine = await createFileEngine(optionsFor(files, OLD))
  await engine.write((writer) => writer.put(draftOf({ name: 'a', text: 'kept' })))
  const first = files.steps
  files.fault = faultOf(first)
  const isDone = await engine.replaceHeader(NEW).then(
    () => true,
    () => false,
  )
  return { engine, isDone, first, steps: files.steps - first }
}

/** Which header lies there, and that it opens the vault with the row in it. */
async function tell(files: FakeFiles): Promise<unknown> {
  const header = await readHeader(files, '/vault')
  const engine = await openFileEngine(optionsFor(files, header))
  const row = await engine.read((reader) => reader.get(3, 1, digest('id/3/1/a', 16)))
  await engine.close()
  return [header.slots[0], row && Buffer.from(row.sealed).toString()]
}

const WITH_OLD = [{ note: 'old' }, 'kept']
const WITH_NEW = [{ note: 'new' }, 'kept']

t.test('a header that was replaced is refused when it is put back', async (t) => {
  const files = new FakeFiles()
  const { engine } = await changeHeader(files, () => undefined)
  await engine.close()
  t.same(await tell(files), WITH_NEW)
  const older = new FakeFiles()
  await (await createFileEngine(optionsFor(older, OLD))).close()
  const put = files.afterCrash(false)
  put.plant('/vault/vault.json', older.contents().get('/vault/vault.json')!)
  await t.rejects(tell(put), { code: 'vault_damaged' })
})

t.test(
  'a death at any step leaves a vault that opens, with the new header once that was answered',
  async (t) => {
    const whole = await changeHeader(new FakeFiles(), () => undefined)
    t.ok(whole.steps > 8, `${whole.steps} steps`)
    const seen = new Set<string>()
    for (let step = 1; step <= whole.steps + 1; step++) {
      for (const isPowerCut of [false, true]) {
        for (const isTorn of [false, true]) {
          const files = new FakeFiles()
          const { isDone } = await changeHeader(files, (first) => ({
            at: first + step,
            code: 'stop',
            isTorn,
          }))
          const told = await tell(files.afterCrash(isPowerCut))
          const title = `step ${step}${isTorn ? ', torn' : ''}${isPowerCut ? ', power cut' : ''}`
          if (isDone) t.same(told, WITH_NEW, title)
          else
            t.ok(
              [WITH_OLD, WITH_NEW].some((state) => JSON.stringify(state) === JSON.stringify(told)),
              title,
            )
          seen.add(JSON.stringify(told))
        }
      }
    }
    t.equal(seen.size, 2, 'both were met')
  },
)

t.test('an error of the disk at any step is told, and the vault opens', async (t) => {
  const { steps } = await changeHeader(new FakeFiles(), () => undefined)
  for (let step = 1; step <= steps; step++) {
    const files = new FakeFiles()
    const { engine, isDone } = await changeHeader(files, (first) => ({ at: first + step, code: 'EIO' }))
    await engine.close().catch(() => undefined)
    files.fault = undefined
    const told = await tell(files.afterCrash(false))
    t.ok(!isDone || files.failed === 'remove', `step ${step}: it was told, ${files.failed}`)
    if (isDone) t.same(told, WITH_NEW, `step ${step}`)
    t.strictSame(files.openFiles, [], `step ${step}: every file was closed`)
  }
})
