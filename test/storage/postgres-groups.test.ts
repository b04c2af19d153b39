import t, { type Test } from 'tap'
import { createRandom } from '../../src/crypto/random.js'
import type { Draft, EngineWriter, LogSealer } from '../../src/storage/engine.js'
import { bytesArray, numbersArray } from '../../src/storage/postgres/binary.js'
import { openPostgresEngine, type PostgresEngine } from '../../src/storage/postgres/engine.js'
import { Gatherer } from '../../src/storage/postgres/gatherer.js'
import { Collision, ConnectionPool, PATIENCE_MS } from '../../src/storage/postgres/pool.js'
import { findStatement, seekStatement } from '../../src/storage/postgres/query-sql.js'
import { insertStatement } from '../../src/storage/postgres/write-sql.js'
import { createTables, sharedDatabase } from './postgres-server.js'

const REMEMBERED = 7
const KIND = 1
const bytes = (length: number, value: number) => new Uint8Array(length).fill(value)

function draft(id: number, kind = KIND): Draft {
  const keys = Buffer.concat([bytes(8, 0), bytes(8, id), bytes(8, id)])
  return { kind, tenant: 1, id: bytes(16, id), modified: 0, expires: 0, keys, seal: () => bytes(40, id) }
}

const sealer: LogSealer = {
  seal: () => undefined,
  sealPending: (_, __, entries) => Buffer.from(`${entries.length}`),
  openPending: () => [],
}

/** Engines of one store; `sent` has the names of the statements that the first one sends, by the round trip. */
async function openEngines(t: Test, count: number) {
  const config = await createTables(await sharedDatabase())
  const sent: string[][] = []
  const engines: PostgresEngine[] = []
  for (let number = 0; number < count; number++) {
    const pool = new ConnectionPool(config)
    const connect = pool.connect.bind(pool)
    pool.connect = async () => {
      const connection = await connect()
      const send = connection.send.bind(connection)
      connection.send = (statements) => {
        if (number === 0) sent.push(statements.map(({ name, text }) => name ?? text))
        return send(statements)
      }
      return connection
    }
    const given = { pool, clock: Date.now, random: createRandom(), remembered: new Set([REMEMBERED]) }
    const engine = await openPostgresEngine(given)
    engine.attach(sealer)
    // The first write notes the time, with a transaction.
    await engine.write((writer) => writer.noteTime({ isTrusted: true }))
    t.teardown(() => engine.close())
    engines.push(engine)
  }
  sent.length = 0
  return { engines, sent }
}

const read = (engine: PostgresEngine, id: number) =>
  engine.read((reader) => reader.get(KIND, 1, bytes(16, id)))
const put = (id: number) => async (writer: EngineWriter) => {
  await writer.append({ tenant: 1, bytes: 10, time: 0 })
  await writer.put(draft(id))
}

t.test('what units of one turn put as new is one statement, and what they read is one', async (t) => {
  const { engines, sent } = await openEngines(t, 1)
  const [engine] = engines as [PostgresEngine]
  const ids = Array.from({ length: 30 }, (_, at) => at + 1)
  await Promise.all(ids.map((id) => engine.write(put(id))))
  t.strictSame(sent.splice(0), [['new rows logs']])
  const rows = await Promise.all([...ids, 99].map((id) => read(engine, id)))
  t.strictSame(sent.splice(0), [['get']])
  t.strictSame(
    rows.map((row) => row && Buffer.from(row.sealed)),
    [...ids.map((id) => Buffer.from(bytes(40, id))), undefined],
  )
  const listed = await engine.read((reader) =>
    reader.find({ kind: KIND, tenant: 1, all: bytes(8, 0), where: { key: bytes(8, 5) }, page: 1, size: 9 }),
  )
  t.strictSame([listed.total, listed.rows.length], [1, 1], 'a key that a row has twice leads to it once')
  t.equal(new Set(rows.map((row) => row?.seq)).size, 31)
})

t.test('one that fails does not fail those it was sent with', async (t) => {
  const { engines } = await openEngines(t, 1)
  const [engine] = engines as [PostgresEngine]
  await engine.write(put(1))
  const results = await Promise.allSettled([2, 1, 3, 4, 4].map((id) => engine.write(put(id))))
  const outcomes = results.map(({ status }) => status)
  t.strictSame(outcomes.slice(0, 3), ['fulfilled', 'rejected', 'fulfilled'])
  t.strictSame(outcomes.slice(3).toSorted(), ['fulfilled', 'rejected'], 'of two of one id, one is put')
  for (const id of [2, 3, 4]) t.ok(await read(engine, id))
})

t.test('what another has changed is seen by all that are sent together', async (t) => {
  const { engines } = await openEngines(t, 2)
  const [engine, other] = engines as [PostgresEngine, PostgresEngine]
  const seen: number[][] = []
  const work = (id: number) => async (writer: EngineWriter) => {
    const counter = writer.changeCounter!(REMEMBERED)!
    seen[id] ??= []
    seen[id].push(counter)
    if (counter === engine.believedCounter(REMEMBERED)) await put(id)(writer)
  }
  const before = engine.believedCounter(REMEMBERED)!
  const change = async (id: number) => {
    await other.write((writer) => writer.put(draft(id, REMEMBERED)))
    return other
      .read((reader) => reader.get(KIND, 1, bytes(16, id)))
      .then(() => other.believedCounter(REMEMBERED)!)
  }
  const first = await change(1)
  t.ok(first > before)
  await Promise.all([1, 2, 3].map((id) => engine.write(work(id))))
  for (const id of [1, 2, 3]) t.strictSame(seen[id], [before, first], 'run again with the counter of now')
  const second = await change(2)
  const counters: number[] = []
  const reads = [1, 2, 3].map((id) =>
    engine.read(async (reader) => {
      const counter = reader.changeCounter!(REMEMBERED)!
      const row = await reader.get(KIND, 1, bytes(16, id))
      counters.push(counter)
      return row
    }),
  )
  for (const row of await Promise.all(reads)) t.ok(row)
  t.strictSame(counters, [second, second, second], 'no answer is from what was believed before')
})

t.test('a list by a key looks each row up, whatever the table was when it was analyzed', async (t) => {
  const pool = new ConnectionPool(await createTables(await sharedDatabase()))
  t.teardown(() => pool.close())
  const run = async (text: string, values: unknown[] = []) => (await pool.query({ text, values })).rows
  const row = "1, 1, decode(md5(n::text), 'hex'), n, 1, 1, 1, 0, '\\x00', decode(repeat('ab', 100), 'hex')"
  await run(`insert into coffer_rows select ${row} from generate_series(1, 2000) n`)
  await run(`insert into coffer_keys select 1, 1, '\\x01', n from generate_series(1, 2000) n`)
  for (const table of ['coffer_rows', 'coffer_keys']) await run(`analyze ${table}`)
  const query = { kind: 2, tenant: 1, all: bytes(8, 0), where: { key: bytes(8, 1) }, page: 1, size: 20 }
  for (const { text, values } of [findStatement(query, 5), seekStatement({ ...query, below: 9 }, 5)]) {
    const plan = (await run(`explain ${text}`, values)).map((line) => line['QUERY PLAN']).join('\n')
    const scans = plan.match(/ on coffer_rows .*\n.*/g) ?? []
    t.ok(scans.length > 0)
    for (const scan of scans) t.match(scan, /Index Cond: .*\(seq = a\w*\.seq\)/)
  }
})

t.test(
  'a unit that collides again and again is answered in time, also while it waits for its turn',
  async (t) => {
    const { engines } = await openEngines(t, 1)
    const [engine] = engines as [PostgresEngine]
    const { now } = performance
    let passed = 0
    performance.now = () => now.call(performance) + passed
    t.teardown(() => {
      performance.now = now
    })
    const busy = { code: 'unavailable', retryAfterSeconds: 1, message: /same records/ }
    let attempts = 0
    const colliding = engine.write(() => {
      attempts++
      passed += 1_500
      throw new Collision('conflict')
    })
    await t.rejects(colliding, busy)
    t.equal(attempts, 4)
    let dropped = 0
    const dropping = engine.write(async (writer) => {
      await writer.dropTenant(2)
      passed += 1_500
      if (++dropped < 6) throw new Collision('conflict')
    })
    await dropping
    t.equal(dropped, 6, 'the deletion of a tenant may take longer')
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    let runs = 0
    const begun = new Promise<void>((resolve) => {
      void engine.write(() => {
        if (++runs === 1) throw new Collision('conflict')
        resolve()
        return gate
      })
    })
    await begun
    const waiting = engine.write(() => {
      passed += 4_990
      throw new Collision('conflict')
    })
    await t.rejects(waiting, busy, 'another has the turn')
    release()
    await engine.write(put(1))
    t.ok(await read(engine, 1))
  },
)

t.test('a group is no larger than it may be, and no more are under way', async (t) => {
  const groups: number[][] = []
  const ends: (() => void)[] = []
  const gatherer = new Gatherer<number, number>(
    async (asks) => {
      groups.push([...asks])
      await new Promise<void>((resolve) => ends.push(resolve))
      return asks.map((ask) => (ask === 3 ? new Error('three') : ask * 10))
    },
    { most: 2, mostWeight: 8, weigh: (ask) => ask, atOnce: 2, crowd: 9, patienceMs: 1000 },
  )
  const answers = Promise.allSettled([1, 2, 3, 4, 5].map((ask) => gatherer.ask(ask)))
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  for (let left = 20; left > 0; left--) await turn()
  t.strictSame(groups, [
    [1, 2],
    [3, 4],
  ])
  ends[0]!()
  for (let left = 20; left > 0; left--) await turn()
  t.strictSame(groups, [[1, 2], [3, 4], [5]])
  for (const end of ends) end()
  for (const ask of [6, 2, 3, 9, 1]) void gatherer.ask(ask).catch(() => undefined)
  for (let left = 20; left > 0; left--) {
    await turn()
    for (const end of ends) end()
  }
  t.strictSame(groups.slice(3), [[6, 2], [3], [9], [1]], 'by their weight too')
  const found = await answers
  t.strictSame(
    found.map((each) => (each.status === 'fulfilled' ? each.value : (each.reason as Error).message)),
    [10, 20, 'three', 40, 50],
  )
})

t.test(
  'what waits behind a group is not sent where that fails late, and is where it fails soon',
  async (t) => {
    const ends: (() => void)[] = []
    const gatherer = new Gatherer<number, number>(
      async (asks) => {
        await new Promise<void>((resolve) => ends.push(resolve))
        if (asks[0] === 1) throw new Error('away')
        return [...asks]
      },
      { most: 1, mostWeight: 9, weigh: () => 1, atOnce: 2, crowd: 1, patienceMs: 20 },
    )
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    for (const ms of [0, 30]) {
      const answers = Promise.allSettled([1, 2, 3].map((ask) => gatherer.ask(ask)))
      await turn()
      await new Promise((resolve) => setTimeout(resolve, ms))
      ends[0]!()
      for (let left = 20; left > 0; left--) {
        await turn()
        for (const end of ends) end()
      }
      const statuses = (await answers).map(({ status }) => status)
      t.strictSame(statuses.slice(1), Array(2).fill(ms === 0 ? 'fulfilled' : 'rejected'))
      ends.length = 0
    }
  },
)

t.test('arrays in binary form are those that were given', async (t) => {
  const pool = new ConnectionPool(await createTables(await sharedDatabase()))
  t.teardown(() => pool.close())
  const numbers = {
    int2: [0, -1, 32_767, -32_768],
    int4: [0, -1, 2 ** 31 - 1, -(2 ** 31)],
    int8: [0, -1, 2 ** 32, 2 ** 47 - 1, -(2 ** 33), Number.MAX_SAFE_INTEGER],
  }
  for (const [type, values] of Object.entries(numbers) as ['int2' | 'int4' | 'int8', number[]][])
    for (const given of [values, []]) {
      const text = `select a::bigint as a from unnest($1::${type}[]) as a`
      const { rows } = await pool.query({ text, values: [numbersArray(type, given)] })
      t.strictSame(
        rows.map(({ a }) => a),
        given,
        type,
      )
    }
  const given = [bytes(0, 0), bytes(3, 0), bytes(500, 255)].map((each) => Buffer.from(each))
  const { rows } = await pool.query({
    text: 'select a from unnest($1::bytea[]) as a',
    values: [bytesArray(given)],
  })
  t.strictSame(
    rows.map(({ a }) => a),
    given,
  )
})

t.test('log entries that are sent again, because no answer came, are there once', async (t) => {
  const pool = new ConnectionPool(await createTables(await sharedDatabase()))
  t.teardown(() => pool.close())
  const waiting = [{ id: bytes(16, 1), tenant: 1, owner: bytes(16, 2), written: 3, sealed: bytes(4, 4) }]
  for (let left = 2; left > 0; left--) await pool.query(insertStatement({ rows: [], waiting }))
  const { rows } = await pool.query({ text: 'select count(*) as count from coffer_waiting' })
  t.equal(rows[0].count, 1)
})

t.test(
  'while the store answers, statements wait for a free connection for as long as it takes',
  async (t) => {
    const pool = new ConnectionPool({ connectionString: await sharedDatabase() })
    t.teardown(() => pool.close())
    const since = performance.now()
    const statements = Array.from({ length: 320 }, () => pool.query({ text: 'select pg_sleep(0.12)' }))
    t.equal((await Promise.all(statements)).length, 320)
    t.ok(performance.now() - since > PATIENCE_MS, 'longer than for a store that is away')
  },
)
