/** How the client handles the responses of a server. */
import t from 'tap'
import { createHttpClient, type Fetch, type HttpClientOptions } from '../../src/client/http-client.js'
import { ERRORS } from '../../src/errors.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import { registry } from '../../src/operations/all.js'

const find = (name: string) => registry.find(name) as RoutedOperation
const TOKEN = { id: 'one' }

/** Returns a client of a fake server that sends these responses in order, and then repeats the last response. */
function clientOf(answers: (() => Response | Promise<Response>)[], options: Partial<HttpClientOptions> = {}) {
  const sent: ({ url: string } & Omit<Parameters<Fetch>[1], 'signal'>)[] = []
  const waits: number[] = []
  const fetch: Fetch = async (url, { signal: _, ...init }) => {
    sent.push({ url, ...init })
    return answers[Math.min(sent.length, answers.length) - 1]!()
  }
  const client = createHttpClient({
    url: 'http://localhost/base/',
    key: 'key',
    fetch,
    createKey: () => `once-${sent.length}`,
    random: () => 1,
    wait: async (ms) => waits.push(ms),
    ...options,
  })
  return { sent, waits, client }
}

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}) =>
  () =>
    Response.json(body, { status, headers })
const busy = (status: number, code: string, headers = {}) =>
  json(status, { type: `urn:coffer:problem:${code}`, title: 'x', status, detail: 'Busy.' }, headers)

t.test(
  'a request has a key, a content type and a body, and its path is appended to the path of the server address',
  async (t) => {
    const { client, sent } = clientOf([json(201, TOKEN)], { prefix: 'bt' })
    const answer = await client.call(find('token create'), { type: 'token', data: 'x' })
    t.same(answer, { status: 201, result: TOKEN })
    t.match(sent, [
      {
        url: 'http://localhost/base/tokens',
        method: 'POST',
        headers: { 'bt-api-key': 'key', 'content-type': 'application/json', 'bt-idempotency-key': 'once-0' },
        body: '{"type":"token","data":"x"}',
      },
    ])
    const read = clientOf([json(200, TOKEN)])
    await read.client.call(find('token get'), { id: 'one' })
    t.notOk('svc-idempotency-key' in read.sent[0]!.headers, 'a GET has no idempotency key')
    for (const options of [{ key: 'a\r\nb' }, { key: '' }, { prefix: 'a:b' }])
      t.throws(() => clientOf([], options), { code: 'usage' })
  },
)

t.test(
  'if the server expects another header prefix, the error does not say that the key is wrong',
  async (t) => {
    const refused = { title: 'Unauthorized', detail: 'Send an API key.' }
    const challenge = (value: string) => json(401, refused, { 'www-authenticate': value })
    const ask = (value: string) => clientOf([challenge(value)]).client.call(find('token get'), { id: 'one' })
    await t.rejects(ask('ApiKey name="BT-API-KEY"'), {
      code: 'unauthenticated',
      message:
        "The server reads the API key from BT-API-KEY, and this client sent SVC-API-KEY. Set the option prefix to 'bt'.",
    })
    for (const value of ['ApiKey name="SVC-API-KEY"', 'ApiKey name="B;T-API-KEY"', 'Basic realm="x"'])
      await t.rejects(ask(value), { code: 'unauthenticated', message: refused.detail }, value)
  },
)

t.test(
  'if a server is busy, the client repeats the request with the same idempotency key, and waits at least as long as Retry-After says',
  async (t) => {
    const { client, sent, waits } = clientOf([
      busy(429, 'rate-limited', { 'retry-after': '7' }),
      busy(503, 'unavailable'),
      busy(409, 'conflict', { 'retry-after': '1' }),
      json(201, TOKEN),
    ])
    t.equal((await client.call(find('token create'), {})).status, 201)
    t.same(waits, [7000, 1000, 2000])
    t.equal(sent.map(({ headers }) => headers['svc-idempotency-key']).join(), 'once-0,once-0,once-0,once-0')
    const never = clientOf([busy(503, 'unavailable')])
    const unavailable = { code: 'unavailable', exit: 9, message: 'Busy.' }
    await t.rejects(never.client.call(find('token list'), {}), unavailable)
    t.same(never.waits, [500, 1000, 2000, 4000], 'five attempts')
    const late = clientOf([busy(429, 'rate-limited', { 'retry-after': '3600' })])
    await t.rejects(late.client.call(find('token list'), {}), {
      code: 'rate_limited',
      retryAfterSeconds: 3600,
    })
    t.same(late.waits, [], 'the client does not wait an hour')
    const final = clientOf([busy(409, 'conflict')])
    await t.rejects(final.client.call(find('token create'), {}), { code: 'conflict' })
    const reactor = clientOf([busy(503, 'reactor-failed')])
    const failed = { code: 'reactor_failed', status: 503 }
    await t.rejects(reactor.client.call(find('reactor react'), { id: 'r' }), failed)
    t.equal(reactor.sent.length, 1, 'the run of a reactor is not repeated')
  },
)

t.test(
  'the client converts a problem document into the error that a local vault would throw, even if the type of the problem is unknown',
  async (t) => {
    for (const [code, { status, exit }] of Object.entries(ERRORS)) {
      if (code === 'usage' || code === 'interrupted') continue
      const { client } = clientOf([busy(status, code.replaceAll('_', '-'), { 'retry-after': '3600' })])
      await t.rejects(client.call(find('token get'), { id: 'x' }), { code, exit, status }, code)
    }
    const by = async (name: string, status: number, body: unknown) => {
      const { client } = clientOf([json(status, body, { 'retry-after': '3600' })])
      return client.call(find(name), { id: 'x', parent_id: 'x' }).catch((error: unknown) => error)
    }
    for (const [name, status, body, expected] of [
      ['token get', 404, { title: 'Not Found' }, { code: 'not_found', message: 'Not Found' }],
      ['token get', 418, {}, { code: 'validation', exit: 2 }],
      ['token get', 502, 'bad gateway', { code: 'bad_gateway', exit: 9 }],
      ['reactor react', 500, {}, { code: 'reactor_failed', exit: 8 }],
      ['reactor react', 408, {}, { code: 'reactor_timeout', exit: 8 }],
      ['token get', 400, { type: 'urn:coffer:problem:interrupted' }, { code: 'validation' }],
      ['token get', 400, { type: 'urn:coffer:problem:constructor' }, { code: 'validation' }],
    ] as const)
      t.match(await by(name, status, body), expected)
    const errors = { 'query.size': ['too large'], 'data.x': ['bad', 7], 'query.data': 'odd' }
    t.match(await by('token list', 400, { detail: 'no', errors, instance: 'trace-1' }), {
      errors: { size: ['too large'], 'data.x': ['bad'], 'query.data': ['odd'] },
      traceId: 'trace-1',
    })
    const long = (await by('token get', 400, { detail: 'x'.repeat(1e6), instance: 'a\nb' })) as Error
    t.equal(long.message.length, 4000)
    t.match(long, { traceId: undefined })
  },
)

t.test('a response that does not match the API is refused, and the error says what to check', async (t) => {
  const refuse = async (answer: () => Response | Promise<Response>, message: RegExp, options = {}) => {
    const { client, sent } = clientOf([answer], options)
    await t.rejects(client.call(find('token create'), {}), { message }, String(message))
    t.equal(sent.length, 1)
  }
  const answerOf = (text: string, type: string) => () =>
    new Response(text, { headers: { 'content-type': type } })
  await refuse(answerOf('<html>', 'text/html'), /answer of the server is not JSON/)
  await refuse(answerOf('{"a":1,"a":2}', 'application/json'), /refused/)
  await refuse(() => new Response(null, { status: 307, headers: { location: 'http://evil' } }), /redirects/)
  const reset = new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } })
  await refuse(() => Promise.reject(reset), /ECONNRESET/)
  const told = /^The connection to the server failed \(Error\)\. The server may have performed/
  await refuse(() => Promise.reject(new Error('secret 4242')), told)
  const piece = new Uint8Array(8 * 1024 * 1024)
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue(piece) })
  await refuse(() => new Response(endless), /larger than the limit of 64 MiB/)
})

t.test('the wait for a response has a time limit, and an interrupt ends the wait', async (t) => {
  const fetch: Fetch = (_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  // A pending abort signal does not keep the process running. This timer keeps the process of the test running.
  const alive = setTimeout(() => {}, 10_000)
  t.teardown(() => clearTimeout(alive))
  const slow = clientOf([], { fetch, timeoutMs: 20 })
  await t.rejects(slow.client.call(find('token get'), { id: 'x' }), { code: 'request_timeout', exit: 9 })
  // The body of this response has no length and ends when its connection ends.
  const cut: Fetch = async (_, { signal }) => {
    async function* body() {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      yield* [Buffer.from('{}')]
    }
    return { status: 200, headers: new Headers({ 'content-type': 'application/json' }), body: body() }
  }
  const { client } = clientOf([], { fetch: cut, timeoutMs: 20 })
  await t.rejects(
    client.call(find('token get'), { id: 'x' }),
    { code: 'request_timeout' },
    'an incomplete response is refused',
  )
  const stop = new AbortController()
  const other = clientOf([], { fetch, signal: stop.signal })
  setImmediate(() => stop.abort())
  await t.rejects(other.client.call(find('token get'), { id: 'x' }), { code: 'interrupted', exit: 130 })
})
