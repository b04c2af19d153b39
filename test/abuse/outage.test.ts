import t from 'tap'
import { runOutage } from './outage.js'

const CONNECTIONS = 50
const SECONDS = 2

t.test('after a sudden death nothing that was acknowledged is missing', { timeout: 240_000 }, async (t) => {
  const result = await runOutage({ signal: 'SIGKILL', connections: CONNECTIONS, seconds: SECONDS })
  t.equal(result.ended.signal, 'SIGKILL')
  t.same(result.wrong, [])
  t.same(result.missing, [])
  t.ok(result.acknowledged > 50 && result.reads > 50, `${result.acknowledged} written, ${result.reads} read`)
})

t.test('after a request to stop nothing that was accepted is dropped', { timeout: 240_000 }, async (t) => {
  const result = await runOutage({ signal: 'SIGTERM', connections: CONNECTIONS, seconds: SECONDS })
  t.equal(result.ended.code, 0)
  t.same(result.wrong, [])
  t.equal(result.dropped, 0)
  t.same(result.missing, [])
  t.ok(result.acknowledged > 50 && result.reads > 50, `${result.acknowledged} written, ${result.reads} read`)
})
