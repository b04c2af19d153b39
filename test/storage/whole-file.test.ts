/**
 * A file gets its final name only when it is complete, even if the process, the machine or the disk fails at any step.
 */
import fs, {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Files, storageError } from '../../src/storage/files.js'
import { nodeFiles } from '../../src/storage/node-files.js'
import { WholeFile, writeNew, writeOver } from '../../src/storage/whole-file.js'
import { FakeFiles } from './fake-files.js'

const TEXT = Buffer.from('everything that is in it')

function createDisk() {
  const files = new FakeFiles()
  files.makeDirectory('/home')
  return files
}

const textOf = (files: FakeFiles, path: string) => files.contents().get(path)?.toString()

function createPlace(t: Test): string {
  const place = mkdtempSync(join(tmpdir(), 'coffer-whole-'))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  return place
}

t.test('an incomplete file never gets its final name', async (t) => {
  const works = {
    new: (files: Files) => writeNew(files, '/home/file', TEXT, 'n'),
    over: (files: Files) => writeOver(files, '/home/file', TEXT, 'n'),
  }
  for (const [name, work] of Object.entries(works)) {
    const whole = createDisk()
    work(whole)
    t.equal(textOf(whole, '/home/file'), String(TEXT))
    t.equal(whole.contents().size, 1, 'no temporary file is left')
    for (let at = 1; at <= whole.steps; at++)
      for (const code of ['stop', 'ENOSPC'] as const)
        for (const isPowerCut of [false, true]) {
          const files = createDisk()
          files.fault = { at, code, isTorn: true }
          let isDone = true
          try {
            work(files)
          } catch {
            isDone = false
          }
          const title = `${name}, ${code} at step ${at}${isPowerCut ? ', power cut' : ''}`
          t.strictSame(files.openFiles.length > 0 && code !== 'stop', false, `${title}: every file is closed`)
          const left = files.afterCrash(isPowerCut)
          const found = textOf(left, '/home/file')
          t.ok(found === String(TEXT) || (found === undefined && !isDone), `${title}: ${found}`)
          if (code === 'ENOSPC' && files.failed !== 'remove' && files.failed !== 'replace')
            t.same(
              [...left.contents().keys()].filter((path) => path.includes('.tmp-')),
              [],
              title,
            )
        }
  }
})

t.test(
  'writing a new file replaces no existing file, even if that file appeared during the write',
  async (t) => {
    const files = createDisk()
    files.plant('/home/file', Buffer.from('precious'))
    t.throws(() => writeNew(files, '/home/file', TEXT, 'n'), { code: 'conflict', message: /exists already/ })
    files.plant('/home/file', undefined)
    const file = new WholeFile(files, '/home/file', 'n')
    file.append(TEXT)
    files.plant('/home/file', Buffer.from('precious'))
    t.throws(() => file.publish(), { code: 'conflict' })
    t.equal(textOf(files, '/home/file'), 'precious')
    t.equal(files.contents().size, 1)
  },
)

t.test(
  'on a file system without hard links, an incomplete file gets no final name and no file is replaced',
  async (t) => {
    for (const code of ['EPERM', 'ENOTSUP']) {
      const files = createDisk()
      files.link = (_, to) => {
        throw storageError('create', to, { code })
      }
      writeNew(files, '/home/file', TEXT, 'n')
      t.equal(textOf(files, '/home/file'), String(TEXT), code)
      const late = new WholeFile(files, '/home/other', 'n')
      files.plant('/home/other', Buffer.from('precious'))
      t.throws(() => late.publish(), { code: 'conflict' })
      t.equal(textOf(files, '/home/other'), 'precious')
    }
  },
)

t.test('on a real disk, a new file is private, and its name may have the maximum length', async (t) => {
  const place = createPlace(t)
  const files = nodeFiles()
  const path = join(place, 'n'.repeat(255))
  writeNew(files, path, TEXT, 'abc')
  t.equal(readFileSync(path, 'utf8'), String(TEXT))
  t.equal(statSync(path).mode & 0o777, 0o600)
  writeFileSync(join(place, 'old'), 'old', { mode: 0o644 })
  writeOver(files, join(place, 'old'), TEXT, 'abc')
  t.match(statSync(join(place, 'old')), { mode: 0o100600, size: TEXT.length })
  const file = new WholeFile(files, join(place, 'under way'), 'abc')
  t.equal(statSync(file.path).mode & 0o777, 0o600)
  t.notOk(existsSync(join(place, 'under way')))
  t.throws(() => new WholeFile(files, join(place, 'under way'), 'abc'), { message: /exists already/ })
  file.discard()
  t.equal(readdirSync(place).length, 2)
})

t.test('a new file is removed if its mode cannot be set', (t) => {
  const place = createPlace(t)
  const { fchmodSync } = fs
  t.teardown(() => {
    fs.fchmodSync = fchmodSync
    syncBuiltinESMExports()
  })
  fs.fchmodSync = () => {
    throw Object.assign(new Error('EPERM'), { code: 'EPERM' })
  }
  syncBuiltinESMExports()
  t.throws(() => writeNew(nodeFiles(), join(place, 'file'), TEXT, 'n'), { code: 'storage_failed' })
  t.strictSame(readdirSync(place), [])
  t.end()
})
