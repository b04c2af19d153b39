/**
 * Units of work over PostgreSQL: which statements they send, which rows they compare before a commit, and the query
 * plans.
 */
import t, { type Test } from 'tap'
import { createRandom } from '../../src/crypto/random.js'
import type { Draft, EngineWriter, LogEntry, LogSealer, Where } from '../../src/storage/engine.js'
import { Collision } from '../../src/storage/postgres/attempt.js'
import { createFits } from '../../src/storage/postgres/commit-batch.js'
import { openPostgresEngine, type PostgresEngine } from '../../src/storage/postgres/engine.js'
import { Connection, ConnectionPool, type Statement, TIMEOUT_MS } from '../../src/storage/postgres/pool.js'
import * as sql from '../../src/storage/postgres/read-sql.js'
import { createTables, sharedDatabase } from './postgres-server.js'

const KIND = 1
const bytes = (length: number, value: number) => new Uint8Array(length).fill(value)
const idOf = (id: number) => bytes(16, id)
const keyOf = (id: number) => bytes(8, id)

function draft(id: number, { kind = KIND, keys = [id], text = id } = {}): Draft {
  const all = Buffer.concat([bytes(8, 0), ...keys.map(keyOf)])
  return { kind, tenant: 1, id: idOf(id), modified: 0, expires: 0, keys: all, seal: () => bytes(40, text) }
}

const entry = (): LogEntry => ({ tenant: 1, bytes: 10, time: 0 })

/** In these tests, the sealed form of a batch is the number of entries in the batch. */
const sealer: LogSealer = {
  seal: () => undefined,
  sealerOf: () => (_, entries) => Buffer.from(`${entries.length}`),
  openPending: (_reader, _batch, sealed) => Array.from({ length: Number(Buffer.from(sealed)) }, entry),
}

/** Waits until `holds` returns true. After 30 s the function throws an error. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let left = 3000; !(await holds()); left--) {
    if (left === 0) throw new Error('The condition was not met within 30 s.')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/**
 * Opens engines of one store that send no statements in the background. `statements` collects what the first engine
 * sends, and `sent` collects the names of these statements, with one list for each round trip. Before each search, the
 * first engine removes the last function from `beforePages` and calls it.
 */
async function openEngines(t: Test, count: number, cachedKinds: readonly number[] = []) {
  const config = await createTables(await sharedDatabase())
  const sent: string[][] = []
  const statements: Statement[] = []
  const beforePages: (() => Promise<unknown>)[] = []
  const own = new ConnectionPool(config)
  t.teardown(() => own.close())
  const engines: PostgresEngine[] = []
  for (let number = 0; number < count; number++) {
    const pool = new ConnectionPool(config)
    const connect = pool.connect.bind(pool)
    pool.connect = async () => {
      const connection = await connect()
      const { send } = Connection.prototype
      connection.send = async (given) => {
        if (number > 0) return send.call(connection, given)
        sent.push(given.map(({ name, text }) => name ?? text))
        statements.push(...given)
        if (given.some(({ name }) => name?.startsWith('search'))) await beforePages.pop()?.()
        return send.call(connection, given)
      }
      return connection
    }
    const given = { pool, clock: Date.now, random: createRandom(), cachedKinds: new Set(cachedKinds) }
    const engine = await openPostgresEngine(given)
    // Without a call of `attach`, no timer moves log entries to their chain.
    engine.logs.sealer = sealer
    await engine.write((writer) => writer.storeTime({ isTrusted: true }))
    await engine.logs.lease.claim()
    t.teardown(() => engine.close())
    engines.push(engine)
  }
  sent.length = 0
  const [one, two] = engines as [PostgresEngine, PostgresEngine]
  return { one, two, sent, statements, beforePages, pool: own }
}

const read = (engine: PostgresEngine, id: number) => engine.read((reader) => reader.get(KIND, 1, idOf(id)))
const textOf = async (engine: PostgresEngine, id: number) => (await read(engine, id))?.sealed[0]
const put = (id: number) => async (writer: EngineWriter) => {
  writer.append(entry())
  await writer.put(draft(id))
}
const replace =
  (id: number, text: number, keys = [id]) =>
  async (writer: EngineWriter) => {
    const { seq, created } = (await writer.get(KIND, 1, idOf(id)))!
    await writer.put({ ...draft(id, { text, keys }), seq, created })
  }
const search = (key: number) => ({
  kind: KIND,
  tenant: 1,
  all: bytes(8, 0),
  where: { key: keyOf(key) },
  size: 9,
})

t.test('a unit of work sends as few statements as possible', async (t) => {
  const { one: engine, sent } = await openEngines(t, 1)
  const sentBy = async (work: () => Promise<unknown>) => {
    await work()
    return sent.splice(0)
  }
  t.strictSame(await sentBy(() => engine.write(put(1))), [['write']])
  t.strictSame(await sentBy(() => read(engine, 1)), [['get']])
  const locking = [['get'], ['begin', 'lock', 'write', 'commit']]
  t.strictSame(await sentBy(() => engine.write(replace(1, 2))), locking)
  t.strictSame(await sentBy(() => engine.write(replace(1, 2, [5]))), locking, 'changed keys')
  const removing = (writer: EngineWriter) => writer.remove(KIND, 1, idOf(1))
  t.strictSame(await sentBy(() => engine.write(removing)), locking)
  const twice = async (writer: EngineWriter) => {
    await writer.put(draft(3))
    return writer.get(KIND, 1, idOf(3))
  }
  t.strictSame(await sentBy(() => engine.write(twice)), [
    ['begin isolation level read committed', 'write', 'get'],
    ['share', 'write', 'commit'],
  ])
})

t.test('a unit of work with one mebibyte of log entries is committed alone', async (t) => {
  const changes = new Map()
  for (const size of [2 ** 19, 2 ** 20]) {
    const fits = createFits()
    const logs = [{ tenant: 1, seal: () => idOf(1), entries: [{ tenant: 1, bytes: size, time: 0 }] }]
    fits({ changes, logs })
    t.equal(fits({ changes }), size < 2 ** 20)
  }
})

t.test('units of work that commit together log one row, and a refused unit runs again alone', async (t) => {
  const { one, two, sent, pool } = await openEngines(t, 2)
  await Promise.all([1, 2, 3].map((id) => one.write(put(id))))
  t.strictSame(sent, [['write']])
  const { rows } = await pool.query({ text: 'select sealed from coffer_waiting' })
  t.equal(String(rows.map(({ sealed }) => sealed)), '3')
  let runs = 0
  let meet = () => {}
  const met = new Promise<void>((resolve) => {
    meet = resolve
  })
  const refused = one.write(async (writer) => {
    await replace(1, 5)(writer)
    if (runs++ === 0) await two.write(replace(1, 6))
    meet()
  })
  const others = [4, 5].map((id) => one.write((writer) => put(id)(writer).then(() => met)))
  await Promise.all([refused, ...others])
  t.equal(runs, 2)
  t.strictSame(await Promise.all([1, 4, 5].map((id) => textOf(two, id))), [5, 4, 5])
})

t.test('a unit of work runs again if another unit has changed a row that the first unit read', async (t) => {
  const { one, two } = await openEngines(t, 2)
  await one.write(put(1))
  /** Returns how often a unit of work runs if `meanwhile` runs during the first run of the unit. */
  const runs = async (
    work: (writer: EngineWriter) => Promise<unknown>,
    meanwhile: () => Promise<unknown>,
  ) => {
    let count = 0
    await one.write(async (writer) => {
      await work(writer)
      if (count++ === 0) await meanwhile()
    })
    return count
  }
  t.equal(
    await runs(replace(1, 2), () => two.write(replace(1, 3))),
    2,
    'the unit runs again because a row that it replaces has changed',
  )
  t.equal(await textOf(two, 1), 2)
  let finds = 0
  await one.write(async (writer) => {
    await writer.find({ ...search(1), page: 1 })
    if (finds++ === 0) await two.write(replace(1, 3))
    await replace(1, 2)(writer)
  })
  t.equal(finds, 2, 'the unit runs again because a row that it found and replaces has changed')
  const basing = (id: number) => async (writer: EngineWriter) => {
    if ((await writer.get(KIND, 1, idOf(1))) !== undefined) await writer.put(draft(id))
  }
  t.equal(
    await runs(basing(20), () => two.write(replace(1, 4))),
    2,
    'the unit runs again because a row on which its decision depends has changed',
  )
  t.equal(await runs(basing(21), () => two.write(put(99))), 1)
  const remove = () => two.write((writer) => writer.remove(KIND, 1, idOf(1)))
  t.equal(await runs(basing(22), remove), 2)
  t.equal(await read(one, 22), undefined, 'no row is put if its parent was removed')
})

t.test('a unit of work that only reads sees the state of one moment, even if it fails', async (t) => {
  const { one, two } = await openEngines(t, 2)
  for (const id of [1, 2]) await one.write(put(id))
  const move = (to: number) =>
    two.write(async (writer) => {
      await replace(1, to)(writer)
      await replace(2, to)(writer)
    })
  for (const fails of [false, true]) {
    const seen: string[] = []
    const reading = one.write(async (writer) => {
      const first = (await writer.get(KIND, 1, idOf(1)))!.sealed[0]
      if (seen.length === 0) await move(fails ? 8 : 7)
      seen.push(`${first} ${(await writer.get(KIND, 1, idOf(2)))!.sealed[0]}`)
      if (fails) throw new Error('refused')
    })
    await reading.catch(({ message }) => t.equal(message, 'refused'))
    t.match(seen.at(-1), /^(\d+) \1$/)
  }
  let runs = 0
  const failing = one.write(async (writer) => {
    for (const id of [1, 2]) await replace(id, 9)(writer)
    if ((await writer.get(KIND, 1, idOf(1)))?.sealed[0] !== 9) throw new Error('not its own')
    runs++
    throw new Error('refused')
  })
  await t.rejects(failing, { message: 'refused' })
  t.equal(runs, 1, 'a unit without a collision runs once')
  t.not(await textOf(one, 1), 9)
})

t.test(
  'a unit that lists pending log entries finds entries of earlier reads by the same process',
  async (t) => {
    const cached = 2
    const { one } = await openEngines(t, 1, [cached])
    await one.write((writer) => writer.append(entry()), 'soon')
    const found = await one.read(async (reader) => {
      // A unit that only reads may send only one statement for rows that are not cached. The second of these reads
      // makes the unit run again in a snapshot, which begins before the log entry is stored.
      await reader.get(cached, 1, idOf(1))
      for (const id of [1, 2]) await reader.get(KIND, 1, idOf(id))
      return reader.pendingEntries(1)
    })
    t.equal(found.length, 1)
  },
)

t.test('if a unit of work puts a row while it reads the id of the row, the row is stored', async (t) => {
  const { one } = await openEngines(t, 1)
  await one.write((writer) => Promise.all([writer.get(KIND, 1, idOf(1)), put(1)(writer)]))
  t.equal(await textOf(one, 1), 1)
})

t.test(
  'if several units search for a row, find nothing and put the row, exactly one row is stored',
  async (t) => {
    const { one, two, beforePages } = await openEngines(t, 2)
    const findOrPut = (id: number, isFirst: boolean) => async (writer: EngineWriter) => {
      if (!isFirst) await writer.get(KIND, 1, idOf(200))
      if ((await writer.find({ ...search(77), page: 1 })).total === 0)
        await writer.put(draft(id, { keys: [77] }))
    }
    for (const isFirst of [true, false])
      for (let round = 0; round < 3; round++) {
        const works = [1, 2, 3, 4].map((id) => findOrPut(100 + id, isFirst))
        await Promise.all(works.map((work, index) => (index % 2 ? one : two).write(work)))
        const found = await one.read((reader) => reader.seek(search(77)))
        t.equal(found.length, 1)
        await two.write((writer) => writer.remove(KIND, 1, found[0]!.id))
      }
    await two.write(put(77))
    beforePages.push(() => two.write((writer) => writer.remove(KIND, 1, idOf(77))))
    await one.write(async (writer) => {
      if ((await writer.find({ ...search(77), page: 1 })).total > 0) return
      await two.write(put(77))
      await writer.put(draft(78, { keys: [77] }))
    })
    t.equal(
      (await one.read((reader) => reader.seek(search(77)))).length,
      1,
      'exactly one row is stored even if a row is removed before the page is read',
    )
  },
)

t.test('a unit that removes a parent sees a child that another unit adds meanwhile', async (t) => {
  for (const written of [[], [50]]) {
    const { one: engine, pool } = await openEngines(t, 1)
    await engine.write(put(1))
    const numbers: number[] = []
    await pool.using(async (connection) => {
      await connection.send(['begin', 'select 1 from coffer_rows for share'].map((text) => ({ text })))
      const removing = engine.write(async (writer) => {
        numbers.push((await writer.find({ ...search(77), page: 1 })).total)
        for (const id of written) await writer.put(draft(id, { kind: 2 }))
        // The reads first send the pending changes of the unit. After these changes are sent, the unit is one
        // transaction.
        for (const id of written) await writer.get(2, 1, idOf(id))
        await writer.remove(KIND, 1, idOf(1))
      })
      await until(async () => {
        const waiting = 'select 1 from pg_locks l join pg_stat_activity a using (pid)'
        const text = `${waiting} where not l.granted and a.datname = current_database()`
        return (await pool.query({ text })).rows.length > 0
      })
      const child = `select tenant, kind, '\\x02', nextval('coffer_seq'), rev, created, modified, expires, keys, sealed`
      await connection.send([
        { text: `insert into coffer_rows ${child} from coffer_rows` },
        { text: "insert into coffer_keys values (1, 1, $1, currval('coffer_seq'))", values: [keyOf(77)] },
        { text: 'commit' },
      ])
      await removing
    })
    t.strictSame(numbers, [0, 1])
  }
})

t.test('a unit that collides repeatedly ends within its time limit', async (t) => {
  const { one: engine } = await openEngines(t, 1)
  const { now } = performance
  let passed = 0
  performance.now = () => now.call(performance) + passed
  t.teardown(() => Object.assign(performance, { now }))
  const colliding = engine.write(() => {
    passed += 1_500
    throw new Collision('conflict')
  })
  await t.rejects(colliding, { code: 'unavailable', retryAfterSeconds: 1, message: /same records/ })
  t.equal(passed, 6_000)
  await engine.write(async (writer) => {
    passed += 1_500
    await writer.dropTenant(2)
    if (passed < 15_000) throw new Collision('conflict')
  })
  t.equal(passed, 15_000, 'the deletion of a tenant may take longer')
})

interface Plan {
  'Node Type': string
  Filter?: string
  Plans?: Plan[]
  'Shared Hit Blocks'?: number
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
const typesOf = (plan: Plan) => nodesOf(plan).map((node) => node['Node Type'])

t.test('every statement uses an index and stops at its limit, before and after `analyze`', async (t) => {
  const { one: engine, statements, pool } = await openEngines(t, 1)
  const run = async (text: string, values: unknown[] = []) => (await pool.query({ text, values })).rows
  const explain = async (text: string, values?: unknown[]): Promise<Plan> =>
    (await run(text, values))[0]['QUERY PLAN'][0].Plan
  const fill = async (first: number, last: number) => {
    const numbers = `generate_series(${first}, ${last}) n`
    const steps = [1, 2, 5, 1000]
    const keys = steps.map((step, at) => {
      const key = Buffer.from(keyOf(at + 1)).toString('hex')
      return `case when n % ${step} = 0 then '\\x${key}'::bytea else '' end`
    })
    const all = `'\\x${'00'.repeat(8)}'::bytea`
    const row = `1, 1, decode(md5(n::text), 'hex'), n, 1, 1, 1, case when n % 7 = 0 then 4 else 0 end, ${[all, ...keys].join(' || ')}, decode(repeat('ab', 100), 'hex')`
    await run(`insert into coffer_rows select ${row} from ${numbers}`)
    for (const [key, step] of steps.entries())
      await run(`insert into coffer_keys select 1, 1, $1, n from ${numbers} where n % ${step} = 0`, [
        keyOf(key + 1),
      ])
    // The test adds few pending rows, because the engine moves pending rows one by one.
    const waiting = `9, decode(md5(n::text), 'hex'), 9, n, '\\x00' from ${numbers} where n % 5 = 0`
    await run(`insert into coffer_waiting select ${waiting}`)
    await run(`select setval('coffer_seq', ${Math.max(last, 1)})`)
  }
  const [all, half, fifth, rare] = [1, 2, 3, 4].map((key): Where => ({ key: keyOf(key) })) as Where[] as [
    Where,
    Where,
    Where,
    Where,
  ]
  const many: Where = { or: Array.from({ length: 40 }, (_, at): Where => ({ key: keyOf(at + 3) })) }
  const wheres: (Where | undefined)[] = [
    ...[{ and: [half, many] }, { and: [half, { not: many }] }, many],
    ...[undefined, all, half, { or: [half, fifth] }, { and: [all, { or: [half, fifth] }] }],
    ...[{ and: [all, { not: half }] }, { not: half }, { and: [all, rare] }, { ids: [idOf(1), idOf(2)] }],
  ]
  const query = (where?: Where) => ({
    ...{ kind: KIND, tenant: 1, all: bytes(8, 0), size: 20, maxBytes: 1000 },
    ...(where && { where }),
  })
  const totalOf = async (where?: Where) => {
    const { text, values } = sql.searchStatement({ ...query(where), page: 1 }, 5)
    return (await run(text, values))[0].total
  }
  /** Runs units of work that send every kind of statement. */
  const work = async () => {
    await engine.write(put(1))
    await engine.write(replace(1, 2, [1, 2]))
    await engine.write((writer) => writer.remove(KIND, 1, idOf(1)))
    await engine.write(async (writer) => {
      await writer.findExpired(9)
      await put(2)(writer)
      await writer.remove(KIND, 1, idOf(2))
    })
    await engine.write(async (writer) => {
      await writer.find({ ...query(half), page: 1 })
      await writer.seek({ ...query(half), size: 1 })
    })
    for (const where of wheres)
      await engine.read(async (reader) => {
        await reader.seek({ ...query(where), below: 9 ** 9 })
        await reader.seek({ ...query(where), above: 0 })
        await reader.find({ ...query(where), page: 2 })
        await reader.pendingEntries!(1)
      })
    await engine.logs.chainPending()
  }
  const seen = new Set<string>()
  for (const [first, last] of [
    [1, 0],
    [1, 2000],
    [2001, 8000],
  ] as const) {
    await fill(first, last)
    for (let analyzed = 0; analyzed < 2; analyzed++) {
      statements.length = 0
      await work()
      for (const { text, values } of [...statements]) {
        if (!/^(select|with|insert|update|delete)/.test(text)) continue
        seen.add(text)
        const plan = await explain(`explain (format json) ${text}`, values)
        t.notMatch(typesOf(plan).join(), /Seq Scan|Hash|Bitmap|Merge Join/, text)
        const filters = nodesOf(plan).map(({ Filter = '' }) => Filter)
        t.notMatch(filters.join(), /\bid = /, `looks up ids in an index and not with a filter: ${text}`)
        for (const sort of nodesOf(plan).filter((node) => node['Node Type'] === 'Sort')) {
          const isOfRows = typesOf(sort).some((type) => /Index/.test(type))
          t.ok(!isOfRows || typesOf(sort).includes('Limit'), `sorts rows only after a limit: ${text}`)
        }
      }
      await engine.verify(() => ({}))
      const comparing = statements.find(({ text }) => text.endsWith('as wrong'))!.text
      const plan = await explain(`explain (analyze, buffers, timing off, format json) ${comparing}`)
      const blocks = plan['Shared Hit Blocks']!
      t.ok(blocks < 400 + 20 * last, `the comparison of keys reads ${blocks} blocks`)
      for (const where of wheres) {
        const { text, values } = sql.searchStatement(query(where), 5)
        const page = await explain(`explain (analyze, buffers, timing off, format json) ${text}`, values)
        const blocks = page['Shared Hit Blocks']!
        t.ok(blocks < 400, `a page of ${last} rows reads ${blocks} blocks: ${JSON.stringify(where)}`)
      }
      for (const where of [...wheres, { and: [half, fifth] }, { and: [{ or: [half, rare] }, fifth] }])
        t.equal(
          await totalOf(where),
          // With a range, the statement counts the matching rows one by one instead of using the index of keys.
          await totalOf({ and: [where ?? { and: [] }, { range: 'created', from: 0 }] }),
          `the index of keys counts ${JSON.stringify(where)} of ${last} rows`,
        )
      for (const table of ['rows', 'keys', 'waiting']) await run(`analyze coffer_${table}`)
    }
  }
  t.ok(seen.size > 20, `${seen.size} statements`)
})

t.test(
  'while the store answers other statements, a statement waits for a free connection without a time limit',
  async (t) => {
    const pool = new ConnectionPool({ connectionString: await sharedDatabase() })
    t.teardown(() => pool.close())
    const since = performance.now()
    const statements = Array.from({ length: 400 }, () => pool.query({ text: 'select pg_sleep(0.12)' }))
    t.equal((await Promise.all(statements)).length, 400)
    t.ok(
      performance.now() - since > TIMEOUT_MS,
      'the statement waited longer than the limit for a store that does not answer',
    )
  },
)
