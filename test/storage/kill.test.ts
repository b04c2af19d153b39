/** A share of the kill test that every run can afford; `bench/soak.ts` runs it at length. */
import t from 'tap'
import { killRepeatedly } from './kill.js'

const KILLS = 40
const LIMIT_MS = 300_000

t.setTimeout(400_000)

t.test('nothing confirmed is lost when processes are killed at random', { timeout: 400_000 }, async (t) => {
  const result = await killRepeatedly(KILLS, LIMIT_MS)
  t.comment(JSON.stringify(result))
  t.strictSame(result.faults, [])
  t.equal(result.kills, KILLS, 'kills')
  t.ok(result.acknowledged > result.kills, `${result.acknowledged} changes were confirmed`)
  t.ok(result.reads > 0, `${result.reads} reads`)
  t.ok(result.longestWaitMs <= 10_500, `nobody waited longer than the bound: ${result.longestWaitMs} ms`)
})
