/**
 * Tests of the second copy of the rows that contain keys of tenants. The copy survives the loss of any table, is up to
 * date after a crash, and contains no removed row.
 */
import t from 'tap'
import { KINDS } from '../../src/domain/records/records.js'
import { type Finding, KEY_ROWS, type Row } from '../../src/storage/engine.js'
import { createContext } from '../../src/storage/lsm/context.js'
import { findKeyRows } from '../../src/storage/lsm/key-copies.js'
import { rekeyVault } from '../../src/storage/lsm/maintenance/rows.js'
import { DamagedVault, verifyVault } from '../../src/storage/lsm/maintenance/verify.js'
import { readContents, writeContents } from '../../src/storage/lsm/manifest.js'
import { openLsmTree } from '../../src/storage/lsm/recovery.js'
import { INSERT, REMOVE } from '../../src/storage/rows/frame.js'
import { readHeader } from '../../src/storage/vault-file.js'
import { damaged, diskOptions, flipped, holds, pathsOf, put } from './disk.js'
import { createFileEngine, draftOf, type FileEngine, idOf, openFileEngine, textOf } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { digest, engineKeys, testHeader } from './powers.js'

const secretOf = (name: string) => `keys of ${name}`
const draft = (name: string, text = secretOf(name)) => ({
  ...draftOf({ name, text, tenant: 0 }),
  kind: KEY_ROWS,
})

const add = (engine: FileEngine, name: string) => engine.write((writer) => writer.put(draft(name)))
const change = (engine: FileEngine, name: string, text: string) =>
  engine.write(async (writer) => {
    const { seq, created } = (await writer.get(KEY_ROWS, 0, idOf(name, 0)))!
    await writer.put({ ...draft(name, text), seq, created })
  })
const remove = (engine: FileEngine, name: string) =>
  engine.write((writer) => writer.remove(KEY_ROWS, 0, idOf(name, 0)))

async function optionsFor(files: FakeFiles, role: 'command' | 'server' = 'command') {
  const options = diskOptions(files, role)
  return files.stat('/vault') === undefined
    ? options
    : { ...options, header: await readHeader(files, '/vault') }
}

/** Returns the distinct texts of the readable rows that contain keys. */
function readKeys(files: FakeFiles, options = diskOptions(files)): string[] {
  const findings: Finding[] = []
  const vault = new DamagedVault(options, findings)
  const found: Row[] = []
  for (const { row } of vault.rows(() => undefined)) if (row.kind === KEY_ROWS) found.push(row)
  for (const { row } of vault.keyRows(() => undefined)) found.push(row)
  vault.close()
  return [...new Set(found.map(textOf))].sort()
}

/** Returns the texts of the second copies. */
function readCopies(files: FakeFiles): string[] {
  const vault = new DamagedVault(diskOptions(files), [])
  const texts = [...vault.keyRows(() => undefined)].map(({ row }) => textOf(row)).sort()
  vault.close()
  return texts
}

async function makeVault(role: 'command' | 'server' = 'command') {
  const files = new FakeFiles()
  const engine = await createFileEngine(await optionsFor(files, role))
  for (const name of ['one', 'two']) await add(engine, name)
  await put(engine, 'token')
  await engine.compact()
  return { files, engine }
}

const BOTH = [secretOf('one'), secretOf('two')]

t.test('keys are readable after the loss of any table, or of any bytes of a table', async (t) => {
  t.equal(KEY_ROWS, KINDS.tenant)
  const { files, engine } = await makeVault()
  await engine.close()
  const tables = pathsOf(files, '/segments/')
  t.equal(tables.length, 2)
  t.strictSame(await verifyVault(diskOptions(files), () => ({})), {
    ...{ findings: [], readable: { records: 3, logs: 0 }, segments: 1 },
  })
  for (const table of tables) {
    const { length } = files.contents().get(table)!
    for (const [title, change] of [
      ['missing', () => undefined],
      ['empty', () => Buffer.alloc(0)],
      ['zeros', () => Buffer.alloc(length)],
    ] as const) {
      const copy = damaged(files, table, change)
      t.strictSame(
        readKeys(copy).filter((text) => !/^\0/.test(text)),
        BOTH,
        `${table} ${title}`,
      )
      t.ok((await verifyVault(diskOptions(copy), () => ({}))).findings.length > 0, title)
    }
    for (let at = 0; at < length; at++) {
      const copy = damaged(files, table, flipped(at))
      const keys = readKeys(copy)
      if (!BOTH.every((text) => keys.includes(text))) t.fail(`${table} at ${at}: ${keys}`)
      copy.plant('/vault/state', undefined)
      const found = readKeys(copy)
      if (!BOTH.every((text) => found.includes(text))) t.fail(`${table} at ${at}, without state: ${found}`)
    }
  }
})

t.test('when the removal of a row is answered, no file contains the row', async (t) => {
  const { files, engine } = await makeVault()
  t.equal(holds(files, secretOf('one')).length, 2)
  await remove(engine, 'one')
  t.strictSame(holds(files, secretOf('one')), [])
  await add(engine, 'three')
  await remove(engine, 'three')
  t.strictSame(holds(files, secretOf('three')), [], 'the row was removed before it was flushed')
  await add(engine, 'four')
  await engine.flush()
  await remove(engine, 'four')
  await add(engine, 'five')
  await engine.flush()
  t.strictSame(readCopies(files), [secretOf('five'), secretOf('two')])
  t.strictSame(holds(files, secretOf('four')), [])
  await change(engine, 'five', 'changed')
  await engine.flush()
  t.strictSame(holds(files, secretOf('five')), [], 'a flush overwrites a replaced row')
  await engine.close()
  t.strictSame(readCopies(files), ['changed', secretOf('two')])
})

t.test('a row that is removed while other rows are flushed is in no table', async (t) => {
  const { files, engine } = await makeVault()
  await engine.close()
  const tree = openLsmTree(await optionsFor(files))
  const append = (kind: typeof INSERT | typeof REMOVE, name: string) => {
    const { seq, rev } = tree.counters
    const times = { created: 1, modified: 0, expires: 0 }
    const row = { ...draft(name), seq, rev, ...times, sealed: Buffer.from(secretOf(name)) }
    tree.append([{ kind, row }], { ...tree.counters, seq: seq + 1, rev: rev + 1 }, true)
  }
  const inTables = () => holds(files, secretOf('one')).filter((path) => path.includes('/segments/'))
  append(INSERT, 'three')
  tree.freeze()
  append(REMOVE, 'one')
  t.equal(inTables().length, 2)
  tree.eraseRemoved([idOf('one', 0)])
  t.strictSame(inTables(), [])
  while (!tree.advanceFlush());
  tree.finishFlush()
  t.strictSame(inTables(), [], 'the flush that had begun before the removal does not write the row again')
  tree.flush()
  tree.close()
  t.strictSame(readCopies(files), [secretOf('three'), secretOf('two')])
})

t.test(
  'after a crash at any step, the second copy has each existing row that contains keys, and no removed row',
  async (t) => {
    const acts: ((engine: FileEngine) => Promise<unknown>)[] = [
      (engine) => add(engine, 'three'),
      (engine) => engine.flush(),
      (engine) => remove(engine, 'one'),
      (engine) => change(engine, 'two', 'changed'),
      (engine) => engine.flush(),
      (engine) => remove(engine, 'two'),
      (engine) => engine.compact(),
    ]
    let crashes = 0
    for (let at = 1; ; at++) {
      const { files, engine } = await makeVault()
      files.fault = { at: files.steps + at, code: 'stop' }
      const done: number[] = []
      try {
        for (const [index, act] of acts.entries()) {
          await act(engine)
          done.push(index)
        }
      } catch {
        crashes++
      }
      const isOver = done.length === acts.length
      await engine.close().catch(() => undefined)
      for (const isPowerCut of [false, true]) {
        const copy = files.afterCrash(isPowerCut)
        const before = readKeys(copy)
        const again = await openFileEngine(await optionsFor(copy))
        const live = await again.read(async (reader) => {
          const rows = await Promise.all(
            ['one', 'two', 'three'].map((name) => reader.get(KEY_ROWS, 0, idOf(name, 0))),
          )
          return rows.flatMap((row) => (row === undefined ? [] : textOf(row))).sort()
        })
        const lost = live.filter((text) => !before.includes(text))
        if (lost.length > 0) t.fail(`step ${at}: ${lost} not readable after the crash`)
        await again.compact()
        await again.close()
        t.strictSame(readCopies(copy), live, `step ${at}, power cut ${isPowerCut}`)
        if (done.includes(2) && holds(copy, secretOf('one')).length > 0) t.fail(`step ${at}: a removed row`)
        if (done.includes(5) && holds(copy, 'changed').length > 0) t.fail(`step ${at}: a removed row`)
        const { findings } = await verifyVault(diskOptions(copy), () => ({}))
        t.strictSame(findings, [])
      }
      if (isOver) break
    }
    t.ok(crashes > 20, `${crashes} crashes`)
  },
)

t.test(
  'a vault of an older version gets a second copy of keys with the next flush, and a lost copy is repaired',
  async (t) => {
    const { files, engine } = await makeVault()
    await engine.close()
    const context = createContext(await optionsFor(files))
    const contents = readContents(context)
    t.equal(findKeyRows(contents.sstables).length, 2)
    writeContents(context, { ...contents, keyCopies: undefined })
    t.strictSame(readCopies(files), [])
    const older = await openFileEngine(await optionsFor(files))
    await put(older, 'other')
    await older.flush()
    await older.close()
    t.strictSame(readCopies(files), BOTH)

    const copyOf = readContents(context).keyCopies!.path
    for (const change of [() => undefined, (bytes: Buffer) => bytes.subarray(0, -1)]) {
      const copy = damaged(files, copyOf, change)
      t.equal((await verifyVault(diskOptions(copy), () => ({}))).findings.length, 1)
      const repaired = await openFileEngine(await optionsFor(copy))
      await repaired.compact()
      await repaired.close()
      t.strictSame((await verifyVault(diskOptions(copy), () => ({}))).findings, [])
      t.strictSame(readCopies(copy), BOTH)
    }
  },
)

t.test('after a rekey, both copies of the tenant keys are encrypted with the new vault keys', async (t) => {
  const { files, engine } = await makeVault()
  await engine.close()
  const present = await optionsFor(files)
  const header = { ...testHeader(), mac: digest('new', 16).toString() }
  const keys = engineKeys(present.random, 'new')
  const before = pathsOf(files, '/segments/')
  await rekeyVault({
    ...{ present, header, keys, progress: () => undefined },
    prepare: async () => async (row) => ({
      ...row,
      sealed: Buffer.from(`new ${textOf(row)}`),
      keys: new Uint8Array(0),
    }),
  })
  const after = pathsOf(files, '/segments/')
  t.equal(after.length, 2)
  t.notOk(after.some((path) => before.includes(path)))
  for (const table of after) {
    const copy = damaged(files, table, () => undefined)
    t.strictSame(
      readKeys(copy, { ...diskOptions(copy), keys, header }),
      BOTH.map((text) => `new ${text}`),
    )
  }
  t.equal(holds(files, `new ${BOTH[0]}`).length, 2)
})
