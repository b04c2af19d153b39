/** Keys that users of `coffer serve` choose: the control key, and API keys of a seed. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startServer } from '../../src/index.js'
import { createControl } from '../../src/library/clients.js'
import { createWorkplace, request, runCommand, serveFor, type Workplace } from '../http/process.js'
import { testHome } from './home.js'

const KEY = '0123456789abcdef0123456789abcdee'
const API_KEY = 'key_test_us_pvt_chosen'
const REMOTE = '--host 0.0.0.0 --allow-remote'.split(' ')

function workplaceFor(t: Test, env: Record<string, string> = {}): Workplace {
  const place = createWorkplace()
  t.teardown(() => place.remove())
  return { ...place, env: { ...place.env, ...env } }
}

const writeSeed = ({ directory }: Workplace, name: string, seed: object) =>
  writeFileSync(join(directory, name), JSON.stringify(seed))

const applicationWith = (key?: string, name = 'backend') => ({
  ...{ name, type: 'private', permissions: ['token:create', 'token:read'] },
  ...(key !== undefined && { key }),
})

t.test('the control key comes from a file or the environment, and is never printed', async (t) => {
  const place = workplaceFor(t)
  writeFileSync(join(place.directory, 'control.key'), `${KEY}\n`)
  const fromFile = await serveFor(t, ['--ephemeral', ...REMOTE, '--control-key-file', 'control.key'], place)
  const fromVariable = await serveFor(
    t,
    ['--ephemeral', '--log', 'text'],
    workplaceFor(t, { COFFER_CONTROL_KEY: KEY }),
  )
  for (const { child, announcement, printed } of [fromFile, fromVariable]) {
    const { control, url } = announcement as typeof announcement & { control: object }
    t.same(control, { url: `${url}/_coffer`, for_other_machines: true })
    for (const [status, headers] of [
      [200, { 'svc-control-key': KEY }],
      [401, { 'svc-control-key': `${KEY}0` }],
    ] as const)
      t.equal((await fetch(`${url}/_coffer/clock`, { headers: { ...headers } })).status, status)
    t.notOk(readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').includes(KEY))
    t.notOk(`${printed.stdout}${printed.stderr}`.includes(KEY))
  }
  const { url } = fromFile.announcement
  const control = createControl({ url, key: KEY })
  t.match(await control.clock.advance({ by: '1h' }), { mode: 'offset' })
  const fork = await control.fork()
  t.match(await fork.control.clock.set({ mode: 'real' }), { mode: 'real' })
  t.match(await control.clock.get(), { mode: 'offset' }, 'the fork has a clock of its own')
  await fork.stop()
  await t.rejects(createControl({ url, key: KEY, prefix: 'bt' }).clock.get(), {
    message: /reads the control key from SVC-CONTROL-KEY, and this client sent BT-CONTROL-KEY/,
  })
  const line = ['control', 'clock', 'get', '--url', url, '-o', 'json']
  t.match(await runCommand(workplaceFor(t, { COFFER_CONTROL_KEY: KEY }), line), { code: 0, stdout: /offset/ })
  t.match(await runCommand(workplaceFor(t), line), { code: 4, stderr: /Set COFFER_CONTROL_KEY to it/ })
  const curl = await runCommand(place, ['control', 'clock', 'get', '--url', url, '--curl'])
  t.match(curl.stdout, 'SVC-CONTROL-KEY: $COFFER_CONTROL_KEY')
})

t.test(
  'a weak control key is refused, and a stored vault refuses every control key without --control-stored',
  async (t) => {
    const place = workplaceFor(t)
    await runCommand(place, ['init', '--starter-apps'])
    const weak = 'correct-horse'
    writeFileSync(join(place.directory, 'weak.key'), weak)
    writeFileSync(join(place.directory, 'control.key'), KEY)
    writeFileSync(join(place.directory, 'two.key'), `${KEY}\n${KEY}\n`)
    writeFileSync(join(place.directory, 'empty.key'), '\n')
    const file = ['--control-key-file', 'control.key']
    const own = { COFFER_CONTROL_KEY: KEY }
    for (const [stderr, words, env] of [
      [/at least 128 bits.*openssl rand -hex 16/, ['--ephemeral', '--control-key-file', 'weak.key'], {}],
      [/The key of COFFER_CONTROL_KEY must have/, ['--ephemeral'], { COFFER_CONTROL_KEY: weak }],
      [/at least 128 bits/, ['--ephemeral', '--control-key-file', 'two.key'], {}],
      [/at least 128 bits/, ['--ephemeral', '--control-key-file', 'empty.key'], {}],
      [/missing\.key/, ['--ephemeral', '--control-key-file', 'missing.key'], {}],
      [/this vault is stored. Leave out --control-key-file/, file, {}],
      [/this vault is stored. Run: unset COFFER_CONTROL_KEY/, [], own],
      [/this vault is stored/, ['--demo', ...file], {}],
      [/this vault is stored/, ['--test-controls', ...file], {}],
      [/--control-stored needs a control key/, ['--control-stored'], {}],
      [/Leave it out with --ephemeral/, ['--ephemeral', '--control-stored', ...file], {}],
      [/--test-keys needs --ephemeral/, ['--test-keys'], {}],
      [/--test-keys needs --ephemeral/, ['--demo', '--test-keys'], {}],
    ] as const) {
      const ended = await runCommand({ ...place, env: { ...place.env, ...env } }, ['serve', ...words])
      t.match(ended, { code: 2, stderr }, words.join(' '))
      t.notOk(`${ended.stdout}${ended.stderr}`.includes(KEY) || ended.stderr.includes(weak))
    }
    const { announcement } = await serveFor(t, ['--control-stored', ...file], place)
    const headers = { 'svc-control-key': KEY }
    t.equal((await fetch(`${announcement.url}/_coffer/faults`, { headers })).status, 200)
    t.equal((await fetch(`${announcement.url}/_coffer/clock`, { headers })).status, 404, 'it has no clock')
  },
)

t.test(
  'with --test-keys, a seed can set API keys that Coffer did not generate, also on a server for other machines',
  async (t) => {
    const place = workplaceFor(t)
    writeSeed(place, 'seed.json', {
      applications: [applicationWith(API_KEY), applicationWith(undefined, 'other')],
    })
    const { announcement, printed } = await serveFor(
      t,
      ['--ephemeral', ...REMOTE, '--seed', 'seed.json', '--test-keys'],
      place,
    )
    t.match(announcement, { test_keys: true, applications: { other: { key: /^key_/ } } })
    const { backend } = announcement.applications as Record<string, { key?: string; is_key_chosen?: boolean }>
    t.match(backend, { id: String, is_key_chosen: true, key: undefined })
    const ready = await (await fetch(`${announcement.url}/readyz`)).json()
    t.same(ready, { status: 'ok', test_keys: true })
    const made = await request(announcement, API_KEY, 'POST /tokens', { type: 'token', data: 'x' })
    t.equal(made.status, 201)
    for (const key of [`${API_KEY}x`, API_KEY.slice(0, -1), API_KEY.toUpperCase(), 'another-key-of-a-form'])
      t.equal((await request(announcement, key, 'GET /tokens')).status, 401)
    const self = await request(announcement, API_KEY, 'GET /applications/key')
    t.notOk(JSON.stringify(self.json).includes(API_KEY))
    t.match(printed.stderr, /accepts the API keys of its seed \(--test-keys\)/)
    t.notOk(`${printed.stdout}${printed.stderr}`.includes(API_KEY))
  },
)

testHome(
  'the announcement as text mentions the keys that the user chose, but does not print them',
  async (t, home) => {
    home.write('seed.json', JSON.stringify({ applications: [applicationWith(API_KEY)] }))
    const words = 'serve --port 0 --ephemeral --seed seed.json --test-keys -o table'
    const env = { COFFER_CONTROL_KEY: KEY }
    const { stdout, stderr } = await home.run(words, { env, interruptAt: 'Press Ctrl-C' })
    t.match(stdout, /Control plane, for tests: .*, also for other machines, with the key that you chose/)
    t.match(stdout, /backend +[0-9a-f-]{36} \(the key in the seed\)/)
    t.notOk(`${stdout}${stderr}`.includes(KEY) || `${stdout}${stderr}`.includes(API_KEY))
  },
)

t.test('a chosen API key is refused without --test-keys, or if its form is not allowed', async (t) => {
  const place = workplaceFor(t)
  const serve = (key: string, ...words: string[]) => {
    writeSeed(place, 'seed.json', { applications: [applicationWith(key)] })
    return runCommand(place, ['serve', '--port', '0', '--ephemeral', '--seed', 'seed.json', ...words])
  }
  const plain = 'key_1111111111111111111111'
  for (const [stderr, key, words] of [
    [/seed\.applications\[0\]\.key.*or the server needs --test-keys/, API_KEY, []],
    [/served on loopback addresses only.*--test-keys/, plain, REMOTE],
    [/must have 16 to 200 visible ASCII characters/, 'too-short', ['--test-keys']],
    [/must have 16 to 200/, 'k'.repeat(201), ['--test-keys']],
    [/must have 16 to 200/, 'with a space inside it', ['--test-keys']],
    [/must have 16 to 200/, 'with-a-line-break\nX-Header: 1', ['--test-keys']],
    [/not begin with key_sess_/, 'key_sess_1111111111111111111111', ['--test-keys']],
  ] as const) {
    const ended = await serve(key, ...words)
    t.match(ended.stderr, stderr, key)
    t.not(ended.code, 0)
    t.notOk(`${ended.stdout}${ended.stderr}`.includes(key), 'the key is not printed')
  }
  writeSeed(place, 'seed.json', { applications: [applicationWith(API_KEY), applicationWith(API_KEY, 'b')] })
  const words = ['serve', '--port', '0', '--ephemeral', '--seed', 'seed.json', '--test-keys']
  const twice = await runCommand(place, words)
  t.not(twice.code, 0)
  t.notOk(twice.stderr.includes(API_KEY))
  writeSeed(place, 'seed.json', { applications: [applicationWith(KEY)] })
  const both = await runCommand({ ...place, env: { ...place.env, COFFER_CONTROL_KEY: KEY } }, words)
  t.match(both, { code: 2, stderr: /The control key is also an API key of this vault/ })
  t.notOk(both.stderr.includes(KEY))
  await runCommand(place, ['init'])
  const stored = await runCommand(place, ['seed', 'apply', 'seed.json'])
  t.match(stored.stderr, /API keys can be chosen only in a vault in memory/)
})

t.test(
  'a fork has its own keys, and a key that the seed chooses is accepted only for the vault that was forked',
  async (t) => {
    const place = workplaceFor(t, { COFFER_CONTROL_KEY: KEY })
    writeSeed(place, 'seed.json', { applications: [applicationWith(API_KEY)] })
    const { announcement } = await serveFor(t, ['--ephemeral', '--seed', 'seed.json', '--test-keys'], place)
    const control = createControl({ url: announcement.url, key: KEY })
    const fork = await control.fork()
    t.match(fork.keys.backend, /^key_[1-9A-HJ-NP-Za-km-z]{22}$/)
    const made = await request(announcement, API_KEY, 'POST /tokens', { type: 'token', data: 'x' })
    t.equal(made.json.tenant_id, announcement.tenant_id)
    t.equal((await request(announcement, fork.keys.backend, `GET /tokens/${made.json.id}`)).status, 404)
    await control.reset()
    t.equal((await request(announcement, API_KEY, 'GET /tokens')).status, 200, 'a reset keeps the key')
    await fork.stop()
  },
)

t.test('a server that the library starts accepts no test keys', async (t) => {
  const seed = { applications: [applicationWith(API_KEY)] } as never
  await t.rejects(startServer({ seed }), { code: 'unprocessable' })
})

testHome(
  'a seed may set the key of a proxy, unless this key is the only protection of the proxy',
  async (t, home) => {
    const key = '3fGx7vKq9TbWm2RhYzNc8D'
    const proxy = { name: 'bank', destination_url: 'https://bank.example.com/', key }
    const open = { ...proxy, require_auth: false, application: 'backend' }
    const applications = [{ name: 'backend', type: 'private', permissions: ['token:read'] }]
    home.write('named.json', JSON.stringify({ proxies: [proxy] }))
    home.write('open.json', JSON.stringify({ applications, proxies: [open] }))
    home.write('random.json', JSON.stringify({ applications, proxies: [{ ...open, key: undefined }] }))
    await home.json(['init'])
    const refused = await home.run('seed apply open.json')
    t.match(refused, { code: 2, stderr: /proxies\[0\]\.key.*only protection.*Leave out the key/ })
    t.notOk(refused.stderr.includes(key))
    t.equal((await home.run('proxy list -o id')).stdout, '', 'nothing was created')
    for (const name of ['named', 'random']) t.equal((await home.run(`seed apply ${name}.json`)).code, 0, name)
    const { proxies } = await home.json('seed export --reveal')
    t.match(proxies, [
      { name: 'bank', key },
      { require_auth: false, key: /^[1-9A-HJ-NP-Za-km-z]{22}$/ },
    ])
    const remote = await startServer({ addresses: ['0.0.0.0'] })
    t.teardown(() => remote.stop())
    const near = await startServer()
    t.teardown(() => near.stop())
    const apply = (server: typeof near, item: object) =>
      server.ask('seed apply', {
        seed: { applications: [{ ...applications[0], name: 'own' }], proxies: [item] },
      })
    await t.rejects(apply(remote, { ...open, application: 'own' }), { message: /only protection/ })
    await apply(remote, proxy)
    await apply(near, { ...open, application: 'own' })
  },
)
