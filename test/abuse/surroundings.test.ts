/** What a hostile or careless place does to a vault, through the command line: links, pipes, other people, copies. */
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

/** A home with a vault of one token. */
async function createFilledHome(t: Test): Promise<{ home: Home; vault: string; key: string }> {
  const home = await createVaultHome(t)
  await home.json(['token', 'create'], { stdin: JSON.stringify({ id: 'one', type: 'token', data: SECRET }) })
  const keys = join(home.place, 'config/coffer/keys')
  return { home, vault: join(home.place, '.coffer'), key: join(keys, readdirSync(keys)[0]!) }
}

/** Moves `path` away and leaves a link in its place. */
function plantLink(path: string, elsewhere: string): () => void {
  renameSync(path, elsewhere)
  symlinkSync(elsewhere, path)
  return () => {
    rmSync(path)
    renameSync(elsewhere, path)
  }
}

t.test('a link in the place of any file is refused, and works again when it is gone', async (t) => {
  const { home, vault, key } = await createFilledHome(t)
  const journal = readdirSync(vault).find((name) => name.startsWith('journal-'))!
  for (const [path, code] of [
    [vault, 6],
    [join(vault, 'vault.json'), 6],
    [join(vault, 'state'), 6],
    [join(vault, journal.replace('journal', 'head')), 1],
    [join(vault, journal), 1],
    [key, 2],
  ] as const) {
    const mend = plantLink(path, join(home.place, 'elsewhere'))
    const { code: ended, stdout, stderr } = await home.run(['token', 'get', 'one', '--reveal'])
    t.same([ended, stdout], [code, ''], path)
    t.match(stderr, /is not a plain|symbolic link/, path)
    mend()
  }
  t.match(await home.json(['token', 'get', 'one', '--reveal']), { data: SECRET })
  t.match(await home.json(['vault', 'verify']), { ok: true })
})

t.test('a link in the place of the lock leads nowhere, whether or not something is there', async (t) => {
  const { home, vault } = await createFilledHome(t)
  const target = home.write('target', 'untouched')
  for (const leadsTo of [target, join(home.place, 'nothing')]) {
    symlinkSync(leadsTo, join(vault, 'lock'))
    const { code, stderr } = await home.run(['token', 'list'])
    t.equal(code, 1)
    t.match(stderr, 'lock: it is a symbolic link, which a vault never follows. Remove the link.')
    rmSync(join(vault, 'lock'))
  }
  t.equal(readFileSync(target, 'utf8'), 'untouched')
  t.notOk(existsSync(join(home.place, 'nothing')))
  t.equal((await home.run(['token', 'list'])).code, 0)
})

t.test('who listens on the socket without the key is told nothing, and is in nobody’s way', async (t) => {
  const { home, vault } = await createFilledHome(t)
  const heard: Buffer[] = []
  const impostor = createServer((socket) => {
    socket.on('data', (bytes) => heard.push(bytes))
    socket.on('error', () => {})
    // A challenge as the owner would send it, and an answer that proves nothing.
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
  t.ok(heard.length > 0, 'it was asked who it is')
  const text = Buffer.concat(heard).toString('latin1')
  for (const word of ['token', 'two', 'said to nobody else', SECRET]) t.notOk(text.includes(word), word)
})

t.test('a link or rubbish where the socket should be keeps nobody from the vault', async (t) => {
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

t.test('what opens the vault is refused while others may read it', async (t) => {
  const { home, key } = await createFilledHome(t)
  const passphrase = home.write('passphrase', 'a long enough passphrase\n')
  await home.json(['vault', 'keys', 'add', '--new-passphrase-file', passphrase])
  for (const [path, flag] of [
    [key, '--key-file'],
    [passphrase, '--passphrase-file'],
  ] as const) {
    for (const mode of [0o644, 0o640, 0o604]) {
      chmodSync(path, mode)
      const { code, stdout, stderr } = await home.run(['token', 'list', flag, path])
      t.same([code, stdout], [6, ''], `${flag} ${mode.toString(8)}`)
      t.match(stderr, /is open to others/)
    }
    chmodSync(path, 0o600)
  }
  const opened = await home.run(['token', 'list', '--passphrase-file', passphrase])
  t.equal(opened.code, 0)
})

const mayGiveAway = process.getuid?.() === 0 ? {} : { skip: 'only root can give files away' }

t.test('a vault, or a part of it, that belongs to somebody else is refused', mayGiveAway, async (t) => {
  const { home, vault } = await createFilledHome(t)
  for (const path of [vault, join(vault, 'vault.json'), join(vault, 'state')]) {
    chownSync(path, 65_534, 65_534)
    const { code, stdout, stderr } = await home.run(['token', 'list'])
    t.same([code, stdout], [6, ''], path)
    t.match(stderr, `${path} belongs to another user (id 65534).`)
    chownSync(path, 0, 0)
  }
  t.equal((await home.run(['token', 'list'])).code, 0)
})

t.test('two copies of one vault go their own ways, and parts of one do not fit the other', async (t) => {
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
  t.same([mixed.code, mixed.stdout], [7, ''], 'a state of the other')
})
