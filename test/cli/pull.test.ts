/**
 * `coffer pull` and `coffer seed diff`: results from another Coffer, defence against a hostile server, and the server
 * to which the key is sent.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { main } from '../../src/cli/main.js'
import { listen, type Seed, startServer } from '../../src/index.js'
import { type Run, runProcess } from './fake-process.js'

const MANAGEMENT = 'key_2222222222222222222222'
const code = 'module.exports = async () => ({ raw: 1 })'
const READS = ['tenant:read', 'application:read', 'reactor:read', 'proxy:read', 'webhook:read'] as const

const TENANT = {
  name: 'production',
  settings: { deduplicate_tokens: 'true' },
  applications: [
    { name: 'reader', type: 'management', permissions: [...READS], key: MANAGEMENT },
    {
      name: 'backend',
      type: 'private',
      rules: [{ priority: 1, container: '/pci/', transform: 'mask', permissions: ['token:read'] }],
    },
    ...Array.from({ length: 120 }, (_, at) => ({
      name: `app ${at}`,
      type: 'private',
      permissions: ['token:create'],
    })),
  ],
  formulas: [{ name: 'f', type: 'private', code }],
  tokens: [{ id: 'card-1', type: 'card', data: { number: '4242424242424242' } }],
  reactors: [
    { name: 'r', formula: 'f', application: 'app 7' },
    { name: 'own', code, configuration: { A: 'set\u001b[31mting' } },
  ],
  proxies: [
    {
      name: 'bank',
      destination_url: 'https://bank.example.com/v1',
      application: 'app 7',
      request_reactor_id: 'own',
      response_transforms: [{ type: 'mask', matcher: 'regex', expression: '([0-9]+)', replacement: '*' }],
    },
  ],
  webhooks: [{ name: 'hook', url: 'https://hook.example.com/e', events: ['token.created'] }],
  members: [{ email: 'ada@example.com' }],
} as unknown as Seed

function workplaceFor(t: Test) {
  const cwd = mkdtempSync(join(tmpdir(), 'coffer-pull-'))
  t.teardown(() => rmSync(cwd, { recursive: true, force: true }))
  const env = { HOME: cwd, XDG_CONFIG_HOME: join(cwd, 'config'), COFFER_API_KEY: MANAGEMENT }
  const run = (words: readonly string[], more: Partial<Run> = {}) =>
    runProcess(main, { words, cwd, env, ...more })
  return { cwd, run, env, read: (name: string) => readFileSync(join(cwd, name), 'utf8') }
}

async function serve(t: Test, seed: unknown) {
  const server = await startServer({ seed: seed as Seed })
  t.teardown(() => server.stop())
  return server
}

t.test(
  'a pull reads a tenant of another Coffer without its tokens, and applying the seed creates an equal tenant',
  async (t) => {
    const server = await serve(t, TENANT)
    const { run, read, cwd } = workplaceFor(t)
    // The listener has its own webhook, which is deleted when the listener ends. Therefore the seed does not contain
    // the webhook of the listener.
    const listener = await listen(server.control, { to: 'http://127.0.0.1:9/', events: ['token.created'] })
    t.teardown(() => listener.stop())
    const { code, stderr } = await run(['pull', 'prod.json', '--url', server.url])
    t.equal(code, 0, stderr)
    t.match(stderr, '122 applications, 1 formula, 2 reactors, 1 proxy, 1 webhook')
    t.match(stderr, /configuration of reactors and proxies in the seed may be secret/)
    t.equal(statSync(join(cwd, 'prod.json')).mode & 0o777, 0o600)
    const text = read('prod.json')
    t.notMatch(text, /key_|42424242|ada@example|"key"|\u001b/)
    const seed = JSON.parse(text)
    t.match(seed, {
      name: 'production',
      settings: { deduplicate_tokens: 'true' },
      applications: { length: 122 },
      reactors: [
        { name: 'r', formula: { id: seed.formulas[0].id } },
        { name: 'own', code: /exports/, configuration: { A: 'set\u001b[31mting' } },
      ],
      proxies: [{ request_reactor_id: seed.reactors[1].id, response_transforms: [{ type: 'mask' }] }],
      webhooks: [{ name: 'hook', status: 'enabled' }],
    })
    const reader = { ...seed.applications[0], key: MANAGEMENT }
    const copy = await serve(t, { ...seed, applications: [reader, ...seed.applications.slice(1)] })
    await run(['pull', 'copy.yaml', '--url', copy.url])
    await run(['pull', 'again.json', '--url', copy.url])
    t.same(JSON.parse(read('again.json')), seed, 'the pull of the copy is the same')
    t.notMatch(read('copy.yaml'), '\u001b')
    for (const file of ['prod.json', 'copy.yaml']) {
      const { code, stdout, stderr } = await run(['seed', 'diff', file, '--url', server.url, '-o', 'json'])
      t.equal(code, 0, stderr)
      t.equal(stdout, '[]\n')
    }
    const exists = await run(['pull', 'prod.json', '--url', server.url])
    t.equal(exists.code, 5, 'a file that exists is not replaced')
  },
)

t.test(
  'if a tenant has changed since its seed was written, the differences name the list and the record',
  async (t) => {
    const server = await serve(t, TENANT)
    const { run, cwd } = workplaceFor(t)
    await run(['pull', 'prod.yaml', '--url', server.url])
    const id = async (operation: 'reactor list' | 'webhook list' | 'proxy list', name: string) =>
      (await server.ask(operation)).data.find((each) => each.name === name)!.id
    await server.ask('reactor patch', { id: await id('reactor list', 'own'), code: `${code} // changed` })
    await server.ask('webhook delete', { id: await id('webhook list', 'hook') })
    await server.ask('reactor create', { name: 'new', code })
    await server.ask('tenant update', { name: 'renamed' })
    const words = ['seed', 'diff', 'prod.yaml', '--url', server.url]
    const { code: exit, stdout, stderr } = await run([...words, '-o', 'json'])
    t.equal(exit, 11)
    t.match(stderr, /seed-differs|differs from the seed: 4 records/)
    t.same(JSON.parse(stdout), [
      { list: 'tenant', name: 'production', difference: 'changed', attributes: ['name'] },
      { list: 'reactors', name: 'own', difference: 'changed', attributes: ['code'] },
      { list: 'reactors', name: 'new', difference: 'added' },
      { list: 'webhooks', name: 'hook', difference: 'missing' },
    ])
    writeFileSync(
      join(cwd, 'part.json'),
      JSON.stringify({ proxies: TENANT.proxies, reactors: [], applications: TENANT.applications }),
    )
    const part = await run(['seed', 'diff', 'part.json', '--url', server.url, '-o', 'json'])
    t.match(part.stderr, /seed is refused|no reactor has this name/, 'a seed must be complete')
  },
)

t.test(
  'seed diff compares a seed with a vault, and ignores the ids and the order of the records',
  async (t) => {
    const { run, cwd, env } = workplaceFor(t)
    const own = { env: { ...env, COFFER_API_KEY: '' } }
    const { applications: _, settings: __, ...seed } = TENANT as Record<string, object[]>
    const reactors = [{ name: 'own', code }]
    const contents = {
      ...seed,
      reactors,
      proxies: [],
      tokens: [...seed.tokens!, { type: 'token', data: 'x' }],
    }
    writeFileSync(join(cwd, 'seed.json'), JSON.stringify(contents))
    await run(['init'], own)
    t.equal((await run(['seed', 'apply', 'seed.json'], own)).code, 0)
    const reversed = { ...contents, tokens: contents.tokens.toReversed() }
    writeFileSync(join(cwd, 'other.json'), JSON.stringify(reversed))
    const equal = await run(['seed', 'diff', 'other.json', '--reveal', '-o', 'json'], own)
    t.equal(equal.code, 0, equal.stderr + equal.stdout)
    t.match(equal.stderr, 'Not compared: applications, associations, invitations.')
    await run(['token', 'delete', 'card-1', '--yes'], own)
    const moved = await run(['seed', 'diff', 'other.json', '-o', 'json'], own)
    t.equal(moved.code, 11)
    t.same(JSON.parse(moved.stdout), [{ list: 'tokens', name: 'card-1', difference: 'missing' }])
  },
)

t.test(
  'pull sends the key only after a confirmation or with --yes, and the key can come from a file that only its owner can read',
  async (t) => {
    const { run, cwd, env } = workplaceFor(t)
    const requests: { url: string; key: string | undefined }[] = []
    const fetch: NonNullable<Run['fetch']> = async (url, { headers }) => {
      requests.push({ url, key: headers['bt-api-key'] })
      throw new Error('no network')
    }
    const words = ['pull', '--url', 'https://vault.example.com', '--prefix', 'bt']
    const dry = await run([...words, '--dry-run', '-o', 'json'], { fetch })
    t.equal(dry.code, 0, dry.stderr)
    t.same(
      JSON.parse(dry.stdout).map(({ method, url }: Record<string, string>) => `${method} ${url}`),
      [
        'tenants/self',
        'applications?page=1&size=100',
        'reactor-formulas?page=1&size=100',
        'reactors?page=1&size=100',
        'proxies?page=1&size=100',
        'webhooks',
      ].map((path) => `GET https://vault.example.com/${path}`),
    )
    t.match(dry.stderr, /Nothing was sent.*BT-API-KEY/)
    t.notMatch(dry.stdout + dry.stderr, MANAGEMENT)
    const unasked = await run(words, { fetch })
    t.equal(unasked.code, 2)
    t.match(unasked.stderr, '--yes')
    const refused = await run(words, {
      fetch,
      columns: 80,
      answers: [['sends the API key to vault.example.com', 'n\r']],
    })
    t.equal(refused.code, 130)
    t.same(requests, [], 'nothing was sent so far')
    const keyless = await run([...words, '--yes'], { fetch, env: { ...env, COFFER_API_KEY: '' } })
    t.equal(keyless.code, 4)
    t.match(keyless.stderr, /--api-key-file/)
    writeFileSync(join(cwd, 'key.txt'), `${MANAGEMENT}\n`, { mode: 0o600 })
    const fromFile = { fetch, env: { ...env, COFFER_API_KEY: '' } }
    t.equal((await run([...words, '--yes', '--api-key-file', 'key.txt'], fromFile)).code, 9)
    t.match(requests, [{ url: 'https://vault.example.com/tenants/self', key: MANAGEMENT }])
    writeFileSync(join(cwd, 'open.txt'), `${MANAGEMENT}\n`, { mode: 0o644 })
    t.equal((await run([...words, '--yes', '--api-key-file', 'open.txt'], fromFile)).code, 6)
    t.equal((await run(['pull'], { fetch })).code, 2, 'without --url')
  },
)

const json =
  (answer: unknown): RequestListener =>
  (_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
  }

async function hostile(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test(
  'pull lists the parts that the key is not allowed to read, and the attributes that Coffer does not know',
  async (t) => {
    const { run, read } = workplaceFor(t)
    const url = await hostile(t, (request, response) => {
      const { pathname } = new URL(request.url!, 'http://x')
      const answers: Record<string, unknown> = {
        '/tenants/self': { name: 'x', settings: { deduplicate_tokens: 'true', odd_setting: 1 } },
        '/proxies': {
          pagination: { total_pages: 1 },
          data: [
            {
              id: 'dddddddd-0000-4000-8000-000000000001',
              name: 'p',
              key: 'secret-proxy-key',
              destination_url: 'https://example.com',
              application_id: 'aaaaaaaa-0000-4000-8000-000000000001',
              'odd\u001b[2J': 1,
              timeout: 3,
              request_transform: null,
            },
          ],
        },
        '/reactors': { data: [] },
      }
      if (pathname in answers) return json(answers[pathname])(request, response)
      response.statusCode = pathname === '/applications' ? 403 : 404
      json({ title: '\u001b[31mno' })(request, response)
    })
    const { code, stderr } = await run(['pull', 'part.json', '--url', url])
    t.equal(code, 0, stderr)
    t.match(stderr, 'Not read: applications (status 403). The key needs the permission application:read.')
    t.match(stderr, 'Not read: webhooks (status 404).')
    t.match(stderr, /settings\.odd_setting, proxies\.odd\\u\{1b\}\[2J, proxies\.timeout/)
    t.match(stderr, /1 reference to records that were not read: proxies: p: application/)
    t.notMatch(stderr, '\u001b')
    const seed = JSON.parse(read('part.json'))
    t.same(seed.proxies, [
      { id: 'dddddddd-0000-4000-8000-000000000001', name: 'p', destination_url: 'https://example.com' },
    ])
    t.notOk('applications' in seed)
  },
)

t.test('a hostile server ends pull with an error, and pull leaves no file', async (t) => {
  const { run, cwd } = workplaceFor(t)
  const item = (at: number) => ({
    id: `${at}`,
    name: `a${at}`,
    type: 'private',
    permissions: ['token:create'],
  })
  const page = (data: unknown, total_pages: unknown) => json({ pagination: { total_pages }, data })
  const onApplications =
    (listener: RequestListener): RequestListener =>
    (request, response) =>
      request.url!.startsWith('/applications')
        ? listener(request, response)
        : json(request.url === '/tenants/self' ? { name: 'x', settings: {} } : { data: [] })(
            request,
            response,
          )
  let drawn = 0
  const raw =
    (text: string, type = 'application/json'): RequestListener =>
    (_, response) => {
      response.setHeader('content-type', type).end(text)
    }
  const cases: [string, RequestListener, RegExp][] = [
    ['endless equal pages', page([item(1)], 1e9), /same page/],
    [
      'endless new pages',
      (...exchange) =>
        page(
          Array.from({ length: 100 }, () => item(drawn++)),
          1e9,
        )(...exchange),
      /more than 1000 applications/,
    ],
    [
      'a redirect',
      (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      /redirects/,
    ],
    ['another content type', raw('<html>', 'text/html'), /not JSON/],
    ['no list', json({ data: { length: 3 } }), /does not have the form of the API/],
    ['items that are no objects', json({ data: [1, null] }), /does not have the form of the API/],
    ['an item without an id', json({ data: [{ name: 'x' }] }), /does not have the form of the API/],
    ['a deep value', raw(`{"data":${'['.repeat(100_000)}`), /nested more than 64/],
    ['a huge number', raw('{"data":[{"id":"1","n":1e999}]}'), /cannot be stored exactly/],
    ['a property twice', raw('{"data":[],"data":[]}'), /twice/],
    ['a prototype', raw('{"data":[{"id":"1","__proto__":{}}]}'), /prototypes/],
    [
      'a large answer',
      raw(`{"data":["${'x'.repeat(17 * 1024 * 1024)}"]}`),
      /larger than the limit of 16 MiB/,
    ],
    [
      'many large pages',
      (...exchange) => page([{ ...item(drawn++), name: 'x'.repeat(5 * 1024 * 1024) }], 1e9)(...exchange),
      /more than 16,777,216 characters/,
    ],
    [
      'more than a seed file may have',
      page([{ ...item(1), name: 'x'.repeat(5 * 1024 * 1024) }], 1),
      /larger than the limit of a seed, 4194304 bytes/,
    ],
    ['a refused key', (_, response) => response.writeHead(401).end(), /401|without a reason/],
  ]
  for (const [name, listener, why] of cases) {
    const url = await hostile(t, onApplications(listener))
    const { code, stderr } = await run(['pull', 'out.json', '--url', url])
    t.not(code, 0, name)
    t.match(stderr, why, name)
    t.notMatch(stderr, '\u001b', name)
    t.same(
      readdirSync(cwd).filter((each) => each.startsWith('out')),
      [],
      name,
    )
  }
  const silent = await hostile(t, () => {})
  const late = await run(['pull', 'out.json', '--url', silent, '--timeout', '1'])
  t.equal(late.code, 9)
  t.match(late.stderr, /did not answer within 1 s/)
  const none = await hostile(t, (_, response) => response.writeHead(403).end())
  t.match((await run(['pull', '--url', none])).stderr, /can read nothing of the tenant/)
})
