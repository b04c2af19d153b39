/**
 * Tests of the audit log, whose records are stored in sealed blocks. A search finds the same records as a search of a
 * plain list. Verification finds the changes of an attacker who has all keys except the key of the log chain.
 */
import fc from 'fast-check'
import t from 'tap'
import type { RecordKeys } from '../../src/crypto/ports.js'
import {
  BLOCK_RECORDS,
  type LogBlockRecord,
  type LogHeadRecord,
} from '../../src/domain/records/log-record.js'
import type { LogRecord, RecordOf } from '../../src/domain/records/records.js'
import { createEntry, openEntries, sealEntries } from '../../src/storage/barrier/log-block.js'
import { digestId, keysOfRecord, openRecord, sealRecord } from '../../src/storage/barrier/sealing.js'
import { type EngineWriter, LOG_ROWS } from '../../src/storage/engine.js'
import type { Condition } from '../../src/storage/store.js'
import { append, type LogVault, logRecord, openInMemory, openOnDisk } from './log-vault.js'

const SECOND = 1000
const TYPES = ['token', 'card', 'bank', 'tenant', 'reactor'] as const
const OPERATIONS = ['create', 'read', 'use'] as const

type Step =
  | { do: 'log'; tenant: number; count: number; spread: number; soon: boolean; by: number }
  | { do: 'reopen' | 'flush' }
  | { do: 'find'; tenant: number; where: Condition | undefined; page: number; size: number }

const id = (number: number) => `entity-${number}`

const upTo = (max: number) => fc.integer({ min: 1, max })
const log = fc.record({
  ...{ do: fc.constant('log' as const), tenant: upTo(2), spread: upTo(40), soon: fc.boolean() },
  ...{ count: fc.oneof(upTo(5), upTo(700)), by: fc.integer({ min: -3, max: 20 }) },
})
const conditions = fc.array(fc.oneof(field(), range()), { minLength: 1, maxLength: 3 })
const find = fc.record({
  ...{ do: fc.constant('find' as const), tenant: upTo(2), page: fc.oneof(upTo(3), upTo(200)) },
  where: fc.option(fc.record({ and: conditions }), { nil: undefined }),
  size: fc.oneof(upTo(7), fc.constant(100)),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: log },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('reopen' as const, 'flush' as const) }) },
  { weight: 6, arbitrary: find },
)

function field(): fc.Arbitrary<Condition> {
  const value = (name: string, values: readonly string[]) =>
    fc.constantFrom(...values).map((value) => ({ field: name, value }))
  return fc.oneof(
    fc.integer({ min: 0, max: 45 }).map((number) => ({ field: 'entity', value: id(number) })),
    value('type', TYPES),
    value('class', ['token', 'tenant']),
    value('type_entity', ['token:entity-1', 'tenant:entity-1', 'token:entity-7']),
    value('operation', OPERATIONS),
    value('transform', ['reveal', 'mask']),
    fc.integer({ min: 0, max: 60 }).map((number) => ({ field: 'trace', value: `trace ${number}` })),
  )
}

function range(): fc.Arbitrary<Condition> {
  const time = fc.integer({ min: 0, max: 300 }).map((seconds) => Date.UTC(2030, 0, 1) + seconds * SECOND)
  return fc.record({ range: fc.constant('created' as const), from: time, below: time })
}

function meets(record: LogRecord, where: Condition): boolean {
  if ('and' in where) return where.and.every((part) => meets(record, part))
  const isToken = ['token', 'card', 'bank'].includes(record.entity_type)
  const group = isToken ? 'token' : record.entity_type
  if ('range' in where) {
    const time = Date.parse(record.created_at)
    return time >= where.from! && time < where.below!
  }
  const { field, value } = where as { field: string; value: string }
  const values: Record<string, unknown> = {
    entity: record.entity_id,
    type: record.entity_type,
    class: group,
    type_entity: `${group}:${record.entity_id}`,
    operation: record.operation,
    transform: record.transform,
    trace: record.trace_id,
  }
  return values[field] === value
}

/** Makes log records that differ in every searched field. */
function makeRecords(time: number, count: number, spread: number, serial: number): LogRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const number = (serial + index) * 7
    return logRecord(id(number % spread), time, {
      entity_type: TYPES[(serial + index) % TYPES.length]!,
      operation: OPERATIONS[number % OPERATIONS.length]!,
      // All records of one request have the trace id of the request.
      trace_id: `trace ${Math.floor((serial + index) / 5)}`,
      ...(number % 4 === 0 ? { transform: 'reveal' as const } : {}),
      ...(number % 4 === 1 ? { transform: 'mask' as const } : {}),
    })
  })
}

/** Opens an in-memory store. The test selects the log chain to which each commit appends. */
async function openWithChains() {
  const chain = { next: 1 }
  const vault = await openInMemory(2, (engine) => {
    const attach = engine.attach.bind(engine)
    engine.attach = (sealer) =>
      attach({ ...sealer, seal: (writer, entries) => sealer.seal(writer, entries, chain.next) })
  })
  return { ...vault, chain, reopen: async () => {} }
}

/**
 * Returns the page that a list must have, according to the plain list of records. Records with equal times are listed
 * in the order of their chains.
 */
function pageOf(
  model: readonly { chain: number; record: LogRecord }[],
  find: Step & { do: 'find' },
  isMerged: boolean,
) {
  const { where, page, size } = find
  const all = model.toReversed().filter(({ record }) => where === undefined || meets(record, where))
  const time = ({ record }: (typeof all)[number]) => Date.parse(record.created_at)
  if (isMerged) all.sort((a, b) => time(b) - time(a) || a.chain - b.chain)
  const records = all.slice((page - 1) * size, page * size).map(({ record }) => record)
  return { records, total: all.length }
}

for (const isMerged of [false, true])
  t.test(
    `a search of the log finds the same records and totals as a search of a list${isMerged ? ', with several chains merged by time' : ''}`,
    async (t) => {
      const chained = fc.record({ chain: fc.integer({ min: 1, max: 4 }), one: step })
      const property = fc.asyncProperty(fc.array(chained, { minLength: 5, maxLength: 25 }), async (steps) => {
        const vault = isMerged ? await openWithChains() : await openOnDisk(2)
        const model: Record<number, { chain: number; record: LogRecord }[]> = { 1: [], 2: [] }
        let serial = 0
        for (const { chain, one } of steps) {
          if (one.do === 'reopen') await vault.reopen()
          if (one.do === 'flush' && 'files' in vault) await vault.engine.flush()
          if (one.do === 'log') {
            // The clock may go back if only a single process writes the log.
            vault.clock.set(vault.clock() + Math.max(isMerged ? 0 : -3, one.by) * SECOND)
            const records = makeRecords(vault.clock(), one.count, one.spread, serial)
            serial += one.count
            if ('chain' in vault) vault.chain.next = chain
            const durability = one.soon && !isMerged ? 'soon' : 'now'
            await append(vault, records, { tenant: one.tenant, durability })
            model[one.tenant]!.push(...records.map((record) => ({ chain, record })))
          }
          if (one.do !== 'find') continue
          const { tenant, where, page, size } = one
          const query = { page, size, ...(where === undefined ? {} : { where }) }
          const found = await vault.store.read((reader) => reader.find('log', tenant, query))
          agree(found, pageOf(model[tenant]!, one, isMerged), one)
        }
        for (const tenant of [1, 2]) {
          agree(await vault.store.verifyLogs(tenant), { count: model[tenant]!.length }, 'verified')
          await vault.reopen()
          agree(await vault.store.verifyLogs(tenant), { count: model[tenant]!.length }, 'verified anew')
        }
        await vault.store.close()
      })
      await fc.assert(property, { numRuns: 40 })
      t.pass('agrees')
    },
  )

t.test(
  'verification reports a log chain if one row of the chain or the whole chain is missing',
  async (t) => {
    const lose = async (names: readonly string[]) => {
      const vault = await openWithChains()
      for (const chain of [2, 3]) {
        vault.chain.next = chain
        await append(vault, makeRecords(vault.clock(), 300, 5, 0), { tenant: 1, durability: 'now' })
      }
      t.strictSame(await vault.store.verifyLogs(1), { count: 600 })
      const keys = vault.keyring.openTenant(vault.keys)
      await vault.engine.write(async (writer) => {
        for (const name of names) await writer.remove(LOG_ROWS, 1, digestId(keys, 'log_block', 1, name))
      })
      return vault.store.verifyLogs(1)
    }
    const rowsOf = (chain: number) => [
      `${chain}/head`,
      ...Array.from({ length: 10 }, (_, number) => `${chain}/block/${number}`),
    ]
    t.strictSame(await lose(rowsOf(3)), { count: 300, brokenAt: 301 })
    t.strictSame(await lose(rowsOf(2)), { count: 0, brokenAt: 1 })
    t.match(await lose(['3/block/0']), { brokenAt: 301 })
  },
)

function agree(found: unknown, expected: unknown, about: unknown): void {
  const text = JSON.stringify(about)
  if (!t.strictSame(found, expected, text)) throw new Error(`does not agree: ${text}`)
}

t.test(
  'old blocks of the log are dropped as a whole, and the rest of the chain can still be verified',
  async (t) => {
    const vault = await openOnDisk()
    const begin = vault.clock()
    const records: LogRecord[] = []
    for (let day = 0; day < 30; day++) {
      const some = makeRecords(begin + day * 86_400_000, 100, 9, day * 100)
      records.push(...some)
      await append(vault, some)
    }
    const before = begin + 20 * 86_400_000
    const drop = () => vault.store.write((writer) => writer.dropLogs(before, 5))
    while ((await drop()) > 0);
    const all = () => vault.store.read((reader) => reader.find('log', 1, { page: 1, size: 10_000 }))
    const { records: kept, total } = await all()
    t.equal(kept.length, total)
    t.strictSame(kept.toReversed(), records.slice(-total), 'the newest records are unchanged')
    t.ok(total >= 1000, 'all younger records are kept')
    t.ok(total < 1000 + BLOCK_RECORDS, `less than one block of older records is kept: ${total}`)
    t.strictSame(await vault.store.verifyLogs(1), { count: total })
    const of = (entity: string) =>
      vault.store.read((reader) =>
        reader.find('log', 1, { page: 1, size: 1, where: { field: 'entity', value: entity } }),
      )
    t.equal((await of('entity-3')).total, kept.filter(({ entity_id }) => entity_id === 'entity-3').length)
    await append(vault, makeRecords(vault.clock(), 300, 9, 0))
    await vault.reopen()
    t.strictSame(await vault.store.verifyLogs(1), { count: total + 300 })
    t.equal(await drop(), 0, 'nothing more')
    await vault.store.close()
  },
)

type Stored = RecordOf['log_block']

interface Tools {
  read<T extends Stored>(id: string): Promise<T>
  /** Puts a record into the store and seals it as the product does. */
  put(record: Stored): Promise<void>
  remove(id: string): Promise<void>
  /** Remembers the sealed row of a record. Returns a function that puts the remembered row back. */
  save(id: string): Promise<() => Promise<void>>
}

/**
 * Makes a vault whose log has 503 records: 15 blocks and a tail. The function then calls `tamper`, which changes the
 * vault as an attacker without the key of the log chain can. In the end, the function verifies the log and returns the
 * result.
 */
async function verifyAfter(tamper: (tools: Tools) => Promise<void>) {
  const vault: LogVault = await openInMemory()
  await append(vault, makeRecords(vault.clock(), 500, 20, 0))
  for (let index = 0; index < 3; index++) await append(vault, makeRecords(vault.clock(), 1, 20, 500 + index))
  const keys = vault.keyring.openTenant(vault.keys)
  const idOf = (name: string) => digestId(keys, 'log_block', 1, name)
  const put = (writer: EngineWriter, record: Stored, seal: (rev: number) => Uint8Array) => {
    const id = idOf(record.id)
    const row = writer.get(LOG_ROWS, 1, id) as { seq: number; created: number } | undefined
    const shape = { kind: LOG_ROWS, tenant: 1, id, modified: 0, expires: 0 }
    const place = row === undefined ? {} : { seq: row.seq, created: row.created }
    return writer.put({ ...shape, ...place, keys: keysOfRecord(keys, 'log_block', record), seal })
  }
  const { engine } = vault
  await tamper({
    read: (name) =>
      engine.read(async (reader) => openRecord(keys, (await reader.get(LOG_ROWS, 1, idOf(name)))!) as never),
    put: (record) =>
      engine.write((writer) =>
        put(writer, record, (rev) => sealRecord(keys, { id: idOf(record.id), rev }, record)),
      ),
    remove: (name) => engine.write((writer) => writer.remove(LOG_ROWS, 1, idOf(name))),
    save: async (name) => {
      const row = await engine.read(async (reader) => (await reader.get(LOG_ROWS, 1, idOf(name)))!)
      return () => engine.write((writer) => put(writer, { id: name } as Stored, () => row.sealed))
    },
  })
  const check = await vault.store.verifyLogs(1)
  await vault.store.close()
  return check
}

const block = (number: number) => `1/block/${number}`

t.test('verification finds each of the tested changes of the log', async (t) => {
  t.strictSame(await verifyAfter(async () => undefined), { count: 503 }, 'nothing')
  const edit = (number: number, change: (block: LogBlockRecord) => LogBlockRecord) =>
    verifyAfter(async ({ read, put }) => put(change(await read<LogBlockRecord>(block(number)))))
  const editItems = (change: (items: LogBlockRecord['items']) => LogBlockRecord['items']) =>
    edit(1, (one) => ({ ...one, items: change(one.items) }))
  const editHead = (change: (head: LogHeadRecord, newest: LogBlockRecord) => LogHeadRecord) =>
    verifyAfter(async ({ read, put }) => put(change(await read('1/head'), await read(block(14)))))
  const strange: LogBlockRecord['items'][number] = [1, 0, 'x', 'y', 'z']
  const second = BLOCK_RECORDS + 1
  const last = 15 * BLOCK_RECORDS + 1
  const cases: [string, () => Promise<unknown>, number][] = [
    ['a changed record', () => editItems((items) => items.with(4, strange)), second],
    ['a removed record', () => editItems((items) => items.toSpliced(4, 1)), second],
    ['an inserted record', () => editItems((items) => [...items, items[0]!]), second],
    [
      'two exchanged records',
      () => editItems((items) => items.with(2, items[5]!).with(5, items[2]!)),
      second,
    ],
    ['two exchanged blocks', () => verifyAfter(exchangeBlocks), 1],
    ['a changed actor of a record', () => edit(0, forgeShape), 1],
    ['a missing block', () => verifyAfter(({ remove }) => remove(block(1))), second],
    [
      'a changed tail',
      () => editHead((head) => ({ ...head, tail: { ...head.tail, items: [strange] } })),
      last,
    ],
    ['a missing head', () => verifyAfter(({ remove }) => remove('1/head')), 1],
    [
      'a head without the tail',
      () => editHead((head, { value }) => ({ ...head, value, tail: { shapes: [], items: [] } })),
      last,
    ],
    ['a head without the first block', () => verifyAfter(forgetFirst), 14 * BLOCK_RECORDS + 1],
    ['an added block', () => verifyAfter(addBlock), 504],
    ['a block replaced by its older version', () => verifyAfter(putBack), 1],
  ]
  for (const [title, run, brokenAt] of cases) t.match(await run(), { brokenAt }, title)
})

async function exchangeBlocks({ read, put }: Tools): Promise<void> {
  const [left, right] = [await read<LogBlockRecord>(block(0)), await read<LogBlockRecord>(block(1))]
  await put({ ...left, id: right.id })
  await put({ ...right, id: left.id })
}

function forgeShape(one: LogBlockRecord): LogBlockRecord {
  const [tenant, , , ...rest] = one.shapes[0]!
  return { ...one, shapes: [[tenant, 'user', 'somebody else', ...rest], ...one.shapes.slice(1)] }
}

async function forgetFirst({ read, put }: Tools): Promise<void> {
  const { value: start } = await read<LogBlockRecord>(block(0))
  await put({ ...(await read<LogHeadRecord>('1/head')), gone: 1, start })
}

async function addBlock({ read, put }: Tools): Promise<void> {
  await put({ ...(await read<LogBlockRecord>(block(0))), id: block(99) })
}

async function putBack({ read, put, save }: Tools): Promise<void> {
  const restore = await save(block(0))
  await put(await read<LogBlockRecord>(block(0)))
  await restore()
}

t.test('a search by trace id opens only a few of 100,000 records', { timeout: 300_000 }, async (t) => {
  const opened = { rows: 0 }
  const vault = await openInMemory(1, (engine) => {
    const read = engine.read.bind(engine)
    engine.read = (work) =>
      read((reader) => {
        const seek: typeof reader.seek = async (query) => {
          const rows = await reader.seek(query)
          opened.rows += rows.length
          return rows
        }
        const counting = new Proxy(reader, {
          get: (target, name) => {
            const member: unknown = name === 'seek' ? seek : Reflect.get(target, name)
            return typeof member === 'function' ? member.bind(target) : member
          },
        })
        return work(counting)
      })
  })
  const often = 'the trace id that a client repeats'
  for (let first = 0; first < 100_000; first += 5000) {
    const records = Array.from({ length: 5000 }, (_, at) =>
      logRecord(id(first + at), vault.clock(), { trace_id: at % 2 === 0 ? often : `trace ${first + at}` }),
    )
    await append(vault, records, { durability: 'soon' })
  }
  const find = async (trace: string) => {
    opened.rows = 0
    const where = { field: 'trace', value: trace }
    const query = { where, page: 1, size: 100, isUncounted: true }
    return vault.store.read((reader) => reader.find('log', 1, query))
  }
  t.match(await find('trace 50001'), { records: [{ entity_id: id(50_001) }], total: 1 })
  t.equal(opened.rows, 1, 'one block')
  t.equal((await find(often)).records.length, 100)
  t.ok(opened.rows <= 16, `${opened.rows} blocks, although 50,000 records have this trace id`)
  t.same((await find('none')).records, [])
  t.equal(opened.rows, 0)
})

t.test(
  'the log record of a read is found at once, is synced soon, and is removed with its tenant',
  async (t) => {
    const vault = await openOnDisk(2)
    const total = async (tenant: number) =>
      (await vault.store.read((reader) => reader.find('log', tenant, { page: 1, size: 1 }))).total
    await append(vault, [logRecord('a', vault.clock())], { durability: 'soon' })
    await append(vault, [logRecord('b', vault.clock())], { durability: 'soon', tenant: 2 })
    t.strictSame([await total(1), await total(2)], [1, 1])
    const steps = vault.files.steps
    await append(vault, [logRecord('c', vault.clock())], { durability: 'soon' })
    t.equal(vault.files.steps, steps, 'the record is found without a step of the disk')
    await vault.store.write((writer) => writer.removeTenant(2))
    await t.rejects(total(2), { code: 'not_found' })
    await vault.reopen()
    t.equal(await total(1), 2, 'the record is stored before the vault is closed')
    t.strictSame(await vault.store.verifyLogs(1), { count: 2 })
    await vault.store.close()
  },
)

t.test(
  'a reader that sees older rows does not change the state from which the writer of the log continues',
  async (t) => {
    let waits: (() => Promise<void>) | undefined
    const vault = await openInMemory(1, (engine) => {
      const read = engine.read.bind(engine)
      // This engine works like a store of several servers: a reader sees the rows as they were at the start of the
      // read, and waits for each answer.
      engine.read = async (work) => {
        if (waits === undefined) return read(work)
        const past = engine.fork(await engine.save(), vault.clock, () => true)
        const wait = waits
        return past.read((rows) => {
          const get = rows.get.bind(rows)
          rows.get = async (...given) => {
            await wait()
            return get(...given)
          }
          return work(rows)
        })
      }
    })
    const createGate = () => {
      let open = () => {}
      return { passed: new Promise<void>((resolve) => (open = resolve)), open: () => open() }
    }
    let logged = 0
    const log = (count: number) => {
      const records = Array.from({ length: count }, () => logRecord(`${++logged}`, vault.clock()))
      return append(vault, records)
    }
    for (let held = 0; held < 4; held++) {
      await log(50)
      const before = logged
      let asked = 0
      const [gate, behind] = [createGate(), createGate()]
      waits = async () => {
        if (asked++ < held) return
        behind.open()
        await gate.passed
      }
      const where = { and: [{ range: 'created', from: 0 }] } as Condition
      const listing = vault.store.read((reader) => reader.find('log', 1, { where, page: 1, size: 5 }))
      await Promise.race([behind.passed, listing])
      waits = undefined
      await log(100)
      gate.open()
      const { records, total } = await listing
      t.same([total, records[0]?.entity_id], [before, `${before}`])
      await log(100)
      t.same(await vault.store.verifyLogs(1), { count: logged })
    }
  },
)

t.test('log entries that wait to be appended to a chain leave no plaintext in memory', async (t) => {
  const plains: Uint8Array[] = []
  const keys = {
    index: { digest: () => new Uint8Array(16) },
    data: {
      seal: (plain: Uint8Array) => {
        plains.push(plain)
        return Uint8Array.from(plain)
      },
      open: (sealed: Uint8Array) => {
        const plain = Uint8Array.from(sealed)
        plains.push(plain)
        return plain
      },
    },
  } as unknown as RecordKeys
  const { created_at: _, ...record } = logRecord('entity-1', 1)
  const entry = createEntry(1, record, 5)
  const sealed = sealEntries(keys, new Uint8Array(8), [entry])
  t.match(Buffer.from(sealed).toString(), 'entity-1')
  t.strictSame(openEntries(keys, 1, new Uint8Array(8), sealed), [entry])
  t.equal(plains.length, 2)
  for (const plain of plains) t.ok(plain.every((byte) => byte === 0))
})
