/**
 * Results of asynchronous runs after stops, kills and power cuts, and beyond the limits. The test decides when each run
 * ends.
 */
import fc from 'fast-check'
import t from 'tap'
import { createKeyring } from '../../src/crypto/keyring.js'
import { createRandom } from '../../src/crypto/random.js'
import { loadSodium } from '../../src/crypto/sodium.js'
import { CofferError } from '../../src/errors.js'
import type { Invocation, ReactorOutcome, ReactorRun } from '../../src/framework/ports/reactors.js'
import { createFileEngine, openFileEngine } from '../../src/storage/engines/file-engine.js'
import { type App, createApp, createFirstTenant } from '../../src/vault/app.js'
import { FakeFiles } from '../storage/fake-files.js'
import { testHeader } from '../storage/powers.js'
import { START } from '../support/test-vault.js'

const HOUR = 3_600_000
const DIRECTORY = '/v'
const primitives = await loadSodium()
const random = createRandom()

interface PendingRun {
  invocation: Invocation
  end(run: ReactorRun | Error): void
}

/**
 * A vault on an in-memory disk. The test can kill the process of the vault, and decides how the runs of the vault end.
 */
class World {
  readonly #root = random.bytes(32)
  #files = new FakeFiles()
  #disk: 'new' | 'used' = 'new'
  now = START
  app!: App
  /** The runs in the runtime that have not ended yet. */
  runs: PendingRun[] = []

  async open(): Promise<void> {
    const keyring = createKeyring(primitives, random, this.#root)
    if (this.#disk === 'new') this.#files.makeDirectory(DIRECTORY)
    const header = testHeader() as never
    const options = {
      files: this.#files,
      directory: DIRECTORY,
      header,
      keys: keyring.engine,
      clock: () => this.now,
      random,
      notice: () => undefined,
      role: 'server' as const,
    }
    const engine = await (this.#disk === 'new' ? createFileEngine(options) : openFileEngine(options))
    const app = createApp({ engine, keyring, random, header, primitives })
    const runs: PendingRun[] = []
    const run = (invocation: Invocation) =>
      new Promise<ReactorRun>((resolve, reject) => {
        const end = (outcome: ReactorRun | Error) => {
          runs.splice(runs.indexOf(each), 1)
          if (outcome instanceof Error) reject(outcome)
          else resolve(outcome)
        }
        const each = { invocation, end }
        runs.push(each)
      })
    this.runs = runs
    this.app = Object.assign(app, { reactors: async () => ({ run }) as never })
    if (this.#disk === 'new') await createFirstTenant(this.app, 'default')
    this.#disk = 'used'
  }

  async stop(): Promise<void> {
    const closing = this.app.close()
    for (const { end } of [...this.runs]) end(new CofferError('unavailable', 'The server is stopping.'))
    await closing
    await this.open()
  }

  /**
   * Ends the process of the vault, so that the pending work is lost. Later writes of the dead process go to a disk that
   * nobody reads.
   */
  async kill(isPowerCut: boolean): Promise<void> {
    const dead = this.app
    const { runs } = this
    this.#files = this.#files.afterCrash(isPowerCut)
    await this.open()
    for (const { end } of [...runs]) end(new CofferError('unavailable', 'The server is stopping.'))
    await dead.close().catch(() => undefined)
  }

  async ask(operation: string, input: Record<string, unknown>): Promise<{ status: number; body: unknown }> {
    try {
      const { status, headers, result } = await this.app.ask({ operation, input, as: { reveal: true } })
      return { status, body: headers === undefined ? result : { headers, body: result } }
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      return { status: error.status, body: error.message }
    }
  }

  async create(): Promise<string> {
    const { body } = await this.ask('reactor create', { name: 'r', code: 'x' })
    return (body as { id: string }).id
  }

  async start(id: string, args: Record<string, unknown> = {}): Promise<string> {
    const { status, body } = await this.ask('reactor react-async', { id, args })
    if (status !== 202) throw new Error(`react-async is ${status}: ${body}`)
    return (body as { asyncReactorRequestId: string }).asyncReactorRequestId
  }
}

const runOf = (outcome: ReactorOutcome): ReactorRun => ({ outcome, console: [], durationMs: 1, memoryMiB: 1 })
const failure = new CofferError('reactor_failed', 'failed', { status: 418 })

/** The ways in which a run ends, each with the result that must be stored. */
const ENDINGS: [ReactorRun | Error, { status: number; body: unknown }][] = [
  [runOf({ kind: 'result', raw: { a: 1 } }), { status: 200, body: { raw: { a: 1 } } }],
  [
    runOf({ kind: 'result', res: { statusCode: 402, headers: { a: 'b' }, body: 'no' } }),
    { status: 402, body: { headers: { a: 'b' }, body: 'no' } },
  ],
  [runOf({ kind: 'failure', error: failure }), { status: 418, body: 'failed' }],
  [new CofferError('rate_limited', 'too many'), { status: 429, body: 'too many' }],
  [new Error('secret'), { status: 500, body: 'Something went wrong on our side.' }],
]
const [DONE] = ENDINGS as [(typeof ENDINGS)[number]]
const NOT_FOUND = { status: 404, body: 'There is no result with this id, or its run has not ended yet.' }
const INTERRUPTED = { status: 500, body: 'Reactor interrupted' }

type Step =
  | { do: 'start' | 'stop' }
  | { do: 'end'; which: number; how: number }
  | { do: 'kill'; isPowerCut: boolean }
  | { do: 'wait'; hours: number }

const plain = (name: 'start' | 'stop') => fc.constant<Step>({ do: name })
const end = fc.record({ do: fc.constant('end' as const), which: fc.nat(9), how: fc.nat(ENDINGS.length - 1) })
const kill = fc.record({ do: fc.constant('kill' as const), isPowerCut: fc.boolean() })
const wait = fc.record({ do: fc.constant('wait' as const), hours: fc.constantFrom(1, 23, 25) })
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: plain('start'), weight: 4 },
  { arbitrary: end, weight: 4 },
  kill,
  plain('stop'),
  wait,
)

/** The facts that the test knows about a run whose start was acknowledged. */
interface Known {
  at: number
  ended?: { status: number; body: unknown }
}

t.test(
  'the result of a run is the complete answer of react or says that the run was interrupted, and never changes',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
        const world = new World()
        await world.open()
        const reactor = await world.create()
        const known = new Map<string, Known>()
        /** The runs that have not ended, in the order in which they started. */
        let waiting: string[] = []
        const interrupt = () => {
          for (const id of waiting) known.get(id)!.ended = INTERRUPTED
          waiting = []
        }
        for (const each of steps) {
          if (each.do === 'start') {
            const id = await world.start(reactor, { n: known.size })
            known.set(id, { at: world.now })
            waiting.push(id)
          } else if (each.do === 'end' && waiting.length > 0) {
            while (world.runs.length < Math.min(4, waiting.length)) await new Promise(setImmediate)
            const run = world.runs[each.which % world.runs.length]!
            const id = [...known.keys()][Number(run.invocation.args?.n)]!
            const [outcome, expected] = ENDINGS[each.how]!
            run.end(outcome)
            while (world.app.background.has(id)) await new Promise(setImmediate)
            waiting = waiting.filter((one) => one !== id)
            known.set(id, { at: world.now, ended: expected })
          } else if (each.do === 'kill') {
            await world.kill(each.isPowerCut)
            interrupt()
          } else if (each.do === 'stop') {
            await world.stop()
            interrupt()
          } else if (each.do === 'wait') {
            // The time at which the oldest waiting run started. The test moves the clock at most 47 hours past the
            // start of the oldest run, because no real run takes two days.
            const oldest = Math.min(...waiting.map((id) => known.get(id)!.at))
            if (!(world.now + each.hours * HOUR - oldest > 47 * HOUR)) world.now += each.hours * HOUR
          }
          for (const [id, { at, ended }] of known) {
            const isKept = world.now < at + 24 * HOUR
            const expected = ended !== undefined && isKept ? ended : NOT_FOUND
            t.strictSame(await world.ask('reactor result', { id: reactor, request_id: id }), expected)
          }
        }
        await world.stop()
        await world.app.close()
      }),
      { numRuns: 40 },
    )
  },
)

t.test(
  'if a process ends while a run ends, the run has either its complete result or an interrupted result',
  async (t) => {
    for (let delay = 0; delay < 40; delay++) {
      const world = new World()
      await world.open()
      const reactor = await world.create()
      const id = await world.start(reactor)
      while (world.runs.length === 0) await new Promise(setImmediate)
      world.runs[0]!.end(DONE[0])
      for (let at = 0; at < delay; at++) await (at % 3 === 0 ? new Promise(setImmediate) : Promise.resolve())
      const seen = await world.ask('reactor result', { id: reactor, request_id: id })
      await world.kill(true)
      const after = await world.ask('reactor result', { id: reactor, request_id: id })
      if (seen.status === 404) t.ok([DONE[1].status, 500].includes(after.status), `${delay}: ${after.status}`)
      else t.strictSame(after, seen, `${delay}: a result does not change after it was read`)
      await world.app.close()
    }
  },
)

t.test(
  'an application can have 1,000 waiting runs and then gets 429, and at most four of its runs run at once',
  async (t) => {
    const world = new World()
    await world.open()
    const reactor = await world.create()
    const ids: string[] = []
    for (let count = 0; count < 1000; count++) ids.push(await world.start(reactor, { n: count }))
    t.equal(world.runs.length, 4)
    t.match(await world.ask('reactor react-async', { id: reactor }), { status: 429 })
    const application = { name: 'a', type: 'private', permissions: ['token:use'] }
    const { body: other } = await world.ask('app create', application)
    const as = { key: (other as { key: string }).key }
    const asked = await world.app.ask({ operation: 'reactor react-async', input: { id: reactor }, as })
    t.equal(asked.status, 202, 'the limit of one application does not apply to another application')
    world.runs[0]!.end(DONE[0])
    while (world.app.background.has(ids[0]!)) await new Promise(setImmediate)
    t.match(await world.ask('reactor react-async', { id: reactor }), { status: 202 })
    await world.ask('reactor delete', { id: reactor })
    for (const { end } of [...world.runs]) end(DONE[0])
    await world.stop()
    const left = await world.app.store.read((store) => store.find('reactor_result', 1, { page: 1, size: 9 }))
    t.same(left.records, [], 'a deleted reactor leaves no result')
    await world.app.close()
  },
)

t.test('after a run was refused, no server has a claim on the id of the run', async (t) => {
  const world = new World()
  await world.open()
  const { createUuid, claims } = world.app
  const ids: string[] = []
  const remember = () => {
    ids.push(createUuid())
    return ids.at(-1)!
  }
  Object.assign(world.app, { createUuid: remember })
  t.match(await world.ask('reactor react-async', { id: createUuid() }), { status: 404 })
  t.not(ids.length, 0)
  for (const id of ids) t.equal(await claims.has(1, id), false)
  await world.app.close()
})

t.test('waiting runs together keep only a limited amount of data in memory', async (t) => {
  const world = new World()
  await world.open()
  const reactor = await world.create()
  const data = 'x'.repeat(15 * 1024 * 1024)
  const answers: number[] = []
  for (let count = 0; count < 5; count++)
    answers.push((await world.ask('reactor react-async', { id: reactor, args: { data } })).status)
  t.strictSame(answers, [202, 202, 202, 202, 503])
  t.match(await world.ask('reactor react-async', { id: reactor, args: {} }), { status: 202 })
  await world.stop()
  await world.app.close()
})
