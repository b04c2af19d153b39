import t, { type Test } from 'tap'
import { CofferError } from '../../src/errors.js'
import { ownerCaller } from '../../src/framework/caller/caller.js'
import { type AnyOperation, type Context, operation } from '../../src/framework/operation.js'
import { perform } from '../../src/framework/perform.js'
import type { App } from '../../src/vault/app.js'
import { openEphemeral } from '../support/ephemeral.js'

const NOW = Date.parse('2030-01-01T00:00:00Z')

async function open(t: Test): Promise<App> {
  const app = await openEphemeral({ tenantName: 'test', clock: () => NOW })
  t.teardown(() => app.close())
  return { ...app, validate: () => {} }
}

const base = operation({
  name: 'thing do',
  summary: '',
  permissions: ['token:read'],
  route: 'POST /things',
  success: 201,
  input: {
    type: 'object',
    properties: {
      a: { type: 'string' },
      b: { type: 'string', nullable: true },
      c: { type: 'integer', default: 7 },
      d: {},
    },
    required: ['d'],
    additionalProperties: true,
  },
  output: {},
  columns: [],
  examples: ['x'],
  log: { operation: 'update', message: 'Thing done' },
  run: async (context, input) => {
    context.audit.record('token', 'thing')
    return input
  },
})

const change = (parts: object) => ({ ...base, ...parts }) as AnyOperation
const readLog = async (app: App) =>
  (await app.store.read((reader) => reader.find('log', 1, { page: 1, size: 50 }))).records

t.test('input gets its defaults, and null for something optional is as good as nothing', async (t) => {
  const app = await open(t)
  const owner = await app.owner({ reveal: false })
  const outcome = await perform(app, owner, base, { a: null, b: null, d: null, e: 1 }, 'trace')
  t.same(outcome, { status: 201, result: { b: null, c: 7, d: null, e: 1 } })
})

t.test('a success writes one record for each entity reached, with actor, time and trace', async (t) => {
  const app = await open(t)
  const owner = await app.owner({ reveal: false })
  const run = async (context: Context) => {
    context.audit.record('card', 'one')
    context.audit.record('token', 'two', { operation: 'read', message: 'Looked at' })
  }
  await perform(app, owner, change({ run }), { d: 1 }, 'trace-7')
  const [second, first] = await readLog(app)
  t.match(first, {
    actor_id: owner.actor.id,
    actor_type: 'user',
    entity_type: 'card',
    entity_id: 'one',
    operation: 'update',
    message: 'Thing done',
    created_at: '2030-01-01T00:00:00.000+00:00',
    trace_id: 'trace-7',
  })
  t.match(second, { entity_id: 'two', operation: 'read', message: 'Looked at' })
})

t.test('a failure leaves nothing: neither what it wrote nor a record', async (t) => {
  const app = await open(t)
  const owner = await app.owner({ reveal: false })
  const run = async (context: Context) => {
    await context.store.insert('user', 0, { id: 'ghost', created_at: '' })
    context.audit.record('token', 'one')
    throw new CofferError('conflict', 'No.')
  }
  await t.rejects(perform(app, owner, change({ run }), { d: 1 }, 'trace'), { code: 'conflict' })
  t.equal(await app.store.read((reader) => reader.get('user', 0, 'ghost')), undefined)
  t.equal((await readLog(app)).length, 1)
})

t.test('a detached operation has a transaction for each unit, and can perform others', async (t) => {
  const app = await open(t)
  const owner = await app.owner({ reveal: false })
  const definition = change({
    run: undefined,
    runDetached: async (session: Parameters<NonNullable<AnyOperation['runDetached']>>[0]) => {
      await session.inUnit(async (context) => context.audit.record('token', 'first'))
      const inner = await session.perform(session.caller, base, { d: 'inner' })
      const failed = session.inUnit(async (context) => {
        context.audit.record('token', 'never')
        throw new CofferError('conflict', 'No.')
      })
      await t.rejects(failed, { code: 'conflict' })
      return inner
    },
  })
  const outcome = await perform(app, owner, definition, { d: 1 }, 'trace')
  t.match(outcome, { status: 201, result: { d: 'inner' } })
  t.same((await readLog(app)).map(({ entity_id }) => entity_id).slice(0, 2), ['thing', 'first'])
})

t.test('a caller whose tenant is gone is told so', async (t) => {
  const app = await open(t)
  const stranger = ownerCaller(9, 'stranger', { reveal: false })
  const run = async (context: Context) => context.tenant()
  await t.rejects(perform(app, stranger, change({ run }), { d: 1 }, 'trace'), { code: 'unauthenticated' })
})
