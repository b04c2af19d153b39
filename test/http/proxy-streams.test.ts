/** Calls through proxies to destinations that are slow or large, and clients that do not wait for them. */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { serveHttp } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, setSetting } from '../operations/vault.js'

const MIB = 1024 * 1024

async function open(t: Test) {
  const vault = await openTestVault()
  const faults: unknown[] = []
  const connections: Socket[] = []
  let whenConnected: (socket: Socket) => void = () => {}
  let answer: (socket: Socket) => void = () => {}
  const server = createServer((socket) => {
    connections.push(socket)
    socket.on('error', () => {})
    socket.on('data', () => {
      whenConnected(socket)
      answer(socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  vault.app.configureReactors({ allowNet: [`127.0.0.1:${port}`] })
  const reportFault = (error: unknown) => void faults.push(error)
  const service = { host: vault.app, registry, authenticate, version: '0', reportFault }
  const running = await serveHttp(service, { port: 0 })
  t.teardown(async () => {
    for (const socket of connections) socket.destroy()
    server.close()
    await running.stop()
    await vault.app.close()
  })
  const { key } = await vault.createApplication('private', { permissions: ['proxy:invoke'] })
  const target = `http://127.0.0.1:${port}`
  const create = async (input: object) =>
    (await vault.ask('proxy create', { name: 'p', destination_url: target, ...input })) as { key: string }
  /** Begins a call; the answer is read by whoever wants it. */
  const begin = (headers: Record<string, string> = {}) => {
    const options = {
      host: '127.0.0.1',
      port: running.port,
      path: '/proxy',
      method: 'POST',
      agent: false,
    } as const
    const request = httpRequest({
      ...options,
      headers: { 'svc-api-key': key, 'svc-proxy-url': target, ...headers },
    })
    request.on('error', () => {})
    const response = new Promise<IncomingMessage>((resolve) => request.once('response', resolve))
    request.end('{}')
    return { request, response }
  }
  const called = () =>
    new Promise<Socket>((resolve) => {
      whenConnected = resolve
    })
  const say = (next: (socket: Socket) => void) => {
    answer = next
  }
  return { ...vault, create, begin, called, say, faults, connections }
}

/** Unlike `once`, however it came to that. */
const closed = (stream: { once(event: 'close', listener: () => void): unknown }) =>
  new Promise<void>((resolve) => stream.once('close', resolve))

async function read(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const answerOf = (body: Uint8Array | string, type = 'text/plain') => {
  const head = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n`
  return (socket: Socket) => void socket.write(Buffer.concat([Buffer.from(head), Buffer.from(body)]))
}

t.test('a client that leaves before the headers ends the call to the destination', async (t) => {
  const { begin, called, say, faults, connections, create } = await open(t)
  const reached = called()
  const { request } = begin()
  const socket = await reached
  request.destroy()
  await closed(socket)
  t.equal(connections.length, 1, 'the connection was closed, without an answer')
  say(answerOf('hi'))
  t.equal((await read(await begin().response)).toString(), 'hi')
  t.equal((await read(await begin().response)).toString(), 'hi')
  t.ok(connections.length > 1, 'and it is not used again')
  const proxy = await create({ request_transforms: [{ code: 'module.exports = async () => ({})' }] })
  const slow = begin({ 'svc-proxy-key': proxy.key })
  slow.request.once('finish', () => setImmediate(() => slow.request.destroy()))
  await closed(slow.request)
  say(answerOf('again'))
  t.equal((await read(await begin().response)).toString(), 'again')
  t.same(faults, [])
})

t.test(
  'an answer that is there at once has its length, one that is not yet is passed on as it comes',
  async (t) => {
    const { begin, called, say } = await open(t)
    say(answerOf('whole'))
    const whole = await begin().response
    t.equal(whole.headers['content-length'], '5')
    t.equal((await read(whole)).toString(), 'whole')
    say(() => {})
    const reached = called()
    const { response } = begin()
    const socket = await reached
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst')
    const begun = await response
    const pieces = begun[Symbol.asyncIterator]() as AsyncIterator<Buffer>
    t.equal((await pieces.next()).value.toString(), 'first', 'before the rest is there')
    socket.write(' last')
    t.equal((await pieces.next()).value.toString(), ' last')
    t.ok((await pieces.next()).done)
  },
)

t.test('transforms are given and return 8 MiB, and not more', async (t) => {
  const { app, begin, say, create, faults } = await open(t)
  await setSetting(app, 'reactors.time_limit_ms', '60000')
  const code = 'module.exports = async ({ args }) => ({ body: args.body })'
  const through = await create({ response_transforms: [{ code }] })
  const mask = { type: 'mask', matcher: 'regex', expression: '([0-9]+)', replacement: '*' }
  const masking = await create({ response_transforms: [mask] })
  const double = 'module.exports = async ({ args }) => ({ body: args.body + args.body })'
  const doubling = await create({ response_transforms: [{ code: double }] })
  const call = async (key: string, body: string) => {
    say(answerOf(Buffer.from(body)))
    const response = await begin({ 'svc-proxy-key': key }).response
    return { status: response.statusCode, body: (await read(response)).toString() }
  }
  const most = `${'"a\\'.repeat((8 * MIB) / 3)}ab`.slice(0, 8 * MIB)
  t.ok((await call(through.key, most)).body === most, 'as they are, quotes and all')
  t.match(await call(through.key, `${most}x`), { status: 502, body: /more than 8388608 bytes/ })
  const digits = '42424242,'.repeat(MIB / 9)
  t.ok((await call(masking.key, digits)).body === digits.replaceAll(/\d/g, '*'))
  t.match(await call(doubling.key, 'x'.repeat(4 * MIB + 1)), { status: 500, body: /proxy_error/ })
  t.same(faults, [])
})
