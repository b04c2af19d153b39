/**
 * A backup is a complete, consistent copy of the vault, even if units of work run while it is made. A restore refuses
 * any file that is not a complete backup.
 */
import t from 'tap'
import { readBackup, readBackupHeader, writeBackup } from '../../src/storage/backup-file.js'
import type { Row } from '../../src/storage/engine.js'
import { createFromRows } from '../../src/storage/lsm/maintenance/rows.js'
import { beginVault, completeVault, hasHeader } from '../../src/storage/vault-file.js'
import { diskOptions, remove, rowsOf } from './disk.js'
import {
  allOf,
  createFileEngine,
  draftOf,
  type FileEngine,
  logOf,
  openFileEngine,
  textOf,
} from './engines.js'
import { FakeFiles } from './fake-files.js'
import { testHeader } from './powers.js'

const optionsFor = (files: FakeFiles, directory = '/vault', role: 'command' | 'server' = 'command') => ({
  ...diskOptions(files, role),
  directory,
})

const backUp = (engine: FileEngine, files: FakeFiles) =>
  engine.withRows((rows) =>
    writeBackup(optionsFor(files), '/backup', {
      header: engine.header,
      rows,
      progress: () => {},
      check: () => {},
    }),
  )

/**
 * Creates a vault from the rows of the backup `/backup`. This function adds the keys of the rows. In the product, the
 * layer above the engine adds these keys.
 */
async function restore(options: ReturnType<typeof optionsFor>): Promise<void> {
  const { files, directory } = options
  const header = readBackupHeader(files, '/backup')
  const backup = readBackup(files, options.keys, '/backup')
  beginVault(files, directory)
  async function* rows() {
    for await (const row of backup.rows()) yield { ...row, keys: allOf(row.kind) }
  }
  await createFromRows(options, rows(), backup.times)
  completeVault(files, directory, header)
}

const put = (engine: FileEngine, ...names: string[]) =>
  engine.write(async (writer) => {
    for (const name of names) await writer.put(draftOf({ name, text: `text of ${name}` }))
    await writer.append(logOf(`log ${names[0]}`))
  })

const list = async (engine: FileEngine): Promise<string[]> =>
  (await rowsOf(engine)).map((row) => textOf(row).replace('text of ', '')).sort()

const isErased = (row: Row) => (row.sealed.every((byte) => byte === 0) ? { problem: 'erased' } : {})

t.test(
  'a backup that is made while units of work run has the state of the vault between two units',
  async (t) => {
    const files = new FakeFiles()
    const engine = await createFileEngine(optionsFor(files, '/vault', 'server'))
    for (let round = 0; round < 5; round++) {
      await put(engine, ...Array.from({ length: 20 }, (_, index) => `${round}-${index}`))
      await engine.flush()
    }
    const backing = backUp(engine, files)
    const states = [await list(engine)]
    for (let round = 0; round < 5; round++) {
      await remove(engine, `${round}-0`)
      states.push(await list(engine))
      await put(engine, `new ${round}`)
      states.push(await list(engine))
      // The removed row `${round}-0` is created again: the end of the backup overwrites the bytes of the removed row,
      // but not the bytes of the new row.
      await put(engine, `${round}-0`)
      states.push(await list(engine))
      await engine.flush()
    }
    t.equal(files.stat('/backup')?.size, await backing)
    t.strictSame(await list(engine), states.at(-1))
    await t.rejects(backUp(engine, files), { code: 'conflict', message: /exists already/ })
    await engine.close()
    const reopened = await openFileEngine(optionsFor(files, '/vault', 'server'))
    t.strictSame(await list(reopened), states.at(-1))
    t.strictSame((await reopened.verify(isErased)).findings, [])
    await reopened.close()
    t.strictSame(readBackupHeader(files, '/backup'), testHeader())
    const target = optionsFor(files, '/copy')
    await restore(target)
    const copy = await openFileEngine(target)
    const found = (await list(copy)).join()
    t.ok(
      states.some((state) => state.join() === found),
      'the backup has the state between two units of work',
    )
    t.strictSame(
      (await copy.verify(isErased)).findings,
      [],
      'no row that the vault still uses was overwritten',
    )
    await copy.close()
  },
)

t.test('a damaged or incomplete backup is refused, and no vault is created', async (t) => {
  const files = new FakeFiles()
  const engine = await createFileEngine(optionsFor(files))
  await put(engine, 'a')
  const length = await backUp(engine, files)
  await engine.close()
  const bytes = files.contents().get('//backup') ?? files.contents().get('/backup')!
  let refused = 0
  for (let at = 0; at < length; at++) {
    for (const change of ['flip', 'cut'] as const) {
      const copy = files.afterCrash(false)
      const damaged = Buffer.from(change === 'cut' ? bytes.subarray(0, at) : bytes)
      if (change === 'flip') damaged[at]! ^= 1 << (at % 8)
      copy.plant('/backup', damaged)
      const target = optionsFor(copy, '/copy')
      const outcome = await restore(target).catch((error) => error.code)
      if (['vault_damaged', 'vault_unsupported'].includes(outcome) && !hasHeader(copy, '/copy')) refused++
      else t.fail(`${change} at ${at}: ${outcome}`)
    }
  }
  t.equal(refused, 2 * length)
  files.plant('/backup', Buffer.concat([bytes, Buffer.from('x')]))
  await t.rejects(restore(optionsFor(files, '/copy')), { code: 'vault_damaged' }, 'something added')
  files.plant('/backup', undefined)
  await t.rejects(restore(optionsFor(files, '/copy')), { code: 'not_found' })
})

t.test(
  'if a restore crashes or fails at any step, there is either no vault or a complete vault',
  async (t) => {
    const files = new FakeFiles()
    const engine = await createFileEngine(optionsFor(files))
    await put(engine, 'a')
    await backUp(engine, files)
    await engine.close()
    const whole = files.afterCrash(false)
    const before = whole.steps
    await restore(optionsFor(whole, '/copy'))
    const steps = whole.steps - before
    t.ok(steps > 10)
    for (let at = 1; at <= steps; at++) {
      for (const code of ['stop', 'ENOSPC'] as const) {
        const copy = files.afterCrash(false)
        copy.fault = { at: copy.steps + at, code }
        await restore(optionsFor(copy, '/copy')).catch(() => undefined)
        const left = copy.afterCrash(code === 'stop')
        if (!hasHeader(left, '/copy')) {
          // The second attempt to restore overwrites the files of the first attempt.
          left.plant('/backup', files.contents().get('//backup') ?? files.contents().get('/backup'))
          await restore(optionsFor(left, '/copy'))
        }
        const opened = await openFileEngine(optionsFor(left, '/copy'))
        t.strictSame(await list(opened), ['a'], `${code} at step ${at}`)
        await opened.close()
      }
    }
  },
)

t.test('a backup file gets its final name only when it is complete', async (t) => {
  const vault = new FakeFiles()
  const first = await createFileEngine(optionsFor(vault))
  await put(first, 'a')
  await first.close()
  const back = async (files: FakeFiles) => {
    const engine = await openFileEngine(optionsFor(files))
    await backUp(engine, files)
    await engine.close()
  }
  const whole = vault.afterCrash(false)
  await back(whole)
  let before = 0
  let after = 0
  for (let at = 1; at <= whole.steps; at++) {
    const files = vault.afterCrash(false)
    files.fault = { at, code: 'stop', isTorn: at % 2 === 0 }
    await back(files).catch(() => undefined)
    const left = files.afterCrash(at % 3 === 0)
    if (left.stat('/backup') === undefined) before++
    else {
      const keys = optionsFor(left).keys
      const texts = []
      for await (const row of readBackup(left, keys, '/backup').rows()) texts.push(row)
      t.ok(texts.length > 0, `step ${at}`)
      after++
    }
  }
  t.ok(before > 5 && after > 0, `${before} and ${after}`)
})

t.test('a backup that fails is removed, and the vault keeps working', async (t) => {
  const files = new FakeFiles()
  const engine = await createFileEngine(optionsFor(files))
  await put(engine, 'a')
  await engine.flush()
  files.fault = { at: files.steps + 5, code: 'ENOSPC' }
  await t.rejects(backUp(engine, files), { code: 'storage_failed', message: /no space/ })
  t.equal(files.stat('/backup'), undefined)
  await put(engine, 'b')
  t.strictSame(await list(engine), ['a', 'b'])
  await engine.close()
})
