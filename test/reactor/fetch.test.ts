import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createAllowList, isPrivateAddress } from '../../src/reactor/allow-list.js'
import type { Resolved } from '../../src/reactor/connections.js'
import { createHostFetch } from '../../src/reactor/fetch.js'
import type { FetchRequest } from '../../src/reactor/messages.js'

type Handle = (request: IncomingMessage, response: ServerResponse, body: string) => void

/** A server on loopback that is closed with the test. */
async function serve(t: { teardown(work: () => void): unknown }, handle: Handle): Promise<number> {
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => handle(request, response, Buffer.concat(chunks).toString()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

const LOOPBACK: Resolved = { address: '127.0.0.1', family: 4 }
const signal = new AbortController().signal
const get = (url: string, more: Partial<FetchRequest> = {}): FetchRequest => ({
  url,
  method: 'GET',
  headers: [],
  redirect: 'follow',
  ...more,
})
const text = (body: string) => Buffer.from(body, 'base64').toString()

t.test('an entry names a host, with one port or with any', async (t) => {
  const list = createAllowList([
    'api.example.com:443',
    'Any.Example.com.',
    '[::1]:8080',
    '10.0.0.1',
    '2001:db8::1',
  ])
  t.ok(list.mayReach('API.example.com', 443))
  t.notOk(list.mayReach('api.example.com', 80))
  t.ok(list.mayReach('any.example.com', 80) && list.mayReach('any.example.com.', 8443))
  t.notOk(list.mayReach('example.com', 443))
  t.notOk(list.mayReach('evil-api.example.com', 443))
  t.notOk(list.mayReach('api.example.com.evil.com', 443))
  t.ok(list.mayReach('::1', 8080) && list.mayReach('2001:db8::1', 1))
  t.notOk(list.mayReach('::1', 8081))
  t.ok(list.mayConnect('any.example.com', '8.8.8.8', 80))
  t.notOk(list.mayConnect('any.example.com', '192.168.0.1', 80))
  t.ok(list.mayConnect('any.example.com', '10.0.0.1', 80), 'a private address that is named itself')
  t.ok(list.mayConnect('any.example.com', '::1', 8080))
  t.notOk(list.mayConnect('any.example.com', '::1', 22), 'a name opens no other port of a named address')
  for (const entry of ['', 'a b', 'http://a', 'a:0', 'a:65536', 'a:x', 'a/b', 'u@a', '[a]'])
    t.throws(() => createAllowList([entry]), { code: 'usage' }, entry)
})

t.test('private is what is no public unicast address, however it is written', async (t) => {
  const special = [
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    'fc00::1',
    'fd12::1',
    'fe80::1',
    'ff02::1',
    '2001:db8::1',
    '2002:7f00:1::',
    'nonsense',
  ]
  for (const address of special) t.ok(isPrivateAddress(address), address)
  for (const address of [
    '8.8.8.8',
    '1.1.1.1',
    '172.15.0.1',
    '172.32.0.1',
    '2606:4700:4700::1111',
    '2a00:1450::1',
  ])
    t.notOk(isPrivateAddress(address), address)
})

t.test('a request goes out as it was asked, without what belongs to the connection', async (t) => {
  const port = await serve(t, (request, response, body) => {
    response.setHeader('x-two', ['a', 'b'])
    response.statusCode = 418
    response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }))
  })
  const fetch = createHostFetch({ allowNet: [`localhost:${port}`], resolve: async () => [LOOPBACK] })
  const headers: [string, string][] = [
    ['x-key', '1'],
    ['host', 'evil'],
    ['content-length', '9999'],
    ['accept-encoding', 'gzip'],
  ]
  const body = Buffer.from('hällo').toString('base64')
  const answer = await fetch(
    get(`http://localhost:${port}/a?b=c#d`, { method: 'POST', headers, body }),
    signal,
  )
  t.match(answer, { status: 418, redirected: false, url: `http://localhost:${port}/a?b=c#d` })
  t.same(
    answer.headers.filter(([name]) => name === 'x-two'),
    [
      ['x-two', 'a'],
      ['x-two', 'b'],
    ],
  )
  t.match(JSON.parse(text(answer.body)), {
    method: 'POST',
    url: '/a?b=c',
    body: 'hällo',
    headers: {
      'x-key': '1',
      host: `localhost:${port}`,
      'content-length': '6',
      'accept-encoding': 'identity',
    },
  })
})

t.test('what is not on the list is refused before a name is resolved', async (t) => {
  const resolve = async () => t.fail('resolved') as never
  const fetch = createHostFetch({ allowNet: ['api.example.com:443'], resolve })
  for (const url of [
    'https://other.example.com/',
    'http://api.example.com/',
    'https://api.example.com:444/',
    'https://api.example.com@evil.com/',
    'http://127.0.0.1/',
  ])
    await t.rejects(fetch(get(url), signal), { code: 'forbidden' }, url)
  for (const url of ['file:///etc/passwd', 'ftp://api.example.com/', 'nonsense', ''])
    await t.rejects(fetch(get(url), signal), { code: 'validation' }, url)
})

t.test('a redirect is followed within the list and nowhere else', async (t) => {
  const other = await serve(t, (request, response, body) =>
    response.end(JSON.stringify({ method: request.method, headers: request.headers, body })),
  )
  const port = await serve(t, (request, response) => {
    const to = new URL(request.url!, 'http://x').searchParams.get('to')!
    const status = Number(new URL(request.url!, 'http://x').searchParams.get('status') ?? 302)
    response.writeHead(status, { location: to }).end('moved')
  })
  const fetch = createHostFetch({
    allowNet: [`localhost:${port}`, `localhost:${other}`],
    resolve: async () => [LOOPBACK],
  })
  const via = (to: string, status = 302) =>
    `http://localhost:${port}/?status=${status}&to=${encodeURIComponent(to)}`
  const post = {
    method: 'POST',
    headers: [
      ['authorization', 's'],
      ['content-type', 'a/b'],
      ['x-kept', '1'],
    ] as [string, string][],
    body: 'eA==',
  }
  const moved = await fetch(get(via(`http://localhost:${other}/`), post), signal)
  t.ok(moved.redirected)
  const seen = JSON.parse(text(moved.body))
  t.match(seen, { method: 'GET', body: '', headers: { 'x-kept': '1' } })
  t.notOk(seen.headers.authorization, 'credentials stay with the origin that was asked')
  t.notOk(seen.headers['content-type'])
  t.match(JSON.parse(text((await fetch(get(via(`http://localhost:${other}/`, 307), post), signal)).body)), {
    method: 'POST',
    body: 'x',
  })
  await t.rejects(fetch(get(via('http://127.0.0.1:1/')), signal), { code: 'forbidden' })
  await t.rejects(fetch(get(via('http://169.254.169.254/')), signal), { code: 'forbidden' })
  await t.rejects(fetch(get(via('file:///etc/passwd')), signal), { code: 'validation' })
  await t.rejects(fetch(get(via('/?to=/&x'), { redirect: 'error' }), signal), { code: 'unavailable' })
  t.match(await fetch(get(via('http://127.0.0.1:1/'), { redirect: 'manual' }), signal), {
    status: 302,
    redirected: false,
  })
})

t.test('redirects without end are given up', async (t) => {
  let asked = 0
  const port = await serve(t, (_request, response) => {
    asked += 1
    response.writeHead(302, { location: '/' }).end()
  })
  const fetch = createHostFetch({ allowNet: ['localhost'], resolve: async () => [LOOPBACK] })
  await t.rejects(fetch(get(`http://localhost:${port}/`), signal), {
    code: 'unavailable',
    message: /redirects/,
  })
  t.equal(asked, 6)
})

t.test('answers and bodies are bounded', async (t) => {
  const port = await serve(t, (request, response) =>
    response.end(Buffer.alloc(4 * 1024 * 1024 + (request.url === '/more' ? 1 : 0), 'x')),
  )
  const fetch = createHostFetch({ allowNet: ['localhost'], resolve: async () => [LOOPBACK] })
  t.equal(text((await fetch(get(`http://localhost:${port}/`), signal)).body).length, 4 * 1024 * 1024)
  await t.rejects(fetch(get(`http://localhost:${port}/more`), signal), { code: 'too_large' })
  const body = Buffer.alloc(1024 * 1024 + 1).toString('base64')
  await t.rejects(fetch(get(`http://localhost:${port}/`, { method: 'POST', body }), signal), {
    code: 'too_large',
  })
})

t.test('a server that wants another protocol, and a user that is no text, fail at once', async (t) => {
  const port = await serve(t, ({ socket }) =>
    socket.end('HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
  )
  const fetch = createHostFetch({ allowNet: ['localhost'], resolve: async () => [LOOPBACK] })
  for (const user of ['', '%E0@'])
    await t.rejects(fetch(get(`http://${user}localhost:${port}/`), signal), { code: 'unavailable' })
})

t.test('an invocation that is over takes its requests with it', async (t) => {
  let closed: () => void = () => undefined
  const isClosed = new Promise<void>((resolve) => {
    closed = resolve
  })
  const abort = new AbortController()
  const port = await serve(t, (request) => {
    request.socket.once('close', closed)
    abort.abort()
  })
  const fetch = createHostFetch({ allowNet: ['localhost'], resolve: async () => [LOOPBACK] })
  await t.rejects(fetch(get(`http://localhost:${port}/`), abort.signal), { code: 'unavailable' })
  await isClosed
})

t.test('a request of another shape than fetch makes is refused', async (t) => {
  const fetch = createHostFetch({ allowNet: ['localhost'], resolve: async () => [LOOPBACK] })
  const bad = [
    { method: 'CONNECT' },
    { method: 'get x' },
    { headers: [['a']] },
    { headers: 'x' },
    { body: 1 },
    { url: 1 },
  ]
  for (const more of bad)
    await t.rejects(
      fetch(get('http://localhost/', more as Partial<FetchRequest>), signal),
      { code: 'validation' },
      JSON.stringify(more),
    )
  const split = { headers: [['x', 'a\r\nb: c']] as [string, string][] }
  await t.rejects(
    fetch(get('http://localhost:1/', split), signal),
    { code: 'unavailable' },
    'a header that would be two',
  )
})
