import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { request } from './process.js'
import { askAtOnce, askUnread, repeat, startHeavy, weigh } from './weight.js'

/** Limits for the longest response time and the highest memory of the server. */
const MAX_HEALTH_MS = 1_500
const MAX_MB = 800
const TOKENS = 20

t.setTimeout(400_000)
const heavy = await startHeavy(TOKENS)
const { server, key } = heavy
const { announcement } = server
t.teardown(() => heavy.stop())

function checkWeight(t: Test, { worstHealthMs, peakMB }: Awaited<ReturnType<typeof weigh>>) {
  t.ok(worstHealthMs < MAX_HEALTH_MS, `/healthz took ${worstHealthMs} ms`)
  t.ok(peakMB < MAX_MB, `the process used ${peakMB} MB`)
}

async function countLogs(): Promise<number> {
  const manager = announcement.applications.management!.key
  return (await request(announcement, manager, 'GET /logs?size=1')).json.pagination.total_items
}

t.test('twenty large pages that are requested at once do not delay other responses', async (t) => {
  for (const size of [100, 16]) {
    const before = await countLogs()
    const work = () => askAtOnce(announcement, repeat(`GET /tokens?size=${size}`, 20), key)
    const weighed = await weigh(heavy, work)
    const { 200: answered = 0, 400: refused = 0, 503: postponed = 0 } = weighed.statuses
    t.equal(answered + refused + postponed, 20, JSON.stringify(weighed.statuses))
    if (size === 100) t.equal(answered, 0)
    else t.ok(answered > 0 && refused === 0, 'the server answers as many pages as it has room for')
    checkWeight(t, weighed)
    t.equal(await countLogs(), before + answered * size, 'only pages that were returned are logged')
  }
})

t.test('a reactor whose client reads many pages at once does not delay other responses', async (t) => {
  const manager = announcement.applications.management!.key
  const make = async (line: string, body: object) =>
    (await request(announcement, manager, line, body)).json.id
  const code = `module.exports = async ({ svc }) => {
    const list = (size) => svc.tokens.list({ size }).then(({ data }) => data.length, (error) => error.status)
    const sizes = [100, 100, 100, 100, 100, 100, 100, 100, 4, 4, 4, 4, 4, 4, 4, 4]
    return { raw: await Promise.all(sizes.map(list)) }
  }`
  const formula = await make('POST /reactor-formulas', { name: 'lists', type: 'private', code })
  const application = { id: announcement.applications.private!.id }
  const reactor = await make('POST /reactors', { name: 'lists', formula: { id: formula }, application })
  const before = await countLogs()
  let raw: unknown
  const weighed = await weigh(heavy, async () => {
    const { json } = await request(announcement, key, `POST /reactors/${reactor}/react`, { args: {} })
    raw = json.raw
    return {}
  })
  t.same(raw, [...Array(8).fill(400), ...Array(8).fill(4)])
  t.equal(await countLogs(), before + 8 * 4 + 1)
  checkWeight(t, weighed)
})

t.test('responses that clients do not read use no more memory than the limit', async (t) => {
  const sockets = askUnread(announcement, { line: 'GET /tokens?size=16', key, connections: 80, times: 3 })
  const weighed = await weigh(heavy, async () => {
    await wait(2_000)
    return {}
  })
  // The memory limit can have room for one of these three responses, but not for all of them.
  const lines = repeat('GET /tokens?size=16', 3)
  const late = await Promise.all(lines.map((line) => request(announcement, key, line)))
  const postponed = late.find(({ status }) => status === 503)
  t.equal(postponed?.headers.get('retry-after'), '1')
  t.match(postponed?.json, { type: 'urn:coffer:problem:unavailable' })
  t.equal(
    (await request(announcement, key, 'GET /permissions')).status,
    200,
    'small responses are still sent',
  )
  for (const socket of sockets) socket.destroy()
  checkWeight(t, weighed)
})
