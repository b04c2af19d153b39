/** Idempotency keys: stored answers, their deletion, concurrent requests, and crashes between units of work. */
import t, { type Test } from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { Host } from '../../src/framework/host.js'
import type { Outcome } from '../../src/framework/outcome.js'
import { perform } from '../../src/framework/perform.js'
import { createClaims } from '../../src/framework/ports/background.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, permissionsOf, START } from '../support/test-vault.js'

const DAY_MS = 24 * 60 * 60 * 1000
const TENANT = 1
async function open(t: Test) {
  const vault = await openTestVault()
  const { app, ask } = vault
  t.teardown(() => app.close())
  const repeat = async (
    name: string,
    input: Record<string, unknown>,
    key = 'key',
    { host = app, as }: { host?: Host; as?: string } = {},
  ): Promise<Outcome> => {
    const caller = as === undefined ? await app.owner({ reveal: true }) : await authenticate(app, as)
    return perform(host, caller, registry.find(name)!, input, 'trace', { idempotencyKey: key })
  }
  const kept = () =>
    app.store
      .read((reader) => reader.find('answer', TENANT, { page: 1, size: 100 }))
      .then(({ records }) => records)
  const countTokens = async () => (await ask('token list')).pagination.total_items
  return { ...vault, repeat, kept, countTokens }
}

t.test(
  'if several requests have the same idempotency key, one runs, and the others are refused or get its answer',
  async (t) => {
    const { repeat, countTokens } = await open(t)
    const token = { type: 'token', data: 'x' }
    const asked = await Promise.allSettled(Array.from({ length: 30 }, () => repeat('token create', token)))
    const answers = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const errors = asked.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    t.equal(answers.filter(({ isReplayed }) => isReplayed !== true).length, 1)
    t.equal(new Set(answers.map(({ result }) => (result as { id: string }).id)).size, 1)
    t.ok(errors.length > 0)
    const running = { code: 'conflict', status: 409, retryAfterSeconds: 1, message: /still running/ }
    for (const error of errors) t.match(error, running)
    t.equal(await countTokens(), 1)
    t.match(
      await repeat('token create', token),
      { isReplayed: true },
      'the claim is released after the request',
    )
    await t.rejects(repeat('token create', { ...token, id: '?' }, 'fails'), { code: 'validation' })
    t.match(
      await repeat('token create', token, 'fails'),
      { status: 201 },
      'the claim is also released after a failure',
    )
  },
)

t.test(
  "if two servers do not see each other's claims of an idempotency key, the stored record makes the second request fail",
  async (t) => {
    const { app, repeat, countTokens } = await open(t)
    const token = { type: 'token', data: 'x' }
    const unclaimed = () => repeat('token create', token, 'key', { host: { ...app, claims: createClaims() } })
    const asked = await Promise.allSettled(Array.from({ length: 10 }, unclaimed))
    t.equal(await countTokens(), 1)
    for (const each of asked) if (each.status === 'rejected') t.match(each.reason, { code: 'conflict' })
  },
)

t.test(
  'a request that is repeated gets an answer identical to the first, and no secret is stored in an answer',
  async (t) => {
    const { repeat, ask, kept, clock } = await open(t)
    const input = {
      type: 'token',
      data: { a: 1, b: 'secret' },
      mask: '{{ data.a }}',
      metadata: { 'a "': 'ü' },
    }
    const first = await repeat('token create', input, 'my-own-key')
    await ask('token update', {
      id: (first.result as { id: string }).id,
      data: 'other',
      metadata: { note: 'x' },
    })
    for (const again of [input, { type: 'card', data: 'no card' }]) {
      const { status, isReplayed, result } = await repeat('token create', again, 'my-own-key')
      t.same([status, isReplayed, JSON.stringify(result)], [201, true, JSON.stringify(first.result)])
    }
    const made = await repeat('app create', { name: 'a', type: 'private', permissions: ['token:read'] })
    const { key, id } = made.result as { key: string; id: string }
    const text = JSON.stringify(await kept())
    t.ok(text.includes(id))
    for (const secret of ['secret', 'my-own-key', key.slice('key_'.length), 'key_'])
      t.notOk(text.includes(secret), secret)
    clock.now += DAY_MS
    t.same(await kept(), [], 'a later change does not extend the time of the answer beyond a day')
  },
)

t.test(
  'a stored answer about more tokens than fit into one row is deleted if any of the tokens is deleted',
  async (t) => {
    const { ask, repeat, kept, countTokens } = await open(t)
    const payload = Array.from({ length: 1000 }, (_, at) => `value ${at}`)
    const { result } = await repeat('token tokenize', { payload })
    t.equal((await kept()).length, 5)
    t.same((await repeat('token tokenize', { payload })).result, result)
    t.equal(await countTokens(), 1000)
    await ask('token delete', { id: (result as string[])[901] })
    t.same(await kept(), [], 'every part of the answer is deleted')
    await repeat('token tokenize', { payload })
    t.equal(await countTokens(), 1999)
  },
)

t.test('deleting a record also deletes the stored answers about it from the disk', async (t) => {
  const { ask, app, clock, repeat, kept, createApplication } = await open(t)
  const soon = new Date(START + 60_000).toISOString()
  await repeat('token tokenize', { payload: { type: 'token', data: 'x', expires_at: soon } })
  t.equal((await kept()).length, 1)
  clock.now += 60_000
  await app.sweep()
  t.same(await kept(), [], 'the answer is deleted after the token has expired')
  const { id, key } = await createApplication('private', { permissions: permissionsOf('private') })
  await repeat('token tokenize', { payload: 'x' }, 'key', { as: key })
  await repeat('token search', { query: '' }, 'key', { as: key })
  t.equal((await kept()).length, 2)
  await ask('app delete', { id })
  t.same(await kept(), [], 'the answer is deleted after the application that sent the request was deleted')
  await repeat('token tokenize', { payload: 'x' })
  clock.now += DAY_MS
  await app.sweep()
  const expired = await app.store.read((reader) => reader.findExpired(10))
  t.same(expired, [], 'the sweeper purges an answer after 24 hours')
})

t.test(
  'if the answer for an idempotency key is too large to store, the request is refused and changes nothing',
  async (t) => {
    const { repeat, countTokens, kept } = await open(t)
    const data = 'x'.repeat(3 * 1024 * 1024)
    const large = { type: 'token', data: `${data}${data}`, mask: '{{ data }}' }
    await t.rejects(repeat('token create', large), { code: 'validation', message: /too large to be stored/ })
    t.equal(await countTokens(), 0)
    t.same(await kept(), [])
    t.match(await repeat('token create', { type: 'token', data, mask: '{{ data }}' }), { status: 201 })
    t.match(await repeat('token create', { type: 'token', data }), { isReplayed: true })
  },
)

t.test(
  'a stored answer of reactor code is deleted if a token that the code created and kept is deleted later',
  async (t) => {
    const { ask, repeat, kept, createApplication } = await open(t)
    const application = await createApplication('private', { permissions: permissionsOf('private') })
    const code = `module.exports = async ({ svc }) => {
    const kept = await svc.tokens.create({ type: 'token', data: 'kept' })
    const gone = await svc.tokens.create({ type: 'token', data: 'gone' })
    await svc.tokens.delete(gone.id)
    return { raw: kept.id, tokenize: 'made' }
  }`
    const { id } = await ask('reactor create', { name: 'r', code, application: { id: application.id } })
    const first = (await repeat('reactor react', { id })).result as { raw: string }
    t.match(await repeat('reactor react', { id }), { isReplayed: true, result: first })
    await ask('token delete', { id: first.raw })
    t.same(await kept(), [])
  },
)

/** Returns a host that crashes at the unit of work with the number `at`, before or after the commit of this unit. */
function dying(host: Host, at: number, isCommitted: boolean): { host: Host; isDead(): boolean } {
  let count = 0
  const write: Host['store']['write'] = async (work, durability) => {
    if (++count < at) return host.store.write(work, durability)
    if (isCommitted && count === at) await host.store.write(work, durability)
    throw new Error('killed')
  }
  return {
    host: { ...host, claims: createClaims(), store: { ...host.store, write } },
    isDead: () => count >= at,
  }
}

t.test(
  'after a crash between two units of work, both the change and its stored answer exist, or neither exists',
  async (t) => {
    const { app, ask, repeat, countTokens } = await open(t)
    const code = `module.exports = async ({ args }) => ({ raw: 1, tokenize: ['a', { type: 'token', data: args.x }] })`
    const formula = await ask('formula create', { name: 'f', type: 'private', code })
    const { id } = await ask('reactor create', { name: 'r', formula: { id: formula.id } })
    const { id: there } = await ask('token create', { type: 'token', data: 'there' })
    const countInvitations = async () => (await ask('invite list')).pagination.total_items
    const cases: [name: string, input: object, made: number][] = [
      ['token create', { type: 'token', data: 'x' }, 1],
      ['token tokenize', { payload: ['x', 'y'] }, 2],
      ['token create-child', { parent_id: there, type: 'token', data: 'x' }, 1],
      ['reactor react', { id, args: { x: 'x' } }, 2],
      ['invite create', { email: 'ada@example.com' }, 1],
    ]
    for (const [name, input, made] of cases)
      for (const isCommitted of [false, true])
        for (let at = 1; ; at++) {
          const key = `${name} ${isCommitted} ${at}`
          const count = name === 'invite create' ? countInvitations : countTokens
          const before = await count()
          const { host, isDead } = dying(app, at, isCommitted)
          const first = await repeat(name, { ...input }, key, { host }).catch(() => undefined)
          const { result } = await repeat(name, { ...input }, key)
          if (first !== undefined) t.same(result, first.result, `${key}: the acknowledged answer is replayed`)
          t.same(
            (await repeat(name, { ...input }, key)).result,
            result,
            `${key}: a second repetition gets the same answer`,
          )
          t.equal((await count()) - before, made, `${key}: the change was made once`)
          if (!isDead()) break
        }
  },
)
