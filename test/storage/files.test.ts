/** Tests on the real disk: file modes, links, error messages, and a whole vault. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readWhole, storageError } from '../../src/storage/files.js'
import { nodeFiles } from '../../src/storage/node-files.js'
import { readHeader } from '../../src/storage/vault-file.js'
import { replaceWhole } from '../../src/storage/whole-file.js'
import { diskOptions } from './disk.js'
import { createFileEngine, draftOf, idOf, openFileEngine } from './engines.js'
import { FakeFiles } from './fake-files.js'
import { testHeader } from './powers.js'

function makeDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'coffer-files-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

const optionsFor = (directory: string) => ({ ...diskOptions(new FakeFiles()), files: nodeFiles(), directory })

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

t.test(
  'a vault on a real disk has private file modes, and has its content when it is opened again',
  async (t) => {
    const directory = join(makeDirectory(t), 'vault')
    const options = optionsFor(directory)
    const engine = await createFileEngine(options)
    await engine.write((writer) => writer.put(draftOf({ name: 'a', text: 'kept' })))
    await engine.compact()
    await engine.write((writer) => writer.put(draftOf({ name: 'b' })))
    await engine.close()
    t.equal(modeOf(directory), '700')
    t.equal(modeOf(join(directory, 'segments')), '700')
    const names = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    )
    t.equal(names.length, 5)
    for (const entry of names) t.equal(modeOf(join(entry.parentPath, entry.name)), '600', entry.name)
    const header = await readHeader(options.files, directory)
    t.strictSame(header, testHeader())
    const again = await openFileEngine({ ...options, header })
    const row = await again.read((reader) => reader.get(3, 1, idOf('a')))
    t.equal(Buffer.from(row!.sealed).toString(), 'kept')
    await again.close()
    await t.rejects(createFileEngine(options), { code: 'conflict' })
  },
)

t.test(
  'a path that other users can read is refused, and the error names the command that repairs it',
  async (t) => {
    const directory = join(makeDirectory(t), 'vault')
    const options = optionsFor(directory)
    await (await createFileEngine(options)).close()
    for (const [path, open, shut] of [
      [directory, 0o750, '700'],
      [directory, 0o701, '700'],
      [join(directory, 'vault.json'), 0o640, '600'],
      [join(directory, 'state'), 0o604, '600'],
    ] as const) {
      chmodSync(path, open)
      const message = new RegExp(`chmod ${shut} ${path}`)
      await t.rejects(openFileEngine(options), { code: 'vault_exposed', message })
      await t.rejects(readHeader(options.files, directory), { code: 'vault_exposed', message })
      chmodSync(path, shut === '700' ? 0o700 : 0o600)
    }
    const files = { ...options.files, user: 12_345, stat: (path: string) => options.files.stat(path) }
    await t.rejects(readHeader(files, directory), {
      code: 'vault_exposed',
      message: /belongs to another user/,
    })
    await (await openFileEngine(options)).close()
  },
)

t.test('symbolic links to directories and to files are not followed', async (t) => {
  const base = makeDirectory(t)
  const directory = join(base, 'vault')
  const options = optionsFor(directory)
  await (await createFileEngine(options)).close()
  const linked = join(base, 'linked')
  symlinkSync(directory, linked)
  await t.rejects(openFileEngine({ ...options, directory: linked }), { code: 'vault_exposed' })
  const target = join(base, 'target')
  writeFileSync(target, 'mine')
  const link = join(base, 'link')
  symlinkSync(target, link)
  t.throws(() => options.files.open(link, 'read'), { code: 'storage_failed', message: /symbolic link/ })
  t.throws(() => options.files.open(link, 'write'), { code: 'storage_failed' })
  t.throws(() => options.files.create(link), { code: 'storage_failed', message: /exists already/ })
  t.equal(readWhole(options.files, target, 10)?.length, 4)
  mkdirSync(join(base, 'planted'), { mode: 0o700 })
  symlinkSync(target, join(base, 'planted', 'state.tmp-x'))
  t.throws(() => replaceWhole(options.files, join(base, 'planted'), 'state', Buffer.from('new'), 'x'), {
    code: 'storage_failed',
  })
  t.equal(Buffer.from(readWhole(options.files, target, 10)!).toString(), 'mine')
})

t.test('if a directory contains no vault, the error says that the vault is missing', async (t) => {
  const directory = makeDirectory(t)
  await t.rejects(openFileEngine(optionsFor(directory)), { code: 'vault_missing', message: /coffer init/ })
  await t.rejects(readHeader(nodeFiles(), join(directory, 'nowhere')), { code: 'vault_missing' })
})

t.test('the error codes of the operating system are explained in words', (t) => {
  const cases = {
    EACCES: /permission denied/,
    EROFS: /read-only/,
    ENOSPC: /no space/,
    EIO: /reports an error/,
    EFBIG: /size limit.*ulimit -f/,
    EXOTIC: /EXOTIC/,
  }
  for (const [code, message] of Object.entries(cases)) {
    const cause = Object.assign(new Error('internal'), { code })
    t.match(storageError('write', '/x', cause), { code: 'storage_failed', message, cause })
  }
  t.match(storageError('write', '/x', new Error('odd')), { message: /gives no reason/ })
  t.end()
})

t.test(
  'nodeFiles can truncate a file, and refuses a second link with the same name and a second removal',
  (t) => {
    const directory = makeDirectory(t)
    const files = nodeFiles()
    const [path, second] = [join(directory, 'file'), join(directory, 'second')]
    const file = files.create(path)
    files.write(file, Buffer.from('hello world'), 0)
    files.truncate(file, 5)
    files.close(file)
    t.match(files.stat(path), { kind: 'file', mode: 0o600, size: 5 })
    t.strictSame([files.link(path, second), files.link(path, second)], [true, false])
    t.strictSame([files.remove(path), files.remove(path)], [true, false])
    t.strictSame(files.list(directory), ['second'])
    t.throws(() => readWhole(files, second, 4), { code: 'vault_damaged' })
    t.end()
  },
)
