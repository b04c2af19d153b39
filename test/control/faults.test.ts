/** Each kind of fault, as Node's fetch and curl see it. */
import { execFile } from 'node:child_process'
import { STATUS_CODES } from 'node:http'
import { promisify } from 'node:util'
import t from 'tap'
import { startServer } from '../../src/index.js'
import { readAnswers, sendRaw } from '../http/socket.js'

const run = promisify(execFile)
const TOKEN = { id: 'long', type: 'token', data: 'x'.repeat(1000), mask: '{{ data }}' } as const

const server = await startServer({ seed: { tokens: [TOKEN] } })
t.teardown(() => server.stop())
const { faults } = server.control
const KEY = server.keys.private!
const headers = { 'svc-api-key': KEY, 'content-type': 'application/json' }

/** What a client saw: the status and the body, or how the connection ended. */
type Seen = { status: number; text: string; retryAfter?: string | undefined } | { failure: string }
type Client = (path: string, body?: string) => Promise<Seen>

const CLIENTS: Record<string, Client> = {
  fetch: async (path, body) => {
    try {
      const init = body === undefined ? { headers } : { headers, method: 'POST', body }
      const answer = await fetch(server.url + path, init)
      const retryAfter = answer.headers.get('retry-after') ?? undefined
      return { status: answer.status, text: await answer.text(), retryAfter }
    } catch (error) {
      return { failure: String((error as { cause?: { code?: string } }).cause?.code) }
    }
  },
  curl: async (path, body) => {
    const post = body === undefined ? [] : ['-d', body, '-H', 'Content-Type: application/json']
    const line = ['-s', '-D', '-', `${server.url}${path}`, '-H', `SVC-API-KEY: ${KEY}`, ...post]
    try {
      const { stdout } = await run('curl', line)
      const [head = '', text = ''] = stdout.split('\r\n\r\n')
      const retryAfter = /^retry-after: (.*)$/im.exec(head)?.[1]?.trim()
      return { status: Number(head.split(' ')[1]), text, retryAfter }
    } catch (error) {
      return { failure: String((error as { code: number }).code) }
    }
  },
}

/** How each of them tells of a connection that ends before the answer, and within it. */
const CUT: Record<string, [start: RegExp, within: RegExp]> = {
  fetch: [/^(UND_ERR_SOCKET|ECONNRESET)$/, /^(UND_ERR_SOCKET|ECONNRESET)$/],
  curl: [/^52$/, /^18$/],
}

for (const [name, ask] of Object.entries(CLIENTS)) {
  t.test(`faults as ${name} sees them`, async (t) => {
    const [atStart, within] = CUT[name]!
    await server.control.reset()
    const get = () => ask('/tokens/long')
    t.match(await get(), { status: 200, text: /x{1000}/ })

    await faults.set({
      rules: [{ operation: 'token get', kind: 'status', status: 503, times: 2, detail: 'Busy.' }],
    })
    for (const status of [503, 503, 200]) t.match(await get(), { status })
    await faults.set({ rules: [{ kind: 'status', status: 429, retry_after: 7, every: 2 }] })
    t.match(await get(), { status: 200 })
    const limited = await get()
    t.match(limited, { status: 429, retryAfter: '7' })
    t.match(JSON.parse('text' in limited ? limited.text : ''), {
      type: 'urn:coffer:problem:rate-limited',
      title: 'Too Many Requests',
      status: 429,
      instance: /./,
    })
    t.match(await faults.list(), [{ matched: 2, applied: 1 }])

    await faults.set({ rules: [{ path: '/tokens/l*', kind: 'delay', delay_ms: 300 }] })
    const started = performance.now()
    t.match(await get(), { status: 200 })
    t.ok(performance.now() - started >= 290, 'it took its time')

    await faults.set({ rules: [{ method: 'POST', kind: 'drop' }] })
    const create = (id: string) => ask('/tokens', JSON.stringify({ id, type: 'token', data: { kind: 'a' } }))
    t.match(await create('dropped'), { failure: atStart })
    await faults.set({ rules: [{ method: 'POST', kind: 'lose', body: { 'data.kind': 'a' } }] })
    t.match(await create('lost'), { failure: atStart })
    await faults.set({ rules: [{ kind: 'cut', bytes: 100, headers: { 'SVC-API-KEY': KEY } }] })
    t.match(await get(), { failure: within })
    await faults.clear()
    t.match(await ask('/tokens/dropped'), { status: 404 }, 'nothing was done')
    t.match(await ask('/tokens/lost'), { status: 200 }, 'the work was done')

    await faults.set({
      rules: [
        { method: 'POST', kind: 'drop', body: { type: 'card' } },
        { headers: { a: 'b' }, kind: 'drop' },
      ],
    })
    t.match(await create('other'), { status: 201 }, 'conditions that do not hold')
    const seen = (await server.control.requests.list()).map(({ status, fault }) => `${status} ${fault ?? ''}`)
    for (const each of ['503 status', '429 status', '200 delay', '0 drop', '0 lose', '200 cut', '201 '])
      t.ok(seen.includes(each), each)
  })
}

/** RFC 9110 renamed them; Node has the names of before. */
const TITLES: Record<number, string> = { 413: 'Content Too Large', 422: 'Unprocessable Content' }

t.test('the problem of a status is the one of that status', async (t) => {
  const statuses = [
    400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 415, 418, 421, 422, 429, 431, 451, 499, 500, 501,
  ]
  for (const status of [...statuses, 502, 503, 504]) {
    await faults.set({ rules: [{ kind: 'status', status }] })
    const seen = await CLIENTS.fetch!('/tokens/long')
    t.equal('status' in seen && seen.status, status)
    const problem = JSON.parse('text' in seen ? seen.text : '')
    t.equal(problem.status, status)
    t.equal(problem.title, TITLES[status] ?? STATUS_CODES[status] ?? 'Unknown Status')
    t.equal(/:internal$/.test(problem.type), status === 500, `${status} ${problem.type}`)
  }
  await faults.clear()
})

t.test('rules that say too little are refused', async (t) => {
  for (const [rule, place] of [
    [{ kind: 'status' }, 'rules[0].status'],
    [{ kind: 'delay' }, 'rules[0].delay_ms'],
    [{ kind: 'explode' }, 'rules[0].kind'],
    [{ kind: 'drop', pth: '/' }, 'rules[0].pth'],
  ] as const) {
    const refused = await faults.set({ rules: [rule as never] }).catch((error: object) => error)
    t.match(refused, { code: 'validation', errors: { [place]: [/./] } }, place)
  }
})

t.test('a body that is none is answered as ever, also where a rule asks for what is in it', async (t) => {
  const fields = Object.entries({ ...headers, Host: 'localhost', 'Transfer-Encoding': 'chunked' })
  const line = `POST /tokens HTTP/1.1\r\n${fields.map((each) => `${each.join(': ')}\r\n`).join('')}\r\nzz\r\n`
  for (const rules of [[], [{ kind: 'drop' as const, body: { type: 'card' } }]]) {
    await faults.set({ rules })
    const [answer] = readAnswers(await sendRaw(Number(new URL(server.url).port), line))
    t.equal(answer?.status, 400)
    t.match(JSON.parse(answer?.body ?? ''), { detail: /HTTP/ })
  }
  await faults.set({ rules: [] })
})
