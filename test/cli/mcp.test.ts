/** `coffer mcp`, used by the official MCP client over standard input and output. */
import t, { type Test } from 'tap'
import { startDestination } from '../parity/destination.js'
import { type AgentOptions, connectAgent } from '../support/agent.js'
import { createVaultHome, ruleOf } from './home.js'

const NUMBER = '4242424242424242'
const CARD = { id: 'card-1', type: 'card', data: { number: NUMBER, cvc: '123' } }

async function open(t: Test, { words = [], ...more }: Partial<AgentOptions> = {}) {
  const home = await createVaultHome(t)
  const { key, rules } = await home.json('app create --agent helper')
  const destination = await startDestination()
  t.teardown(() => destination.close())
  const connect = async (given: Partial<AgentOptions> = {}) => {
    const env = { ...home.env, COFFER_API_KEY: key, ...given.env }
    const agent = await connectAgent({ cwd: home.place, ...given, env })
    t.teardown(() => agent.close())
    return agent
  }
  const agent = await connect({ ...more, words: ['--allow-net', new URL(destination.url).host, ...words] })
  return { home, key: key as string, rules, destination, connect, ...agent }
}

t.test('an agent gets only the tools that its permissions allow, with schemas and hints', async (t) => {
  const { client, rules } = await open(t)
  t.match(rules, [{ transform: 'mask', container: '/' }])
  const { tools } = await client.listTools()
  const names = tools.map(({ name }) => name)
  for (const name of 'token_create proxy_call reactor_react'.split(' ')) t.ok(names.includes(name), name)
  const others = 'token_detokenize token_update token_delete app_create log_list vault_status token_import'
  for (const name of others.split(' ')) t.notOk(names.includes(name), name)
  const find = (wanted: string) => tools.find(({ name }) => name === wanted)!
  t.match(find('token_get'), {
    title: 'token get',
    inputSchema: { type: 'object', required: ['id'] },
    outputSchema: { type: 'object', properties: { id: { type: 'string' } } },
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
  })
  t.match(find('proxy_call').annotations, { readOnlyHint: false, openWorldHint: true })
  for (const { name, description } of tools) t.ok((description ?? '').length > 10, name)
})

t.test('every MCP tool answers, and an error of a tool says what is wrong', async (t) => {
  const { client, call, home, destination } = await open(t)
  const code = 'module.exports = async ({ args }) => ({ raw: { hello: args.name } })'
  const reactor = await home.json(['reactor', 'create', '--name', 'hello', '--code', code])
  const inputs: Record<string, object> = {
    token_create: CARD,
    token_list: {},
    'token_list-after': { size: 1 },
    token_get: { id: 'card-1' },
    token_search: { query: 'type:card' },
    'token_search-after': { query: 'type:card' },
    token_tokenize: { payload: { name: 'Ada' } },
    token_link: { parent_id: 'card-1', child_id: 'note-1' },
    'token_create-child': { parent_id: 'card-1', type: 'token', data: 'child' },
    token_children: { parent_id: 'card-1' },
    token_generate: { type: 'token', count: 2 },
    app_whoami: {},
    member_roles: {},
    app_permissions: {},
    app_template_list: {},
    app_template_get: { id: '6f0f6a3e-7c0e-4f0c-9a55-2f1f6f3b7d01' },
    reactor_react: { id: reactor.id, args: { name: 'Ada' } },
    'reactor_react-async': { id: reactor.id, args: { name: 'Ada' } },
    reactor_result: { id: reactor.id, request_id: 'none' },
    session_authorize: { nonce: 'x', permissions: ['token:read'] },
    proxy_call: { target: `${destination.url}/echo`, body: { a: 1 } },
    enrich_bank: { token_id: 'account' },
    enrich_card: { bin: '424242' },
  }
  const account = { routing_number: '021000021', account_number: '00001' }
  await call('token_create', { id: 'account', type: 'bank', data: account })
  await call('token_create', { id: 'note-1', type: 'token', data: 'text', mask: 'm' })
  const { tools } = await client.listTools()
  for (const { name } of tools) {
    t.ok(name in inputs, `the test has an input for ${name}`)
    const { isError, text, data } = await call(name, { ...inputs[name] })
    const isExpected = ['session_authorize', 'reactor_result'].includes(name)
    t.equal(isError, isExpected, `${name}: ${text}`)
    t.ok(text.length > 0 && text.length < 4100)
    if (!isError && name !== 'token_link') t.ok(data !== undefined, name)
    t.notMatch(JSON.stringify(data) + text, NUMBER, name)
  }
  for (const [name, input, text] of [
    ['token_get', { id: 'none' }, 'There is no token with this id.'],
    ['token_create', { type: 'card', data: { number: '1' } }, /data\.number: /],
    ['token_create', {}, /^(type|data): [^\n]+\n(type|data): [^\n]+$/],
  ] as const)
    t.match(await call(name, input), { isError: true, text })
  await t.rejects(call('token_delete', { id: 'card-1' }), /no tool/)
  await t.rejects(call('nothing'), /no tool/)
  const log = await home.json('log list --size 100')
  const own = log.data.filter(({ actor_type }: { actor_type: string }) => actor_type === 'application')
  t.ok(own.length > 10, 'every call is logged with the application')
})

t.test('options restrict the tools, and wrong options, and keys that reveal data, are refused', async (t) => {
  const { home, key, connect } = await open(t)
  const list = async (...words: string[]) => {
    const { client } = await connect({ words })
    return (await client.listTools()).tools.map(({ name }) => name)
  }
  t.ok((await list('--tools', 'token')).every((name) => name.startsWith('token_')))
  const reading = await list('--read-only')
  t.ok(reading.includes('token_search'))
  for (const name of ['token_create', 'proxy_call']) t.notOk(reading.includes(name))
  await home.createToken(CARD)
  const revealing = await home.createApp({ rules: [ruleOf('reveal', { container: '/pci/' })] })
  const refuse = async (
    given: string | undefined,
    words: string,
    status: number,
    stderr: RegExp,
    more = {},
  ) => {
    const env = { ...(given !== undefined && { COFFER_API_KEY: given }), ...more }
    const outcome = await home.run(`mcp${words}`, { env })
    t.equal(outcome.code, status, words)
    t.match(outcome.stderr.replaceAll(/\s+/g, ' '), stderr)
  }
  await refuse(key, ' --tools tokens', 2, /no "tokens"/)
  await refuse(undefined, '', 4, /never as the owner.*coffer app create --agent/)
  await refuse(key, ' --api-key-stdin', 2, /./)
  await refuse('key_1111111111111111111111', '', 4, /./)
  await refuse(key, ' --allow-reveal', 2, /./, { COFFER_NO_REVEAL: '1' })
  await refuse(revealing.key, '', 4, /reveals data.*--allow-reveal/)
  const { call } = await connect({ words: ['--allow-reveal'], env: { COFFER_API_KEY: revealing.key } })
  t.match((await call('token_get', { id: 'card-1' })).data, { data: { number: NUMBER } })
})

t.test(
  'while an agent is connected, other commands can use the vault between two calls, and several calls run at once',
  async (t) => {
    const { call, home, connect } = await open(t)
    const second = await connect()
    const create = (at: number) =>
      (at % 2 ? call : second.call)('token_create', { id: `token-${at}`, type: 'token', data: at })
    const made = await Promise.all(Array.from({ length: 8 }, (_, at) => create(at)))
    for (const { isError, text } of made) t.notOk(isError, text)
    t.equal((await home.json('token list')).pagination.total_items, 8)
  },
)

t.test(
  'with --confirm, a person must confirm each call of a proxy or reactor, and the question names the destination or the reactor',
  async (t) => {
    const asked: string[] = []
    let isAllowed = true
    const person = (message: string) => {
      asked.push(message)
      return isAllowed
    }
    const { call, destination, home, connect } = await open(t, { words: ['--confirm'], person })
    await call('token_create', CARD)
    await call('token_get', { id: 'card-1' })
    t.same(asked, [], 'a new token needs no confirmation')
    t.match(await home.json('log reveals card-1'), { count: 0, use_count: 0 })
    const input = { target: `${destination.url}/echo`, body: { n: '{{ card-1 | json: "$.number" }}' } }
    t.equal((await call('proxy_call', input)).data.res.statusCode, 200)
    t.match(asked[0], destination.url)
    t.match(asked[0], 'XXXXXXXXXXXX4242')
    t.notMatch(asked.join(), NUMBER)
    isAllowed = false
    t.match(await call('proxy_call', input), { isError: true, text: /did not allow/ })
    t.equal(
      (await call('proxy_call', { ...input, dry_run: true })).isError,
      false,
      'a dry run needs no confirmation',
    )
    const hidden = { id: 'no\u202ene', dry_run: true }
    t.match(await call('reactor_react', hidden), { text: /did not allow/ }, 'needs it')
    t.match(asked[2], 'no\\u202ene', 'a question shows invisible characters')
    const padding = 'x'.repeat(5000)
    await call('reactor_react', { args: { padding }, more: padding, id: 'the-reactor' })
    t.match(
      asked[3],
      /the-reactor/,
      'the question names what the call acts on, even if other members are long',
    )
    const path = `/echo?padding=${padding}`
    await call('proxy_call', { target: destination.url, path, headers: { padding }, body: { n: 'the-body' } })
    t.match(asked[4], /the-body/)
    t.equal(asked.length, 5)
    const uses = { count: 0, seen_by: [], use_count: 1, used_by: [{ actor_type: 'application' }] }
    t.match(await home.json('log reveals card-1'), uses)
    const mute = await connect({ words: ['--confirm', '--allow-net', new URL(destination.url).host] })
    const outcome = await mute.call('proxy_call', input).catch(() => ({ isError: true }))
    t.equal(outcome.isError, true, 'a client that supports no confirmations cannot call the tool')
    t.match(await home.json('log reveals card-1'), uses)
  },
)

t.test(
  'with --url, the server performs the tools in no-reveal mode, and calls only hosts on its list',
  async (t) => {
    const { home, key, destination, connect } = await open(t)
    await home.createToken(CARD)
    const stop = new AbortController()
    let tell = (_: string) => {}
    const started = new Promise<string>((resolve) => {
      tell = resolve
    })
    const host = new URL(destination.url).host
    const serving = home.run(`serve --port 0 -o json --log none --allow-net ${host}`, {
      watch: (text) => {
        if (text.startsWith('{"url"')) tell(JSON.parse(text).url)
      },
      interrupt: stop.signal,
    })
    const { call, client, close } = await connect({
      words: ['--url', await started],
      env: { COFFER_API_KEY: key },
    })
    const names = (await client.listTools()).tools.map(({ name }) => name)
    t.ok(names.includes('proxy_call') && !names.includes('token_generate'))
    const got = await call('token_get', { id: 'card-1' })
    t.match(got.data, { data: { number: 'XXXXXXXXXXXX4242' } })
    t.notOk(got.data.fingerprint)
    const body = { n: '{{ card-1 | json: "$.number" }}' }
    const { data } = await call('proxy_call', { target: `${destination.url}/echo`, path: '/x?y=1', body })
    t.match(data.res, { statusCode: 200, body: { url: '/echo/x?y=1', body: /withheld/ } })
    t.match(await call('proxy_call', { target: `${destination.url}/echo`, dry_run: true }), { isError: true })
    const elsewhere = await call('proxy_call', { target: 'http://127.0.0.1:9/x', body })
    t.match(elsewhere, { isError: true, text: /not on the list/ })
    t.match(await call('token_search', { query: 'data:4242' }), { isError: true, text: /No-reveal mode/ })
    await close()
    stop.abort()
    await serving
  },
)

t.test('help topics are available as resources, and two prompts explain the tools', async (t) => {
  const { client } = await open(t)
  const { resources } = await client.listResources()
  t.equal(resources.map(({ name }) => name).join(), 'expressions,access-rules,search')
  for (const { uri } of resources) {
    const { contents } = await client.readResource({ uri })
    t.ok(String((contents[0] as { text: string }).text).length > 500, uri)
  }
  await t.rejects(client.readResource({ uri: 'coffer://help/../../../etc/passwd' }))
  const { prompts } = await client.listPrompts()
  t.equal(prompts.map(({ name }) => name).join(), 'vault_file,call_api')
  const read = async (name: string, given: Record<string, string>) =>
    JSON.stringify(await client.getPrompt({ name, arguments: given }))
  const called = await read('call_api', { token: 'card-1', request: 'POST https://x' })
  for (const part of ['{{ card-1 }}', 'POST https://x']) t.match(called, part)
  t.match(await read('vault_file', { file: 'a.txt' }), 'a.txt')
  await t.rejects(read('vault_file', {}))
})

t.test('requests that were sent before standard input ended are answered', async (t) => {
  const home = await createVaultHome(t)
  const { key } = await home.json('app create --agent helper')
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'p', version: '1' } }
  const messages = [
    { id: 1, method: 'initialize', params },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: 'token_create', arguments: CARD } },
    { id: 3, method: 'tools/list' },
  ]
  const lines = messages.map((each) => `${JSON.stringify({ jsonrpc: '2.0', ...each })}\n`)
  const stdin = [...lines, lines[2]!.replace(':2', ':4').replace(`"${NUMBER}"`, '9007199254740993')].join('')
  const { stdout, code } = await home.run('mcp', { stdin, env: { COFFER_API_KEY: key } })
  const answers = new Map(stdout.match(/.+/g)!.map((line) => [JSON.parse(line).id, line]))
  t.same([...answers.keys()].sort(), [1, 2, 3, 4])
  t.match(answers.get(4), 'this number cannot be stored exactly')
  t.equal(code, 0)
  const long = await home.run('mcp', { stdin: 'x'.repeat(11_000_000), env: { COFFER_API_KEY: key } })
  t.match(long, { code: 2, stderr: 'more than 10485760 characters' })
})
