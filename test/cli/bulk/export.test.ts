/** `coffer token export`, and that an import reads it back. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openTestVault } from '../../../src/index.js'
import { createHome, createVaultHome, type Home } from '../home.js'

const CARD = '4242424242424242'
const ROWS = [
  { type: 'card', data: { number: CARD, expiration_month: 7 } },
  { type: 'token', data: '=1+1', mask: '{{ data | reveal_last: 1 }}', metadata: { '-k': '@v', 'a.b': 'c' } },
  { type: 'token', data: "'=x" },
  { type: 'token', data: '{"not":"json"' },
  { type: 'token', data: '[quoted, "text"]\r\nand more\t' },
  {
    type: 'token',
    data: { deep: [1, { a: null }] },
    search_indexes: ['{{ data.deep[0] }}'],
    containers: ['/a/', '/b/'],
  },
  { type: 'social_security_number', data: '123-45-6789', expires_at: '2999-01-01T00:00:00.000+00:00' },
]
const KEPT = 'id,type,data,mask,containers,metadata,search_indexes,fingerprint,expires_at'

async function fill(home: Home, rows: readonly object[] = ROWS): Promise<void> {
  await home.json('token import', { stdin: rows.map((row) => `${JSON.stringify(row)}\n`).join('') })
}

const read = (home: Home, name: string) => readFileSync(join(home.place, name), 'utf8')

t.test('what is exported in the clear imports as the same tokens, in each format', async (t) => {
  const source = await createVaultHome(t)
  await fill(source)
  const whole = ['token', 'list', '--reveal', '--fields', KEPT.replace(',fingerprint', '')]
  const wanted = (await source.json(whole)).data
  for (const name of ['out.ndjson', 'out.json', 'out.csv']) {
    const { code, stdout, stderr } = await source.run(['token', 'export', name, '--reveal'])
    t.match({ code, stdout, stderr }, { code: 0, stdout: '', stderr: /Exported 7 tokens to / })
    t.equal(statSync(join(source.place, name)).mode & 0o777, 0o600)
    t.equal((await source.run(['token', 'export', name])).code, 5, 'no file is overwritten')
    const target = await createVaultHome(t)
    target.write(name, read(source, name))
    t.match(await target.json(['token', 'import', name]), { created: 7, refused: 0 })
    t.same((await target.json(whole)).data.reverse(), wanted, name)
  }
  const cells = read(source, 'out.csv')
  t.match(cells, `"'=1+1"`)
  t.match(cells, `"''=x"`)
})

t.test('an export is masked unless told otherwise, and filters and fields choose', async (t) => {
  const home = await createVaultHome(t)
  await fill(home)
  for (const format of ['ndjson', 'json', 'csv']) {
    const { stdout } = await home.run(['token', 'export', '--format', format])
    t.notMatch(stdout, CARD)
    t.match(stdout, 'XXXXXXXXXXXX4242')
  }
  const told = (more: string) => home.run(`token export out${more.length}.csv${more}`)
  t.match(await told(''), { stderr: 'Exported 7 tokens to out0.csv (masked; --reveal for plaintext).\n' })
  t.match(await told(' --reveal'), { stderr: /^Exported 7 tokens to out9.csv\.$/m })
  const cards = await home.run('token export --type card --reveal --fields data.number')
  t.equal(cards.stdout, `{"data":{"number":"${CARD}"}}\n`)
  const csv = await home.run('token export --container /b/ --format csv --fields type')
  t.equal(csv.stdout, '"type"\n"token"\n')
  t.equal((await home.run('token export --fields nonsense')).code, 2)
  t.equal((await home.run('token export --format xml')).code, 2)
  const empty = await home.run('token export --type bank --format json')
  t.same(JSON.parse(empty.stdout), [])
})

t.test('what was exported masked is refused by an import, row by row', async (t) => {
  const home = await createVaultHome(t)
  await fill(home)
  const target = await createVaultHome(t)
  for (const format of ['ndjson', 'json', 'csv']) {
    const { stdout } = await home.run(['token', 'export', '--format', format, '--type', 'card'])
    const refused = await target.run(['token', 'import', '--format', format], { stdin: stdout })
    t.equal(refused.code, 2)
    t.match(
      refused.stderr,
      /line \d, with 0 rows done .*: The data of the row is masked\. Export it with --reveal\./,
    )
  }
  const rule = (priority: number, container: string, transform: string) =>
    JSON.stringify({ priority, container, transform, permissions: ['token:read'] })
  const app = ['app', 'create', '--name', 'auditor', '--type', 'private']
  const rules = ['--rule', rule(1, '/general/high/', 'mask'), '--rule', rule(2, '/', 'reveal')]
  const { key } = await home.json([...app, ...rules])
  const { stdout } = await home.run('token export', { env: { COFFER_API_KEY: key } })
  const rows = stdout
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text))
  const isMasked = ({ data, containers }: { data?: unknown; containers: string[] }) =>
    data !== undefined && containers.includes('/general/high/')
  t.same(
    rows.map(({ masked = false }) => masked),
    rows.map(isMasked),
    'each token by the rule that decides about it',
  )
  t.same([...new Set(rows.map(isMasked))].sort(), [false, true])
})

t.test('pages follow each other, and control characters do not reach a terminal', async (t) => {
  const home = await createVaultHome(t)
  await fill(
    home,
    Array.from({ length: 250 }, (_, at) => ({ type: 'token', data: `\u001b[2J${at}` })),
  )
  const { stdout } = await home.run('token export --reveal --fields data')
  t.equal(new Set(stdout.trim().split('\n')).size, 250)
  for (const format of ['ndjson', 'csv']) {
    const shown = await home.run(['token', 'export', '--reveal', '--format', format], { columns: 80 })
    t.notMatch(shown.stdout, '\u001b')
  }
})

t.test('a server is exported by its pages', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.stop())
  const home = createHome(t)
  const env = { COFFER_URL: 'http://localhost', COFFER_API_KEY: vault.keys.private! }
  const run = (words: readonly string[], stdin = '') =>
    home.run(words, { env, stdin, fetch: (url, init) => vault.fetch(url, init) })
  const rows = Array.from({ length: 150 }, (_, at) => `${JSON.stringify({ type: 'token', data: at })}\n`)
  t.equal((await run(['token', 'import'], rows.join(''))).code, 0)
  const { stdout } = await run(['token', 'export', '--fields', 'data'])
  t.same(
    stdout
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text).data),
    rows.map((_, at) => 149 - at),
    'as the rules of the key show it',
  )
})

t.test('a CSV export imports again as it was', async (t) => {
  const home = await createVaultHome(t)
  const rows = [
    { id: 'empty', type: 'token', data: '' },
    { id: 'bare', type: 'us_bank_routing_number', data: '021000089', mask: null },
    { id: 'null', type: 'token', data: 'null', mask: 'null' },
    { id: 'card', type: 'card', data: { number: '4242424242424242', expiration_month: 1 } },
  ]
  for (const row of rows) await home.json('token create', { stdin: JSON.stringify(row) })
  const read = (more: string) => home.json(`token list --reveal${more}`)
  for (const [file, fields] of [
    ['all.csv', ''],
    ['some.csv', ' --fields id,type,data,mask,containers,created_at,card.last4'],
    ['all.ndjson', ''],
  ] as const) {
    await home.json(`init --vault ${file}.vault`)
    await home.json(`token export ${file} --reveal${fields}`)
    await home.json(`token import ${file} --vault ${file}.vault`)
    const again = await read(` --vault ${file}.vault`)
    const parts = ({ id, data, mask }: Record<string, unknown>) => JSON.stringify({ id, data, mask })
    t.same(again.data.map(parts).sort(), (await read('')).data.map(parts).sort(), file)
  }
})
