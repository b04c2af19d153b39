import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { createAnswerer } from '../../src/http/answerer.js'
import { ByteBudget, ByteLease } from '../../src/http/byte-budget.js'
import { answerText, type HttpRequest } from '../../src/http/exchange.js'
import { SERVER_LIMITS } from '../../src/http/server.js'
import { completeService } from '../../src/http/service.js'
import { registry } from '../../src/operations/all.js'
import { serve } from '../support/service.js'
import { openTestVault, permissionsOf, type TestVault } from '../support/test-vault.js'
import { readAnswers, requestText, sendRaw } from './socket.js'

const MIB = 1024 * 1024

function createLease(load: ByteBudget, holder: string): ByteLease {
  const share = new ByteLease(load)
  share.holder = holder
  return share
}

/** Returns the key of an application that sees every token in plaintext. */
async function createRevealing({ createApplication }: TestVault): Promise<string> {
  const rule = {
    priority: 1,
    container: '/',
    transform: 'reveal' as const,
    permissions: permissionsOf('private'),
  }
  return (await createApplication('private', { rules: [rule] })).key
}

const isRefused = (work: () => void): boolean => {
  try {
    work()
    return false
  } catch {
    return true
  }
}

t.test(
  'all requests, and those of one application, hold limited bytes, and small requests have a reserve of their own',
  async (t) => {
    const load = new ByteBudget()
    const [a, b] = [createLease(load, 'a'), createLease(load, 'b')]
    a.reserve(60 * MIB)
    t.throws(
      () => createLease(load, 'a').reserve(10 * MIB),
      { code: 'unavailable', status: 503 },
      'two thirds',
    )
    b.reserve(36 * MIB)
    t.throws(() => createLease(load, 'c').reserve(MIB), { code: 'unavailable' }, 'the whole budget is used')
    const small = Array.from({ length: 96 * 16 + 1 }, () => createLease(load, 'c'))
    const refused = small.filter((share) => isRefused(() => share.reserve(64 * 1024)))
    t.equal(refused.length, 1, 'the reserve of small requests is as large as the budget')
    for (const share of small) share.end()
    b.reserve(10 * MIB)
    createLease(load, 'c').reserve(26 * MIB)
    t.throws(() => b.reserve(11 * MIB), { code: 'unavailable' }, 'released bytes were reserved again')
    b.end()
    createLease(load, 'd').reserve(10 * MIB)
  },
)

t.test('a single holder may exceed the budget, and bytes that exist already are only counted', async (t) => {
  const load = new ByteBudget()
  const alone = createLease(load, 'a')
  alone.take(MIB)
  alone.reserve(300 * MIB)
  t.throws(() => createLease(load, 'b').reserve(MIB), { code: 'unavailable' })
  alone.end()
  const settled = createLease(load, 'b')
  settled.settle(200 * MIB)
  t.throws(() => createLease(load, 'c').take(MIB), { code: 'unavailable' })
  const wide = new ByteBudget(256 * MIB)
  createLease(wide, 'a').take(256 * MIB)
  createLease(wide, 'b').take(256 * MIB)
})

t.test('a request without room gets 503, writes nothing and logs nothing', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const key = await createRevealing(vault)
  await vault.ask('token create', { id: 'large', type: 'token', data: 'x'.repeat(200_000) })
  const answerer = createAnswerer(completeService({ host: vault.app, registry, authenticate, version: '0' }))
  const countOf = async (name: string) =>
    ((await vault.ask(name, { size: 1 })) as { pagination: { total_items: number } }).pagination.total_items
  const load = new ByteBudget()
  const ask = (method: string, target: string, body?: object) => {
    const share = new ByteLease(load)
    const bytes = Buffer.from(JSON.stringify(body ?? {}))
    const readBody: HttpRequest['readBody'] = async () => {
      share.take(bytes.length)
      return bytes
    }
    return answerer({ method, target, headers: { 'svc-api-key': key }, lease: share, readBody })
  }
  const logs = await countOf('log list')
  const full = createLease(load, 'somebody')
  full.settle(128 * MIB)
  const large = { type: 'token', data: 'y'.repeat(200_000), mask: '{{ data }}' }
  for (const [method, target, body] of [
    ['GET', '/tokens/large'],
    ['HEAD', '/tokens/large'],
    ['GET', '/tokens'],
    ['POST', '/tokens/search', {}],
    ['POST', '/tokens', large],
  ] as const) {
    const answer = await ask(method, target, body)
    t.equal(answer.status, 503, `${method} ${target}`)
    t.equal(answer.headers['retry-after'], '1')
  }
  t.equal(await countOf('log list'), logs, 'nothing was logged')
  t.equal((await ask('GET', '/tokens?type=card')).status, 200, 'a small response is sent')
  full.end()
  t.equal((await ask('HEAD', '/tokens/large')).status, 200)
  t.equal(await countOf('log list'), logs + 1)
})

t.test('a client that does not read is disconnected, and a slow one gets the whole response', async (t) => {
  const large = 'x'.repeat(24 * MIB)
  const limits = { ...SERVER_LIMITS, stallMs: 1_200 }
  const server = await serve(async () => answerText(200, 'text/plain', large), { limits })
  t.teardown(() => server.stop())
  const open = () => {
    const socket = connect(server.port, '127.0.0.1').on('error', () => {})
    socket.pause()
    socket.write(requestText('GET /', { Connection: 'close' }))
    return { socket, closed: new Promise((resolve) => socket.once('close', resolve)) }
  }
  const [idle, slow] = [open(), open()]
  const take = ({ socket }: typeof idle) => {
    const taken = { bytes: 0 }
    socket.on('data', ({ length }: Buffer) => {
      taken.bytes += length
    })
    return taken
  }
  const whole = take(slow)
  for (let count = 0; count < 12; count++) {
    slow.socket.pause()
    await wait(100)
    slow.socket.resume()
    await wait(3)
  }
  await slow.closed
  t.ok(whole.bytes > large.length, 'the slow client got the whole response')
  const part = take(idle)
  idle.socket.pause()
  await wait(2 * limits.stallMs)
  idle.socket.resume()
  await idle.closed
  t.ok(part.bytes < large.length, `disconnected after ${part.bytes} bytes that the system had buffered`)
})

t.test('pipelined requests are answered one after another', async (t) => {
  let under = 0
  let most = 0
  const server = await serve(async ({ target }) => {
    most = Math.max(most, ++under)
    await wait(2)
    under--
    return answerText(200, 'text/plain', target)
  })
  t.teardown(() => server.stop())
  const targets = Array.from({ length: 50 }, (_, at) => `/${at}`)
  const all = await sendRaw(server.port, targets.map((each) => requestText(`GET ${each}`)).join(''), {
    halfClose: true,
  })
  t.same(
    readAnswers(all).map(({ body }) => body),
    targets,
  )
  t.equal(most, 1)
})

t.test('requests and bodies of many connections are spread over turns of the event loop', async (t) => {
  let turn = 0
  let isOver = false
  const count = () => {
    turn++
    if (!isOver) setImmediate(count)
  }
  const turns = new Map<string, number[]>()
  const note = (what: string) => turns.set(what, [...(turns.get(what) ?? []), turn])
  const server = await serve(async (request) => {
    const { method, target, lease } = request
    note(target)
    if (method === 'POST') await request.readBody(MIB)
    await lease?.arrive()
    note(`${target} read`)
    return answerText(200, 'text/plain', target)
  })
  t.teardown(() => server.stop())
  const ask = async (texts: readonly string[]) => {
    const sockets: Socket[] = []
    // Connects one after another, because a full backlog would delay the last ones.
    for (const _ of texts) {
      const socket = connect(server.port, '127.0.0.1')
      await new Promise((resolve) => socket.once('connect', resolve))
      sockets.push(socket)
    }
    await wait(20)
    isOver = false
    count()
    const ends = sockets.map((socket) => new Promise((resolve) => socket.resume().once('close', resolve)))
    for (const [at, socket] of sockets.entries()) socket.write(texts[at]!)
    await Promise.all(ends)
    isOver = true
  }
  const maxInATurn = (what: string) => {
    const all = turns.get(what) ?? []
    return Math.max(...[...new Set(all)].map((one) => all.filter((each) => each === one).length))
  }
  const close = { Connection: 'close' }
  const plain = Array.from({ length: 200 }, () => requestText('GET /plain', close))
  await ask([...plain, requestText('GET /healthz', close)])
  t.equal(turns.get('/plain')?.length, 200)
  t.ok(maxInATurn('/plain') <= 50, `${maxInATurn('/plain')} in one turn`)
  // One request in each turn would give each its own sync of the disk.
  const taken = new Set(turns.get('/plain')).size
  t.ok(taken <= 60, `${taken} turns for 200`)
  t.ok(
    turns.get('/healthz')![0]! < turns.get('/plain')!.at(-1)!,
    '/healthz is answered before waiting requests',
  )
  const body = 'x'.repeat(60_000)
  await ask(Array.from({ length: 40 }, () => requestText('POST /body', close, body)))
  t.equal(turns.get('/body read')?.length, 40)
  t.ok(maxInATurn('/body read') <= 4, `${maxInATurn('/body read')} bodies in one turn`)
})

t.test('a body in chunks of one byte takes memory of about its size', async (t) => {
  const count = 400_000
  let length = 0
  const server = await serve(async (request) => {
    length = (await request.readBody(MIB))!.length
    return answerText(200, 'text/plain', '')
  })
  t.teardown(() => server.stop())
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  const measure = () => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return (heapUsed + arrayBuffers) / MIB
  }
  const socket = connect(server.port, '127.0.0.1')
  const closed = new Promise((resolve) => socket.resume().once('close', resolve))
  socket.write(requestText('POST /', { Connection: 'close', 'Transfer-Encoding': 'chunked' }))
  const before = measure()
  await new Promise((resolve) => socket.write('1\r\n \r\n'.repeat(count), resolve))
  let grown = 0
  for (let count = 0; count < 20; count++) {
    await wait(100)
    grown = Math.max(grown, measure() - before)
  }
  t.ok(grown < 40, `${grown.toFixed(0)} MiB more`)
  socket.write('0\r\n\r\n')
  await closed
  t.equal(length, count)
})

t.test('a response to HEAD has the headers of GET and no body', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const key = await createRevealing(vault)
  await vault.ask('token create', { id: 'small', type: 'token', data: 'a' })
  await vault.ask('token create', { id: 'large', type: 'token', data: 'x'.repeat(300_000) })
  const service = completeService({ host: vault.app, registry, authenticate, version: '0' })
  const server = await serve(createAnswerer(service))
  t.teardown(() => server.stop())
  const headers = { 'SVC-API-KEY': key, 'Svc-Trace-Id': 'mine', Connection: 'close' }
  for (const target of ['/tokens/small', '/tokens/large', '/tokens', '/tokens/none', '/tokens?size=0', '/']) {
    const [get] = readAnswers(await sendRaw(server.port, requestText(`GET ${target}`, headers)))
    const head = await sendRaw(server.port, requestText(`HEAD ${target}`, headers))
    t.ok(head.endsWith('\r\n\r\n') && head.indexOf('\r\n\r\n') === head.length - 4, `${target}: no body`)
    const fields = (text: string) => text.split('\r\n').filter((line) => !/^(date: |HTTP)/i.test(line))
    const whole = await sendRaw(server.port, requestText(`GET ${target}`, headers))
    t.same(fields(head), fields(whole.slice(0, whole.indexOf('\r\n\r\n') + 4)), `${target}: the same headers`)
    t.match(head, `HTTP/1.1 ${get?.status} `)
    t.equal(Buffer.byteLength(get?.body ?? ''), Number(get?.headers['content-length']))
  }
  const reads = (await vault.ask('log list', { entity_id: 'small', size: 100 })) as {
    data: { operation: string }[]
  }
  // Two GETs and a HEAD of the token, and the same for the list that contains it.
  t.equal(reads.data.filter(({ operation }) => operation === 'read').length, 6)
})
