/**
 * The engines of a single process: the guarantees of every engine, and the guarantees that only a vault on disk gives.
 */
import t from 'tap'
import { KINDS } from '../../src/domain/records/records.js'
import { CofferError } from '../../src/errors.js'
import { QUEUE_ROWS } from '../../src/storage/engine.js'
import { openLsmTree } from '../../src/storage/lsm/recovery.js'
import { finish } from '../../src/storage/lsm/sstable/write-tables.js'
import { REMOVE } from '../../src/storage/rows/frame.js'
import { tombstone } from '../../src/storage/rows/row.js'
import { diskOptions, get, holds, put, remove, replace, rowsOf, until, walsOf } from './disk.js'
import { engineSuite, type OpenedEngine } from './engine-suite.js'
import {
  allOf,
  createFileEngine,
  createMemoryEngine,
  draftOf,
  type FileEngine,
  idOf,
  LOG_KIND,
  logOf,
  openFileEngine,
} from './engines.js'
import { FakeFiles } from './fake-files.js'
import { createClock } from './powers.js'

t.setTimeout(200_000)

async function openNew(role: 'command' | 'server'): Promise<OpenedEngine> {
  const options = diskOptions(new FakeFiles(), role)
  let current: FileEngine = await createFileEngine(options)
  let flushes = 0
  return {
    engine: current,
    clock: options.clock,
    // Every third flush also compacts.
    flush: () => (++flushes % 3 === 0 ? current.compact() : current.flush()),
    reopen: async () => {
      await current.close()
      current = await openFileEngine(options)
      return current
    },
  }
}

const openInMemory = async (): Promise<OpenedEngine> => {
  const clock = createClock()
  return { engine: createMemoryEngine(clock), clock }
}

t.test('the in-memory engine gives the guarantees of every engine', async (t) => engineSuite(t, openInMemory))
t.test('the engine of a command gives the guarantees of every engine', async (t) =>
  engineSuite(t, () => openNew('command')),
)
t.test('the engine of a server gives the guarantees of every engine', async (t) =>
  engineSuite(t, () => openNew('server')),
)

/** Returns the bytes of the row `name`. No file contains these bytes by chance. */
const secretOf = (name: string) => `sealed bytes of ${name}, ${'x'.repeat(40)}`

t.test('the write-ahead log is flushed when its rows have more keys than the limit', async (t) => {
  for (const keys of [10_000, 40]) {
    const options = { ...diskOptions(new FakeFiles()), flushAt: { bytes: 1_000_000, rows: 1_000, keys } }
    const engine = await createFileEngine(options)
    for (let at = 0; at < 60; at++) await put(engine, `row-${at}`)
    t.equal(options.files.list('/vault/segments').length > 0, keys === 40, `${keys} keys`)
    await engine.close()
  }
})

t.test('a server flushes its write-ahead log even if the server only reads', async (t) => {
  const flushAt = { bytes: 2_000, rows: 1_000 }
  const options = { ...diskOptions(new FakeFiles(), 'server'), flushAt }
  const engine = await createFileEngine(options)
  const deadline = Date.now() + 10_000
  for (let at = 0; options.files.list('/vault/segments').length === 0 && Date.now() < deadline; at++) {
    await engine.write((writer) => writer.append(logOf(`log-${at}`)), 'soon')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  t.not(options.files.list('/vault/segments').length, 0)
  await engine.close()
})

t.test('after a removal is acknowledged, no file contains the row', async (t) => {
  const options = diskOptions(new FakeFiles())
  const { files } = options
  const engine = await createFileEngine(options)
  for (const name of ['a', 'b', 'c']) await put(engine, name, secretOf(name))
  await engine.flush()
  t.equal(holds(files, secretOf('a')).length, 1, 'the file contains the row before its removal')
  await remove(engine, 'a')
  t.strictSame(holds(files, secretOf('a')), [], 'the row is removed from the table')
  const wals = () => walsOf(files)
  const before = wals()
  await put(engine, 'd', secretOf('d'))
  t.strictSame(wals(), before)
  await remove(engine, 'd')
  t.not(wals()[0], before[0], 'the row was removed from the log, so a new log replaced the old, sealed log')
  t.strictSame(holds(files, secretOf('d')), [])
  await replace(engine, 'b', secretOf('b2'))
  t.equal(
    holds(files, secretOf('b')).length,
    1,
    'an older version of a row stays in the file until the newer version is flushed',
  )
  await engine.flush()
  t.strictSame(holds(files, secretOf('b')), [])
  t.equal(holds(files, secretOf('b2')).length, 1)
  t.equal(holds(files, secretOf('c')).length, 1)
  t.match(await engine.status(), { rows: { records: 2 } })
  await engine.close()
})

t.test('a removal from a queue causes no flush, and the next flush overwrites the row', async (t) => {
  const options = { ...diskOptions(new FakeFiles(), 'server'), eraseAfterMs: 1 }
  const { files } = options
  const engine = await createFileEngine(options)
  const [QUEUED = 0] = QUEUE_ROWS
  t.strictSame([...QUEUE_ROWS], [KINDS.event_batch, KINDS.waiting_batch])
  const draft = (name: string) => ({ ...draftOf({ name, text: secretOf(name) }), kind: QUEUED })
  const removeOf = (name: string) => engine.write((writer) => writer.remove(QUEUED, 1, idOf(name)), 'soon')
  await engine.write((writer) => writer.put(draft('a')))
  await engine.flush()
  t.equal(holds(files, secretOf('a')).length, 1)
  await engine.write((writer) => writer.put(draft('b')))
  const before = walsOf(files)
  await removeOf('b')
  t.strictSame(walsOf(files), before, 'the removal does not replace the log')
  await removeOf('a')
  t.match(await engine.status(), { rows: { records: 0 } })
  await until(async () => holds(files, secretOf('a')).length === 0)
  await engine.close()
  t.strictSame([...holds(files, secretOf('a')), ...holds(files, secretOf('b'))], [])
})

t.test('a command leaves a short write-ahead log and few tables for the next command', async (t) => {
  const options = diskOptions(new FakeFiles())
  await (await createFileEngine(options)).close()
  const run = async (work: (engine: FileEngine, name: string) => Promise<unknown>) => {
    let largest = 0
    for (let name = 0; name < 300; name++) {
      const engine = await openFileEngine(options)
      const { walBytes, sstables } = await engine.status()
      largest = Math.max(largest, walBytes)
      t.ok(sstables <= 4, `${sstables} tables`)
      await work(engine, String(name))
      await engine.close()
    }
    return largest
  }
  const largest = await run((engine, name) => put(engine, name, 'x'))
  t.ok(largest > 48 * 100 && largest < 48 * 400, `a log has at most ${largest} bytes`)
  // A command that only reads also replaces a row: the head of the audit log.
  const replaced = await run((engine) => replace(engine, '0', 'x'.repeat(2000)))
  t.ok(
    replaced > 32 * 2000 && replaced < 34 * 2200,
    `a log in which one row was replaced often has at most ${replaced} bytes`,
  )
  const engine = await openFileEngine(options)
  t.match(await engine.status(), { rows: { records: 300 } })
  await engine.close()
})

t.test(
  'a server soon overwrites the older version of a row, even if the server has written little since then',
  async (t) => {
    const options = { ...diskOptions(new FakeFiles(), 'server'), eraseAfterMs: 1 }
    const { files } = options
    const engine = await createFileEngine(options)
    await put(engine, 'a', secretOf('a'))
    await engine.flush()
    t.equal(holds(files, secretOf('a')).length, 1)
    await replace(engine, 'a', secretOf('new'))
    await until(async () => !(holds(files, secretOf('a')).length > 0))
    t.strictSame(holds(files, secretOf('a')), [])
    t.equal(holds(files, secretOf('new')).length, 1)
    t.match(await engine.status(), { rows: { records: 1 }, walBytes: 0 })
    await engine.close()
  },
)

t.test(
  'a row that is removed during a compaction is overwritten before the compacted table is used',
  async (t) => {
    for (const isFlushed of [false, true]) {
      const options = { ...diskOptions(new FakeFiles(), 'server') }
      const { files } = options
      const engine = await createFileEngine(options)
      for (const name of ['a', 'b', 'c', 'd']) {
        await put(engine, name, secretOf(name))
        await put(engine, `${name}2`)
        await engine.flush()
      }
      await engine.close()
      const tree = openLsmTree(options)
      const { inputs, steps } = tree.manifest.planCompaction(1_000_000)!
      const compacted = finish(steps)
      t.equal(holds(files, secretOf('b')).length, 2, 'the row is in the old table and in its compacted copy')
      const counters = { ...tree.counters }
      const removal = { kind: REMOVE, row: tombstone(3, 1, idOf('b'), counters.rev++) } as const
      tree.append([removal], counters, true)
      tree.eraseRemoved([removal.row.id])
      if (isFlushed) tree.flush()
      tree.finishCompaction(inputs, compacted)
      const title = isFlushed ? 'flushed during the compaction' : 'still in the log'
      t.strictSame(holds(files, secretOf('b')), [], title)
      t.equal(holds(files, secretOf('c')).length, 1)
      t.match(tree.status(), { sstables: 1, rows: { records: 7, dead: 1 } }, title)
      tree.close()
      const reopened = await openFileEngine(options)
      t.match(await reopened.status(), { sstables: 1, rows: { records: 7, dead: 1 } }, title)
      await reopened.close()
    }
  },
)

t.test(
  'a read sees only synced changes, and a refusal waits until the changes that caused it are synced',
  async (t) => {
    const options = diskOptions(new FakeFiles(), 'server')
    const engine = await createFileEngine(options)
    const order: string[] = []
    const writing = put(engine, 'a').then(() => order.push('written'))
    const reading = get(engine, 'a').then((row) => {
      order.push('read')
      t.equal(row, undefined, 'a reader does not see the change before it is synced')
    })
    const refusing = engine
      .write(async (writer) => {
        if ((await writer.get(3, 1, idOf('a'))) !== undefined) throw new Error('the row exists')
      })
      .catch((error) => order.push(error.message))
    await Promise.all([writing, reading, refusing])
    t.strictSame(order, ['read', 'written', 'the row exists'])
    options.files.fault = { at: options.files.steps + 2, code: 'EIO' }
    const failing = put(engine, 'b')
    const misled = engine.write(async (writer) => {
      if ((await writer.get(3, 1, idOf('b'))) !== undefined) throw new Error('the row exists')
    })
    await t.rejects(failing, { code: 'storage_failed' })
    await t.rejects(
      misled,
      { code: 'storage_failed' },
      'the error is not a refusal because of a row that was never stored',
    )
    await t.rejects(put(engine, 'c'), { message: /opened again/ })
    t.equal((await get(engine, 'a'))?.seq, 1, 'reads are still answered')
    await t.rejects(engine.close(), { code: 'storage_failed' })
  },
)

/** A disk whose concurrent syncs wait until the test releases them. */
class SlowFiles extends FakeFiles {
  readonly asked: (() => void)[] = []
  override async syncDataBeside(path: string): Promise<void> {
    await new Promise<void>((resolve) => this.asked.push(resolve))
    return super.syncDataBeside(path)
  }
  /** Resolves when the engine has requested a sync. */
  async awaitSync(): Promise<void> {
    while (this.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

t.test(
  'during a concurrent sync of the log, other units of work run and see entries that are not synced yet',
  async (t) => {
    const files = new SlowFiles()
    const options = { ...diskOptions(files, 'server'), files }
    const engine = await createFileEngine(options)
    const append = (name: string, durability?: 'soon') =>
      engine.write((writer) => writer.append(logOf(name)), durability)
    const query = { kind: LOG_KIND, tenant: 1, all: allOf(LOG_KIND), page: 1, size: 5 }
    const find = async () => {
      const rows = await engine.read(async (reader) => (await reader.find(query)).total)
      const held = await engine.read((reader) => reader.pendingEntries?.(1))
      return { rows, held: held?.length }
    }
    const countAfterCut = async () => {
      const cut = await openFileEngine({ ...options, files: files.afterCrash(true), notice: () => {} })
      const { total } = await cut.read((reader) => reader.find(query))
      await cut.close()
      return total
    }
    await append('a', 'soon')
    await files.awaitSync()
    t.strictSame(await find(), { rows: 0, held: 1 })
    await append('b', 'soon')
    t.strictSame(await find(), { rows: 0, held: 2 })
    await append('c')
    t.strictSame(
      await find(),
      { rows: 3, held: 0 },
      'an immediate sync of a change also syncs the entries before the change',
    )
    files.asked.shift()!()
    await append('d', 'soon')
    await files.awaitSync()
    t.strictSame(await find(), { rows: 3, held: 1 })
    t.equal(await countAfterCut(), 3)
    files.asked.shift()!()
    while ((await find()).rows === 3) await new Promise((resolve) => setTimeout(resolve, 5))
    t.strictSame(await find(), { rows: 4, held: 0 })
    t.equal(await countAfterCut(), 4)
    await append('e', 'soon')
    await files.awaitSync()
    const closing = engine.close()
    files.asked.shift()!()
    await closing
    t.equal(await countAfterCut(), 5)
    t.strictSame(options.notices, [])
  },
)

t.test('a command that reads for longer than 2 s can append log entries until its end', async (t) => {
  const files = new FakeFiles()
  const engine = await createFileEngine(diskOptions(files, 'command'))
  let appended = 0
  for (const end = Date.now() + 2_500; Date.now() < end; await new Promise((go) => setTimeout(go, 50))) {
    await engine.write((writer) => writer.append(logOf(`entry ${appended}`)), 'soon')
    appended += 1
  }
  await engine.close()
  const reopened = await openFileEngine(diskOptions(files))
  t.equal((await rowsOf(reopened, LOG_KIND)).length, appended, 'every entry is stored')
  await reopened.close()
})

t.test('a disk that cannot sync concurrently is reported once, and no log entry is stored', async (t) => {
  const files = new SlowFiles()
  const options = { ...diskOptions(files, 'server'), files }
  const engine = await createFileEngine(options)
  const append = (name: string) => engine.write((writer) => writer.append(logOf(name)), 'soon')
  await append('a')
  await files.awaitSync()
  files.syncData = () => {
    throw new CofferError('storage_failed', 'The disk reports an error.')
  }
  files.asked.shift()!()
  while (options.notices.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await t.rejects(append('b'), { code: 'storage_failed' })
  await t.rejects(engine.close(), { code: 'storage_failed' })
  t.match(options.notices.splice(0), { length: 1, 0: /could not be synced now/ })
})
