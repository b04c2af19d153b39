/**
 * A fault of a server or a database neither loses nor duplicates an acknowledged write. `npm run test:soak
 * postgres-faults` runs this test for a longer time.
 */
import t from 'tap'
import { disturb } from './postgres-faults.js'

t.test(
  'no fault of a server or a database loses or duplicates an acknowledged write',
  { timeout: 240_000 },
  async (t) => {
    const { faults, done, requests, ...rest } = await disturb(0)
    t.comment(JSON.stringify({ requests, ...rest }))
    t.strictSame(faults, [])
    t.strictSame(Object.values(done), [1, 1, 1, 1])
    t.ok(requests > 100)
  },
)
