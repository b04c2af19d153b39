/**
 * Tests with real disks that are full or that lack permissions. If the machine does not permit a test, the test is
 * skipped with a message.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createHome } from '../cli/home.js'
import { PROGRAM, waitFor } from '../support/process.js'

const NOBODY = 65_534
const DISK_MIB = 4

const isRoot = process.getuid?.() === 0

/** Mounts a file system until the test ends. Returns undefined if mounting is not permitted. */
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

t.test(
  'a full disk is reported and loses no acknowledged token, and the vault works again when there is space',
  async (t) => {
    const disk = mountDisk(t)
    if (disk === undefined)
      return void t.pass('not tried', { skip: 'this machine does not let us mount a disk' })
    const home = createHome(t)
    home.env.COFFER_VAULT = join(disk, 'vault')
    await home.json(['init'])
    const acknowledged: string[] = []
    const add = () =>
      home.run(['token', 'create'], bodyOf(`token-${acknowledged.length}`, 'x'.repeat(200_000)))
    let outcome = await add()
    for (; outcome.code === 0; outcome = await add()) acknowledged.unshift(`token-${acknowledged.length}`)
    t.ok(acknowledged.length > 2, `the disk had room for ${acknowledged.length} tokens`)
    t.same([outcome.code, outcome.stdout], [1, ''])
    t.match(
      outcome.stderr,
      /(^|\n)error: Cannot .*: no space is left on the disk \(see df -h\), or no inode \(see df -i\)\. Free some and try again\.\n$/,
    )
    // The file `filler` fills the disk completely, so that the disk has no room even for the lock file of the vault.
    spawnSync('dd', ['if=/dev/zero', `of=${join(disk, 'filler')}`, 'bs=4k'])
    const full = await home.run(['token', 'get', 'token-0'])
    t.same([full.code, full.stdout], [1, ''], 'a read is refused too, because it must be logged')
    t.match(full.stderr, 'no space is left on the disk')
    execFileSync('mount', ['-o', 'remount,size=64m', disk])
    rmSync(join(disk, 'filler'))
    const { data } = await home.json(['token', 'list', '--all'])
    const ids = data.map(({ id }: { id: string }) => id)
    t.same(ids, acknowledged, 'the vault has exactly the acknowledged tokens')
    await home.json(['token', 'create'], bodyOf('afterwards', 1))
    await home.json(['vault', 'compact'])
    t.match(await home.json(['vault', 'verify']), { ok: true, findings: [] })
    t.match(await home.json(['log', 'verify']), { is_whole: true })
    const left = readdirSync(join(disk, 'vault')).filter((name) => name.includes('tmp'))
    t.same(left, [], 'no incomplete file is left')
  },
)

t.test(
  'a missing permission is reported, and the vault works again after the permission is restored',
  async (t) => {
    const home = createHome(t)
    // File permissions do not apply to root, so root runs the test as another user.
    const who = isRoot ? { uid: NOBODY, gid: NOBODY } : {}
    if (isRoot) chownSync(home.place, NOBODY, NOBODY)
    const run = (words: readonly string[], data?: unknown) => {
      const options = { cwd: home.place, env: { ...home.env, PATH: process.env.PATH ?? '' }, ...who }
      const child = spawn(process.execPath, [PROGRAM, ...words], options)
      child.stdin.on('error', () => {})
      child.stdin.end(data === undefined ? '' : JSON.stringify({ type: 'token', data }))
      return waitFor(child)
    }
    if ((await run(['--version'])).code !== 0)
      return void t.pass('not tried', { skip: 'another user cannot run the program in its folder' })
    t.match(await run(['init']), { code: 0 })
    t.match(await run(['token', 'create'], 'first'), { code: 0 })
    const vault = join(home.place, '.coffer')
    home.env.COFFER_VAULT = vault
    const journal = readdirSync(vault).find((name) => name.startsWith('journal-'))!
    const denied = 'permission denied. Check the owner and the mode.'
    for (const [path, mode, back, message] of [
      [vault, 0o500, 0o700, `run \`chmod u+rwx ${vault}\``],
      [vault, 0o000, 0o700, denied],
      [join(vault, 'vault.json'), 0o000, 0o600, denied],
      [join(vault, 'state'), 0o000, 0o600, denied],
      [join(vault, journal), 0o400, 0o600, denied],
    ] as const) {
      chmodSync(path, mode)
      const { code, stdout, stderr } = await run(['token', 'create'], 'refused')
      t.same([code, stdout], [1, ''], `${path} ${mode.toString(8)}`)
      t.match(stderr, message)
      chmodSync(path, back)
    }
    const { stdout } = await run(['token', 'list', '--reveal', '--output', 'json'])
    t.match(JSON.parse(stdout), { pagination: { total_items: 1 }, data: [{ data: 'first' }] })
    t.match(await run(['vault', 'verify']), { code: 0 })
  },
)
