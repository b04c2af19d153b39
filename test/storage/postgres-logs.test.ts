/** Log records over PostgreSQL: lost answers, and tables that are changed without the engine. */
import type { QueryResult } from 'pg'
import t, { type Test } from 'tap'
import { createKeyring } from '../../src/crypto/keyring.js'
import { createRandom } from '../../src/crypto/random.js'
import { loadSodium } from '../../src/crypto/sodium.js'
import { CofferError } from '../../src/errors.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { perform } from '../../src/framework/perform.js'
import { registry } from '../../src/operations/all.js'
import { createEntry } from '../../src/storage/barrier/log-block.js'
import { CACHED_KINDS } from '../../src/storage/barrier/record-cache.js'
import type { LogSealer } from '../../src/storage/engine.js'
import { Collision } from '../../src/storage/postgres/attempt.js'
import { openPostgresEngine, type PostgresEngine } from '../../src/storage/postgres/engine.js'
import { Connection, ConnectionPool, type Statement } from '../../src/storage/postgres/pool.js'
import { batchKey } from '../../src/storage/taken-batches.js'
import { type App, createApp, createFirstTenant } from '../../src/vault/app.js'
import { ask } from '../support/vault.js'
import { createTables, sharedDatabase } from './postgres-server.js'

/**
 * Creates a vault and opens it `count` times. The function `run` sends SQL. The list `notices` collects the notices to
 * the operator.
 */
async function openVaults(t: Test, count: number) {
  const config = await createTables(await sharedDatabase())
  const [primitives, random] = [await loadSodium(), createRandom()]
  const root = random.bytes(32)
  const notices: string[] = []
  const apps: App[] = []
  const open = async () => {
    const keyring = createKeyring(primitives, random, root)
    const engine = await openPostgresEngine({
      pool: new ConnectionPool(config),
      clock: Date.now,
      random,
      cachedKinds: CACHED_KINDS,
      notice: (text) => notices.push(text),
    })
    let sealer: LogSealer | undefined
    const { attach } = engine
    engine.attach = (given) => {
      sealer = given
      attach.call(engine, given)
    }
    const app = createApp({ engine, keyring, random, header: undefined, primitives })
    if (apps.length === 0) await createFirstTenant(app, 'first')
    apps.push(app)
    return { app, engine, sealer: () => sealer! }
  }
  const opened = [await open()]
  while (opened.length < count) opened.push(await open())
  const pool = new ConnectionPool(config)
  t.teardown(() => Promise.allSettled([...apps, pool].map((each) => each.close())))
  const run = async (text: string, values: unknown[] = [], left = 25): Promise<QueryResult['rows']> => {
    try {
      return (await pool.query({ text, values })).rows
    } catch (error) {
      // Background work of the server changed the same rows at the same time, so the test tries the change again.
      if (!(error instanceof Collision) || left === 0) throw error
      return run(text, values, left - 1)
    }
  }
  const { number: tenant } = await apps[0]!.tenant()
  const verify = (app = apps[0]!) => app.store.verifyLogs(tenant)
  return { ...opened[0]!, opened, open, run, notices, tenant, verify }
}

/** Returns a log record about a read. */
const recordOf = ({ id: tenant_id }: { id: string }, entity_id = 'read') => ({
  ...({ tenant_id, entity_type: 'token', operation: 'read', message: 'Token read', trace_id: '0' } as const),
  ...{ entity_id, id: crypto.randomUUID() },
})

/** Returns the tenants for which the verification reports that pending log records cannot be read. */
const findUnreadable = async (engine: PostgresEngine) => {
  const { findings } = await engine.verify(() => ({}))
  return findings.map(({ place }) => Number(/^log of tenant (\d+)$/.exec(place)?.[1]))
}

const isWaiting = (statements: readonly Statement[]) =>
  statements.some(({ text }) => text.includes('insert into coffer_waiting'))

/** Until the end of the test, replaces the answers to statements with what `answer` returns or throws. */
function intercept(t: Test, answer: (statements: readonly Statement[]) => void) {
  const { send } = Connection.prototype
  Connection.prototype.send = async function (statements) {
    const results = await send.call(this, statements)
    answer(statements)
    return results
  }
  t.teardown(() => Object.assign(Connection.prototype, { send }))
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20))

t.test(
  'a record is in the log once, even if the answer to the statement that appends it is lost',
  async (t) => {
    const { notices, app, engine, verify } = await openVaults(t, 1)
    await ask(app, 'token create', { id: 'read', type: 'token', data: 'x' })
    await engine.logs.chainPending()
    const { count } = await verify()
    let lost = 0
    intercept(t, (statements) => {
      if (!isWaiting(statements) || lost >= 5) return
      lost++
      throw new CofferError('unavailable', 'The store does not answer.')
    })
    await ask(app, 'token get', { id: 'read' })
    for (let left = 10; left > 0 && lost < 5; left--) await engine.logs.send().catch(() => undefined)
    t.equal(lost, 5)
    await ask(app, 'token get', { id: 'read' })
    await engine.logs.send()
    await engine.logs.chainPending()
    t.strictSame(await verify(), { count: count + 2 })
    t.strictSame(notices, [], 'the operator gets no notice, because the second attempt succeeds')
    await app.close()
  },
)

t.test('if an error prevents the append of log records, the error is reported once', async (t) => {
  const { notices, app } = await openVaults(t, 1)
  await ask(app, 'token create', { id: 'read', type: 'token', data: 'x' })
  let failed = 0
  intercept(t, (statements) => {
    if (!isWaiting(statements)) return
    failed++
    throw new CofferError('internal', 'The store does not take a statement (00000).')
  })
  await ask(app, 'token get', { id: 'read' })
  for (let left = 1000; left > 0 && failed < 2; left--) await pause()
  t.match(notices, [
    /^New log records could not be stored in the log\. Coffer will try again\. The store does not take/,
  ])
  t.equal(notices.length, 1)
})

t.test('a deleted API key is refused even if the store has lost the last change of the key', async (t) => {
  const { opened, run } = await openVaults(t, 2)
  const [one, two] = opened.map(({ app }) => app) as [App, App]
  const get = registry.find('token get')!
  const permissions = ['token:read']
  const { id, key } = await ask(one, 'app create', { name: 'app', type: 'private', permissions })
  await ask(one, 'token create', { id: 'read', type: 'token', data: 'x' })
  const read = async (app: App) => {
    try {
      const caller = await authenticate(app, key, { allowsCached: true })
      return (await perform(app, caller, get, { id: 'read' }, 'trace')).status
    } catch (error) {
      return (error as CofferError).code
    }
  }
  await ask(two, 'token create', { id: 'other', type: 'token', data: 'x' })
  // Each server has created its chain by now, so the servers change no more rows to create chains.
  for (const { engine } of opened) await engine.logs.chainPending()
  const tables = ['coffer_rows', 'coffer_keys', 'coffer_state']
  for (const table of tables) await run(`create table kept_${table} as select * from ${table}`)
  await ask(two, 'tenant update', { name: 'second' })
  t.strictSame([await read(one), await read(one)], [200, 200])
  for (const table of tables) {
    await run(`delete from ${table}`)
    await run(`insert into ${table} select * from kept_${table}`)
  }
  await ask(two, 'app delete', { id })
  t.strictSame([await read(one), await read(two)], ['unauthenticated', 'unauthenticated'])
})

t.test(
  'a backlog of log records is appended in parts, and each part takes less time than a statement may take',
  async (t) => {
    const { run, tenant, app, engine, verify } = await openVaults(t, 1)
    const first = await app.tenant()
    await engine.logs.chainPending()
    const { count } = await verify()
    let parts = 0
    intercept(t, (statements) => {
      if (statements.some(({ isSlow }) => isSlow)) parts++
    })
    for (let batch = 0; batch < 4; batch++)
      await app.store.write(async (store) => {
        for (let at = 0; at < 4000; at++)
          await store.log(
            tenant,
            recordOf(first, `entity-${batch}-${String(at).padStart(60, '0')}`),
            store.now,
          )
      })
    await engine.logs.chainPending()
    t.strictSame(await run('select id from coffer_waiting'), [])
    t.equal(parts, 4)
    t.strictSame(await verify(), { count: count + 16_000 })
  },
)

t.test('unreadable log records are reported, and other records are still appended', async (t) => {
  const { run, tenant, app, engine, verify } = await openVaults(t, 1)
  await ask(app, 'token create', { id: 'read', type: 'token', data: 'x' })
  await engine.logs.chainPending()
  const { count } = await verify()
  const row = "$1, decode(md5(n::text), 'hex'), 77, n, '\\x00112233'"
  await run(`insert into coffer_waiting select ${row} from generate_series(1, 1100) n`, [tenant])
  await ask(app, 'token update', { id: 'read', metadata: { a: '1' } })
  await engine.logs.chainPending()
  const left = async () => (await run('select count(*) as count from coffer_waiting'))[0]!.count
  t.equal(await left(), 1100)
  const broken = { count: count + 1, brokenAt: count + 2 }
  t.strictSame(await verify(), broken, 'they are reported after all records that can be verified')
  t.strictSame(await findUnreadable(engine), [tenant])
  await run('delete from coffer_waiting where chain = 77')
  let updates = 0
  for (let moved = 0; moved === 0 && updates < 100; updates++) {
    await ask(app, 'token update', { id: 'read', metadata: { a: '2' } })
    moved = (await run('update coffer_waiting set tenant = 99 returning id')).length
  }
  await engine.logs.chainPending()
  t.equal(await left(), 1)
  t.strictSame(await findUnreadable(engine), [99])
  await run('update coffer_waiting set tenant = $1', [tenant])
  await engine.logs.chainPending()
  t.strictSame(await verify(), { count: count + 1 + updates })
})

t.test(
  'log records of reads are sent together, 25 ms after the first record or when the engine is closed',
  async (t) => {
    const { open, app, verify } = await openVaults(t, 1)
    await ask(app, 'token create', { id: 'read', type: 'token', data: 'x' })
    const { count } = await verify()
    let sent = 0
    intercept(t, (statements) => {
      if (isWaiting(statements)) sent++
    })
    const { setTimeout } = globalThis
    const times: number[] = []
    const watched = (work: () => void, ms: number) => {
      times.push(ms)
      return setTimeout(work, ms)
    }
    globalThis.setTimeout = watched as typeof setTimeout
    t.teardown(() => Object.assign(globalThis, { setTimeout }))
    const read = () => ask(app, 'token get', { id: 'read' })
    await Promise.all(Array.from({ length: 20 }, read))
    while (sent === 0) await pause()
    t.ok(times.includes(25))
    t.ok(sent < 10, `${sent} statements for 20 reads`)
    await read()
    await app.close()
    t.equal((await verify((await open()).app)).count, count + 21)
  },
)

t.test('log records that may already be in the log are not appended again, and are reported', async (t) => {
  const { run, tenant, app, engine, sealer, verify } = await openVaults(t, 1)
  const maker = new Uint8Array(16).fill(7)
  const leave = async (number: number) => {
    const id = batchKey(maker, number, Date.now())
    const entries = [createEntry(tenant, recordOf(await app.tenant()), Date.now())]
    const seal = await engine.read((reader) => sealer().sealerOf(reader, tenant))
    const sealed = seal!(id, entries)
    await run('insert into coffer_waiting values ($1, $2, 77, 1, $3)', [tenant, id, sealed])
  }
  await engine.logs.chainPending()
  const { count } = await verify()
  // Only the odd numbers are stored. The even numbers belong to commits that failed or that have not arrived yet.
  for (let number = 1; number <= 131; number += 2) await leave(number)
  await engine.logs.chainPending()
  t.strictSame(await verify(), { count: count + 66 })
  for (const number of [130, 131]) await leave(number)
  await engine.logs.chainPending()
  t.strictSame(
    await verify(),
    { count: count + 67 },
    'one batch was late and is appended, the other was already in the log',
  )
  await leave(2)
  await engine.logs.chainPending()
  t.equal((await run('select id from coffer_waiting where chain = 77')).length, 1)
  t.strictSame(await verify(), { count: count + 67, brokenAt: count + 68 })
  t.strictSame(await findUnreadable(engine), [tenant])
})

t.test(
  'a list of log records has each record once and in the order of time on each server, even under load',
  async (t) => {
    const { opened, open, tenant } = await openVaults(t, 3)
    const apps = opened.map(({ app }) => app)
    let isOver = false
    let done = 0
    let unknown = 0
    /** A busy store may answer a request with 503. A request that gets 503 may have been executed or not. */
    const tryTo = (asked: Promise<unknown>) =>
      asked.then(
        () => done++,
        (error) => {
          t.equal(error.code, 'unavailable')
          unknown++
        },
      )
    const timesOf = async (app: App, size: number) => {
      const found = await app.store.read((store) => store.find('log', tenant, { page: 1, size }))
      return { ...found, times: found.records.map(({ created_at }) => created_at) }
    }
    await ask(apps[0]!, 'token create', { id: 'tok-first', type: 'token', data: 'x' })
    const { total: before } = await timesOf(apps[0]!, 1)
    const lanes = apps.flatMap((app, index) =>
      ['a', 'b'].map(async (lane) => {
        for (let count = 0; !isOver; count++) {
          const id = `tok-${index}-${lane}-${count}`
          await tryTo(ask(app, 'token create', { id, type: 'token', data: id }))
          await tryTo(ask(app, 'token get', { id: 'tok-first' }))
        }
      }),
    )
    const until = performance.now() + 4000
    while (performance.now() < until)
      for (const app of apps) {
        const { times } = await timesOf(app, 500).catch(() => ({ times: [] }))
        t.strictSame(times, times.toSorted().reverse())
      }
    isOver = true
    await Promise.all(lanes)
    // Each server keeps its latest reads in memory for 25 ms before it sends them.
    await Promise.all(opened.map(({ engine }) => engine.logs.send()))
    for (const app of apps) {
      const { records, total, times } = await timesOf(app, 10_000)
      t.ok(total >= before + done && total <= before + done + unknown, `${total}: ${done}, ${unknown}`)
      t.strictSame(times, times.toSorted().reverse())
      t.equal(new Set(records.map(({ trace_id }) => trace_id)).size, total, 'each once')
    }
    const { total } = await timesOf(apps[0]!, 1)
    await opened[0]!.engine.logs.chainPending()
    t.strictSame(await apps[1]!.store.verifyLogs(tenant), { count: total })
    await Promise.all(apps.slice(1).map((app) => app.close()))
    const last = await open()
    await ask(last.app, 'token get', { id: 'tok-first' })
    await last.engine.logs.chainPending()
    const record = await last.app.store.read((store) => store.get('tenant', 0, `${tenant}`))
    t.strictSame(
      record?.log_chains,
      [1, 2, 3],
      'a new server takes over the chain of a server that has ended',
    )
  },
)
