/**
 * Rights are checked at the moment of use: at each call of code, and before code starts. The test decides which calls
 * the code of a run makes, and when the run ends.
 */
import t, { type Test } from 'tap'
import type { ReactorOutcome } from '../../src/framework/ports/reactors.js'
import { statusOf, steerRuns } from '../support/steered-runs.js'
import { openTestVault } from '../support/test-vault.js'

/** The code of the reactor is stored and never runs, because the tests make the calls of the code. */
const CODE = 'module.exports = async () => ({})'

const HOUR = 3_600_000

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  await vault.ask('token create', { id: 'ssn', type: 'token', data: '123456789', containers: ['/pii/'] })
  return { ...vault, runs: steerRuns(vault.app) }
}

type Vault = Awaited<ReturnType<typeof open>>
type Application = Awaited<ReturnType<Vault['createApplication']>>
interface Cast {
  vault: Vault
  /** The application that invokes the reactor. */
  invoker: Application
  /** The application to which the reactor is bound. */
  bound: Application
  reactor: string
}

const READ = { permissions: ['token:read' as const] }
const INVOKE = { permissions: ['reactor:invoke' as const] }

async function cast(t: Test, of: object = {}): Promise<Cast> {
  const vault = await open(t)
  const invoker = await vault.createApplication('private', { ...INVOKE, expires_at: '2030-01-16T00:00:00Z' })
  const bound = await vault.createApplication('private', READ)
  const given = { name: 'r', code: CODE, application: { id: bound.id }, ...of }
  const { id } = await vault.ask('reactor create', given)
  return { vault, invoker, bound, reactor: id }
}

const update = (app: Application, grants: object) => ({ id: app.id, name: 'changed', ...grants })

/**
 * A change during a run, the status that the code gets for its next call, and the status of the run's own answer.
 * Before the change, both statuses are 200.
 */
const CHANGES: [string, (cast: Cast) => Promise<unknown>, call: number, answer: number][] = [
  ['nothing', async () => undefined, 200, 200],
  ['an unrelated application', ({ vault }) => vault.createApplication('private', READ), 200, 200],
  ['the application is deleted', ({ vault, bound }) => vault.ask('app delete', { id: bound.id }), 401, 200],
  [
    'the application loses its permission',
    ({ vault, bound }) => vault.ask('app update', update(bound, { permissions: ['token:search'] })),
    403,
    200,
  ],
  [
    'the application loses the container',
    ({ vault, bound }) =>
      vault.ask(
        'app update',
        update(bound, {
          rules: [{ priority: 1, container: '/other/', transform: 'reveal', ...READ }],
        }),
      ),
    403,
    200,
  ],
  ['the caller is deleted', ({ vault, invoker }) => vault.ask('app delete', { id: invoker.id }), 401, 401],
  [
    'the key of the caller is deleted',
    async ({ vault, invoker }) => {
      const [key] = (await vault.ask('app get', { id: invoker.id })).keys
      await vault.ask('app key create', { application_id: invoker.id })
      await vault.ask('app key delete', { application_id: invoker.id, id: key!.id })
    },
    401,
    401,
  ],
  [
    'the caller loses the right to invoke reactors',
    ({ vault, invoker }) => vault.ask('app update', update(invoker, READ)),
    403,
    403,
  ],
  [
    'the caller expires',
    async ({ vault }) => {
      vault.clock.now += 24 * HOUR
    },
    401,
    401,
  ],
  ['the reactor is deleted', ({ vault, reactor }) => vault.ask('reactor delete', { id: reactor }), 404, 200],
  [
    'the reactor is unbound',
    ({ vault, reactor }) => vault.ask('reactor patch', { id: reactor, application: null }),
    401,
    200,
  ],
  [
    'the reactor is bound to another application',
    async ({ vault, reactor }) => {
      const { id } = await vault.createApplication('private', READ)
      await vault.ask('reactor patch', { id: reactor, application: { id } })
    },
    401,
    200,
  ],
]

t.test('the current rights decide each call of code and the answer of the run', async (t) => {
  for (const [name, change, call, answer] of CHANGES)
    await t.test(name, async (t) => {
      const played = await cast(t)
      const { vault, invoker, reactor } = played
      const answering = statusOf(vault.askAs(invoker.key, 'reactor react', { id: reactor }))
      const run = await vault.runs.next()
      t.equal(await run.call('tokens.retrieve', 'ssn'), 200, 'before')
      await change(played)
      t.equal(await run.call('tokens.retrieve', 'ssn'), call)
      run.end()
      t.equal(await answering, answer)
    })
})

t.test('the permissions in the runtime of a reactor can be removed during a run', async (t) => {
  const runtime = { permissions: ['token:read', 'token:search'] }
  const { vault, invoker, reactor } = await cast(t, { application: undefined, runtime })
  const answering = vault.askAs(invoker.key, 'reactor react', { id: reactor })
  const run = await vault.runs.next()
  t.equal(await run.call('tokens.retrieve', 'ssn'), 200)
  await vault.ask('reactor patch', { id: reactor, runtime: { permissions: ['token:search'] } })
  t.equal(await run.call('tokens.retrieve', 'ssn'), 403)
  await vault.ask('app delete', { id: invoker.id })
  t.equal(await run.call('tokens.search', ''), 401)
  run.end()
  await t.rejects(answering, { code: 'unauthenticated' })
})

t.test(
  'code with a configurable image has the permissions of its runtime, and not the permissions of the application',
  async (t) => {
    const runtime = { image: 'node24', permissions: ['token:read', 'token:search'] }
    const { vault, invoker, bound, reactor } = await cast(t, { runtime })
    const answering = vault.askAs(invoker.key, 'reactor react', { id: reactor })
    const run = await vault.runs.next()
    await vault.ask('app update', update(bound, { permissions: ['token:search'] }))
    t.equal(await run.call('tokens.retrieve', 'ssn'), 200, 'the application lost its permission')
    await vault.ask('app delete', { id: bound.id })
    t.equal(await run.call('tokens.retrieve', 'ssn'), 200, 'the application is gone')
    await vault.ask('reactor patch', {
      id: reactor,
      application: null,
      runtime: { permissions: ['token:search'] },
    })
    t.equal(await run.call('tokens.retrieve', 'ssn'), 403, 'the runtime lost its permission')
    await vault.ask('reactor patch', { id: reactor, runtime: { permissions: null } })
    t.equal(await run.call('tokens.search', ''), 401, 'the runtime lost all permissions')
    run.end()
    t.same(await answering, { raw: 'done' })
  },
)

t.test(
  'a run has the rights of its runtime or of its application, and never switches from one to the other',
  async (t) => {
    for (const [before, after] of [
      ['node22', 'node-bt'],
      ['node-bt', 'node22'],
    ] as const) {
      const { vault, invoker, reactor } = await cast(t, { runtime: { image: before, ...READ } })
      const answering = vault.askAs(invoker.key, 'reactor react', { id: reactor })
      const run = await vault.runs.next()
      t.equal(await run.call('tokens.retrieve', 'ssn'), 200, before)
      await vault.ask('reactor patch', { id: reactor, runtime: { image: after } })
      t.equal(await run.call('tokens.retrieve', 'ssn'), 401, after)
      run.end()
      await answering
    }
  },
)

t.test('the setting resources of a configurable image decides how much memory a run may use', async (t) => {
  const { vault, reactor } = await cast(t)
  for (const [image, resources, memoryFactor] of [
    ['node22', undefined, 1],
    ['node22', 'standard', 1],
    ['node22', 'large', 2],
    ['node24', 'xlarge', 4],
    ['node-bt', 'xlarge', 1],
  ] as const) {
    const runtime = { image, ...(resources && { resources }) }
    await vault.ask('reactor update', { id: reactor, name: 'r', code: CODE, runtime })
    const answering = vault.ask('reactor react', { id: reactor })
    const run = await vault.runs.next()
    t.match(run.invocation, { memoryFactor }, JSON.stringify(runtime))
    run.end()
    await answering
  }
})

t.test('the image of a reactor and the kind of the run decide the time limit of the run', async (t) => {
  const LIMITS: [
    runtime: { image: string; timeout?: number; async?: boolean } | null,
    seconds: number,
    asyncSeconds: number,
  ][] = [
    [null, 30, 300],
    [{ image: 'node-bt' }, 30, 300],
    [{ image: 'node-bt', timeout: 5 }, 5, 5],
    [{ image: 'node-bt', timeout: 900, async: true }, 30, 300],
    [{ image: 'node22' }, 10, 10],
    [{ image: 'node24', timeout: 20 }, 20, 20],
    [{ image: 'node24', timeout: 900, async: true }, 900, 900],
  ]
  const { vault, reactor } = await cast(t)
  for (const [runtime, seconds, asyncSeconds] of LIMITS) {
    await vault.ask('reactor update', { id: reactor, name: 'r', code: CODE, ...(runtime && { runtime }) })
    const name = JSON.stringify(runtime)
    const answering = vault.ask('reactor react', { id: reactor })
    const run = await vault.runs.next()
    // Every run of a reactor with a configurable image and `async` is asynchronous.
    const isAsync = runtime !== null && 'async' in runtime && runtime.image !== 'node-bt'
    t.match(run.invocation, { timeMs: 1000 * seconds, isAsync }, name)
    run.end()
    await answering
    await vault.ask('reactor react-async', { id: reactor })
    const later = await vault.runs.next()
    t.match(later.invocation, { timeMs: 1000 * asyncSeconds, isAsync: true }, `${name}, asynchronous`)
    later.end()
  }
})

t.test(
  'if the owner runs code, the code cannot make calls after the application of the reactor is deleted',
  async (t) => {
    const { vault, bound, reactor } = await cast(t)
    const answering = vault.ask('reactor react', { id: reactor })
    const run = await vault.runs.next()
    t.equal(await run.call('tokens.retrieve', 'ssn'), 200)
    await vault.ask('app delete', { id: bound.id })
    t.equal(await run.call('tokens.retrieve', 'ssn'), 401)
    run.end()
    t.same(await answering, { raw: 'done' })
  },
)

t.test('the result of a run is tokenized only if its caller still exists', async (t) => {
  const tokenizing: ReactorOutcome = { kind: 'result', tokenize: { made: 'x' } }
  for (const who of ['bound', 'invoker'] as const) {
    const played = await cast(t)
    const { vault, reactor, invoker } = played
    const answering = vault.askAs(invoker.key, 'reactor react', { id: reactor })
    const run = await vault.runs.next()
    await vault.ask('app delete', { id: played[who].id })
    run.end(tokenizing)
    await t.rejects(answering, { code: 'unauthenticated' }, who)
    t.equal((await vault.ask('token list', {})).data.length, 1, 'no token was created')
    t.match(await vault.ask('reactor logs', { id: reactor }), [{ outcome: 'unauthenticated', status: 401 }])
  }
})

t.test('when a session ends, runs that the session started lose their rights', async (t) => {
  const { vault, reactor } = await cast(t)
  const front = await vault.createApplication('public', { permissions: ['token:create'] })
  const back = await vault.createApplication('private', INVOKE)
  const { session_key, nonce } = await vault.askAs(front.key, 'session create')
  await vault.askAs(back.key, 'session authorize', { nonce, ...INVOKE })
  const changes: [() => Promise<unknown>, number][] = [
    [async () => undefined, 200],
    [() => vault.ask('app update', update(back, READ)), 403],
    [() => vault.ask('app update', update(back, INVOKE)), 200],
    [
      async () => {
        vault.clock.now += HOUR
      },
      401,
    ],
  ]
  for (const [change, call] of changes) {
    const answering = statusOf(vault.askAs(session_key, 'reactor react', { id: reactor }))
    const run = await vault.runs.next()
    await change()
    t.equal(await run.call('tokens.retrieve', 'ssn'), call)
    run.end()
    t.equal(await answering, call)
    await vault.ask('app update', update(back, INVOKE))
  }
})

const LATER: [string, (cast: Cast) => Promise<unknown>, stored: number | undefined][] = [
  ['the caller is deleted', ({ vault, invoker }) => vault.ask('app delete', { id: invoker.id }), 401],
  [
    'the caller loses the right to invoke reactors',
    ({ vault, invoker }) => vault.ask('app update', update(invoker, READ)),
    403,
  ],
  [
    'the caller loses the right to use the token of the arguments',
    ({ vault, invoker }) =>
      vault.ask(
        'app update',
        update(invoker, { rules: [{ priority: 1, container: '/other/', transform: 'reveal', ...INVOKE }] }),
      ),
    403,
  ],
  ['the reactor is deleted', ({ vault, reactor }) => vault.ask('reactor delete', { id: reactor }), undefined],
]

t.test('a waiting run does not start if its caller has lost the right to invoke the reactor', async (t) => {
  for (const [name, change, stored] of LATER)
    await t.test(name, async (t) => {
      const played = await cast(t)
      const { vault, invoker, reactor } = played
      const start = async () => {
        const args = { ssn: '{{ ssn }}' }
        const given = await vault.askAs(invoker.key, 'reactor react-async', { id: reactor, args })
        return (given as { asyncReactorRequestId: string }).asyncReactorRequestId
      }
      // A caller may have four runs at once, so the fifth run waits.
      for (let count = 0; count < 4; count++) await start()
      const last = await start()
      const runs = await Promise.all([1, 2, 3, 4].map(() => vault.runs.next()))
      await change(played)
      for (const run of runs) run.end()
      await vault.app.background.idle()
      t.same(vault.runs.counts(), { asked: 5, started: 0 }, 'the run did not start')
      const record = await vault.app.store.read(async (reader) => reader.get('reactor_result', 1, last))
      t.equal(record?.ended?.error?.status, stored)
      if (stored !== 403) return
      await vault.ask('app update', update(invoker, INVOKE))
      const asking = vault.askAs(invoker.key, 'reactor result', { id: reactor, request_id: last })
      t.equal(await statusOf(asking), 403, 'the result says why the run did not start')
    })
})

t.test('a list is refused if its caller is deleted while the list is read', async (t) => {
  const { vault, bound } = await cast(t)
  const data = 'x'.repeat(200 * 1024)
  for (let count = 0; count < 3; count++) await vault.ask('token create', { type: 'token', data })
  const { write } = vault.app.store
  let units = 0
  Object.assign(vault.app.store, {
    write: async (...given: Parameters<typeof write>) => {
      if (++units === 2) {
        Object.assign(vault.app.store, { write })
        await vault.ask('app delete', { id: bound.id })
      }
      return write(...given)
    },
  })
  await t.rejects(vault.askAs(bound.key, 'token list'), { code: 'unauthenticated' })
  t.equal(units, 2)
})

t.test('after rights are removed, the next call of code in a child process is refused', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  await vault.ask('token create', { id: 'ssn', type: 'token', data: '123456789' })
  const bound = await vault.createApplication('private', {
    permissions: ['token:read', 'token:create'],
  })
  const code = `module.exports = async ({ svc }) => {
    let last = (await svc.tokens.retrieve('ssn')).id
    await svc.tokens.create({ id: 'begun', type: 'token', data: 1 })
    for (;;) {
      try {
        last = (await svc.tokens.retrieve('ssn')).id
      } catch (error) {
        return { raw: { last, status: error.status } }
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }`
  const { id } = await vault.ask('reactor create', { name: 'r', code, application: { id: bound.id } })
  const answering = vault.ask('reactor react', { id })
  while ((await statusOf(vault.ask('token get', { id: 'begun' }))) !== 200)
    await new Promise((resolve) => setTimeout(resolve, 5))
  await vault.ask('app delete', { id: bound.id })
  t.same(await answering, { raw: { last: 'ssn', status: 401 } })
})
