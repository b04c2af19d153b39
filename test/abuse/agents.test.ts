/** An agent that wants the data of a token: ways to get a marked value into a tool's answer. None gets through. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createVaultHome } from '../cli/home.js'
import { connectAgent, type Told } from '../support/agent.js'

const NUMBER = '4929123456789015'
const CVC = '739'
const SECRET = 'Zaphod-Beeblebrox/42'
/** No answer has one of these: the values, their parts that no mask shows, and their usual encodings. */
const MARKS = [
  NUMBER,
  NUMBER.slice(6, 14),
  SECRET,
  'Zaphod',
  'zaphodbee',
  [...NUMBER].reverse().join(''),
  ...[NUMBER, SECRET].flatMap((text) => [
    Buffer.from(text).toString('base64').replaceAll('=', ''),
    Buffer.from(text).toString('hex'),
    [...text].reverse().join(''),
    [...text].join(' '),
    [...text].join('","'),
    [...Buffer.from(text)].join(','),
  ]),
]

/** What a destination makes of a body, by the path. */
const ECHOES: Record<
  string,
  (body: string, response: ServerResponse, request: IncomingMessage) => string | Uint8Array
> = {
  '/echo': (body) => JSON.stringify({ body }),
  '/json': (body) => body,
  '/raw': (body, response) => {
    response.setHeader('content-type', 'text/html')
    return `<p>${body}</p>`
  },
  '/base64': (body) => JSON.stringify({ body: Buffer.from(body).toString('base64') }),
  '/base64url': (body) => JSON.stringify({ body: Buffer.from(`.${body}`).toString('base64url') }),
  '/base64-twice': (body) => Buffer.from(Buffer.from(body).toString('base64')).toString('base64'),
  '/hex': (body) => JSON.stringify({ hex: Buffer.from(body).toString('hex') }),
  '/url': (body) => JSON.stringify({ next: `/x?q=${encodeURIComponent(body)}` }),
  '/escaped': (body) => JSON.stringify(JSON.stringify(JSON.stringify(body))),
  '/entities': (body) => [...body].map((each) => `&#x${each.charCodeAt(0).toString(16)};`).join(''),
  '/reversed': (body) => JSON.stringify([...body].reverse().join('')),
  '/characters': (body) => JSON.stringify([...body]),
  '/bytes': (body) => JSON.stringify(Buffer.from(body)),
  '/spaced': (body) => [...body].join(' '),
  '/halves': (body) => JSON.stringify([body.slice(0, body.length / 2), body.slice(body.length / 2)]),
  '/upper': (body) => body.toUpperCase(),
  '/keys': (body) => JSON.stringify({ [body]: 1 }),
  '/number': (body) => `{"n":${/\d{12,}/.exec(body)?.[0] ?? 0}}`,
  '/gzip': (body, response) => {
    response.setHeader('content-encoding', 'gzip')
    return gzipSync(body)
  },
  '/brotli': (body, response) => {
    response.setHeader('content-encoding', 'br')
    return brotliCompressSync(body)
  },
  '/gzip-untold': (body) => gzipSync(body),
  '/gzip-text': (body) => JSON.stringify({ body: gzipSync(body).toString('base64') }),
  '/utf16': (body) => Buffer.from(body, 'utf16le'),
  '/latin1': (body) => Buffer.from(`é${body}`, 'latin1'),
  '/header': (body, response) => {
    response.setHeader('x-told', body.replaceAll(/[^\x20-\x7e]/g, ''))
    return '{}'
  },
  '/location': (body, response) => {
    response.writeHead(302, { location: `/${encodeURIComponent(body)}` })
    return ''
  },
  '/error': (body, response) => {
    response.statusCode = 500
    return JSON.stringify({ error: `cannot take ${body}` })
  },
  '/status': (body, response) => {
    response.statusCode = Number(/\d{3}/.exec(body)?.[0] ?? 200)
    return '{}'
  },
  '/long': (body) => JSON.stringify({ body, more: 'x '.repeat(100_000) }),
  '/target': (_, __, request) => JSON.stringify({ url: request.url }),
  '/headers': (_, __, request) => JSON.stringify(request.headers),
  '/guesses': (body) => {
    const guesses = Array.from({ length: 1000 }, (_, at) =>
      `4929123${String(at + 3000).padStart(4, '0')}89019`.slice(0, 16),
    )
    return JSON.stringify([...guesses, body])
  },
  '/cvcs': () => JSON.stringify(Array.from({ length: 900 }, (_, at) => at + 100)),
}

async function startEcho() {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const path = `/${(request.url ?? '').split(/[/?]/)[1]}`
    response.setHeader('content-type', 'application/json')
    response.end(ECHOES[path]!(Buffer.concat(chunks).toString(), response, request))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { host, url: `http://${host}`, close }
}

const REACTORS: Record<string, string> = {
  echo: '({ args }) => ({ raw: args })',
  reversed: '({ args }) => ({ raw: JSON.stringify(args).split("").reverse().join("") })',
  hex: '({ args }) => ({ raw: Buffer.from(JSON.stringify(args)).toString("hex") })',
  characters: '({ args }) => ({ raw: JSON.stringify(args).split("") })',
  thrown: '({ args }) => { throw new Error("cannot take " + JSON.stringify(args)) }',
  res: '({ args }) => ({ res: { statusCode: 402, headers: { "x-told": JSON.stringify(args) }, body: args } })',
  ids: '({ args }) => ({ tokenize: { type: "token", data: 1, id: "id-" + Object.values(args)[0] } })',
  reading:
    'async ({ svc, args }) => { const t = await svc.tokens.retrieve(args.id); return { raw: { seen: t.data } } }',
}

async function open(test: Test) {
  const home = await createVaultHome(test)
  const echo = await startEcho()
  test.teardown(echo.close)
  const { key } = await home.json('app create --agent helper')
  const reveal = '{"priority":1,"container":"/","transform":"reveal","permissions":["token:read"]}'
  const bound = await home.json(['app', 'create', '--name', 'bound', '--type', 'private', '--rule', reveal])
  await home.json('token create', {
    stdin: JSON.stringify({
      id: 'card-1',
      type: 'card',
      data: { number: NUMBER, cvc: CVC },
      search_indexes: ['{{ data.number }}'],
    }),
  })
  await home.json('token create', {
    stdin: JSON.stringify({ id: 'note-1', type: 'token', data: SECRET, mask: 'xxx' }),
  })
  const { id: intent } = await home.json('intent create', {
    stdin: JSON.stringify({ type: 'token', data: SECRET }),
  })
  const reactors: Record<string, string> = {}
  for (const [name, code] of Object.entries(REACTORS)) {
    const words = [
      'reactor',
      'create',
      '--name',
      name,
      '--code',
      `module.exports = ${code.startsWith('async') ? '' : 'async '}${code}`,
    ]
    reactors[name] = (await home.json([...words, '--application', bound.id])).id
  }
  const manager = await home.json(
    'app create --name manager --type management --permission application:create --permission application:read --permission application:update --permission reactor:create --permission reactor:update --permission reactor:read --permission proxy:create --permission proxy:read --permission log:read',
  )
  const proxy = await home.json([
    'proxy',
    'create',
    '--name',
    'p',
    '--destination-url',
    `${echo.url}/json`,
    '--configuration',
    `KEY=${SECRET}`,
  ])
  const connect = (key: string, ...words: string[]) =>
    connectAgent({
      cwd: home.place,
      env: { ...home.env, COFFER_API_KEY: key },
      words: ['--allow-net', echo.host, ...words],
    })
  const agent = await connect(key)
  const boss = await connect(manager.key)
  test.teardown(() => Promise.all([agent.close(), boss.close()]))
  return {
    home,
    echo,
    agent,
    boss,
    reactors,
    intent,
    proxy,
    fingerprint: (await home.json('token get card-1')).fingerprint as string,
  }
}

/** What an answer tells, as an attacker reads it: also what is left of it without JSON. */
function leaks(told: unknown): string[] {
  const text = JSON.stringify(told) ?? ''
  const read = [text, text.replaceAll('\\', ''), text.toLowerCase()]
  return MARKS.filter((mark) => read.some((each) => each.includes(mark)))
}

t.test('no way leads a marked value into an answer', async (t) => {
  const { home, echo, agent, boss, reactors, intent, proxy, fingerprint } = await open(t)
  const number = '{{ card-1 | json: "$.number" }}'
  let ways = 0
  const attack = async (how: string, run: () => Promise<Told | unknown>): Promise<Told> => {
    ways++
    const told = await run().catch((error: Error) => ({
      isError: true,
      text: error.message,
      data: undefined,
    }))
    t.same(leaks(told), [], how)
    return told as Told
  }
  const refused = async (how: string, run: () => Promise<Told>) =>
    t.equal((await attack(how, run)).isError, true, `${how}: is refused`)
  const proxyCall = (path: string, more: object) =>
    agent.call('proxy_call', { target: echo.url + path, ...more })

  for (const path of Object.keys(ECHOES))
    for (const body of [number, '{{ note-1 }}'])
      await attack(`proxy ${path} with ${body}`, () => proxyCall(path, { body }))
  await attack('the whole card', () => proxyCall('/json', { body: { card: '{{ card-1 }}' } }))
  await attack('the whole token', () => proxyCall('/json', { body: { card: '{{ token: card-1 }}' } }))
  await attack('a value in the path', () => proxyCall(`/target/${number}`, { method: 'GET' }))
  await attack('a value in the query', () => proxyCall(`/target?n=${number}`, { method: 'GET' }))
  await attack('a value in a header', () =>
    proxyCall('/headers', { headers: { authorization: 'Bearer {{ note-1 }}' } }),
  )
  await attack('a token intent', () =>
    proxyCall('/json', { body: `{{ token_intent: ${intent} | json: "$.data" }}` }),
  )
  await attack('a proxy', () => agent.call('proxy_call', { target: proxy.id, body: { n: number } }))
  await attack('a dry run', () => proxyCall('/json', { body: number, dry_run: true }))
  const status = await attack('a status', () =>
    proxyCall('/status', { body: '{{ card-1 | json: "$.cvc" }}' }),
  )
  t.equal(status.data?.res?.statusCode, 700, 'a status of three digits is told by its class')
  const cvcs = await attack('guesses of a short number', () =>
    proxyCall('/cvcs', { body: '{{ card-1 | json: "$.cvc" }}' }),
  )
  t.equal(new Set(JSON.parse(JSON.stringify(cvcs.data.res.body))).size, 1, 'all guesses look alike')
  const guesses = await attack('guesses of a long number', () => proxyCall('/guesses', { body: number }))
  t.equal(new Set(guesses.data.res.body).size, 1, 'all guesses look alike')

  for (const filter of [
    'slice: 0, 6',
    'reverse',
    'last4',
    'replace: "4", "a"',
    'json: "$.*"',
    'json: "$[?match(@, \'4929.*\')]"',
    'json: "$..number"',
  ])
    await refused(`a filter: ${filter}`, () =>
      proxyCall('/json', { body: `{{ card-1 | json: "$.number" | ${filter} }}` }),
    )
  await refused('a filter after a comma', () => proxyCall('/json', { body: '{{ note-1, slice: 0 }}' }))
  await refused('another host', () =>
    agent.call('proxy_call', { target: 'http://127.0.0.1:9/x', body: number }),
  )
  const marked = await attack('fingerprints as data', () =>
    proxyCall('/json', { body: '{{ token: card-1 | json: "$.fingerprint" }}' }),
  )
  t.notMatch(JSON.stringify(marked), fingerprint)

  for (const [name, id] of Object.entries(reactors)) {
    const args = name === 'reading' ? { id: 'card-1' } : { n: name === 'ids' ? '{{ note-1 }}' : number }
    await attack(`reactor ${name}`, () => agent.call('reactor_react', { id, args }))
  }
  await refused('a filter in arguments', () =>
    agent.call('reactor_react', { id: reactors.echo, args: { n: '{{ note-1 | slice: 0 }}' } }),
  )
  await attack('a later result', async () => {
    const { data } = await agent.call('reactor_react-async', { id: reactors.echo, args: { n: number } })
    return agent.call('reactor_result', { id: reactors.echo, request_id: data.asyncReactorRequestId })
  })
  await attack('the result of somebody else', async () => {
    const own = await home.json(['reactor', 'react-async', 'echo', '--args', `n=${number}`])
    return agent.call('reactor_result', { id: reactors.echo, request_id: own.asyncReactorRequestId })
  })

  for (const query of [`data:${NUMBER}`, `NOT data:${NUMBER}`, `(type:card OR fingerprint:${fingerprint})`]) {
    const told = await agent.call('token_search', { query })
    t.equal(told.isError, true, 'a search confirms no guess')
    ways++
  }
  await refused('a search by cursor', () => agent.call('token_search-after', { query: `data:${NUMBER}` }))
  await refused('a list by fingerprint', () => agent.call('token_list-after', { fingerprint }))
  const duplicate = await attack('a duplicate', () =>
    agent.call('token_create', {
      type: 'card',
      data: { number: NUMBER.replace(/^/, '') },
      deduplicate_token: true,
      id: 'mine-1',
      mask: 'm',
    }),
  )
  t.equal(duplicate.data?.id, 'mine-1', 'a duplicate is not told')
  await attack('a duplicate in a document', () =>
    agent.call('token_tokenize', {
      payload: { type: 'token', data: SECRET, deduplicate_token: true, mask: 'm' },
    }),
  )
  for (const name of ['token_get', 'token_list', 'token_list-after', 'token_search'])
    t.notMatch(
      JSON.stringify(
        await attack(name, () => agent.call(name, { id: name === 'token_get' ? 'card-1' : undefined })),
      ),
      fingerprint,
    )
  await refused('a mask for an intent', () =>
    agent.call('token_create', { token_intent_id: intent, mask: '{{ data }}' }),
  )
  await refused('an index for an intent', () =>
    agent.call('token_create', { token_intent_id: intent, search_indexes: ['{{ data }}'] }),
  )
  await refused('an id for an intent', () =>
    agent.call('token_create', { token_intent_id: intent, id: '{{ data }}' }),
  )
  await attack('a child with a mask of its parent', () =>
    agent.call('token_create-child', { parent_id: 'note-1', type: 'token', data: 'x', mask: '{{ note-1 }}' }),
  )
  await refused('expressions in an id', () => agent.call('token_get', { id: '{{ note-1 }}' }))
  await refused('errors that quote', () => agent.call('token_create', { type: 'card', data: '{{ card-1 }}' }))
  for (const name of [
    'token_detokenize',
    'token_update',
    'token_export',
    'vault_backup',
    'seed_export',
    'reactor_logs',
    'scan',
  ])
    await refused(`the tool ${name}`, () =>
      agent.call(name, { payload: '{{ note-1 }}', id: 'note-1', mask: '{{ data }}' }),
    )
  await refused('a session with more rights', () =>
    agent.call('session_authorize', {
      nonce: 'x',
      rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }],
    }),
  )

  await refused('a new application', () =>
    boss.call('app_create', {
      name: 'a',
      type: 'private',
      rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }],
    }),
  )
  await refused('a new key', () =>
    boss.call('app_create', { name: 'a', type: 'private', permissions: ['token:read'] }),
  )
  const [helper] = (await home.json('app list')).data.filter(
    ({ name }: { name: string }) => name === 'helper',
  )
  await refused('more rights for itself', () =>
    boss.call('app_update', {
      id: helper.id,
      name: 'helper',
      rules: [{ priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }],
    }),
  )
  await refused('code of its own', () =>
    boss.call('reactor_create', { name: 'x', code: 'module.exports = async ({ args }) => ({ raw: args })' }),
  )
  await refused('other code', () => boss.call('reactor_patch', { id: reactors.echo, code: 'x' }))
  await refused('a proxy with a mask of its own', () =>
    boss.call('proxy_create', {
      name: 'x',
      destination_url: echo.url,
      response_transform: { type: 'mask', matcher: 'regex', expression: '(4)', replacement: 'a' },
    }),
  )
  for (const name of ['reactor_list', 'proxy_list', 'log_list', 'log_tail', 'app_list'])
    await attack(name, () => boss.call(name, {}))
  t.notMatch(JSON.stringify(await boss.call('proxy_list')), proxy.key, 'keys of proxies are left out')

  await attack('resources', () => agent.client.readResource({ uri: `coffer://help/{{ note-1 }}` }))
  await attack('prompts', () =>
    agent.client.getPrompt({ name: 'call_api', arguments: { token: '{{ note-1 }}', request: number } }),
  )
  await attack('what it prints', async () => [agent.stderr(), boss.stderr()])
  t.ok(ways >= 60, `${ways} ways`)
})
