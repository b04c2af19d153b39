/** Names and prefixes of ids that are accepted in place of ids. */
import t from 'tap'
import { resolveName } from '../../../src/cli/input/names.js'
import { testVault } from '../home.js'

const A = '11111111-1111-4111-8111-111111111111'
const B = '11112222-1111-4111-8111-111111111111'
const C = 'deadbeef-1111-4111-8111-111111111111'
const D = 'deadbef0-1111-4111-8111-111111111111'
const UUID = '1ec69a3f-0f4c-4b0e-8a0f-3f1f3a4dba11'

t.test('a name stands for the id of a record if only one record has the name', async (t) => {
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
    await t.rejects(find(given), { code: 'usage', message: /matches 2 records of `coffer app list`/ }, given)
  await t.rejects(find('same'), { message: /^"same" matches 2 .*\n {2}deadbef0.*same.*\n {2}aaaaaaaa/ })
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

testVault('commands accept names of applications, formulas, reactors and members', async (t, home) => {
  const made = await home.createApp({ name: 'support', permissions: ['token:read'] })
  for (const name of ['support', made.id.slice(0, 8)])
    t.equal((await home.json(`app get ${name}`)).id, made.id)
  t.equal((await home.json('app list --id support')).data.length, 1)
  t.same((await home.json('app list --id suport')).data, [], 'a filter may name a record that does not exist')
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
  t.match(twice, { code: 2, stderr: 'matches 2 records of `coffer formula list`' })
  await home.json('invite create --email ada@example.com')
  const { link } = await home.json('invite outbox ada@example.com')
  await home.json(['invite', 'accept', link])
  t.equal((await home.json('member update ada@example.com --role READ_ONLY')).role, 'READ_ONLY')
  const staging = await home.json('tenant create staging')
  for (const name of ['Staging', staging.id.slice(0, 8)])
    t.equal((await home.json(['tenant', 'get', '--tenant', name])).id, staging.id)
  const refused = await home.run('app get support', { env: { COFFER_API_KEY: made.key } })
  t.equal(refused.code, 4, 'a caller that may not list records must give ids')
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
  t.equal(await countRecords(), before + 1, 'a read by prefix makes one log record')
  const app = await home.createApp({ name: 'front', permissions: ['token:read', 'token:search'] })
  const [key] = await home.json('app key list front')
  t.equal((await home.json(`app key get front ${key.id.slice(0, 8)}`)).id, key.id)
  const env = { COFFER_API_KEY: app.key }
  t.equal(
    (await home.json(`token get ${short}`, { env })).id,
    UUID,
    'a prefix also works for the key of an application',
  )
  await home.createToken({ id: UUID.replace('0f4c', '0f4d') })
  const twice = await home.run(`token get ${short}`)
  t.match(twice, { code: 2, stderr: /matches 2 records of `coffer token list`\. Give an id/ })
  await home.createToken({ id: short })
  t.equal(
    (await home.json(`token get ${short}`)).id,
    short,
    'if an id is complete, it is preferred to a prefix of another id',
  )
  t.equal((await home.run(`token delete ${UUID.slice(0, 13)} --yes`)).code, 0)
  t.equal((await home.run(`token get ${UUID}`)).code, 3)
})
