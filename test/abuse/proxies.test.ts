/**
 * Attacks through proxies: by a destination, by a caller and by the data. Each is bounded or refused, tells nothing, and
 * keeps nobody else waiting.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { serveHttp } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, setSetting } from '../operations/vault.js'

const SECRET = '4242424242424242'

async function open(t: Test) {
  const vault = await openTestVault()
  const faults: unknown[] = []
  const lines: string[] = []
  let talk = (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
  const heard: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', (chunk) => {
      heard.push(chunk.toString('latin1'))
      talk(socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const service = {
    host: vault.app,
    registry,
    authenticate,
    version: '0',
    record: (entry: object) => void lines.push(JSON.stringify(entry)),
    reportFault: (error: unknown) => void faults.push(error),
  }
  const running = await serveHttp(service, { port: 0 })
  vault.app.configureReactors({
    allowNet: [
      '127.0.0.1',
      'localhost',
      '[::1]',
      '0.0.0.0',
      `127.0.0.1:${port}`,
      `127.0.0.1:${running.port}`,
    ],
  })
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await running.stop()
    await vault.app.close()
  })
  const { key } = await vault.createApplication('private', { permissions: ['proxy:invoke', 'token:read'] })
  await vault.ask('token create', { id: 'card-1', type: 'card_number', data: SECRET })
  await vault.ask('token create', {
    id: 'smuggle',
    type: 'token',
    data: 'x\r\nHost: evil\r\n\r\nGET /y HTTP/1.1\r\n\r\n',
  })
  const own = `http://127.0.0.1:${running.port}`
  const call = (path = '', init: RequestInit = {}) =>
    fetch(`${own}/proxy${path}`, {
      ...init,
      headers: {
        'svc-api-key': key,
        'svc-proxy-url': `http://127.0.0.1:${port}`,
        ...(init.headers as object),
      },
    })
  const isServed = async () =>
    (await fetch(`${own}/tokens/card-1`, { headers: { 'svc-api-key': key } })).status === 200
  const answer = (next: typeof talk) => {
    talk = next
  }
  return { ...vault, own, port, key, call, isServed, heard, answer, faults, lines, servedPort: running.port }
}

const card = { method: 'POST', body: '{"n":"{{ card-1 }}"}', headers: { 'content-type': 'application/json' } }

t.test('answers that are broken, endless or cut off', async (t) => {
  const { call, answer, isServed, faults, lines } = await open(t)
  for (const bytes of [
    'nonsense\r\n\r\n',
    `HTTP/1.1 200 ${SECRET}\r\ncontent-length: x\r\n\r\n`,
    `HTTP/1.1 200 OK\r\n${SECRET}\x00: x\r\n\r\n`,
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n${SECRET}`,
    `HTTP/1.1 200 OK\r\nx: ${SECRET.repeat(10_000)}\r\n\r\n`,
    'HTTP/1.1 000 x\r\ncontent-length: 0\r\n\r\n',
    'HTTP/1.1 099 x\r\ncontent-length: 0\r\n\r\n',
    'HTTP/1.1 101 x\r\n\r\n',
    'HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    '',
  ]) {
    answer((socket) => void socket.end(bytes))
    const refused = await call('', card)
    const text = await refused.text()
    t.equal(refused.status, 502)
    t.match(JSON.parse(text), { proxy_error: { status: 502 } })
    t.notOk(text.includes(SECRET), 'the error tells nothing of what was sent or answered')
  }
  answer((socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort'))
  await t.rejects(
    call().then((each) => each.text()),
    'an answer that is cut off is not shown as a whole one',
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
  t.ok(await isServed(), 'others are served meanwhile')
  let before = -1
  for (let looks = 0; looks < 40 && written !== before; looks++) {
    before = written
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  t.equal(written, before, 'what nobody reads is not fetched')
  await reader.cancel()
  t.ok(await isServed())
  t.same(faults, [])
  t.notOk(lines.join().includes(SECRET))
})

t.test('100 MB pass through without being held', async (t) => {
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
  // The system buffers several MiB on each of the two connections.
  t.ok(most < 48 * 1024 * 1024, `at most ${Math.round(most / 1024 / 1024)} MiB on the way`)
})

t.test('redirects are not followed, and our own server is never called', async (t) => {
  const { call, answer, servedPort, heard, own, key } = await open(t)
  answer(
    (socket) => void socket.end(`HTTP/1.1 302 Found\r\nlocation: ${own}/tokens\r\ncontent-length: 0\r\n\r\n`),
  )
  const answered = await call('', { redirect: 'manual' })
  t.equal(answered.status, 302)
  t.equal(answered.headers.get('location'), `${own}/tokens`)
  t.equal(heard.length, 1)
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '0.0.0.0', '2130706433', '0x7f000001', '127.1']) {
    const url = `http://${host}:${servedPort}`
    const refused = await call('/tokens', { headers: { 'svc-proxy-url': url } })
    t.match([refused.status, await refused.json()], [403, { proxy_error: { status: 403 } }], url)
  }
  const looping = { 'svc-api-key': key, 'svc-proxy-url': `${own}/proxy` }
  t.equal((await fetch(`${own}/proxy`, { headers: looping })).status, 403)
})

t.test('data cannot add a header, a host or a request', async (t) => {
  const { call, heard, isServed, servedPort, key, port } = await open(t)
  for (const name of ['x-note', 'authorization', 'cookie', 'content-type'])
    t.equal((await call('', { headers: { [name]: '{{ smuggle }}' } })).status, 400, name)
  t.same(heard, [])
  await call(`/{{%20smuggle%20}}?a={{%20smuggle%20}}`)
  t.notMatch(heard[0], /\r\nhost: evil|\r\nGET/i)
  t.equal(heard[0]?.match(/\r\nhost:/gi)?.length, 1)
  heard.length = 0
  const raw = (lines: string[]) =>
    new Promise<string>((resolve) => {
      const socket = connect(servedPort, '127.0.0.1', () => socket.write(`${lines.join('\r\n')}\r\n\r\n`))
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
      })
      socket.on('close', () => resolve(text))
    })
  const begin = [
    'GET /proxy HTTP/1.1',
    'connection: close',
    `svc-api-key: ${key}`,
    `svc-proxy-url: http://127.0.0.1:${port}`,
  ]
  const attacks: string[][] = [
    ['host: localhost', 'host: evil'],
    ['host: localhost', '{{ card-1 }}: x'],
    ['host: localhost', 'x y: z'],
    ['host: localhost', 'content-length: 1', 'transfer-encoding: chunked'],
    ['host: localhost', 'x: a\rhost: evil'],
  ]
  // A server that reads the target as a URL takes `..#f` for `..`.
  for (const target of ['/proxy/a/..#f', '/proxy/a?b#/../c']) {
    const lines = [`GET ${target} HTTP/1.1`, ...begin.slice(1), 'host: localhost']
    t.match(await raw(lines), /^HTTP\/1\.1 400 [\s\S]*%23/, target)
  }
  for (const attack of attacks) t.match(await raw([...begin, ...attack]), /^HTTP\/1\.1 400 /, attack.join())
  t.same(heard, [])
  for (const named of ['x-a', 'host', 'content-length', 'transfer-encoding', 'x-b'])
    await raw([...begin, 'host: localhost', `connection: close, x-a`, `x-a: 1`, `te: ${named}`])
  for (const each of heard)
    t.notMatch(each, /\r\n(?:x-a|te|svc-[a-z-]+):/i, 'headers of the connection stay here')
  t.ok(await isServed())
})

t.test('expressions and transforms that do not end are stopped, and others are served', async (t) => {
  const { app, ask, call, answer, isServed, faults } = await open(t)
  await setSetting(app, 'reactors.time_limit_ms', '500')
  const { port } = await listenOnce(t, `${'a'.repeat(5000)}!`)
  const make = async (input: object) => {
    const destination_url = `http://127.0.0.1:${port}`
    return (await ask('proxy create', { name: 'p', destination_url, ...input })) as { key: string }
  }
  const mask = { type: 'mask', matcher: 'regex', expression: '((a+)+)$', replacement: '*' }
  const hanging = await make({ response_transforms: [mask] })
  const looping = await make({ request_transforms: [{ code: 'module.exports = async () => { for (;;); }' }] })
  const waiting = await make({
    request_transforms: [{ code: 'module.exports = () => new Promise(() => {})' }],
  })
  const large = await make({
    request_transforms: [{ code: "module.exports = async () => ({ headers: { a: 'x'.repeat(9e3) } })" }],
  })
  answer((socket) => void socket.end())
  for (const [{ key }, status] of [
    [hanging, 408],
    [looping, 408],
    [waiting, 408],
    [large, 500],
  ] as const) {
    const calling = call('', { ...card, headers: { ...card.headers, 'svc-proxy-key': key } })
    t.ok(await isServed())
    const refused = await calling
    const text = await refused.text()
    t.match([refused.status, JSON.parse(text)], [status, { proxy_error: { status } }])
    t.notOk(text.includes(SECRET))
  }
  t.same(faults, [])
})

/** A server that answers everything with `body`. */
async function listenOnce(t: Test, body: string): Promise<{ port: number }> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port }
}
