/**
 * Attacks through proxies. The attacker is a destination, a caller, or the author of data. Each attack is limited or
 * refused, reveals nothing, and does not delay other callers.
 */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { registry } from '../../src/operations/all.js'
import { sendRaw } from '../http/socket.js'
import { serveHttp } from '../support/service.js'
import { openTestVault, setSetting } from '../support/test-vault.js'

const SECRET = '4242424242424242'
const OWN_HOSTS = '127.0.0.1 127.8.8.8 localhost [::1] [::ffff:7f00:1] 0.0.0.0'.split(' ')

async function open(t: Test) {
  const vault = await openTestVault()
  const faults: unknown[] = []
  const lines: string[] = []
  let talk = (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
  const heard: string[] = []
  const connections: Socket[] = []
  let whenCalled: (socket: Socket) => void = () => {}
  const server = createServer((socket) => {
    connections.push(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      heard.push(chunk.toString('latin1'))
      whenCalled(socket)
      talk(socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const record = (entry: object) => void lines.push(JSON.stringify(entry))
  const reportFault = (error: unknown) => void faults.push(error)
  const service = { host: vault.app, registry, authenticate, version: '0', record, reportFault }
  const running = await serveHttp(service, { port: 0 })
  vault.app.configureReactors({ allowNet: OWN_HOSTS })
  t.teardown(async () => {
    for (const socket of connections) socket.destroy()
    server.close()
    await running.stop()
    await vault.app.close()
  })
  const { key } = await vault.createApplication('private', {
    permissions: ['proxy:invoke', 'reactor:invoke', 'token:read'],
  })
  await vault.ask('token create', { id: 'card-1', type: 'card_number', data: SECRET })
  const smuggled = 'x\r\nHost: evil\r\n\r\nGET /y HTTP/1.1\r\n\r\n'
  await vault.ask('token create', { id: 'smuggle', type: 'token', data: smuggled })
  const own = `http://127.0.0.1:${running.port}`
  const target = `http://127.0.0.1:${port}`
  const keys = { 'svc-api-key': key, 'svc-proxy-url': target }
  const call = (path = '', init: RequestInit = {}) =>
    fetch(`${own}/proxy${path}`, { ...init, headers: { ...keys, ...(init.headers as object) } })
  const create = async (input: object) =>
    (await vault.ask('proxy create', { name: 'p', destination_url: target, ...input })) as { key: string }
  /** Starts a call. The test itself reads the response or disconnects. */
  const begin = (headers: Record<string, string> = {}) => {
    const options = { port: running.port, path: '/proxy', method: 'POST', agent: false }
    const request = httpRequest({ host: '127.0.0.1', ...options, headers: { ...keys, ...headers } })
    request.on('error', () => {})
    const response = new Promise<IncomingMessage>((resolve) => request.once('response', resolve))
    request.end('{}')
    return { request, response }
  }
  const called = () =>
    new Promise<Socket>((resolve) => {
      whenCalled = resolve
    })
  const isServed = async () =>
    (await fetch(`${own}/tokens/card-1`, { headers: { 'svc-api-key': key } })).status === 200
  const answer = (next: typeof talk) => {
    talk = next
  }
  const calls = { call, create, begin, called, answer, isServed }
  return { ...vault, ...calls, own, port, key, heard, connections, faults, lines, servedPort: running.port }
}

/** Resolves when the stream has closed, and also after an error of the stream. */
const closed = (stream: { once(event: 'close', listener: () => void): unknown }) =>
  new Promise<void>((resolve) => stream.once('close', resolve))

async function read(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const answerOf = (body: string) => (socket: Socket) =>
  void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)

const card = { method: 'POST', body: '{"n":"{{ card-1 }}"}', headers: { 'content-type': 'application/json' } }

t.test('a proxy survives destinations with invalid, endless or incomplete responses', async (t) => {
  const { call, answer, isServed, faults, lines } = await open(t)
  const lengths = 'content-length: 1\r\ncontent-length: 2'
  for (const bytes of [
    'nonsense\r\n\r\n',
    `HTTP/1.1 200 ${SECRET}\r\ncontent-length: x\r\n\r\n`,
    `HTTP/1.1 200 OK\r\n${SECRET}\x00: x\r\n\r\n`,
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n${SECRET}`,
    `HTTP/1.1 200 OK\r\n${lengths}\r\n\r\nab`,
    `HTTP/1.1 200 OK\r\nx: ${SECRET.repeat(10_000)}\r\n\r\n`,
    'HTTP/1.1 099 x\r\ncontent-length: 0\r\n\r\n',
    'HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    '',
  ]) {
    answer((socket) => void socket.end(bytes))
    const refused = await call('', card)
    const text = await refused.text()
    t.equal(refused.status, 502)
    t.match(JSON.parse(text), { proxy_error: { status: 502 } })
    t.notOk(text.includes(SECRET), 'the error reveals nothing that was sent or received')
  }
  answer((socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort'))
  await t.rejects(
    call().then((each) => each.text()),
    'an incomplete response is not forwarded as if it were complete',
  )
  let written = 0
  answer((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    const more = () => {
      while (!socket.destroyed && socket.write(Buffer.alloc(65_536))) written += 65_536
      if (!socket.destroyed) socket.once('drain', more)
    }
    more()
  })
  const endless = await call()
  const reader = endless.body!.getReader()
  await reader.read()
  t.ok(await isServed(), 'other callers are served meanwhile')
  let before = -1
  for (let looks = 0; looks < 40 && written !== before; looks++) {
    before = written
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  t.equal(written, before, 'if the caller does not read, the proxy stops reading from the destination')
  await reader.cancel()
  t.ok(await isServed())
  t.same(faults, [])
  t.notOk(lines.join().includes(SECRET))
})

t.test('a body of 100 MB passes through a proxy without being held in memory', async (t) => {
  const { call, answer } = await open(t)
  const size = 100 * 1024 * 1024
  let produced = 0
  answer((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`)
    let left = size
    const more = () => {
      while (left > 0) {
        const piece = Math.min(left, 1024 * 1024)
        left -= piece
        produced += piece
        if (!socket.write(Buffer.alloc(piece))) return void socket.once('drain', more)
      }
    }
    more()
  })
  let most = 0
  let bytes = 0
  for await (const chunk of (await call()).body as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    most = Math.max(most, produced - bytes)
    if (bytes < 1024 * 1024) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal(bytes, size)
  // The operating system itself buffers several MiB on each of the two connections of the proxy.
  t.ok(most < 48 * 1024 * 1024, `at most ${Math.round(most / 1024 / 1024)} MiB were in transit`)
})

t.test('a proxy does not follow a redirect and never calls the server on which it runs', async (t) => {
  const { call, answer, servedPort, heard, own, key } = await open(t)
  answer(
    (socket) => void socket.end(`HTTP/1.1 302 Found\r\nlocation: ${own}/tokens\r\ncontent-length: 0\r\n\r\n`),
  )
  const answered = await call('', { redirect: 'manual' })
  t.equal(answered.status, 302)
  t.equal(answered.headers.get('location'), `${own}/tokens`)
  t.equal(heard.length, 1)
  for (const host of [...OWN_HOSTS, '2130706433', '0x7f000001', '127.1']) {
    const url = `http://${host}:${servedPort}`
    const refused = await call('/tokens', { headers: { 'svc-proxy-url': url } })
    t.match([refused.status, await refused.json()], [403, { proxy_error: { status: 403 } }], url)
  }
  const looping = { 'svc-api-key': key, 'svc-proxy-url': `${own}/proxy` }
  t.equal((await fetch(`${own}/proxy`, { headers: looping })).status, 403)
})

t.test('code of a reactor or of a proxy cannot call the server that runs the code', async (t) => {
  const { ask, call, create, answer, servedPort, own, key } = await open(t)
  answer(answerOf('{}'))
  const urls = OWN_HOSTS.map((host) => `http://${host}:${servedPort}/healthz`)
  const code = `module.exports = async () => {
    const got = []
    for (const url of ${JSON.stringify(urls)})
      got.push(await fetch(url).then(({ status }) => status, ({ message }) => message))
    return { raw: got, body: got, headers: {} }
  }`
  const { id } = (await ask('reactor create', { name: 'r', code })) as { id: string }
  const headers = { 'svc-api-key': key, 'content-type': 'application/json' }
  const reacted = await fetch(`${own}/reactors/${id}/react`, { method: 'POST', headers, body: '{"args":{}}' })
  const { raw } = (await reacted.json()) as { raw: unknown[] }
  const proxy = await create({ response_transform: { type: 'code', code } })
  const body = await (await call('', { headers: { 'svc-proxy-url': '', 'svc-proxy-key': proxy.key } })).json()
  for (const [index, url] of urls.entries())
    for (const got of [raw, body as unknown[]]) t.match(got[index], /it is this server itself/, url)
})

t.test('token data cannot add a header, change the host or add a request', async (t) => {
  const { call, heard, isServed, servedPort, key, port } = await open(t)
  t.equal((await call('', { headers: { 'x-note': '{{ smuggle }}' } })).status, 400)
  t.same(heard, [])
  await call(`/{{%20smuggle%20}}?a={{%20smuggle%20}}`)
  t.notMatch(heard[0], /\r\nhost: evil|\r\nGET/i)
  t.equal(heard[0]?.match(/\r\nhost:/gi)?.length, 1)
  heard.length = 0
  const raw = (lines: string[]) => sendRaw(servedPort, `${lines.join('\r\n')}\r\n\r\n`)
  const begin =
    `GET /proxy HTTP/1.1|connection: close|svc-api-key: ${key}|svc-proxy-url: http://127.0.0.1:${port}`.split(
      '|',
    )
  const attacks: string[][] = [
    ['host: localhost', 'host: evil'],
    ['host: localhost', '{{ card-1 }}: x'],
    ['host: localhost', 'x y: z'],
    ['host: localhost', 'content-length: 1', 'transfer-encoding: chunked'],
    ['host: localhost', 'x: a\rhost: evil'],
  ]
  // A server that parses the target as a URL would read `..#f` as `..`.
  for (const target of ['/proxy/a/..#f', '/proxy/a?b#/../c']) {
    const lines = [`GET ${target} HTTP/1.1`, ...begin.slice(1), 'host: localhost']
    t.match(await raw(lines), /^HTTP\/1\.1 400 [\s\S]*%23/, target)
  }
  for (const attack of attacks) t.match(await raw([...begin, ...attack]), /^HTTP\/1\.1 400 /, attack.join())
  t.same(heard, [])
  for (const named of ['x-a', 'host', 'transfer-encoding'])
    await raw([...begin, 'host: localhost', 'connection: close, x-a', 'x-a: 1', `te: ${named}`])
  for (const each of heard)
    t.notMatch(
      each,
      /\r\n(?:x-a|te|svc-[a-z-]+):/i,
      'headers that belong to the connection are not forwarded',
    )
  t.ok(await isServed())
})

t.test(
  'expressions and transforms that never end are stopped, and other callers get answers while they run',
  async (t) => {
    const { app, create, call, answer, isServed, faults } = await open(t)
    await setSetting(app, 'reactors.time_limit_ms', '500')
    const mask = { type: 'mask', matcher: 'regex', expression: '((a+)+)$', replacement: '*' }
    answer(answerOf(`${'a'.repeat(5000)}!`))
    const codeOf = (body: string) => ({ request_transforms: [{ code: `module.exports = ${body}` }] })
    for (const [proxy, status] of [
      [{ response_transforms: [mask] }, 408],
      [codeOf('async () => { for (;;); }'), 408],
      [codeOf('() => new Promise(() => {})'), 408],
      [codeOf("async () => ({ headers: { a: 'x'.repeat(9e3) } })"), 500],
    ] as const) {
      const { key } = await create(proxy)
      const calling = call('', { ...card, headers: { ...card.headers, 'svc-proxy-key': key } })
      t.ok(await isServed())
      const refused = await calling
      const text = await refused.text()
      t.match([refused.status, JSON.parse(text)], [status, { proxy_error: { status } }])
      t.notOk(text.includes(SECRET))
    }
    t.same(faults, [])
  },
)

const MIB = 1024 * 1024

t.test('if a client disconnects before the response headers, the call to the destination ends', async (t) => {
  const { begin, called, answer, faults, connections, create } = await open(t)
  answer(() => {})
  const reached = called()
  const { request } = begin()
  const socket = await reached
  request.destroy()
  await closed(socket)
  t.equal(connections.length, 1, 'the connection was closed without a response')
  answer(answerOf('hi'))
  t.equal(await read(await begin().response), 'hi')
  t.equal(await read(await begin().response), 'hi')
  t.ok(connections.length > 1, 'the connection is not used again')
  const proxy = await create({ request_transforms: [{ code: 'module.exports = async () => ({})' }] })
  const slow = begin({ 'svc-proxy-key': proxy.key })
  slow.request.once('finish', () => setImmediate(() => slow.request.destroy()))
  await closed(slow.request)
  answer(answerOf('again'))
  t.equal(await read(await begin().response), 'again')
  t.same(faults, [])
})

t.test(
  'a response that arrives in one piece is sent with a content length, and any other response is forwarded piece by piece',
  async (t) => {
    const { begin, called, answer } = await open(t)
    answer(answerOf('whole'))
    const whole = await begin().response
    t.equal(whole.headers['content-length'], '5')
    t.equal(await read(whole), 'whole')
    answer(() => {})
    const reached = called()
    const { response } = begin()
    const socket = await reached
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst')
    const begun = await response
    const pieces = begun[Symbol.asyncIterator]() as AsyncIterator<Buffer>
    t.equal(
      (await pieces.next()).value.toString(),
      'first',
      'the first piece arrives before the rest is sent',
    )
    socket.write(' last')
    t.equal((await pieces.next()).value.toString(), ' last')
    t.ok((await pieces.next()).done)
  },
)

t.test('a transform of a proxy receives and returns at most 8 MiB', async (t) => {
  const { app, begin, answer, create, faults } = await open(t)
  await setSetting(app, 'reactors.time_limit_ms', '60000')
  const code = 'module.exports = async ({ args }) => ({ body: args.body })'
  const through = await create({ response_transforms: [{ code }] })
  const mask = { type: 'mask', matcher: 'regex', expression: '([0-9]+)', replacement: '*' }
  const masking = await create({ response_transforms: [mask] })
  const double = 'module.exports = async ({ args }) => ({ body: args.body + args.body })'
  const doubling = await create({ response_transforms: [{ code: double }] })
  const call = async (key: string, body: string) => {
    answer(answerOf(body))
    const response = await begin({ 'svc-proxy-key': key }).response
    return { status: response.statusCode, body: await read(response) }
  }
  const most = `${'"a\\'.repeat((8 * MIB) / 3)}ab`.slice(0, 8 * MIB)
  t.ok((await call(through.key, most)).body === most, 'the body is forwarded unchanged, including its quotes')
  t.match(await call(through.key, `${most}x`), { status: 502, body: /more than 8388608 bytes/ })
  const digits = '42424242,'.repeat(MIB / 9)
  t.ok((await call(masking.key, digits)).body === digits.replaceAll(/\d/g, '*'))
  t.match(await call(doubling.key, 'x'.repeat(4 * MIB + 1)), { status: 500, body: /proxy_error/ })
  t.same(faults, [])
})
