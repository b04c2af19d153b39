/** A share of the kills under retries that every run can afford; `npm run test:soak retry-kills` does it at length. */
import t from 'tap'
import { killUnderRetries } from './retry-kills.js'

const LIMIT_MS = 8_000

t.test(
  'servers that are killed under clients that retry by key make one token a key',
  { timeout: 400_000 },
  async (t) => {
    const { faults, ...seen } = await killUnderRetries(LIMIT_MS)
    t.comment(JSON.stringify(seen))
    t.strictSame(faults, [])
    t.ok(seen.kills > 2, `${seen.kills} servers were killed`)
    t.ok(seen.keys > 20, `${seen.keys} keys were used`)
    t.ok(seen.replays > 0, `${seen.replays} answers were replayed`)
  },
)
