/** What of the usage report takes the sweeps that the cases of `usage.json` cannot have. */
import t from 'tap'
import { openTestVault } from '../support/test-vault.js'

const HOUR_MS = 60 * 60 * 1000

t.test('the last creation of a type stays known, whichever token was purged or made anew', async (t) => {
  const { app, ask, clock } = await openTestVault()
  t.teardown(() => app.close())
  const dateIn = (ms: number) => new Date(clock.now + ms).toISOString().replace('Z', '+00:00')
  const create = (id: string, hours: number) =>
    ask('token create', { id, type: 'token', data: id, expires_at: dateIn(hours * HOUR_MS) })
  const pass = async (hours: number) => {
    for (let hour = 0; hour < hours; hour++) {
      clock.now += HOUR_MS
      await app.sweep()
    }
  }
  const report = async () => (await ask('tenant usage')).token_report
  await create('one', 2)
  const first = dateIn(0)
  await pass(4)
  t.match(await report(), { metrics_by_type: { token: { count: 0, last_created_at: first } } })
  await create('two', 1000)
  clock.now += 1000
  await create('one', 2)
  const last = dateIn(0)
  clock.now += 3 * HOUR_MS
  const token = { count: 1, last_created_at: last }
  t.match(await report(), { metrics_by_type: { token }, monthly_active_tokens: 2 })
  await pass(1)
  t.match(await report(), { metrics_by_type: { token }, monthly_active_tokens: 2 })
})
