/** The log on the command line: `log tail`, `log tail --follow` and `log verify`. */
import t from 'tap'
import { verify } from '../../src/cli/nouns/log.js'
import type { Task } from '../../src/cli/task.js'
import { createTerminal } from './fake-process.js'
import { ruleOf, testVault } from './home.js'

testVault('log tail shows the newest records, with the oldest of them first', async (t, home) => {
  for (const id of ['one', 'two', 'three']) await home.createToken({ id: id })
  const ids = (lines: { entity_id: string }[]) => lines.map(({ entity_id }) => entity_id)
  t.same(ids(await home.json('log tail -n 2')), ['two', 'three'])
  t.same(ids(await home.json('log tail --number 3')), ['one', 'two', 'three'])
  t.equal((await home.json('log tail')).length, 4, 'the log includes the creation of the tenant')
  t.same(await home.json('log tail -n 0'), [])
  for (const count of ['x', '-1', '10001']) {
    t.equal((await home.run(['log', 'tail', '-n', count])).code, 2, count)
  }
})

testVault('log tail --follow prints every new record once, and on a terminal as a line', async (t, home) => {
  await home.createToken({ id: 'before' })
  const ids = ['before', 'first', 'second', ...Array.from({ length: 30 }, (_, at) => `c-${at}`)]
  const bodies = ids.map((id) => `{"id":"${id}","type":"token","data":1}\n`)
  const after: Record<string, () => unknown> = {
    before: () => home.run('token create', { stdin: bodies.slice(1, 3).join('') }),
    second: () => home.run('token create', { stdin: bodies.slice(3).join('') }),
  }
  const stop = new AbortController()
  const watch = (text: string) => {
    for (const [id, go] of Object.entries(after))
      if (text.includes(`"${id}"`)) {
        delete after[id]
        go()
      }
    if (text.includes('"c-29"')) stop.abort()
  }
  const line = 'log tail -n 1 --follow -o ndjson --fields entity_id'
  const { stdout } = await home.run(line, { watch, interrupt: stop.signal })
  t.equal(stdout, ids.map((id) => `{"entity_id":"${id}"}\n`).join(''))
  const shown = await home.run('log tail -n 1 --follow', { columns: 150, interruptAt: 'c-29' })
  t.match(shown.stdout, /^[\dT:-]{19}Z {2}user {9}create {2}token {12}c-29 {34}Token created\n$/)
})

testVault(
  'log list shows names of applications and users, and an argument selects the records of one token',
  async (t, home) => {
    await home.createToken({ id: 'one' })
    await home.createToken({ id: 'two' })
    const { key, id } = await home.createApp({ name: 'help desk', rules: [ruleOf('reveal')] })
    const env = { COFFER_API_KEY: key }
    await home.json('token get one', { env })
    const table = async (line: string, more = {}) => (await home.run(line, { columns: 150, ...more })).stdout
    t.match(await table('log list one'), / app help desk +read +token +one/)
    t.notMatch(await table('log list one'), 'two')
    t.match(await table('log list'), /user +create +token +two/)
    t.match(await table('log reveals one'), /"app help desk"/)
    t.match((await home.json('log list one')).data[0], { actor_type: 'application', actor_id: id })
    const reader = await home.createApp({ type: 'management', permissions: ['log:read'] })
    const asReader = { env: { COFFER_API_KEY: reader.key } }
    t.match(
      await table('log list one', asReader),
      /application +read +token/,
      'the table has no name, because the key may not list applications',
    )
  },
)

testVault('log verify checks the log of the tenant', async (t, home) => {
  await home.createToken({ id: 'one' })
  await home.json('token list')
  const { tenant, ...proof } = await home.json('log verify')
  t.same(proof, { is_whole: true, records: 3 })
  t.match(tenant, { id: String, name: 'default' })
  await home.json('tenant create other')
  t.equal((await home.json('log verify --tenant other')).records, 1)
})

t.test('log verify fails if the log is damaged, and says where', async (t) => {
  for (const [broken_at, message] of [
    [2, /The log is broken at record 2 of 5/],
    [6, /The log ends after 5 records, and more were written/],
  ] as const) {
    const task = {
      context: { terminal: createTerminal() },
      ask: async () => ({ is_whole: false, records: 5, broken_at }),
      print: async () => undefined,
    }
    const failing = verify.run!(task as unknown as Task)
    await t.rejects(failing, { code: 'vault_damaged', exit: 7, message })
  }
})
