/** Where requests of proxies may go, to which address they do, and how long they may take. */
import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { Resolved } from '../../src/reactor/connections.js'
import { createOutbound, type OutboundOptions } from '../../src/reactor/outbound.js'
import { CERTIFICATE as cert, PRIVATE_KEY as key } from '../http/certificate.js'

const LOOPBACK: Resolved = { address: '127.0.0.1', family: 4 }

/** A server that does with each connection what `talk` does, once a request has begun. */
async function listen(t: Test, talk: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => talk(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

function outbound(t: Test, options: Partial<OutboundOptions>) {
  const created = createOutbound({ allowNet: [], ownPorts: new Set(), ...options })
  t.teardown(() => created.close())
  return created
}

const GET = { method: 'GET', target: '/', headers: {}, body: new Uint8Array() }
const send = async (reaching: ReturnType<typeof createOutbound>, url: string, sent = () => {}) =>
  (await reaching.reach(new URL(url))).send(GET, { sent })

t.test('only what is allowed is called, judged by its address', async (t) => {
  const port = await listen(t, (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi'))
  const resolve = async (host: string): Promise<Resolved[]> =>
    host === 'public.example' ? [{ address: '93.184.216.34', family: 4 }] : [LOOPBACK]
  const closed = outbound(t, { resolve })
  for (const url of [
    `http://127.0.0.1:${port}`,
    'http://public.example',
    'http://[::1]:1',
    'http://0x7f.1:1',
  ])
    await t.rejects(send(closed, url), { code: 'forbidden', message: /--allow-net/ }, url)
  const named = outbound(t, { resolve, allowNet: ['rebound.example', 'public.example'] })
  await t.rejects(send(named, `http://rebound.example:${port}`), { code: 'forbidden', message: /private/ })
  const open = outbound(t, { resolve, allowNet: [`rebound.example:${port}`, `127.0.0.1:${port}`] })
  const answer = await send(open, `http://rebound.example:${port}`)
  t.equal(Buffer.from(await answer.collect(10)).toString(), 'hi')
  await t.rejects(send(open, `http://rebound.example:${port + 1}`), { code: 'forbidden' })
  const nowhere = outbound(t, { allowNet: ['x.example'], resolve: async () => [] })
  await t.rejects(send(nowhere, 'http://x.example'), { code: 'bad_gateway' })
})

t.test('the address that was judged is the one connected to', async (t) => {
  const port = await listen(t, (socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
  const answers: Resolved[][] = [[LOOPBACK], [{ address: '192.0.2.1', family: 4 }]]
  const resolve = async () => answers.shift() ?? []
  const open = outbound(t, { resolve, allowNet: ['rebinding.example', `127.0.0.1:${port}`] })
  t.equal((await send(open, `http://rebinding.example:${port}`)).status, 204)
  t.equal(answers.length, 1, 'the name was resolved once')
})

t.test(
  'a name is resolved and judged for each connection, and a port that became our own is refused',
  async (t) => {
    const port = await listen(t, (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'))
    const answers: Resolved[][] = [[LOOPBACK], [{ address: '10.0.0.1', family: 4 }]]
    const url = `http://moving.example:${port}`
    const moving = outbound(t, {
      resolve: async () => answers.shift() ?? [],
      allowNet: ['moving.example', '127.0.0.1'],
    })
    const both = await Promise.allSettled([send(moving, url), send(moving, url)])
    t.match(both, [{ value: { status: 204 } }, { reason: { code: 'forbidden', message: /private/ } }])
    const ownPorts = new Set<number>()
    const begun = outbound(t, {
      resolve: async () => [LOOPBACK],
      allowNet: ['moving.example', '127.0.0.1'],
      ownPorts,
    })
    t.equal((await send(begun, url)).status, 204)
    ownPorts.add(port)
    await t.rejects(
      send(begun, url),
      { code: 'forbidden', message: /itself/ },
      'also by a connection that is kept',
    )
  },
)

t.test('an address where nobody listens is followed by the next', async (t) => {
  const port = await listen(t, (socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
  const resolve = async (): Promise<Resolved[]> => [{ address: '::1', family: 6 }, LOOPBACK]
  const sent: string[] = []
  const both = outbound(t, { allowNet: ['localhost'], resolve })
  t.equal((await send(both, `http://localhost:${port}`, () => sent.push('once'))).status, 204)
  t.same(sent, ['once'])
})

t.test('a port of our own is never called, by whatever address', async (t) => {
  const port = await listen(t, (socket) => socket.end())
  const names = [
    '127.0.0.1',
    '127.8.8.8',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '0.0.0.0',
    'localhost',
    'own.example',
  ]
  const open = outbound(t, {
    allowNet: [...names.map((name) => `${name}:${port}`), `[::ffff:7f00:1]:${port}`],
    ownPorts: new Set([port]),
    resolve: async () => [LOOPBACK],
  })
  for (const name of names)
    await t.rejects(
      send(open, `http://${name}:${port}`),
      { code: 'forbidden', message: /itself|private/ },
      name,
    )
})

t.test('a destination that is late, breaks off or is no HTTP server', async (t) => {
  const sent: string[] = []
  for (const [name, talk, expected] of [
    ['silent', () => {}, { code: 'request_timeout', status: 408 }],
    [
      'no headers',
      (socket: Socket) => void socket.write('HTTP/1.1 200 OK\r\nx: '),
      { code: 'request_timeout' },
    ],
    ['gone', (socket: Socket) => void socket.destroy(), { code: 'bad_gateway', status: 502 }],
    ['garbage', (socket: Socket) => void socket.end('SSH-2.0-x\r\n'), { code: 'bad_gateway' }],
    [
      'upgrade',
      (socket: Socket) => void socket.end('HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
      { code: 'bad_gateway' },
    ],
    [
      'two lengths',
      (socket: Socket) =>
        void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'),
      { code: 'bad_gateway' },
    ],
    [
      'huge headers',
      (socket: Socket) => void socket.end(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(70_000)}\r\n\r\n`),
      { code: 'bad_gateway' },
    ],
  ] as const) {
    const port = await listen(t, talk)
    const open = outbound(t, { allowNet: [`127.0.0.1:${port}`], waitMs: 300 })
    await t.rejects(
      send(open, `http://127.0.0.1:${port}`, () => sent.push(name)),
      expected,
      name,
    )
  }
  t.ok(sent.includes('silent'), 'it was sent')
  const open = outbound(t, { allowNet: ['127.0.0.1:1'] })
  const unsent = () => t.fail('nothing was sent')
  await t.rejects(send(open, 'http://127.0.0.1:1', unsent), { code: 'bad_gateway', message: /ECONNREFUSED/ })
})

t.test('a body that stops, drips or is too large', async (t) => {
  const begin = 'HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n'
  const stops = await listen(t, (socket) => socket.write(`${begin}x`))
  const drips = await listen(t, (socket) => {
    socket.write(begin)
    const drip = setInterval(() => socket.write('x'), 50)
    socket.on('close', () => clearInterval(drip))
  })
  const cut = await listen(t, (socket) => socket.end(`${begin}x`))
  const allowNet = [stops, drips, cut].map((port) => `127.0.0.1:${port}`)
  const open = outbound(t, { allowNet, waitMs: 300 })
  for (const port of [stops, drips, cut]) {
    const answer = await send(open, `http://127.0.0.1:${port}`)
    await t.rejects(answer.collect(1000), { code: 'bad_gateway' })
  }
  const large = await listen(t, (socket) => socket.end(`${begin}${'x'.repeat(1_000_000)}`))
  const wide = outbound(t, { allowNet: [`127.0.0.1:${large}`] })
  await t.rejects((await send(wide, `http://127.0.0.1:${large}`)).collect(999_999), { code: 'bad_gateway' })
  t.equal((await (await send(wide, `http://127.0.0.1:${large}`)).collect(1_000_000)).length, 1_000_000)
})

t.test('a certificate is verified by name, with the authorities that are added', async (t) => {
  const server = createHttpsServer({ cert, key }, (_, response) => response.end('secure'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const allowNet = ['localhost', 'other.example', `127.0.0.1:${port}`]
  const resolve = async () => [LOOPBACK]
  await t.rejects(send(outbound(t, { allowNet, resolve }), `https://localhost:${port}`), {
    code: 'bad_gateway',
  })
  const trusting = outbound(t, { allowNet, resolve, ca: cert })
  const answer = await send(trusting, `https://localhost:${port}`)
  t.equal(Buffer.from(await answer.collect(10)).toString(), 'secure')
  await t.rejects(send(trusting, `https://other.example:${port}`), { code: 'bad_gateway' }, 'another name')
})
