import { once } from 'node:events'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { sweepRegularly } from '../../src/cli/commands/serve/serve.js'
import { readServeFlags } from '../../src/cli/commands/serve/serve-options.js'
import { createControl } from '../../src/index.js'
import type { App } from '../../src/vault/app.js'
import {
  createWorkplace,
  request,
  runCommand,
  startCommand,
  startProcess,
  type Workplace,
} from '../http/process.js'
import { findLeaks } from '../support/leak.js'
import { createHome, ruleOf, testHome, testVault } from './home.js'

const CARD = '4242424242424242'
const SEED_KEY = 'key_1111111111111111111111'

function workplaceFor(t: Test): Workplace {
  const place = createWorkplace()
  t.teardown(() => place.remove())
  return place
}

testHome('a seed gives an ephemeral server its contents', async (t, home) => {
  const application = { name: 'backend', type: 'private', permissions: ['token:read'], key: SEED_KEY }
  home.write('seed.json', JSON.stringify({ applications: [application] }))
  const words = 'serve --ephemeral --seed seed.json --port 0 -o json'
  const { stdout } = await home.run(words, { interruptAt: '{"url"' })
  t.match(JSON.parse(stdout), { applications: { backend: { key: SEED_KEY } } })
})

t.test(
  'an ephemeral server writes no file, warns about access from other machines, and applies its limits',
  async (t) => {
    const place = workplaceFor(t)
    const words = '--ephemeral --host 0.0.0.0 --allow-remote --rate-limit 2/h --body-limit 1KiB'.split(' ')
    const { child, announcement, printed, ended } = await startProcess(place, words)
    const { url, applications: keys } = announcement
    t.match(url, /^http:\/\/localhost:\d+$/)
    const card = { type: 'card_number', data: CARD }
    const made = await request(announcement, keys.public?.key, 'POST /tokens', card)
    t.match(made, { status: 201, json: { data: 'XXXXXXXXXXXX4242', tenant_id: announcement.tenant_id } })
    const reader = keys.private?.key
    t.equal((await request(announcement, reader, `GET /tokens/${made.json.id}`)).json.data, CARD)
    const large = await request(announcement, reader, 'POST /tokens', {
      type: 'token',
      data: 'x'.repeat(1024),
    })
    t.equal(large.status, 413)
    const limited = await request(announcement, reader, 'GET /tokens')
    t.equal(limited.status, 429)
    t.match(limited.headers.get('retry-after'), /^1[78]\d\d$/)
    const tenant = await request(announcement, keys.management?.key, 'GET /tenants/self')
    t.equal(tenant.json.owner_id, announcement.owner_id)
    child.kill('SIGTERM')
    const { code, stderr } = await ended
    t.equal(code, 0)
    t.equal(printed.stdout.trim().split('\n').length, 1, 'the announcement is one line on standard output')
    t.match(stderr, /Other machines can reach this server, and their requests are not encrypted/)
    t.same(readdirSync(place.directory), [], 'no file was written')
    const lines = stderr.split('\n').filter((line) => line.startsWith('{'))
    t.match(JSON.parse(lines[0] ?? '{}'), {
      ...{ method: 'POST', route: '/tokens', status: 201, ms: Number },
      trace_id: made.headers.get('svc-trace-id'),
      application_id: keys.public?.id,
    })
    const secrets = [CARD, ...Object.values(keys).flatMap(({ key }) => key ?? [])]
    t.same(findLeaks(secrets, [{ name: 'standard error', bytes: Buffer.from(stderr) }]), [])
  },
)

t.test('a server keeps acknowledged changes, ignores SIGHUP, and ends after other signals', async (t) => {
  const place = workplaceFor(t)
  t.equal((await runCommand(place, ['init'])).code, 0)
  const first = await startProcess(place, ['--starter-apps'])
  const key = first.announcement.applications.private?.key
  const made = await request(first.announcement, key, 'POST /tokens', { type: 'token', data: 'kept' })
  first.child.kill('SIGHUP')
  t.equal((await request(first.announcement, key, `GET /tokens/${made.json.id}`)).status, 200)
  first.child.kill('SIGINT')
  t.equal((await first.ended).code, 0)

  const second = await startProcess(place, ['--prefix', 'bt', '--log', 'none'])
  t.equal(second.announcement.prefix, 'bt')
  const { id } = first.announcement.applications.private!
  // The second start does not print the key of the starter application again.
  t.same(second.announcement.applications.private, { id, name: 'starter private' })
  const headers = { 'BT-API-KEY': key ?? '' }
  const response = await fetch(`${second.announcement.url}/tokens/${made.json.id}`, { headers })
  t.equal(response.status, 200)
  t.match(await response.json(), { data: 'kept' })
  t.ok(response.headers.get('bt-trace-id'))
  // The body of this request never arrives completely, so the first SIGTERM does not stop the server at once.
  const socket = connect(Number(new URL(second.announcement.url).port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`POST /tokens HTTP/1.1\r\nHost: x\r\nBT-API-KEY: ${key}\r\nContent-Length: 9\r\n\r\n`)
  await request(second.announcement, undefined, 'GET /healthz')
  second.child.kill('SIGTERM')
  await once(second.child.stderr!, 'data')
  second.child.kill('SIGTERM')
  t.equal((await second.ended).signal, 'SIGTERM', 'a second signal ends the server at once')
  socket.destroy()
  const status = await runCommand(place, ['vault', 'status', '--output', 'json'])
  t.equal(status.code, 0, status.stderr)
})

t.test(
  "if the disk of the server's log is full, the server keeps running",
  { skip: !existsSync('/dev/full') },
  async (t) => {
    const place = workplaceFor(t)
    await runCommand(place, ['init'])
    const full = openSync('/dev/full', 'w')
    t.teardown(() => closeSync(full))
    const { child, announcement, ended } = await startProcess(place, [], { errorsTo: full })
    t.equal((await fetch(`${announcement.url}/healthz`)).status, 200)
    child.kill('SIGTERM')
    t.equal((await ended).code, 0, 'the server ends as usual, with exit code 0')
  },
)

testVault(
  'serve prints samples for existing applications, and says how to create a key if it does not know a key',
  async (t, home) => {
    const { id } = await home.createApp({ name: 'sup port', rules: [ruleOf('mask')] })
    const print = async (more = '') => {
      const line = `serve --port 0 -o table${more}`
      const { code, stdout } = await home.run(line, { interruptAt: 'Press Ctrl-C' })
      t.equal(code, 0)
      return stdout
    }
    t.match(await print(), `private     sup port (key not shown again: coffer app key create 'sup port')`)
    const first = await print(' --starter-apps')
    const key = /private +(key_\w+)/.exec(first)?.[1]
    t.match(first, `SVC-API-KEY: ${key}`)
    t.notMatch(first, id, 'the id of another application is not printed as its key')
    const second = await print(' --starter-apps')
    t.match(second, `starter private (key not shown again: coffer app key create 'starter private')`)
    t.match(second, 'SVC-API-KEY: KEY')
    t.equal((await home.json('app list')).data.length, 4)
  },
)

t.test(
  'the first start creates the demo vault with data, and later starts serve the same vault unchanged',
  async (t) => {
    const place = workplaceFor(t)
    const total = async () => {
      const { child, announcement, ended } = await startProcess(place, ['--demo'])
      const key = announcement.applications.private?.key
      const { json } = await request(announcement, key, 'GET /tokens?size=1')
      const vault = ['--vault', '.coffer-demo/vault', '--key-file', '.coffer-demo/vault.key']
      const { stdout } = await runCommand(place, ['token', 'list', '--size', '1', ...vault])
      t.same(
        JSON.parse(stdout).pagination,
        json.pagination,
        'commands reach the server, also at its first start',
      )
      if (json.pagination.total_items > 0)
        await request(announcement, key, `DELETE /tokens/${json.data[0].id}`)
      child.kill('SIGTERM')
      t.equal((await ended).code, 0)
      return json.pagination.total_items as number
    }
    const first = await total()
    t.ok(first > 100, `${first} tokens`)
    t.equal(await total(), first - 1)
    const directory = join(place.directory, '.coffer-demo')
    for (const name of ['vault.key', 'applications.json'])
      t.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name)
    t.notOk(existsSync(join(place.directory, 'config')), 'the key file is not beside the vault')
    const starters = join(directory, 'applications.json')
    const known = JSON.parse(readFileSync(starters, 'utf8'))
    for (const planted of [
      { ...known, private: { ...known.private, key: "'; touch planted; echo '" } },
      { ...known, public: { ...known.public, id: '\u001b]0;planted\u0007' } },
      { ...known, planted: known.public },
      null,
    ]) {
      writeFileSync(starters, JSON.stringify(planted))
      const refused = await createHome(t).run('serve --demo --port 0', { cwd: place.directory })
      // A text from a file of another person is never printed as part of a command that users paste.
      t.match(refused, {
        code: 7,
        stdout: /^$/,
        stderr: /^((?!touch).)*is missing or damaged\. .*first move this directory away: mv((?!touch).)*$/s,
      })
    }
  },
)

t.test(
  'the demo vault begins with three failed requests, an application that reads masked data, and a webhook that cannot be called',
  async (t) => {
    const place = workplaceFor(t)
    const { child, announcement, ended } = await startProcess(place, ['--demo'])
    const control = createControl({ url: announcement.url, key: announcement.control!.key! })
    const wanted = { operation: 'reactor react', status: 500, count: 1, timeout: '30s' }
    t.match(await control.requests.list(wanted), { length: 1 })
    const failed = await control.requests.list({})
    t.same(
      failed.map(({ operation, status }) => `${operation} ${status}`),
      ['token create 400', 'token get 403', 'reactor react 500'],
    )
    const key = announcement.applications.management?.key
    const { json } = await request(announcement, key, 'GET /applications')
    t.match(
      json.data.find(({ name }: { name: string }) => name === 'support'),
      { rules: [{ transform: 'mask' }] },
    )
    const vault = ['--vault', '.coffer-demo', '--output', 'json']
    const hooks = JSON.parse((await runCommand(place, ['webhook', 'list', ...vault])).stdout)
    t.match(hooks.data, [{ name: 'billing', destination: { state: 'blocked' } }])
    const deliveries = await runCommand(place, ['webhook', 'deliveries', hooks.data[0].id, ...vault])
    t.match(JSON.parse(deliveries.stdout).data, [
      { type: 'token.created', state: 'waiting', failure: /--allow-net/ },
    ])
    child.kill('SIGTERM')
    t.equal((await ended).code, 0)
  },
)

t.test('if the clock of the demo was moved, the next start begins with the real time', async (t) => {
  const place = workplaceFor(t)
  const first = await startProcess(place, ['--demo'])
  const { clock } = createControl({ url: first.announcement.url, key: first.announcement.control!.key! })
  await clock.advance({ by: '30d' })
  const key = first.announcement.applications.private?.key
  const made = await request(first.announcement, key, 'POST /tokens', { type: 'token', data: 'later' })
  t.ok(Date.parse(made.json.created_at) - Date.now() > 29 * 86_400_000)
  first.child.kill('SIGKILL')
  await first.ended
  const second = await startProcess(place, ['--demo'])
  const { json } = await request(second.announcement, key, 'POST /tokens', { type: 'token', data: 'now' })
  t.ok(Math.abs(Date.parse(json.created_at) - Date.now()) < 60_000)
  t.equal(
    (await request(second.announcement, key, `GET /tokens/${made.json.id}`)).status,
    200,
    'nothing is lost',
  )
  second.child.kill('SIGTERM')
  t.equal((await second.ended).code, 0)
})

t.test('if a start is killed while it creates the demo vault, the next start succeeds', async (t) => {
  const place = workplaceFor(t)
  const isStaging = (name: string) => /^\.coffer-demo\.new-.{6}$/.test(name)
  const killed = startCommand(place, ['serve', '--demo', '--port', '0'])
  const hasBegun = (name: string) => isStaging(name) || name === '.coffer-demo'
  while (!readdirSync(place.directory).some(hasBegun)) await sleep(1)
  killed.child.kill('SIGKILL')
  await killed.ended
  const { child, ended } = await startProcess(place, ['--demo'])
  child.kill('SIGTERM')
  t.equal((await ended).code, 0)
  const left = readdirSync(place.directory).filter((name) => !isStaging(name))
  t.strictSame(left.sort(), ['.coffer-demo'])
})

t.test('if serve cannot start, it reports the error and ends with the exit code of the error', async (t) => {
  const taken = createServer().listen(0, 'localhost')
  t.teardown(() => taken.close())
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const home = createHome(t)
  const application = { name: 'a', type: 'private', permissions: ['token:read'], key: SEED_KEY }
  home.write('keyed.json', JSON.stringify({ applications: [application] }))
  home.write('wrong.json', '{"tokens":[{"type":"card","data":{"number":"1"}}]}')
  const cases: [string[], number, RegExp][] = [
    [
      ['--ephemeral', '--no-cors', '--prefix', 'bt', '--port', String(port)],
      9,
      new RegExp(
        `Port ${port} is in use\\. Use a free one: coffer serve --ephemeral --no-cors --prefix bt --port 0\n`,
      ),
    ],
    [[], 6, /no vault in this/],
    [['--ephemeral', '--host', '0.0.0.0'], 2, /--allow-remote/],
    [['--ephemeral', '--port', '70000'], 2, /--port takes/],
    [['--ephemeral', '--demo'], 2, /cannot be combined/],
    [['--ephemeral', '--rate-limit', 'fast'], 2, /--rate-limit takes/],
    [['--ephemeral', '--prefix', 'a-b'], 2, /--prefix takes/],
    [['--ephemeral', '--tls-cert', 'x'], 2, /given together/],
    [['--ephemeral', '--body-limit', '1GiB'], 2, /--body-limit takes/],
    [['--ephemeral', '--log', 'xml'], 2, /--log takes/],
    [['token', 'list'], 2, /Too many arguments for 'serve'/],
    [['--vault', 'token'], 6, /no vault in .*token/],
    [['--seed', 'keyed.json'], 2, /--seed needs --ephemeral/],
    ['--ephemeral --seed keyed.json --host 0.0.0.0 --allow-remote'.split(' '), 2, /loopback addresses only/],
    [['--ephemeral', '--seed', 'wrong.json'], 2, /seed\.tokens\[0\]\.data\.number/],
  ]
  for (const [words, exit, message] of cases)
    t.match(await home.run(['serve', ...words]), { code: exit, stderr: message }, words.join(' '))
  const words = ['serve', '--ephemeral', '--port', String(port)]
  const byNpm = await home.run(words, { env: { npm_lifecycle_event: 'start' } })
  t.match(byNpm.stderr, `Port ${port} is in use. Use a free one: npm start -- --port 0\n`)
})

t.test('serve --run ends with the exit code of its command', async (t) => {
  const place = workplaceFor(t)
  const run = (line: string) => runCommand(place, ['serve', '--ephemeral', '--run', line])
  t.match(await run('echo "$COFFER_URL"'), { code: 0, stdout: /^http:/, stderr: '' })
  for (const [line, code] of [
    ['exit 7', 7],
    ['false', 1],
    ['kill -TERM $$', 143],
    ['no-such-program 2> /dev/null', 127],
  ] as const)
    t.match(
      await run(line),
      { code, stderr: /^error: The command of --run ended with (exit code \d+|SIGTERM)\.\n$/ },
      line,
    )
})

t.test('serve accepts requests from other machines only with an explicit option', async (t) => {
  const local = { hostName: 'localhost', isRemote: false }
  for (const [flags, expected] of [
    [{}, { ...local, addresses: ['127.0.0.1', '::1'], port: 4010 }],
    [{ host: '::1' }, { addresses: ['::1'], hostName: '[::1]', isRemote: false }],
    [
      { host: '0.0.0.0', allowRemote: true },
      { addresses: ['0.0.0.0'], hostName: 'localhost', isRemote: true },
    ],
    [
      { host: 'fe80::1', allowRemote: true },
      { hostName: '[fe80::1]', isRemote: true },
    ],
    [{ bodyLimit: '64KiB' }, { bodyLimitBytes: 65_536 }],
    [{ bodyLimit: '2MiB' }, { bodyLimitBytes: 2_097_152 }],
    [{ rateLimit: '5/m' }, { rate: { count: 5, periodMs: 60_000 } }],
  ])
    t.match(readServeFlags(flags!), expected)
  for (const host of ['0.0.0.0', '::', '192.168.1.2', 'example.com', '127.0.0.2'])
    t.throws(() => readServeFlags({ host }), { code: 'usage' }, host)
})

t.test('the OpenAPI document is printed without a vault', async (t) => {
  const document = await createHome(t).json('openapi --prefix bt')
  t.equal(document.openapi, '3.1.0')
  t.equal(document.components.securitySchemes.apiKey.name, 'BT-API-KEY')
  t.ok(document.paths['/tokens'].post)
})

t.test('the sweeper runs until the abort signal, even after one sweep has failed', async (t) => {
  const stop = new AbortController()
  const reported: unknown[] = []
  let sweeps = 0
  const app = {
    deliveries: { resume: () => Promise.reject(new Error('mail')) } as unknown as App['deliveries'],
    sweep: async () => {
      if (++sweeps === 2) throw new Error('disk')
      if (sweeps === 3) stop.abort()
      return 0
    },
  }
  await sweepRegularly(
    app,
    stop.signal,
    (error) => reported.push((error as Error).message),
    async () => {},
  )
  t.strictSame(reported, ['mail', 'disk', 'mail', 'mail'])
})
