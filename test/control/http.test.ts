/**
 * Access to the control plane of `coffer serve`. `test/cli/examples.test.ts` runs the commands of the control plane.
 */
import t, { type Test } from 'tap'
import { createVaultAnswerer } from '../../src/control/answerer.js'
import { openControlled } from '../../src/control/control-state.js'
import type { AccessEntry } from '../../src/http/access-log.js'
import { toHandler } from '../../src/http/handler.js'
import { startServer } from '../../src/index.js'
import { createWorkplace, runCommand, serveFor, type Workplace } from '../http/process.js'
import { readAnswers, sendRaw } from '../http/socket.js'

interface Control {
  url: string
  key: string
}

async function start(
  t: Test,
  words: string[],
): Promise<{ place: Workplace; url: string; control?: Control; key: string }> {
  const place = createWorkplace()
  if (words.length === 0 || words[0] === '--test-controls')
    await runCommand(place, ['init', '--starter-apps'])
  const { announcement } = await serveFor(t, words, place)
  const { control } = announcement as unknown as { control?: Control }
  const key = announcement.applications.private?.key ?? ''
  return { place, url: announcement.url, key, ...(control && { control }) }
}

const ask = async (url: string, line: string, headers: Record<string, string> = {}, body?: object) => {
  const [method = '', path = ''] = line.split(' ')
  const type = { 'content-type': 'application/json' }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const answer = await fetch(url + path, { method, headers: { ...type, ...headers }, ...sent })
  const text = await answer.text()
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text), headers: answer.headers }
}

const LINES =
  'POST /reset|GET /snapshots|POST /forks|GET /clock|GET /faults|GET /requests|GET /not-emulated|GET /outbox|GET /reveals?token=x|POST /page'.split(
    '|',
  )

t.test('with --ephemeral, the whole control plane is available, but only with the control key', async (t) => {
  const { url, control, key } = await start(t, ['--ephemeral'])
  t.match(control, { url: `${url}/_coffer`, key: /^ctl_[1-9A-HJ-NP-Za-km-z]{22}$/ })
  const own = { 'svc-api-key': control!.key }
  const refused: [number, Record<string, string>][] = [
    [401, {}],
    [401, { 'svc-api-key': key }],
    [403, { ...own, origin: 'https://evil.example' }],
    [403, { ...own, 'x-forwarded-for': '1.2.3.4' }],
    [403, { ...own, 'x-forwarded-host': 'a.example' }],
    [403, { ...own, forwarded: 'for=1.2.3.4' }],
    [403, { ...own, via: '1.1 proxy' }],
    [403, { ...own, 'cf-connecting-ip': '1.2.3.4' }],
    [403, { ...own, 'true-client-ip': '1.2.3.4' }],
    [403, { ...own, 'x-envoy-external-address': '1.2.3.4' }],
    [403, { ...own, 'x-original-url': '/_coffer/clock' }],
    [403, { ...own, 'sec-fetch-site': 'cross-site' }],
    [403, { ...own, 'sec-fetch-site': 'same-site' }],
  ]
  for (const line of LINES) {
    for (const [status, headers] of refused) {
      const answer = await ask(control!.url, line, headers)
      t.equal(answer.status, status, `${line} with ${Object.keys(headers).at(-1)} is refused`)
      t.notOk(answer.headers.has('access-control-allow-origin'))
    }
    t.match((await ask(control!.url, line, own)).status, /^20[04]$/, line)
    t.equal((await ask(url, 'GET /tokens', own)).status, 401, 'the API does not accept the key')
  }
  for (const [status, line, headers] of [
    [200, 'GET /clock', { ...own, origin: url }],
    [403, 'OPTIONS /clock', { origin: 'https://evil.example' }],
    [404, 'GET /nothing', own],
    [405, 'PUT /reset', own],
  ] as const)
    t.equal((await ask(control!.url, line, { ...headers })).status, status, line)
  t.match(await ask(control!.url, 'GET /requests?opperation=token%20get&count=1', own), {
    status: 400,
    body: { errors: { 'query.opperation': ['is not a parameter; did you mean operation?'] } },
  })
  const advance = await ask(control!.url, 'POST /clock/advance', own, { by: 'x' })
  t.match(advance, { status: 400, body: { errors: { by: [/./] } } })
  t.notMatch(JSON.stringify((await ask(url, 'GET /openapi.json')).body), /_coffer/)
})

t.test(
  '--test-controls and --demo enable only faults, requests, mail, reveals and the dashboard, and --demo also a clock',
  async (t) => {
    const { control: ofDemo } = await start(t, ['--demo'])
    const { control, place } = await start(t, ['--test-controls'])
    const own = { 'svc-api-key': control!.key }
    for (const { url, key } of [ofDemo!, control!])
      for (const line of LINES) {
        const isThere =
          /faults|requests|not-emulated|outbox|reveals|page/.test(line) ||
          (url === ofDemo!.url && line.includes('clock'))
        t.equal((await ask(url, line, { 'svc-api-key': key })).status, isThere ? 200 : 404, line)
      }
    const faults = ['control', 'fault', 'list', '--output', 'table']
    t.match(
      await runCommand(place, faults),
      { code: 0, stderr: /^No faults yet/ },
      'commands on the vault can use the control plane too',
    )
    const plain = await start(t, [])
    t.equal(plain.control, undefined)
    for (const line of LINES) t.equal((await ask(`${plain.url}/_coffer`, line, own)).status, 404, line)
    for (const [code, stderr, words, env] of [
      [3, /No server with a control plane/, [], {}],
      [4, /control plane of a server needs its key, which coffer\s+serve prints/, ['--url', plain.url], {}],
      [3, /control plane is not enabled\. Start one/, ['--url', plain.url], { COFFER_API_KEY: 'ctl_none' }],
    ] as const) {
      const place = { ...plain.place, env: { ...plain.place.env, ...env } }
      t.match(await runCommand(place, ['control', 'reset', ...words]), { code, stderr })
    }
    const page = await runCommand(plain.place, ['control', 'page', '--output', 'value', '--fields', 'url'])
    t.match(
      page,
      { code: 0, stdout: /^http:\/\/localhost:\d+\/#login=[\w-]{43}\n$/ },
      'a sign-in link is available without a restart',
    )
    const login = page.stdout.trim().split('#login=')[1]
    for (const status of [200, 403])
      t.match(
        await ask(plain.url, 'POST /_dashboard/session', {}, { login }),
        { status },
        'the link signs in only once',
      )
  },
)

t.test('other machines cannot reach the control plane', async (t) => {
  const server = await startServer({ addresses: ['0.0.0.0'] })
  t.teardown(() => server.stop())
  const own = { 'svc-api-key': server.control.key! }
  t.equal((await ask(server.url.replace('localhost', '127.0.0.1'), 'GET /_coffer/clock', own)).status, 200)
  const head = `GET /_coffer/clock HTTP/1.1\r\nSVC-API-KEY: ${own['svc-api-key']}\r\nConnection: close\r\n`
  for (const [host, status] of [
    ['localhost', 200],
    ['127.0.0.1:1', 200],
    ['coffer.example', 403],
    ['10.0.0.1', 403],
  ] as const) {
    const [answer] = readAnswers(await sendRaw(server.port, `${head}Host: ${host}\r\n\r\n`))
    t.equal(answer?.status, status, `a request for host ${host}, which a proxy may forward, gets ${status}`)
    if (status === 403) t.match(answer?.body, 'it names another host than localhost')
  }
  t.match((await ask(server.url, 'GET /_coffer/clock', { ...own, via: '1.1 proxy' })).body, {
    ...{ status: 403, title: 'Forbidden' },
    detail:
      /answers only requests from its own machine, .* This request is refused: a proxy passed it on \(header via\)\.$/,
  })
  t.equal(
    (await ask(server.url, 'GET /_dashboard/session')).status,
    404,
    'there is no dashboard to sign in to',
  )
  t.equal((await fetch(server.url)).status, 200, 'the API reference is still served')
  await t.rejects(server.control.page(), { code: 'not_found' })
  const { networkInterfaces } = await import('node:os')
  const addresses = Object.values(networkInterfaces()).flat()
  const other = addresses.find((each) => each?.family === 'IPv4' && !each.internal)
  if (other === undefined) return
  const remote = await ask(`http://${other.address}:${server.port}`, 'GET /_coffer/clock', own)
  t.match(remote, { status: 403, body: { detail: /it came from another machine/ } })
})

t.test('a refused request to the control plane is logged', async (t) => {
  const lines: AccessEntry[] = []
  const { control } = await openControlled({ tenantName: 'test' }, undefined)
  t.teardown(() => control.close())
  const answer = createVaultAnswerer(
    { record: (entry) => lines.push(entry) },
    { control, key: 'ctl_x', prefix: 'svc' },
  )
  const handle = toHandler(answer)
  const send = (headers: Record<string, string>, path = '/_coffer/clock') =>
    handle(new Request(`http://localhost${path}`, { headers: { 'svc-api-key': 'ctl_x', ...headers } }))
  for (const headers of [{ via: '1.1 proxy' }, { origin: 'https://evil.example' }] as Record<
    string,
    string
  >[])
    t.equal((await send(headers)).status, 403)
  t.equal((await send({}, '/_coffer/forks/none/clock')).status, 404)
  t.equal((await send({})).status, 200)
  t.match(lines, [
    { method: 'GET', route: '/_coffer', status: 403, ms: Number, traceId: /^[0-9a-f-]{36}$/ },
    { route: '/_coffer', status: 403 },
    { route: '/_coffer', status: 404 },
    { route: '/_coffer/clock', status: 200 },
  ])
})
