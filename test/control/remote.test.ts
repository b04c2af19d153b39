/** Attacks on a control plane that other machines may use, and on its control key. */
import t, { type Test } from 'tap'
import { createVaultAnswerer, type VaultAnswererOptions } from '../../src/control/answerer.js'
import { createKeyCheck, WRONG_KEYS } from '../../src/control/control-key.js'
import { openControlled } from '../../src/control/control-state.js'
import { isControlKey, isTestKey } from '../../src/domain/text/chosen-key.js'
import type { AccessEntry } from '../../src/http/access-log.js'
import type { HttpRequest } from '../../src/http/exchange.js'
import { readAnswers, sendRaw } from '../http/socket.js'

const KEY = '9f86d081884c7d659a2feaa0c55ad015'
const WRONG = '9f86d081884c7d659a2feaa0c55ad016'
const OTHER_MACHINE = '192.0.2.7'
const APPLICATION = { name: 'backend', type: 'private', permissions: ['token:read'] } as const

type Sent = { client?: string; headers?: Record<string, string>; body?: object }

async function open(t: Test, options: Partial<VaultAnswererOptions> = {}) {
  const lines: AccessEntry[] = []
  const { control, applications } = await openControlled(
    { tenantName: 'test' },
    { applications: [APPLICATION] },
  )
  t.teardown(() => control.close())
  const answer = createVaultAnswerer(
    { record: (entry) => lines.push(entry) },
    { control, key: KEY, isKeyForOthers: true, prefix: 'bt', allowHosts: ['coffer'], ...options },
  )
  const send = async (line: string, { client = OTHER_MACHINE, headers = {}, body }: Sent = {}) => {
    const [method = '', target = ''] = line.split(' ')
    const bytes = Buffer.from(body === undefined ? '' : JSON.stringify(body))
    const type = { 'content-type': 'application/json', 'content-length': String(bytes.length) }
    const readBody = async () => bytes
    const given = { host: 'coffer:4010', ...(body && type), ...headers }
    const request: HttpRequest = { method, target, headers: given, client, readBody }
    const response = await answer(request)
    return { ...response, json: response.body === '' ? undefined : JSON.parse(response.body) }
  }
  const own = (key = KEY) => ({ 'bt-control-key': key })
  return { control, send, own, lines, apiKey: applications.backend!.key }
}

t.test(
  'another machine needs the control key that the user chose, in the header for control keys',
  async (t) => {
    const { send, own, apiKey } = await open(t)
    const refused: [string, Record<string, string>][] = [
      ['no key', {}],
      ['an empty key', { 'bt-control-key': '' }],
      ['a wrong key', own(WRONG)],
      ['a part of the key', own(KEY.slice(0, -1))],
      ['a longer key', own(`${KEY}0`)],
      ['an API key', own(apiKey)],
      ['the control key in the header of API keys', { 'bt-api-key': KEY }],
      ['the header of another prefix', { 'svc-control-key': KEY }],
    ]
    for (const [what, headers] of refused) {
      const answer = await send('GET /_coffer/clock', { headers })
      t.match(answer, { status: 401, headers: { 'www-authenticate': 'ApiKey name="BT-CONTROL-KEY"' } }, what)
      t.notOk(answer.body.includes(KEY) || answer.body.includes(WRONG) || answer.body.includes(apiKey), what)
    }
    const answer = await send('GET /_coffer/clock', { headers: own() })
    t.match(answer, { status: 200, json: { mode: 'real' } })
    t.equal((await send('POST /_coffer/reset', { headers: own() })).status, 204)
    t.equal((await send('GET /tokens', { headers: { 'bt-api-key': KEY } })).status, 401)
    t.equal((await send('GET /tokens', { headers: own() })).status, 401)
    const local = { client: '127.0.0.1', headers: { 'bt-api-key': KEY, host: 'localhost:4010' } }
    t.equal((await send('GET /_coffer/clock', local)).status, 200, 'on its own machine both headers work')
  },
)

t.test('if the user chose no control key, other machines cannot use the control plane', async (t) => {
  const { send, own } = await open(t, { isKeyForOthers: false })
  t.match(await send('GET /_coffer/clock', { headers: own() }), {
    ...{ status: 403, json: { detail: /it came from another machine/ } },
  })
})

t.test('web pages and proxies cannot use the control plane, even with the control key', async (t) => {
  const { send, own } = await open(t)
  const attacks: [number, string, Record<string, string>][] = [
    [403, 'a page of another origin', { origin: 'https://evil.example' }],
    [403, 'a page of another port', { origin: 'http://coffer:8080' }],
    [403, 'a sandboxed page', { origin: 'null' }],
    [403, 'a page whose origin has an empty host', { origin: 'file://' }],
    [403, 'X-Forwarded-For', { 'x-forwarded-for': '127.0.0.1' }],
    [403, 'X-Forwarded-Host', { 'x-forwarded-host': 'localhost' }],
    [403, 'X-Real-IP', { 'x-real-ip': '127.0.0.1' }],
    [403, 'Forwarded', { forwarded: 'for=127.0.0.1' }],
    [403, 'Via', { via: '1.1 proxy' }],
    [421, 'DNS rebinding', { host: 'evil.example:4010', origin: 'http://evil.example:4010' }],
    [421, 'DNS rebinding without an origin', { host: 'evil.example' }],
    [421, 'a name that ends with an allowed one', { host: 'evil.coffer' }],
    [421, 'a name that begins with an allowed one', { host: 'coffer.evil.example' }],
  ]
  for (const [status, what, headers] of attacks) {
    for (const line of ['GET /_coffer/clock', 'POST /_coffer/reset', 'POST /_coffer/forks']) {
      const answer = await send(line, { headers: { ...own(), ...headers } })
      t.equal(answer.status, status, `${what}: ${line}`)
      const names = Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))
      t.same(names, [], `${what}: no page may read the answer`)
    }
  }
  const preflight = { origin: 'https://evil.example', 'access-control-request-method': 'GET' }
  const asked = { ...preflight, 'access-control-request-headers': 'bt-control-key' }
  t.equal((await send('OPTIONS /_coffer/clock', { headers: asked })).status, 403)
  const absolute = await send('GET http://evil.example/_coffer/clock', { headers: own() })
  t.equal(absolute.status, 421, 'the host in an absolute target is checked too')
  for (const host of ['coffer', 'COFFER:4010', '192.0.2.1:4010', '[2001:db8::1]:4010', 'localhost'])
    t.equal((await send('GET /_coffer/clock', { headers: { ...own(), host } })).status, 200, host)
})

t.test(
  'a web page cannot use up the attempts of a person, because the server refuses requests of the page before the key check',
  async (t) => {
    const { send, own } = await open(t)
    for (let count = 0; count < 2 * WRONG_KEYS.count; count++) {
      const rebound = { ...own(WRONG), host: 'evil.example', origin: 'http://evil.example' }
      t.equal((await send('GET /_coffer/clock', { headers: rebound })).status, 421)
      t.equal((await send('GET /_coffer/clock')).status, 401, 'a request without a key is not counted')
    }
    t.equal((await send('GET /_coffer/clock', { headers: own() })).status, 200)
  },
)

t.test('an address that sends wrong control keys has to wait, and other addresses do not', async (t) => {
  const { send, own, lines } = await open(t)
  for (let count = 0; count < WRONG_KEYS.count; count++)
    t.equal((await send('GET /_coffer/clock', { headers: own(WRONG) })).status, 401)
  for (const [what, key] of [
    ['a wrong key', WRONG],
    ['the key, so that nobody learns that it was right', KEY],
  ] as const) {
    const answer = await send('GET /_coffer/clock', { headers: own(key) })
    t.match(answer, { status: 429, json: { detail: /Too many wrong control keys/ } }, what)
    t.match(answer.headers['retry-after'], /^[1-6]$/)
  }
  const forks = await send('GET /_coffer/forks/none/clock', { headers: own(WRONG) })
  t.equal(forks.status, 429, 'the control planes of forks have no attempts of their own')
  t.equal((await send('GET /_coffer/clock', { client: '192.0.2.8', headers: own() })).status, 200)
  t.equal(lines.at(-1)?.route, '/_coffer/clock')
  t.match(lines.slice(0, -1), Array(WRONG_KEYS.count + 3).fill({ route: '/_coffer' }))
  t.notOk(JSON.stringify(lines).includes(KEY.slice(0, 8)), 'no key is logged')
})

t.test(
  'wrong control keys that an address sends at the same time count like keys that it sends one after another',
  async (t) => {
    const { send, own } = await open(t)
    const together = Array.from({ length: 200 }, () => send('GET /_coffer/clock', { headers: own(WRONG) }))
    const statuses = (await Promise.all(together)).map(({ status }) => status)
    t.equal(statuses.filter((status) => status === 401).length, WRONG_KEYS.count)
    t.equal(statuses.filter((status) => status === 429).length, 200 - WRONG_KEYS.count)
  },
)

t.test('a control key is refused if the request has the header of the key twice', async (t) => {
  const { control } = await openControlled({ tenantName: 'test' }, undefined)
  t.teardown(() => control.close())
  const { serveVault } = await import('../../src/control/serve.js')
  const server = await serveVault(control, { key: KEY, isKeyForOthers: true, port: 0 })
  t.teardown(() => server.stop())
  const head = 'GET /_coffer/clock HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
  for (const [status, lines] of [
    [200, `SVC-CONTROL-KEY: ${KEY}\r\n`],
    [401, `SVC-CONTROL-KEY: ${WRONG}\r\nSVC-CONTROL-KEY: ${KEY}\r\n`],
    [401, `SVC-CONTROL-KEY: ${WRONG}\r\nSVC-API-KEY: ${KEY}\r\n`],
    [403, `SVC-CONTROL-KEY: ${KEY}\r\nX-Forwarded-For: \r\n`],
  ] as const) {
    const [answer] = readAnswers(await sendRaw(server.port, `${head}${lines}\r\n`))
    t.equal(answer?.status, status)
    t.notOk(answer?.body.includes(KEY))
  }
})

t.test('wrong control keys are counted for each machine, and forgotten after a while', async (t) => {
  let now = 0
  const app = { isEqualSecret: (a: string, b: string) => a === b }
  const check = createKeyCheck({ app, prefix: 'svc', key: KEY, isForOthers: true, clock: () => now })
  const statusOf = (client: string, key: string) => {
    const headers = { 'svc-control-key': key }
    try {
      check({ method: 'GET', target: '/', headers, client, readBody: async () => undefined })
      return 200
    } catch (error) {
      return (error as { status: number }).status
    }
  }
  const exhaust = (client: string) => {
    for (let count = 0; count < WRONG_KEYS.count; count++) statusOf(client, WRONG)
    return statusOf(client, WRONG)
  }
  t.equal(exhaust('192.0.2.7'), 429)
  t.equal(statusOf('::ffff:192.0.2.7', KEY), 429, 'the same machine over a socket for both protocols')
  t.equal(exhaust('2001:db8:1:2::1'), 429)
  t.equal(statusOf('2001:db8:1:2:a:b:c:d', KEY), 429, 'another address of the network of this machine')
  t.equal(statusOf('2001:db8:1:3::1', KEY), 200)
  t.equal(exhaust('fe80::1%eth0'), 429)
  t.equal(statusOf('::1', KEY), 200)
  for (let count = 0; count < 1000; count++)
    if (statusOf('198.51.100.1', KEY) !== 200) t.fail('right keys are not counted')
  now += WRONG_KEYS.periodMs / WRONG_KEYS.count - 1
  t.equal(statusOf('192.0.2.7', KEY), 429)
  now += 1
  t.equal(statusOf('192.0.2.7', KEY), 200)
  t.equal(statusOf('192.0.2.7', WRONG), 401)
  t.equal(statusOf('192.0.2.7', WRONG), 429, 'one attempt has come back')
})

t.test(
  'the control key is compared as a digest, so neither the time nor an error shows the length of the key',
  async (t) => {
    const { control, send, own } = await open(t)
    const { isEqualSecret } = control.app
    const lengths = new Set<number>()
    control.app.isEqualSecret = (a, b) => {
      lengths.add(a.length).add(b.length)
      t.notOk([a, b].some((text) => text.includes(KEY.slice(0, 8))))
      return isEqualSecret(a, b)
    }
    for (const key of ['x', KEY.slice(1), `${KEY}${KEY}`, 'é'.repeat(16)])
      t.equal((await send('GET /_coffer/clock', { headers: own(key) })).status, 401)
    t.equal((await send('GET /_coffer/clock', { headers: own() })).status, 200)
    t.equal(lengths.size, 1)
  },
)

t.test('the control plane of a fork is protected like the control plane of the server', async (t) => {
  const { send, own } = await open(t)
  const { json: fork } = await send('POST /_coffer/forks', { headers: own(), body: {} })
  const line = `GET /_coffer/forks/${fork.id}/clock`
  t.equal((await send(line, { headers: own() })).status, 200)
  for (const [status, headers] of [
    [401, {}],
    [401, own(WRONG)],
    [401, own(fork.keys.backend)],
    [403, { ...own(), origin: 'https://evil.example' }],
    [403, { ...own(), via: '1.1 proxy' }],
    [421, { ...own(), host: 'evil.example' }],
  ] as const)
    t.equal((await send(line, { headers })).status, status)
  const unknown = await send('GET /_coffer/forks/none/clock', { headers: own(WRONG) })
  t.equal(unknown.status, 401, 'without the key, nobody learns which forks exist')
})

t.test('other machines cannot use the dashboard, even if they can use the control plane', async (t) => {
  const { startServer } = await import('../../src/index.js')
  const { serveVault } = await import('../../src/control/serve.js')
  const { send, own } = await open(t)
  t.match(await send('POST /_coffer/page', { headers: own() }), { status: 404 }, 'no sign-in link')
  const { control } = await openControlled({ tenantName: 'test' }, undefined)
  t.teardown(() => control.close())
  const addresses = ['0.0.0.0']
  const server = await serveVault(control, { key: KEY, isKeyForOthers: true, addresses, port: 0 })
  t.teardown(() => server.stop())
  t.equal(server.pageUrl, undefined)
  for (const path of ['/_dashboard', '/_dashboard/session', '/_dashboard/ask'])
    t.equal((await fetch(server.url + path, { headers: { 'svc-control-key': KEY } })).status, 404, path)
  const local = await startServer()
  t.teardown(() => local.stop())
  t.equal((await fetch(`${local.url}/_dashboard/session`)).status, 200, 'a local server has the dashboard')
})

t.test('a control key that the user chooses needs at least 128 bits', async (t) => {
  for (const key of [
    KEY,
    KEY.toUpperCase(),
    'u4Zk9Qm2Xv7Rt1Wc8Yb5Na',
    'u4Zk9Qm2Xv7Rt1Wc8Yb5A+=',
    `ctl_${KEY}`,
  ])
    t.ok(isControlKey(key), key)
  for (const key of [
    '',
    KEY.slice(1),
    'u4Zk9Qm2Xv7Rt1Wc8Yb5N',
    '12345678901234567890123456789012345678',
    'a'.repeat(64),
    'secret'.repeat(10),
    `${KEY} `,
    `${KEY}\n`,
    `${KEY}é`,
    KEY.repeat(7),
    'aabbccdd'.repeat(4),
  ])
    t.notOk(isControlKey(key), JSON.stringify(key))
  for (const key of ['a-key-of-16-char', 'k'.repeat(200), 'key_test_us_pvt_AbCdEfGh'])
    t.ok(isTestKey(key), key)
  for (const key of [
    'fifteen-letters',
    'k'.repeat(201),
    'has a space inside',
    'key_sess_1111111111111111111111',
  ])
    t.notOk(isTestKey(key), key)
})
