import t from 'tap'
import type { Invocation, ReactorRun } from '../../src/operations/reactor-runtime.js'
import type { Guest, GuestListener } from '../../src/reactor/child.js'
import type { PoolClock } from '../../src/reactor/clock.js'
import type { GuestMessage, HostMessage } from '../../src/reactor/messages.js'
import { ReactorPool } from '../../src/reactor/pool.js'
import { DEFAULT_SETTINGS, type PoolSettings } from '../../src/reactor/pool-settings.js'

/** A clock that stands until it is turned. */
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
  /** Does everything that falls due within `byMs`, in order. */
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

/** A guest that says what the test tells it to. */
class FakeGuest implements Guest {
  readonly pid: number
  listener: GuestListener | undefined
  readonly sent: HostMessage[] = []
  isKilled = false
  readonly ready: Promise<boolean>
  readonly ended: Promise<void>
  #end: () => void = () => undefined
  #start: (isReady: boolean) => void = () => undefined

  constructor(pid: number, isReady = true) {
    this.pid = pid
    this.ready = new Promise((resolve) => {
      this.#start = resolve
    })
    if (isReady) this.#start(true)
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }
  /** Whether it reads what it is sent. */
  isReading = true
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
  const memory = new Map<number, number>()
  const pool = new ReactorPool(
    { ...DEFAULT_SETTINGS, ...settings },
    {
      clock,
      meter: { intervalMs: 20, read: (pid) => memory.get(pid) ?? 50 },
      fetch: async () => {
        throw new Error('no network')
      },
      startGuest: () => {
        const guest = new FakeGuest(guests.length, isReady)
        guests.push(guest)
        return guest
      },
    },
  )
  const run = (reactor: string, more: Partial<Invocation> = {}): Promise<ReactorRun> =>
    pool.run({ tenant: 1, reactor, code: 'code', args: {}, configuration: {}, client: null, ...more })
  return { clock, guests, memory, pool, run }
}

t.test('a reactor gets the child that ran it before, and sends its code but once', async (t) => {
  const { guests, run } = setUp()
  const first = run('a')
  await settle()
  guests[0]!.answer('x')
  t.match(await first, { outcome: { kind: 'result', raw: 'x' } })
  const second = run('a')
  await settle()
  guests[0]!.answer()
  await second
  const third = run('a', { code: 'other' })
  await settle()
  guests[0]!.answer()
  await third
  t.equal(guests.length, 1)
  t.same(
    guests[0]!.sent.map((message) => 'code' in message && message.code),
    ['code', false, 'other'],
  )
})

t.test('no child serves two reactors, or one reactor of two tenants', async (t) => {
  const { guests, run } = setUp()
  const runs = [run('a')]
  await settle()
  guests[0]!.answer()
  runs.push(run('b'), run('a', { tenant: 2 }))
  await settle()
  t.equal(guests.length, 3)
  t.equal(guests[0]!.sent.length, 1)
  for (const guest of guests.slice(1)) guest.answer()
  await Promise.all(runs)
})

t.test('an idle child is ended after its time, and after its runs', async (t) => {
  const { clock, guests, run } = setUp({ warmMs: 60_000, mostRuns: 2 })
  const first = run('a')
  await settle()
  guests[0]!.answer()
  await first
  await clock.turn(59_999)
  t.notOk(guests[0]!.isKilled)
  await clock.turn(1)
  t.ok(guests[0]!.isKilled)
  for (const turn of [1, 2]) {
    const next = run('a')
    await settle()
    t.equal(guests.length, 2, `run ${turn} of the second child`)
    guests[1]!.answer()
    await next
    await settle()
  }
  t.ok(guests[1]!.isKilled)
})

t.test('with a process for each invocation, none is used twice', async (t) => {
  const { guests, run } = setUp({ isolation: 'process' })
  for (const turn of [0, 1]) {
    const next = run('a')
    await settle()
    guests[turn]!.answer()
    await next
    await settle()
    t.ok(guests[turn]!.isKilled)
  }
})

t.test(
  'what finds no child waits, the longest waiting first, and an idle one of another reactor gives way',
  async (t) => {
    const { guests, run } = setUp({ mostChildren: 2, mostPerReactor: 2 })
    const ended: string[] = []
    const note = (name: string) => run(name).then(() => ended.push(name))
    const all = [note('a'), note('b'), note('c'), note('d')]
    await settle()
    t.equal(guests.length, 2)
    guests[1]!.answer()
    await settle()
    t.equal(guests.length, 3, 'the child of b gave way to c')
    t.ok(guests[1]!.isKilled)
    guests[2]!.answer()
    await settle()
    guests[3]!.answer()
    guests[0]!.answer()
    await Promise.all(all)
    t.same(ended, ['b', 'c', 'd', 'a'])
  },
)

t.test('a reactor has no more children than its share', async (t) => {
  const { guests, run } = setUp({ mostChildren: 3, mostPerReactor: 2 })
  const hanging = [run('a'), run('a'), run('a')]
  const other = run('b')
  await settle()
  t.equal(guests.length, 3)
  t.match(guests[2]!.sent[0], { kind: 'run' })
  guests[2]!.answer('b')
  t.match(await other, { outcome: { raw: 'b' } })
  guests[0]!.answer()
  await settle()
  guests[0]!.answer()
  guests[1]!.answer()
  t.equal((await Promise.all(hanging)).length, 3)
})

t.test(
  'past its time, memory, lines or calls a child is killed and the run fails for that reason',
  async (t) => {
    const limits = { ...DEFAULT_SETTINGS.limits, timeMs: 500, logBytes: 300, calls: 2, callBytes: 100 }
    const call = (args = '[]'): GuestMessage => ({ kind: 'call', call: 1, name: 'tokenize', args })
    const cases: [string, (set: ReturnType<typeof setUp>) => Promise<void> | void, object][] = [
      ['time', ({ clock }) => clock.turn(500), { code: 'reactor_timeout', status: 408 }],
      [
        'memory',
        ({ clock, memory }) => {
          memory.set(0, 50 + 128 + 65)
          return clock.turn(20)
        },
        { errors: { error: [/128 MiB of memory/] } },
      ],
      [
        'lines',
        ({ guests }) => guests[0]!.say({ kind: 'log', level: 'log', text: 'x'.repeat(237) }),
        { errors: { error: [/300 bytes to the console/] } },
      ],
      [
        'calls',
        ({ guests }) => guests[0]!.say(call(), call(), call()),
        { errors: { error: [/more than 2 calls/] } },
      ],
      [
        'call size',
        ({ guests }) => guests[0]!.say(call(`["${'x'.repeat(97)}"]`)),
        { errors: { error: [/100 bytes in its calls/] } },
      ],
      [
        'end',
        ({ guests }) => guests[0]!.kill(),
        { code: 'reactor_failed', errors: { error: [/ended before/] } },
      ],
    ]
    for (const [name, provoke, error] of cases) {
      const set = setUp({ limits })
      const run = set.run('a', { client: async () => ({}) })
      await settle()
      await provoke(set)
      t.match(await run, { outcome: { kind: 'failure', error } }, name)
      t.ok(set.guests[0]!.isKilled, `${name}: killed`)
    }
  },
)

t.test('just below its limits a run is left alone', async (t) => {
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

t.test(
  'a child that answered but does not come to rest is killed, and the next run gets another',
  async (t) => {
    const { clock, guests, run } = setUp()
    const first = run('a')
    await settle()
    guests[0]!.say({ kind: 'done', raw: '1' })
    t.match(await first, { outcome: { raw: 1 } }, 'the answer does not wait for that')
    await clock.turn(250)
    t.ok(guests[0]!.isKilled)
    const second = run('a')
    await settle()
    guests[1]!.answer(2)
    t.match(await second, { outcome: { raw: 2 } })
  },
)

t.test('a run waits for a child that has answered, rather than for a new one', async (t) => {
  const { guests, run } = setUp()
  const first = run('a')
  await settle()
  guests[0]!.say({ kind: 'done', raw: '1' })
  await first
  const second = run('a')
  await settle()
  t.equal(guests.length, 1)
  t.equal(guests[0]!.sent.length, 1)
  guests[0]!.say({ kind: 'idle' })
  await settle()
  guests[0]!.answer(2)
  t.match(await second, { outcome: { raw: 2 } })
  t.equal(guests.length, 1)
})

t.test('calls are answered, at most eight at a time, and refused ones carry their problem', async (t) => {
  const { guests, run } = setUp()
  const open: (() => void)[] = []
  const client = (name: string) =>
    new Promise((resolve, reject) => {
      open.push(() => (name === 'tokenize' ? resolve({ id: 1 }) : reject(new Error('secret'))))
    })
  const running = run('a', { client })
  await settle()
  for (let call = 1; call <= 10; call++)
    guests[0]!.say({
      kind: 'call',
      call,
      name: call === 2 ? 'tokens.get' : call === 3 ? 'tokens.list' : 'tokenize',
      args: '[]',
    })
  guests[0]!.say({ kind: 'call', call: 11, name: 'tokenize', args: '["\\ud800"]' })
  await settle()
  t.equal(open.length, 8, 'an unknown call takes no place')
  for (let done = 0; done < open.length; done++) {
    open[done]!()
    await settle()
  }
  const answers = guests[0]!.sent.slice(1)
  t.same(
    answers.find((message) => 'call' in message && message.call === 1),
    { kind: 'reply', call: 1, value: { id: 1 } },
  )
  t.match(
    answers.find((message) => 'call' in message && message.call === 2),
    { kind: 'refusal', status: 404 },
  )
  const fault = answers.find((message) => 'call' in message && message.call === 3)
  t.match(fault, { kind: 'refusal', status: 500, message: /Something went wrong/ })
  t.notMatch(JSON.stringify(fault), /secret/, 'what is not ours is not told')
  t.match(
    answers.find((message) => 'call' in message && message.call === 11),
    { kind: 'refusal', status: 400 },
  )
  guests[0]!.answer()
  await running
})

t.test('a child that reads no answers is given no more than eight of them to keep', async (t) => {
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
  t.equal(served, 8)
  t.equal(guests[0]!.sent.filter(({ kind }) => kind === 'reply').length, 8)
  await clock.turn(500)
  t.match(await running, { outcome: { kind: 'failure', error: { code: 'reactor_timeout' } } })
})

t.test('a child that does not start is unavailable, and is not waited for longer', async (t) => {
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

t.test('a thousand may wait, and no more', async (t) => {
  const { pool, run } = setUp({ mostChildren: 1 })
  const waiting = Array.from({ length: 1_001 }, () => run('a').catch((error) => error.code))
  await t.rejects(run('a'), { code: 'unavailable' })
  await pool.close()
  const codes = (await Promise.all(waiting)).filter((code) => code === 'unavailable')
  t.equal(codes.length, 1_000, 'those who waited are told; the running one ends as a failed run')
})

t.test('closing kills every child and refuses what comes after', async (t) => {
  const { guests, pool, run } = setUp()
  const running = run('a')
  await settle()
  await pool.close()
  t.match(await running, { outcome: { kind: 'failure', error: { code: 'unavailable' } } })
  t.ok(guests[0]!.isKilled)
  await t.rejects(run('a'), { code: 'unavailable' })
})

t.test('a pool that retires does what it was asked for, and keeps nobody', async (t) => {
  const { guests, pool, run } = setUp({ mostChildren: 2, spares: 1 })
  const idle = run('a')
  await settle()
  guests[0]!.answer()
  await idle
  await settle()
  const [running, waiting] = [run('b'), run('c')]
  await settle()
  pool.retire()
  for (const guest of guests) guest.answer()
  await settle()
  for (const guest of guests) guest.answer()
  t.match([await running, await waiting], [{ outcome: { raw: 1 } }, { outcome: { raw: 1 } }])
  await settle()
  t.ok(guests.every(({ isKilled }) => isKilled))
})

t.test('a spare stands ready once the first run was seen, for whoever comes', async (t) => {
  const { guests, run } = setUp({ spares: 1 })
  const first = run('a')
  await settle()
  guests[0]!.answer()
  await first
  await settle()
  t.equal(guests.length, 2)
  const second = run('b')
  await settle()
  t.equal(guests[1]!.sent.length, 1)
  guests[1]!.answer()
  await second
  await settle()
  t.equal(guests.length, 3)
})

t.test('a check tells what it found, and its child is used for nothing else', async (t) => {
  const { guests, pool } = setUp()
  const check = pool.check('code')
  await settle()
  t.same(guests[0]!.sent, [{ kind: 'check', code: 'code' }])
  const failure = { kind: 'invalid', message: 'no', line: 2, column: 3 } as const
  guests[0]!.say({ kind: 'report', failure, args: ['a'], configuration: ['K'] }, { kind: 'idle' })
  t.match(await check, {
    fault: { code: 'formula_invalid', errors: { code: ['line 2, column 3: no'] } },
    args: ['a'],
    configuration: ['K'],
  })
  await settle()
  t.ok(guests[0]!.isKilled)
})
