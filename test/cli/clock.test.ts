/** Wrong clocks. Expiry follows the clock, but the vault deletes nothing shortly after its clock has jumped. */
import t, { type Test } from 'tap'
import { createHome } from './home.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY
const START = Date.parse('2030-01-15T12:00:00Z')

type Listed = { data: { id: string; message: string; entity_id: string }[] }

async function createBench(t: Test) {
  const clock = { now: START }
  const home = createHome(t)
  const shape = { clock: () => clock.now }
  const json = (line: string, stdin = '') => home.json(line, { ...shape, stdin })
  await json('init')
  return {
    ...{ home, clock, json },
    run: (line: string, more = {}) => home.run(line, { ...shape, ...more }),
    create: (token: object) => home.createToken(token, shape),
    /** Returns the ids that a list shows. */
    ids: async () => ((await json('token list')) as Listed).data.map(({ id }) => id),
    /** Returns the purged tokens, according to the log. */
    purged: async () => {
      const { data } = (await json('log list --size 1000')) as Listed
      return data.filter(({ message }) => message === 'Token expired').map(({ entity_id }) => entity_id)
    },
  }
}

const inDays = (days: number) => new Date(START + days * DAY).toISOString()
const AHEAD = /newest record of this vault is dated 2031-01-15T12:0\d.* 365 days ahead of the clock/

t.test(
  'if a write happens while the clock is a year ahead, no token is lost when the clock is right again',
  async (t) => {
    const { clock, json, run, create, ids, purged } = await createBench(t)
    const app = 'app create --name month --type private --permission token:read --expires-at'
    const { key } = await json(`${app} ${inDays(30)}`)
    const asKey = async () => (await run('token get keep', { env: { COFFER_API_KEY: key } })).code
    await create({ id: 'keep' })
    await create({ id: 'this-year', expires_at: inDays(200) })
    t.equal(await asKey(), 0)

    clock.now = START + YEAR
    t.equal(await asKey(), 4, 'a key expires by the clock of the machine')
    t.same(await ids(), ['keep'], 'an expired token is hidden at once')
    await create({ id: 'ahead' })
    t.match(await run('token list'), { stderr: /^$/ }, 'no notice is printed while the clock is ahead')

    clock.now = START + 5 * MINUTE
    for (let start = 0; start < 2; start++)
      t.match(
        await run('token list'),
        { code: 0, stderr: AHEAD },
        'the jump is reported once each time the vault is opened',
      )
    t.equal(await asKey(), 0, 'a key with 30 days left is accepted')
    const made = await create({ id: 'month', expires_at: inDays(30) })
    t.equal(made.created_at.slice(0, 10), '2030-01-15', 'new records have the time of the clock')
    t.same(
      await ids(),
      ['month', 'ahead', 'this-year', 'keep'],
      'tokens are listed in the order in which they were written',
    )
    t.same(await purged(), [])
    const query = 'created_at:[2030-01-15 TO 2030-01-16]'
    const { data } = (await json('token search', JSON.stringify({ query }))) as Listed
    t.equal(data.map(({ id }) => id).join(), 'month,this-year,keep', 'tokens are found by their dates')
    await json('vault compact')
    t.match(
      await run('token list'),
      { code: 0, stderr: /^$/ },
      'no notice is printed after the clock is confirmed',
    )
    t.match(await json('vault verify'), { ok: true })
    t.match(await json('log verify'), { is_whole: true })
  },
)

t.test(
  'expired tokens are purged an hour after a jump of the clock, or when the clock is confirmed',
  async (t) => {
    const { clock, json, create, ids, purged } = await createBench(t)
    await create({ id: 'keep' })
    await create({ id: 'week', expires_at: inDays(7) })
    clock.now = START + 8 * DAY
    t.same(await ids(), ['keep'])
    clock.now += 59 * MINUTE
    await create({ id: 'other' })
    t.same(await purged(), [], 'a write does not confirm the clock')
    clock.now += MINUTE
    await json('token list')
    t.same(await purged(), ['week'], 'tokens are purged an hour later')
    await create({ id: 'again', expires_at: inDays(9) })
    clock.now += 8 * DAY
    await json('vault compact')
    t.same(await purged(), ['again', 'week'], 'at once')
  },
)

t.test('the id of an expired token cannot be used again shortly after the clock has jumped', async (t) => {
  const { clock, run, create } = await createBench(t)
  await create({ id: 'week', data: 'old', expires_at: inDays(7) })
  clock.now = START + 8 * DAY
  const line = 'token create --id week --type token --data "new"'
  t.match(await run(line), { code: 5, stderr: /clock has just jumped.*vault compact/s })
  clock.now = START + HOUR
  t.match(await run('token get week --reveal'), { code: 0, stdout: /old/ })
  clock.now = START + 8 * DAY
  await run('vault compact')
  t.equal((await run(line)).code, 0)
})
