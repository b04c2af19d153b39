/**
 * A damaged vault gives what can be read of it to a new one: rows as they were or not at all, whatever byte is broken and
 * whatever file is gone, and a log whose chain holds again.
 */
import t from 'tap'
import { CofferError } from '../../src/errors.js'
import type { CheckRow, Row } from '../../src/storage/engine.js'
import { type Salvage, salvageRows } from '../../src/storage/lsm/maintenance/salvage.js'
import type { LsmOptions } from '../../src/storage/lsm/options.js'
import { writeHeader } from '../../src/storage/vault-file.js'
import { draftOf } from './engine-suite.js'
import { asLog, createFileEngine, type FileEngine, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock, digest, engineKeys, repeatableRandom, testHeader } from './powers.js'

/** Stands for a seal: a text that cannot be changed unnoticed. */
const seal = (text: string) => `${text}|${Buffer.from(digest(text, 8)).toString('hex')}`
const check: CheckRow = (row) => {
  const sealed = Buffer.from(row.sealed).toString('latin1')
  return sealed === seal(sealed.split('|')[0]!) ? {} : { problem: 'its seal is broken' }
}
const keyOf = (name: string) => digest(`key/1/${name}`, 8)
const OTHER = 22
let seeds = 0

function optionsFor(files: FakeFiles, directory: string): LsmOptions & { role: 'command' } {
  const random = repeatableRandom(`salvage ${seeds++}`)
  const shape = { files, directory, header: testHeader(), random, notice: () => undefined }
  return { ...shape, keys: engineKeys(random), clock: createClock(), role: 'command', cacheBytes: 100_000 }
}

/** Rows in three tables and in three frames; some replaced, one removed. */
async function makeVault() {
  const files = new FakeFiles()
  const engine = await createFileEngine(optionsFor(files, '/vault'))
  const put = (name: string, text = name, seq?: number) =>
    engine.write(async (writer) => {
      const draft = draftOf({ name, text: seal(text), keys: ['all'] })
      await writer.put(seq === undefined ? draft : { ...draft, seq, created: 1_000 })
      await writer.append(logEntry(seal(`log ${text}`)))
    })
  await put('a')
  await put('b')
  await engine.flush()
  await put('c')
  await engine.flush()
  await put('d')
  await put('a', 'a again', 1)
  await engine.flush()
  await put('e')
  await put('b', 'b again', 3)
  await engine.write((writer) => writer.remove(3, 1, digest('id/3/1/c', 16)))
  await put('f')
  const truth = await tell(engine)
  await engine.close()
  return { files, truth }
}

/** Rows of another kind: what is salvaged of a log is shown with the barrier, in `log-salvage.test.ts`. */
function logEntry(text: string) {
  const shape = { kind: OTHER, tenant: 1, modified: 0, expires: 0, keys: keyOf('logs') }
  return asLog({ ...shape, id: digest(text, 16), seal: () => Buffer.from(text) })
}

const textOf = ({ sealed }: Pick<Row, 'sealed'>) => Buffer.from(sealed).toString()

async function tell(engine: FileEngine): Promise<{ records: string[]; logs: string[] }> {
  const shape = { tenant: 1, page: 1, size: 50 }
  return engine.read(async (reader) => {
    const records = await reader.find({ ...shape, kind: 3, all: keyOf('all') })
    const logs = await reader.find({ ...shape, kind: OTHER, all: keyOf('logs') })
    return { records: records.rows.map(textOf), logs: logs.rows.map(textOf) }
  })
}

/** Salvages into `/new`, and gives what is there; the old vault must be as it was. */
async function salvage(files: FakeFiles) {
  const before = files.contents()
  for (const path of ['/new', '/new/segments']) files.makeDirectory(path)
  const target = optionsFor(files, '/new')
  const result: Salvage = await salvageRows({
    present: optionsFor(files, '/vault'),
    target,
    learn: () => undefined,
    logs: { take: () => true, lose: () => undefined },
    reseal: async (row) => {
      const { problem } = check(row)
      if (problem !== undefined) throw new CofferError('vault_damaged', problem)
      return { id: row.id, sealed: row.sealed, keys: keyOf(row.kind === OTHER ? 'logs' : 'all') }
    },
  })
  for (const [path, bytes] of before)
    if (!files.contents().get(path)!.equals(bytes)) throw new Error(`${path} changed`)
  await writeHeader(files, '/new', target.random, target.header)
  const engine = await openFileEngine(target)
  const told = await tell(engine)
  const { findings } = await engine.verify(check)
  await engine.write((writer) => writer.put(draftOf({ name: 'new', text: seal('new'), keys: ['all'] })))
  await engine.close()
  return {
    ...result,
    told,
    findings: result.findings,
    isSound: findings.length === 0,
  }
}

function damaged(files: FakeFiles, path: string, change: (bytes: Buffer) => Buffer | undefined): FakeFiles {
  const copy = files.afterCrash(false)
  copy.plant(path, change(Buffer.from(files.contents().get(path)!)))
  return copy
}

t.test('a sound vault is salvaged whole', async (t) => {
  const { files, truth } = await makeVault()
  const { told, missing, findings, isSound } = await salvage(files.afterCrash(false))
  t.strictSame(
    { told, missing, findings, isSound },
    { told: truth, missing: {}, findings: [], isSound: true },
  )
})

t.test('any byte broken: what comes is the truth, and little is lost', async (t) => {
  const { files, truth } = await makeVault()
  const counts = { damages: 0, lost: 0, most: 0 }
  const old = new Set(['a', 'b', 'c'].map(seal))
  for (const [path, bytes] of files.contents()) {
    if (path.endsWith('vault.json')) continue
    for (let at = 5; at < bytes.length; at += 29) {
      const copy = damaged(files, path, (changed) => {
        changed[at]! ^= 0x40
        return changed
      })
      const { told, isSound, missing, findings } = await salvage(copy)
      const title = `${path} at ${at}`
      if (!isSound) t.fail(`${title}: the new vault is damaged`)
      // What a lost frame had replaced or removed may be there again, as it was.
      const strange = told.records.filter((text) => !truth.records.includes(text) && !old.has(text))
      if (strange.length > 0 || told.logs.some((text) => !truth.logs.includes(text)))
        t.fail(`${title}: ${strange}`)
      const lost =
        truth.records.length +
        truth.logs.length -
        new Set(
          [...told.records, ...told.logs].filter(
            (text) => truth.records.includes(text) || truth.logs.includes(text),
          ),
        ).size
      if (lost > 0 && findings.length === 0 && Object.keys(missing).length === 0)
        t.fail(`${title}: ${lost} lost, untold`)
      counts.damages++
      counts.lost += lost
      counts.most = Math.max(counts.most, lost)
    }
  }
  t.comment(JSON.stringify(counts))
  t.ok(counts.damages > 100)
  // Log rows are in the tables of records, so that there are fewer bytes for as many rows.
  t.ok(counts.lost / counts.damages < 1.75, 'one or two rows a byte, of 14')
  t.ok(counts.most <= 4, 'and never more than four')
})

t.test('any file gone', async (t) => {
  const { files, truth } = await makeVault()
  for (const path of files.contents().keys()) {
    if (path.endsWith('vault.json')) continue
    const { told, isSound, findings, missing } = await salvage(damaged(files, path, () => undefined))
    t.ok(isSound, path)
    t.ok(told.logs.every((text) => truth.logs.includes(text)))
    t.ok(told.records.length >= 2, `${path}: ${told.records.length} records`)
    if (path.includes('/head-'))
      t.match({ told, findings, missing }, { told: truth, findings: { length: 1 }, missing: {} })
    else
      t.ok(findings.length > 0 || Object.keys(missing).length > 0, `${path}: something is said to be missing`)
  }
})
