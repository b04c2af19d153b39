/** This file runs the kill test for a short time. The program `bench/soak.ts` runs the kill test for a longer time. */
import t from 'tap'
import { killRepeatedly } from './kill.js'

const KILLS = 40
const LIMIT_MS = 300_000

t.setTimeout(400_000)

t.test(
  'processes that are killed at random moments lose no acknowledged change',
  { timeout: 400_000 },
  async (t) => {
    const result = await killRepeatedly(KILLS, LIMIT_MS)
    t.comment(JSON.stringify(result))
    t.strictSame(result.faults, [])
    t.equal(result.kills, KILLS, 'kills')
    t.ok(result.acknowledged > result.kills, `${result.acknowledged} changes were acknowledged`)
    t.ok(result.reads > 0, `${result.reads} reads`)
    t.ok(
      result.longestWaitMs <= 10_500,
      `no process waited longer than the limit: ${result.longestWaitMs} ms`,
    )
  },
)
