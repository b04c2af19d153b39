import t from 'tap'
import type { CofferError } from '../../../src/errors.js'
import {
  CHANGE,
  checkRetry,
  nextPlan,
  type Plan,
  pauseMs,
  READ,
  type Reason,
} from '../../../src/storage/postgres/attempt.js'

const REASONS: readonly Reason[] = ['conflict', 'taken', 'stale', 'moments', 'writes', 'logs']

t.test(
  'a unit may be repeated as a snapshot or as a change, but a snapshot or a change is never repeated as a simple read',
  async (t) => {
    const next = (mode: Plan['mode'], reason: Reason) => nextPlan({ ...READ, mode }, reason).mode
    const table = Object.fromEntries(
      REASONS.map((reason) => [
        reason,
        [next('read', reason), next('snapshot', reason), next('change', reason)],
      ]),
    )
    const same = ['read', 'snapshot', 'change']
    t.strictSame(table, {
      conflict: same,
      taken: same,
      stale: same,
      logs: same,
      // A unit in the mode `change` cannot have a collision of the kind `moments`.
      moments: ['snapshot', 'snapshot', 'snapshot'],
      writes: ['change', 'change', 'change'],
    })
  },
)

t.test(
  'after an attempt of a unit has sent log entries, each later attempt sends its log entries too',
  async (t) => {
    for (const reason of REASONS)
      t.equal(nextPlan({ ...CHANGE, hasSentLogs: true }, reason).hasSentLogs, true)
  },
)

t.test(
  'only a unit that collides with others pauses before it runs again, with growing pauses of at most 200 ms',
  async (t) => {
    for (const reason of ['stale', 'moments', 'writes', 'logs'] as const) t.equal(pauseMs(reason, 9, 1), 0)
    for (const reason of ['conflict', 'taken'] as const) {
      const longest = [1, 2, 3, 6, 7, 1000].map((attempt) => pauseMs(reason, attempt, 1))
      t.strictSame(longest, [4, 8, 16, 128, 200, 200])
      t.equal(pauseMs(reason, 1, 0), 2, 'the pause is at least half of the full pause')
    }
  },
)

t.test(
  'a unit runs again for 5 s, or for 60 s if it deletes a tenant, or 5 times if the id of its new row exists',
  async (t) => {
    const outcome = (taken: number, ms: number, dropsTenant: boolean) => {
      try {
        checkRetry(taken, ms, dropsTenant)
        return 'again'
      } catch (error) {
        return (error as CofferError).code
      }
    }
    const table: [taken: number, ms: number, dropsTenant: boolean, expected: string][] = [
      [0, 5_000, false, 'again'],
      [0, 5_001, false, 'unavailable'],
      [0, 60_000, true, 'again'],
      [0, 60_001, true, 'unavailable'],
      [5, 0, false, 'again'],
      [6, 0, false, 'internal'],
    ]
    for (const [taken, ms, drops, expected] of table)
      t.equal(outcome(taken, ms, drops), expected, `${[taken, ms, drops]}`)
  },
)
