import {
  existsSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { nativePrimitives } from '../../src/crypto/native.js'
import { createMac } from '../../src/crypto/primitives.js'
import { CofferError } from '../../src/errors.js'
import { type ConnectOptions, connectToVault, serveVaultSocket } from '../../src/ipc/vault-socket.js'
import { nodeFiles } from '../../src/storage/node-files.js'

const key = (byte: number) => createMac(nativePrimitives, new Uint8Array(32).fill(byte))

/** Creates the directory of a vault. Returns the options that the client and the server need to connect. */
function place(t: Test, name = 'v'): ConnectOptions {
  const root = mkdtempSync(join(tmpdir(), 'coffer-handover-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  const files = nodeFiles()
  const directory = join(root, name)
  files.makeDirectory(directory)
  const describeSilence = () => new CofferError('unavailable', 'It is silent.')
  return { files, directory, proof: key(1), limitMs: 5000, describeSilence }
}

const echo = async (message: unknown) => ({ echo: message })

t.test('the owner of a vault answers every message that a command sends to its socket', async (t) => {
  const options = place(t)
  const listener = await serveVaultSocket(options, echo)
  t.equal(
    statSync(join(options.directory, 'socket')).mode & 0o777,
    0o600,
    "only the owner's user may use the socket",
  )
  const peer = await connectToVault(options)
  const other = await connectToVault(options)
  const messages = [{ word: 'ä', deep: [1, null] }, 'x'.repeat(3_000_000)]
  const answers = await Promise.all([peer, other].flatMap((each) => messages.map((one) => each?.ask(one))))
  t.same(
    answers,
    [...messages, ...messages].map((message) => ({ echo: message })),
  )
  peer?.close()
  other?.close()
  await listener.close()
  t.equal(await connectToVault(options), undefined, 'no process listens any more')
})

t.test(
  'a client without the vault key gets no answer, and a server without the key gets no message',
  async (t) => {
    const options = place(t)
    const asked: unknown[] = []
    const listener = await serveVaultSocket(options, async (message) => asked.push(message))
    t.equal(await connectToVault({ ...options, proof: key(2) }), undefined, 'another key')
    for (const hello of [
      '',
      '\0\0\0\x02{}',
      '\xff\xff\xff\xff',
      '\0\0\0\x05abcde',
      'GET / HTTP/1.1\r\n\r\n',
    ]) {
      await new Promise<void>((resolve) => {
        const socket = connect(join(options.directory, 'socket'))
        socket.on('close', () => resolve())
        socket.on('error', () => resolve())
        socket.end(hello, 'latin1')
        socket.resume()
      })
    }
    t.same(asked, [], 'no message of the client without the key was handled')
    const peer = await connectToVault(options)
    t.ok(peer, 'a client with the key is still served')
    peer?.close()
    await listener.close()
  },
)

t.test(
  'if the owner of a vault is dead, its socket does not answer, and the next owner takes the socket over',
  async (t) => {
    const options = place(t)
    writeFileSync(join(options.directory, 'socket'), join(tmpdir(), 'coffer-no-such-socket'), { mode: 0o600 })
    t.equal(await connectToVault(options), undefined)
    const listener = await serveVaultSocket(options, echo)
    const peer = await connectToVault(options)
    t.same(await peer?.ask(1), { echo: 1 })
    peer?.close()
    await listener.close()
  },
)

t.test('a client of a copied vault does not reach the owner of the original vault', async (t) => {
  const options = place(t)
  const asked: unknown[] = []
  const listener = await serveVaultSocket(options, async (message) => asked.push(message))
  const copy = place(t)
  symlinkSync(join(options.directory, 'socket'), join(copy.directory, 'socket'))
  t.equal(await connectToVault(copy), undefined)
  await listener.close()
  t.same(asked, [])
})

t.test(
  'if the path of a socket is too long, the socket is reached through a link that is removed at once',
  async (t) => {
    const options = place(t, 'x'.repeat(120))
    const links = () => readdirSync(tmpdir()).filter((name) => /^coffer-.{6}$/.test(name)).length
    const before = links()
    const listener = await serveVaultSocket(options, echo)
    t.equal(statSync(join(options.directory, 'socket')).mode & 0o777, 0o600)
    const peer = await connectToVault(options)
    t.equal(links(), before)
    t.same(await peer?.ask(1), { echo: 1 })
    peer?.close()
    await listener.close()
    t.notOk(existsSync(join(options.directory, 'socket')))
  },
)

t.test(
  'when the socket closes, messages that have arrived are answered and later messages are refused',
  async (t) => {
    const options = place(t)
    let finish: (() => void) | undefined
    const listener = await serveVaultSocket(options, async () => {
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      return 'done'
    })
    const peer = await connectToVault(options)
    const asked = peer?.ask('slow')
    while (finish === undefined) await new Promise(setImmediate)
    const closing = listener.close()
    finish()
    t.equal(await asked, 'done')
    await closing
    await t.rejects(peer?.ask('late') ?? Promise.resolve(), { code: 'unavailable' })
  },
)

t.test(
  'a client stops waiting for a server that never answers, but waits for a server that answers slowly',
  async (t) => {
    const found = place(t)
    let probes = 0
    const options = Object.defineProperty({ ...found, probeMs: 5 }, 'limitMs', {
      get: () => {
        probes++
        return 500
      },
    })
    let finish = () => {}
    const slow = () =>
      new Promise((resolve) => {
        finish = () => resolve('done')
      })
    const listener = await serveVaultSocket(options, slow)
    const peer = await connectToVault(options)
    const asked = peer!.ask('slow')
    while (probes < 5) await new Promise(setImmediate)
    finish()
    t.equal(await asked, 'done', 'the slow answer arrives')

    // This server behaves like a stopped process: the system accepts the connections, but the process sends nothing.
    const [socket, silent] = ['socket', 'silent'].map((name) => join(options.directory, name)) as [
      string,
      string,
    ]
    const stopped = createServer(() => {}).listen(silent)
    t.teardown(() => stopped.close())
    await new Promise((resolve) => stopped.once('listening', resolve))
    const waiting = peer!.ask('slow')
    renameSync(socket, join(options.directory, 'moved'))
    renameSync(silent, socket)
    await t.rejects(waiting, { code: 'unavailable', message: 'It is silent.' })
    await t.rejects(connectToVault(options), { code: 'unavailable', message: 'It is silent.' })
    peer!.close()
    finish()
    await listener.close()
  },
)
