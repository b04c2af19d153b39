/** Seeds: known data, chosen keys, and the export of a tenant. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { openTestVault as openLibraryVault, type Seed, startServer } from '../../src/index.js'
import { openTestVault } from '../support/test-vault.js'

const KEY = 'key_1111111111111111111111'
const fixture = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../fixtures/seeds/${name}.json`, import.meta.url), 'utf8')) as Seed

const FULL: Seed = {
  name: 'shop',
  settings: { deduplicate_tokens: 'true' },
  applications: [{ name: 'backend', type: 'private', permissions: ['token:create', 'token:read'], key: KEY }],
  formulas: [{ name: 'f', type: 'private', code: 'module.exports = async () => ({ raw: 1 })' }],
  tokens: [
    { id: 'card-1', type: 'card', data: { number: '4242424242424242' } },
    { id: 'note', type: 'token', data: { text: 'Ring 7' } },
  ],
  associations: [{ parent_id: 'card-1', child_id: 'note' }],
  reactors: [
    { name: 'r', formula: 'f', application: 'backend' },
    { name: 'own', code: 'module.exports = async () => ({ raw: 2 })' },
  ],
  proxies: [
    {
      name: 'bank',
      destination_url: 'https://bank.example.com/v1',
      application: 'backend',
      configuration: { SECRET: 'abc' },
      request_reactor_id: 'own',
      response_transforms: [{ type: 'mask', matcher: 'regex', expression: '([0-9]+)', replacement: '*' }],
    },
  ],
  members: [{ email: 'ada@example.com', first_name: 'Ada' }],
  invitations: [{ email: 'grace@example.com', role: 'READ_ONLY' }],
  tenants: [{ name: 'second', tokens: [{ id: 'card-1', type: 'token', data: 1 }] }],
}

t.test(
  'applying a seed creates and logs all its records as if each record were created separately',
  async (t) => {
    const vault = await openLibraryVault({ seed: FULL })
    t.teardown(() => vault.stop())
    t.same(vault.keys, { backend: KEY })
    t.equal(vault.tenant.name, 'shop')
    t.match(await vault.ask('token children', { parent_id: 'card-1' }), { data: [{ id: 'note' }] })
    const [reactor] = (await vault.ask('reactor list', { name: 'r' })).data
    t.match(reactor, { formula: { name: 'f' }, application: { name: 'backend' } })
    const { data: members } = await vault.ask('member list')
    t.match(members, [{ user: { email: 'ada@example.com' } }, { role: 'OWNER' }])
    t.match(await vault.ask('invite list'), { data: [{ role: 'READ_ONLY' }] })
    t.match(
      await vault.ask('invite outbox'),
      { pagination: { total_items: 1 } },
      'the mail of the invitation is in the outbox',
    )
    const [proxy] = (await vault.ask('proxy list')).data
    t.match(proxy, { name: 'bank', request_reactor_id: /./, response_transform: { type: 'mask' } })
    const messages = async (tenant: string) =>
      (await vault.ask('log list', { size: 100 }, { tenant })).data.map(({ message }) => message)
    const own = 'Seed, Token, Reactor, Proxy, Application, Member'.split(', ')
    for (const thing of own)
      t.match((await messages('shop')).join(), new RegExp(`${thing} (applied|created)`))
    t.same(await messages('second'), ['Token created', 'Tenant created'])
    for (const tenant of ['shop', 'second'])
      t.match(await vault.ask('log verify', {}, { tenant }), { is_whole: true })
    const headers = { 'svc-api-key': KEY }
    t.equal((await vault.fetch('/tokens/card-1', { headers })).status, 200)
  },
)

t.test(
  'all errors of a seed are reported with their places, and nothing of the seed is written',
  async (t) => {
    const { ask } = await openTestVault()
    const seed = {
      applications: [
        { name: 'a', type: 'private', permissions: ['log:read'], key: 'nope' },
        { name: 'a', type: 'private', permissions: ['token:read'], key: KEY },
      ],
      tokens: [{ type: 'card', data: { number: '4242424242424243' } }, { typ: 'token' }],
      associations: [{ parent_id: 'x', child_id: 'x' }],
      tenants: [
        {
          name: ' ',
          members: [{ email: 'nobody' }],
          applications: [{ name: 'b', type: 'private', permissions: ['token:read'], key: KEY }],
        },
      ],
      tokns: [],
    }
    const error = await ask('seed apply', { seed }).catch((thrown: { errors: object }) => thrown)
    t.same(Object.keys((error as { errors: object }).errors).sort(), [
      'seed.applications[0].key',
      'seed.applications[0].permissions[0]',
      'seed.applications[1].name',
      'seed.associations[0].child_id',
      'seed.tenants[0].members[0].email',
      'seed.tenants[0].name',
      'seed.tokens[0].data.number',
      'seed.tokens[1].data',
      'seed.tokens[1].typ',
      'seed.tokens[1].type',
      'seed.tokns',
    ])
    const form = 'must be key_ and 22 characters of base58 (digits and letters without 0, O, I and l)'
    t.match(error, { errors: { 'seed.applications[0].key': [form] } })
    const { tokens = [], formulas, associations } = FULL
    const late: [object, string][] = [
      [{ tokens: [...tokens, ...tokens.slice(1)] }, 'seed.tokens[2]'],
      [{ tokens, reactors: [{ name: 'r', formula: 'unknown' }] }, 'seed.reactors[0].formula'],
      [
        { formulas, reactors: [{ name: 'r', formula: 'f', application: 'x' }] },
        'seed.reactors[0].application',
      ],
      [{ tokens: tokens.slice(1), associations }, 'seed.associations[0]'],
      [{ tokens, tenants: [{ name: 'twin' }, { name: 'twin' }] }, 'seed.tenants[1]'],
    ]
    for (const [part, place] of late) {
      const refused = await ask('seed apply', { seed: part }).catch((thrown: object) => thrown)
      t.match(refused, { errors: { [place]: [/./] } }, place)
      t.match(
        await ask('token list'),
        { pagination: { total_items: 0 } },
        'a seed with an error creates nothing',
      )
      t.match(await ask('tenant list'), { length: 1 })
    }
  },
)

t.test(
  'without --test-keys, keys that a seed chooses are accepted only by a vault in memory, and only on this machine',
  async (t) => {
    await t.rejects(startServer({ seed: FULL, addresses: ['0.0.0.0'] }), {
      code: 'usage',
      message: /loopback/,
    })
    const open = await startServer({ addresses: ['0.0.0.0'] })
    const message = /seed\.applications\[0\]\.key: .*only in a vault in memory/
    await t.rejects(open.ask('seed apply', { seed: FULL }), { message })
    await open.stop()
    const near = await startServer({ addresses: ['127.0.0.1'], seed: FULL })
    const { applications } = FULL
    await t.rejects(near.ask('seed apply', { seed: { applications } }), { code: 'conflict' }, 'once')
    await near.stop()
  },
)

t.test('the three seeds of the package contain no key, and each is equal to its export', async (t) => {
  for (const name of ['empty', 'payments', 'people']) {
    t.notMatch(JSON.stringify(fixture(name)), /key_/)
    const vault = await openLibraryVault({ seed: fixture(name) })
    t.equal(vault.tenant.name, name)
    const again = (await vault.ask('seed export', { synthesize: true })) as Seed
    const copy = await openLibraryVault({ seed: { ...again, name: 'copy' } })
    t.same(Object.keys(copy.keys).sort(), Object.keys(vault.keys).sort())
    const count = async (from: typeof vault) => (await from.ask('token list')).pagination.total_items
    t.equal(await count(copy), await count(vault))
    await copy.stop()
    await vault.stop()
  }
})

t.test('an export has masked, synthetic or plain data, and never keys of applications', async (t) => {
  const vault = await openLibraryVault({ seed: FULL })
  t.teardown(() => vault.stop())
  const exported = async (input: object, reveal: boolean) => {
    const seed = (await vault.ask('seed export', { ...input }, { reveal })) as Seed
    t.notMatch(JSON.stringify(seed), /key_|secrets|hash/)
    return seed
  }
  const masked = await exported({}, false)
  t.match(masked.tokens, [{ data: { number: 'XXXXXXXXXXXX4242' } }, { id: 'note' }])
  t.notMatch(JSON.stringify(masked), /Ring/)
  t.notOk('data' in masked.tokens![1]!)
  const made = JSON.stringify(await exported({ synthesize: true }, false))
  t.notMatch(made, /4242424242424242|Ring 7/)
  t.equal(
    JSON.stringify(await exported({ synthesize: true }, true)),
    made,
    'a second export is equal to the first',
  )
  const { tenants: _, applications, ...rest } = FULL
  const clear = await exported({}, true)
  t.match(clear, rest)
  t.match(clear.applications, [{ name: applications![0]!.name }])
})

t.test('equal values of the option --seed generate equal tokens', async (t) => {
  const vault = await openLibraryVault()
  t.teardown(() => vault.stop())
  const dataOf = async (seed: number) => {
    const tokens = await vault.ask('token generate', { type: 'card', count: 40, seed })
    const read = ({ id }: { id: string }) => vault.ask('token get', { id }, { reveal: true })
    return (await Promise.all(tokens.map(read))).map(({ data }) => data)
  }
  t.same(await dataOf(3), await dataOf(3))
  t.notSame(await dataOf(3), await dataOf(4))
  await t.rejects(vault.ask('token generate', { count: 10_001 }), { code: 'validation' })
  await t.rejects(vault.ask('token generate', {}, { key: vault.keys.management! }), { code: 'forbidden' })
})
