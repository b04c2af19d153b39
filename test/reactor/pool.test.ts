import t from 'tap'
import type { Invocation, ReactorRun } from '../../src/framework/ports/reactors.js'
import type { Guest, GuestListener } from '../../src/reactor/child.js'
import { describeSandbox } from '../../src/reactor/confinement.js'
import type { GuestMessage, HostMessage } from '../../src/reactor/messages.js'
import { ReactorPool } from '../../src/reactor/pool.js'
import {
  DEFAULT_SETTINGS,
  type GuestSize,
  type PoolClock,
  type PoolSettings,
} from '../../src/reactor/settings.js'

/** A clock that stands still until the test advances it. */
class HandClock implements PoolClock {
  #nowMs = 0
  readonly #works = new Map<object, { atMs: number; work: () => void }>()

  now(): number {
    return this.#nowMs
  }
  after(delayMs: number, work: () => void): () => void {
    const key = {}
    this.#works.set(key, { atMs: this.#nowMs + delayMs, work })
    return () => this.#works.delete(key)
  }
  /** Runs all timers that are due within the next `byMs` milliseconds, in order. */
  async turn(byMs: number): Promise<void> {
    const endMs = this.#nowMs + byMs
    for (;;) {
      const [next] = [...this.#works]
        .filter(([, { atMs }]) => atMs <= endMs)
        .sort(([, a], [, b]) => a.atMs - b.atMs)
      if (next === undefined) break
      this.#works.delete(next[0])
      this.#nowMs = next[1].atMs
      next[1].work()
      await settle()
    }
    this.#nowMs = endMs
  }
}

/** A fake guest that sends the messages that the test gives to it. */
class FakeGuest implements Guest {
  messageLimits = { maxBytes: 0, maxBodyBytes: 0 }
  readonly wrapperPid = 0
  listener: GuestListener | undefined
  readonly sent: HostMessage[] = []
  isKilled = false
  isLow = false
  /** If false, the guest does not read its messages. */
  isReading = true
  #end: () => void = () => undefined
  #start: (isReady: boolean) => void = () => undefined
  readonly ready = new Promise<boolean>((resolve) => {
    this.#start = resolve
  })
  readonly ended = new Promise<void>((resolve) => {
    this.#end = resolve
  })

  readonly pid: number

  constructor(pid: number, isReady = true) {
    this.pid = pid
    if (isReady) this.#start(true)
  }
  send(message: HostMessage): Promise<void> {
    this.sent.push(message)
    return this.isReading ? Promise.resolve() : new Promise(() => undefined)
  }
  say(...messages: GuestMessage[]): void {
    for (const message of messages) this.listener?.message(message)
  }
  answer(raw: unknown = 1): void {
    this.say({ kind: 'done', raw: JSON.stringify(raw) }, { kind: 'idle' })
  }
  lowerPriority(): void {
    this.isLow = true
  }
  kill(): void {
    if (this.isKilled) return
    this.isKilled = true
    this.#start(false)
    this.listener?.end('ended')
    this.#end()
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

function setUp(settings: Partial<PoolSettings> = {}, { isReady = true } = {}) {
  const clock = new HandClock()
  const guests: FakeGuest[] = []
  const sizes: GuestSize[] = []
  const memory = new Map<number, number>()
  const readMiB = (pid: number | undefined) => memory.get(pid!) ?? 50
  const pool = new ReactorPool(
    { ...DEFAULT_SETTINGS, ...settings },
    {
      clock,
      meter: readMiB,
      watch: ({ pid }, { timeMs, maxMiB }) => {
        let killed: 'time' | 'memory' | undefined
        let peakMiB = 0
        const end = (limit: typeof killed) => {
          killed = limit
          guests[pid!]!.kill()
        }
        const look = () => {
          peakMiB = Math.max(peakMiB, readMiB(pid!))
          if (peakMiB > maxMiB) end('memory')
          else cancelLook = clock.after(20, look)
        }
        let cancelLook = clock.after(20, look)
        const cancelTime = clock.after(timeMs, () => end('time'))
        return () => {
          cancelLook()
          cancelTime()
          return { killed, peakMiB }
        }
      },
      fetch: async () => {
        throw new Error('no network')
      },
      sandbox: describeSandbox({ wrapper: [] }, { path: '', version: '20.19.0', platform: 'linux' }),
      startGuest: (size) => {
        sizes.push(size)
        const guest = new FakeGuest(guests.length, isReady)
        guests.push(guest)
        return guest
      },
    },
  )
  const run = (reactor: string, more: Partial<Invocation> = {}): Promise<ReactorRun> =>
    pool.run({ tenant: 1, reactor, code: 'code', args: {}, configuration: {}, client: null, ...more })
  /** Starts a run, makes the child with the number `at` answer the run, and returns the result of the run. */
  const complete = async (at: number, reactor: string, more: Partial<Invocation> = {}, raw?: unknown) => {
    const running = run(reactor, more)
    await settle()
    guests[at]!.answer(raw)
    const done = await running
    await settle()
    return done
  }
  const killed = () => guests.map(({ isKilled }) => isKilled)
  return { clock, guests, sizes, memory, pool, run, complete, killed }
}

t.test('a child process never serves a second reactor, tenant, application, caller or session', async (t) => {
  const { guests, complete, run } = setUp()
  const caller = 'application/x'
  const sessions = ['1', '2'].map((session) => ({ caller, session }))
  const others = [{ tenant: 2 }, { rights: 'x' }, { caller }, ...sessions]
  await complete(0, 'a')
  const runs = [run('b'), ...others.map((other) => run('a', other))]
  await settle()
  t.equal(guests.length, 7)
  for (const guest of guests) t.equal(guest.sent.length, 1)
  for (const guest of guests.slice(1)) guest.answer()
  await Promise.all(runs)
})

t.test('runs with different limits of memory or time do not share a child process', async (t) => {
  const { guests, sizes, killed, complete } = setUp({ spares: 1 })
  await complete(0, 'a')
  await complete(1, 'a', { memoryFactor: 4 })
  await complete(3, 'a', { isAsync: true })
  t.same(sizes, [
    { memoryMiB: 128, busyMs: 30_000, longestMs: 30_000 },
    { memoryMiB: 512, busyMs: 30_000, longestMs: 30_000 },
    // These are the limits of the spare child. No run has needed this child yet.
    { memoryMiB: 128, busyMs: 30_000, longestMs: 30_000 },
    { memoryMiB: 128, busyMs: 30_000, longestMs: 900_000 },
  ])
  await complete(0, 'a')
  await complete(1, 'a', { memoryFactor: 4 })
  await complete(3, 'a', { isAsync: true })
  t.equal(guests.length, 4, 'each child is used again')
  await complete(2, 'a', { code: 'new' })
  t.same(killed(), [true, true, false, true, false], 'a new version ends the children of every size')
})

t.test(
  'when the child of a run is ready, the pool checks whether the run may start, and a refused run sends nothing',
  async (t) => {
    const { guests, killed, run, complete } = setUp()
    const refused = new Error('not any more')
    const refuse = async () => {
      throw refused
    }
    await t.rejects(run('a', { mayStart: refuse }), refused)
    t.same(guests[0]!.sent, [])
    t.same(killed(), [true], 'the child has no code yet, so it cannot serve the reactor and is killed')
    await complete(1, 'a')
    await t.rejects(run('a', { mayStart: refuse }), refused)
    await complete(1, 'a')
    t.same(killed(), [true, false], 'a child that already has the code is kept')
    let allow: () => void = () => undefined
    const mayStart = () => new Promise<void>((resolve) => (allow = resolve))
    const ended = run('a', { mayStart })
    await settle()
    guests[1]!.kill()
    await settle()
    allow()
    await t.rejects(ended, { code: 'unavailable' }, 'the run fails, because its child ended in the meantime')
  },
)

t.test(
  'an idle child that is kept for one caller is ended if another caller of the reactor needs room',
  async (t) => {
    const { killed, complete } = setUp({ maxPerReactor: 2 })
    for (const [at, caller] of ['x', 'y', 'z'].entries())
      t.match(await complete(at, 'a', { caller }), { outcome: { kind: 'result' } })
    t.same(killed(), [true, false, false])
  },
)

t.test('a child whose memory has grown since it loaded its code is not used for another run', async (t) => {
  // The memory of a child can grow by 16 MiB, plus three times the memory that loading the code took. This second part
  // of the limit is at most 64 MiB.
  for (const [loadingMiB, mostMiB] of [
    [0, 16],
    [10, 46],
    [50, 80],
  ] as const) {
    const { guests, memory, run, killed } = setUp()
    for (const [at, grownMiB] of [0, 10, mostMiB, mostMiB + 1].entries()) {
      const next = run('a')
      await settle()
      memory.set(0, 50 + loadingMiB + (at === 0 ? 0 : 5))
      guests[0]!.say({ kind: 'loaded' })
      memory.set(0, 50 + loadingMiB + grownMiB)
      guests[0]!.answer()
      await next
      await settle()
      t.same(killed(), [at === 3], `${grownMiB} MiB, of which loading took ${loadingMiB}`)
    }
  }
})

t.test('the memory of a child that has not yet loaded its code may grow by 16 MiB', async (t) => {
  const { guests, memory, run, killed } = setUp()
  for (const [at, grownMiB] of [0, 10, 16, 17].entries()) {
    const next = run('a')
    await settle()
    memory.set(0, 50 + grownMiB)
    guests[0]!.answer()
    await next
    await settle()
    t.same(killed(), [at === 3], `${grownMiB} MiB`)
  }
})

t.test('a child that runs an old version of a reactor is ended after its run', async (t) => {
  const { guests, killed, run } = setUp()
  const old = run('a')
  await settle()
  const next = run('a', { code: 'other' })
  await settle()
  for (const guest of guests) guest.answer()
  await Promise.all([old, next])
  await settle()
  t.same(killed(), [true, false])
})

t.test(
  'a setting decides whether a child ends after an idle time, after a number of runs, or after each run',
  async (t) => {
    const { clock, guests, complete } = setUp({ warmMs: 60_000, maxRuns: 2 })
    await complete(0, 'a')
    await clock.turn(59_999)
    t.notOk(guests[0]!.isKilled)
    await clock.turn(1)
    t.ok(guests[0]!.isKilled)
    for (const _ of [1, 2]) await complete(1, 'a')
    t.equal(guests.length, 2)
    t.ok(guests[1]!.isKilled)
    const single = setUp({ isolation: 'process' })
    for (const at of [0, 1]) await single.complete(at, 'a')
    t.same(single.killed(), [true, true])
  },
)

/** Sets up a pool whose runs hang and wait in a queue. The result reports which runs were started. */
function setUpLine(settings: Partial<PoolSettings>) {
  const set = setUp({ maxPerReactor: 99, ...settings })
  const ended: string[] = []
  const errors: Record<string, { code?: string; retryAfterSeconds?: number }> = {}
  const ask = async (caller: string, name = caller) => {
    set.run(name, { caller, args: { name } }).then(
      () => ended.push(name),
      (error) => {
        errors[name] = error
      },
    )
    await settle()
  }
  const running = () =>
    set.guests.flatMap(({ isKilled, sent }) => {
      const last = sent.findLast(({ kind }) => kind === 'run') as { args: { name: string } } | undefined
      return isKilled || last === undefined ? [] : [last.args.name]
    })
  const answer = async (name: string) => {
    set.guests.find(({ sent, isKilled }) => !isKilled && JSON.stringify(sent).includes(`"${name}"`))!.answer()
    await settle()
  }
  return { ...set, ask, answer, ended, errors, running }
}

t.test(
  'the pool starts runs of different callers in turn, and the runs of one caller in the order of their requests',
  async (t) => {
    const line = setUpLine({ maxChildren: 1, reservedChildren: 0, isolation: 'process' })
    for (const [caller, name] of ['A1', 'A2', 'A3', 'A4', 'B1', 'B2', 'C1'].map((name) => [name[0]!, name]))
      await line.ask(caller!, name)
    while (line.running().length > 0) await line.answer(line.running()[0]!)
    t.same(line.ended, ['A1', 'A2', 'B1', 'C1', 'A3', 'B2', 'A4'])
  },
)

t.test('a single caller never gets all children, so another caller gets a child at once', async (t) => {
  for (const maxChildren of [1, 2, 3, 8]) {
    const line = setUpLine({ maxChildren, reservedChildren: 2 })
    for (let at = 0; at < 20; at++) await line.ask('A', `A${at}`)
    t.equal(line.running().length, Math.max(1, maxChildren - 1), `${maxChildren} children`)
    await line.ask('B', 'B0')
    t.ok(line.running().includes('B0'), 'another caller is served at once')
    t.notOk(line.running().includes('A19'))
    await line.ask('C', 'C0')
    t.ok(line.running().includes('C0'), 'the next caller gets a reserved child')
    t.equal(line.running().length, Math.max(1, maxChildren - 1) + 2)
    await line.pool.close()
  }
})

t.test(
  'a run that waits too long is refused, and the error says whether its caller or all callers have too many runs',
  async (t) => {
    const line = setUpLine({ maxChildren: 1, reservedChildren: 1, waitMs: 3_500 })
    await line.ask('A', 'A0')
    await line.ask('B', 'B0')
    await line.ask('A', 'A1')
    await line.ask('C', 'C0')
    await line.clock.turn(3_499)
    t.same(line.errors, {})
    await line.clock.turn(1)
    t.match(line.errors.A1, { code: 'rate_limited', status: 429, retryAfterSeconds: 4 })
    t.match(line.errors.C0, { code: 'unavailable', status: 503, retryAfterSeconds: 4 })
    await line.answer('A0')
    t.same(line.ended, ['A0'], 'a run that has started is not affected')
    t.equal(line.guests.flatMap(({ sent }) => sent).length, 2, 'a refused run is not started')
    await line.pool.close()
  },
)

t.test(
  'each caller can have only a limited number of waiting runs, so there is room for other callers',
  async (t) => {
    const line = setUpLine({ maxChildren: 1, reservedChildren: 0, maxWaitingOfCaller: 3, maxWaiting: 5 })
    for (let at = 0; at < 5; at++) await line.ask('A', `A${at}`)
    t.match(line.errors, { A4: { code: 'rate_limited', retryAfterSeconds: 30 } })
    for (let at = 0; at < 3; at++) await line.ask('B', `B${at}`)
    t.match(line.errors.B2, { code: 'unavailable', retryAfterSeconds: 30 })
    t.same(Object.keys(line.errors), ['A4', 'B2'])
    await line.pool.close()
    t.equal(Object.keys(line.errors).length, 7, 'the runs that still wait are refused when the pool closes')
  },
)

t.test(
  'if the pool needs room, it first ends an idle child of the same caller, and then an idle child of another caller',
  async (t) => {
    const line = setUpLine({ maxChildren: 1, reservedChildren: 1 })
    for (const name of ['B', 'A']) {
      await line.ask(name)
      await line.answer(name)
    }
    t.same(line.running(), ['B', 'A'], 'both children are warm')
    await line.ask('A', 'other')
    t.same(line.running(), ['B', 'other'])
    await line.ask('C')
    t.same(line.running(), ['other', 'C'])
    await line.pool.close()
  },
)

t.test('a reactor has at most its share of the children', async (t) => {
  const { guests, run } = setUp({ maxChildren: 4, maxPerReactor: 2 })
  const runs = [run('a'), run('a'), run('a'), run('b')]
  await settle()
  t.equal(guests.length, 3)
  t.match(guests[2]!.sent[0], { kind: 'run' })
  for (const at of [2, 0, 1, 0]) {
    guests[at]!.answer()
    await settle()
  }
  t.equal((await Promise.all(runs)).length, 4)
})

t.test(
  'a child that exceeds its limits of output or calls, or ends early, is killed, and its run fails with the reason',
  async (t) => {
    const limits = { ...DEFAULT_SETTINGS.limits, logBytes: 300, calls: 2, callBytes: 100 }
    const call = (args = '[]'): GuestMessage => ({ kind: 'call', call: 1, name: 'tokenize', args })
    const lines: GuestMessage = { kind: 'log', level: 'log', text: 'x'.repeat(237) }
    const cases: [messages: GuestMessage[], error: RegExp][] = [
      [[lines], /300 bytes to the console/],
      [[call(), call(), call()], /more than 2 calls/],
      [[call(`["${'x'.repeat(97)}"]`)], /100 bytes in its calls/],
      [[], /ended before/],
    ]
    for (const [messages, error] of cases) {
      const { guests, run } = setUp({ limits })
      const running = run('a', { client: async () => ({}) })
      await settle()
      guests[0]!.say(...messages)
      if (messages.length === 0) guests[0]!.kill()
      const failure = { kind: 'failure', error: { code: 'reactor_failed', errors: { error: [error] } } }
      t.match(await running, { outcome: failure })
      t.ok(guests[0]!.isKilled)
    }
  },
)

t.test('a caller with several long runs gets a lower priority while other callers wait', async (t) => {
  const line = setUpLine({})
  await line.ask('A', 'A0')
  await line.ask('C', 'C0')
  await line.clock.turn(150)
  await line.ask('A', 'A1')
  await line.clock.turn(150)
  const low = () => line.guests.map(({ isLow }) => isLow)
  t.same(low(), [false, false, false], 'the caller keeps its priority, because no other caller is waiting')
  await line.ask('B', 'B0')
  t.same(low(), [true, false, false, false], 'a caller with a single run or a short run keeps its priority')
  await line.pool.close()
})

t.test('a run that stays just below its limits succeeds', async (t) => {
  const limits = { ...DEFAULT_SETTINGS.limits, timeMs: 500, logBytes: 300, calls: 2 }
  const set = setUp({ limits })
  const run = set.run('a', { client: async () => ({}) })
  await settle()
  const { clock, guests, memory } = set
  memory.set(0, 50 + 128 + 64)
  await clock.turn(499)
  const call: GuestMessage = { kind: 'call', call: 1, name: 'tokenize', args: '[]' }
  guests[0]!.say({ kind: 'log', level: 'warn', text: 'x'.repeat(236) }, call, call)
  guests[0]!.answer(7)
  t.match(await run, {
    outcome: { kind: 'result', raw: 7 },
    durationMs: 499,
    memoryMiB: 192,
    console: [{ level: 'warn', text: 'x'.repeat(236) }],
  })
})

t.test('a run performs at most four calls at once, and a refused call gets a problem document', async (t) => {
  const { guests, run } = setUp()
  const open: (() => void)[] = []
  const client = (name: string) =>
    new Promise((resolve, reject) => {
      open.push(() => (name === 'tokenize' ? resolve({ id: 1 }) : reject(new Error('secret'))))
    })
  const running = run('a', { client })
  await settle()
  const names: Record<number, string> = { 2: 'tokens.get', 3: 'tokens.list' }
  for (let call = 1; call <= 10; call++)
    guests[0]!.say({ kind: 'call', call, name: names[call] ?? 'tokenize', args: '[]' })
  guests[0]!.say({ kind: 'call', call: 11, name: 'tokenize', args: '["\\ud800"]' })
  await settle()
  t.equal(open.length, 4, 'an unknown call is refused at once')
  for (let done = 0; done < open.length; done++) {
    open[done]!()
    await settle()
  }
  const replyTo = (call: number) =>
    guests[0]!.sent.find((message) => 'call' in message && message.call === call)
  t.same(replyTo(1), { kind: 'reply', call: 1, value: { id: 1 } })
  t.match(replyTo(2), { kind: 'reply', error: { status: 404 } })
  t.match(replyTo(3), { kind: 'reply', error: { status: 500, message: /Something went wrong/ } })
  t.notMatch(JSON.stringify(replyTo(3)), /secret/, 'the text of an internal error is not shown')
  t.match(replyTo(11), { kind: 'reply', error: { status: 400 } })
  guests[0]!.answer()
  await running
})

t.test(
  'an asynchronous run has its own time limit, and may wait longer for a child than other runs',
  async (t) => {
    const limits = { ...DEFAULT_SETTINGS.limits, timeMs: 500, asyncTimeMs: 2_000 }
    const { clock, guests, run } = setUp({ limits, maxChildren: 1, reservedChildren: 0, waitMs: 500 })
    const timeout = { outcome: { kind: 'failure', error: { code: 'reactor_timeout' } } }
    const running = run('a', { isAsync: true })
    await settle()
    const waiting = run('b', { isAsync: true, timeMs: 900 })
    const refused = t.rejects(run('c'), { code: 'rate_limited', retryAfterSeconds: 1 })
    await clock.turn(500)
    await refused
    await clock.turn(1_499)
    t.notOk(guests[0]!.isKilled)
    await clock.turn(1)
    t.match(await running, timeout)
    await settle()
    await clock.turn(899)
    t.notOk(guests[1]!.isKilled, 'the run that waited has started')
    await clock.turn(1)
    t.match(await waiting, timeout, 'its own limit is lower than that of the vault')
  },
)

t.test('a child that does not read its messages gets at most four answers', async (t) => {
  const { clock, guests, run } = setUp({ limits: { ...DEFAULT_SETTINGS.limits, timeMs: 500 } })
  let served = 0
  const client = async () => {
    served += 1
    return 'large'
  }
  const running = run('a', { client })
  await settle()
  guests[0]!.isReading = false
  for (let call = 1; call <= 30; call++)
    guests[0]!.say({ kind: 'call', call, name: 'tokens.list', args: '[]' })
  await settle()
  t.equal(served, 4)
  t.equal(guests[0]!.sent.filter(({ kind }) => kind === 'reply').length, 4)
  await clock.turn(500)
  t.match(await running, { outcome: { kind: 'failure', error: { code: 'reactor_timeout' } } })
})

t.test('if a child process does not start in time, the run fails as unavailable', async (t) => {
  const { clock, guests, run } = setUp({}, { isReady: false })
  const dead = run('a')
  await settle()
  guests[0]!.kill()
  await t.rejects(dead, { code: 'unavailable' })
  const slow = run('a')
  await settle()
  const rejected = t.rejects(slow, { code: 'unavailable' })
  await clock.turn(10_000)
  await rejected
  t.ok(guests[1]!.isKilled)
})

t.test('after a change of settings, each old child ends, either at once or after its run', async (t) => {
  const { guests, pool, run, complete, killed } = setUp({ maxChildren: 3, spares: 1 })
  await complete(0, 'a')
  const [running, waiting] = [run('b'), run('c')]
  await settle()
  pool.configure({ ...DEFAULT_SETTINGS, maxChildren: 3 })
  for (let round = 0; round < 2; round++) {
    for (const guest of guests.slice(0, 3)) guest.answer()
    await settle()
  }
  t.match([await running, await waiting], [{ outcome: { raw: 1 } }, { outcome: { raw: 1 } }])
  await settle()
  t.same(killed(), [true, true, true], 'no spare child is kept')
  await complete(3, 'a')
  t.equal(guests.length, 4)
})

t.test('after a second child was needed, the pool starts a spare child for any caller', async (t) => {
  const { guests, complete } = setUp({ spares: 1 })
  await complete(0, 'a')
  await complete(0, 'a')
  t.equal(guests.length, 1, 'a vault that runs one reactor has one child')
  await complete(1, 'b')
  t.equal(guests.length, 3)
  await complete(2, 'c')
  t.equal(guests.length, 4, 'the spare child ran the third reactor, and another spare was started')
})

t.test('one child compiles all code, and this child runs no code', async (t) => {
  const { guests, pool, run, killed } = setUp()
  for (const code of ['first', 'second']) {
    const compiling = pool.compile(code)
    await settle()
    guests[0]!.say({ kind: 'loaded' }, { kind: 'done' }, { kind: 'idle' })
    t.same(await compiling, [])
    await settle()
  }
  t.match(guests[0]!.sent, [
    { kind: 'check', code: 'first', isCompiledOnly: true },
    { kind: 'check', code: 'second', isCompiledOnly: true },
  ])
  void run('reactor').catch(() => undefined)
  await settle()
  t.same(killed(), [false, false])
  t.equal(guests[1]!.sent.length, 1, 'a run has a child of its own')
  await pool.close()
})

t.test(
  'if the child that compiles code dies or is too slow, the compilation ends without a result',
  async (t) => {
    const { clock, guests, pool } = setUp()
    const dying = pool.compile('code')
    await settle()
    guests[0]!.kill()
    t.same(await dying, [])
    const slow = pool.compile('code')
    await settle()
    await clock.turn(3_000)
    t.same(await slow, [])
    t.ok(guests[1]!.isKilled)
    await pool.close()
  },
)

t.test('the compilation of code fails if no child starts', async (t) => {
  const { clock, guests, pool } = setUp({}, { isReady: false })
  const compiling = pool.compile('code')
  await settle()
  guests[0]!.kill()
  await t.rejects(compiling, { code: 'unavailable' })
  const waiting = pool.compile('code')
  await Promise.all([t.rejects(waiting, { code: 'unavailable' }), clock.turn(10_000)])
  await pool.close()
})
