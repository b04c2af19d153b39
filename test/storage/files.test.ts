/** The real disk: modes, links, errors in words, and a whole vault on it. */
import { execFileSync } from 'node:child_process'
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
import type { Engine } from '../../src/storage/engine.js'
import { readWhole, replaceWhole, storageError } from '../../src/storage/files.js'
import { nodeFiles } from '../../src/storage/node-files.js'
import { readHeader } from '../../src/storage/vault-file.js'
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

t.test('a vault on a real disk: modes of every file, and everything there after opening again', async (t) => {
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
})

t.test('refuses what others may read, and says which command repairs it', async (t) => {
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
  await t.rejects(
    readHeader({ ...options.files, user: 12_345, stat: (path) => options.files.stat(path) }, directory),
    {
      code: 'vault_exposed',
      message: /belongs to another user/,
    },
  )
  await (await openFileEngine(options)).close()
})

t.test('follows no link, neither to a directory nor to a file', async (t) => {
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

t.test('there is no vault where there is none', async (t) => {
  const directory = makeDirectory(t)
  await t.rejects(openFileEngine(optionsFor(directory)), { code: 'vault_missing', message: /coffer init/ })
  await t.rejects(readHeader(nodeFiles(), join(directory, 'nowhere')), { code: 'vault_missing' })
})

t.test('says in words what the system says in codes', (t) => {
  const cases = {
    EACCES: /permission denied/,
    EROFS: /read-only/,
    ENOSPC: /no space/,
    EIO: /reports an error/,
    EXOTIC: /EXOTIC/,
  }
  for (const [code, message] of Object.entries(cases)) {
    const cause = Object.assign(new Error('internal'), { code })
    t.match(storageError('write', '/x', cause), { code: 'storage_failed', message, cause })
  }
  t.match(storageError('write', '/x', new Error('odd')), { message: /nothing more/ })
  t.end()
})

t.test('reads and writes at positions, and tells what is there', (t) => {
  const directory = makeDirectory(t)
  const files = nodeFiles()
  const path = join(directory, 'file')
  t.equal(files.open(path, 'read'), undefined)
  t.equal(files.stat(path), undefined)
  const file = files.create(path)
  files.write(file, Buffer.from('hello world'), 0)
  files.write(file, Buffer.from('W'), 6)
  const piece = Buffer.alloc(8)
  t.equal(files.read(file, piece, 6), 5)
  t.equal(piece.subarray(0, 5).toString(), 'World')
  files.truncate(file, 5)
  t.equal(files.size(file), 5)
  files.syncData(file)
  files.close(file)
  t.match(files.stat(path), { kind: 'file', mode: 0o600, size: 5 })
  t.match(files.stat(directory), { kind: 'directory' })
  t.equal(files.link(path, join(directory, 'second')), true)
  t.equal(files.link(path, join(directory, 'second')), false)
  t.equal(files.remove(path), true)
  t.equal(files.remove(path), false)
  t.strictSame(files.list(directory), ['second'])
  t.equal(files.makeDirectory(directory), false)
  t.throws(() => files.list(join(directory, 'none')), { code: 'storage_failed' })
  t.throws(() => readWhole(files, join(directory, 'second'), 4), { code: 'vault_damaged' })
  t.end()
})

/** A small disk of its own, or undefined where this machine does not let us have one. */
function mountSmallDisk(t: Test): string | undefined {
  const directory = makeDirectory(t)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k,mode=0700', 'tmpfs', directory], {
      stdio: 'ignore',
    })
  } catch {
    return undefined
  }
  t.teardown(() => execFileSync('umount', ['-l', directory], { stdio: 'ignore' }))
  return directory
}

t.test(
  'a disk that is full or read-only refuses in words, loses nothing, and works again afterwards',
  async (t) => {
    const disk = mountSmallDisk(t)
    if (disk === undefined) {
      t.pass('skipped', { skip: 'this machine lets us mount no disk' })
      return
    }
    const directory = join(disk, 'vault')
    const options = optionsFor(directory)
    const put = (engine: Engine, name: string) =>
      engine.write((writer) => writer.put(draftOf({ name, text: 'x'.repeat(2_000) })))
    const has = async (engine: Engine, name: string) =>
      (await engine.read((reader) => reader.get(3, 1, idOf(name)))) !== undefined
    const engine = await createFileEngine(options)
    await put(engine, 'first')
    writeFileSync(join(disk, 'filler'), Buffer.alloc(380_000))
    let stored = 0
    const failure = await (async () => {
      for (;;) {
        await put(engine, `row ${stored}`)
        stored++
      }
    })().catch((error) => error)
    t.match(failure, { code: 'storage_failed', message: /no space is left on the disk. Free some/ })
    t.ok(stored > 0 && stored < 200, `${stored} rows before the disk was full`)
    await t.rejects(engine.flush(), { code: 'storage_failed' })
    t.equal(await has(engine, 'first'), true, 'reading goes on')
    rmSync(join(disk, 'filler'))
    await put(engine, 'after')
    await engine.close()
    const again = await openFileEngine(options)
    for (const name of ['first', 'row 0', `row ${stored - 1}`, 'after'])
      t.equal(await has(again, name), true, name)
    t.equal(await has(again, `row ${stored}`), false, 'what was refused is not there')
    await again.close()
    execFileSync('mount', ['-o', 'remount,ro', disk])
    await t.rejects(openFileEngine(options), {
      code: 'storage_failed',
      message: /read-only. Mount it writable/,
    })
    execFileSync('mount', ['-o', 'remount,rw', disk])
    const last = await openFileEngine(options)
    await put(last, 'writable again')
    t.equal(await has(last, 'after'), true)
    await last.close()
  },
)
