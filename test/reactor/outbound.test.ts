/** Requests of proxies and of `fetch` in reactors: allowed hosts, the address that is called, and time limits. */
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { answerWhole } from '../../src/framework/ports/outbound.js'
import type { RunAccess } from '../../src/framework/ports/reactors.js'
import { createHostFetch } from '../../src/reactor/fetch.js'
import type { FetchRequest } from '../../src/reactor/messages.js'
import {
  createAllowList,
  HttpOutbound,
  isPrivateAddress,
  type OutboundOptions,
} from '../../src/reactor/outbound.js'
import { CERTIFICATE as cert, PRIVATE_KEY as key } from '../http/certificate.js'
import { type Stub, startStub } from '../http/stub.js'

const LOOPBACK: LookupAddress = { address: '127.0.0.1', family: 4 }
const resolve = async () => [LOOPBACK]

async function start(t: Test, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Starts a server. For each connection, the server calls `talk` as soon as the first bytes of a request arrive. */
const listen = (t: Test, talk: (socket: Socket) => void) =>
  start(
    t,
    createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => talk(socket))
    }),
  )

async function serve(t: Test, answer: Stub['answer']): Promise<number> {
  const stub = await startStub()
  stub.answer = answer
  t.teardown(() => stub.close())
  return stub.port
}

function outbound(t: Test, options: Partial<OutboundOptions>) {
  const created = new HttpOutbound({ allowNet: [], ...options })
  t.teardown(() => created.close())
  return created
}

const GET = { method: 'GET', target: '/', headers: {}, body: new Uint8Array() }
const send = async (to: HttpOutbound, url: string, sent = () => {}) =>
  to.reach(new URL(url)).send(GET, { sent })
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi'
const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n'

t.test('an entry of --allow-net names a host, with a single port or with all ports', async (t) => {
  const entries = ['api.example.com:443', 'Any.Example.com.', '[::1]:8080', '10.0.0.1', '2001:db8::1']
  const list = createAllowList(entries)
  const mayReach = (at: string) => {
    const [host = '', port] = at.split(' ')
    return list.mayReach(host, Number(port))
  }
  for (const at of ['API.example.com 443', 'any.example.com. 8443', '::1 8080', '2001:db8::1 1'])
    t.ok(mayReach(at), at)
  const refused =
    'api.example.com 80|example.com 443|evil-api.example.com 443|api.example.com.evil.com 443|::1 8081'
  for (const at of refused.split('|')) t.notOk(mayReach(at), at)
  for (const [address, port, may] of [
    ['8.8.8.8', 80, true],
    ['192.168.0.1', 80, false],
    ['10.0.0.1', 80, true],
    ['::1', 8080, true],
    ['::1', 22, false],
  ] as const)
    t.equal(
      list.mayConnect('any.example.com', address, port),
      may,
      `a private address may be called if it is named: ${address}`,
    )
  for (const entry of ['', 'a b', 'http://a', 'a:0', 'a:65536', 'a:x', 'a/b', 'u@a', '[a]'])
    t.throws(() => createAllowList([entry]), { code: 'usage' }, entry)
})

t.test('an IP address that is not public unicast counts as private, in every spelling', async (t) => {
  const special = `0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.168.1.1
    198.18.0.1 224.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 64:ff9b::7f00:1 fc00::1
    fd12::1 fe80::1 ff02::1 2001:db8::1 2002:7f00:1:: nonsense`
  for (const address of special.split(/\s+/)) t.ok(isPrivateAddress(address), address)
  const ordinary = '8.8.8.8 1.1.1.1 172.15.0.1 172.32.0.1 2606:4700:4700::1111 2a00:1450::1'
  for (const address of ordinary.split(' ')) t.notOk(isPrivateAddress(address), address)
})

t.test('a host is called only if both its name and its address are allowed', async (t) => {
  const port = await listen(t, (socket) => socket.end(OK))
  const resolve = async (host: string): Promise<LookupAddress[]> =>
    host === 'public.example' ? [{ address: '93.184.216.34', family: 4 }] : [LOOPBACK]
  const closed = outbound(t, { resolve })
  const hosts = [`127.0.0.1:${port}`, 'public.example', '[::1]:1', '0x7f.1:1']
  for (const url of hosts.map((host) => `http://${host}`))
    await t.rejects(send(closed, url), { code: 'forbidden', message: /--allow-net/ }, url)
  const notListed = (host: string) =>
    `The destination cannot be called: the host ${host} is not on the list of --allow-net. To allow it, start Coffer with --allow-net ${host}`
  for (const [url, entry] of [
    ['https://public.example/a?b=c', 'public.example'],
    ['https://public.example:8443/', 'public.example:8443'],
    ['http://[::1]:81/', '[::1]:81'],
  ] as const)
    await t.rejects(send(closed, url), { message: notListed(entry) })
  const named = outbound(t, { resolve, allowNet: ['rebound.example', 'public.example'] })
  await t.rejects(send(named, `http://rebound.example:${port}`), {
    code: 'forbidden',
    message:
      /^The destination cannot be called: the host rebound.example has a private address, .* --allow-net rebound.example,ADDRESS$/,
  })
  const open = outbound(t, { resolve, allowNet: [`rebound.example:${port}`, `127.0.0.1:${port}`] })
  const answer = await send(open, `http://rebound.example:${port}`)
  t.equal(Buffer.from(await answer.collect(10)).toString(), 'hi')
  await t.rejects(send(open, `http://rebound.example:${port + 1}`), { code: 'forbidden' })
  const nowhere = outbound(t, { allowNet: ['x.example'], resolve: async () => [] })
  await t.rejects(send(nowhere, 'http://x.example'), { code: 'bad_gateway' })
})

t.test('each connection resolves a host name once, and goes to the address that was checked', async (t) => {
  const port = await listen(t, (socket) => socket.write(NO_CONTENT))
  const answers: LookupAddress[][] = [[LOOPBACK], [{ address: '10.0.0.1', family: 4 }]]
  const url = `http://moving.example:${port}`
  const allowNet = ['moving.example', '127.0.0.1']
  const moving = outbound(t, { resolve: async () => answers.shift() ?? [], allowNet })
  const both = await Promise.allSettled([send(moving, url), send(moving, url)])
  t.match(both, [{ value: { status: 204 } }, { reason: { code: 'forbidden', message: /private/ } }])
  t.equal(answers.length, 0)
  const ownPorts = new Set<number>()
  const begun = outbound(t, { resolve, allowNet, ownPorts })
  t.equal((await send(begun, url)).status, 204)
  ownPorts.add(port)
  const itself = { code: 'forbidden', message: /itself/ }
  await t.rejects(
    send(begun, url),
    itself,
    'a port that the server itself now uses is refused, even on a connection that is still open',
  )
})

t.test('if an address of a host refuses connections, the next address of the host is called', async (t) => {
  const port = await listen(t, (socket) => socket.end(NO_CONTENT))
  const sent: string[] = []
  const addresses: LookupAddress[] = [{ address: '::1', family: 6 }, LOOPBACK]
  const both = outbound(t, { allowNet: ['localhost'], resolve: async () => addresses })
  t.equal((await send(both, `http://localhost:${port}`, () => sent.push('once'))).status, 204)
  t.same(sent, ['once'])
})

t.test('the error says whether a destination answers too late or cannot be reached', async (t) => {
  const open = (port: number) => outbound(t, { allowNet: [`127.0.0.1:${port}`], waitMs: 300 })
  for (const text of ['', 'HTTP/1.1 200 OK\r\nx: ']) {
    const sent: string[] = []
    const port = await listen(t, (socket) => void socket.write(text))
    const called = send(open(port), `http://127.0.0.1:${port}`, () => sent.push('sent'))
    await t.rejects(called, { code: 'request_timeout', status: 408 }, text)
    t.same(sent, ['sent'])
  }
  const unsent = () => t.fail('a request was sent although the connection was refused')
  const refused = { code: 'bad_gateway', message: /ECONNREFUSED/ }
  await t.rejects(send(open(1), 'http://127.0.0.1:1', unsent), refused)
})

t.test('a response is refused if its body stops, is too slow or is too large', async (t) => {
  const begin = 'HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n'
  const stops = await listen(t, (socket) => socket.write(`${begin}x`))
  const drips = await listen(t, (socket) => {
    socket.write(begin)
    const drip = setInterval(() => socket.write('x'), 50)
    socket.on('close', () => clearInterval(drip))
  })
  const cut = await listen(t, (socket) => socket.end(`${begin}x`))
  const open = outbound(t, { allowNet: ['127.0.0.1'], waitMs: 300 })
  for (const port of [stops, drips, cut]) {
    const answer = await send(open, `http://127.0.0.1:${port}`)
    await t.rejects(answer.collect(1000), { code: 'bad_gateway' })
  }
  const large = await listen(t, (socket) => socket.end(`${begin}${'x'.repeat(1_000_000)}`))
  const wide = outbound(t, { allowNet: [`127.0.0.1:${large}`] })
  await t.rejects((await send(wide, `http://127.0.0.1:${large}`)).collect(999_999), { code: 'bad_gateway' })
  t.equal((await (await send(wide, `http://127.0.0.1:${large}`)).collect(1_000_000)).length, 1_000_000)
})

t.test(
  'the host name in a certificate is verified, even if the user added certificate authorities',
  async (t) => {
    const server = createHttpsServer({ cert, key }, (_, response) => response.end('secure'))
    const port = await start(t, server)
    const options = { allowNet: ['localhost', 'other.example', `127.0.0.1:${port}`], resolve }
    const call = (host: string, more = {}) =>
      send(outbound(t, { ...options, ...more }), `https://${host}:${port}`)
    const { NODE_TLS_REJECT_UNAUTHORIZED: kept } = process.env
    t.teardown(() => {
      if (kept === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    })
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    await t.rejects(
      call('localhost'),
      { code: 'bad_gateway' },
      'the certificate is refused, whatever the environment says',
    )
    const answer = await call('localhost', { ca: cert })
    t.equal(Buffer.from(await answer.collect(10)).toString(), 'secure')
    await t.rejects(call('other.example', { ca: cert }), { code: 'bad_gateway' }, 'another name')
  },
)

type Fetched = Partial<FetchRequest>
/** Calls `fetch` as reactor code would. `left` receives the listener that `fetch` adds for the end of the run. */
const fetchFrom =
  (t: Test, allowNet = ['localhost'], options: Partial<OutboundOptions> = { resolve }) =>
  (url: string, more: Fetched = {}, left: (listener: () => void) => void = () => undefined) =>
    createHostFetch(outbound(t, { allowNet, ...options }))(
      { url, method: 'GET', headers: [], redirect: 'follow', ...more },
      left,
    )
const text = (body: string) => Buffer.from(body, 'base64').toString()

t.test('fetch sends a request as the code describes it, without headers of the connection', async (t) => {
  const port = await serve(t, (request, response) =>
    response.writeHead(418, { 'x-two': ['a', 'b'] }).end(JSON.stringify(request)),
  )
  const given = { 'x-key': '1', host: 'evil', 'content-length': '9999', 'accept-encoding': 'gzip' }
  const body = Buffer.from('hallo').toString('base64')
  const url = `http://localhost:${port}/a?b=c#d`
  const answer = await fetchFrom(t)(url, { method: 'POST', headers: Object.entries(given), body })
  t.match(answer, { status: 418, redirected: false, url })
  t.ok(answer.headers.some(([name, value]) => name === 'x-two' && value === 'a, b'))
  const host = `localhost:${port}`
  const headers = { 'x-key': '1', host, 'content-length': '5', 'accept-encoding': 'identity' }
  t.match(JSON.parse(text(answer.body)), { method: 'POST', url: '/a?b=c', body: 'hallo', headers })
})

t.test(
  'fetch refuses a host that is not on the list of allowed hosts before it resolves the name',
  async (t) => {
    const resolve = async () => t.fail('resolved') as never
    const fetch = fetchFrom(t, ['api.example.com:443'], { resolve })
    const hosts = 'http://api.example.com/ https://api.example.com:444/ https://api.example.com@evil.com/'
    for (const url of hosts.split(' ')) await t.rejects(fetch(url), { code: 'forbidden' }, url)
    for (const url of ['file:///etc/passwd', 'ftp://api.example.com/', 'nonsense', ''])
      await t.rejects(fetch(url), { code: 'validation' }, url)
  },
)

t.test('fetch follows at most five redirects, and only to hosts on the list of allowed hosts', async (t) => {
  const other = await serve(t, (request, response) => response.end(JSON.stringify(request)))
  let asked = 0
  const port = await serve(t, ({ url }, response) => {
    asked += 1
    const { searchParams } = new URL(url, 'http://x')
    const location = searchParams.get('to') ?? '/'
    response.writeHead(Number(searchParams.get('status') ?? 302), { location }).end('moved')
  })
  const fetch = fetchFrom(t, [`localhost:${port}`, `localhost:${other}`])
  const via = (to: string, status = 302) =>
    `http://localhost:${port}/?status=${status}&to=${encodeURIComponent(to)}`
  const headers = Object.entries({ authorization: 's', 'content-type': 'a/b', 'x-kept': '1' })
  const post = { method: 'POST', headers, body: 'eA==' }
  const moved = await fetch(via(`http://localhost:${other}/`), post)
  t.ok(moved.redirected)
  const seen = JSON.parse(text(moved.body))
  t.match(seen, { method: 'GET', body: /^$/, headers: { 'x-kept': '1' } })
  for (const name of ['authorization', 'content-type'])
    t.notOk(seen.headers[name], 'credentials are not sent to another origin')
  const kept = await fetch(via(`http://localhost:${other}/`, 307), post)
  t.match(JSON.parse(text(kept.body)), { method: 'POST', body: 'x' })
  for (const url of ['http://127.0.0.1:1/', 'http://169.254.169.254/'])
    await t.rejects(fetch(via(url)), { code: 'forbidden' })
  await t.rejects(fetch(via('file:///etc/passwd')), { code: 'validation' })
  await t.rejects(fetch(via('/?to=/&x'), { redirect: 'error' }), { code: 'bad_gateway' })
  t.match(await fetch(via('http://127.0.0.1:1/'), { redirect: 'manual' }), { status: 302, redirected: false })
  asked = 0
  await t.rejects(fetch(`http://localhost:${port}/`), { code: 'bad_gateway', message: /redirects/ })
  t.equal(asked, 6)
})

t.test(
  'a host name that resolves to this machine, and a redirect, do not reach the server of the run',
  async (t) => {
    const port = await serve(t, (_, response) => response.end('over a socket'))
    const elsewhere = await serve(t, (_, response) =>
      response.writeHead(307, { location: `http://own.example:${port}/tokens` }).end(),
    )
    const asked: [url: string, key: string | undefined][] = []
    const answer = answerWhole(200, {}, Buffer.from('without a socket'))
    const access: Pick<RunAccess, 'reach'> = {
      reach: ({ origin }, headers) => {
        asked.push([origin, headers?.['svc-api-key']])
        const isOwn = origin === `http://own.example:${port}` && headers?.['svc-api-key'] === 'key'
        return isOwn ? { send: async () => answer } : undefined
      },
    }
    const allowNet = ['own.example', 'rebound.example', 'localhost', '127.0.0.1']
    const ownPorts = new Set([port])
    const fetch = createHostFetch(outbound(t, { resolve, allowNet, ownPorts }))
    const headers: [string, string][] = [['SVC-API-KEY', 'key']]
    const call = (url: string) =>
      fetch({ url, method: 'GET', headers, redirect: 'follow' }, () => undefined, access)
    t.equal(text((await call(`http://own.example:${port}/tokens`)).body), 'without a socket')
    const itself = { code: 'forbidden', message: /it is this server itself/ }
    await t.rejects(call(`http://rebound.example:${port}/tokens`), itself, 'another name of this machine')
    await t.rejects(call(`http://localhost:${elsewhere}/`), itself, 'a redirect')
    t.same(asked.at(-1), [`http://own.example:${port}`, undefined], 'a redirect is judged without the key')
  },
)

t.test('the bodies and responses of fetch have a size limit', async (t) => {
  const most = 4 * 1024 * 1024
  const port = await serve(t, (request, response) =>
    response.end(Buffer.alloc(most + (request.url === '/more' ? 1 : 0), 'x')),
  )
  const fetch = fetchFrom(t)
  t.equal(text((await fetch(`http://localhost:${port}/`)).body).length, most)
  await t.rejects(fetch(`http://localhost:${port}/more`), { code: 'bad_gateway' })
  const body = Buffer.alloc(1024 * 1024 + 1).toString('base64')
  await t.rejects(fetch(`http://localhost:${port}/`, { method: 'POST', body }), { code: 'too_large' })
})

t.test('when a run ends, the requests of the run end too', async (t) => {
  let end: () => void = () => undefined
  let closed: Promise<unknown> | undefined
  const port = await listen(t, (socket) => {
    closed = once(socket, 'close')
    end()
  })
  const whenOver = (listener: () => void) => {
    end = listener
  }
  await t.rejects(fetchFrom(t)(`http://localhost:${port}/`, {}, whenOver), { code: 'interrupted' })
  await closed
})

t.test('a request that fetch cannot make is refused', async (t) => {
  const fetch = fetchFrom(t)
  for (const more of [
    ...[{ method: 'CONNECT' }, { method: 'get x' }, { headers: [['a']] }, { headers: 'x' }],
    ...[{ body: 1 }, { url: 1 }, { url: 'http://%E0@localhost/' }],
  ])
    await t.rejects(fetch('http://localhost/', more as Fetched), { code: 'validation' }, JSON.stringify(more))
  const refused = fetch('http://localhost:1/', { headers: [['x', 'a\r\nb: c']] })
  await t.rejects(
    refused,
    { code: 'bad_gateway' },
    'a header whose value would add a second header is refused',
  )
})
