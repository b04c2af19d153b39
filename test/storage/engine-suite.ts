/**
 * What every engine promises, as one suite: rows found exactly, newest first, works that fail leave no trace. Opens
 * engines through `open`, and knows of none in particular.
 */
import fc from 'fast-check'
import type { Test } from 'tap'
import type { Draft, Engine, Query, Row, RowPage, Where } from '../../src/storage/engine.js'
import { asLog } from './engines.js'
import { type createClock, digest } from './powers.js'

export interface OpenedEngine {
  engine: Engine
  clock: ReturnType<typeof createClock>
  /** Moves what is in memory or log to where it shall stay. */
  flush?(): Promise<void>
  /** Closes the engine and opens what it left behind. */
  reopen?(): Promise<Engine>
}

const KIND = 3
const LOG_KIND = 255

const bytes = (text: string) => new Uint8Array(Buffer.from(text))
const idOf = (name: string, tenant = 1) => digest(`id/${KIND}/${tenant}/${name}`, 16)
const keyOf = (name: string, tenant = 1) => digest(`key/${tenant}/${name}`, 8)
const textOf = (row: Row) => Buffer.from(row.sealed).toString()

function joinKeys(names: readonly string[], tenant: number): Uint8Array {
  const keys = new Uint8Array(8 * names.length)
  names.forEach((name, index) => {
    keys.set(keyOf(name, tenant), 8 * index)
  })
  return keys
}

interface Wanted {
  name: string
  text?: string
  keys?: readonly string[]
  tenant?: number
  expires?: number
  modified?: number
}

export function draftOf({
  name,
  text = name,
  keys = [],
  tenant = 1,
  expires = 0,
  modified = 0,
}: Wanted): Draft {
  const all = joinKeys(['all', ...keys], tenant)
  return { kind: KIND, tenant, id: idOf(name, tenant), modified, expires, keys: all, seal: () => bytes(text) }
}

/** As an entry of the log, a row of another kind. */
function logOf(text: string, keys: readonly string[] = [], tenant = 1) {
  const all = joinKeys(['logs', ...keys], tenant)
  const id = digest(`log/${tenant}/${text}`, 16)
  const draft = { kind: LOG_KIND, tenant, id, modified: 0, expires: 0, keys: all }
  return asLog({ ...draft, seal: () => bytes(text) })
}

function queryOf(where?: Where, page: Partial<Query> = {}): Query {
  const tenant = page.tenant ?? 1
  const query = {
    kind: KIND,
    tenant,
    all: keyOf('all', tenant),
    page: 1,
    size: 20,
  } as const
  return { ...query, ...page, ...(where === undefined ? {} : { where }) }
}

function logQueryOf(where?: Where, page: Partial<Query> = {}): Query {
  return queryOf(where, { kind: LOG_KIND, all: keyOf('logs', page.tenant ?? 1), ...page })
}

/** A page; and whatever is asked, seeking gives the same rows from the newest to the oldest, in steps of any size. */
const find = (engine: Engine, query: Query) =>
  engine.read(async (reader) => {
    const found = await reader.find(query)
    const { page, size, ...sought } = query
    const all: Row[] = []
    for (let some: Row[] | undefined; some === undefined || some.length > 0; all.push(...some)) {
      some = await reader.seek({ ...sought, size: (all.length % 3) + 1, below: all.at(-1)?.seq })
      if (some.length > (all.length % 3) + 1) throw new Error('more were found than sought')
    }
    agree(all.length, found.total, { sought })
    const texts = all.slice((page - 1) * size, page * size).map(textOf)
    agree(texts, found.rows.map(textOf), { sought })
    return found
  })
const shown = ({ rows, total }: RowPage) => ({ texts: rows.map(textOf), total })

const insert = (engine: Engine, ...wanted: Wanted[]) =>
  engine.write(async (writer) => {
    for (const one of wanted) await writer.put(draftOf(one))
  })

/** Replaces as callers do: with what they read. */
const replace = (engine: Engine, wanted: Wanted) =>
  engine.write(async (writer) => {
    const row = await writer.get(KIND, wanted.tenant ?? 1, idOf(wanted.name, wanted.tenant), {
      expired: true,
    })
    if (row === undefined) throw new Error('nothing to replace')
    await writer.put({ ...draftOf(wanted), seq: row.seq, created: row.created })
  })

const remove = (engine: Engine, name: string, tenant = 1) =>
  engine.write((writer) => writer.remove(KIND, tenant, idOf(name, tenant)))

const get = (engine: Engine, name: string, options: { tenant?: number; expired?: boolean } = {}) =>
  engine.read((reader) =>
    reader.get(KIND, options.tenant ?? 1, idOf(name, options.tenant), { expired: options.expired ?? false }),
  )

/** What engines of this process promise besides. */
export function localSuite(t: Test, open: () => Promise<OpenedEngine>): void {
  t.test('seq and rev have no gaps, whatever fails', async (t) => {
    const { engine } = await open()
    await insert(engine, { name: 'a' }, { name: 'b' })
    const failing = engine.write(async (writer) => {
      await writer.put(draftOf({ name: 'c' }))
      throw new Error('undone')
    })
    await t.rejects(failing, { message: 'undone' })
    await replace(engine, { name: 'a' })
    await engine.write((writer) => writer.append(logOf('log')))
    await insert(engine, { name: 'c' })
    t.match(await get(engine, 'a'), { seq: 1, rev: 3 })
    t.match((await find(engine, logQueryOf())).rows, [{ seq: 3, rev: 4 }])
    t.match(await get(engine, 'c'), { seq: 4, rev: 5 })
    await engine.close()
  })

  t.test('after a jump of the clock nothing is purged for an hour', async (t) => {
    const { engine, clock } = await open()
    const HOUR = 3_600_000
    const expired = () => engine.write((writer) => writer.findExpired(10)).then((rows) => rows.map(textOf))
    const note = () => engine.write((writer) => writer.storeTime())
    await insert(engine, { name: 'a', expires: 2_000 }, { name: 'b', expires: 500 })
    t.strictSame(await expired(), ['b'])
    clock.set(1_000 + 25 * HOUR)
    t.strictSame(await expired(), ['b'], 'what expired before the jump may go')
    await note()
    clock.set(clock() + HOUR - 1)
    t.strictSame(await engine.read((reader) => reader.findExpired(10)).then((rows) => rows.map(textOf)), [
      'b',
    ])
    clock.set(clock() + 1)
    await note()
    t.strictSame((await expired()).sort(), ['a', 'b'])
    await engine.close()
  })

  t.test('works run one after another in the order they came', async (t) => {
    const { engine } = await open()
    const order: string[] = []
    const work = (name: string) => async () => {
      order.push(`${name} begins`)
      await new Promise(setImmediate)
      order.push(`${name} ends`)
    }
    await Promise.all([engine.write(work('one')), engine.read(work('two')), engine.write(work('three'))])
    t.strictSame(order, ['one begins', 'one ends', 'two begins', 'two ends', 'three begins', 'three ends'])
    await engine.close()
  })
}

/** Runs every promise against engines that `open` makes. */
export function engineSuite(t: Test, open: () => Promise<OpenedEngine>, { runs = 120 } = {}): void {
  testRows(t, open)
  testWorks(t, open)
  testQueries(t, open)
  testTime(t, open)
  testModel(t, open, runs)
}

function testRows(t: Test, open: () => Promise<OpenedEngine>): void {
  t.test('gives a row back as it was put, without its keys', async (t) => {
    const { engine } = await open()
    await insert(engine, { name: 'a', text: 'first', keys: ['red'], expires: 5_000, modified: 700 })
    const row = await get(engine, 'a')
    t.match(row, { kind: KIND, tenant: 1, created: 1_000, modified: 700, expires: 5_000 })
    t.equal(row && textOf(row), 'first')
    t.strictSame(row && Buffer.from(row.id), Buffer.from(idOf('a')))
    t.equal(row?.keys.length, 0)
    t.equal(await get(engine, 'b'), undefined)
    t.equal(await get(engine, 'a', { tenant: 2 }), undefined)
    await engine.close()
  })
}

function testWorks(t: Test, open: () => Promise<OpenedEngine>): void {
  t.test('a work that throws leaves no trace', async (t) => {
    const { engine } = await open()
    await insert(engine, { name: 'a', text: 'kept', keys: ['red'] })
    const failing = engine.write(async (writer) => {
      await writer.put(draftOf({ name: 'b' }))
      const row = await writer.get(KIND, 1, idOf('a'))
      await writer.put({ ...draftOf({ name: 'a', text: 'lost' }), seq: row!.seq, created: row!.created })
      await writer.append(logOf('lost'))
      await writer.dropTenant(1)
      throw new Error('changed my mind')
    })
    await t.rejects(failing, { message: 'changed my mind' })
    t.strictSame(shown(await find(engine, queryOf())), { texts: ['kept'], total: 1 })
    t.equal((await find(engine, logQueryOf())).total, 0)
    await insert(engine, { name: 'b' })
    t.strictSame(shown(await find(engine, queryOf())), { texts: ['b', 'kept'], total: 2 })
    await engine.close()
  })

  t.test('a work sees its own changes, others only when it has ended', async (t) => {
    const { engine } = await open()
    const seen = await engine.write(async (writer) => {
      await writer.put(draftOf({ name: 'a', keys: ['red'] }))
      const before = shown(await writer.find(queryOf({ key: keyOf('red') })))
      await writer.remove(KIND, 1, idOf('a'))
      return [before, shown(await writer.find(queryOf())), await writer.get(KIND, 1, idOf('a'))]
    })
    t.strictSame(seen, [{ texts: ['a'], total: 1 }, { texts: [], total: 0 }, undefined])
    await engine.close()
  })

  t.test(
    'an engine counts all changes of a kind that are committed, and vouches for no others',
    async (t) => {
      const { engine, flush } = await open()
      if (engine.changeCounter === undefined) {
        t.pass('or it has none that is valid outside a unit')
        return engine.close()
      }
      const counter = (kind: number) => engine.changeCounter?.(kind)
      const seen = () => engine.read((reader) => reader.changeCounter?.(KIND))
      const first = counter(KIND)
      t.equal(await seen(), first)
      await engine.write(async (writer) => {
        t.equal(writer.changeCounter?.(KIND), first)
        await writer.put(draftOf({ name: 'one' }))
        t.equal(writer.changeCounter?.(KIND), undefined)
        t.equal(writer.changeCounter?.(KIND + 1), counter(KIND + 1), 'of another kind it is what it was')
      })
      const second = counter(KIND)
      t.not(second, first)
      t.equal(await seen(), second)
      const failing = engine.write(async (writer) => {
        await writer.put(draftOf({ name: 'two' }))
        throw new Error('undone')
      })
      await t.rejects(failing, { message: 'undone' })
      await engine.write((writer) => writer.append(logOf('a log row')))
      await flush?.()
      t.equal(
        await engine.write((writer) => writer.changeCounter?.(KIND)),
        second,
        'what failed, logs and flushing change none',
      )
      await engine.write((writer) => writer.remove(KIND, 1, idOf('one')))
      const third = counter(KIND)
      t.not(third, second)
      const other = counter(KIND + 1)
      await engine.write(async (writer) => {
        await writer.dropTenant(7)
        t.equal(writer.changeCounter?.(KIND + 1), undefined, 'a tenant takes rows of every kind along')
      })
      t.not(counter(KIND + 1), other)
      await engine.close()
    },
  )

  t.test('works that come together are as if one had run after another', async (t) => {
    const { engine } = await open()
    await insert(engine, { name: 'count', text: '0' })
    const add = () =>
      engine.write(async (writer) => {
        const row = (await writer.get(KIND, 1, idOf('count')))!
        await new Promise(setImmediate)
        const draft = draftOf({ name: 'count', text: String(Number(textOf(row)) + 1) })
        await writer.put({ ...draft, seq: row.seq, created: row.created })
      })
    const read = () => engine.read(async (reader) => textOf((await reader.get(KIND, 1, idOf('count')))!))
    await Promise.all(Array.from({ length: 12 }, add))
    t.equal(await read(), '12')
    const [, seen] = await Promise.all([add(), add().then(read)])
    // The other one may still be under way.
    t.ok(['13', '14'].includes(seen), seen)
    t.equal(await read(), '14')
    await engine.close()
  })

  t.test('a row is sealed for the revision that it gets', async (t) => {
    const { engine } = await open()
    const seal = (rev: number) => bytes(String(rev))
    await engine.write(async (writer) => {
      await writer.put({ ...draftOf({ name: 'a' }), seal })
      await writer.append(asLog({ ...logOf('log').draft, seal }))
      const row = (await writer.get(KIND, 1, idOf('a')))!
      await writer.put({ ...draftOf({ name: 'a' }), seal, seq: row.seq, created: row.created })
    })
    const rows = [...(await find(engine, queryOf())).rows, ...(await find(engine, logQueryOf())).rows]
    t.strictSame(
      rows.map(textOf),
      rows.map(({ rev }) => String(rev)),
    )
    t.equal(new Set(rows.map(({ rev }) => rev)).size, 2)
    await engine.close()
  })

  t.test('a writer refuses when its work has ended, and an engine when it is closed', async (t) => {
    const { engine } = await open()
    const writer = await engine.write(async (held) => ({ held }))
    await t.rejects(async () => writer.held.put(draftOf({ name: 'late' })), { code: 'internal' })
    await engine.close()
    await t.rejects(insert(engine, { name: 'later' }), { code: 'internal' })
    await t.rejects(find(engine, queryOf()), { code: 'internal' })
    await engine.close()
  })

  t.test('refuses rows that its fields cannot hold', async (t) => {
    const { engine } = await open()
    const draft = draftOf({ name: 'a' })
    const wrong: Partial<Draft>[] = [
      { id: new Uint8Array(15) },
      { kind: 256 },
      { tenant: 65_536 },
      { expires: 2 ** 48 },
      { modified: 1.5 },
      { keys: new Uint8Array(7) },
      { keys: new Uint8Array(8 * 256) },
      { seq: 1 },
    ]
    for (const part of wrong) {
      await t.rejects(
        engine.write((writer) => writer.put({ ...draft, ...part })),
        { code: 'internal' },
        String(Object.keys(part)),
      )
    }
    await insert(engine, { name: 'a' })
    await t.rejects(insert(engine, { name: 'a' }), { code: 'internal' }, 'a new row of an id that is taken')
    t.equal((await find(engine, queryOf())).total, 1)
    await engine.close()
  })
}

function testQueries(t: Test, open: () => Promise<OpenedEngine>): void {
  t.test('a row that has a key twice, new or replaced, is found by each of its keys', async (t) => {
    const { engine, flush } = await open()
    const keys = ['red', 'small', 'red', 'all', 'small']
    await insert(engine, { name: 'a', keys }, { name: 'b', keys: ['small', 'blue'] })
    await flush?.()
    const found = async (name: string) => shown(await find(engine, queryOf({ key: keyOf(name) }))).texts
    t.strictSame(await found('small'), ['b', 'a'])
    t.strictSame(await found('red'), ['a'])
    t.strictSame(await found('blue'), ['b'])
    await replace(engine, { name: 'b', keys: ['red', 'red'] })
    t.strictSame(await found('red'), ['b', 'a'])
    t.strictSame(await found('blue'), [])
    await remove(engine, 'a')
    t.strictSame(await found('small'), [])
    await engine.close()
  })

  t.test('answers only for the tenant and kind that were asked for', async (t) => {
    const { engine, flush } = await open()
    await insert(engine, { name: 'a' }, { name: 'b', tenant: 2 })
    await engine.write((writer) =>
      writer.put({
        ...draftOf({ name: 'x' }),
        kind: 9,
        id: digest('other', 16),
        keys: joinKeys(['kind9'], 1),
      }),
    )
    for (let round = 0; round < 2; round++) {
      t.strictSame(shown(await find(engine, queryOf())), { texts: ['a'], total: 1 })
      t.strictSame(shown(await find(engine, queryOf({ not: { key: keyOf('red') } }))), {
        texts: ['a'],
        total: 1,
      })
      t.strictSame(shown(await find(engine, queryOf(undefined, { tenant: 2 }))), { texts: ['b'], total: 1 })
      t.strictSame(shown(await find(engine, queryOf(undefined, { tenant: 3 }))), { texts: [], total: 0 })
      await flush?.()
    }
    await engine.close()
  })
}

function testTime(t: Test, open: () => Promise<OpenedEngine>): void {
  t.test('hides a row once its time is over, from that millisecond on', async (t) => {
    const { engine, clock, flush } = await open()
    await insert(engine, { name: 'a', keys: ['red'], expires: 2_000 }, { name: 'b', keys: ['red'] })
    for (let round = 0; round < 2; round++) {
      if (round === 0) {
        clock.set(1_999)
        t.equal((await find(engine, queryOf())).total, 2)
      }
      clock.set(2_000)
      t.equal(await get(engine, 'a'), undefined)
      t.match(await get(engine, 'a', { expired: true }), { expires: 2_000 })
      t.strictSame(shown(await find(engine, queryOf())), { texts: ['b'], total: 1 })
      t.strictSame(shown(await find(engine, queryOf({ key: keyOf('red') }))), { texts: ['b'], total: 1 })
      t.strictSame(shown(await find(engine, queryOf({ ids: [idOf('a')] }))), { texts: [], total: 0 })
      t.strictSame(shown(await find(engine, queryOf({ range: 'expires' }))), { texts: [], total: 0 })
      await flush?.()
    }
    await remove(engine, 'a')
    t.equal(await get(engine, 'a', { expired: true }), undefined)
    await insert(engine, { name: 'a', text: 'again' })
    t.strictSame(shown(await find(engine, queryOf())), { texts: ['again', 'b'], total: 2 })
    await engine.close()
  })

  t.test('finds what expired in every tenant until it is purged, and nothing else', async (t) => {
    const { engine, clock, flush } = await open()
    const expired = async (limit = 10) => {
      const rows = await engine.read((reader) => reader.findExpired(limit))
      return rows.map((row) => `${row.tenant}/${textOf(row)}`).sort()
    }
    for (const tenant of [1, 2, 3]) {
      await insert(engine, { name: 'a', tenant, expires: 2_000 }, { name: 'b', tenant, expires: 3_000 })
      await insert(engine, { name: 'c', tenant })
    }
    for (let round = 0; round < 2; round++) {
      if (round === 0) clock.set(1_999)
      t.strictSame(await expired(), round === 0 ? [] : ['1/a', '2/a', '3/a'])
      clock.set(2_000)
      t.strictSame(await expired(), ['1/a', '2/a', '3/a'])
      t.equal((await expired(2)).length, 2)
      await flush?.()
    }
    await replace(engine, { name: 'a', text: 'a, longer', tenant: 1, expires: 9_000 })
    await remove(engine, 'a', 2)
    await insert(engine, { name: 'late', tenant: 1, expires: 2_000 })
    t.strictSame(await expired(), ['1/late', '3/a'])
    await flush?.()
    await engine.write(async (writer) => {
      await writer.dropTenant(3)
      t.equal((await writer.findExpired(10)).length, 1, 'a unit of work sees its own changes')
    })
    t.strictSame(await expired(), ['1/late'])
    clock.set(9_000)
    t.strictSame(await expired(), ['1/a, longer', '1/b', '1/late', '2/b'])
    await engine.close()
  })

  t.test('order never goes back, though the clock does; dates and expiry go with the clock', async (t) => {
    const { engine, clock, flush } = await open()
    const times: number[] = []
    for (const time of [5_000, 3_000, 6_000, 1]) {
      clock.set(time)
      times.push(await engine.read(async ({ now }) => now))
      const written = engine.write(async (writer) => {
        await writer.put(draftOf({ name: `at ${time}` }))
        return writer.now
      })
      times.push(await written)
    }
    t.strictSame(times, [5_000, 5_000, 3_000, 3_000, 6_000, 6_000, 1, 1])
    const { rows } = await find(engine, queryOf())
    t.strictSame(rows.map(textOf), ['at 1', 'at 6000', 'at 3000', 'at 5000'])
    t.strictSame(
      rows.map(({ created }) => created),
      [1, 6_000, 3_000, 5_000],
    )
    for (let round = 0; round < 2; round++) {
      const within = await find(engine, queryOf({ range: 'created', from: 2_000, below: 5_500 }))
      t.strictSame(
        shown(within),
        { texts: ['at 3000', 'at 5000'], total: 2 },
        'a range finds them by their dates',
      )
      await flush?.()
    }
    await engine.close()
  })
}

// ---------------------------------------------------------------- against a model

type Condition =
  | { key: number }
  | { ids: number[] }
  | { and: Condition[] }
  | { or: Condition[] }
  | { not: Condition }
  | { range: 'created' | 'modified' | 'expires'; from: number; below: number }

type Step =
  | { do: 'put'; name: number; tenant: number; keys: number[]; expires: number }
  | { do: 'remove'; name: number; tenant: number }
  | { do: 'fail' | 'flush' | 'reopen' }
  | { do: 'drop'; tenant: number }
  | { do: 'log'; tenant: number; key: number }
  | { do: 'time'; by: number }
  | { do: 'find'; where: Condition; tenant: number; page: number; size: number; isLog: boolean }

interface ModelRow {
  name: number
  seq: number
  keys: number[]
  text: string
  created: number
  modified: number
  expires: number
}

interface Model {
  seq: number
  now: number
  records: Map<number, Map<number, ModelRow>>
  logs: Map<number, ModelRow[]>
}

const small = fc.nat({ max: 11 })
const tenants = fc.constantFrom(1, 1, 1, 2)
const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.record({ key: fc.nat({ max: 5 }) }),
    fc.record({ ids: fc.array(small, { maxLength: 4 }) }),
    fc.record({ and: fc.array(tie('condition'), { maxLength: 3 }) }),
    fc.record({ or: fc.array(tie('condition'), { maxLength: 3 }) }),
    fc.record({ not: tie('condition') }),
    fc.record({
      range: fc.constantFrom('created' as const, 'modified' as const, 'expires' as const),
      from: fc.integer({ min: 0, max: 1_400 }),
      below: fc.integer({ min: 900, max: 1_500 }),
    }),
  ),
}))

const put = fc.record({
  do: fc.constant('put' as const),
  name: small,
  tenant: tenants,
  keys: fc.uniqueArray(fc.nat({ max: 4 }), { maxLength: 3 }),
  expires: fc.constantFrom(0, 0, 1_100, 1_200, 1_300),
})

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: put },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), name: small, tenant: tenants }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('fail' as const, 'reopen' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('flush' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('drop' as const), tenant: fc.constant(2) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('log' as const), tenant: tenants, key: fc.nat({ max: 4 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('time' as const), by: fc.integer({ min: -30, max: 60 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('find' as const),
      where: condition,
      tenant: tenants,
      page: fc.integer({ min: 1, max: 3 }),
      size: fc.integer({ min: 1, max: 6 }),
      isLog: fc.boolean(),
    }),
  },
)

function testModel(t: Test, open: () => Promise<OpenedEngine>, runs: number): void {
  t.test('agrees with a plain map, whatever is done to it', async (t) => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const opened = await open()
      const model: Model = { seq: 0, now: 0, records: new Map(), logs: new Map() }
      for (const one of steps) await takeStep(opened, model, one)
      await checkWhole(opened, model)
      await opened.engine.close()
    })
    await fc.assert(property, { numRuns: runs })
    t.pass('agrees')
  })
}

async function takeStep(opened: OpenedEngine, model: Model, one: Step): Promise<void> {
  const { engine, clock } = opened
  if (one.do !== 'time') model.now = clock()
  if (one.do === 'time') clock.set(clock() + one.by)
  else if (one.do === 'flush') await opened.flush?.()
  else if (one.do === 'reopen') await reopen(opened)
  else if (one.do === 'put') await putBoth(engine, model, one)
  else if (one.do === 'remove') {
    await remove(engine, String(one.name), one.tenant)
    model.records.get(one.tenant)?.delete(one.name)
  } else if (one.do === 'drop') {
    await engine.write((writer) => writer.dropTenant(one.tenant))
    model.records.delete(one.tenant)
    model.logs.delete(one.tenant)
  } else if (one.do === 'fail') {
    await engine
      .write(async (writer) => {
        await writer.put(draftOf({ name: 'ghost', keys: ['0'] }))
        await writer.dropTenant(1)
        throw new Error('ghost')
      })
      .catch(() => undefined)
  } else if (one.do === 'log') await logBoth(engine, model, one)
  else if (one.do === 'find') await compare(engine, model, one)
}

async function reopen(opened: OpenedEngine): Promise<void> {
  if (opened.reopen === undefined) return
  opened.engine = await opened.reopen()
}

async function putBoth(engine: Engine, model: Model, one: Step & { do: 'put' }): Promise<void> {
  const rows = model.records.get(one.tenant) ?? new Map<number, ModelRow>()
  model.records.set(one.tenant, rows)
  const before = rows.get(one.name)
  const seq = before?.seq ?? ++model.seq
  const text = `${one.name}/${one.keys}/${one.expires}/${model.now}`
  const wanted = {
    ...one,
    name: String(one.name),
    text,
    keys: one.keys.map(String),
    modified: before ? model.now : 0,
  }
  if (before === undefined) await insert(engine, wanted)
  else await replace(engine, wanted)
  const created = before?.created ?? model.now
  rows.set(one.name, { ...one, seq, text, created, modified: wanted.modified })
}

async function logBoth(engine: Engine, model: Model, one: Step & { do: 'log' }): Promise<void> {
  const rows = model.logs.get(one.tenant) ?? []
  model.logs.set(one.tenant, rows)
  const seq = ++model.seq
  await engine.write((writer) => writer.append(logOf(`log ${seq}`, [`log ${one.key}`], one.tenant)))
  const row = {
    name: -1,
    seq,
    keys: [one.key],
    text: `log ${seq}`,
    created: model.now,
    modified: 0,
    expires: 0,
  }
  rows.push(row)
}

async function compare(engine: Engine, model: Model, one: Step & { do: 'find' }): Promise<void> {
  const { tenant, page, size, isLog } = one
  const where = toWhere(one.where, tenant, isLog)
  const query = isLog ? logQueryOf(where, { tenant, page, size }) : queryOf(where, { tenant, page, size })
  const found = shown(await find(engine, query))
  const rows = isLog ? (model.logs.get(tenant) ?? []) : [...(model.records.get(tenant)?.values() ?? [])]
  const live = rows.filter((row) => (row.expires === 0 || row.expires > model.now) && meets(one.where, row))
  live.sort((left, right) => right.seq - left.seq)
  const texts = live.slice((page - 1) * size, page * size).map(({ text }) => text)
  agree(found, { texts, total: live.length }, one)
}

async function checkWhole({ engine, clock }: OpenedEngine, model: Model): Promise<void> {
  model.now = clock()
  for (const tenant of [1, 2]) {
    for (let name = 0; name < 12; name++) {
      const row = await get(engine, String(name), { tenant, expired: true })
      agree(row && textOf(row), model.records.get(tenant)?.get(name)?.text, { tenant, name })
    }
    await compare(engine, model, { do: 'find', where: { and: [] }, tenant, page: 1, size: 50, isLog: false })
    await compare(engine, model, { do: 'find', where: { and: [] }, tenant, page: 1, size: 50, isLog: true })
  }
  const rows = [...model.records.values()].flatMap((each) => [...each.values()])
  const over = rows.filter(({ expires }) => expires !== 0 && expires <= model.now).map(({ text }) => text)
  const expired = await engine.read((reader) => reader.findExpired(100))
  agree(expired.map(textOf).sort(), over.sort(), 'expired')
}

function agree(found: unknown, expected: unknown, about: unknown): void {
  if (JSON.stringify(found) === JSON.stringify(expected)) return
  const texts = [about, expected, found].map((value) => JSON.stringify(value))
  throw new Error(`asked ${texts[0]}, expected ${texts[1]}, found ${texts[2]}`)
}

function toWhere(condition: Condition, tenant: number, isLog: boolean): Where {
  const inner = (part: Condition) => toWhere(part, tenant, isLog)
  if ('key' in condition) return { key: keyOf(`${isLog ? 'log ' : ''}${condition.key}`, tenant) }
  if ('ids' in condition)
    return { ids: condition.ids.map((name) => idOf(isLog ? `log ${name}` : String(name), tenant)) }
  if ('and' in condition) return { and: condition.and.map(inner) }
  if ('or' in condition) return { or: condition.or.map(inner) }
  return 'not' in condition ? { not: inner(condition.not) } : condition
}

function meets(condition: Condition, row: ModelRow): boolean {
  if ('key' in condition) return row.keys.includes(condition.key)
  if ('ids' in condition) return condition.ids.includes(row.name)
  if ('and' in condition) return condition.and.every((part) => meets(part, row))
  if ('or' in condition) return condition.or.some((part) => meets(part, row))
  if ('not' in condition) return !meets(condition.not, row)
  const time = row[condition.range]
  return time !== 0 && time >= condition.from && time < condition.below
}
