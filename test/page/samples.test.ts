/** Code that reproduces a request. A shell and the server must receive hostile values unchanged. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { startServer } from '../../src/index.js'
import { reproduce } from '../../src/page/recorded.js'
import { describeKeys, LANGUAGES } from '../../src/page/samples.js'

const run = promisify(execFile)
t.setTimeout(60_000)

const origin = 'http://localhost:1'
const shell = (text: string, key = '') =>
  run('sh', ['-c', text], { env: { PATH: process.env.PATH, COFFER_API_KEY: key } })

const HOSTILE = [
  `it's`,
  '$(touch /tmp/never)',
  '`id`',
  'a\nb',
  'a\\nb',
  '"; exit 1; "',
  '@/etc/passwd',
  '-K /etc/passwd',
  '$COFFER_API_KEY',
  '!!',
  '\u2028',
]

t.test('hostile values reach curl and coffer unchanged', async (t) => {
  for (const value of HOSTILE) {
    const call = { origin, method: 'POST', path: `/tokens/${value}`, header: 'K', type: value, body: value }
    const { stdout } = await shell(`curl() { printf '%s\\0' "$@"; }\n${LANGUAGES.curl!(call)}`, 'a key')
    const words = stdout.split('\0')
    t.ok(words.includes(`http://localhost:1/tokens/${value}`), value)
    t.ok(words.includes(`Content-Type: ${value}`), value)
    t.ok(words.includes('K: a key'))
    t.equal(words[words.indexOf('--data-raw') + 1], value)
    const id = encodeURIComponent(value)
    const command = LANGUAGES.coffer!({
      ...{ origin, method: 'PATCH', path: `/tokens/${id}`, header: 'K', body: value },
      ...{ operation: 'token update', template: '/tokens/{id}' },
    })!
    const ran = await shell(`coffer() { cat; printf '\\0%s' "$@"; }\n${command}`)
    t.strictSame(ran.stdout.split('\0'), [
      ...[value, 'token', 'update', '--url', 'http://localhost:1', '--file', '-', '--', value],
    ])
  }
  const odd = LANGUAGES.curl!({ origin, method: "X'; id", path: '/a/../{b}[c]', header: 'K' })
  t.match(odd, "-X 'X'\\''; id' ")
  t.match(odd, '--globoff')
  t.match(odd, '--path-as-is')
})

t.test('code of a proxy call has the header that names the destination', async (t) => {
  const call = { origin, method: 'GET', path: '/proxy', header: 'SVC-API-KEY', operation: 'proxy call' }
  const byUrl = { ...call, proxy: { header: 'SVC-PROXY-URL', value: "http://a.example/it's" } }
  const byKey = { ...call, proxy: { header: 'SVC-PROXY-KEY' } }
  const { stdout } = await shell(`curl() { printf '%s\\0' "$@"; }\n${LANGUAGES.curl!(byUrl)}`, 'a key')
  t.ok(stdout.split('\0').includes("SVC-PROXY-URL: http://a.example/it's"))
  t.match(LANGUAGES.curl!(byKey), '-H "SVC-PROXY-KEY: $COFFER_PROXY_KEY"')
  for (const name of ['Node', 'Python', 'Go']) {
    t.match(LANGUAGES[name]!(byUrl), /SVC-PROXY-URL"?'?[:,] "http:\/\/a.example\/it's"/i, name)
    t.match(LANGUAGES[name]!(byKey), /SVC-PROXY-KEY.*COFFER_PROXY_KEY/i, name)
  }
  t.equal(LANGUAGES.coffer!({ ...byUrl, template: '/proxy' }), undefined)
  t.equal(describeKeys(byUrl), 'The key comes from COFFER_API_KEY')
  t.equal(describeKeys(byKey), 'The code reads COFFER_API_KEY and COFFER_PROXY_KEY')
  t.equal(describeKeys({ method: 'GET', path: '/tokens' }), 'The request has no key')
})

const isMissing = await run('curl', ['--version']).then(
  () => false,
  () => 'curl is not installed',
)

t.test('the curl command of a failed request gets the same status', { skip: isMissing }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.stop())
  const { key: reader } = await server.ask('app create', {
    name: 'reader',
    type: 'private',
    rules: [{ priority: 1, container: '/pii/', transform: 'mask', permissions: ['token:create'] }],
  })
  const owner = server.keys.private!
  const token = { type: 'token', data: 'SECRET' }
  const cases: [status: number, method: string, path: string, key: string | undefined, body?: unknown][] = [
    [400, 'POST', '/tokens', owner, { type: 'card', data: { number: '1', expiration_month: 13 } }],
    [400, 'POST', '/tokens', owner, { type: 'token' }],
    [400, 'POST', '/tokens', owner, { type: 'none', data: 'SECRET' }],
    [400, 'POST', '/tokens', owner, 'SECRET {'],
    [400, 'GET', '/tokens?size=SECRET', owner],
    [403, 'POST', '/tokens', reader!, { ...token, containers: ['/pci/'] }],
    [403, 'GET', '/applications', reader!],
    [404, 'GET', "/tokens/it's-$(id)-{a,b}", owner],
    [404, 'PATCH', '/tokens/none', owner, { metadata: { a: 'SECRET' } }],
    [401, 'GET', '/tokens/none', undefined],
    [201, 'POST', '/tokens', owner, { type: 'card', data: { number: '4000056655665556' } }],
  ]
  for (const [status, method, path, key, body] of cases) {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const answer = await fetch(server.url + path, {
      method,
      headers: { ...(key && { 'svc-api-key': key }), ...(body !== undefined && { 'content-type': type }) },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const name = `${method} ${path} ${JSON.stringify(body)}`.slice(0, 120)
    t.equal(answer.status, status, name)
    const record = (await server.control.requests.list()).at(-1)!
    const copied = reproduce(record, undefined)
    const call = { origin: server.url, method, path: record.path + copied.query, type, body: copied.body }
    const text = LANGUAGES.curl!({ ...call, ...(record.key_state !== 'none' && { header: 'svc-api-key' }) })!
    t.notMatch(text, /SECRET|4000056655665556|key_/, 'no secret')
    const flags = "-s -o /dev/null -w '%{http_code}'"
    const { stdout } = await shell(text.replace('curl ', `curl ${flags} `), key)
    t.equal(Number(stdout), status, text)
  }
})
