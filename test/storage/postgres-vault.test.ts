/**
 * The tests open a vault in PostgreSQL with several engines at once. In production each engine belongs to one server.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { createVaultAnswerer } from '../../src/control/answerer.js'
import { ControlState } from '../../src/control/control-state.js'
import type { Clock } from '../../src/crypto/ports.js'
import { MailChannel } from '../../src/delivery/mail-channel.js'
import { DeliveryQueue } from '../../src/delivery/queue.js'
import type { Delivery, Message } from '../../src/delivery/smtp.js'
import { KINDS } from '../../src/domain/records/records.js'
import { CofferError } from '../../src/errors.js'
import { ContainerSets } from '../../src/framework/container-sets.js'
import { perform } from '../../src/framework/perform.js'
import { registry } from '../../src/operations/all.js'
import { parseStoreAddress } from '../../src/storage/postgres/address.js'
import { withSnapshot } from '../../src/storage/postgres/copies.js'
import { Connection, ConnectionPool, TIMEOUT_MS } from '../../src/storage/postgres/pool.js'
import type { App } from '../../src/vault/app.js'
import { copyVault, restoreVault } from '../../src/vault/copy.js'
import { changeKeySlots } from '../../src/vault/offline.js'
import { createVault, openVault } from '../../src/vault/open.js'
import { rekey as changeKeys } from '../../src/vault/rekey.js'
import { LEASE_MS } from '../../src/vault/shared-claims.js'
import { isSigned, startReceiver } from '../delivery/receiver.js'
import { findLeaks, type Haystack } from '../support/leak.js'
import { statusOf, steerRuns } from '../support/steered-runs.js'
import { createKey, locate, ask as tryAsk } from '../support/vault.js'
import { CuttingProxy } from './cutting-proxy.js'
import { type OwnServer, query, startPostgres } from './postgres-server.js'

const server = await startPostgres()
t.teardown(() => server.stop())

/**
 * Creates a vault and opens it `count` times. The function `sql` runs a statement without an engine and returns its
 * rows.
 */
async function openVaults(t: Test, count: number, clock?: Clock, notices: string[] = []) {
  const address = await server.createDatabase()
  const key = createKey()
  const apps = [await createVault(locate(address, clock), 'first', key.create)]
  const notice = (text: string) => notices.push(text)
  while (apps.length < count) apps.push(await openVault({ ...locate(address, clock), notice }, key.choose))
  t.teardown(() => Promise.allSettled(apps.map((app) => app.close())))
  const [one, two] = apps as [App, App]
  const sql = async (text: string, ...values: unknown[]) => (await query(address, text, values)).rows
  const open = async (choose = key.choose) => {
    const app = await openVault(locate(address), choose)
    t.teardown(() => app.close())
    return app
  }
  return { address, apps, one, two, key, sql, open }
}

/** Sends a request like {@link tryAsk}, but returns the code of the error if the request fails. */
const ask: typeof tryAsk = (...asked) =>
  tryAsk(...asked).catch((error) => {
    if (error instanceof CofferError) return error.code
    throw error
  })

const token = (id: string, number = '4242424242424242') => ({ id, type: 'card', data: { number } })
/** Runs `work` and returns the names of the statements that `work` sent, with one list for each round trip. */
async function sentBy<T>(work: () => Promise<T>) {
  const sent: string[][] = []
  const isOwn = new AsyncLocalStorage<boolean>()
  const { send } = Connection.prototype
  Connection.prototype.send = async function (statements) {
    if (isOwn.getStore()) sent.push(statements.map(({ name, text }) => name ?? text))
    return send.call(this, statements)
  }
  const result = await isOwn.run(true, work).finally(() => Object.assign(Connection.prototype, { send }))
  return { result, sent }
}

/** Answers requests such as `GET /tokens` in the same way as `coffer serve`. */
function serve(app: App, key = '') {
  const answer = createVaultAnswerer({}, { control: new ControlState(app), prefix: 'svc' })
  return (line: string, body?: object) => {
    const [method, target] = line.split(' ') as [string, string]
    const headers = { 'svc-api-key': key, 'content-type': 'application/json' }
    return answer({
      method,
      target,
      headers,
      readBody: async () => body && Buffer.from(JSON.stringify(body)),
    })
  }
}

const createApp = (app: App, permissions: string[], more = {}) =>
  ask(app, 'app create', { name: 'app', type: 'private', permissions, ...more })

const pause = (ms = 20) => new Promise((resolve) => setTimeout(resolve, ms))

t.test(
  'a GET request takes one round trip, and is refused after another server has removed the right of its key',
  async (t) => {
    const { one, two } = await openVaults(t, 2)
    await ask(one, 'token create', token('kept'))
    const rules = (transform: string) => [
      {
        description: '',
        priority: 1,
        container: '/',
        transform,
        permissions: ['token:read', 'token:create'],
      },
    ]
    const app = await createApp(one, [], { rules: rules('reveal') })
    const send = serve(one, app.key)
    const get = () => sentBy(() => send('GET /tokens/kept'))
    const post = () =>
      sentBy(() => send('POST /tokens', { type: 'card', data: { number: '5555555555554444' } }))
    /**
     * Repeats a request until the server sends only the statement `name` for the request. A request needs more
     * statements after the first log record of its tenant on a server: this record changes the tenant, so the server
     * reads the tenant again. A request needs no statement of its own if another unit of work has sent a statement that
     * both share.
     */
    const settled = async (ask: typeof get, name: string) => {
      for (let left = 10; ; left--) {
        const found = await ask()
        if (`${found.sent}` === name || left === 0) return found
      }
    }
    const { result, sent } = await settled(get, 'get')
    t.strictSame(sent, [['get']])
    t.match(JSON.parse(result.body), { id: 'kept', data: { number: '4242424242424242' } })
    t.strictSame((await settled(post, 'write')).sent, [['write']], 'a POST takes one statement')
    const change = async (input: object) =>
      t.equal((await ask(two, 'app update', { id: app.id, name: 'app', ...input })).id, app.id)
    await change({ rules: rules('redact') })
    const redacted = await get()
    t.equal(redacted.result.status, 200)
    t.notMatch(redacted.result.body, '4242', 'the second answer follows the new rule')
    t.ok(redacted.sent.length > 1)
    t.strictSame((await settled(get, 'get')).sent, [['get']])
    await change({ rules: [], permissions: ['token:create'] })
    t.equal((await get()).result.status, 403)
    await change({ rules: rules('reveal') })
    t.equal(
      (await get()).result.status,
      200,
      'a server that cached a refusal allows the request after another server has granted the right',
    )
    await ask(two, 'app delete', { id: app.id })
    t.equal((await get()).result.status, 401)
  },
)

t.test('reactor code on one server loses the rights that another server removes', async (t) => {
  const { one, two } = await openVaults(t, 2)
  await ask(one, 'token create', token('kept'))
  const runs = steerRuns(one)
  const play = async () => {
    const [invoker, bound] = [await createApp(one, ['reactor:invoke']), await createApp(one, ['token:read'])]
    const given = { name: 'r', code: 'x', application: { id: bound.id } }
    return { invoker, bound, id: (await ask(one, 'reactor create', given)).id }
  }
  const removals = [
    [({ bound }) => ask(two, 'app delete', { id: bound.id }), 401, 200],
    [({ invoker }) => ask(two, 'app delete', { id: invoker.id }), 401, 401],
    [({ id }) => ask(two, 'reactor patch', { id, application: null }), 401, 200],
  ] satisfies [(cast: Awaited<ReturnType<typeof play>>) => Promise<unknown>, number, number][]
  for (const [remove, call, answer] of removals) {
    const cast = await play()
    const answering = statusOf(tryAsk(one, 'reactor react', { id: cast.id }, cast.invoker.key))
    const run = await runs.next()
    t.equal(await run.call('tokens.retrieve', 'kept'), 200)
    await remove(cast)
    t.equal(await run.call('tokens.retrieve', 'kept'), call)
    run.end()
    t.equal(await answering, answer)
  }
  const { invoker, id } = await play()
  for (let count = 0; count < 5; count++) await tryAsk(one, 'reactor react-async', { id }, invoker.key)
  const four = await Promise.all([1, 2, 3, 4].map(() => runs.next()))
  await ask(two, 'app delete', { id: invoker.id })
  for (const run of four) run.end()
  await one.background.idle()
  t.match(runs.counts(), { started: 0 }, 'the fifth run had to wait, and now it is not started')
})

t.test(
  'concurrent operations on different servers have the same result as operations one after another',
  async (t) => {
    const { apps } = await openVaults(t, 3)
    const all = <T>(work: (app: App, index: number) => Promise<T>) => Promise.all(apps.map(work))
    for (let round = 0; round < 2; round++) {
      const id = `same-${round}`
      const made = await all((app) => ask(app, 'token create', token(id)))
      t.strictSame(made.map((each) => each.id ?? each).sort(), ['conflict', 'conflict', id].sort(), 'one id')
      const data = `40000000000000${String(10 + round)}`
      const same = await all((app) =>
        ask(app, 'token create', { type: 'token', data, deduplicate_token: true }),
      )
      t.equal(new Set(same.map((each) => each.id)).size, 1, 'one fingerprint')
      const [gone, changed] = await all((app, index) =>
        ask(app, `token ${index === 0 ? 'delete' : 'update'}`, {
          ...{ id, ...(index > 0 && { metadata: { at: `${index}` } }) },
        }),
      )
      t.equal(gone, undefined)
      t.ok(
        changed === 'not_found' || changed.id === id,
        'the update ran before the deletion or found no token',
      )
      t.equal(await ask(apps[1]!, 'token get', { id }), 'not_found')
      const invited = await ask(apps[0]!, 'invite create', { email: `ada-${round}@example.com` })
      const { link } = await ask(apps[0]!, 'invite outbox', { id: invited.id })
      const accepted = await all((app) => ask(app, 'invite accept', { link }))
      t.strictSame(
        accepted.filter((each) => each.id === undefined),
        ['not_found', 'not_found'],
      )
    }
  },
)

t.test(
  'a container set is not removed if another server creates a token with the set meanwhile',
  async (t) => {
    const clock = { now: Date.now() }
    const { one, two } = await openVaults(t, 2, () => clock.now)
    const rule = { priority: 1, container: '/x/', transform: 'mask', permissions: ['token:read'] }
    const app = await createApp(two, [], { rules: [rule] })
    const SET = { id: '["/x/y/"]', containers: ['/x/y/'] }
    const stored = () => two.store.read((reader) => reader.get('containers', 1, SET.id))
    const create = async (id: string) => {
      t.match(await ask(two, 'token create', { id, type: 'token', data: id, containers: ['/x/y/'] }), { id })
    }
    const remove = (id: string) => ask(two, 'token delete', { id })
    /**
     * Examines the container sets on the first server. The second server runs `meanwhile` before the unit of the first
     * server commits.
     */
    const examine = async (meanwhile?: () => Promise<void>) => {
      let other = meanwhile
      const write: typeof one.store.write = (work, durability) =>
        one.store.write(async (writer) => {
          const result = await work(writer)
          const act = other
          other = undefined
          await act?.()
          return result
        }, durability)
      await new ContainerSets({ ...one.store, write }).examineAll()
      t.equal(other, undefined, 'the removal changes a set')
    }
    const listed = async () => {
      const { data, pagination } = await ask(two, 'token list', {}, app.key)
      return [data.map(({ id }: { id: string }) => id), pagination.total_items]
    }

    await create('first')
    await remove('first')
    await examine(() => create('second'))
    t.match(
      await stored(),
      { unused_since: clock.now },
      'the set is marked as unused, because both servers examined it at the same time',
    )
    clock.now += 3 * 60_000
    await examine()
    t.strictSame(await stored(), SET, 'the mark is removed, because a token has the set')
    t.strictSame(await listed(), [['second'], 1])

    await remove('second')
    await examine()
    t.match(await stored(), { unused_since: clock.now })
    clock.now += 3 * 60_000
    await examine(() => create('third'))
    t.strictSame(await stored(), SET, 'a new token removes the mark')
    t.strictSame(await listed(), [['third'], 1])

    await remove('third')
    await examine()
    clock.now += 3 * 60_000
    await examine()
    t.equal(await stored(), undefined, 'the set is removed if nothing else changes it')
    await create('fourth')
    t.strictSame(await listed(), [['fourth'], 1])
  },
)

t.test('a tenant that is deleted while other servers write to it leaves no rows', async (t) => {
  const { apps, sql } = await openVaults(t, 3)
  const as = { reveal: false, tenant: 'other' }
  await ask(apps[0]!, 'tenant create', { name: 'other' })
  const { number } = await apps[0]!.tenant('other')
  const input = { name: 'app', type: 'private', permissions: ['token:create'] }
  const { key } = (await apps[0]!.ask({ operation: 'app create', input, as })).result as { key: string }
  // Each writer repeats its request until the key or the tenant is missing and the request is refused.
  let hasFailed = false
  const write = async (app: App, name: string) => {
    for (let count = 0; !hasFailed; count++) {
      const made = await ask(app, 'token create', token(`${name}-${count}`), key)
      if (/^(unauthenticated|not_found)$/.test(made)) return
      if (typeof made === 'string') t.equal(made, 'unavailable')
    }
  }
  const writers = apps.slice(1).flatMap((app, at) => [1, 2, 3].map((name) => write(app, `${at}-${name}`)))
  await ask(apps[0]!, 'token create', token('between'), key)
  const { status } = await apps[0]!.ask({ operation: 'tenant delete', input: {}, as }).catch((error) => {
    hasFailed = true
    return { status: error.code }
  })
  t.equal(status, 204, 'the deletion succeeds although the writes are faster')
  await Promise.all(writers)
  for (const app of apps)
    t.equal(
      await ask(app, 'token create', token('late'), key),
      'unauthenticated',
      'no write succeeds after the deletion',
    )
  for (const app of apps) await app.close()
  for (const table of ['rows', 'keys', 'waiting'])
    t.strictSame(await sql(`select * from coffer_${table} where tenant = $1`, number), [])
})

t.test(
  'an idempotency key that one server has claimed cannot be claimed by another server until the lease ends',
  async (t) => {
    const clock = { now: Date.now() }
    const { one, two } = await openVaults(t, 2, () => clock.now)
    const search = registry.find('token search')!
    const searchBy = async (host: App) =>
      perform(host, await host.owner({ reveal: false }), search, {}, 'trace', {
        idempotencyKey: 'key',
      }).catch(({ code }: CofferError) => code)
    // The server dies after it has claimed the idempotency key.
    await new Promise<void>((resolve) => {
      const take = async (...args: Parameters<App['claims']['take']>) => {
        await one.claims.take(...args)
        resolve()
        return new Promise<never>(() => {})
      }
      void searchBy({ ...one, claims: { ...one.claims, take } })
    })
    t.equal(await searchBy(two), 'conflict')
    await one.close()
    t.equal(await searchBy(two), 'conflict')
    clock.now += LEASE_MS + 1
    t.match(await searchBy(two), { status: 200, isReplayed: undefined })
    t.match(await searchBy(two), { status: 200, isReplayed: true })
  },
)

t.test(
  'a run on another server is not reported as interrupted while that server still runs it',
  async (t) => {
    const clock = { now: Date.now() }
    const { one, two } = await openVaults(t, 2, () => clock.now)
    const { number, owner_id } = await one.tenant()
    const code = 'module.exports = async () => ({ raw: 1 })'
    const { id } = await ask(one, 'reactor create', { name: 'r', code })
    const request_id = one.createUuid()
    const record = { id: request_id, reactor_id: id, started_by: `user/${owner_id}` }
    await one.store.write(async (store) =>
      store.insert('reactor_result', number, { ...record, created_at: new Date(clock.now).toISOString() }),
    )
    const claim = await one.claims.take(number, request_id, { isLong: true })
    t.equal(await ask(two, 'reactor result', { id, request_id }), 'not_found')
    await claim!.end()
    t.equal(await ask(two, 'reactor result', { id, request_id }), 'reactor_failed', 'cut short')
  },
)

t.test(
  'without a leader, servers log each expiry once and send the mail of a server that died',
  async (t) => {
    const clock = { now: Date.now() }
    const { apps, one, two } = await openVaults(t, 3, () => clock.now)
    const expires_at = new Date(clock.now + 1000).toISOString()
    for (let count = 0; count < 12; count++)
      await ask(one, 'token create', { ...token(`short-${count}`), expires_at })
    clock.now += 2000
    let purged = 0
    // A server skips rows that another server has claimed, so it may need a second pass.
    for (let look = 0; look < 20 && purged < 12; look++)
      for (const count of await Promise.all(apps.map((app) => app.sweep()))) purged += count
    t.equal(purged, 12)
    const logged: { message: string }[] = (await ask(two, 'log list', { size: 100 })).data
    t.equal(logged.filter(({ message }) => message === 'Token expired').length, 12)

    await ask(one, 'config set', { name: 'mail.url', value: 'smtp://mail.example.com' })
    const sent: string[] = []
    const createQueue = ({ store }: App, send: (message: Message) => Promise<Delivery>) => {
      const openMailer = async () => ({ server: 'mail', send, close: () => {} })
      return new DeliveryQueue(store, (queue) => [new MailChannel(store, queue, openMailer)])
    }
    const queue = createQueue(two, async ({ to }) => {
      sent.push(to)
      return { outcome: 'sent' }
    })
    one.deliveries.enqueue = () => {}
    await ask(one, 'invite create', { email: 'ada@example.com' })
    await new Promise<void>((resolve) => {
      const send = () => new Promise<never>(() => resolve())
      void createQueue(one, send).resume()
    })
    const deliver = () => queue.resume().then(() => queue.settle())
    await deliver()
    t.strictSame(sent, [], 'no mail is sent while the first server has claimed the mail')
    clock.now += 5 * 60_000 + 1
    await deliver()
    t.strictSame(sent, ['ada@example.com'], 'the mail is sent after the lease of the dead server has ended')
  },
)

t.test(
  'several servers deliver each event once, and deliver the events of a dead server after its lease ends',
  async (t) => {
    const clock = { now: Date.parse('2030-01-15T12:00:00Z') }
    const { apps, one, two } = await openVaults(t, 3, () => clock.now)
    const receiver = await startReceiver()
    t.teardown(() => receiver.close())
    const listener = { notice: () => {}, fault: (error: unknown) => t.fail(String(error)) }
    for (const app of apps) {
      app.configureReactors({ allowNet: ['127.0.0.1'] })
      await app.deliveries.resume(listener)
    }
    const hook = { name: 'hook', url: receiver.url, events: ['token.created'] }
    const { id } = await ask(one, 'webhook create', hook)
    const write = async (app: App, index: number) => {
      for (let count = 0; count < 10; count++) {
        const made = await ask(app, 'token create', { id: `tok-${index}-${count}`, type: 'token', data: 'x' })
        t.ok(made.id, String(made))
        // All servers look for due webhook deliveries. In production, each server does this every 30 s.
        await Promise.all(apps.map((each) => each.deliveries.resume()))
      }
    }
    await Promise.all(apps.map(write))
    await Promise.all(apps.map((app) => app.deliveries.settle()))
    const delivered = () => receiver.received.map(({ body }) => body.event.data.token.id as string).sort()
    const expected = apps.flatMap((_, index) => Array.from({ length: 10 }, (_, at) => `tok-${index}-${at}`))
    t.strictSame(delivered(), expected.sort(), 'each once')
    const { publicKey } = await one.signer()
    t.equal((await two.signer()).publicKey, publicKey, 'all servers sign with the same key')
    t.ok(receiver.received.every((each) => isSigned(each, publicKey)))
    receiver.state.answer = () => {}
    await ask(one, 'token create', { id: 'left', type: 'token', data: 'x' })
    await receiver.waitFor(31)
    receiver.state.answer = (response) => response.end()
    await two.deliveries.resume()
    await two.deliveries.settle()
    t.equal(receiver.received.length, 31, 'nothing is sent while the first server has claimed the delivery')
    clock.now += 60_001
    await two.deliveries.resume()
    await two.deliveries.settle()
    t.equal(receiver.received.length, 32, 'the first server does not report an error')
    const { data } = await ask(two, 'webhook deliveries', { id, size: 100 })
    t.ok(data.every(({ state }: { state: string }) => state === 'sent'))
  },
)

t.test('another server appends the log records of a killed server to its own chain', async (t) => {
  const { sql, one } = await openVaults(t, 1)
  const { number } = await one.tenant()
  await ask(one, 'token create', token('left'))
  const { count } = await one.store.verifyLogs(number)
  let reads = 0
  /** Repeats a read until the number of rows that the query `text` returns satisfies `isSo`. */
  const until = async (text: string, isSo: (rows: number) => boolean) => {
    for (let left = 400; left > 0; left--, await pause()) {
      t.equal((await ask(one, 'token get', { id: 'left' })).id, 'left')
      reads++
      if (isSo((await sql(text)).length)) return
    }
    t.fail(text)
  }
  // Simulates rows that a server left when it died a minute ago.
  const leave = 'update coffer_waiting set chain = 77, written = written - 60000000 returning id'
  await until(leave, (rows) => rows > 0)
  await until('select id from coffer_waiting where chain = 77', (rows) => rows === 0)
  t.strictSame(await one.store.verifyLogs(number), { count: count + reads })
})

t.test('a server keeps working while its key slot exists, and stops if the slot is removed', async (t) => {
  const notices: string[] = []
  const { apps, one, two, address, key, sql, open } = await openVaults(t, 2, undefined, notices)
  const tokens = (app: App) => ask(app, 'token list')
  const app = await createApp(one, ['token:read'])
  const slots = async (app: App) => (await ask(app, 'vault status')).key_slots.length
  const next = createKey()
  await ask(one, 'token create', token('kept'))
  const all = (found: readonly { id: string }[]) => found.map(({ id }) => id)
  await changeKeySlots(locate(address), key.choose, { added: next.create, choose: all })
  for (const app of apps) t.equal((await tokens(app)).pagination.total_items, 1)
  t.strictSame([await slots(one), await slots(two)], [2, 2])
  const other = await open(next.choose)
  await changeKeySlots(locate(address), key.choose, { choose: ([first]) => [first!.id] })
  t.equal(await tokens(other), 'unavailable')
  await t.rejects(other.store.checkReady!(), { code: 'unavailable' })
  const answer = await serve(other, app.key)('GET /tokens/kept')
  const reason = /slot that this server opened the vault with was removed/
  t.match(answer, { status: 503, headers: { 'retry-after': '60' }, body: reason })
  await t.rejects(open(next.choose), { code: 'vault_damaged', message: /its slot was removed/ })
  for (const app of apps) t.equal((await tokens(app)).pagination.total_items, 1)
  t.equal(await slots(two), 1)
  const file = `${t.testdir()}/backup`
  await ask(two, 'vault backup', { file })
  const restore = (choose: typeof key.choose) => restoreVault(locate(`${file}-kept`), file, choose, () => {})
  await t.rejects(
    restore(next.choose),
    { code: 'vault_damaged' },
    'a removed key cannot restore a later backup',
  )
  await restore(key.choose)
  const [{ header, generation }] = await sql('select header, generation from coffer_state')
  const set = (text: string, raised: number) =>
    sql('update coffer_state set header = $1, generation = $2', text, Number(generation) + raised)
  await set(header.replace(/\d{4}-\d\d-\d\d/g, '1999-01-01'), 1)
  t.equal(await tokens(one), 'unavailable', 'a changed slot')
  await set(header, 1 + 2 ** 30)
  t.equal(await tokens(one), 'unavailable', 'another history of the vault')
  await set(header, 2)
  t.equal((await tokens(one)).pagination.total_items, 1, 'the server works again without a restart')
  // The list of notices is cleared before the key slots change, because background work of a server can detect this
  // change before a request does.
  notices.length = 0
  await changeKeySlots(locate(address), key.choose, { added: next.create, choose: () => [] })
  for (const app of [two, two]) t.equal(await tokens(app), 'unavailable')
  const count = notices.filter((text) => reason.test(text)).length
  t.ok(count >= 1 && count <= apps.length, `each server notifies its operator once: ${count} notices`)
})

t.test('after all keys of a store are changed at once, servers with the old keys are refused', async (t) => {
  const { apps, address, key, one, two, sql, open } = await openVaults(t, 2)
  const numbers = ['4242424242424242', '5555555555554444']
  for (const [index, number] of numbers.entries())
    await ask(one, 'token create', { ...token(`t-${index}`, number), metadata: { name: `n-${index}` } })
  await ask(one, 'tenant create', { name: 'other' })
  await one.maintenance().compact()
  const second = createKey()
  const all = (found: readonly { id: string }[]) => found.map(({ id }) => id)
  await changeKeySlots(locate(address), key.choose, { added: second.create, choose: all })
  const fingerprint = (await ask(two, 'token get', { id: 't-0' })).fingerprint
  const rows = () => sql('select id, sealed from coffer_rows')
  const hexes = (found: { id: Buffer; sealed: Buffer }[]) =>
    found.flatMap(({ id, sealed }) => [id, sealed]).map((bytes) => bytes.toString('hex'))
  const rekey = (progress = () => {}) => changeKeys(locate(address), key.choose, progress)
  const [{ id, sealed }] = await sql('select id, sealed from coffer_rows where kind = 2 limit 1')
  const setSealed = (bytes: Buffer) => sql('update coffer_rows set sealed = $1 where id = $2', bytes, id)
  await setSealed(Buffer.concat([sealed, sealed]))
  await t.rejects(rekey(), { code: 'vault_damaged' })
  await setSealed(sealed)
  t.equal((await ask(one, 'token get', { id: 't-1' })).id, 't-1', 'the token is unchanged')
  await two.maintenance().compact()
  // Usually the log record of this update is still pending when the keys change.
  await ask(one, 'token update', { id: 't-0', metadata: { more: 'yes' } })
  const logged = async (app: App) =>
    (await ask(app, 'log list', { entity_id: 't-0' })).pagination.total_items as number
  const count = await logged(one)
  // The test adds more batches than a single read takes, and some of the batches are large. These batches cannot be
  // decrypted, so the servers leave them unchanged.
  const strange = await sql(
    "insert into coffer_waiting select 1, decode(md5(n::text), 'hex'), 77, n, convert_to(repeat('x', case when n % 600 = 0 then 900000 else 9 end), 'UTF8')" +
      ' from generate_series(1, 1200) n returning id, written, sealed',
  )
  const before = await rows()
  let during: Promise<unknown> | undefined
  const { dropped } = await rekey(() => {
    during ??= ask(one, 'token get', { id: 't-1' })
  })
  t.equal(dropped.length, 1)
  t.equal(await during, 'unavailable')
  const after = new Set(hexes(await rows()))
  const same = hexes(before).filter((hex) => after.has(hex))
  t.strictSame(same, [], 'every row has a new id and a new seal')
  for (const app of apps) t.equal(await ask(app, 'token list'), 'unavailable')
  const left = 'delete from coffer_waiting where chain = 77 returning id, written, sealed'
  const byPlace = (found: { written: number }[]) => found.toSorted((a, b) => a.written - b.written)
  t.strictSame(byPlace(await sql(left)), byPlace(strange))
  await t.rejects(open(second.choose), { code: 'vault_damaged' })
  const app = await open()
  const [found] = (await ask(app, 'token list', { metadata: { name: 'n-0' } })).data
  t.match(found, { id: 't-0', fingerprint, data: { number: numbers[0] } })
  t.strictSame((await app.maintenance().verify()).findings, [])
  t.equal((await app.tenant('other')).name, 'other')
  t.equal(await logged(app), count + 1, 'the log has the update and the list request above')
  const both = await Promise.allSettled([rekey(), rekey()])
  const failed = both.flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []))
  t.ok(failed.every((code) => ['conflict', 'unavailable'].includes(code)) && failed.length < 2, `${failed}`)
  t.strictSame((await (await open()).maintenance().verify()).findings, [])
})

t.test('a server detects that another vault has replaced its vault', async (t) => {
  const { address, sql, one: app } = await openVaults(t, 1)
  await ask(app, 'token create', token('before'))
  await app.maintenance().compact()
  await sql('truncate coffer_state, coffer_rows, coffer_keys, coffer_waiting, coffer_chains')
  const other = await createVault(locate(address), 'second', createKey().create)
  t.teardown(() => other.close())
  t.equal(await ask(app, 'token create', token('after')), 'unavailable')
  t.equal(await ask(app, 'token list'), 'unavailable')
  t.equal((await ask(other, 'token list')).pagination.total_items, 0)
  t.strictSame((await other.maintenance().verify()).findings, [])
})

t.test(
  'if an attacker restores an older list of chains, in which the second chain is missing, verification detects this',
  async (t) => {
    const { sql, one, two } = await openVaults(t, 2)
    const { number } = await one.tenant()
    const isWhole = async () => (await one.store.verifyLogs(number)).brokenAt === undefined
    const writeBy = async (app: App, id: string) => {
      await ask(app, 'token create', { id, type: 'token', data: id })
      await app.maintenance().compact()
      return (await sql('select id, sealed, rev from coffer_rows where kind = $1', KINDS.tenant))[0]
    }
    const ofOne = await writeBy(one, 'one')
    const ofBoth = await writeBy(two, 'two')
    t.ok(await isWhole())
    for (const [{ id, sealed, rev }, expected] of [
      [ofOne, false],
      [ofBoth, true],
    ]) {
      await sql('update coffer_rows set sealed = $2, rev = $3 where id = $1', id, sealed, rev)
      // This statement makes the servers read their cached records again.
      await sql('update coffer_state set changes = changes + 1')
      t.equal(await isWhole(), expected)
    }
  },
)

t.test(
  'the copy of a whole store has no time limit, and succeeds even if its session is lost at the end',
  async (t) => {
    const { address, sql } = await openVaults(t, 1)
    const pool = new ConnectionPool(parseStoreAddress(address).connection)
    t.teardown(() => pool.close())
    const read = async (connection: Connection) => {
      const names = ['statement_timeout', 'idle_in_transaction_session_timeout']
      const shown = await connection.send(names.map((name) => ({ text: `show ${name}` })))
      return shown.map(({ rows }, index) => rows[0][names[index]!])
    }
    t.strictSame(await pool.using(read), ['30s', '30s'])
    const seen = await withSnapshot(pool, async (_, connection) => {
      const times = await read(connection)
      const idle = "state = 'idle in transaction' and datname = current_database()"
      await sql(`select pg_terminate_backend(pid) from pg_stat_activity where ${idle}`)
      return times
    })
    t.strictSame(seen, ['0', '0'])
    t.strictSame(await pool.using(read), ['30s', '30s'], 'the pool still works')
  },
)

t.test('neither the tables nor the files of the database contain secrets', async (t) => {
  const { sql, one: app } = await openVaults(t, 1)
  const number = '4000056655665556'
  const [id, value, container, name] = ['needle-1', 'needle-2', 'needle-3', 'Needle 4']
  const needle = { ...token(id, number), metadata: { key: value }, containers: [`/${container}/`] }
  t.equal((await ask(app, 'token create', needle)).id, id)
  await createApp(app, ['token:read'], { name })
  await ask(app, 'token get', { id })
  await app.close()
  const secrets = [number, id, value, container, name]
  const cells: Haystack[] = []
  await sql('checkpoint')
  for (const { tablename: table } of await sql(
    "select tablename from pg_tables where tablename like 'coffer%'",
  ))
    for (const cell of (await sql(`select * from ${table}`)).flatMap(Object.values))
      cells.push({ name: table, bytes: Buffer.isBuffer(cell) ? cell : Buffer.from(String(cell)) })
  t.ok(cells.length > 50)
  t.strictSame(findLeaks(secrets, cells), [])
  const { directory } = server
  const files = directory === undefined ? [] : readdirSync(directory, { recursive: true, encoding: 'utf8' })
  for (const file of files) {
    const path = join(directory!, file)
    if (!statSync(path).isFile()) continue
    const bytes = readFileSync(path)
    for (const secret of secrets) if (bytes.includes(secret)) t.fail(`${secret} in ${file}`)
  }
})

t.test('verification finds changes of the tables that the engine did not make', async (t) => {
  const { sql, one: app } = await openVaults(t, 1)
  for (const id of ['one', 'two']) await ask(app, 'token create', token(id))
  await app.maintenance().compact()
  const findings = async () => (await app.maintenance().verify()).findings.map(({ problem }) => problem)
  t.strictSame(await findings(), [])
  const newest = (table: string) =>
    `delete from ${table} where seq = (select max(seq) from ${table}) returning *`
  const [lost] = await sql(newest('coffer_keys'))
  t.match(await findings(), [/table of keys does not match the rows/])
  await sql('update coffer_rows set keys = substring(keys from 1 for 8) where seq = $1', lost.seq)
  t.strictSame(await findings(), [])
  await sql("insert into coffer_keys values (1, 3, '\\x0102030405060708', 77)")
  t.match((await findings()).at(-1), /table of keys does not match the rows/)
  await sql('delete from coffer_keys where seq = 77')
  await ask(app, 'token create', token('three'))
  await sql("update coffer_waiting set id = '\\x00010203040506070809000102030405'")
  t.match((await findings()).at(-1), /New log records do not open/)
  await sql('delete from coffer_waiting')
  const blocks = '(select max(seq) from coffer_rows where kind = 254)'
  await sql(`delete from coffer_rows where kind = 254 and seq = ${blocks}`)
  t.match((await findings()).at(-1), /chain is broken/)
  await sql("update coffer_rows set sealed = sealed || '\\x00' where kind = $1", KINDS.token)
  t.match((await findings()).join(), /does not open/)
})

t.test('if the creation of a vault was interrupted, the next attempt completes the vault', async (t) => {
  const { send } = Connection.prototype
  t.teardown(() => Object.assign(Connection.prototype, { send }))
  let isWhole = false
  for (let answered = 0; !isWhole; answered++) {
    const address = await server.createDatabase()
    let left = answered
    // The database executes the statements, but the answer to the statements is lost.
    Connection.prototype.send = async function (statements) {
      const results = await send.call(this, statements)
      if (left-- === 0) throw new CofferError('unavailable', 'The store does not answer.')
      return results
    }
    const lost = createKey()
    const first = await createVault(locate(address), 'lost', lost.create).catch((error) => error)
    Object.assign(Connection.prototype, { send })
    isWhole = left >= 0
    if (isWhole) {
      await first.close()
      continue
    }
    const key = createKey()
    const create = () => createVault(locate(address), 'first', key.create)
    const opened = await openVault(locate(address), lost.choose).catch((error: CofferError) => error.code)
    // Only the answer to the last statement was lost, so the vault and its key file exist.
    if (typeof opened !== 'string') {
      await opened.close()
      await t.rejects(create(), { code: 'conflict' })
      continue
    }
    t.equal(opened, 'vault_missing')
    const app = await create()
    t.teardown(() => app.close())
    t.match(await ask(app, 'tenant list'), [{ name: 'first' }], `${answered} answers`)
    t.match(await ask(app, 'vault verify'), { ok: true, findings: [] })
  }
})

t.test(
  'if the header of a store is missing, the store is reported as damaged, and no new vault replaces it',
  async (t) => {
    const { address, one, key, sql } = await openVaults(t, 1)
    await ask(one, 'token create', token('kept'))
    const count = async () => (await sql('select count(*) as rows from coffer_rows'))[0].rows
    const [rows, state] = [await count(), (await sql('select * from coffer_state'))[0]]
    await sql('delete from coffer_state')
    const lost = { code: 'vault_damaged', message: /rows of a vault but no header/ }
    await t.rejects(openVault(locate(address), key.choose), lost)
    await t.rejects(createVault(locate(address), 'new', createKey().create), lost)
    const source = await openVaults(t, 1)
    await t.rejects(
      copyVault(locate(source.address), locate(address), source.key.choose, () => {}),
      lost,
    )
    t.equal(await count(), rows)
    const { id, header, generation, changes, times } = state
    await sql('insert into coffer_state values ($1, $2, $3, $4, $5)', id, header, generation, changes, times)
    const app = await openVault(locate(address), key.choose)
    t.match(
      await ask(app, 'token get', { id: 'kept' }),
      { id: 'kept' },
      'after the header is restored, the vault is complete again',
    )
    await app.close()
  },
)

t.test(
  'if many processes create a vault in one store, one succeeds and the others report that the vault exists',
  async (t) => {
    const address = await server.createDatabase()
    const keys = Array.from({ length: 6 }, createKey)
    const create = ({ create }: (typeof keys)[0]) => createVault(locate(address), 'first', create)
    const made = await Promise.allSettled(keys.map(create))
    t.teardown(() => made.map((each) => each.status === 'fulfilled' && each.value.close()))
    const told = made.map((each) => (each.status === 'fulfilled' ? 'made' : each.reason.code))
    t.strictSame(told.toSorted(), [...Array(5).fill('conflict'), 'made'])
    const app = await openVault(locate(address), keys[told.indexOf('made')]!.choose)
    t.match(await ask(app, 'tenant list'), [{ name: 'first' }])
    await app.close()
  },
)

/**
 * Ways in which a database becomes unreachable or stops answering. Each function starts the fault and returns a
 * function that ends the fault.
 */
const AWAY: Record<string, (proxy: CuttingProxy, own: OwnServer) => Promise<() => unknown>> = {
  'was killed': async (_, own) => {
    await own.kill()
    return () => own.start()
  },
  'never answers': async (proxy) => {
    proxy.isSilent = true
    return () => Object.assign(proxy, { isSilent: false })
  },
}

for (const [cause, begin] of Object.entries(AWAY))
  t.test(
    `while a database ${cause}, requests are soon answered with 503, and later they succeed without a restart`,
    async (t) => {
      if (!('socket' in server)) return
      t.ok(TIMEOUT_MS < 2000)
      const own = server as OwnServer
      const proxy = await CuttingProxy.open(own.socket)
      t.teardown(() => proxy.close())
      const [name] = /\/coffer_\w+/.exec(await server.createDatabase())!
      const address = `postgres://test@127.0.0.1:${proxy.port}${name}`
      const app = await createVault(locate(address), 'first', createKey().create)
      t.teardown(() => app.close())
      await ask(app, 'token create', token('before'))
      const send = serve(app, (await createApp(app, ['token:read', 'token:create', 'token:search'])).key)
      const lines = ['GET /tokens/before', 'GET /tokens', 'POST /tokens', 'GET /v2/tokens', 'GET /readyz']
      const sendAll = () =>
        Promise.all(
          lines.map((line) => send(line, line.startsWith('P') ? { type: 'token', data: 'x' } : undefined)),
        )
      const isAnswered = async () =>
        t.strictSame(
          (await sendAll()).map(({ status }) => status),
          [200, 200, 201, 200, 200],
        )
      await isAnswered()
      const end = await begin(proxy, own)
      // A backend process may outlive its server for a moment and still answer.
      for (let left = 200; left > 0 && (await send('GET /readyz')).status === 200; left--) await pause()
      for (const which of ['on connections that were open', 'on new connections']) {
        const began = performance.now()
        for (const [index, answer] of (await sendAll()).entries())
          t.match(answer, { status: 503, headers: { 'retry-after': '1' } }, `${lines[index]}, ${which}`)
        t.ok(
          performance.now() - began < 5 * TIMEOUT_MS,
          `all requests were answered within the limit, ${which}`,
        )
        t.equal((await send('GET /healthz')).status, 200)
      }
      await end()
      for (let left = 100; left > 0 && (await send('GET /readyz')).status !== 200; left--) await pause()
      await isAnswered()
    },
  )

/**
 * Ways in which a database answers reads but stores no log record. Each function starts the fault and returns a
 * function that ends the fault.
 */
const UNWRITABLE: Record<string, { why: RegExp; begin(address: string): Promise<() => Promise<unknown>> }> = {
  'the database is read-only': {
    why: /read-only/,
    async begin(address) {
      const name = `${/\/(coffer_\w+)/.exec(address)![1]}`
      const setReadOnly = async (value: string) => {
        const client = new pg.Client(address)
        await client.connect()
        await client.query('set default_transaction_read_only = off')
        await client.query(`alter database ${name} set default_transaction_read_only = ${value}`)
        const others = 'from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()'
        // The statement waits until the old sessions have ended, because the server could still use them.
        await client.query(`select pg_terminate_backend(pid, 10000) ${others}`, [name])
        await client.end()
      }
      await setReadOnly('on')
      return () => setReadOnly('off')
    },
  },
  'the table of log records is locked': {
    why: /locked/,
    async begin(address) {
      const client = new pg.Client(address)
      await client.connect()
      await client.query('begin; lock table coffer_waiting')
      return () => client.end()
    },
  },
}

for (const [cause, { why, begin }] of Object.entries(UNWRITABLE))
  t.test(`while ${cause}, reads of tokens are soon refused`, async (t) => {
    const { address, one: app } = await openVaults(t, 1)
    const rules = [
      { description: 'all', priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] },
    ]
    await ask(app, 'token create', token('read'))
    const send = serve(app, (await createApp(app, [], { rules })).key)
    const read = () => send('GET /tokens/read')
    const { number } = await app.tenant()
    const countLogs = async () =>
      (await app.store.read((reader) => reader.find('log', number, { page: 1, size: 1 }))).total
    t.match(await read(), { status: 200, body: /4242424242424242/ })
    const before = await countLogs()
    const end = await begin(address)
    const since = performance.now()
    t.match(await send('GET /readyz'), { status: 503, body: why })
    let revealed = 0
    let refused = await read()
    for (; performance.now() - since < 10_000; refused = await read())
      if (refused.status === 200) revealed++
      else if (performance.now() - since > 1500) break
    t.ok(performance.now() - since < 8_000, 'the request is refused')
    t.match(refused, { status: 503, body: /log records of earlier reads cannot be stored/ })
    for (let left = 20; left > 0; left--) t.equal((await read()).status, 503, 'each one')
    await end()
    for (let left = 500; left > 0 && (await send('GET /readyz')).status !== 200; left--) await pause()
    t.match(
      await read(),
      { status: 200, body: /4242424242424242/ },
      'requests succeed again without a restart',
    )
    t.ok((await countLogs()) >= before + revealed, 'every revealed token is in the log')
  })
