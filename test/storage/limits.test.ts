/**
 * Limits of an engine over files: the number of tables and descriptors, and how long a log record may stay unsynced.
 * The tests also check the errors that the engine reports if the disk refuses a write.
 */
import t from 'tap'
import { toProblem } from '../../src/errors.js'
import { storageError } from '../../src/storage/files.js'
import { diskOptions, pathsOf } from './disk.js'
import { createFileEngine, draftOf, type FileEngine, idOf, logOf, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'

const MAX_TABLES = 64

const optionsFor = (files: FakeFiles, role: 'server' | 'command', notices: string[] = []) => ({
  ...diskOptions(files, role),
  notice: (text: string) => void notices.push(text),
})

const tablesOf = (files: FakeFiles) => pathsOf(files, '/segments/').length
const openTablesOf = (files: FakeFiles) =>
  files.openFiles.filter((path) => path.includes('/segments/')).length

/** Puts two rows and removes one of them. Because the removed row is still in the log, its removal creates a table. */
async function mix(engine: FileEngine, number: number): Promise<void> {
  await engine.write((writer) => writer.put(draftOf({ name: `stays ${number}` })))
  await engine.write((writer) => writer.put(draftOf({ name: `goes ${number}` })))
  await engine.write((writer) => writer.remove(3, 1, idOf(`goes ${number}`)))
  // This read waits for the work that the engine does after its answer to the removal.
  await engine.read(() => 0)
}

t.test('a server that writes and removes rows has few tables and descriptors', async (t) => {
  const files = new FakeFiles()
  const engine = await createFileEngine(optionsFor(files, 'server'))
  let most = 0
  for (let number = 0; number < 300; number++) {
    await mix(engine, number)
    most = Math.max(most, tablesOf(files))
  }
  t.ok(most <= MAX_TABLES + 2, `${most} tables`)
  await engine.read(async (reader) => {
    for (let number = 0; number < 300; number++)
      t.ok((await reader.get(3, 1, idOf(`stays ${number}`))) !== undefined, `row ${number}`)
  })
  await engine.close()
})

t.test('commands that are killed leave only few tables and descriptors', async (t) => {
  let files = new FakeFiles()
  await (await createFileEngine(optionsFor(files, 'command'))).close()
  let most = 0
  let maxOpen = 0
  for (let number = 0; number < 150; number++) {
    const engine = await openFileEngine(optionsFor(files, 'command'))
    await mix(engine, number)
    await engine.read(async (reader) => {
      for (let other = 0; other <= number; other++)
        if ((await reader.get(3, 1, idOf(`stays ${other}`))) === undefined) t.fail(`row ${other} is gone`)
    })
    most = Math.max(most, tablesOf(files))
    maxOpen = Math.max(maxOpen, openTablesOf(files))
    files = files.afterCrash(false)
  }
  t.ok(most <= MAX_TABLES, `${most} tables`)
  t.ok(most > 40, 'the tables need more descriptors than the limit allows')
  t.ok(maxOpen <= 40, `${maxOpen} tables open`)
})

t.test('after a merge of tables has failed, the engine merges tables again', async (t) => {
  const files = new FakeFiles()
  const notices: string[] = []
  const engine = await createFileEngine(optionsFor(files, 'command', notices))
  for (let number = 200; (await engine.status()).sstables < MAX_TABLES - 1; number++)
    await mix(engine, number)
  const { create } = files
  files.create = (path) => {
    if (path.includes('/segments/') && tablesOf(files) === MAX_TABLES)
      throw storageError('create', path, { code: 'EMFILE' })
    return create.call(files, path)
  }
  await mix(engine, 100)
  t.match(notices, [/could not be compacted now\. Coffer will try again.*too many files are open/])
  files.create = create
  await mix(engine, 101)
  t.equal(
    (await engine.status()).sstables,
    MAX_TABLES + 1,
    'a failed merge is not tried again with every unit of work',
  )
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  Date.now = () => now() + 60_000
  await mix(engine, 102)
  t.ok((await engine.status()).sstables < MAX_TABLES)
  t.equal(notices.length, 1)
  await engine.close()
})

t.test('a read that must be logged is refused if an earlier log record has waited for 2 s', async (t) => {
  const files = new FakeFiles()
  let release = () => {}
  files.syncDataBeside = () => new Promise((resolve) => (release = resolve))
  const engine = await createFileEngine(optionsFor(files, 'server'))
  const log = (name: string) => engine.write((writer) => writer.append(logOf(name)), 'soon')
  await log('first')
  const { now } = Date
  Date.now = () => now() + 3_600_000
  await log('first after the clock has jumped').finally(() => {
    Date.now = now
  })
  await new Promise((resolve) => setTimeout(resolve, 1000))
  await log('second')
  await new Promise((resolve) => setTimeout(resolve, 1200))
  await t.rejects(log('third'), { code: 'unavailable', message: /Reads are refused.*disk does not sync/ })
  await t.rejects(engine.checkReady!(), { code: 'unavailable' })
  t.equal(await engine.read(() => 1), 1, 'a read that needs no log record is answered')
  release()
  await new Promise((resolve) => setTimeout(resolve, 50))
  await log('fourth')
  await engine.checkReady!()
  files.syncDataBeside = async () => {}
  await engine.close()
})

t.test(
  'on a full disk, reads and writes are refused, readiness says why, and no response contains a path',
  async (t) => {
    const files = new FakeFiles()
    const engine = await createFileEngine(optionsFor(files, 'server'))
    await engine.checkReady!()
    const { write } = files
    files.write = (_, __, position) => {
      if (position > 0) throw storageError('write', '/vault/journal-x', { code: 'ENOSPC' })
    }
    const put = () => engine.write((writer) => writer.put(draftOf({ name: 'a' })))
    const refusal = await put().catch((error) => error)
    t.match(refusal, { code: 'storage_failed', message: /\/vault\/journal-x/ })
    t.match(toProblem(refusal, 'trace', 'owner').detail, /\/vault\/journal-x/)
    const { detail } = toProblem(refusal, 'trace')
    t.match(detail, /no space is left/)
    t.notMatch(detail, /\/vault|journal/)
    const log = () => engine.write((writer) => writer.append(logOf('log')), 'soon')
    await t.rejects(log(), { code: 'storage_failed' })
    await t.rejects(engine.checkReady!(), { code: 'storage_failed', message: /no space is left/ })
    files.write = write
    await put()
    await engine.checkReady!()
    await engine.close()
  },
)
