/** A clock that goes wrong: expiry goes by the clock as it is, and nothing is destroyed under one that has just jumped. */
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
    /** Ids that a list shows. */
    ids: async () => ((await json('token list')) as Listed).data.map(({ id }) => id),
    /** Which tokens were purged, by the log. */
    purged: async () => {
      const { data } = (await json('log list --size 1000')) as Listed
      return data.filter(({ message }) => message === 'Token expired').map(({ entity_id }) => entity_id)
    },
  }
}

const inDays = (days: number) => new Date(START + days * DAY).toISOString()
const AHEAD = /newest record of this vault is dated 2031-01-15T12:0\d.* 365 days ahead of the clock/

t.test('one write under a clock a year ahead costs nothing once the clock is right again', async (t) => {
  const { clock, json, run, create, ids, purged } = await createBench(t)
  const app = 'app create --name month --type private --permission token:read --expires-at'
  const { key } = await json(`${app} ${inDays(30)}`)
  const asKey = async () => (await run('token get keep', { env: { COFFER_API_KEY: key } })).code
  await create({ id: 'keep' })
  await create({ id: 'this-year', expires_at: inDays(200) })
  t.equal(await asKey(), 0)

  clock.now = START + YEAR
  t.equal(await asKey(), 4, 'a key is judged by the clock')
  t.same(await ids(), ['keep'], 'so is a token: it is hidden at once')
  await create({ id: 'ahead' })
  t.match(await run('token list'), { stderr: /^$/ }, 'no notice while the clock is ahead')

  clock.now = START + 5 * MINUTE
  for (let start = 0; start < 2; start++)
    t.match(await run('token list'), { code: 0, stderr: AHEAD }, 'said once a start')
  t.equal(await asKey(), 0, 'a key with 30 days left works')
  const made = await create({ id: 'month', expires_at: inDays(30) })
  t.equal(made.created_at.slice(0, 10), '2030-01-15', 'what is written is dated by the clock')
  t.same(await ids(), ['month', 'ahead', 'this-year', 'keep'], 'in the order they were written')
  t.same(await purged(), [])
  const query = 'created_at:[2030-01-15 TO 2030-01-16]'
  const { data } = (await json('token search', JSON.stringify({ query }))) as Listed
  t.equal(data.map(({ id }) => id).join(), 'month,this-year,keep', 'and found by their dates')
  await json('vault compact')
  t.match(await run('token list'), { code: 0, stderr: /^$/ }, 'who confirms the clock hears no more of it')
  t.match(await json('vault verify'), { ok: true })
  t.match(await json('log verify'), { is_whole: true })
})

t.test('after a jump expired tokens go an hour later, or when somebody confirms the clock', async (t) => {
  const { clock, json, create, ids, purged } = await createBench(t)
  await create({ id: 'keep' })
  await create({ id: 'week', expires_at: inDays(7) })
  clock.now = START + 8 * DAY
  t.same(await ids(), ['keep'])
  clock.now += 59 * MINUTE
  await create({ id: 'other' })
  t.same(await purged(), [], 'a write does not make the clock right')
  clock.now += MINUTE
  await json('token list')
  t.same(await purged(), ['week'], 'an hour later')
  await create({ id: 'again', expires_at: inDays(9) })
  clock.now += 8 * DAY
  await json('vault compact')
  t.same(await purged(), ['again', 'week'], 'at once')
})

t.test('an id is not given again under a clock that has just jumped', async (t) => {
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
