/**
 * Real disks that fail: full, read-only, closed to us; and paths too long for a socket. What a machine does not permit is
 * skipped and said.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Ended, PROGRAM, waitFor } from '../cli/binary.js'
import { createHome, type Home } from '../cli/home.js'
import { startProcess } from '../http/process.js'
import { startProgram } from '../start-program.js'

const NOBODY = 65_534
const DISK_MIB = 4

const isRoot = process.getuid?.() === 0

/** A file system of its own, gone when the test ends; undefined where one may not be mounted. */
function mountDisk(t: Test): string | undefined {
  const place = mkdtempSync(join(tmpdir(), 'coffer-disk-'))
  const options = ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m,mode=0700`, 'tmpfs', place]
  const isMounted = isRoot && spawnSync('mount', options).status === 0
  t.teardown(() => {
    if (isMounted) execFileSync('umount', ['--lazy', place])
    rmSync(place, { recursive: true, force: true })
  })
  return isMounted ? place : undefined
}

const bodyOf = (id: string, data: unknown) => ({ stdin: JSON.stringify({ id, type: 'token', data }) })

async function idsIn({ json }: Home): Promise<string[]> {
  return (await json(['token', 'list', '--all'])).data.map(({ id }: { id: string }) => id)
}

t.test('a full disk is told, loses nothing that was acknowledged, and is survived', async (t) => {
  const disk = mountDisk(t)
  if (disk === undefined)
    return void t.pass('not tried', { skip: 'this machine does not let us mount a disk' })
  const home = createHome(t)
  home.env.COFFER_VAULT = join(disk, 'vault')
  await home.json(['init'])
  const acknowledged: string[] = []
  const add = () => home.run(['token', 'create'], bodyOf(`token-${acknowledged.length}`, 'x'.repeat(200_000)))
  let outcome = await add()
  for (; outcome.code === 0; outcome = await add()) acknowledged.unshift(`token-${acknowledged.length}`)
  t.ok(acknowledged.length > 2, `${acknowledged.length} tokens had room`)
  t.same([outcome.code, outcome.stdout], [1, ''])
  t.match(
    outcome.stderr,
    /(^|\n)error: Cannot .*: no space is left on the disk\. Free some and try again\.\n$/,
  )
  // Nothing at all is left now, not even for a lock.
  spawnSync('dd', ['if=/dev/zero', `of=${join(disk, 'filler')}`, 'bs=4k'])
  const full = await home.run(['token', 'get', 'token-0'])
  t.same([full.code, full.stdout], [1, ''], 'a read must be logged, so it cannot be answered either')
  t.match(full.stderr, 'no space is left on the disk')
  execFileSync('mount', ['-o', 'remount,size=64m', disk])
  rmSync(join(disk, 'filler'))
  t.same(await idsIn(home), acknowledged, 'everything that was acknowledged, and nothing that was refused')
  await home.json(['token', 'create'], bodyOf('afterwards', 1))
  await home.json(['vault', 'compact'])
  t.match(await home.json(['vault', 'verify']), { ok: true, findings: [] })
  t.match(await home.json(['log', 'verify']), { is_whole: true })
  const left = readdirSync(join(disk, 'vault')).filter((name) => name.includes('tmp'))
  t.same(left, [], 'nothing half made is left')
})

t.test('a read-only file system is told, and the vault works when it is writable again', async (t) => {
  const disk = mountDisk(t)
  if (disk === undefined)
    return void t.pass('not tried', { skip: 'this machine does not let us mount a disk' })
  const home = createHome(t)
  home.env.COFFER_VAULT = join(disk, 'vault')
  await home.json(['init'])
  await home.json(['token', 'create'], bodyOf('one', 1))
  execFileSync('mount', ['-o', 'remount,ro', disk])
  for (const words of [
    ['token', 'create'],
    ['token', 'list'],
    ['vault', 'compact'],
  ]) {
    const { code, stdout, stderr } = await home.run(words, bodyOf('two', 2))
    t.same([code, stdout], [1, ''], words.join(' '))
    t.match(stderr, /^error: Cannot .*: the file system is read-only\. Mount it writable\.\n$/)
  }
  execFileSync('mount', ['-o', 'remount,rw', disk])
  await home.json(['token', 'create'], bodyOf('two', 2))
  t.same(await idsIn(home), ['two', 'one'])
})

/** Runs the program as somebody who is not root, because nothing is forbidden to root. */
function runAsNobody(
  home: Pick<Home, 'place' | 'env'>,
  words: readonly string[],
  stdin = '',
): Promise<Ended> {
  const who = isRoot ? { uid: NOBODY, gid: NOBODY } : {}
  const env = { ...home.env, PATH: process.env.PATH ?? '' }
  const child = startProgram(process.execPath, [PROGRAM, ...words], { cwd: home.place, env, ...who })
  child.stdin.on('error', () => {})
  child.stdin.end(stdin)
  return waitFor(child)
}

/** Whether somebody who is not root can run the program at all where it lies. */
function mayRunAsNobody(): boolean {
  if (!isRoot) return true
  const { status } = spawnSync(process.execPath, [PROGRAM, '--version'], {
    uid: NOBODY,
    gid: NOBODY,
    cwd: '/',
  })
  return status === 0
}

t.test('a permission that is lost is told, and the vault works when it is back', async (t) => {
  if (!mayRunAsNobody())
    return void t.pass('not tried', { skip: 'another user cannot run the program where it lies' })
  const home = createHome(t)
  if (isRoot) chownSync(home.place, NOBODY, NOBODY)
  const run = (words: readonly string[], data?: unknown) =>
    runAsNobody(home, words, data === undefined ? '' : JSON.stringify({ type: 'token', data }))
  t.match(await run(['init']), { code: 0 })
  t.match(await run(['token', 'create'], 'first'), { code: 0 })
  const vault = join(home.place, '.coffer')
  home.env.COFFER_VAULT = vault
  const journal = readdirSync(vault).find((name) => name.startsWith('journal-'))!
  for (const [path, mode, back] of [
    [vault, 0o500, 0o700],
    [vault, 0o000, 0o700],
    [join(vault, 'vault.json'), 0o000, 0o600],
    [join(vault, 'state'), 0o000, 0o600],
    [join(vault, journal), 0o400, 0o600],
  ] as const) {
    chmodSync(path, mode)
    const { code, stdout, stderr } = await run(['token', 'create'], 'refused')
    t.same([code, stdout], [1, ''], `${path} ${mode.toString(8)}`)
    t.match(stderr, 'permission denied. Check who owns it and its mode.')
    chmodSync(path, back)
  }
  const { stdout } = await run(['token', 'list', '--reveal', '--output', 'json'])
  t.match(JSON.parse(stdout), { pagination: { total_items: 1 }, data: [{ data: 'first' }] })
  t.match(await run(['vault', 'verify']), { code: 0 })
})

t.test('another user can do nothing with the vault of somebody else', async (t) => {
  if (!isRoot || !mayRunAsNobody())
    return void t.pass('not tried', { skip: 'only root can act as two users' })
  const home = createHome(t)
  await home.json(['init'])
  await home.json(['token', 'create'], bodyOf('one', 'of root alone'))
  chmodSync(home.place, 0o755)
  const vault = join(home.place, '.coffer')
  const words = ['token', 'get', 'one', '--reveal', '--vault', vault, '--no-input']
  const theirs = createHome(t)
  chownSync(theirs.place, NOBODY, NOBODY)
  const shut = await runAsNobody(theirs, words)
  t.same([shut.code, shut.stdout], [1, ''])
  t.match(shut.stderr, 'permission denied')
  // Even where everything can be read, down to the key.
  execFileSync('chmod', ['-R', 'a+rX', home.place])
  const keys = join(home.place, 'config/coffer/keys')
  const key = ['--key-file', join(keys, readdirSync(keys)[0]!)]
  const open = await runAsNobody(theirs, [...words, ...key])
  t.same([open.code, open.stdout], [6, ''])
  t.match(open.stderr, 'belongs to another user')
})

t.test('a vault at a path of 300 characters serves and is reached, and outlives a kill', async (t) => {
  const home = createHome(t)
  const directory = join(home.place, 'a'.repeat(120), 'b'.repeat(120), 'c'.repeat(120))
  mkdirSync(directory, { recursive: true })
  const temporary = mkdtempSync('/tmp/coffer-t-')
  t.teardown(() => rmSync(temporary, { recursive: true, force: true }))
  const env = { ...home.env, PATH: process.env.PATH ?? '', TMPDIR: temporary }
  const here = { cwd: directory }
  await home.json(['init'], here)
  const server = await startProcess({ directory, env, remove: () => {} }, ['--log', 'none'])
  const socket = join(directory, '.coffer/socket')
  t.ok(socket.length > 300 && statSync(socket).isSocket(), 'its socket is in its directory')
  await home.json(['token', 'create'], { ...here, ...bodyOf('through', 1) })
  t.match(await home.json(['vault', 'status'], here), { held_by: { pid: server.child.pid } })
  server.child.kill('SIGTERM')
  t.match(await server.ended, { code: 0 })
  t.match(await home.json(['token', 'get', 'through', '--reveal'], here), { data: 1 })
  const killed = await startProcess({ directory, env, remove: () => {} }, ['--log', 'none'])
  killed.child.kill('SIGKILL')
  await killed.ended
  t.match(await home.json(['token', 'get', 'through', '--reveal'], here), { data: 1 }, 'after a kill too')
})
