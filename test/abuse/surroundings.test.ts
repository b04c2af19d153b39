/** Hostile or careless surroundings of a vault on the command line: links, pipes, other users, and copies. */
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createVaultHome, type Home } from '../cli/home.js'

const SECRET = 'a secret of this vault'

/** Creates a home with a vault that has one token. */
async function createFilledHome(t: Test): Promise<{ home: Home; vault: string; key: string }> {
  const home = await createVaultHome(t)
  await home.json(['token', 'create'], { stdin: JSON.stringify({ id: 'one', type: 'token', data: SECRET }) })
  const keys = join(home.place, 'config/coffer/keys')
  return { home, vault: join(home.place, '.coffer'), key: join(keys, readdirSync(keys)[0]!) }
}

t.test(
  'links, files of other users and files that others can read are refused, and after a repair the vault works',
  async (t) => {
    const { home, vault, key } = await createFilledHome(t)
    const phrase = home.write('passphrase', 'a long enough passphrase\n')
    await home.json(['vault', 'keys', 'add', '--new-passphrase-file', phrase])
    const journal = readdirSync(vault).find((name) => name.startsWith('journal-'))!
    const [header, state] = [join(vault, 'vault.json'), join(vault, 'state')]
    const elsewhere = join(home.place, 'elsewhere')
    const link = (path: string) => {
      renameSync(path, elsewhere)
      symlinkSync(elsewhere, path)
      return () => {
        rmSync(path)
        renameSync(elsewhere, path)
      }
    }
    const give = (path: string) => {
      chownSync(path, 65_534, 65_534)
      return () => chownSync(path, 0, 0)
    }
    const expose = (mode: number) => (path: string) => {
      chmodSync(path, mode)
      return () => chmodSync(path, 0o600)
    }
    const others = /belongs to another user \(id 65534\)/
    const isRoot = process.getuid?.() === 0
    const given = isRoot ? [vault, header, state].map((path) => [path, give, 6, others] as const) : []
    for (const [path, spoil, code, message, flag] of [
      ...[vault, header, state].map((path) => [path, link, 6, /is not a plain|symbolic link/] as const),
      [join(vault, journal.replace('journal', 'head')), link, 7, /is not a file/],
      [join(vault, journal), link, 7, /symbolic link/],
      [key, link, 2, /symbolic link/],
      [key, expose(0o604), 6, /is open to others/, '--key-file'],
      [phrase, expose(0o640), 6, /is open to others/, '--passphrase-file'],
      ...given,
    ] as const) {
      const mend = spoil(path)
      const { code: ended, stdout, stderr } = await home.run(['token', 'list', ...(flag ? [flag, path] : [])])
      t.same([ended, stdout], [code, ''], path)
      t.match(stderr, message, path)
      mend()
    }
    t.match(await home.json(['token', 'get', 'one', '--reveal', '--passphrase-file', phrase]), {
      data: SECRET,
    })
    t.match(await home.json(['vault', 'verify']), { ok: true })
  },
)

t.test(
  'if the lock is replaced by a link, the link is not followed, whether or not its target exists',
  async (t) => {
    const { home, vault } = await createFilledHome(t)
    const target = home.write('target', 'untouched')
    for (const leadsTo of [target, join(home.place, 'nothing')]) {
      symlinkSync(leadsTo, join(vault, 'lock'))
      const { code, stderr } = await home.run(['token', 'list'])
      t.equal(code, 5)
      t.match(stderr, 'lock is not a lock of Coffer, but has its name. Move it away')
      rmSync(join(vault, 'lock'))
    }
    t.equal(readFileSync(target, 'utf8'), 'untouched')
    t.notOk(existsSync(join(home.place, 'nothing')))
    t.equal((await home.run(['token', 'list'])).code, 0)
  },
)

t.test(
  "a process that listens on the vault's socket, but does not have the key, learns nothing and blocks no command",
  async (t) => {
    const { home, vault } = await createFilledHome(t)
    const heard: Buffer[] = []
    const impostor = createServer((socket) => {
      socket.on('data', (bytes) => heard.push(bytes))
      socket.on('error', () => {})
      // The impostor first sends a challenge, like the process that owns a vault, and then an answer that proves
      // nothing.
      for (const message of [{ nonce: Buffer.alloc(32).toString('base64') }, { proof: 'AAAA' }]) {
        const body = Buffer.from(JSON.stringify(message))
        const length = Buffer.alloc(4)
        length.writeUInt32BE(body.length)
        socket.write(Buffer.concat([length, body]))
      }
    })
    await new Promise<void>((resolve) => impostor.listen(join(vault, 'socket'), resolve))
    t.teardown(() => impostor.close())
    const stdin = JSON.stringify({ id: 'two', type: 'token', data: 'said to nobody else' })
    t.match(await home.json(['token', 'create'], { stdin }), { id: 'two' })
    t.match(await home.json(['token', 'get', 'one', '--reveal']), { data: SECRET })
    t.ok(heard.length > 0, 'the command asked the process for its identity')
    const text = Buffer.concat(heard).toString('latin1')
    for (const word of ['token', 'two', 'said to nobody else', SECRET]) t.notOk(text.includes(word), word)
  },
)

t.test('if the socket is replaced by a link or an invalid file, no command blocks', async (t) => {
  const { home, vault } = await createFilledHome(t)
  const socket = join(vault, 'socket')
  const target = home.write('target', 'untouched')
  for (const plant of [
    () => symlinkSync(target, socket),
    () => mkdirSync(socket),
    () => writeFileSync(socket, 'a\0b', { mode: 0o600 }),
    () => writeFileSync(socket, join(home.place, 'nobody'), { mode: 0o600 }),
  ]) {
    plant()
    t.match(await home.json(['token', 'get', 'one', '--reveal']), { data: SECRET }, plant.toString())
    rmSync(socket, { recursive: true })
  }
  t.equal(readFileSync(target, 'utf8'), 'untouched')
})

t.test(
  'two copies of a vault are independent, and a file of one copy is refused in the other copy',
  async (t) => {
    const { home, vault } = await createFilledHome(t)
    const copy = join(home.place, 'copy')
    cpSync(vault, copy, { recursive: true })
    chmodSync(copy, 0o700)
    chmodSync(join(copy, 'segments'), 0o700)
    const create = (id: string, ...words: string[]) =>
      home.json(['token', 'create', ...words], { stdin: JSON.stringify({ id, type: 'token', data: id }) })
    await create('here')
    await create('there', '--vault', copy)
    const list = async (...words: string[]) =>
      (await home.json(['token', 'list', ...words])).data.map(({ id }: { id: string }) => id)
    t.same(await list(), ['here', 'one'])
    t.same(await list('--vault', copy), ['there', 'one'])
    await home.json(['vault', 'compact'])
    await home.json(['vault', 'compact', '--vault', copy])
    for (const directory of [vault, copy])
      t.match(await home.json(['vault', 'verify', '--vault', directory]), { ok: true })
    cpSync(join(copy, 'state'), join(vault, 'state'))
    const mixed = await home.run(['token', 'list'])
    t.same([mixed.code, mixed.stdout], [7, ''], 'the state of the other copy is refused')
  },
)
