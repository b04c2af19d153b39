/**
 * Tests of seeds that contain every kind of record. An item of a seed can be a copied response of the API, and can set
 * its own id. The export of a tenant can be applied and exported again.
 */
import t, { type Test } from 'tap'
import { openTestVault, type Seed } from '../../src/index.js'

const ids = {
  app: 'aaaaaaaa-0000-4000-8000-000000000001',
  twin: 'aaaaaaaa-0000-4000-8000-000000000002',
  formula: 'bbbbbbbb-0000-4000-8000-000000000001',
  reactor: 'cccccccc-0000-4000-8000-000000000001',
  proxy: 'dddddddd-0000-4000-8000-000000000001',
  webhook: 'eeeeeeee-0000-4000-8000-000000000001',
}
const PROXY_KEY = '1111111111111111111111'
const code = 'module.exports = async () => ({ raw: 1 })'

const FULL = {
  name: 'shop',
  settings: { deduplicate_tokens: 'false' },
  applications: [
    { id: ids.app, name: 'backend', type: 'private', permissions: ['token:create', 'token:read'] },
    {
      id: ids.twin,
      name: 'backend',
      type: 'private',
      rules: [{ priority: 1, container: '/pci/', transform: 'mask', permissions: ['token:read'] }],
      expires_at: '2999-01-01T00:00:00.000+00:00',
    },
  ],
  formulas: [
    { id: ids.formula, name: 'f', type: 'private', code, configuration: [{ name: 'A', type: 'string' }] },
  ],
  tokens: [
    { id: 'card-1', type: 'card', data: { number: '4242424242424242' } },
    { id: 'note', type: 'token', data: { text: 'Ring 7' }, metadata: { a: 'b' } },
  ],
  associations: [{ parent_id: 'card-1', child_id: 'note' }],
  reactors: [
    {
      id: ids.reactor,
      name: 'r',
      formula: { id: ids.formula },
      application: { id: ids.twin },
      configuration: { A: 'secret' },
    },
    { name: 'own', code },
  ],
  proxies: [
    {
      id: ids.proxy,
      name: 'bank',
      key: PROXY_KEY,
      destination_url: 'https://bank.example.com/v1',
      application_id: ids.app,
      request_reactor_id: ids.reactor,
      response_transforms: [{ type: 'mask', matcher: 'regex', expression: '([0-9]+)', replacement: '*' }],
    },
  ],
  webhooks: [
    { id: ids.webhook, name: 'hook', url: 'https://hook.example.com/e', events: ['token.created'] },
    {
      name: 'off',
      url: 'https://hook.example.com/o',
      events: ['token.updated'],
      notify_email: 'ops@example.com',
      status: 'disabled',
    },
  ],
  members: [{ email: 'ada@example.com', role: 'ADMIN', first_name: 'Ada' }],
  invitations: [{ email: 'grace@example.com', role: 'READ_ONLY' }],
}

const openWith = async (t: Test, seed: object) => {
  const vault = await openTestVault({ seed: seed as Seed })
  t.teardown(() => vault.stop())
  return vault
}
type Vault = Awaited<ReturnType<typeof openWith>>
const exportOf = async (vault: Vault, reveal = true) =>
  (await vault.ask('seed export', {}, { reveal })) as Record<string, Record<string, unknown>[]>

t.test(
  'if an export is applied to an empty vault, a new export from this vault is equal to the applied export',
  async (t) => {
    const first = await exportOf(await openWith(t, FULL))
    t.match(first, {
      applications: [{ id: ids.app }, { id: ids.twin }],
      formulas: [{ id: ids.formula }],
      reactors: [{ id: ids.reactor, formula: 'f', application: { id: ids.twin } }, { name: 'own' }],
      proxies: [{ id: ids.proxy, key: PROXY_KEY, application: { id: ids.app }, request_reactor_id: 'r' }],
      webhooks: [
        { id: ids.webhook, status: 'enabled' },
        { status: 'disabled', notify_email: 'ops@example.com' },
      ],
      members: [{ email: 'ada@example.com', role: 'ADMIN', first_name: 'Ada' }],
      invitations: [{ email: 'grace@example.com' }],
    })
    t.same(await exportOf(await openWith(t, first)), first)
    const masked = JSON.stringify(await exportOf(await openWith(t, FULL), false))
    t.notMatch(masked, /secret|1111111111111111111111|4242424242424242/)
  },
)

t.test('an official formula that a reactor runs is part of the export', async (t) => {
  const official = { id: ids.formula, name: 'shared', type: 'official', code }
  const vault = await openWith(t, {
    formulas: [official, { ...official, id: undefined, name: 'unused' }],
    reactors: [{ name: 'r', formula: 'shared' }],
  })
  const seed = await exportOf(vault)
  t.match(seed.formulas, [{ id: ids.formula, type: 'official' }])
  t.equal(seed.formulas!.length, 1)
  t.same(await exportOf(await openWith(t, seed)), seed)
  await vault.ask('tenant create', { name: 'second' })
  const { name: _, ...contents } = seed
  await vault.ask('seed apply', { seed: contents }, { tenant: 'second' })
  t.match(await vault.ask('formula list', { name: 'shared' }), { data: { length: 1 } }, 'it exists once')
})

t.test('a response of the API can be an item of a seed', async (t) => {
  const vault = await openWith(t, { ...FULL, tokens: [], associations: [] })
  const dataOf = async (operation: string, input = {}) =>
    ((await vault.ask(operation as 'app list', input)) as { data: unknown[] }).data.toReversed()
  const seed = {
    applications: await dataOf('app list'),
    formulas: await dataOf('formula list'),
    tokens: [await vault.ask('token create', { type: 'token', data: 'x', metadata: { a: 'b' } })],
    reactors: await dataOf('reactor list'),
    proxies: await dataOf('proxy list'),
    webhooks: await dataOf('webhook list'),
    members: await dataOf('member list'),
    invitations: await dataOf('invite list'),
  }
  t.match(seed.proxies, [{ state: 'active', tenant_id: /./, created_by: /./, response_transform: {} }])
  Object.assign(seed.tokens[0]!, { data: 'x' })
  const copy = await openWith(t, { name: 'shop', settings: FULL.settings, ...seed })
  t.same(await exportOf(copy), await exportOf(vault))
  t.match(await copy.ask('app get', { id: ids.app }), { id: ids.app, name: 'backend' })
  t.match(await copy.ask('proxy list'), { data: [{ key: PROXY_KEY, id: ids.proxy }] })
})

t.test(
  'each unknown attribute of a list in a seed is reported once, and all are reported together',
  async (t) => {
    const vault = await openWith(t, {})
    const items = Array.from({ length: 40 }, () => ({ type: 'token', data: 1, colour: 'red', tpye: 'x' }))
    const seed = {
      tokens: [{ type: 'token', data: 1 }, ...items],
      proxies: [{ name: 'p', destination_url: 'https://example.com', timeout: 5 }],
    }
    const refused = await vault.ask('seed apply', { seed } as never).catch((thrown: object) => thrown)
    t.match(refused, {
      errors: {
        'seed.tokens[1].colour': ['is not known here, nor in 39 other items of the list'],
        'seed.tokens[1].tpye': [
          /^is not known here, nor in 39 other items of the list; did you mean type\?$/,
        ],
        'seed.proxies[0].timeout': [/^is not known here/],
      },
    })
  },
)

t.test('an id or key in a seed is refused if it is in use, malformed or unknown', async (t) => {
  const vault = await openWith(t, FULL)
  const refused: [object, string, RegExp][] = [
    [{ applications: FULL.applications.slice(0, 1) }, 'seed.applications[0]', /already/],
    [{ reactors: [{ id: ids.reactor, name: 'x', code }] }, 'seed.reactors[0]', /already/],
    [{ reactors: [{ id: 'x', name: 'x', code }] }, 'seed.reactors[0].id', /UUID/],
    [{ proxies: [{ ...FULL.proxies[0], id: ids.app }] }, 'seed.proxies[0]', /already/],
    [{ proxies: [{ ...FULL.proxies[0], key: 'short' }] }, 'seed.proxies[0].key', /22 characters/],
    [
      { reactors: [{ name: 'x', code, application: { id: ids.proxy } }] },
      'seed.reactors[0].application.id',
      /id/,
    ],
    [{ reactors: [{ name: 'x', code, application: 'backend' }] }, 'seed.reactors[0].application', /several/],
    [{ reactors: [{ name: 'x', code, application: 7 }] }, 'seed.reactors[0].application', /must be/],
    [{ members: [{ role: 'ADMIN' }] }, 'seed.members[0].email', /required/],
  ]
  const before = await exportOf(vault)
  for (const [seed, place, message] of refused) {
    const error = await vault.ask('seed apply', { seed } as never).catch((thrown: object) => thrown)
    t.match(error, { errors: { [place]: [message] } }, place)
  }
  t.same(await exportOf(vault), before)
  t.equal((await vault.ask('reactor list', { name: 'x' })).data.length, 0)
  await vault.ask('seed apply', {
    seed: { reactors: [{ name: 'x', code, application: { id: ids.app } }] },
  } as never)
  t.match(await vault.ask('reactor list', { name: 'x' }), { data: [{ application: { id: ids.app } }] })
})

t.test('only a seed can choose ids and keys of records', async (t) => {
  const vault = await openWith(t, {})
  const made = async (operation: string, input: object) =>
    (await vault.ask(operation as 'reactor create', { id: ids.app, key: PROXY_KEY, ...input } as never)) as {
      id: string
      key?: string
    }
  for (const { id, key } of [
    await made('reactor create', { name: 'r', code }),
    await made('formula create', { name: 'f', type: 'private', code }),
    await made('proxy create', { name: 'p', destination_url: 'https://example.com' }),
    await made('webhook create', FULL.webhooks[1]!),
    await made('app create', { name: 'a', type: 'private', permissions: ['token:read'] }),
  ]) {
    t.not(id, ids.app)
    t.not(key, PROXY_KEY)
  }
})

t.test('a webhook that a seed creates gets no events about the records of the seed', async (t) => {
  const seed = { tokens: FULL.tokens, webhooks: FULL.webhooks.slice(0, 1) }
  const vault = await openWith(t, seed)
  const of = async () =>
    (await vault.ask('webhook deliveries', { id: ids.webhook } as never)) as { data: unknown[] }
  t.equal((await of()).data.length, 0)
  await vault.ask('token create', { type: 'token', data: 'later' })
  t.match(await of(), { data: [{ type: 'token.created' }] })
})
