/** Names, prefixes of ids and durations in place of ids and dates, and tokens in tables. */
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { resolveName } from '../../src/cli/input/names.js'
import { summarizeTokens } from '../../src/cli/nouns/token.js'
import { formatAge } from '../../src/cli/output/ages.js'
import { measureWidth } from '../../src/cli/output/display.js'
import type { Permission } from '../../src/domain/access/permissions.js'
import { formatDate, parseDuration } from '../../src/domain/dates.js'
import { shortenIds } from '../../src/domain/token/short-id.js'
import { createVaultHome, ruleOf, testVault } from './home.js'

const A = '11111111-1111-4111-8111-111111111111'
const B = '11112222-1111-4111-8111-111111111111'
const C = 'deadbeef-1111-4111-8111-111111111111'
const D = 'deadbef0-1111-4111-8111-111111111111'

t.test('a name stands for the id of the only record with the name', async (t) => {
  const things = [
    { id: A, name: 'Hello' },
    { id: B, name: 'greet' },
    { id: C, email: 'ada@example.com' },
    { id: D, user: { email: 'grace@example.com' }, name: 'same' },
    { id: 'aaaaaaaa-1111-4111-8111-111111111111', name: 'same' },
    { id: 'bbbbbbbb-1111-4111-8111-111111111111', name: 'dead\u001b[31m' },
  ]
  const find = (given: unknown) => resolveName('app', given, async () => things)
  for (const [given, expected] of [
    ['hello', A],
    ['GREET', B],
    ['ADA@example.com', C],
    ['grace@example.com', D],
    ['11111', A],
    ['11112222-1', B],
    ['DEADBEEF', C],
    ['dea', 'dea'],
    ['nobody', 'nobody'],
    ['', ''],
    [undefined, undefined],
    [7, 7],
  ])
    t.equal(await find(given), expected, String(given))
  for (const given of ['1111', 'same'])
    await t.rejects(find(given), { code: 'usage', message: /stands for 2 of: coffer app list/ }, given)
  await t.rejects(find('same'), { message: /^"same" stands for 2 .*\n {2}deadbef0.*same.*\n {2}aaaaaaaa/ })
  await t.rejects(find('gret'), {
    code: 'not_found',
    message: 'No app "gret". Did you mean "greet"? List them: coffer app list',
  })
  await t.rejects(find('dead\\u001b[3m'), { message: /^[^\u001b]*$/ })
  await t.rejects(
    resolveName('app', 'greet', () => Promise.reject(new Error('no'))),
    { message: 'no' },
  )
})

testVault('commands take names of applications, formulas, reactors and members', async (t, home) => {
  const made = await home.createApp({ name: 'support', permissions: ['token:read'] })
  for (const name of ['support', made.id.slice(0, 8)])
    t.equal((await home.json(`app get ${name}`)).id, made.id)
  t.equal((await home.json('app list --id support')).data.length, 1)
  t.same((await home.json('app list --id suport')).data, [], 'a filter may name a missing record')
  t.equal((await home.json('app key list support')).length, 1)
  t.match(await home.json('token list --explain-as support'), { caller: { id: made.id } })
  const code = 'module.exports = async ({ args }) => ({ raw: { hello: args.name } })'
  const create = ['formula', 'create', '--name', 'greet', '--type', 'private', '--code', code]
  const formula = await home.json(create)
  await home.json('reactor create --name greet --formula greet --application support')
  const found = { formula: { id: formula.id }, application: { id: made.id } }
  t.match(await home.json('reactor get greet'), found)
  await home.json(create)
  const twice = await home.run('reactor create --name other --formula greet')
  t.match(twice, { code: 2, stderr: 'stands for 2 of: coffer formula list' })
  await home.json('invite create --email ada@example.com')
  const { link } = await home.json('invite outbox ada@example.com')
  await home.json(['invite', 'accept', link])
  t.equal((await home.json('member update ada@example.com --role READ_ONLY')).role, 'READ_ONLY')
  const staging = await home.json('tenant create staging')
  for (const name of ['Staging', staging.id.slice(0, 8)])
    t.equal((await home.json(['tenant', 'get', '--tenant', name])).id, staging.id)
  const refused = await home.run('app get support', { env: { COFFER_API_KEY: made.key } })
  t.equal(refused.code, 4, 'a caller that may not list must give ids')
})

t.test('a duration is a date after now or before now', async (t) => {
  for (const [text, ms] of [
    ['90s', 90_000],
    ['15m', 900_000],
    ['72h', 259_200_000],
    ['30d', 2_592_000_000],
    ['2w', 1_209_600_000],
    ['0h', undefined],
    ['-1h', undefined],
    ['1y', undefined],
    ['1h30m', undefined],
    ['72', undefined],
  ] as const)
    t.equal(parseDuration(text), ms, text)
  const home = await createVaultHome(t)
  const now = Date.now()
  const create = ['token', 'create', '--type', 'token', '--data', 'x', '--quiet']
  const { expires_at } = await home.json([...create, '--expires-at', '72h'], { clock: () => now })
  t.equal(expires_at, formatDate(now + 72 * 3_600_000))
  t.equal((await home.json('log list --start-date 1h')).pagination.total_items, 2)
  const soon = {
    COFFER_API_KEY: (await home.createApp({ type: 'public', permissions: ['token:create'] })).key,
  }
  const { nonce } = await home.json('session create', { env: soon, clock: () => now })
  const backend = { COFFER_API_KEY: (await home.createApp({ permissions: ['token:read'] })).key }
  const authorize = ['session', 'authorize', '--nonce', '-', '--permission', 'token:read', '--expires-at']
  const asBackend = { env: backend, clock: () => now, stdin: nonce }
  t.match((await home.run([...authorize, '25h'], asBackend)).stderr, /at most 24 hours ahead/)
  t.equal((await home.run([...authorize, '2h'], asBackend)).code, 0, 'also for a session')
  const later = { clock: () => now + 7_200_000 }
  t.equal((await home.json('log list --start-date 1h', later)).pagination.total_items, 0)
})

testVault('the error of a date says that durations are accepted', async (t, home) => {
  const create = ['token', 'create', '--file', home.write('body.json', '{"type":"token","data":"x"}')]
  for (const [words, message] of [
    [
      [...create, '--expires-at', '2x'],
      /^error: expires_at: must be an existing date.*; --expires-at also takes a duration from now: 2h\n$/,
    ],
    [
      [...create, '--expires-at', '1/1/2001'],
      /must be in the future.*; --expires-at also takes a duration from now: 2h\n$/,
    ],
    [['log', 'list', '--start-date', '2x'], /; --start-date also takes a duration before now: 2h\n$/],
    [[...create, '--expires-at', '2x', '--container', 'x'], /expires_at: .*now: 2h\n[\s\S]*containers/],
    [[...create, '--container', 'x'], /^error: containers[^\n]*\n$/],
  ] as const)
    t.match(await home.run(words), { code: 2, stderr: message }, words.join(' '))
  const body = await home.run('token create', { stdin: '{"type":"token","data":"x","expires_at":"2h"}' })
  t.match(body, { code: 2, stderr: /; --expires-at also takes a duration from now: 2h\n$/ }, 'also in a body')
})

testVault('--vault names a vault or its parent, and finds a key file beside it', async (t, home) => {
  const { vault, key_file } = await home.json('init --vault other')
  for (const directory of ['.', '.coffer', 'other'])
    t.equal((await home.run(['token', 'list', '--vault', directory])).code, 0, directory)
  t.equal((await home.json('vault status --vault other')).vault, vault)
  cpSync(join(home.place, 'other'), join(home.place, 'demo/.coffer-demo/vault'), { recursive: true })
  cpSync(key_file, join(home.place, 'demo/.coffer-demo/vault.key'))
  const elsewhere = { env: { XDG_CONFIG_HOME: join(home.place, 'nothing') }, cwd: join(home.place, 'demo') }
  const status = await home.json('vault status --vault .coffer-demo', elsewhere)
  t.match(status, { vault, directory: join(home.place, 'demo/.coffer-demo/vault') })
  rmSync(join(home.place, '.coffer'), { recursive: true })
  const used = await home.json('vault status', elsewhere)
  t.equal(used.vault, vault, 'the demo vault is used if there is no other vault')
  const told = 'This is the demo vault in .coffer-demo. Create yours: coffer init\n'
  t.equal((await home.run('token list', elsewhere)).stderr, told, 'the demo vault is reported')
  t.equal((await home.run('token list --quiet', elsewhere)).stderr, '')
  t.equal((await home.run('token list --vault .coffer-demo', elsewhere)).stderr, '')
})

testVault('a command that runs inside a vault says how to name it', async (t, home) => {
  await home.json('vault copy --to other')
  rmSync(join(home.place, '.coffer'), { recursive: true })
  const vault = join(home.place, 'other')
  for (const cwd of [vault, join(vault, 'segments')]) {
    mkdirSync(cwd, { recursive: true })
    const told = await home.run('token list', { cwd })
    t.match(told, { code: 6, stderr: `This directory is in a vault. Name it: --vault ${vault}\n` })
  }
})

testVault('short flags and common synonyms are accepted', async (t, home) => {
  const print = async (line: string) => (await home.run(line)).stdout
  for (const [words, same] of [
    ['token get -h', 'token get --help'],
    ['token help get', 'token get --help'],
    ['help token get', 'token get --help'],
    ['token help', 'token -h'],
    ['-V', '--version'],
    ['version', '--version'],
  ] as const)
    t.equal(await print(words), await print(same), words)
  t.match(await print('profile help set'), 'Usage: coffer profile set')
  await home.createToken({ id: 'made', data: { a: [1] }, mask: '{{ data }}' })
  for (const [field, value] of [
    ['id', 'made\n'],
    ['data.a', '[1]\n'],
    ['expires_at', 'null\n'],
  ] as const)
    t.equal(await print(`token get made -o value --fields ${field}`), value)
  const two = await home.run('token list --fields id,type -o value')
  t.match(two, { code: 2, stderr: 'error: --output value prints one field: add --fields NAME.\n' })
})

const CARD = '4242424242424242'
const UUID = '1ec69a3f-0f4c-4b0e-8a0f-3f1f3a4dba11'
const ROWS = [
  { type: 'card', data: { number: '378282246310005' } },
  { type: 'bank', data: { routing_number: '021000021', account_number: '1234567890' } },
  { type: 'social_security_number', data: '078-05-1120' },
  { id: 'ada', data: { name: 'Ada', n: 1 }, mask: { n: '{{ data.n }}', name: '{{ data.name }}' } },
  { id: 'none', type: 'token', data: 'secret', containers: ['/pii/low/'] },
  { id: 'card-1', type: 'card', data: { number: CARD } },
]

testVault('a table shows the useful digits at every width', async (t, home) => {
  for (const row of ROWS) await home.createToken(row)
  for (const columns of [60, 80, 100]) {
    const { stdout } = await home.run('token list', { columns })
    for (const line of stdout.split('\n')) t.ok(measureWidth(line) <= columns, line)
    const shown = ['visa •••• 4242', 'amex •••• 0005', '021000021 •••• 7890', 'XXX-XX-1120', '(no mask)']
    for (const text of [...shown, 'Ada', '/pii/low/']) t.match(stdout, text, `${columns} columns`)
    t.notMatch(stdout, '/pci/high/', 'the default containers of a type are not shown')
    t.match(stdout, /^card-1 +card +visa •••• 4242 .*\d s ago$/m)
  }
  t.match((await home.run('token list --reveal', { columns: 80 })).stdout, `visa ${CARD}`)
  t.match((await home.run('token search type:bank', { columns: 80 })).stdout, '021000021 •••• 7890')
  const page = await home.run('token list --after --size 2', { columns: 80 })
  t.match(page.stderr, /^2 items · more: --all, or --after\s+\S/)
  const permissions: Permission[] = ['token:read', 'token:search']
  for (const rights of [{ permissions }, { rules: [ruleOf('mask', { permissions })] }]) {
    const { key } = await home.createApp(rights)
    const env = { COFFER_API_KEY: key }
    for (const words of ['token list', 'token list --wide', 'token list --after', 'token search type:bank'])
      t.match(
        await home.run(words, { columns: 80, env }),
        { code: 0, stdout: /XXX|••••/ },
        `${words}, by a key`,
      )
  }
  const wide = await home.run('token list --wide', { columns: 200 })
  t.match(wide.stdout, /^[0-9a-f]{8}-[0-9a-f-]{27} +card .*20\d\d-\d\d-\d\dT[\d:]{8}Z$/m)
  t.match(wide.stdout, '"number":"XXXXXXXXXXXX4242"')
})

t.test('an age has its longest unit, and an old or future time is a date', async (t) => {
  const now = Date.parse('2030-03-01T00:00:00Z')
  for (const [date, age] of [
    ['2030-02-28T23:59:59.500+00:00', '0 s ago'],
    ['2030-02-28T23:59:01.000+00:00', '59 s ago'],
    ['2030-02-28T23:00:30.000+00:00', '59 min ago'],
    ['2030-02-28T01:00:00.000+00:00', '23 h ago'],
    ['2030-01-01T00:00:00.000+00:00', '59 d ago'],
    ['2029-01-01T00:00:00.000+00:00', '2029-01-01'],
    ['2031-01-01T00:00:00.000+00:00', '2031-01-01'],
  ] as const)
    t.equal(formatAge(date, now), age)
  const redacted = { id: 'x', type: 'card', mask: {}, containers: ['/pci/high/'], created_at: '2029-01-01' }
  t.match(summarizeTokens([redacted], now).rows, [{ shows: '(redacted)', containers: /^$/ }])
})

testVault('a table of records that can expire shows when, if one of them does', async (t, home) => {
  const now = Date.now()
  const table = async (line: string, more = {}) =>
    (await home.run(line, { columns: 120, clock: () => now, ...more })).stdout
  await home.createToken({ id: 'stays' })
  await home.createApp({ name: 'stays', permissions: ['token:read'] })
  const lists = ['token list', 'token list --wide', 'app list']
  for (const line of lists) t.notMatch(await table(line), 'expires', line)
  const at = formatDate(now + 7_260_000)
  await home.createToken({ id: 'ends', expires_at: at })
  await home.createApp({ name: 'ends', permissions: ['token:read'], expires_at: at })
  t.match(await table('token list'), /^ends +token .* in 2 h$/m)
  t.match(await table('token list'), /^stays +token +\(no mask\) +\S+$/m)
  t.match(await table('token list --wide'), `${at.slice(0, 19)}Z`)
  t.match(await table('app list'), / ends +private .* in 2 h$/m)
  t.match((await home.run('token list -o csv')).stdout, /^"id",.*"expires_at"$/m)
  t.match(await table('token list', { columns: 40 }), /^ends .* in 2 h$/m, 'also on a narrow terminal')
})

t.test('random ids are shortened as far as they differ, and chosen ids are not', async (t) => {
  const near = UUID.replace('0f4c', '0f4d')
  const short = ['1ec69a3f-0f4c', '1ec69a3f-0f4d', 'customer-42', '2ec69a3f']
  t.same(shortenIds([UUID, near, 'customer-42', UUID.replace('1e', '2e')]), short)
})

testVault('the prefix of an id can replace the id of a token', async (t, home) => {
  const short = UUID.slice(0, 8)
  for (const id of [UUID, 'card-1']) await home.createToken({ id })
  await home.json(`token link card-1 ${short}`)
  for (const begin of [short.toUpperCase(), UUID.slice(0, 15), UUID])
    t.equal((await home.json(`token get ${begin}`)).id, UUID, begin)
  for (const line of [`list --id ${short}`, `search id:${short}*`, 'children card-1'])
    t.equal((await home.json(`token ${line}`)).data[0].id, UUID, line)
  t.equal((await home.json(`token search id:${short.slice(0, 7)}*`)).data.length, 0)
  t.ok((await home.json(`log list --entity-id ${short}`)).data.length > 1)
  const reader = await home.createApp({ name: 'reader', permissions: ['token:read'] })
  const asReader = { env: { COFFER_API_KEY: reader.key } }
  const countRecords = async () => (await home.json(`log list ${UUID}`)).pagination.total_items
  const before = await countRecords()
  t.match(await home.run(`token get ${short}`, asReader), { code: 0 })
  t.equal(await countRecords(), before + 1, 'one read makes one log record')
  const app = await home.createApp({ name: 'front', permissions: ['token:read', 'token:search'] })
  const [key] = await home.json('app key list front')
  t.equal((await home.json(`app key get front ${key.id.slice(0, 8)}`)).id, key.id)
  const env = { COFFER_API_KEY: app.key }
  t.equal((await home.json(`token get ${short}`, { env })).id, UUID, 'also for an application')
  await home.createToken({ id: UUID.replace('0f4c', '0f4d') })
  const twice = await home.run(`token get ${short}`)
  t.match(twice, { code: 2, stderr: /stands for 2 of: coffer token list\. Give an id/ })
  await home.createToken({ id: short })
  t.equal((await home.json(`token get ${short}`)).id, short, 'a complete id is preferred')
  t.equal((await home.run(`token delete ${UUID.slice(0, 13)} --yes`)).code, 0)
  t.equal((await home.run(`token get ${UUID}`)).code, 3)
})

testVault('data is marked as masked or plaintext, for applications too', async (t, home) => {
  await home.createToken({ id: 'card-1', type: 'card', data: { number: CARD } })
  const get = (more = '', env = {}) =>
    home.run(`token get card-1 --fields data${more}`, { columns: 100, env })
  t.match(await get(), { stdout: 'data •: {"number":"XXXXXXXXXXXX4242"}\n', stderr: /^• masked\./ })
  t.match(await get(' --reveal'), { stdout: `data !: {"number":"${CARD}"}\n`, stderr: '! in plaintext\n' })
  for (const [transform, mark] of [
    ['mask', '•'],
    ['reveal', '!'],
  ] as const) {
    const { key } = await home.createApp({ rules: [ruleOf(transform)] })
    t.match((await get('', { COFFER_API_KEY: key })).stdout, `data ${mark}: `)
  }
})

testVault('words that are almost a command lead to it', async (t, home) => {
  for (const [line, meant] of [
    ['logs', 'coffer log list'],
    ['tokens', 'coffer token list'],
    ['request list', 'coffer control request list'],
    ['control requests', 'coffer control request list'],
    ['control request list', 'coffer serve --test-controls'],
    ['token list --url http://localhost:1', 'A command to a server needs an API key'],
  ] as const)
    t.match((await home.run(line)).stderr, meant, line)
})
