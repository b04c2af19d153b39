import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readProcessIdentity } from '../../src/storage/lock.js'
import { hasHeader } from '../../src/storage/vault-file.js'
import { createVault, openVault, reachVault } from '../../src/vault/open.js'
import { FakeFiles } from '../storage/fake-files.js'
import { createKey, locate } from '../support/vault.js'

t.test('if a server cannot listen for commands, its vault is released and can be opened later', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'coffer-index-'))
  const { TMPDIR } = process.env
  t.teardown(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
    rmSync(root, { recursive: true, force: true })
  })
  // A socket path in this directory would be too long, so the socket is in the folder for temporary files.
  const directory = join(root, 'long'.repeat(30))
  const place = { ...locate(directory), role: 'server' } as const
  const key = createKey()
  const open = () => openVault(place, key.choose)
  process.env.TMPDIR = join(root, 'missing')
  await t.rejects(createVault(place, 'first', key.create), { code: 'storage_failed' })
  await t.rejects(open(), { code: 'storage_failed' })
  process.env.TMPDIR = root
  const app = await open()
  t.equal((await app.tenant()).name, 'first')
  await app.close()
})

t.test('a command that waits while a server starts is answered by this server', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'coffer-index-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  const place = locate(join(root, 'vault'))
  const { create, choose } = createKey()
  const first = await createVault(place, 'first', create)
  const starting = openVault({ ...place, role: 'server' }, choose)
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  await pause(50)
  const began = Date.now()
  const commands = [1, 2, 3].map(async () => {
    const vault = await reachVault(place, choose)
    const { result } = await vault.ask({ operation: 'tenant list', input: {}, as: { reveal: false } })
    await vault.close()
    return result
  })
  await pause(50)
  await first.close()
  const server = await starting
  t.match(await Promise.all(commands), [[{ name: 'first' }], [{ name: 'first' }], [{ name: 'first' }]])
  t.ok(Date.now() - began < 5000, `${Date.now() - began} ms`)
  await t.rejects(openVault({ ...place, role: 'server' }, choose), {
    message: /Commands connect to this process/,
  })
  await server.close()
})

t.test(
  'a creation of a vault that crashes at any step can be repeated, and a failed creation leaves no file',
  async (t) => {
    const { create, choose } = createKey()
    const place = (files: FakeFiles) => ({ ...locate('/vault'), files })
    const make = (files: FakeFiles) => createVault(place(files), 'first', create)
    const whole = new FakeFiles()
    await (await make(whole)).close()
    for (let at = 1; at <= whole.steps; at++)
      for (const code of ['stop', 'EIO'] as const) {
        const title = `${code} at step ${at}`
        const files = new FakeFiles()
        files.fault = { at, code }
        const isMade = await make(files).then(
          (app) =>
            app.close().then(
              () => true,
              () => true,
            ),
          () => false,
        )
        const left = files.afterCrash(code === 'stop')
        // The lock file names the process of this test, which still runs. The line below removes the lock file, so that
        // the vault can be opened as if that process had ended.
        if (left.stat('/vault/lock') !== undefined) left.plant('/vault/lock', undefined)
        const isThere = hasHeader(left, '/vault')
        if (isMade) t.ok(isThere, title)
        else if (code === 'EIO' && !isThere && files.failed !== 'remove')
          t.same([...left.contents().keys()], [], `${title}: no file is left`)
        const app = isThere ? await openVault(place(left), choose) : await make(left)
        t.equal((await app.tenant()).name, 'first', title)
        await app.close()
        t.same(
          [...left.contents().keys()].filter(
            (path) => !/\/(vault\.json|state|(journal|head)-.*|lock\.p-.*)$/.test(path),
          ),
          [],
          `${title}: no temporary file is left`,
        )
      }
  },
)

t.test(
  'an address with the scheme memory creates a vault in memory, and an unknown scheme is refused',
  async (t) => {
    const opener = { kind: 'passphrase', passphrase: 'correct horse battery' } as const
    const app = await createVault(locate('memory:'), 'first', opener)
    t.equal((await app.tenant()).name, 'first')
    t.throws(() => app.maintenance(), { code: 'unprocessable' })
    await app.close()
    await t.rejects(
      openVault(locate('memory:'), async () => opener),
      { code: 'vault_missing' },
    )
    await t.rejects(createVault(locate('mongodb://host/name'), 'first', opener), {
      code: 'usage',
      message: /mongodb:.*a directory, memory:, or postgres:/,
    })
  },
)

t.test(
  'a server in another container keeps its vault until the server is killed',
  { skip: process.platform !== 'linux' },
  async (t) => {
    const root = mkdtempSync(join(tmpdir(), 'coffer-container-'))
    t.teardown(() => rmSync(root, { recursive: true, force: true }))
    const place = { ...locate(join(root, 'vault')), role: 'command', timeoutMs: 50 } as const
    const key = createKey()
    await (await createVault(place, 'first', key.create)).close()
    const path = join(place.directory, 'socket')
    const listen = `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('.'))`
    const server = spawn(process.execPath, ['-e', listen], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => server.kill('SIGKILL'))
    await once(server.stdout, 'data')
    // The lock of a server in another container looks to this process like a lock of this machine with a pid of another
    // namespace.
    const { host, boot } = readProcessIdentity(process.pid)
    const holder = {
      pid: 1,
      started: '1',
      boot: `${boot.split('/')[0]}/pid:[1]`,
      host,
      nonce: 'theirs',
      isServer: true,
    }
    const lock = (since: number) =>
      writeFileSync(join(place.directory, 'lock'), JSON.stringify({ ...holder, since }), { mode: 0o600 })
    const refused = { code: 'unavailable', message: /another container/ }
    lock(Date.now() - 3_600_000)
    await t.rejects(openVault(place, key.choose), refused, 'it listens')
    server.kill('SIGKILL')
    await once(server, 'close')
    lock(Date.now())
    await t.rejects(
      openVault(place, key.choose),
      refused,
      'a server that has just started may not listen yet, so its lock is kept',
    )
    lock(Date.now() - 3_600_000)
    await (await openVault(place, key.choose)).close()
    rmSync(path, { force: true })
    lock(Date.now() - 3_600_000)
    await t.rejects(
      openVault(place, key.choose),
      refused,
      'a server that is stopping does not listen any more, so its lock is kept',
    )
  },
)
