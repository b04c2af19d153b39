/** Rows of a damaged vault are read as they were or not at all, whatever byte is broken and whatever file is gone. */
import t from 'tap'
import type { Finding, Row } from '../../src/storage/engine.js'
import { openDamaged, readDamagedRows } from '../../src/storage/lsm/maintenance/damaged.js'
import type { LsmOptions } from '../../src/storage/lsm/options.js'
import { draftOf } from './engine-suite.js'
import { asLog, createFileEngine, type FileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock, digest, engineKeys, repeatableRandom, testHeader } from './powers.js'

/** Stands for a seal: a text that cannot be changed unnoticed. */
const seal = (text: string) => `${text}|${Buffer.from(digest(text, 8)).toString('hex')}`
const isSealed = (text: string) => text === seal(text.split('|')[0]!)
const keyOf = (name: string) => digest(`key/1/${name}`, 8)
const OTHER = 22
let seeds = 0

function optionsFor(files: FakeFiles, directory: string): LsmOptions & { role: 'command' } {
  const random = repeatableRandom(`damaged ${seeds++}`)
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

/** Rows of another kind. */
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

/** What can be read; the vault must be as it was. */
async function readAll(files: FakeFiles) {
  const before = files.contents()
  const findings: Finding[] = []
  const vault = await openDamaged(optionsFor(files, '/vault'), findings)
  const told = { records: [] as string[], logs: [] as string[] }
  let missing = vault.lostChanges
  for (const row of readDamagedRows(vault, () => missing++)) {
    const text = textOf(row)
    if (isSealed(text)) told[row.kind === OTHER ? 'logs' : 'records'].push(text)
    else missing++
  }
  for (const { sstable } of vault.sstables) sstable.close()
  for (const [path, bytes] of before)
    if (!files.contents().get(path)!.equals(bytes)) throw new Error(`${path} changed`)
  return { told, missing, findings }
}

function damaged(files: FakeFiles, path: string, change: (bytes: Buffer) => Buffer | undefined): FakeFiles {
  const copy = files.afterCrash(false)
  copy.plant(path, change(Buffer.from(files.contents().get(path)!)))
  return copy
}

const sorted = ({ records, logs }: { records: string[]; logs: string[] }) => [...records, ...logs].sort()

t.test('a sound vault is read whole', async (t) => {
  const { files, truth } = await makeVault()
  const { told, missing, findings } = await readAll(files.afterCrash(false))
  t.strictSame([sorted(told), missing, findings], [sorted(truth), 0, []])
})

t.test('any byte broken: what is read is the truth, and little is lost', async (t) => {
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
      const { told, missing, findings } = await readAll(copy)
      const found = new Set(sorted(told))
      // What a lost frame had replaced or removed may be there again, as it was.
      const strange = [...found].filter((text) => !sorted(truth).includes(text) && !old.has(text))
      if (strange.length > 0) t.fail(`${path} at ${at}: ${strange}`)
      const lost = sorted(truth).filter((text) => !found.has(text)).length
      if (lost > 0 && findings.length === 0 && missing === 0) t.fail(`${path} at ${at}: ${lost} lost, untold`)
      counts.damages++
      counts.lost += lost
      counts.most = Math.max(counts.most, lost)
    }
  }
  t.comment(JSON.stringify(counts))
  t.ok(counts.damages > 100)
  t.ok(counts.lost / counts.damages < 1.75, 'one or two rows a byte, of 14')
  t.ok(counts.most <= 4, 'and never more than four')
})

t.test('any file gone', async (t) => {
  const { files, truth } = await makeVault()
  for (const path of files.contents().keys()) {
    if (path.endsWith('vault.json')) continue
    const { told, findings, missing } = await readAll(damaged(files, path, () => undefined))
    t.ok(told.logs.every((text) => truth.logs.includes(text)))
    t.ok(told.records.length >= 2, `${path}: ${told.records.length} records`)
    if (path.includes('/head-')) t.match([sorted(told), findings.length], [sorted(truth), 1])
    else t.ok(findings.length > 0 || missing > 0, `${path}: something is said to be missing`)
  }
})
