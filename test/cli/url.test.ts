/** `--url`: the commands against a server, with its key; parity replays every case of an operation this way as well. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Fetch } from '../../src/client/http-client.js'
import { type CofferServer, openTestVault, startServer } from '../../src/index.js'
import { CERTIFICATE, PRIVATE_KEY } from '../http/certificate.js'
import { createHome, createVaultHome } from './home.js'

const SERVER = 'http://localhost:4010'

/** A home whose commands reach a server in this process. */
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

t.test('commands answer from a server as from a vault, lists and all', async (t) => {
  const { run, asked } = await connect(t)
  for (const number of ['1', '2', '3'])
    t.equal(
      (await run(['token', 'create'], `{"type":"token","id":"my-${number}","data":"d${number}"}`)).code,
      0,
    )
  const listed = await run(['token', 'list', '--all', '--output', 'id'])
  t.equal(listed.stdout, 'my-3\nmy-2\nmy-1\n')
  t.equal((await run(['token', 'get', 'my-1', '--fields', 'data'])).stdout, '{"data":"d1"}\n')
  t.equal((await run(['token', 'delete', 'my-1', '--yes'])).code, 0)
  const gone = await run(['token', 'get', 'my-1'])
  t.match(gone, { code: 3, stdout: '' })
  t.equal((await run(['token', 'list', '--type', 'cards'])).code, 0)
  t.equal((await run(['log', 'list'])).code, 4)
  t.ok(asked.includes(`GET ${SERVER}/tokens/my-1`))
  t.notOk(asked.some((line) => line.includes('key_')))
})

t.test('what only the vault itself can do says so, and nothing is sent', async (t) => {
  const { run, asked, home } = await connect(t)
  for (const words of [
    ['vault', 'verify'],
    ['vault', 'status'],
    ['tenant', 'list'],
    ['tenant', 'use', 'x'],
    ['config', 'list'],
    ['log', 'tail'],
    ['doctor'],
    ['init'],
    ['serve', '--port', '0'],
    ['token', 'get', 'x', '--explain'],
  ]) {
    const { code, stderr } = await run(words)
    t.equal(code, 2, words.join(' '))
    t.match(stderr, /--url/, words.join(' '))
  }
  const keyless = await home.run('token list', { env: { COFFER_URL: SERVER } })
  t.match(keyless, { code: 4, stderr: /COFFER_API_KEY/ })
  for (const id of ['', '.', '..']) t.equal((await run(['token', 'delete', id, '--yes'])).code, 2)
  const both = await run(['token', 'list'], '', { COFFER_VAULT: home.place })
  t.match(both, { code: 2, stderr: /Give one of them/ })
  t.match(await run(['token', 'list'], '', { COFFER_URL: 'http://vault.example' }), { code: 2 })
  t.match(await run(['token', 'list'], '', { COFFER_TIMEOUT: '0' }), { code: 2, stderr: /--timeout/ })
  t.same(asked, [])
})

t.test(
  'a flag for a vault goes before the address in the environment, and the other way round',
  async (t) => {
    const { vault, run } = await connect(t)
    const home = await createVaultHome(t)
    const local = await home.run('token list --vault .coffer', { env: { COFFER_URL: SERVER } })
    t.equal(local.code, 0)
    const remote = await run(['app', 'whoami', '--url', SERVER], '', {
      COFFER_URL: '',
      COFFER_VAULT: '.coffer',
    })
    t.equal(remote.code, 0)
    t.ok(vault)
  },
)

t.test('an address that is none is refused before a key is asked for', async (t) => {
  const home = createHome(t)
  for (const [address, message] of [
    ['ftp://localhost', /http/],
    ['http://example.com', /--insecure/],
    ['nonsense', /http/],
  ] as const)
    t.match(await home.run(['token', 'list', '--url', address]), { code: 2, stdout: '', stderr: message })
})

t.test('a server whose list does not end is not asked for ever', async (t) => {
  const home = createHome(t)
  const env = { COFFER_URL: SERVER, COFFER_API_KEY: 'key' }
  let asked = 0
  const serve = (pageOf: (page: number) => object[]): Fetch => {
    asked = 0
    return async () => Response.json({ pagination: { total_items: 1e15 }, data: pageOf(++asked) })
  }
  const page = (number: number) =>
    Array.from({ length: 50 }, (_, at) => ({ id: `${number}-${at}`, name: 'x' }))
  const get = async (fetch: Fetch) => home.run('app get front', { fetch, env })
  const refusal = { code: 2, stdout: '', stderr: /app list has more than 10000, .* Give an id/ }
  for (const pageOf of [page, () => page(1), () => [{}]]) {
    t.match(await get(serve(pageOf)), refusal)
    t.equal(asked, 201)
  }
  const large = { id: 'x', name: 'x'.repeat(2 ** 20) }
  for (const format of ['json', 'table', 'csv']) {
    const fetch = serve(() => [large, large, large, large])
    t.match(
      await home.run(['token', 'list', '--all', '--size', '4', '-o', format], { fetch, env }),
      {
        code: 2,
        stdout: '',
        stderr: new RegExp(`more than 128 MiB, the limit of --all -o ${format}.*-o ndjson`),
      },
      format,
    )
    t.equal(asked, 32, 'nor gathered without end')
  }
  for (const words of [
    ['app', 'get', 'front'],
    ['token', 'list', '--all', '--output', 'id'],
    ['scan', '-'],
  ])
    for (const answer of [{}, null, [], { data: 5, pagination: {} }, { data: [] }])
      t.match(await home.run(words, { fetch: async () => Response.json(answer), env }), {
        code: 9,
        stderr: /something else than a list/,
      })
  const last = serve((number) => (number < 3 ? page(number) : []))
  const all = await home.run('app list --all --output id', { fetch: last, env })
  t.equal(all.code, 0)
  t.equal(all.stdout.split('\n').length - 1, 100)
  t.equal(asked, 3)
})

t.test('what a server says reaches a terminal without its control characters', async (t) => {
  const home = createHome(t)
  const evil = '\u001b]0;owned\u0007\u001b[2J\r\n\u202e'
  const answers = [
    Response.json({ detail: evil, errors: { [evil]: [evil] } }, { status: 400 }),
    Response.json({ id: evil, type: evil, containers: [evil], metadata: { [evil]: evil } }),
    Response.json({ pagination: {}, data: [{ id: evil }] }),
  ]
  for (const columns of [80, undefined])
    for (const format of ['table', 'json', 'ndjson', 'csv', 'id'])
      for (const answer of answers) {
        if (columns === undefined && ['csv', 'id'].includes(format)) continue
        const { stdout, stderr } = await home.run(
          ['token', 'list', '--output', format, '--no-input', '--color', 'never'],
          {
            ...(columns === undefined ? {} : { columns }),
            fetch: async () => answer.clone(),
            env: { COFFER_URL: SERVER, COFFER_API_KEY: 'key' },
          },
        )
        t.notMatch(stdout + stderr, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/, `${format} ${columns}`)
      }
})

t.test('--curl prints the call without key or data, and sends nothing', async (t) => {
  const { run, asked, home } = await connect(t)
  const get = await run(['token', 'get', "a'b", '--curl'])
  t.equal(
    get.stdout,
    `curl '${SERVER}/tokens/a'\\''b' \\\n  -H "SVC-API-KEY: $COFFER_API_KEY"\n`
      .replace("a'\\''b", 'a%27b')
      .replace('%27', "'\\''"),
  )
  const hostile = await run(['token', 'list', '--curl', '--prefix', '$(x)'])
  t.match(hostile, { code: 2, stdout: '', stderr: /The prefix takes a letter/ }, 'a shell runs nothing of it')
  const secret = '4242424242424242'
  const words = ['token', 'create', '--type', 'card_number', '--data', secret, '--curl', '--prefix', 'bt']
  const create = await run(words, `{"data":"${secret}"}`)
  t.equal(
    create.stdout,
    [
      `curl -X POST '${SERVER}/tokens' \\`,
      '  -H "BT-API-KEY: $COFFER_API_KEY" \\',
      "  -H 'Content-Type: application/json' \\",
      '  --data-binary @-\n',
    ].join('\n'),
  )
  t.notMatch(create.stdout + create.stderr, /4242|key_/)
  t.match(create.stderr, 'reads it from standard input, as JSON.')
  t.match(await run(['token', 'search', 'type:card', '--size', '2', '--curl']), {
    stdout: `curl -X POST '${SERVER}/tokens/search'`,
    stderr: 'standard input',
  })
  t.match((await run(['token', 'update', 'x', '--curl'])).stdout, /-X PATCH .*merge-patch\+json/s)
  t.match((await run(['token', 'list', '--type', 'card', '--curl'])).stdout, '/tokens?type=card')
  t.same(asked, [])
  const bare = await home.run('token list --curl')
  t.match(bare.stdout, `curl '${SERVER}/tokens'`, 'without an address that of a server on this machine')
})

t.test('a key under another prefix than the server has is answered with the prefix', async (t) => {
  const server = await startServer({ prefix: 'bt' })
  t.teardown(() => server.stop())
  const env = { COFFER_URL: server.url, COFFER_API_KEY: server.keys.private! }
  const home = createHome(t)
  const { code, stderr } = await home.run('token list', { env })
  t.match({ code, stderr }, { code: 4, stderr: 'the header BT-API-KEY.' })
  t.equal((await home.run('token list --prefix bt', { env })).code, 0)
})

t.test('what serve prints makes a profile, over TLS too, and its key goes to no other server', async (t) => {
  const server: CofferServer = await startServer({
    prefix: 'bt',
    tls: { cert: CERTIFICATE, key: PRIVATE_KEY },
  })
  t.teardown(() => server.stop())
  const home = createHome(t)
  writeFileSync(join(home.place, 'cert.pem'), CERTIFICATE)
  const set = (...words: string[]) => home.json(['profile', 'set', 'local', ...words])
  await set('url', server.url)
  await set('prefix', 'bt')
  await set('ca', 'cert.pem')
  await home.json('profile set local api-key', { stdin: server.keys.private! })
  const made = await home.json('token create --profile local', {
    stdin: '{"type":"token","data":1}',
  })
  t.match(made.id, /-/)
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
  const withKey = { ...elsewhere, COFFER_API_KEY: 'another' }
  await home.run('app whoami', { fetch, env: withKey })
  t.match(asked, [{ url: 'https://vault.example/applications/key', headers: { 'svc-api-key': 'another' } }])
})
