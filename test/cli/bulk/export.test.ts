/** `coffer token export`, and the import of its output. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { refuseWrite } from '../../../src/cli/bulk/import-log.js'
import { openTestVault } from '../../../src/index.js'
import { createMachine } from '../../support/process.js'
import { createHome, createVaultHome, type Home, ruleOf, testVault } from '../home.js'

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
const linesOf = (text: string) => Array.from(text.trim().split('\n'), (line) => JSON.parse(line))

t.test('in each format, the import of a plaintext export creates the same tokens again', async (t) => {
  const source = await createVaultHome(t)
  await fill(source)
  const whole = ['token', 'list', '--reveal', '--fields', KEPT.replace(',fingerprint', '')]
  const wanted = (await source.json(whole)).data
  for (const name of ['out.ndjson', 'out.json', 'out.csv']) {
    const { code, stdout, stderr } = await source.run(['token', 'export', name, '--reveal'])
    t.match({ code, stdout, stderr }, { code: 0, stdout: /^$/, stderr: /Exported 7 tokens to / })
    t.equal(statSync(join(source.place, name)).mode & 0o777, 0o600)
    t.equal((await source.run(['token', 'export', name])).code, 5, 'an existing file is not overwritten')
    const target = await createVaultHome(t)
    target.write(name, read(source, name))
    t.match(await target.json(['token', 'import', name]), { created: 7, refused: 0 })
    t.same((await target.json(whole)).data.reverse(), wanted, name)
  }
  const cells = read(source, 'out.csv')
  t.equal(cells.split('\n', 1)[0]!.replaceAll('"', ''), KEPT.replace('print', 'print_expression'))
  for (const cell of [`"'=1+1"`, `"''=x"`]) t.match(cells, cell)
})

testVault(
  'an export is masked by default, and filters and fields select what the export contains',
  async (t, home) => {
    await fill(home)
    for (const format of ['ndjson', 'json', 'csv']) {
      const { stdout } = await home.run(['token', 'export', '--format', format])
      t.notMatch(stdout, CARD)
      t.match(stdout, 'XXXXXXXXXXXX4242')
    }
    const told = (more: string) => home.run(`token export out${more.length}.csv${more}`)
    t.match(await told(''), { stderr: 'Exported 7 tokens to out0.csv (masked; --reveal for plaintext).\n' })
    t.match(await told(' --reveal'), {
      stderr: /^Exported 7 tokens to out9.csv, which now contains data in plaintext\.$/m,
    })
    const cards = await home.run('token export --type card --reveal --fields data.number')
    t.equal(cards.stdout, `{"data":{"number":"${CARD}"}}\n`)
    const csv = await home.run('token export --container /b/ --format csv --fields type')
    t.equal(csv.stdout, '"type"\n"token"\n')
    t.equal((await home.run('token export --fields nonsense')).code, 2)
    t.equal((await home.run('token export --format xml')).code, 2)
    const empty = await home.run('token export --type bank --format json')
    t.same(JSON.parse(empty.stdout), [])
  },
)

testVault('an import refuses each row of a masked export', async (t, home) => {
  await fill(home)
  const target = await createVaultHome(t)
  const stderr =
    /^error: The import stopped at line \d, with 0 rows done .*: The data of the row is masked\. Export it with --reveal\./
  for (const format of ['ndjson', 'json', 'csv']) {
    const { stdout: stdin } = await home.run(`token export --format ${format} --type card`)
    t.match(await target.run(`token import --format ${format}`, { stdin }), { code: 2, stderr })
  }
  const masking = ruleOf('mask', { container: '/general/high/' })
  const { key } = await home.createApp({ rules: [masking, ruleOf('reveal', { priority: 2 })] })
  const { stdout } = await home.run('token export', { env: { COFFER_API_KEY: key } })
  const masks = linesOf(stdout).map(({ data, containers, masked = false }) => [
    masked,
    data !== undefined && containers.includes('/general/high/'),
  ])
  for (const [isMasked, isToBe] of masks)
    t.equal(isMasked, isToBe, 'the rule that decides about the token also decides whether the row is masked')
  t.equal(new Set(masks.map(String)).size, 2)
})

testVault('an export reads all pages, and prints no control characters on a terminal', async (t, home) => {
  const rows = Array.from({ length: 250 }, (_, at) => ({ type: 'token', data: `\u001b[2J${at}` }))
  await fill(home, rows)
  const { stdout } = await home.run('token export --reveal --fields data')
  t.equal(new Set(stdout.trim().split('\n')).size, 250)
  for (const format of ['ndjson', 'csv']) {
    const shown = await home.run(['token', 'export', '--reveal', '--format', format], { columns: 80 })
    t.notMatch(shown.stdout, '\u001b')
  }
})

t.test('the error of a full disk names the file', async (t) => {
  const file = await open('/dev/full', 'a')
  t.teardown(() => file.close())
  const failed = file.appendFile('x').catch(refuseWrite('/dev/full'))
  await t.rejects(failed, { message: '/dev/full cannot be written (ENOSPC).' })
})

t.test('an export from a server reads all pages of the list of tokens', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.stop())
  const home = createHome(t)
  const env = { COFFER_URL: 'http://localhost', COFFER_API_KEY: vault.keys.private! }
  const run = (line: string, stdin = '') =>
    home.run(line, { env, stdin, fetch: (url, init) => vault.fetch(url, init) })
  const rows = Array.from({ length: 150 }, (_, at) => `${JSON.stringify({ type: 'token', data: at })}\n`)
  t.equal((await run('token import', rows.join(''))).code, 0)
  const { stdout } = await run('token export --fields data')
  const wanted = rows.map((_, at) => ({ data: 149 - at }))
  t.same(linesOf(stdout), wanted, 'the data is shown as the rules of the key allow')
})

t.test(
  'an export file gets its final name only when it is complete, and a refused export leaves no file',
  async (t) => {
    const vault = await openTestVault()
    t.teardown(() => vault.stop())
    const home = createHome(t)
    const env = { COFFER_URL: 'http://localhost', COFFER_API_KEY: vault.keys.private! }
    const rows = Array.from({ length: 150 }, (_, at) => `${JSON.stringify({ type: 'token', data: at })}\n`)
    const fetch: typeof vault.fetch = (url, init) => vault.fetch(url, init)
    t.equal((await home.run('token import', { env, stdin: rows.join(''), fetch })).code, 0)
    const seen: string[][] = []
    const watched: typeof vault.fetch = (url, init) => {
      seen.push(readdirSync(home.place).filter((name) => name.startsWith('out')))
      return vault.fetch(url, init)
    }
    t.equal((await home.run('token export out.ndjson', { env, fetch: watched })).code, 0)
    t.ok(seen.length >= 2, `${seen.length} pages`)
    for (const names of seen.slice(-2)) t.match(names, [/^out\.ndjson\.tmp-/])
    t.equal(linesOf(read(home, 'out.ndjson')).length, 150)
    let left = 1
    const failing: typeof vault.fetch = (url, init) =>
      left-- > 0 ? vault.fetch(url, init) : Promise.resolve(new Response('{}', { status: 400 }))
    t.not((await home.run('token export out2.ndjson', { env, fetch: failing })).code, 0)
    t.same(
      readdirSync(home.place).filter((name) => name.startsWith('out')),
      ['out.ndjson'],
    )
  },
)

t.test('an export can be written to a pipe, a device or a file descriptor', async (t) => {
  const machine = await createMachine(t)
  const rows = Array.from({ length: 120 }, (_, at) => `${JSON.stringify({ type: 'token', data: at })}\n`)
  t.equal((await machine.coffer(['token', 'import', '-'], rows.join(''))).code, 0)
  for (const [line, count] of [
    ['coffer token export /dev/stdout', 120],
    ['coffer token export /dev/stdout | cat', 120],
    ['coffer token export /dev/fd/1', 120],
    ['coffer token export /dev/fd/3 3> by-descriptor && cat by-descriptor', 120],
    ['mkfifo pipe; coffer token export pipe & cat pipe; wait', 120],
    ['cat pipe & coffer token export pipe; wait', 120],
    ['coffer token export /dev/null', 0],
  ] as const) {
    const { stdout, stderr } = await machine.bash(line)
    t.equal(stdout.split('\n').length - 1, count, `${line}: ${stderr}`)
    t.match(stderr, 'Exported 120 tokens', line)
  }
  const full = await machine.bash('coffer token export /dev/full')
  t.match(full, { code: 1, stderr: /\/dev\/full cannot be written \(ENOSPC\)/ })
  const early = await machine.bash('head -n 1 pipe & coffer token export pipe; wait')
  t.equal(early.stdout.split('\n').length - 1, 1, 'the export succeeds if the reader closes the pipe early')
})

testVault('an export of selected columns can be imported without changes', async (t, home) => {
  await fill(home, [
    { id: 'empty', type: 'token', data: '' },
    { id: 'bare', type: 'us_bank_routing_number', data: '021000089', mask: null },
    { id: 'null', type: 'token', data: 'null', mask: 'null' },
    { id: 'card', type: 'card', data: { number: '4242424242424242', expiration_month: 1 } },
  ])
  const shown = 'token list --reveal --fields id,data,mask'
  const fields = 'id,type,data,mask,containers,created_at,card.last4'
  await home.json('init --vault other')
  await home.json(`token export some.csv --reveal --fields ${fields}`)
  await home.json('token import some.csv --vault other')
  t.same((await home.json(`${shown} --vault other`)).data.reverse(), (await home.json(shown)).data)
})
