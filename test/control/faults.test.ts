/** Tests of each kind of fault, as a client sees the fault. */
import { STATUS_CODES } from 'node:http'
import t from 'tap'
import { startServer } from '../../src/index.js'
import { readAnswers, sendRaw } from '../http/socket.js'

const TOKEN = { id: 'long', type: 'token', data: 'x'.repeat(1000), mask: '{{ data }}' } as const

const server = await startServer({ seed: { tokens: [TOKEN] } })
t.teardown(() => server.stop())
const { faults } = server.control
const KEY = server.keys.private!
const headers = { 'svc-api-key': KEY, 'content-type': 'application/json' }

const CUT = { failure: /^(UND_ERR_SOCKET|ECONNRESET)$/ }

/** Returns the answer that a client gets: status and body, or how the connection ended. */
async function ask(path: string, body?: string) {
  try {
    const init = body === undefined ? { headers } : { headers, method: 'POST', body }
    const answer = await fetch(server.url + path, init)
    const retryAfter = answer.headers.get('retry-after')
    return { status: answer.status, text: await answer.text(), retryAfter }
  } catch (error) {
    return { failure: String((error as { cause?: { code?: string } }).cause?.code), text: '' }
  }
}
const get = () => ask('/tokens/long')

t.test('each kind of fault applies to the requests that its rule selects', async (t) => {
  await faults.set({
    rules: [{ operation: 'token get', kind: 'status', status: 503, times: 2, detail: 'Busy.' }],
  })
  for (const status of [503, 503, 200]) t.match(await get(), { status })
  await faults.set({ rules: [{ kind: 'status', status: 429, retry_after: 7, every: 2 }] })
  t.match(await get(), { status: 200 })
  const limited = await get()
  t.match(limited, { status: 429, retryAfter: '7' })
  t.match(JSON.parse(limited.text), { type: 'urn:coffer:problem:rate-limited', title: 'Too Many Requests' })
  t.match(await faults.list(), [{ matched: 2, applied: 1 }])

  await faults.set({ rules: [{ path: '/tokens/l*', kind: 'delay', delay_ms: 300 }] })
  const started = performance.now()
  t.match(await get(), { status: 200 })
  t.ok(performance.now() - started >= 290, 'the delay was applied')

  await faults.set({ rules: [{ method: 'POST', kind: 'drop' }] })
  const create = (id: string) => ask('/tokens', JSON.stringify({ id, type: 'token', data: { kind: 'a' } }))
  t.match(await create('dropped'), CUT)
  await faults.set({ rules: [{ method: 'POST', kind: 'lose', body: { 'data.kind': 'a' } }] })
  t.match(await create('lost'), CUT)
  await faults.set({ rules: [{ kind: 'cut', bytes: 100, headers: { 'SVC-API-KEY': KEY } }] })
  t.match(await get(), CUT)
  await faults.clear()
  t.match(await ask('/tokens/dropped'), { status: 404 }, 'the request was not performed')
  t.match(await ask('/tokens/lost'), { status: 200 }, 'the request was performed')

  await faults.set({
    rules: [
      { method: 'POST', kind: 'drop', body: { type: 'card' } },
      { headers: { a: 'b' }, kind: 'drop' },
    ],
  })
  t.match(
    await create('other'),
    { status: 201 },
    'the fault does not apply if the conditions of its rule are not met',
  )
  const seen = (await server.control.requests.list()).map(({ status, fault }) => `${status} ${fault ?? ''}`)
  for (const each of ['503 status', '429 status', '200 delay', '0 drop', '0 lose', '200 cut', '201 '])
    t.ok(seen.includes(each), each)
})

/** For these statuses, Node has the names from before RFC 9110. */
const TITLES: Record<number, string> = { 413: 'Content Too Large', 422: 'Unprocessable Content' }

t.test('a problem document of an injected fault has the type and title of its status', async (t) => {
  for (const status of [400, 401, 408, 413, 418, 422, 451, 499, 500, 501, 504]) {
    await faults.set({ rules: [{ kind: 'status', status }] })
    const seen = await get()
    t.equal(seen.status, status)
    const problem = JSON.parse(seen.text)
    t.equal(problem.status, status)
    t.equal(problem.title, TITLES[status] ?? STATUS_CODES[status] ?? 'Unknown Status')
    t.equal(/:internal$/.test(problem.type), status === 500, `${status} ${problem.type}`)
  }
  await faults.clear()
})

t.test('fault rules that have no effect or unknown values are refused', async (t) => {
  const destinations = ['never', 199, '1 d', { ms: 1 }].map(
    (destination) => [{ destination }, 'destination'] as const,
  )
  for (const [rule, place] of [
    [{}, 'kind'],
    [{ kind: 'status' }, 'status'],
    [{ kind: 'delay' }, 'delay_ms'],
    [{ kind: 'explode' }, 'kind'],
    [{ kind: 'drop', pth: '/' }, 'pth'],
    [{ kind: 'destination' }, 'destination'],
    [{ kind: 'drop', destination: 502 }, 'destination'],
    ...destinations,
  ] as const) {
    const errors = { [`rules[0].${place}`]: [/./] }
    await t.rejects(
      faults.set({ rules: [rule as never] }),
      { code: 'validation', errors },
      JSON.stringify(rule),
    )
  }
})

t.test(
  'an invalid body gets the usual refusal, even if a fault rule has a condition on the body',
  async (t) => {
    const fields = Object.entries({ ...headers, Host: 'localhost', 'Transfer-Encoding': 'chunked' })
    const line = `POST /tokens HTTP/1.1\r\n${fields.map((each) => `${each.join(': ')}\r\n`).join('')}\r\nzz\r\n`
    for (const rules of [[], [{ kind: 'drop' as const, body: { type: 'card' } }]]) {
      await faults.set({ rules })
      const [answer] = readAnswers(await sendRaw(Number(new URL(server.url).port), line))
      t.equal(answer?.status, 400)
      t.match(JSON.parse(answer?.body ?? ''), { detail: /HTTP/ })
    }
    await faults.set({ rules: [] })
  },
)
