/** Changing every key: the same rows under new seals, at whatever step it is killed,. */
import t from 'tap'
import type { RandomSource } from '../../src/crypto/ports.js'
import { type RekeyOptions, rekeyVault } from '../../src/storage/lsm/maintenance/rekey.js'
import { readHeader } from '../../src/storage/vault-file.js'
import { draftOf } from './engine-suite.js'
import { asLog, createFileEngine, type FileEngine, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock, digest, engineKeys, repeatableRandom, testHeader } from './powers.js'

let opened = 0

/** The vault under its first keys, or (`changed`) under its second. */
function optionsFor(files: FakeFiles, changed = false) {
  const random: RandomSource = repeatableRandom(`rekey ${opened++}`)
  const header = testHeader(changed ? 'second' : 'first')
  const shape = { files, directory: '/vault', header, random, clock: createClock(), notice: () => undefined }
  return {
    ...shape,
    keys: engineKeys(random, changed ? 'second' : 'first'),
    role: 'command' as const,
    cacheBytes: 100_000,
  }
}

const idOf = (name: string) => digest(`id/3/1/${name}`, 16)
/** Ids under the second keys. */
const newIdOf = (id: Uint8Array) => digest(`second/${Buffer.from(id).toString('hex')}`, 16)

function rekeyOptions(files: FakeFiles): RekeyOptions {
  const next = optionsFor(files, true)
  return {
    present: optionsFor(files),
    header: next.header,
    keys: next.keys,
    prepare: async () => async (row) => {
      const keys = digest(row.kind === 255 ? 'second/logs' : 'second/all', 8)
      return {
        id: newIdOf(row.id),
        keys,
        sealed: Buffer.from(`${Buffer.from(row.sealed)} anew at ${row.rev}`),
      }
    },
    progress: () => undefined,
  }
}

async function makeVault(): Promise<FakeFiles> {
  const files = new FakeFiles()
  const engine = await createFileEngine(optionsFor(files))
  const put = (name: string) =>
    engine.write(async (writer) => {
      await writer.put(draftOf({ name, expires: name === 'b' ? 80_000 : 0 }))
      await writer.append(asLog(draftOf({ name: `log ${name}` })))
    })
  await put('a')
  await put('b')
  await engine.flush()
  await put('c')
  await engine.flush()
  await engine.write((writer) => writer.remove(3, 1, idOf('a')))
  await put('d')
  await engine.close()
  return files
}

async function tell(engine: FileEngine, changed: boolean): Promise<string> {
  const query = { tenant: 1, page: 1, size: 20 } as const
  const keyOf = (name: string) => digest(changed ? `second/${name}` : `key/1/${name}`, 8)
  return engine.read(async (reader) => {
    const records = await reader.find({ ...query, kind: 3, all: keyOf('all') })
    const logs = await reader.find({ ...query, kind: 255, all: keyOf('logs') })
    const lines = [...records.rows, ...logs.rows].map(
      ({ seq, rev, expires, sealed }) => `${seq}/${rev}/${expires}/${Buffer.from(sealed)}`,
    )
    const c = await reader.get(3, 1, changed ? newIdOf(idOf('c')) : idOf('c'))
    return [records.total, logs.total, c?.seq, ...lines].join('\n')
  })
}

const anew = (told: string) => told.replace(/^(\d+\/(\d+)\/.*)$/gm, '$1 anew at $2')

async function openEither(files: FakeFiles): Promise<{ told: string; isChanged: boolean }> {
  const header = await readHeader(files, '/vault')
  const isChanged = JSON.stringify(header).includes('second')
  const engine = await openFileEngine(optionsFor(files, isChanged))
  const told = await tell(engine, isChanged)
  const { findings } = await engine.verify(() => ({}))
  if (findings.length > 0) throw new Error(JSON.stringify(findings))
  await engine.close()
  return { told, isChanged }
}

t.test('every row is there under new seals, and the old keys open nothing', async (t) => {
  const files = await makeVault()
  const { told: before } = await openEither(files)
  const old = new Set([...files.contents().keys()])
  const steps: string[] = []
  await rekeyVault({ ...rekeyOptions(files), progress: (done, total) => steps.push(`${done}/${total}`) })
  const left = [...files.contents().keys()].filter((path) => old.has(path)).sort()
  t.strictSame(left, ['/vault/state', '/vault/vault.json'], 'no log or table of before is left')
  const { told, isChanged } = await openEither(files)
  t.equal(isChanged, true)
  t.equal(told, anew(before))
  t.equal(steps.at(-1), '7/7')
  await t.rejects(openFileEngine(optionsFor(files)), { code: 'vault_damaged' })
})

t.test('killed at any step the vault opens whole, and the change can be begun again', async (t) => {
  const vault = await makeVault()
  const { told: before } = await openEither(vault.afterCrash(false))
  const whole = vault.afterCrash(false)
  const first = whole.steps
  await rekeyVault(rekeyOptions(whole))
  const steps = whole.steps - first
  t.ok(steps > 25, `${steps} steps`)
  for (let at = 1; at <= steps; at++) {
    const isPowerCut = at % 2 === 0
    const files = vault.afterCrash(false)
    files.fault = { at: files.steps + at, code: 'stop' }
    await rekeyVault(rekeyOptions(files)).catch(() => undefined)
    const left = files.afterCrash(isPowerCut)
    const title = `step ${at}${isPowerCut ? ', power cut' : ''}`
    const { told, isChanged } = await openEither(left)
    t.equal(told, isChanged ? anew(before) : before, title)
    if (isChanged) continue
    await rekeyVault(rekeyOptions(left))
    t.strictSame(await openEither(left), { told: anew(before), isChanged: true }, `${title}: begun again`)
  }
})
