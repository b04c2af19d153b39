import t from 'tap'
import { runFuzz } from './fuzz.js'

const REQUESTS = 20_000

t.test(
  'random requests get responses that match the document, and never an internal error',
  { timeout: 400_000 },
  async (t) => {
    const { statuses } = await runFuzz(REQUESTS)
    t.comment(JSON.stringify(statuses))
    const total = Object.values(statuses).reduce((sum, count) => sum + count, 0)
    t.equal(total, REQUESTS)
    for (const status of [200, 201, 204, 400, 401, 403, 404, 415])
      t.ok(statuses[status], `some requests were answered ${status}`)
  },
)
