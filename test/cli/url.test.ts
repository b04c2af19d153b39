/**
 * `--url`: commands against a server, with an API key. The parity tests also run every case of an operation with
 * `--url`.
 */
import t, { type Test } from 'tap'
import type { Fetch } from '../../src/client/http-client.js'
import { type CofferServer, openTestVault, startServer } from '../../src/index.js'
import { CERTIFICATE, PRIVATE_KEY } from '../http/certificate.js'
import { createHome, createVaultHome, testHome } from './home.js'

const SERVER = 'http://localhost:4010'

/** Creates a home whose commands send their requests to a server in this process. */
async function connect(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.stop())
  const home = createHome(t)
  const asked: string[] = []
  const fetch: Fetch = (url, init) => {
    asked.push(`${init.method} ${url}`)
    return vault.fetch(url, init)
  }
  const env = { COFFER_URL: SERVER, COFFER_API_KEY: vault.keys.private! }
  const run = (words: readonly string[], stdin = '', more: Record<string, string> = {}) =>
    home.run(words, { fetch, stdin, env: { ...env, ...more } })
  return { vault, home, run, asked }
}

t.test('commands read and delete tokens on a server', async (t) => {
  const { run, asked } = await connect(t)
  for (const number of ['1', '2', '3'])
    await run(['token', 'create'], `{"type":"token","id":"my-${number}","data":"d${number}"}`)
  for (const [line, expected] of [
    ['token list --all --output id', { code: 0, stdout: 'my-3\nmy-2\nmy-1\n' }],
    ['token get my-1 --fields data', { code: 0, stdout: '{"data":"d1"}\n' }],
    ['token delete my-1 --yes', { code: 0 }],
    ['token get my-1', { code: 3, stdout: /^$/ }],
    ['log list', { code: 4 }],
  ] as const)
    t.match(await run(line.split(' ')), expected, line)
  t.ok(asked.includes(`GET ${SERVER}/tokens/my-1`))
  t.notOk(asked.some((line) => line.includes('key_')))
})

t.test('commands that need direct access to the vault say so and send no request', async (t) => {
  const { run, asked, home } = await connect(t)
  const some = ['vault verify', 'vault status', 'tenant list', 'tenant use x', 'config list', 'log tail']
  for (const line of [...some, 'doctor', 'init', 'serve --port 0', 'token get x --explain'])
    t.match(await run(line.split(' ')), { code: 2, stderr: /--url/ }, line)
  const keyless = await home.run('token list', { env: { COFFER_URL: SERVER } })
  t.match(keyless, { code: 4, stderr: /COFFER_API_KEY/ })
  for (const id of ['', '.', '..']) t.equal((await run(['token', 'delete', id, '--yes'])).code, 2)
  for (const [env, stderr] of [
    [{ COFFER_VAULT: home.place }, /Give one of them/],
    [{ COFFER_URL: 'http://vault.example' }, /--insecure/],
    [{ COFFER_URL: 'nonsense' }, /http/],
    [{ COFFER_TIMEOUT: '0' }, /--timeout/],
  ] as [Record<string, string>, RegExp][])
    t.match(await run(['token', 'list'], '', env), { code: 2, stdout: /^$/, stderr })
  t.match(
    await home.run('token list --url ftp://localhost'),
    { code: 2, stderr: /http/ },
    'the command is refused before the key is needed',
  )
  t.same(asked, [])
})

t.test('a flag that names a vault or a server overrides the environment', async (t) => {
  const { run } = await connect(t)
  const home = await createVaultHome(t)
  t.equal((await home.run('token list --vault .coffer', { env: { COFFER_URL: SERVER } })).code, 0)
  const env = { COFFER_URL: '', COFFER_VAULT: '.coffer' }
  t.equal((await run(['app', 'whoami', '--url', SERVER], '', env)).code, 0)
})

testHome("if a server's list never ends, the command stops requesting pages", async (t, home) => {
  const env = { COFFER_URL: SERVER, COFFER_API_KEY: 'key' }
  let asked = 0
  const serve = (pageOf: (page: number) => object[]): Fetch => {
    asked = 0
    return async () => Response.json({ pagination: { total_items: 1e15 }, data: pageOf(++asked) })
  }
  const page = (number: number) =>
    Array.from({ length: 50 }, (_, at) => ({ id: `${number}-${at}`, name: 'x' }))
  const get = async (fetch: Fetch) => home.run('app get front', { fetch, env })
  const refusal = { code: 2, stdout: /^$/, stderr: /app list` has more than 10000 records, .* Give an id/ }
  for (const pageOf of [page, () => page(1), () => [{}]]) {
    t.match(await get(serve(pageOf)), refusal)
    t.equal(asked, 201)
  }
  const large = { id: 'x', name: 'x'.repeat(2 ** 20) }
  for (const format of ['json', 'table', 'csv']) {
    const stderr = new RegExp(`more than 128 MiB, the limit of --all -o ${format}.*-o ndjson`)
    const fetch = serve(() => [large, large, large, large])
    const all = await home.run(`token list --all --size 4 -o ${format}`, { fetch, env })
    t.match(all, { code: 2, stdout: /^$/, stderr }, format)
    t.equal(asked, 32, 'pages are not collected without a limit')
  }
  const stderr = /The answer of the server is not a list/
  for (const line of ['app get front', 'token list --all --output id', 'scan -'])
    for (const answer of [{}, null, [], { data: 5, pagination: {} }, { data: [] }])
      t.match(await home.run(line, { fetch: async () => Response.json(answer), env }), { code: 9, stderr })
  const last = serve((number) => (number < 3 ? page(number) : []))
  const all = await home.run('app list --all --output id', { fetch: last, env })
  t.equal(all.code, 0)
  t.equal(all.stdout.split('\n').length - 1, 100)
  t.equal(asked, 3)
})

testHome('text from a server reaches a terminal without control characters', async (t, home) => {
  const evil = '\u001b]0;owned\u0007\u001b[2J\r\n\u202e'
  const answers = [
    Response.json({ detail: evil, errors: { [evil]: [evil] } }, { status: 400 }),
    Response.json({ id: evil, type: evil, containers: [evil], metadata: { [evil]: evil } }),
    Response.json({ pagination: {}, data: [{ id: evil }] }),
  ]
  const env = { COFFER_URL: SERVER, COFFER_API_KEY: 'key' }
  for (const options of [{ columns: 80 }, {}])
    for (const format of 'columns' in options
      ? ['table', 'json', 'ndjson', 'csv', 'id']
      : ['table', 'json', 'ndjson'])
      for (const answer of answers) {
        const line = `token list --output ${format} --no-input --color never`
        const { stdout, stderr } = await home.run(line, {
          ...options,
          fetch: async () => answer.clone(),
          env,
        })
        t.notMatch(stdout + stderr, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/, format)
      }
})

t.test('--curl prints the request without key and data, and sends nothing', async (t) => {
  const { run, asked, home } = await connect(t)
  const key = '-H "SVC-API-KEY: $COFFER_API_KEY"'
  for (const [words, stdout] of [
    [['get', "a'b"], `curl '${SERVER}/tokens/a'\\''b' \\\n  ${key}\n`],
    [['search', 'type:card', '--size', '2'], `curl -X POST '${SERVER}/tokens/search'`],
    [['update', 'x'], /-X PATCH .*merge-patch\+json/s],
    [['list', '--type', 'card'], '/tokens?type=card'],
  ] as const)
    t.match(await run(['token', ...words, '--curl']), { code: 0, stdout })
  const hostile = await run(['token', 'list', '--curl', '--prefix', '$(x)'])
  const nothing = { code: 2, stdout: /^$/, stderr: /The prefix takes a letter/ }
  t.match(hostile, nothing, 'a prefix that a shell would execute is refused')
  const secret = '4242424242424242'
  const words = `token create --type card_number --data ${secret} --curl --prefix bt`
  const create = await run(words.split(' '), `{"data":"${secret}"}`)
  const lines = [
    `curl -X POST '${SERVER}/tokens' \\`,
    '  -H "BT-API-KEY: $COFFER_API_KEY" \\',
    "  -H 'Content-Type: application/json' \\",
    '  --data-binary @-\n',
  ]
  t.equal(create.stdout, lines.join('\n'))
  t.notMatch(create.stderr, /4242|key_/)
  t.match(create.stderr, 'reads the body as JSON from standard input.')
  t.same(asked, [])
  const bare = await home.run('token list --curl')
  t.match(
    bare.stdout,
    `curl '${SERVER}/tokens'`,
    'without an address, the printed command uses a server on this machine',
  )
})

t.test(
  "a key in a header with another prefix than the server's is refused, and the error names the server's prefix",
  async (t) => {
    const server = await startServer({ prefix: 'bt' })
    t.teardown(() => server.stop())
    const env = { COFFER_URL: server.url, COFFER_API_KEY: server.keys.private! }
    const home = createHome(t)
    const { code, stderr } = await home.run('token list', { env })
    t.equal(code, 4)
    const reason = 'The server reads the API key from BT-API-KEY, and this client sent SVC-API-KEY.'
    const advice =
      'Give --prefix bt, set COFFER_PREFIX=bt, or store the prefix: coffer profile set NAME prefix bt'
    t.equal(stderr, `error: ${reason} ${advice}\n`)
    const ofControl = { ...env, COFFER_API_KEY: server.control.key }
    t.match(await home.run('control clock get', { env: ofControl }), { code: 4, stderr: '--prefix bt' })
    for (const words of ['token list', 'control clock get'])
      t.notMatch(
        (await home.run(`${words} --prefix bt`, { env: { ...env, COFFER_API_KEY: 'key_1' } })).stderr,
        '--prefix',
      )
    t.equal((await home.run('token list --prefix bt', { env })).code, 0)
  },
)

t.test(
  'a profile can have the address, the prefix, the certificate and the key of a server, and the key is sent to no other server',
  async (t) => {
    const tls = { cert: CERTIFICATE, key: PRIVATE_KEY }
    const server: CofferServer = await startServer({ prefix: 'bt', tls })
    t.teardown(() => server.stop())
    const home = createHome(t)
    home.write('cert.pem', CERTIFICATE)
    for (const setting of [`url ${server.url}`, 'prefix bt', 'ca cert.pem'])
      await home.json(`profile set local ${setting}`)
    await home.json('profile set local api-key', { stdin: server.keys.private! })
    t.match((await home.json('token create --profile local --type token --data 1')).id, /-/)
    await home.run('profile use local')
    t.equal((await home.json('app whoami')).type, 'private')
    const asked: unknown[] = []
    const fetch: Fetch = async (url, { headers }) => {
      asked.push({ url, headers })
      return Response.json({})
    }
    const elsewhere = { COFFER_URL: 'https://vault.example' }
    t.match(await home.run('app whoami', { fetch, env: elsewhere }), { code: 4, stderr: /API key/ })
    t.equal((await home.run('app whoami --url https://vault.example', { fetch })).code, 4)
    t.same(asked, [])
    await home.run('app whoami', { fetch, env: { ...elsewhere, COFFER_API_KEY: 'another' } })
    t.match(asked, [{ url: 'https://vault.example/applications/key', headers: { 'svc-api-key': 'another' } }])
  },
)
