/**
 * Tests events that wait for a webhook: they are stored in batches, are not read while they wait, and their number is
 * limited.
 */
import t, { type Test } from 'tap'
import type { DeliveryRecord } from '../../src/domain/records/records.js'
import { MAX_WAITING } from '../../src/operations/webhook/waiting.js'
import { openTestVault } from '../support/test-vault.js'
import { type Answer, startReceiver } from './receiver.js'

t.setTimeout(300_000)

const BLOCKED = 'https://not-allowed.example.com/events'
const TOKENS = 100
const EVENTS = ['token.read', 'token.created']
const MINUTE_MS = 60_000
/** Number of failed attempts in a row after which a destination counts as failing. */
const FAILING_AFTER = 100
const AT_ONCE = 16

/** Opens a vault as a server does. The vault may call this machine, and the test advances the clock of the vault. */
async function open(t: Test, answer?: Answer) {
  const receiver = await startReceiver(answer)
  const vault = await openTestVault()
  const { app, ask, clock } = vault
  app.configureReactors({ allowNet: ['127.0.0.1'] })
  t.teardown(async () => {
    await app.close()
    receiver.close()
  })
  const notices: string[] = []
  const listener = {
    notice: (text: string) => notices.push(text),
    fault: (error: unknown) => t.fail(String(error)),
  }
  await app.deliveries.resume(listener)
  const { number } = await app.tenant()
  const subscribe = (url: string, name = 'hook') => ask('webhook create', { name, url, events: EVENTS })
  const rows = async (kind: 'event_batch' | 'waiting_batch' | 'delivery') =>
    (await app.store.read((reader) => reader.locate(kind, number, { page: 1, size: 1 }))).total
  const settle = async () => {
    await app.deliveries.resume()
    await app.deliveries.settle()
  }
  return {
    ...vault,
    receiver,
    notices,
    number,
    subscribe,
    rows,
    settle,
    addTokens: async (count = TOKENS) => {
      for (let made = 0; made < count; made++)
        await ask('token create', { id: `token-${made}`, type: 'token', data: 'x' })
    },
    list: () => ask('token list', { size: TOKENS }),
    totalOf: async (input = {}) =>
      (await ask('webhook deliveries', { size: 1, ...input })).pagination.total_items!,
    /** Advances the clock, and does the work that a server does in this time. */
    pass: async (ms: number) => {
      clock.now += ms
      await settle()
    },
  }
}

t.test('one request stores its events once, whatever the number of webhooks', async (t) => {
  const { addTokens, list, subscribe, rows, totalOf, ask } = await open(t)
  await addTokens()
  for (const name of ['a', 'b', 'c', 'd', 'e']) await subscribe(BLOCKED, name)
  await list()
  t.strictSame([await rows('event_batch'), await rows('waiting_batch'), await rows('delivery')], [1, 5, 0])
  t.equal(await totalOf(), 5 * TOKENS, 'each event is listed for each webhook')
  const pages = [1, 2, 3, 4, 5].map((page) => ask('webhook deliveries', { page, size: TOKENS }))
  const data = (await Promise.all(pages)).flatMap((page) => page.data)
  t.equal(new Set(data.map(({ id }) => id)).size, 5 * TOKENS)
  const eventIds = data.map(({ payload }) => (payload as { event: { id: string } }).event.id)
  t.equal(new Set(eventIds).size, TOKENS, 'an event has the same id for all webhooks')
  const one = data[0]!
  t.strictSame((await ask('webhook deliveries', { id: one.id })).data, [one], 'a delivery is found by its id')
})

t.test(
  'while 50,000 deliveries wait for a host that is not allowed, they are neither read nor written',
  async (t) => {
    const vault = await open(t)
    const { app, ask, list, addTokens, subscribe, notices, pass, rows } = vault
    await addTokens()
    const names = ['a', 'b', 'c', 'd', 'e']
    const ids: string[] = []
    for (const name of names) ids.push((await subscribe(BLOCKED, name)).id)
    const [id = ''] = ids
    const lists = MAX_WAITING / TOKENS
    for (let count = 0; count < lists; count++) await list()
    await app.deliveries.settle()
    t.strictSame([await rows('waiting_batch'), await rows('delivery')], [lists * names.length, 0])
    t.match(await ask('webhook get', { id }), {
      status: 'enabled',
      destination: { state: 'blocked', since: String, failure: /cannot be called/ },
    })
    t.equal(notices.length, names.length)
    const counter = () => app.store.changeCounter(['webhook', 'delivery', 'waiting_batch', 'event_batch'])
    const [before, opened] = [counter(), watchOpened(app)]
    const looks = 20
    for (let count = 0; count < looks; count++) await pass(10 * MINUTE_MS)
    t.strictSame(opened.deliveries, [])
    // Each search for due events may read one batch for each webhook, and one more batch to find out which older
    // batches are left. The limit is three times this number, because units of work can run again over PostgreSQL.
    const most = looks * (names.length + 1) * 3
    t.ok(
      opened.batches.length <= most,
      `${opened.batches.length} batches were read, and at most ${most} are allowed`,
    )
    if (before !== undefined) t.equal(counter(), before, 'nothing is written')
    t.equal(notices.length, names.length, 'the operator is told once about each webhook')
    opened.batches.splice(0)
    await ask('token get', { id: 'token-1' })
    await ask('token create', { id: 'another', type: 'token', data: 'x' })
    await app.deliveries.settle()
    t.strictSame(opened, { deliveries: [], batches: [] }, 'a request reads none of the waiting deliveries')
    const { data, pagination } = await ask('webhook deliveries', { id, state: 'waiting', size: 100 })
    t.equal(pagination.total_items, MAX_WAITING + 2)
    for (const { state, attempts, failure } of data)
      t.match({ state, attempts, failure }, { state: 'waiting', attempts: 0, failure: /cannot be called/ })
  },
)

/**
 * Returns two lists, which collect the ids of the deliveries and of the batches that units of work open after this
 * call.
 */
function watchOpened({ store }: Awaited<ReturnType<typeof openTestVault>>['app']) {
  const opened = { deliveries: [] as string[], batches: [] as string[] }
  for (const name of ['read', 'write'] as const) {
    const run = store[name]
    store[name] = ((
      work: (unit: { open(location: object): Promise<{ id: string }> }) => unknown,
      ...rest: []
    ) =>
      (run as (...all: unknown[]) => unknown)(
        (unit: Parameters<typeof work>[0]) => {
          const before = unit.open.bind(unit)
          unit.open = async (location) => {
            const record = await before(location)
            const { kind } = location as { kind: string }
            if (kind === 'delivery') opened.deliveries.push(record.id)
            if (kind === 'waiting_batch') opened.batches.push(record.id)
            return record
          }
          return work(unit)
        },
        ...rest,
      )) as never
  }
  return opened
}

t.test(
  'as soon as the server may call the address of a webhook, it sends all waiting events, oldest first',
  async (t) => {
    const { app, ask, list, addTokens, clock, subscribe, receiver, totalOf } = await open(t)
    await addTokens(1)
    const hook = await subscribe(BLOCKED)
    const lists = 40
    for (let count = 0; count < lists; count++) {
      clock.now++
      await list()
    }
    await app.deliveries.settle()
    t.equal(receiver.received.length, 0)
    await ask('webhook update', { id: hook.id, name: 'hook', url: receiver.url, events: EVENTS })
    await receiver.waitFor(lists)
    await app.deliveries.settle()
    const times = receiver.received.map(({ body }) => Date.parse(body.event.timestamp as string))
    t.equal(new Set(times).size, lists)
    const first = Math.min(...times)
    // The server sends 16 deliveries at the same time, and they may arrive in any order.
    for (const [at, time] of times.entries())
      t.ok(time - first < at + AT_ONCE, `delivery ${at} is one of the oldest`)
    t.equal(await totalOf({ state: 'sent' }), lists)
    t.equal((await ask('webhook get', { id: hook.id })).destination, undefined)
  },
)

t.test(
  'if more events wait than the limit allows, the oldest events are dropped, and a notice reports this',
  async (t) => {
    const { app, ask, list, addTokens, subscribe, notices, totalOf, settle } = await open(t)
    await addTokens()
    const { id } = await subscribe(BLOCKED)
    const lists = MAX_WAITING / TOKENS + 30
    for (let count = 0; count < lists; count++) await list()
    await app.deliveries.settle()
    const waiting = await totalOf({ id })
    const { dropped } = await ask('webhook get', { id })
    t.ok(waiting >= MAX_WAITING && waiting <= MAX_WAITING * 1.1, `${waiting} wait`)
    t.equal(
      waiting + (dropped?.count ?? 0),
      lists * TOKENS,
      'each event is either listed as waiting or counted as dropped',
    )
    t.match((await ask('webhook list')).data, [{ dropped }])
    t.match(notices.at(-1), /Webhook "hook": .*dropped.*coffer webhook get/)
    const { data } = await ask('log list', { entity_type: 'webhook', size: 100 })
    const counts = data.map(({ message }) =>
      Number(/^Webhook events dropped: (\d+)$/.exec(message)?.[1] ?? 0),
    )
    t.equal(
      counts.reduce((sum, count) => sum + count, 0),
      dropped?.count,
    )
    const page = Math.ceil(waiting / 100)
    const [oldest] = (await ask('webhook deliveries', { id, page, size: 100 })).data.slice(-1)
    t.ok(oldest, 'the last page has the oldest event that is left')
    const others = notices.length
    await settle()
    t.equal(
      (await ask('webhook get', { id })).dropped?.count,
      dropped?.count,
      'no further events were dropped',
    )
    t.equal(notices.length, others)
  },
)

t.test(
  'after many failures in a row, a webhook gets one event at a time until it has received one event',
  async (t) => {
    const vault = await open(t, (response) => response.writeHead(500).end())
    const { app, ask, list, addTokens, subscribe, receiver, notices, pass, totalOf } = vault
    await addTokens()
    const { id } = await subscribe(receiver.url)
    for (let count = 0; count < 4; count++) await list()
    await app.deliveries.settle()
    const tried = receiver.received.length
    t.ok(tried >= FAILING_AFTER && tried < FAILING_AFTER + 2 * AT_ONCE, `${tried} attempts`)
    t.match(await ask('webhook get', { id }), {
      status: 'enabled',
      destination: { state: 'failing', since: String, failure: /500/, next_attempt_at: String },
    })
    t.match(notices, [/Webhook "hook": 100 attempts in a row failed/])
    const untried = async () => {
      const { data } = await ask('webhook deliveries', { id, size: 100 })
      return data.filter(({ attempts }) => attempts === 0)
    }
    t.match((await untried())[0], { state: 'waiting', failure: /500/, due_at: String })
    await pass(500)
    t.equal(receiver.received.length, tried, 'no delivery is due yet')
    receiver.state.answer = (response) => response.end()
    await pass(30_000)
    t.equal(
      await totalOf({ id, state: 'sent' }),
      4 * TOKENS,
      'the other events follow the first event that was received',
    )
    t.equal((await ask('webhook get', { id })).destination, undefined)
  },
)

t.test('the number of deliveries that wait for a retry is limited', async (t) => {
  const { app, ask, list, addTokens, clock, number, subscribe, notices } = await open(t)
  await addTokens()
  const { id, tenant_id } = await subscribe(BLOCKED)
  const excess = 30
  const created_at = new Date(clock.now).toISOString()
  const due_at = new Date(clock.now + 60 * MINUTE_MS).toISOString()
  const event = { id: 'event', type: 'token.read', timestamp: created_at, trace_id: 'trace', data: {} }
  const common = { tenant_id, webhook_id: id, event, attempts: 1, due_at, created_at, queued_at: created_at }
  const ids = Array.from({ length: MAX_WAITING + excess }, () => app.createUuid())
  for (let from = 0; from < ids.length; from += 500)
    await app.store.write(async (writer) => {
      for (const each of ids.slice(from, from + 500))
        await writer.insert('delivery', number, { id: each, ...common, state: 'waiting' })
    })
  for (let count = 0; count < 10; count++) await list()
  await app.deliveries.settle()
  const find = (each = '') => app.store.read((reader) => reader.get('delivery', number, each))
  t.equal((await ask('webhook get', { id })).dropped?.count, excess)
  t.strictSame([await find(ids[0]), await find(ids[excess - 1])], [undefined, undefined], 'the oldest')
  t.ok(await find(ids[excess]))
  t.match(notices.at(-1), /the oldest 30 were dropped/)
})

t.test(
  'events that wait when a webhook is disabled are dropped, and can be sent again by their ids',
  async (t) => {
    const { app, ask, list, addTokens, subscribe, receiver, totalOf } = await open(t)
    await addTokens(3)
    const hook = await subscribe(BLOCKED)
    await list()
    await app.deliveries.settle()
    const body = { id: hook.id, name: 'hook', url: receiver.url, events: EVENTS }
    await ask('webhook update', { ...body, status: 'disabled' })
    await app.deliveries.settle()
    t.equal(await totalOf({ state: 'dropped' }), 3)
    await ask('webhook update', body)
    await app.deliveries.settle()
    t.equal(receiver.received.length, 0)
    const [{ id } = { id: '' }] = (await ask('webhook deliveries', { state: 'dropped' })).data
    await ask('webhook resend', { id })
    await receiver.waitFor(1)
    await app.deliveries.settle()
    t.match((await ask('webhook deliveries', { id })).data, [{ id, state: 'sent' }])
  },
)

t.test('deliveries that an older version stored are sent', async (t) => {
  const { app, ask, subscribe, receiver, number, clock, totalOf, settle } = await open(t)
  const hook = await subscribe(receiver.url)
  const created_at = new Date(clock.now).toISOString()
  const times = { due_at: created_at, created_at, queued_at: created_at }
  const old = (id: string, type: string): DeliveryRecord => {
    const event = { id: app.createUuid(), type, timestamp: created_at, trace_id: 'trace', data: {} }
    const to = { id, tenant_id: hook.tenant_id, webhook_id: hook.id, event }
    return { ...to, state: 'waiting', attempts: 0, ...times }
  }
  const ids = [app.createUuid(), app.createUuid()] as const
  await app.store.write(async (writer) => {
    await writer.insert('delivery', number, old(ids[0], 'token.read'))
    await writer.insert('delivery', number, old(ids[1], 'token.created'))
  })
  t.match((await ask('webhook deliveries', { event: 'token.read' })).data, [{ id: ids[0] }])
  t.equal(await totalOf({ event: 'token.created' }), 1)
  await settle()
  t.equal(receiver.received.length, 2)
  t.equal(await totalOf({ state: 'sent' }), 2)
})

t.test(
  'a batch of events is removed when no event is left to send, and is kept while events wait',
  async (t) => {
    const { app, list, addTokens, subscribe, receiver, rows, pass, totalOf } = await open(t)
    await addTokens(3)
    await subscribe(receiver.url, 'received')
    await list()
    await receiver.waitFor(3)
    await app.deliveries.settle()
    t.strictSame([await rows('event_batch'), await rows('waiting_batch')], [1, 0])
    await pass(10 * MINUTE_MS)
    t.equal(await rows('event_batch'), 0)
    await subscribe(BLOCKED, 'blocked')
    await list()
    await pass(10 * MINUTE_MS)
    t.strictSame(
      [await rows('event_batch'), await rows('waiting_batch')],
      [1, 1],
      'one webhook still waits for the events',
    )
    t.equal(await totalOf({ state: 'waiting' }), 3)
  },
)
