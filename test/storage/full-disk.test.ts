/**
 * Tests of a disk that is full for some time: which requests are refused, which are answered, and which writes the
 * server repeats when the disk has space again.
 */
import t from 'tap'
import { storageError } from '../../src/storage/files.js'
import { diskOptions, get, holds, pathsOf, put, remove, replace, rowsOf, until } from './disk.js'
import { createFileEngine, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'

/** A disk on which a file cannot grow if its path matches `full`. */
class FullFiles extends FakeFiles {
  full: RegExp | undefined
  readonly #paths = new Map<number, string>()

  override create(path: string): number {
    const file = super.create(path)
    this.#paths.set(file, path)
    return file
  }

  override open(path: string): number | undefined {
    const file = super.open(path)
    if (file !== undefined) this.#paths.set(file, path)
    return file
  }

  override write(file: number, bytes: Uint8Array, position: number): void {
    const path = this.#paths.get(file)!
    if (this.full?.test(path) && position + bytes.length > this.size(file))
      throw storageError('write', path, { code: 'ENOSPC' })
    super.write(file, bytes, position)
  }
}

const NO_SPACE = { code: 'storage_failed', message: /no space is left/ }
/** The files that cannot grow: all except the write-ahead log. */
const ALL_BUT_LOG = /state\.tmp|segments/
/**
 * The log seals a row a second time, so a search of the log for the sealed bytes of a row would find nothing.
 * Therefore the test counts the bytes of the log.
 */
const logBytes = (files: FakeFiles) =>
  pathsOf(files, '/journal-').reduce((sum, path) => sum + files.contents().get(path)!.length, 0)
const isHeld = (files: FakeFiles) => holds(files, secretOf('a')).length > 0 || logBytes(files) > 0
const secretOf = (name: string) => `sealed bytes of ${name}, ${'x'.repeat(40)}`

const create = async (role: 'command' | 'server', more: object = {}) => {
  const files = new FullFiles()
  const options = { ...diskOptions(files, role), ...more }
  return { files, options, engine: await createFileEngine(options) }
}

t.test('a server on a full disk still answers reads, and works again when there is space', async (t) => {
  for (const full of [/state\.tmp/, /segments/, /journal|head/, /./]) {
    const { files, options, engine } = await create('server', { flushAt: { bytes: 1_000_000, rows: 2 } })
    for (const name of ['a', 'b', 'c']) await put(engine, name)
    files.full = full
    const isLogFull = full.test('/vault/journal-1')
    for (const name of ['d', 'e', 'f', 'g']) {
      const putting = put(engine, name)
      if (isLogFull) await t.rejects(putting, NO_SPACE, `${full}`)
      else await putting
    }
    await engine.flush().catch(() => undefined)
    await engine.compact().catch(() => undefined)
    t.equal((await rowsOf(engine)).length, isLogFull ? 3 : 7, `${full}: reads are answered`)
    files.full = undefined
    await put(engine, 'h')
    await replace(engine, 'a', 'changed')
    await remove(engine, 'b')
    await engine.checkReady()
    await engine.compact()
    await engine.close()
    const again = await openFileEngine(options)
    t.equal((await rowsOf(again)).length, isLogFull ? 3 : 7, `${full}: nothing is lost`)
    t.strictSame((await again.verify(() => ({}))).findings, [])
    await again.close()
    t.strictSame(pathsOf(files, '.tmp-'), [], 'no temporary file is left')
  }
})

t.test('if a change of the header fails on a full disk, the server makes the change later', async (t) => {
  const { files, options, engine } = await create('server')
  await put(engine, 'a')
  const next = { ...options.header, created: 'later' }
  for (const full of [/state\.tmp/, /vault\.json\.tmp/, /journal|head/]) {
    files.full = full
    await t.rejects(engine.replaceHeader(next), NO_SPACE, `${full}`)
    files.full = undefined
    await put(engine, `after ${full}`)
  }
  await engine.replaceHeader(next)
  await engine.close()
  const again = await openFileEngine({ ...options, header: next })
  t.equal((await rowsOf(again)).length, 4)
  await again.close()
})

t.test(
  'if deleted data cannot be overwritten on a full disk, the server overwrites the data when there is space',
  async (t) => {
    for (const isFlushed of [false, true]) {
      const { files, options, engine } = await create('server', { eraseAfterMs: 5 })
      await put(engine, 'a', secretOf('a'))
      if (isFlushed) await engine.flush()
      // After this replacement, the older row is still in the write-ahead log, and only a flush can remove its bytes.
      if (isFlushed) await replace(engine, 'a', secretOf('a'))
      files.full = ALL_BUT_LOG
      await remove(engine, 'a')
      t.equal(await get(engine, 'a'), undefined, 'the row is deleted')
      t.ok(isHeld(files))
      await until(() => options.notices.length > 2)
      t.match(options.notices[0], /^Deleted data could not be overwritten .* no space is left/)
      files.full = undefined
      await until(() => !isHeld(files))
      t.notOk(isHeld(files), `the deleted bytes are overwritten (flushed before: ${isFlushed})`)
      await engine.close()
    }
  },
)

t.test(
  'a server overwrites the deleted data that a command left, without waiting for a request',
  async (t) => {
    const { files, options, engine } = await create('command')
    await put(engine, 'a', secretOf('a'))
    await engine.flush()
    files.full = ALL_BUT_LOG
    await remove(engine, 'a')
    files.full = undefined
    await engine.close()
    t.ok(isHeld(files))
    const server = await openFileEngine({ ...options, role: 'server', eraseAfterMs: 5 })
    await until(() => !isHeld(files))
    t.notOk(isHeld(files))
    await server.close()
  },
)

t.test('if a command cannot overwrite deleted data, the next command overwrites this data', async (t) => {
  const { files, options, engine } = await create('command')
  await put(engine, 'a', secretOf('a'))
  files.full = ALL_BUT_LOG
  await remove(engine, 'a')
  await engine.close()
  t.match(options.notices[0], /^Deleted data could not be overwritten/)
  t.ok(isHeld(files))
  files.full = undefined
  await (await openFileEngine(options)).close()
  t.notOk(isHeld(files))
})

t.test('on a full disk, a failed flush is reported once, until a flush succeeds', async (t) => {
  const message = /^The vault's files could not be flushed now.* \(see df -h\), or no inode \(see df -i\)\./
  for (const role of ['command', 'server'] as const) {
    const { files, options, engine } = await create(role, { flushAt: { bytes: 1_000_000, rows: 2 } })
    const told = () => options.notices.filter((text) => message.test(text)).length
    for (const round of [1, 2]) {
      files.full = ALL_BUT_LOG
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await put(engine, `${name}${round}`)
      await until(() => told() > 0)
      files.full = undefined
      const before = pathsOf(files, '/segments/').length
      for (const name of ['g', 'h', 'i']) await put(engine, `${name}${round}`)
      await until(() => pathsOf(files, '/segments/').length > before)
      for (const name of ['j', 'k', 'l']) await put(engine, `${name}${round}`)
      t.equal(told(), round, `${role}, round ${round}`)
    }
    await engine.close()
  }
})
