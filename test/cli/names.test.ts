/** Names and beginnings of ids where ids are asked for, and durations where dates are. */
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { resolveName } from '../../src/cli/input/names.js'
import { formatDate, parseDuration } from '../../src/domain/dates.js'
import { createVaultHome } from './home.js'

const A = '11111111-1111-4111-8111-111111111111'
const B = '11112222-1111-4111-8111-111111111111'
const C = 'deadbeef-1111-4111-8111-111111111111'
const D = 'deadbef0-1111-4111-8111-111111111111'

t.test('a name is the id of the one thing that has it', async (t) => {
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
  await t.rejects(find('gret'), { code: 'not_found', message: 'There is no app "gret"; did you mean greet?' })
  await t.rejects(find('dead\\u001b[3m'), { message: /^[^\u001b]*$/ })
  await t.rejects(
    resolveName('app', 'greet', () => Promise.reject(new Error('no'))),
    { message: 'no' },
  )
})

t.test('commands take names of applications, formulas, reactors, members and invitations', async (t) => {
  const home = await createVaultHome(t)
  const made = await home.createApp({ name: 'support', permissions: ['token:read'] })
  for (const name of ['support', made.id.slice(0, 8)])
    t.equal((await home.json(`app get ${name}`)).id, made.id)
  t.equal((await home.json('app list --id support')).data.length, 1)
  t.same((await home.json('app list --id suport')).data, [], 'a filter may name what there is not')
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
  t.equal(refused.code, 4, 'a caller that may not list gives ids')
})

t.test('a duration is a date from now on, or before now', async (t) => {
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
  const later = { clock: () => now + 7_200_000 }
  t.equal((await home.json('log list --start-date 1h', later)).pagination.total_items, 0)
})

t.test('--vault names a vault or the directory that it is in; a key file beside it is found', async (t) => {
  const home = await createVaultHome(t)
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
  t.equal(
    (await home.json('vault status', elsewhere)).vault,
    vault,
    'without another, the demo vault is used',
  )
  const told = 'This is the demo vault in .coffer-demo. Create yours: coffer init\n'
  t.equal((await home.run('token list', elsewhere)).stderr, told, 'and told of')
  t.equal((await home.run('token list --quiet', elsewhere)).stderr, '')
  t.equal((await home.run('token list --vault .coffer-demo', elsewhere)).stderr, '')
})

t.test('who stands in a vault is told how to name it', async (t) => {
  const home = await createVaultHome(t)
  await home.json('vault copy --to other')
  rmSync(join(home.place, '.coffer'), { recursive: true })
  const vault = join(home.place, 'other')
  for (const cwd of [vault, join(vault, 'segments')]) {
    mkdirSync(cwd, { recursive: true })
    const told = await home.run('token list', { cwd })
    t.match(told, { code: 6, stderr: `This directory is in a vault. Name it: --vault ${vault}\n` })
  }
})

t.test('short flags and words that people try', async (t) => {
  const home = await createVaultHome(t)
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
