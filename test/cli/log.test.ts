/** The log on the command line: its end, what comes after, and its proof. */
import t from 'tap'
import { createTail, verify } from '../../src/cli/commands/log.js'
import type { CommandContext } from '../../src/cli/context.js'
import { chooseFormat, printResult } from '../../src/cli/output/output.js'
import type { Task } from '../../src/cli/task.js'
import { readConfig } from '../../src/config.js'
import type { Vault } from '../../src/vault/vault.js'
import { openEphemeral } from '../support/ephemeral.js'
import { requireOperation } from '../support/test-vault.js'
import { createTerminal } from './fake-terminal.js'
import { createVaultHome, ruleOf } from './home.js'

interface Line {
  entity_id: string
  message: string
}

t.test('tail shows the newest records, oldest first', async (t) => {
  const home = await createVaultHome(t)
  for (const id of ['one', 'two', 'three']) await home.createToken({ id: id })
  const ids = (lines: Line[]) => lines.map(({ entity_id }) => entity_id)
  t.same(ids(await home.json('log tail -n 2')), ['two', 'three'])
  t.same(ids(await home.json('log tail --number 3')), ['one', 'two', 'three'])
  t.equal((await home.json('log tail')).length, 4, 'with the tenant’s own beginning')
  t.same(await home.json('log tail -n 0'), [])
  for (const count of ['x', '-1', '10001']) {
    t.equal((await home.run(['log', 'tail', '-n', count])).code, 2, count)
  }
})

/** Follows a log to which `batches` are added, one between each look and the next; what was printed. */
async function follow(batches: string[][], settings: Record<string, string>): Promise<string> {
  const stop = new AbortController()
  const app = await openEphemeral({ tenantName: 'default', clock: () => Date.parse('2030-01-15T12:00:00Z') })
  const add = async (ids: string[]) => {
    for (const id of ids) {
      const input = { id: `id-${id}`, type: 'token', data: 1 }
      await app.ask({ operation: 'token create', input, as: { reveal: false } })
    }
  }
  await add(['before'])
  const terminal = createTerminal()
  const wait = async () => {
    const batch = batches.shift()
    if (batch === undefined) stop.abort()
    else await add(batch)
  }
  const config = readConfig(settings, { HOME: '/nowhere' })
  const task: Partial<Task> = {
    context: { terminal, config, signal: stop.signal } as unknown as CommandContext,
    definition: requireOperation('log tail'),
    input: { number: 1 },
    options: { follow: true },
    format: chooseFormat(terminal, config.output),
    ask: async (input = {}) =>
      (await app.ask({ operation: 'log tail', input, as: { reveal: false } })).result,
    withOpenVault: (work) => work({} as Vault),
    print: (result, format = 'json') => printResult(terminal, result, { format, fields: config.fields }),
  }
  await createTail(wait).run!(task as Task)
  await app.close()
  return terminal.stdout.text
}

t.test('following shows every record once, as it comes, on a terminal as a line', async (t) => {
  const many = Array.from({ length: 30 }, (_, index) => `b${index}`)
  const text = await follow([['a1', 'a2'], [], many], { output: 'ndjson', fields: 'entity_id' })
  const wanted = ['before', 'a1', 'a2', ...many].map((id) => `{"entity_id":"id-${id}"}\n`)
  t.equal(text, wanted.join(''))
  const start = '2030-01-15T12:00:00Z  user         create  token            '
  const line = (id: string) => `${start}${id.padEnd(36)}  Token created\n`
  t.equal(await follow([['one']], { output: 'table' }), line('id-before') + line('id-one'))
})

t.test(
  'a table names applications and users, and the records of one token are found by its id',
  async (t) => {
    const home = await createVaultHome(t)
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
    t.match(await table('log list one', asReader), /application +read +token/, 'unnamed')
  },
)

t.test('verify proves the log of the tenant', async (t) => {
  const home = await createVaultHome(t)
  await home.createToken({ id: 'one' })
  await home.json('token list')
  const { tenant, ...proof } = await home.json('log verify')
  t.same(proof, { is_whole: true, records: 3 })
  t.match(tenant, { id: String, name: 'default' })
  await home.json('tenant create other')
  t.equal((await home.json('log verify --tenant other')).records, 1)
})

t.test('verify says where the log breaks, and fails', async (t) => {
  for (const [broken_at, message] of [
    [2, 'The log is broken at record 2 of 5'],
    [6, 'The log ends after 5 records, and more were written'],
  ] as const) {
    const proof = { is_whole: false, records: 5, broken_at }
    const task: Partial<Task> = {
      context: { terminal: createTerminal() } as unknown as CommandContext,
      ask: async () => proof,
      print: async () => undefined,
    }
    await t.rejects(verify.run!(task as Task), {
      code: 'vault_damaged',
      exit: 7,
      message: new RegExp(message),
    })
  }
})
