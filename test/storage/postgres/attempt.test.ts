import t from 'tap'
import {
  CHANGE,
  nextPlan,
  type Plan,
  pauseMs,
  READ,
  type Reason,
} from '../../../src/storage/postgres/attempt.js'

const REASONS: readonly Reason[] = ['conflict', 'taken', 'stale', 'moments', 'writes', 'logs']

t.test('a read becomes a snapshot or a change, and nothing becomes a read again', async (t) => {
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
    // A change has no such collision.
    moments: ['snapshot', 'snapshot', 'snapshot'],
    writes: ['change', 'change', 'change'],
  })
})

t.test('log entries that were stored for one attempt are stored for the next', async (t) => {
  for (const reason of REASONS) t.equal(nextPlan({ ...CHANGE, hasSentLogs: true }, reason).hasSentLogs, true)
})

t.test('only units that meet others pause, longer with each attempt, up to 200 ms', async (t) => {
  for (const reason of ['stale', 'moments', 'writes', 'logs'] as const) t.equal(pauseMs(reason, 9, 1), 0)
  for (const reason of ['conflict', 'taken'] as const) {
    const longest = [1, 2, 3, 6, 7, 1000].map((attempt) => pauseMs(reason, attempt, 1))
    t.strictSame(longest, [4, 8, 16, 128, 200, 200])
    t.equal(pauseMs(reason, 1, 0), 2, 'at least half of it')
  }
})
