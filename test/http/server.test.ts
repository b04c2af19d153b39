import { once } from 'node:events'
import { get } from 'node:http'
import { connect, createServer as createNetServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import type { Answerer } from '../../src/http/answerer.js'
import { answerResult, answerText } from '../../src/http/exchange.js'
import { answerLater, listen, SERVER_LIMITS } from '../../src/http/server.js'
import { serve } from '../support/service.js'
import { CERTIFICATE, PRIVATE_KEY } from './certificate.js'
import { readAnswers, requestText, sendRaw } from './socket.js'

const LOOPBACK = ['127.0.0.1', '::1']
const answerOk: Answerer = async () => answerResult(200, { done: true })

/** Creates an answerer that holds back its answers until `release` is called. */
function createSlow(): { answerer: Answerer; started: () => number; release(): void } {
  let started = 0
  let release = () => {}
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  const answerer: Answerer = async () => {
    started++
    await gate
    return answerResult(200, { done: true })
  }
  return { answerer, started: () => started, release: () => release() }
}

async function until(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !isTrue(); tries++) await wait(5)
}

t.test(
  'a server listens on one port of both loopback addresses, and a second server cannot use the port',
  async (t) => {
    const server = await serve(answerOk, { addresses: LOOPBACK })
    t.teardown(() => server.stop())
    for (const host of ['127.0.0.1', '[::1]']) {
      const response = await fetch(`http://${host}:${server.port}/healthz`).catch(() => undefined)
      // A machine without IPv6 has only one loopback address.
      if (response === undefined) t.equal(host, '[::1]')
      else t.equal(response.status, 200, host)
    }
    await t.rejects(serve(answerOk, { port: server.port }), {
      code: 'unavailable',
      message: new RegExp(`Port ${server.port} is in use`),
    })
  },
)

t.test(
  'a connection stays open as HTTP requires, and a response to a HEAD request has no body',
  async (t) => {
    const injecting: Answerer = async ({ target }) => {
      const answer = answerResult(200, { done: true })
      if (target === '/split') answer.headers['svc-trace-id'] = 'one\r\nset-cookie: two'
      return answer
    }
    const server = await serve(injecting)
    t.teardown(() => server.stop())
    const line = (method: string, version: string, more = '') =>
      `${method} / HTTP/${version}\r\nHost: localhost\r\n${more}\r\n`
    const kept = line('GET', '1.1') + line('HEAD', '1.1')
    for (const last of [line('GET', '1.1', 'Connection: close\r\n'), line('GET', '1.0')]) {
      const text = await sendRaw(server.port, kept + last + line('GET', '1.1'))
      const [head, body, third, ...others] = text.split('\r\n\r\n')
      t.match(head, /^HTTP\/1\.1 200 OK\r\n/)
      t.match(head, /\r\ndate: [^\r]+ GMT\r\nconnection: keep-alive\r\nkeep-alive: timeout=30$/)
      t.match(body, /^{"done":true}HTTP\/1\.1 200 OK.*content-length: 13/s)
      t.match(third, /^HTTP\/1\.1 200 OK.*\r\nConnection: close/s, 'there are no bytes between two responses')
      t.same(others, ['{"done":true}'], 'there are no bytes after the last response')
    }
    t.notMatch(
      await sendRaw(server.port, requestText('GET /split')),
      /set-cookie/,
      'a header value cannot add another header',
    )
  },
)

t.test('requests wait until the answerer is created, and the answerer is created only once', async (t) => {
  let made = 0
  let make = () => {}
  const { answerer, begin } = answerLater(async () => {
    made++
    await new Promise<void>((resolve) => {
      make = resolve
    })
    return answerOk
  })
  const server = await serve(answerer)
  t.teardown(() => server.stop())
  const answers = [1, 2].map(() => fetch(`http://127.0.0.1:${server.port}/`))
  await until(() => made > 0)
  const begun = begin()
  make()
  await begun
  for (const answer of [...answers, fetch(`http://127.0.0.1:${server.port}/`)])
    t.equal((await answer).status, 200)
  t.equal(made, 1)
})

t.test('chunked bodies, bodies in small pieces and 100-continue are accepted', async (t) => {
  const server = await serve(async (request) => {
    if (request.headers.reads === 'no') return answerResult(401, {})
    return answerText(201, 'text/plain', Buffer.from((await request.readBody(100))!).toString())
  })
  t.teardown(() => server.stop())
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n'
  const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n5\r\n{"nam\r\n8\r\ne":"é"}\r\n0\r\n\r\n`
  const [one] = readAnswers(await sendRaw(server.port, [...chunked]))
  t.equal(one?.body, '{"name":"é"}')
  const expecting = `${head}Content-Length: 12\r\nExpect: 100-continue\r\n`
  const text = await sendRaw(server.port, [`${expecting}\r\n`, '{"name":"b"}'])
  t.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /)
  const unwanted = await sendRaw(server.port, `${expecting}Reads: no\r\n\r\n`)
  t.match(unwanted, /^HTTP\/1\.1 401 /, 'the server does not ask for a body that it does not need')
  const other = `${head}Expect: coffee\r\nContent-Length: 12\r\n\r\n{"name":"c"}`
  t.match(await sendRaw(server.port, other), /^HTTP\/1\.1 201 /)
})

t.test(
  'a stopping server answers accepted requests, closes idle connections and refuses new connections',
  async (t) => {
    const slow = createSlow()
    const server = await serve(slow.answerer)
    const busy = sendRaw(server.port, requestText('GET /a'))
    const idle = connect(server.port, '127.0.0.1')
    await once(idle, 'connect')
    await until(() => slow.started() === 1)
    let isStopped = false
    const stopped = server.stop().then(() => {
      isStopped = true
    })
    await once(idle, 'close')
    t.notOk(isStopped, 'the stop waits for the request in progress')
    const refused = connect(server.port, '127.0.0.1')
    const [error] = await once(refused, 'error')
    t.equal((error as { code?: string }).code, 'ECONNREFUSED')
    slow.release()
    await stopped
    const [answer] = readAnswers(await busy)
    t.equal(answer?.status, 200)
    t.equal(answer?.headers.connection, 'close')
  },
)

t.test('a server that stops answers a request that was already sent', async (t) => {
  const server = await serve(answerOk)
  const client = connect(server.port, '127.0.0.1')
  const chunks: Buffer[] = []
  client.on('data', (chunk) => chunks.push(chunk))
  const ended = once(client, 'end')
  client.write(requestText('GET /healthz'))
  await until(() => chunks.length > 0)
  const stopped = server.stop()
  client.write(requestText('GET /healthz'))
  await stopped
  await ended
  const answers = readAnswers(Buffer.concat(chunks).toString())
  const kept = answers.map(({ status, headers }) => `${status} ${headers.connection}`)
  t.same(kept, ['200 keep-alive', '200 close'])
})

t.test('a server that stops waits only a limited time for open requests', async (t) => {
  const slow = createSlow()
  const server = await serve(slow.answerer, { limits: { ...SERVER_LIMITS, stopMs: 150 } })
  const cut = sendRaw(server.port, requestText('GET /a'))
  await until(() => slow.started() === 1)
  await server.stop()
  t.equal(await cut, '')
  slow.release()
})

t.test('if a response cannot be sent, only the connection of this response is closed', async (t) => {
  const faults: unknown[] = []
  const broken: Answerer = async ({ target }) => {
    const answer = answerResult(200, { done: true })
    return target === '/broken' ? { ...answer, headers: { 'x-broken': 'a\nb' } } : answer
  }
  const server = await serve(broken, { reportFault: (error) => faults.push(error) })
  t.teardown(() => server.stop())
  t.equal(await sendRaw(server.port, requestText('GET /broken')), '')
  t.match(faults, [{ code: 'ERR_INVALID_CHAR' }])
  const [answer] = readAnswers(await sendRaw(server.port, requestText('GET /', { Connection: 'close' })))
  t.equal(answer?.status, 200)
})

t.test(
  'a server reads only a few pipelined requests before it has answered earlier requests of the connection',
  async (t) => {
    const slow = createSlow()
    const server = await serve(async (ask) => {
      // After a body has been read, Node resumes reading from the socket. The server must still limit the requests.
      await ask.readBody(10)
      return slow.answerer(ask)
    })
    t.teardown(() => server.stop())
    const flood = connect(server.port, '127.0.0.1')
    flood.on('error', () => {})
    let sent = 0
    const piece = requestText('GET /').repeat(1_000)
    const write = () => {
      sent++
      flood.write(piece, (error) => error ?? write())
    }
    write()
    await until(() => slow.started() === 1)
    let before = 0
    while (sent > before && sent < 200) {
      before = sent
      await wait(2_000)
    }
    t.ok(sent < 200, 'the client must wait once the buffers of the sockets are full')
    flood.destroy()
    slow.release()
    const last = requestText('POST /', { Connection: 'close' }, 'a')
    const few = requestText('POST /', {}, 'a').repeat(2_999) + last
    t.equal(readAnswers(await sendRaw(server.port, few)).length, 3_000, 'every request is answered')
  },
)

t.test(
  'a chunked request after another pipelined request is refused, because Node keeps every chunk in memory',
  async (t) => {
    const slow = createSlow()
    const server = await serve(slow.answerer)
    t.teardown(() => server.stop())
    const chunked = `${requestText('POST /', { 'Transfer-Encoding': 'chunked' })}1\r\nx\r\n0\r\n\r\n`
    const both = sendRaw(server.port, requestText('GET /') + chunked)
    await until(() => slow.started() === 1)
    slow.release()
    t.match(readAnswers(await both), [{ status: 200 }, { status: 503 }])
  },
)

t.test('while a server handles thousands of pipelined requests, it also does other work', async (t) => {
  const turns = new Set<number>()
  let turn = 0
  let isOver = false
  const count = () => {
    turn++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const server = await serve(async () => {
    turns.add(turn)
    return answerResult(200, {})
  })
  t.teardown(() => server.stop())
  const all = requestText('GET /').repeat(999) + requestText('GET /', { Connection: 'close' })
  t.equal(readAnswers(await sendRaw(server.port, all)).length, 1_000)
  isOver = true
  t.equal(turns.size, 1_000, 'one request is answered in each turn')
})

t.test('a server with a certificate accepts only TLS', async (t) => {
  const tls = { cert: CERTIFICATE, key: PRIVATE_KEY }
  const server = await serve(answerOk, { tls })
  await t.rejects(once(get({ port: server.port, host: '127.0.0.1', agent: false }), 'response'))
  await server.stop()
  await t.rejects(serve(answerOk, { tls: { ...tls, key: 'no key' } }), {
    code: 'usage',
  })
})

t.test('a free port is a port that is free on every address of the server', async (t) => {
  let made = 0
  const create = () => {
    const server = createNetServer()
    // The first port that the server tries is free on the first address, and in use on the second address.
    if (++made === 2)
      server.listen = (() => {
        const error = Object.assign(new Error('taken'), { code: 'EADDRINUSE' })
        queueMicrotask(() => server.emit('error', error))
        return server
      }) as typeof server.listen
    return server
  }
  const { servers } = await listen(create, LOOPBACK, 0)
  t.ok(made > 2, 'the server tried another port')
  for (const server of servers) server.close()
  await t.rejects(listen(createNetServer, ['192.0.2.1'], 0), { code: 'unavailable' })
})
