import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import type { ReactorRun, ReactorRuntime } from '../../../src/framework/ports/reactors.js'
import { confineThisNode } from '../../../src/reactor/confinement.js'
import { DEFAULT_LIMITS } from '../../../src/reactor/settings.js'
import { createReactorPool } from '../../../src/reactor/start.js'
import { ATTACKS, type Attack, type End, LEAKS } from './attacks.js'

t.setTimeout(500_000)

const LIMIT_MS = 500
const GRACE_MS = 1_000
const AT_ONCE = 2

const HONEST = 'module.exports = async ({ args }) => ({ raw: { sum: args.a + args.b } })'

const confinement = await confineThisNode()

function createPool(settings = {}): ReactorRuntime {
  return createReactorPool({
    confinement,
    settings: { limits: { ...DEFAULT_LIMITS, timeMs: LIMIT_MS }, ...settings },
  })
}

function run(pool: ReactorRuntime, reactor: string, code: string, more = {}): Promise<ReactorRun> {
  const client = async () => {
    throw new Error('refused')
  }
  return pool.run({
    tenant: 1,
    reactor,
    code,
    args: { a: 1, b: 2, ...more },
    configuration: { secret: 's3cret' },
    client,
  })
}

/** Returns how a run ended: an `End` of `attacks.ts`, or a description of any other end. */
function describeEnd({ outcome }: ReactorRun): string {
  if (outcome.kind === 'result')
    return outcome.raw === 'undefined' || outcome.raw === 'refused'
      ? 'contained'
      : `result ${JSON.stringify(outcome.raw)}`
  const { code, status, errors } = outcome.error
  if (code === 'reactor_timeout' && status === 408) return 'time'
  if (code === 'formula_invalid' && status === 422 && errors?.code !== undefined) return 'invalid'
  if (code !== 'reactor_failed' || status !== 500) return `${code} ${status}`
  const message = errors?.error?.[0] ?? ''
  if (/MiB of memory/.test(message)) return 'memory'
  if (/to the console and was stopped/.test(message)) return 'log'
  if (/in its calls and was stopped/.test(message)) return 'call size'
  if (/calls and was stopped/.test(message)) return 'calls'
  if (/sent an invalid message|process of the code ended/.test(message)) return message
  return 'thrown'
}

async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const walk = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, walk))
}

/** Returns the guest processes of the given parent, or of any parent. */
function findGuests(parent?: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const isGuest = readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('guest.mjs')
        const status = readFileSync(`/proc/${pid}/status`, 'latin1')
        const isDead = /^State:\s+Z/m.test(status)
        return isGuest && !isDead && (parent === undefined || status.includes(`PPid:\t${parent}\n`))
      } catch {
        return false
      }
    })
}

const isLinux = process.platform === 'linux'

t.test('every attack ends as documented and in time, and the next honest run succeeds', async (t) => {
  t.ok(ATTACKS.length >= 100, `${ATTACKS.length} attacks`)
  const pool = createPool()
  const before = process.memoryUsage.rss()
  let peak = before
  const attack = async ({ name, code, ends }: Attack) => {
    let attacked = await run(pool, name, code)
    // On a busy machine, an attack that usually ends by itself may reach the time limit first.
    if (describeEnd(attacked) === 'time' && !ends.includes('time')) attacked = await run(pool, name, code)
    const found = describeEnd(attacked)
    t.ok(ends.includes(found as End), `${name}: the run ended with ${ends.join(' or ')}`, { found })
    t.ok(attacked.durationMs <= LIMIT_MS + GRACE_MS, `${name}: the run ended in time`, {
      durationMs: attacked.durationMs,
    })
    const honest = await run(pool, 'honest', HONEST)
    t.match(honest.outcome, { kind: 'result', raw: { sum: 3 } }, `${name}: the next honest run succeeds`)
    peak = Math.max(peak, process.memoryUsage.rss())
  }
  await inTurns(ATTACKS, attack)
  await pool.close()
  const growthMiB = (peak - before) / 2 ** 20
  t.ok(growthMiB < 96, 'the memory of the host does not grow', { growthMiB })
  t.same(isLinux ? findGuests(process.pid) : [], [], 'no child process is left')
})

t.test('a run finds nothing that an earlier run in the same child process left behind', async (t) => {
  const pool = createPool()
  const child = () => (isLinux ? findGuests(process.pid).join() : '')
  for (const { name, first, second, endsChild = false } of LEAKS) {
    // Both runs are in one program, because a child runs only one program.
    const both = `const turns = { first(module) { ${first} }, second(module) { ${second} } }
      module.exports = async (req) => {
        const module = { exports: {} }
        turns[req.args.turn](module)
        return module.exports(req)
      }`
    let isSame = false
    // On a busy machine, the child can become idle too late for the second run to use it. If the second run used
    // another child, the test tries again.
    for (let turn = 0; turn < 5 && !isSame; turn++) {
      const left = await run(pool, 'leaking', both, { turn: 'first' })
      t.match(left.outcome, { kind: 'result', raw: true }, `${name}: left`)
      const before = child()
      const found = await run(pool, 'leaking', both, { turn: 'second' })
      t.same(found.outcome, { kind: 'result', raw: [] }, `${name}: the second run finds nothing`)
      isSame = endsChild || before === child()
    }
    t.ok(isSame, `${name}: both runs used the same child`)
  }
  await pool.close()
})
