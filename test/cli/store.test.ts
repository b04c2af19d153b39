/** Tests of the command line with vaults in a PostgreSQL store. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { emptyDatabase, sharedDatabase } from '../storage/postgres-server.js'
import { createMachine, PROGRAM, waitFor } from '../support/process.js'
import { createHome } from './home.js'

const home = createHome(t)
const { place, run, json: read } = home
home.write('pw', 'topsecret\n')
const address = await sharedDatabase()

t.test('commands can use a vault in a store', async (t) => {
  const made = await read(`init --store ${address} --name team`)
  t.match(made, { store: address, tenant: { name: 'team' } })
  t.notOk('directory' in made)
  const env = { COFFER_STORE: address }
  const stdin = '{"id":"card-1","type":"card","data":{"number":"4242424242424242"}}'
  for (const [line, expected] of [
    ['token create', { id: 'card-1' }],
    ['tenant use team', { name: 'team' }],
    ['token list', { pagination: { total_items: 1 } }],
    ['vault status', { store: address, tokens: 1 }],
    ['vault verify', { ok: true }],
    ['vault compact', undefined],
    ['vault keys add --new-key-file second.key', [{ kind: 'key-file' }, { kind: 'key-file' }]],
    ['vault rekey --yes', { store: address, resealed: Number, dropped_slots: [String] }],
    ['token get card-1 --reveal', { data: { number: '4242424242424242' } }],
    ['log verify', { is_whole: true }],
  ] as const)
    t.match(await read(line, { stdin, env }), expected, line)
  t.match((await run('doctor', { env })).stdout, 'Any number of processes')
  const refused = await run(`vault copy --skip-damaged --to ${address} -o json`, { env })
  t.match(refused, { code: 2, stderr: /unprocessable.*(store|PostgreSQL)/ })
  t.match(await run(`init --store ${address}`), { code: 5 })
})

t.test(
  'worker processes of a server share a port, a killed worker is replaced, and one signal stops all workers',
  async (t) => {
    const env = { ...process.env, ...home.env, COFFER_STORE: address, COFFER_OUTPUT: 'json' }
    const words = ['serve', '--workers', '2', '--port', '0', '--starter-apps', '--log', 'none']
    const server = spawn(process.execPath, [PROGRAM, ...words], { cwd: place, env })
    const ended = waitFor(server)
    const [line] = (await once(server.stdout!.setEncoding('utf8'), 'data')) as [string]
    const { url, applications, control } = JSON.parse(line)
    t.notOk(control)
    const ask = async () => {
      const headers = { 'svc-api-key': applications.private.key, connection: 'close' }
      return (await fetch(`${url}/tokens/card-1`, { headers }).catch(() => undefined))?.status
    }
    const children = () =>
      readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').trim().split(' ')
    const until = async (holds: () => boolean | Promise<boolean>) => {
      while (!(await holds())) await setTimeout(100)
    }
    await until(() => children().length === 2)
    const [first = ''] = children()
    t.equal(await ask(), 200)
    process.kill(Number(first), 'SIGKILL')
    await until(() => children().length === 2 && !children().includes(first))
    await until(async () => (await ask()) === 200)
    for (let count = 0; count < 10; count++) t.equal(await ask(), 200)
    server.kill('SIGTERM')
    t.match(await ended, { code: 0, stderr: /^A worker ended\. Another one starts\.\nStopping/ })
  },
)

t.test('a vault can be copied, backed up and restored between a store and directories', async (t) => {
  const env = { COFFER_STORE: address }
  const token = async (where: string) => (await read(`token get card-1 --reveal ${where}`)).data.number
  const copied = await read('vault copy --to copied', { env })
  t.match(copied, { directory: join(place, 'copied'), copied_from: address, digest: /^[0-9a-f]{32}$/ })
  t.equal(await token('--vault copied'), '4242424242424242')
  await read('vault backup store.backup', { env })
  const other = await emptyDatabase()
  const restored = await read(`vault restore store.backup --store ${other}`)
  t.match(restored, { store: other, restored_from: /backup/ })
  t.equal(await token(`--store ${other}`), '4242424242424242')
  const third = await emptyDatabase()
  const back = await run(`vault copy --vault copied --to ${third} --to-password-file pw`)
  t.match(back, { code: 0, stderr: /Use only one of the two vaults/ })
  t.match(await run(`vault copy --vault copied --to ${third}`), { code: 5, stderr: /already/ })
})

t.test('a wrong option for a vault in a store is refused, and no error shows a password', async (t) => {
  await read(`profile set team store ${address}`)
  t.equal((await read('token list --profile team')).pagination.total_items, 1)
  await read('profile set other store-password-file pw')
  const to = 'vault copy --vault copied --to'
  const typed = address.replace('test@', 'test:topsecret@')
  for (const [line, code, stderr] of [
    ['serve --ephemeral --workers 2', 2, /PostgreSQL/],
    [`serve --store ${address} --workers 2 --rate-limit 1/s`, 2, /--rate-limit and --workers/],
    ['serve --workers 65', 2, /from 1 to 64/],
    [`token list --store ${address} --vault here`, 2, /--vault and --store/],
    [`token list --vault ${address}`, 2, /named with --store/],
    ['token list --vault memory:', 2, /./],
    ['token list --profile team --vault elsewhere', 6, /./],
    ['profile set team store postgres://bob:topsecret@db/v', 2, /cannot contain the password/],
    ['profile set other store-password-fd 3', 2, /./],
    [`${to} ${typed}`, 2, /to-password-file/],
    [`${to} other --to-password-file pw`, 2, /--to is a directory/],
    [`${to} postgres://x@127.0.0.1:1/y?sslmode=require`, 9, /does not check the server's certificate/],
    [`${to} mysql://x/y`, 2, /not supported/],
    [`${to} postgres://x@127.0.0.1:1/y`, 9, /./],
    ['init --store postgres://bob:topsecret@127.0.0.1:1/vault', 9, /./],
    [`vault status --store ${address} --store-password-file none`, 2, /./],
  ] as const) {
    const outcome = await run(line)
    t.match(outcome, { code, stderr }, line)
    t.notMatch(outcome.stdout + outcome.stderr, 'topsecret', line)
  }
})

t.test('a password is never shown, and an unreachable database gives exit code 9', async (t) => {
  const byFlag = await run('token list --store postgres://bob:topsecret@127.0.0.1:1/vault -o json')
  const [told, problem = ''] = byFlag.stderr.trim().split('\n')
  t.match(told, /in the command line/, 'the error is reported although the store never answers')
  t.match(JSON.parse(problem), { status: 503, detail: /does not answer/ })
  t.match(byFlag, { code: 9 })
  const withPassword = address.replace('test@', 'test:topsecret@')
  const warned = await run(`vault status --store ${withPassword}`)
  t.match(warned, { code: 0, stderr: /in the command line/ })
  t.notMatch(byFlag.stdout + byFlag.stderr + warned.stdout + warned.stderr, /topsecret/)
  for (const [line, env] of [
    [`token list --store ${address}&sslmode=disable`, {}],
    ['vault status', { COFFER_STORE: withPassword }],
    [`vault status --store ${address} --store-password-file pw`, {}],
  ] as [string, Record<string, string>][])
    t.match(await run(line, { env }), { code: 0, stderr: /^$/ }, line)
})

t.test('other users cannot see the password of the store in the command line of a server', async (t) => {
  const machine = await createMachine(t)
  const mine = `${address.replace('test@', 'test:topsecret@')}&schema=public`
  const keys = join(place, 'config', 'coffer', 'keys')
  const [key] = readdirSync(keys)
  const words = ['--store', mine, '--key-file', join(keys, key!), '--port', '0', '-o', 'json']
  const server = machine.start(['serve', ...words])
  t.teardown(() => server.kill('SIGKILL'))
  const [line] = await once(server.stdout!, 'data')
  const { url } = JSON.parse(String(line))
  t.equal((await fetch(`${url}/readyz`)).status, 200)
  if (process.platform === 'linux')
    t.notMatch(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8'), /topsecret/)
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  t.strictSame(await ended, [0, null])
})

/** Starts a fake PostgreSQL server. The server asks each client for its password and then refuses the password. */
async function startAsking(t: Test): Promise<{ port: number; told: string[] }> {
  const told: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]))
      // A message begins with one byte for its kind and four bytes for its length, and ends with a zero byte.
      socket.once('data', (bytes) => {
        told.push(bytes.toString('utf8', 5, bytes.length - 1))
        socket.end()
      })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, told }
}

t.test(
  'a password from a file, PGPASSFILE or the environment is sent only to the database of the store',
  async (t) => {
    const { port, told } = await startAsking(t)
    const bare = `postgres://bob@127.0.0.1:${port}/v`
    const withPassword = bare.replace('bob@', 'bob:of-address-pw@')
    home.write('password', 'of-file-pw\n')
    home.write('pgpass', `127.0.0.1:${port}:v:bob:of-pgpass-pw\n`)
    const env = { ...home.env, PATH: process.env.PATH ?? '' }
    const passFile = { PGPASSFILE: join(place, 'pgpass') }
    const cases: [words: string[], more: Record<string, string>, password?: string][] = [
      [['--store', bare], {}],
      [['--store', bare, '--store-password-file', 'password'], passFile, 'of-file-pw'],
      [['--store', bare], passFile, 'of-pgpass-pw'],
      [['--store', bare], { PGPASSWORD: 'of-variable-pw', ...passFile }, 'of-variable-pw'],
      [[], { COFFER_STORE: withPassword, ...passFile }, 'of-address-pw'],
    ]
    for (const [words, more, password] of cases) {
      const options = { cwd: place, env: { ...env, ...more } }
      const child = spawn(process.execPath, [PROGRAM, 'vault', 'status', ...words], options)
      const { code, stdout, stderr } = await waitFor(child)
      t.equal(code, password === undefined ? 1 : 9, stderr)
      if (password === undefined) t.match(stderr, /asks for a password.*--store-password-file.*PGPASSFILE/)
      t.equal(told.pop(), password)
      t.notMatch(stdout + stderr, /-pw/)
      t.notMatch(stderr, /Warning/, 'dependencies print no warnings')
    }
  },
)
