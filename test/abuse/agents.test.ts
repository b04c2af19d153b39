/** These tests act as an agent that tries to read the data of a token. */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createVaultHome } from '../cli/home.js'
import { type Received, startStub } from '../http/stub.js'
import { connectAgent, type WebhookEvent } from '../support/agent.js'

const NUMBER = '4929123456789015'
const CVC = '739'
const SECRET = 'Zaphod-Beeblebrox/42'
const reverse = (text: string) => [...text].reverse().join('')
const bytesOf = (text: string, base: number, width: number, before: string) =>
  [...Buffer.from(text)].map((byte) => before + byte.toString(base).padStart(width, '0')).join('')
/**
 * The texts that no result of a tool may contain: the secret values, the parts of secret values that no mask shows,
 * and the usual encodings of these texts.
 */
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
    reverse(Buffer.from(text).toString('base64').replaceAll('=', '')),
    bytesOf(text, 8, 1, ''),
    bytesOf(text, 2, 8, ''),
    text.replaceAll(/\W/g, '').toLowerCase(),
  ]),
]

type Echoed =
  | string
  | Uint8Array
  | [status: number, headers: Record<string, string>, body?: string | Uint8Array]

/** The responses of the destination of the proxy, by path. */
const ECHOES: Record<string, (body: string, { url, headers }: Received) => Echoed> = {
  '/json': (body) => body,
  '/raw': (body) => [200, { 'content-type': 'text/html' }, `<p>${body}</p>`],
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
  '/base64-reversed': (body) => reverse(Buffer.from(body).toString('base64')),
  '/hex-reversed': (body) => reverse(Buffer.from(body).toString('hex')),
  '/octal': (body) => bytesOf(body, 8, 3, '\\'),
  '/binary': (body) => bytesOf(body, 2, 8, ' '),
  '/spans': (body) => body.replaceAll(/.{1,4}/g, '<b>$&</b>'),
  '/names': (body) => {
    const pieces = body.match(/[^"\\]{1,4}/g) ?? []
    return `{${pieces.map((piece, at) => `"${piece}"${at % 2 ? ',' : ':'}`).join('')}"":0}`
  },
  '/jwt': (body) => `e30.${Buffer.from(JSON.stringify({ sub: body })).toString('base64url')}.x`,
  '/form': (body) => new URLSearchParams({ a: body, b: `${body} ${body}` }).toString(),
  '/xml': (body) => `<?xml version="1.0"?><a b="${body}"><![CDATA[${body}]]></a>`,
  '/csv': (body) => `id,data\n1,"${body.replaceAll('"', '""')}"\n`,
  '/lines': (body) => `{"a":1}\n{"b":${JSON.stringify(body)}}\n`,
  '/event': (body) => `event: x\ndata: ${body}\n\n`,
  '/bom': (body) => `\ufeff${JSON.stringify(body)}`,
  '/twice-named': (body) => `{"a":${JSON.stringify(body)},"a":1}`,
  '/broken': (body) => `{"a":${JSON.stringify(body)}`,
  '/zero-width': (body) => [...body].join('\u200b'),
  '/struck': (body) => [...body].join('\u0336'),
  '/circled': (body) => body.replaceAll(/[1-9]/g, (digit) => String.fromCodePoint(0x245f + Number(digit))),
  '/grouped': (body) => `{"n":"${Number(/\d{12,}/.exec(body)?.[0] ?? 0).toLocaleString('en')}"}`,
  '/exponent': (body) => `{"n":${/\d{12,}/.exec(body)?.[0] ?? 0}e9}`,
  '/fraction': (body) => `{"n":0.${/\d{12,}/.exec(body)?.[0] ?? 0}}`,
  '/data-url': (body) => `data:text/plain;base64,${Buffer.from(body).toString('base64')}`,
  '/multipart': (body) => [
    ...([200, { 'content-type': 'multipart/form-data; boundary=b' }] as const),
    `--b\r\ncontent-disposition: form-data; name="${body}"\r\n\r\n${body}\r\n--b--\r\n`,
  ],
  '/charset': (body) => [
    ...([200, { 'content-type': 'application/json; charset=utf-16le' }] as const),
    Buffer.from(JSON.stringify(body), 'utf16le'),
  ],
  '/image': (body) => [200, { 'content-type': 'image/png' }, body],
  '/cookie': (body) => [200, { 'set-cookie': `a=1; b=${encodeURIComponent(body)}` }, '{}'],
  '/header-name': (body) => [200, { [`x-${body.replaceAll(/\W/g, '')}`]: '1' }, '{}'],
  '/header-pieces': (body) => {
    const pieces = body.replaceAll(/\W/g, '').match(/.{1,6}/g) ?? []
    return [200, Object.fromEntries(pieces.map((piece, at) => [`x-${at}`, piece])), '{}']
  },
  '/challenge': (body) => [
    401,
    { 'www-authenticate': `Basic realm="${Buffer.from(body).toString('base64')}"` },
  ],
  '/refresh': (body) => [200, { refresh: `0; url=/?q=${encodeURIComponent(body)}` }],
  '/deflate': (body) => [200, { 'content-encoding': 'deflate' }, deflateSync(body)],
  '/gzip-twice': (body) => [200, { 'content-encoding': 'gzip, gzip' }, gzipSync(gzipSync(body))],
  '/gzip-untrue': (body) => [200, { 'content-encoding': 'gzip' }, body],
  '/gzip': (body) => [200, { 'content-encoding': 'gzip' }, gzipSync(body)],
  '/brotli': (body) => [200, { 'content-encoding': 'br' }, brotliCompressSync(body)],
  '/gzip-untold': (body) => gzipSync(body),
  '/gzip-text': (body) => JSON.stringify({ body: gzipSync(body).toString('base64') }),
  '/utf16': (body) => Buffer.from(body, 'utf16le'),
  '/latin1': (body) => Buffer.from(`é${body}`, 'latin1'),
  '/header': (body) => [200, { 'x-told': body.replaceAll(/[^\x20-\x7e]/g, '') }],
  '/location': (body) => [302, { location: `/${encodeURIComponent(body)}` }],
  '/error': (body) => [500, {}, JSON.stringify({ error: `cannot take ${body}` })],
  '/status': (body) => [Number(/\d{3}/.exec(body)?.[0] ?? 200), {}, '{}'],
  '/long': (body) => JSON.stringify({ body, more: 'x '.repeat(100_000) }),
  '/target': (_, { url }) => JSON.stringify({ url }),
  '/headers': (_, { headers }) => JSON.stringify(headers),
  '/guesses': (body) => {
    const guess = (at: number) => `4929123${String(at + 3000).padStart(4, '0')}89019`.slice(0, 16)
    return JSON.stringify([...Array.from({ length: 1000 }, (_, at) => guess(at)), body])
  },
  '/cvcs': () => JSON.stringify(Array.from({ length: 900 }, (_, at) => at + 100)),
}

async function startEcho() {
  const stub = await startStub()
  stub.answer = (received, response) => {
    const echo = ECHOES[`/${received.url.split(/[/?]/)[1]}`]!
    const echoed = echo(Buffer.from(received.body, 'latin1').toString(), received)
    const [status, headers, body] = Array.isArray(echoed) ? echoed : [200, {}, echoed]
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  }
  return stub
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
    '({ svc, args }) => { const t = await svc.tokens.retrieve(args.id); return { raw: { seen: t.data } } }',
}

const REVEAL = { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }

async function open(test: Test) {
  const home = await createVaultHome(test)
  const echo = await startEcho()
  test.teardown(echo.close)
  const create = (noun: string, input: object) =>
    home.json(`${noun} create`, { stdin: JSON.stringify(input) })
  const { key } = await home.json('app create --agent helper')
  const bound = await create('app', { name: 'bound', type: 'private', rules: [REVEAL] })
  const data = { number: NUMBER, cvc: CVC }
  const { fingerprint } = await create('token', {
    ...{ id: 'card-1', type: 'card', data, search_indexes: ['{{ data.number }}'] },
  })
  await create('token', { id: 'note-1', type: 'token', data: SECRET, mask: 'xxx' })
  const { id: intent } = await create('intent', { type: 'token', data: SECRET })
  const reactors: Record<string, string> = {}
  for (const [name, body] of Object.entries(REACTORS)) {
    const code = `module.exports = async ${body}`
    reactors[name] = (await create('reactor', { name, code, application: { id: bound.id } })).id
  }
  const permissions =
    'application:create application:read application:update reactor:create reactor:update reactor:read proxy:create proxy:read log:read'
  const manager = await create('app', {
    ...{ name: 'manager', type: 'management', permissions: permissions.split(' ') },
  })
  const proxy = await create('proxy', {
    ...{ name: 'p', destination_url: `${echo.url}/json`, configuration: { KEY: SECRET } },
  })
  const connect = (key: string) => {
    const env = { ...home.env, COFFER_API_KEY: key }
    return connectAgent({ cwd: home.place, env, words: ['--allow-net', `127.0.0.1:${echo.port}`] })
  }
  const agent = await connect(key)
  const boss = await connect(manager.key)
  test.teardown(() => Promise.all([agent.close(), boss.close()]))
  return { home, echo, agent, boss, reactors, intent, proxy, fingerprint: fingerprint as string }
}

/**
 * Returns the marks in a result. The function also searches the result without its JSON escapes, because an attacker
 * can remove the escapes.
 */
function leaks(told: unknown): string[] {
  const text = JSON.stringify(told) ?? ''
  const letters = text
    .normalize('NFKC')
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
    .toLowerCase()
  const untagged = text.replaceAll(/<.*?>|\W/g, '').toLowerCase()
  const read = [text, text.replaceAll('\\', ''), text.toLowerCase(), letters, untagged]
  return MARKS.filter((mark) => read.some((each) => each.includes(mark)))
}

t.test('no tool returns a secret value, a part of it or an encoding of it to an agent', async (t) => {
  const { home, echo, agent, boss, reactors, intent, proxy, fingerprint } = await open(t)
  const number = '{{ card-1 | json: "$.number" }}'
  const cvc = '{{ card-1 | json: "$.cvc" }}'
  let ways = 0
  const attack = async (how: string, run: () => Promise<unknown>): Promise<WebhookEvent> => {
    ways++
    const told = await run().catch(({ message }: Error) => ({
      isError: true,
      text: message,
      data: undefined,
    }))
    t.same(leaks(told), [], how)
    return told as WebhookEvent
  }
  const call = (by: typeof agent, tool: string, input: Record<string, unknown>) =>
    attack(`${tool} ${JSON.stringify(input)}`, () => by.call(tool, input))
  const refuse = async (by: typeof agent, tool: string, input: Record<string, unknown>) =>
    t.equal((await call(by, tool, input)).isError, true, `${tool} ${JSON.stringify(input)}: is refused`)
  const proxied = (path: string, more: object) =>
    call(agent, 'proxy_call', { target: echo.url + path, ...more })

  for (const path of Object.keys(ECHOES))
    for (const body of [number, '{{ note-1 }}']) await proxied(path, { body })
  for (const [path, more] of [
    ['/json', { body: { card: '{{ card-1 }}' } }],
    ['/json', { body: { card: '{{ token: card-1 }}' } }],
    [`/target/${number}`, { method: 'GET' }],
    [`/target?n=${number}`, { method: 'GET' }],
    ['/headers', { headers: { authorization: 'Bearer {{ note-1 }}' } }],
    ['/json', { body: `{{ token_intent: ${intent} | json: "$.data" }}` }],
    ['/json', { body: number, dry_run: true }],
  ] as const)
    await proxied(path, more)
  await call(agent, 'proxy_call', { target: proxy.id, body: { n: number } })
  const status = await proxied('/status', { body: cvc })
  t.equal(status.data?.res?.statusCode, 700, 'a status code with three digits is rounded to its class')
  for (const [path, body] of [
    ['/cvcs', cvc],
    ['/guesses', number],
  ] as const) {
    const { data } = await proxied(path, { body })
    t.equal(new Set(data.res.body).size, 1, `${path}: all guesses have equal results`)
  }
  const filters =
    'slice: 0, 6|reverse|replace: "4", "a"|json: "$.*"|json: "$[?match(@, \'4929.*\')]"|json: "$..number"'
  for (const filter of filters.split('|'))
    await refuse(agent, 'proxy_call', {
      target: `${echo.url}/json`,
      body: `{{ card-1 | json: "$.number" | ${filter} }}`,
    })
  const marked = await proxied('/json', { body: '{{ token: card-1 | json: "$.fingerprint" }}' })
  t.notMatch(JSON.stringify(marked), fingerprint, 'fingerprints are also removed from data')

  for (const [name, id] of Object.entries(reactors)) {
    const args = name === 'reading' ? { id: 'card-1' } : { n: name === 'ids' ? '{{ note-1 }}' : number }
    await call(agent, 'reactor_react', { id, args })
  }
  for (const more of [
    { method: '{{ note-1 }}', body: '' },
    { headers: { '{{ note-1 }}': 'x' } },
    { headers: { 'x-a': number, connection: number } },
    { headers: { 'content-type': '{{ note-1 }}' }, body: '{}' },
    { headers: { 'content-length': number } },
    { headers: { host: '{{ note-1 }}', expect: '{{ note-1 }}', 'transfer-encoding': '{{ note-1 }}' } },
    { body: '{{ card-1 | json: "$.cvc.x" }}' },
    { body: '{{ note-1 | json: "$[0]" }}' },
    { body: '{{ card-1 | json: "$.number" | json: "$.x" }}' },
    { body: '{{ {{ note-1 }} }}' },
    { body: { '{{ note-1 }}': '{{ note-1 }}' } },
    { body: ['{{ note-1 }}', { a: ['{{ note-1 }}{{ card-1 | json: "$.number" }}'] }] },
    { target: `${echo.url}/json/{{ note-1 }}` },
    { target: 'http://{{ note-1 }}/' },
    { target: `${echo.url}/json#{{ note-1 }}` },
    { target: `${echo.url}/target/{{ note-1 }}/..%2f` },
  ])
    await call(agent, 'proxy_call', { target: `${echo.url}/json`, ...more })

  const resultOf = (request_id: string) => call(agent, 'reactor_result', { id: reactors.echo, request_id })
  const { data: later } = await call(agent, 'reactor_react-async', { id: reactors.echo, args: { n: number } })
  await resultOf(later.asyncReactorRequestId)
  const own = await home.json(['reactor', 'react-async', 'echo', '--args', `n=${number}`])
  await resultOf(own.asyncReactorRequestId)

  const duplicate = await call(agent, 'token_create', {
    ...{ type: 'card', data: { number: NUMBER }, deduplicate_token: true, id: 'mine-1', mask: 'm' },
  })
  t.equal(duplicate.data?.id, 'mine-1', 'the answer does not reveal a duplicate')
  await call(agent, 'token_tokenize', {
    payload: { type: 'token', data: SECRET, deduplicate_token: true, mask: 'm' },
  })
  for (const name of ['token_get', 'token_list', 'token_list-after', 'token_search']) {
    const told = await call(agent, name, name === 'token_get' ? { id: 'card-1' } : {})
    t.notMatch(JSON.stringify(told), fingerprint)
  }
  const child = { parent_id: 'note-1', type: 'token', data: 'x', mask: '{{ note-1 }}' }
  await call(agent, 'token_create-child', child)

  const anything = { payload: '{{ note-1 }}', id: 'note-1', mask: '{{ data }}' }
  const queries = `data:# NOT data:# # "data":# (data:(#)) +data:# !data:# DATA:# d\\ata:# search_indexes:#`
    .split(' ')
    .concat(
      'data :#',
      'data:[# TO #]',
      'type:card AND NOT (id:x OR data:4929*)',
      `fingerprint:${fingerprint}`,
    )
    .map((query) => query.replaceAll('#', NUMBER))
  const tools = 'token_detokenize token_update token_export vault_backup seed_export reactor_logs scan'
  for (const [tool, input] of [
    ['proxy_call', { target: `${echo.url}/json`, body: '{{ note-1, slice: 0 }}' }],
    ['proxy_call', { target: 'http://127.0.0.1:9/x', body: number }],
    ['reactor_react', { id: reactors.echo, args: { n: '{{ note-1 | slice: 0 }}' } }],
    ...queries.map((query) => ['token_search', { query }] as const),
    ['token_search-after', { query: `data:${NUMBER}` }],
    ['token_list-after', { fingerprint }],
    ['token_create', { token_intent_id: intent, mask: '{{ data }}' }],
    ['token_create', { token_intent_id: intent, search_indexes: ['{{ data }}'] }],
    ['token_create', { token_intent_id: intent, id: '{{ data }}' }],
    ['token_create', { type: 'card', data: '{{ card-1 }}' }],
    ['token_get', { id: '{{ note-1 }}' }],
    ['session_authorize', { nonce: 'x', rules: [REVEAL] }],
    ...tools.split(' ').map((tool) => [tool, anything] as const),
  ] as const)
    await refuse(agent, tool, input)

  const helper = (await home.json('app list')).data.find(({ name }: { name: string }) => name === 'helper')
  const mask = { type: 'mask', matcher: 'regex', expression: '(4)', replacement: 'a' }
  for (const [tool, input] of [
    ['app_create', { name: 'a', type: 'private', rules: [REVEAL] }],
    ['app_create', { name: 'a', type: 'private', permissions: ['token:read'] }],
    ['app_update', { id: helper.id, name: 'helper', rules: [REVEAL] }],
    ['reactor_create', { name: 'x', code: 'module.exports = async ({ args }) => ({ raw: args })' }],
    ['reactor_patch', { id: reactors.echo, code: 'x' }],
    ['proxy_create', { name: 'x', destination_url: echo.url, response_transform: mask }],
  ] as const)
    await refuse(boss, tool, input)
  for (const name of ['reactor_list', 'proxy_list', 'log_list', 'log_tail', 'app_list'])
    t.notMatch(JSON.stringify(await call(boss, name, {})), proxy.key, 'the keys of proxies are removed')

  await attack('resources', () => agent.client.readResource({ uri: `coffer://help/{{ note-1 }}` }))
  await attack('prompts', () =>
    agent.client.getPrompt({ name: 'call_api', arguments: { token: '{{ note-1 }}', request: number } }),
  )
  await attack('what it prints', async () => [agent.stderr(), boss.stderr()])
  t.ok(ways >= 60, `${ways} ways`)
})
