/** Nothing acknowledged is lost or doubled, whatever dies. `npm run test:soak postgres-faults` goes on for longer. */
import t from 'tap'
import { disturb } from './postgres-faults.js'

t.test('every fault once, while clients write', { timeout: 240_000 }, async (t) => {
  const { faults, done, requests, ...rest } = await disturb(0)
  t.comment(JSON.stringify({ requests, ...rest }))
  t.strictSame(faults, [])
  t.strictSame(Object.values(done), [1, 1, 1, 1])
  t.ok(requests > 100)
})
