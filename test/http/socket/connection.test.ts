/** Connections: slow clients, pipelined and concurrent requests, chunked bodies, and HEAD. */
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { authenticate } from '../../../src/framework/caller/authenticate.js'
import { createAnswerer } from '../../../src/http/answerer.js'
import { answerText } from '../../../src/http/exchange.js'
import { SERVER_LIMITS } from '../../../src/http/server.js'
import { completeService } from '../../../src/http/service.js'
import { registry } from '../../../src/operations/all.js'
import { serve } from '../../support/service.js'
import { openTestVault, REVEALS_ALL } from '../../support/test-vault.js'
import { readAnswers, requestText, sendRaw } from '../socket.js'

const MIB = 1024 * 1024

t.test(
  'a client that does not read its response is disconnected, and a slow client gets the whole response',
  async (t) => {
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
    t.ok(
      part.bytes < large.length,
      `the client was disconnected after ${part.bytes} bytes that the operating system had buffered`,
    )
  },
)

t.test('pipelined requests of a connection are answered one after another', async (t) => {
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

t.test(
  'requests and bodies of many connections are spread over several turns of the event loop',
  async (t) => {
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
      // The connections are opened one after another. If the backlog of the server were full, the last connections
      // would be delayed.
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
    t.ok(maxInATurn('/plain') <= 50, `at most ${maxInATurn('/plain')} requests were answered in one turn`)
    // If each request ran in a separate turn of the event loop, each request would need a separate sync of the disk.
    const taken = new Set(turns.get('/plain')).size
    t.ok(taken <= 60, `200 requests took ${taken} turns`)
    t.ok(
      turns.get('/healthz')![0]! < turns.get('/plain')!.at(-1)!,
      '/healthz is answered before the requests that wait',
    )
    const body = 'x'.repeat(60_000)
    await ask(Array.from({ length: 40 }, () => requestText('POST /body', close, body)))
    t.equal(turns.get('/body read')?.length, 40)
    t.ok(maxInATurn('/body read') <= 4, `at most ${maxInATurn('/body read')} bodies were read in one turn`)
  },
)

t.test(
  'receiving a body in chunks of one byte needs about as much memory as the size of the body',
  async (t) => {
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
    t.ok(grown < 40, `the memory grew by ${grown.toFixed(0)} MiB`)
    socket.write('0\r\n\r\n')
    await closed
    t.equal(length, count)
  },
)

t.test('a response to a HEAD request has the headers of the response to GET, and no body', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { key } = await vault.createApplication('private', { rules: [REVEALS_ALL] })
  await vault.ask('token create', { id: 'small', type: 'token', data: 'a' })
  await vault.ask('token create', { id: 'large', type: 'token', data: 'x'.repeat(300_000) })
  const service = completeService({ host: vault.app, registry, authenticate, version: '0' })
  const server = await serve(createAnswerer(service))
  t.teardown(() => server.stop())
  const headers = { 'SVC-API-KEY': key, 'Svc-Trace-Id': 'mine', Connection: 'close' }
  for (const target of ['/tokens/small', '/tokens/large', '/tokens', '/tokens/none', '/tokens?size=0', '/']) {
    const [get] = readAnswers(await sendRaw(server.port, requestText(`GET ${target}`, headers)))
    const head = await sendRaw(server.port, requestText(`HEAD ${target}`, headers))
    t.ok(
      head.endsWith('\r\n\r\n') && head.indexOf('\r\n\r\n') === head.length - 4,
      `${target}: the response to HEAD has no body`,
    )
    const fields = (text: string) => text.split('\r\n').filter((line) => !/^(date: |HTTP)/i.test(line))
    const whole = await sendRaw(server.port, requestText(`GET ${target}`, headers))
    t.same(
      fields(head),
      fields(whole.slice(0, whole.indexOf('\r\n\r\n') + 4)),
      `${target}: HEAD and GET have the same headers`,
    )
    t.match(head, `HTTP/1.1 ${get?.status} `)
    t.equal(Buffer.byteLength(get?.body ?? ''), Number(get?.headers['content-length']))
  }
  const reads = (await vault.ask('log list', { entity_id: 'small', size: 100 })) as {
    data: { operation: string }[]
  }
  // The log has two GETs and one HEAD of the token, and three reads of the list that contains the token.
  t.equal(reads.data.filter(({ operation }) => operation === 'read').length, 6)
})
