/** Tests of the guarantees that all engines give. The suite receives engines only through `open`. */
import fc from 'fast-check'
import type { Test } from 'tap'
import type { Draft, Engine, EngineWriter, Query, Row, SeekQuery, Where } from '../../src/storage/engine.js'
import { allOf, draftOf, idOf, KIND, keyOf, LOG_KIND, logOf, textOf, type Wanted } from './engines.js'
import type { createClock } from './powers.js'

export interface OpenedEngine {
  engine: Engine
  clock: ReturnType<typeof createClock>
  /** Flushes or compacts, if the engine supports it. */
  flush?(): Promise<void>
  /** Closes the engine and opens the files of the engine again. */
  reopen?(): Promise<Engine>
}

const queryOf = (where: Where, page: Partial<Query> = {}): Query => {
  const shape = { kind: KIND, tenant: 1, all: allOf(page.kind ?? KIND, page.tenant), page: 1, size: 20 }
  return { ...shape, ...page, where }
}

/**
 * Returns a page of rows. The function also asserts that seeking returns the same rows in both directions and with
 * every step size.
 */
const find = (engine: Engine, query: Query) =>
  engine.read(async (reader) => {
    const found = await reader.find(query)
    const { page, size, ...sought } = query
    const seekAll = async (from: (last?: Row) => Pick<SeekQuery, 'below' | 'above'>) => {
      const all: Row[] = []
      for (let some: Row[] | undefined; some === undefined || some.length > 0; all.push(...some)) {
        const most = (all.length % 3) + 1
        some = await reader.seek({ ...sought, size: most, ...from(all.at(-1)) })
        if (some.length > most) throw new Error('seeking returned more rows than its limit')
      }
      return all
    }
    const all = await seekAll((last) => ({ below: last?.seq }))
    const oldestFirst = await seekAll((last) => ({ above: last?.seq ?? -1 }))
    agree(all.length, found.total, { sought })
    agree(oldestFirst.map(textOf), all.map(textOf).reverse(), { sought })
    const texts = all.slice((page - 1) * size, page * size).map(textOf)
    agree(texts, found.rows.map(textOf), { sought })
    return found
  })

const insert = (engine: Engine, wanted: Wanted) => engine.write((writer) => writer.put(draftOf(wanted)))

/** Replaces a row as callers do: the function passes the row that it has read. */
const replace = (engine: Engine, wanted: Wanted) =>
  engine.write(async (writer) => {
    const { name, tenant = 1 } = wanted
    const row = await writer.get(KIND, tenant, idOf(name, tenant), { expired: true })
    if (row === undefined) throw new Error('nothing to replace')
    await writer.put({ ...draftOf(wanted), seq: row.seq, created: row.created })
  })

/** Runs every test with engines that `open` makes. */
export function engineSuite(t: Test, open: () => Promise<OpenedEngine>, { runs = 120 } = {}): void {
  t.test(
    'a unit of work sees its own changes, and other units see them only after the unit has ended',
    async (t) => {
      const { engine } = await open()
      const seen = await engine.write(async (writer) => {
        await writer.put(draftOf({ name: 'a', keys: ['red'] }))
        const rows = await writer.seek({ ...queryOf({ key: keyOf('red') }), size: 1 })
        await writer.remove(KIND, 1, idOf('a'))
        const { total } = await writer.find(queryOf({ and: [] }))
        return [rows.map(textOf), total, await writer.get(KIND, 1, idOf('a'))]
      })
      t.strictSame(seen, [['a'], 0, undefined])
      await engine.close()
    },
  )

  t.test(
    'an engine counts changes of each kind of row, and the removal of a tenant counts as a change of every kind',
    async (t) => {
      const { engine } = await open()
      const isCounted = async (work: (writer: EngineWriter) => unknown) => {
        const before = engine.changeCounter?.(KIND)
        await engine.write(work)
        return engine.changeCounter?.(KIND) !== before
      }
      const counted = [
        await isCounted((writer) => writer.put(draftOf({ name: 'a' }))),
        await isCounted((writer) => writer.remove(KIND, 1, idOf('a'))),
        await isCounted((writer) => writer.dropTenant(7)),
        !(await isCounted((writer) => writer.append(logOf('a log record')))),
      ]
      if (engine.changeCounter !== undefined) t.strictSame(counted, [true, true, true, true])
      await engine.close()
    },
  )

  t.test('concurrent units of work have the same result as units that run one after another', async (t) => {
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
    // The other unit of work may still be running, so both numbers are correct.
    t.ok(['13', '14'].includes(seen), seen)
    t.equal(await read(), '14')
    await engine.close()
  })

  t.test(
    'a writer refuses calls after its unit of work has ended, and an engine refuses calls after it is closed',
    async (t) => {
      const { engine } = await open()
      const writer = await engine.write(async (held) => ({ held }))
      await t.rejects(async () => writer.held.put(draftOf({ name: 'late' })), { code: 'internal' })
      await engine.close()
      await t.rejects(insert(engine, { name: 'later' }), { code: 'internal' })
      await t.rejects(find(engine, queryOf({ and: [] })), { code: 'internal' })
      await engine.close()
    },
  )

  t.test(
    'the engine refuses rows with values that its fields cannot hold, and new rows with an id that exists',
    async (t) => {
      const { engine } = await open()
      await insert(engine, { name: 'a' })
      const wrong: Partial<Draft>[] = [
        { id: new Uint8Array(15) },
        { tenant: 65_536 },
        { modified: 1.5 },
        { keys: new Uint8Array(8 * 256) },
        { seq: 1 },
        {},
      ]
      for (const part of wrong)
        await t.rejects(
          engine.write((writer) => writer.put({ ...draftOf({ name: 'a' }), ...part })),
          { code: 'internal' },
          `${Object.keys(part)}`,
        )
      t.equal((await find(engine, queryOf({ and: [] }))).total, 1)
      await engine.close()
    },
  )

  t.test('random calls on the engine give the same results as on a plain list of rows', async (t) => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const opened = await open()
      const model: Model = { seq: 0, now: 0, rows: [] }
      for (const one of [...steps, { do: 'check' } as const]) await takeStep(opened, model, one)
      await opened.engine.close()
    })
    await fc.assert(property, { numRuns: runs })
    t.pass('agrees')
  })
}

// Section: the model, a plain list of rows that the engine is compared with.

type Condition =
  | { key: number }
  | { ids: number[] }
  | { and: Condition[] }
  | { or: Condition[] }
  | { not: Condition }
  | { range: 'created' | 'modified' | 'expires'; from: number; below: number }

interface Put {
  do: 'put'
  name: number
  tenant: number
  keys: number[]
  expires: number
}

interface Find {
  do: 'find'
  where: Condition
  kind: number
  tenant: number
  page: number
  size: number
}

type Step =
  | Put
  | Find
  | { do: 'fail' | 'flush' | 'reopen' | 'check' | 'drop' }
  | { do: 'remove'; name: number; tenant: number }
  | { do: 'log'; tenant: number; key: number }
  | { do: 'time'; by: number }

interface ModelRow extends Omit<Put, 'do'> {
  kind: number
  seq: number
  text: string
  created: number
  modified: number
}

interface Model {
  seq: number
  now: number
  rows: ModelRow[]
}

const small = fc.nat({ max: 11 })
const tenant = fc.constantFrom(1, 1, 1, 2)
const kind = fc.constantFrom(KIND, LOG_KIND)
const key = fc.nat({ max: 4 })
/** A row may have the same key twice. */
const keys = fc.array(key, { maxLength: 4 })
/** The rows and the clock use only these moments, so that their times often coincide. */
const moment = fc.constantFrom(0, 1_000, 1_099, 1_100, 1_101, 1_200, 1_300)
/**
 * Conditions with more alternative keys than an engine looks up one by one. Most of the keys belong to
 * no row.
 */
const manyKeys = fc.array(key, { maxLength: 3 }).map((some) => {
  const others = Array.from({ length: 40 }, (_, at) => 100 + at)
  return { or: [...some, ...others].map((each) => ({ key: each })) }
})
const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.record({ key: fc.nat({ max: 5 }) }),
    fc.record({ ids: fc.array(small, { maxLength: 4 }) }),
    fc.record({ and: fc.array(tie('condition'), { maxLength: 3 }) }),
    fc.record({ or: fc.array(tie('condition'), { maxLength: 3 }) }),
    fc.record({ not: tie('condition') }),
    manyKeys,
    fc.record({
      range: fc.constantFrom('created' as const, 'modified' as const, 'expires' as const),
      from: moment,
      below: moment,
    }),
  ),
}))

const its = <T extends Step['do']>(name: T) => fc.constant(name)
const [page, size] = [fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 6 })]
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: its('put'), name: small, tenant, expires: moment, keys }) },
  { weight: 6, arbitrary: fc.record({ do: its('find'), where: condition, kind, tenant, page, size }) },
  { weight: 2, arbitrary: fc.record({ do: its('remove'), name: small, tenant }) },
  { weight: 2, arbitrary: fc.record({ do: its('log'), tenant, key }) },
  { weight: 2, arbitrary: fc.record({ do: its('time'), by: fc.constantFrom(-30, -1, 1, 99, 100) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constantFrom('fail', 'reopen', 'drop', 'check', 'flush', 'flush') }),
  },
)

async function takeStep(opened: OpenedEngine, model: Model, step: Step): Promise<void> {
  const { engine, clock } = opened
  model.now = clock()
  if (step.do === 'time') clock.set(clock() + step.by)
  else if (step.do === 'flush') await opened.flush?.()
  else if (step.do === 'reopen') opened.engine = (await opened.reopen?.()) ?? engine
  else if (step.do === 'check') await checkWhole(engine, model)
  else if (step.do === 'find') await compare(engine, model, step)
  else if (step.do === 'put') await putBoth(engine, model, step)
  else if (step.do === 'log') {
    const row = { ...step, kind: LOG_KIND, seq: ++model.seq, text: `log ${model.seq}`, keys: [step.key] }
    model.rows.push({ ...row, name: -1, created: model.now, modified: 0, expires: 0 })
    await engine.write((writer) => writer.append(logOf(row.text, row.tenant, [`${step.key}`])))
  } else if (step.do === 'remove') {
    const { name, tenant } = step
    model.rows = model.rows.filter((row) => row.name !== name || row.tenant !== tenant)
    await engine.write((writer) => writer.remove(KIND, tenant, idOf(`${name}`, tenant)))
  } else if (step.do === 'drop') {
    model.rows = model.rows.filter((row) => row.tenant !== 2)
    await engine.write((writer) => writer.dropTenant(2))
  } else await fail(engine)
}

/** Runs a unit of work that fails, and asserts that it changes nothing. */
async function fail(engine: Engine): Promise<void> {
  const failing = engine.write(async (writer) => {
    await writer.put(draftOf({ name: 'ghost', keys: ['0'] }))
    const row = await writer.get(KIND, 2, idOf('0', 2))
    if (row) await writer.put({ ...draftOf({ name: '0', tenant: 2 }), seq: row.seq, created: row.created })
    await writer.append(logOf('ghost'))
    await writer.dropTenant(1)
    const expired = await writer.findExpired(100)
    agree(expired.filter((row) => row.tenant === 1).length, 0, 'the unit of work sees its own changes')
    throw new Error('ghost')
  })
  await failing.catch((error) => agree(error.message, 'ghost', 'failing'))
}

async function putBoth(engine: Engine, model: Model, { name, tenant, keys, expires }: Put): Promise<void> {
  const before = model.rows.find((row) => row.name === name && row.tenant === tenant)
  const { seq, created } = before ?? { seq: ++model.seq, created: model.now }
  const shape = { tenant, expires, modified: before ? model.now : 0, text: `${name}/${keys}/${model.now}` }
  model.rows = model.rows.filter((row) => row !== before)
  model.rows.push({ ...shape, kind: KIND, name, keys, seq, created })
  await (before ? replace : insert)(engine, { ...shape, name: `${name}`, keys: keys.map(String) })
}

const isOver = ({ expires }: ModelRow, { now }: Model) => expires !== 0 && expires <= now

async function compare(engine: Engine, model: Model, step: Omit<Find, 'do'>): Promise<void> {
  const { kind, tenant, page, size } = step
  const query = queryOf(toWhere(step.where, kind, tenant), { kind, tenant, page, size })
  const { rows, total } = await find(engine, query)
  const all = model.rows.filter((row) => row.kind === kind && row.tenant === tenant)
  const live = all.filter((row) => !isOver(row, model) && meets(step.where, row))
  live.sort((left, right) => right.seq - left.seq)
  const print = (text: string, { created, modified, expires }: Row | ModelRow) =>
    [text, created, modified, expires].join()
  const found = rows.map((row) => print(textOf(row), row))
  const expected = live.slice((page - 1) * size, page * size).map((row) => print(row.text, row))
  agree([found, total], [expected, live.length], step)
  agree(rows.filter(({ keys }) => keys.length > 0).length, 0, 'keys are not returned')
}

async function checkWhole(engine: Engine, model: Model): Promise<void> {
  const records = model.rows.filter(({ kind }) => kind === KIND)
  for (const tenant of [1, 2]) {
    for (let name = 0; name < 12; name++) {
      const row = records.find((each) => each.name === name && each.tenant === tenant)
      const get = (expired: boolean) =>
        engine.read((reader) => reader.get(KIND, tenant, idOf(`${name}`, tenant), { expired }))
      const found = [await get(true), await get(false)].map((each) => each && textOf(each))
      agree(found, [row?.text, row && (isOver(row, model) ? undefined : row.text)], { tenant, name })
    }
    for (const kind of [KIND, LOG_KIND])
      await compare(engine, model, { where: { and: [] }, kind, tenant, page: 1, size: 50 })
  }
  const over = records.filter((row) => isOver(row, model)).map(({ text }) => text)
  const findExpired = async (most: number) =>
    (await engine.read((reader) => reader.findExpired(most))).map(textOf).sort()
  agree(await findExpired(100), over.sort(), 'expired')
  agree((await findExpired(1)).length, Math.min(1, over.length), 'at most the requested number is returned')
}

function agree(found: unknown, expected: unknown, about: unknown): void {
  if (JSON.stringify(found) === JSON.stringify(expected)) return
  const texts = [about, expected, found].map((value) => JSON.stringify(value))
  throw new Error(`asked ${texts[0]}, expected ${texts[1]}, found ${texts[2]}`)
}

/** Returns the condition in the form that engines take. Rows of different kinds have no keys and no ids in common. */
function toWhere(condition: Condition, kind: number, tenant: number): Where {
  const inner = (part: Condition) => toWhere(part, kind, tenant)
  const nameOf = (name: number) => `${kind === KIND ? '' : 'log '}${name}`
  if ('key' in condition) return { key: keyOf(nameOf(condition.key), tenant) }
  if ('ids' in condition) return { ids: condition.ids.map((name) => idOf(nameOf(name), tenant)) }
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
