/** Idempotency keys: what is kept of an answer and when it goes, requests at once, and deaths between units of work. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { Host } from '../../src/framework/host.js'
import type { Outcome } from '../../src/framework/outcome.js'
import { perform } from '../../src/framework/perform.js'
import { createClaims } from '../../src/framework/ports/claims.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, permissionsOf, START } from './vault.js'

const DAY_MS = 24 * 60 * 60 * 1000
const TENANT = 1
const BODY = {
  type: 'token',
  data: { number: 'secret', 1: 'secret' },
  mask: { number: 'XXXX' },
  metadata: { note: 'note' },
}

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
  const countTokens = async () =>
    ((await ask('token list')) as { pagination: { total_items: number } }).pagination.total_items
  return { ...vault, repeat, kept, countTokens }
}

t.test('of requests at once with one key one runs; the others are refused or get its answer', async (t) => {
  const { repeat, countTokens } = await open(t)
  const asked = await Promise.allSettled(
    Array.from({ length: 30 }, () => repeat('token create', { type: 'token', data: 'x' })),
  )
  const answers = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  const errors = asked.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
  t.equal(answers.filter(({ isReplayed }) => isReplayed !== true).length, 1)
  t.equal(new Set(answers.map(({ result }) => (result as { id: string }).id)).size, 1)
  t.ok(errors.length > 0)
  for (const error of errors) t.match(error, { code: 'conflict', status: 409, message: /still running/ })
  t.equal(await countTokens(), 1)
  t.match(
    await repeat('token create', { type: 'token', data: 'x' }),
    { isReplayed: true },
    'the claim has ended',
  )
  await t.rejects(repeat('token create', { type: 'token', data: 'x', id: '?' }, 'fails'), {
    code: 'validation',
  })
  t.match(
    await repeat('token create', { type: 'token', data: 'x' }, 'fails'),
    { status: 201 },
    'after a failure too',
  )
})

t.test(
  'without the claim, as over a store that servers share, the kept record refuses the second',
  async (t) => {
    const { app, repeat, countTokens } = await open(t)
    const unclaimed = () => ({ ...app, claims: createClaims() })
    const asked = await Promise.allSettled(
      Array.from({ length: 10 }, () =>
        repeat('token create', { type: 'token', data: 'x' }, 'key', { host: unclaimed() }),
      ),
    )
    t.equal(await countTokens(), 1)
    for (const each of asked) if (each.status === 'rejected') t.match(each.reason, { code: 'conflict' })
  },
)

t.test('the body is not compared: not even one that would be refused, or that conflicts', async (t) => {
  const { repeat, countTokens } = await open(t)
  const { result } = await repeat('token create', { id: 'own', type: 'token', data: 'x' })
  for (const input of [{ type: 'card', data: 'no card' }, { id: 'own', type: 'token', data: 'x' }, {}])
    t.match(await repeat('token create', input), { status: 201, isReplayed: true, result })
  t.equal(await countTokens(), 1)
})

t.test(
  'an answer to a creation is kept without its data, and stays what it was when the token changes',
  async (t) => {
    const { ask, app, clock, repeat, kept, createApplication } = await open(t)
    const rule = { description: '', priority: 1, permissions: permissionsOf('private') }
    const masking = { ...rule, container: '/m/', transform: 'mask' as const }
    const redacting = { ...rule, priority: 2, container: '/r/', transform: 'redact' as const }
    const { key: as } = await createApplication('private', { rules: [masking, redacting] })
    const text = async (key: string, containers: string[]) => {
      const input = { ...BODY, containers }
      const { status, isReplayed, result } = await repeat('token create', input, key, { as })
      return { status, isReplayed, text: JSON.stringify(result), id: (result as { id: string }).id }
    }
    for (const [at, containers] of [['/m/'], ['/r/']].entries()) {
      const [key] = containers as [string]
      const first = await text(key, containers)
      t.match(first, { status: 201, isReplayed: undefined })
      t.equal((await kept()).length, at + 1)
      t.notMatch(JSON.stringify(await kept()), /secret/)
      const again = { ...first, isReplayed: true }
      t.same(await text(key, containers), again)
      for (const patch of [{ data: 'changed' }, { metadata: { note: 'other' } }, { containers: ['/m/x/'] }]) {
        await ask('token update', { id: first.id, ...patch })
        t.same(await text(key, containers), again)
      }
      await ask('token update', { id: first.id, containers })
    }
    clock.now += DAY_MS - 1
    t.equal((await kept()).length, 2)
    clock.now += 1
    t.same(await kept(), [], 'not a day longer for being changed')
    await app.sweep()
  },
)

t.test('whatever was created, its answer is given again to the byte', async (t) => {
  const { repeat, ask } = await open(t)
  let count = 0
  const metadata = fc.dictionary(fc.string({ minLength: 1, maxLength: 9 }), fc.string({ maxLength: 9 }))
  const attributes = fc.record(
    { data: fc.jsonValue(), metadata, mask: fc.constantFrom('{{ data }}', null) },
    { requiredKeys: ['data'] },
  )
  await fc.assert(
    fc.asyncProperty(attributes, fc.boolean(), async (given, isChanged) => {
      const input = () => ({ type: 'token', ...given, data: given.data ?? 0 })
      const key = `key ${count++}`
      const first = await repeat('token create', input(), key).catch(() => undefined)
      if (first === undefined) return
      if (isChanged) await ask('token update', { id: (first.result as { id: string }).id, data: 'other' })
      const { result, isReplayed } = await repeat('token create', input(), key)
      t.equal(isReplayed, true)
      t.equal(JSON.stringify(result), JSON.stringify(first.result))
    }),
    { numRuns: 60 },
  )
})

t.test('a kept answer has neither the idempotency key nor an API key', async (t) => {
  const { repeat, kept } = await open(t)
  const { result } = await repeat(
    'app create',
    { name: 'a', type: 'private', permissions: ['token:read'] },
    'my-own-key',
  )
  const { key, id } = result as { key: string; id: string }
  const text = JSON.stringify(await kept())
  t.ok(text.includes(id))
  t.notOk(text.includes(key.slice('key_'.length)))
  t.notOk(text.includes('my-own-key'))
  t.notOk(text.includes('key_'))
})

t.test('an answer about more tokens than a row has fields for goes with any of them', async (t) => {
  const { ask, repeat, kept, countTokens } = await open(t)
  const payload = Array.from({ length: 1000 }, (_, at) => `value ${at}`)
  const { result } = await repeat('token tokenize', { payload })
  t.equal((await kept()).length, 5)
  t.same((await repeat('token tokenize', { payload })).result, result)
  t.equal(await countTokens(), 1000)
  await ask('token delete', { id: (result as string[])[901] })
  t.same(await kept(), [], 'every part of it')
  await repeat('token tokenize', { payload })
  t.equal(await countTokens(), 1999)
})

t.test('what an answer is about takes it along: nothing is left on the disk', async (t) => {
  const { ask, app, clock, repeat, kept, createApplication } = await open(t)
  const soon = new Date(START + 60_000).toISOString()
  await repeat('token tokenize', { payload: { type: 'token', data: 'x', expires_at: soon } })
  t.equal((await kept()).length, 1)
  clock.now += 60_000
  await app.sweep()
  t.same(await kept(), [], 'a token that expired')
  const made = (await repeat('token create', { type: 'token', data: 'x' })).result as { id: string }
  await ask('token update', { id: made.id, data: 'y' })
  t.equal((await kept()).length, 1)
  await ask('token delete', { id: made.id })
  t.same(await kept(), [], 'a token')
  clock.now += DAY_MS
  const { id, key } = await createApplication('private', { permissions: permissionsOf('private') })
  await repeat('token tokenize', { payload: 'x' }, 'key', { as: key })
  await repeat('token search', { query: '' }, 'key', { as: key })
  t.equal((await kept()).length, 2)
  await ask('app delete', { id })
  t.same(await kept(), [], 'the application that asked')
  await repeat('token tokenize', { payload: 'x' })
  clock.now += DAY_MS - 1
  await app.sweep()
  t.equal((await kept()).length, 1)
  clock.now += 1
  await app.sweep()
  const expired = await app.store.read((reader) => reader.findExpired(10))
  t.same(expired, [], 'the sweeper purges an answer after 24 hours')
})

t.test('a key may be used again after a day, or when what its answer is about is gone', async (t) => {
  const { ask, clock, repeat, countTokens } = await open(t)
  const create = async (more?: object, key?: string) => {
    const {
      status,
      isReplayed = false,
      result,
    } = await repeat('token create', { type: 'token', data: 'x', ...more }, key)
    return { status, isReplayed, id: (result as { id: string }).id }
  }
  const first = await create()
  t.same(await create({ id: 'own' }), { ...first, isReplayed: true }, 'whatever the body asks for')
  t.not((await create({}, 'other')).id, first.id)
  clock.now += DAY_MS - 1
  t.same(await create(), { ...first, isReplayed: true })
  clock.now += 1
  const second = await create()
  t.match(second, { status: 201, isReplayed: false })
  t.same(await create(), { ...second, isReplayed: true })
  await ask('token delete', { id: second.id })
  const third = await create()
  t.match(third, { status: 201, isReplayed: false })
  t.same(await create(), { ...third, isReplayed: true })
  const soon = new Date(clock.now + 60_000).toISOString()
  const expiring = await create({ expires_at: soon }, 'expires')
  clock.now += 60_000
  const later = await create({}, 'expires')
  t.not(later.id, expiring.id, 'an expired token that is not purged yet')
  t.same(await create({}, 'expires'), { ...later, isReplayed: true })
  const count = await countTokens()
  const existing = await create({ deduplicate_token: true }, 'duplicate')
  t.match(existing, { status: 200, isReplayed: false })
  t.same(await create({}, 'duplicate'), { ...existing, isReplayed: true })
  t.equal(await countTokens(), count)
})

t.test('no replay for a caller who has lost access to what the answer shows', async (t) => {
  const { ask, repeat, createApplication } = await open(t)
  const rule = { description: '', container: '/a/', permissions: permissionsOf('private') }
  const rules = (transform: 'mask' | 'redact') => [{ ...rule, priority: 1, transform }]
  const name = 'an application'
  const { id, key: as } = await createApplication('private', { rules: rules('mask') })
  const create = () => repeat('token create', { ...BODY, containers: ['/a/'] }, 'key', { as })
  const { result } = await create()
  await ask('app update', { id, name, rules: rules('redact') })
  await t.rejects(create(), { code: 'forbidden', message: /no longer granted/ })
  await ask('app update', { id, name, permissions: ['token:create'] })
  await t.rejects(create(), { code: 'forbidden' })
  await ask('app update', { id, name, rules: rules('mask') })
  t.match(await create(), { isReplayed: true, result })
})

t.test('an answer that is too large to be kept is refused, and nothing is done', async (t) => {
  const { repeat, countTokens, kept } = await open(t)
  const data = 'x'.repeat(3 * 1024 * 1024)
  const large = { type: 'token', data: `${data}${data}`, mask: '{{ data }}' }
  await t.rejects(repeat('token create', large), { code: 'validation', message: /too large to be kept/ })
  t.equal(await countTokens(), 0)
  t.same(await kept(), [])
  t.match(await repeat('token create', { type: 'token', data, mask: '{{ data }}' }), { status: 201 })
  t.match(await repeat('token create', { type: 'token', data }), { isReplayed: true })
})

t.test(
  'a reactor whose code makes tokens: the answer goes with them, and not with those that it deleted',
  async (t) => {
    const { ask, repeat, kept, createApplication, countTokens } = await open(t)
    const application = await createApplication('private', { permissions: permissionsOf('private') })
    const code = `module.exports = async ({ svc }) => {
    const kept = await svc.tokens.create({ type: 'token', data: 'kept' })
    const gone = await svc.tokens.create({ type: 'token', data: 'gone' })
    await svc.tokens.delete(gone.id)
    return { raw: kept.id, tokenize: 'made' }
  }`
    const formula = (await ask('formula create', { name: 'f', type: 'private', code })) as { id: string }
    const reactor = { name: 'r', formula: { id: formula.id }, application: { id: application.id } }
    const { id } = (await ask('reactor create', reactor)) as { id: string }
    const first = (await repeat('reactor react', { id })).result as { raw: string; tokens: string }
    t.match(await repeat('reactor react', { id }), { isReplayed: true, result: first })
    t.equal(await countTokens(), 2)
    await ask('token delete', { id: first.raw })
    t.same(await kept(), [])
    const second = (await repeat('reactor react', { id })).result as { raw: string }
    t.not(second.raw, first.raw)
    await ask('reactor delete', { id })
    t.same(await kept(), [])
  },
)

/** A host that dies at its unit of work `at`, before or after the commit. */
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

t.test('a death between any two units of work leaves what was done and its answer, or neither', async (t) => {
  const { app, ask, repeat, countTokens } = await open(t)
  const code = `module.exports = async ({ args }) => ({ raw: 1, tokenize: ['a', { type: 'token', data: args.x }] })`
  const formula = (await ask('formula create', { name: 'f', type: 'private', code })) as { id: string }
  const { id } = (await ask('reactor create', { name: 'r', formula: { id: formula.id } })) as { id: string }
  const { id: there } = (await ask('token create', { type: 'token', data: 'there' })) as { id: string }
  const countInvitations = async () =>
    ((await ask('invite list')) as { pagination: { total_items: number } }).pagination.total_items
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
        if (first !== undefined)
          t.same(result, first.result, `${key}: what was acknowledged is answered again`)
        t.same((await repeat(name, { ...input }, key)).result, result, `${key}: and again`)
        t.equal((await count()) - before, made, `${key}: it was done once`)
        if (!isDead()) break
      }
})
