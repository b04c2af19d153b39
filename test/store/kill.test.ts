/** A share of the kill test that every run can afford; `test/soak.ts` runs it at length. */
import t from 'tap'
import { killRepeatedly } from './kill.js'

t.test('nothing confirmed is lost when processes are killed at random', { timeout: 110_000 }, async (t) => {
  const kills = Number(process.env.COFFER_TEST_KILLS ?? 40)
  const result = await killRepeatedly(kills)
  t.comment(JSON.stringify(result))
  t.strictSame(result.faults, [])
  t.equal(result.kills, kills)
  t.ok(result.acknowledged > kills, `${result.acknowledged} changes were confirmed`)
  t.ok(result.reads > 0, `${result.reads} reads`)
  t.ok(result.longestWaitMs <= 10_500, `nobody waited longer than the bound: ${result.longestWaitMs} ms`)
})
