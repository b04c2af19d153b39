/**
 * Requests with several faults. Which is answered first (decisions 2): every pair of faults that each operation of the
 * registry can have, over HTTP. Of an input all faults are.
 */
import t from 'tap'
import { formatRequest } from '../../src/client/format-request.js'
import type { Permission } from '../../src/domain/access/permissions.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import type { Handler } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, permissionsOf } from '../support/test-vault.js'
import { FORMULA, faultyInputsOf, type Input, PROXY, serve, toRequest, WEBHOOK } from './documented.js'

/** What is answered where nothing comes before it, in the order in which faults count. */
const STATUSES = {
  key: 401,
  permission: 403,
  type: 415,
  size: 413,
  input: 400,
  missing: 404,
  container: 403,
  conflict: 409,
} as const

type Fault = keyof typeof STATUSES

const NOBODY = '00000000-0000-4000-8000-000000000000'

interface World {
  handler: Handler
  /** One that may do everything that operations on this type of application's side take, and one that may nothing. */
  keys: { all: string; none: string; public: string }
  /** What `$name` stands for in inputs. */
  ids: Record<string, string>
}

async function createWorld(isOfTokens: boolean): Promise<World> {
  const vault = await openTestVault()
  const { app, ask, askAs, createApplication } = vault
  t.teardown(() => app.close())
  const token = (id: string, container: string) =>
    ask('token create', { id, type: 'token', data: id, containers: [container] })
  for (const id of ['open', 'other', 'child']) await token(id, '/open/')
  for (const id of ['closed', 'shut']) await token(id, '/closed/')
  await ask('token link', { parent_id: 'open', child_id: 'child' })
  await ask('token link', { parent_id: 'closed', child_id: 'shut' })
  const make = async (name: string, input: Input) => ((await ask(name, input)) as { id: string }).id
  const formula = await make('formula create', FORMULA)
  const grants = { name: 'a', type: 'private', permissions: ['token:read'] }
  const full = await make('app create', grants)
  for (let count = 1; count < 20; count++) await ask('app key create', { application_id: full })
  const created = await ask('app create', grants)
  const { id: tenant_id, owner_id: user_id } = await ask('tenant get')
  const member = { id: app.createUuid(), tenant_id, role: 'ADMIN' as const, user_id, created_at: '' }
  await app.store.write(async (store) => store.insert('member', 1, member))
  const page = await createApplication('public', { permissions: permissionsOf('public') })
  const createNonce = async () => (await askAs(page.key, 'session create')).nonce
  const used = await createNonce()
  const backend = await createApplication('private', { permissions: ['token:read'] })
  await askAs(backend.key, 'session authorize', { nonce: used, permissions: ['token:read'] })
  const ids = {
    used,
    nonce: await createNonce(),
    app: created.id,
    key: created.keys[0]!.id,
    full,
    formula,
    unused: await make('formula create', FORMULA),
    reactor: await make('reactor create', { name: 'r', formula: { id: formula } }),
    proxy: await make('proxy create', PROXY),
    webhook: await make('webhook create', WEBHOOK),
    intent: await make('intent create', { type: 'token', data: 1 }),
    invite: await make('invite create', { email: 'eve@example.com' }),
    member: member.id,
    result: app.createUuid(),
  }
  const rule = { priority: 1, container: '/open/', transform: 'reveal' } as const
  const all = isOfTokens
    ? await createApplication('private', { rules: [{ ...rule, permissions: permissionsOf('private') }] })
    : await createApplication('management', { permissions: permissionsOf('management') })
  const none = isOfTokens
    ? await createApplication('management', { permissions: ['log:read'] })
    : await createApplication('private', { permissions: ['token:use'] })
  const started_by = `application/${all.id}`
  const ended = { result: {} }
  const result = { id: ids.result, reactor_id: ids.reactor, started_by, created_at: '', ended }
  await app.store.write(async (store) => store.insert('reactor_result', 1, result))
  return { handler: serve(vault), keys: { all: all.key, none: none.key, public: page.key }, ids }
}

const isOfTokens = ({ permissions, onlyFor }: RoutedOperation) =>
  onlyFor === 'private' || permissions.some((each) => each.startsWith('token'))

/** A request for `definition` with `faults`; `wrong` is the one input fault of them, if any. */
function requestOf(
  { keys, ids }: World,
  definition: RoutedOperation,
  faults: readonly Fault[],
  wrong: Input = {},
): Request {
  const { good, container, conflict } = faultyInputsOf(definition)
  const laid = [
    good,
    faults.includes('conflict') && conflict,
    faults.includes('container') && container,
    faults.includes('missing') && missingOf(definition),
    faults.includes('input') && wrong,
  ]
  const input = JSON.stringify(Object.assign({}, ...laid))
  const filled = JSON.parse(input.replaceAll(/\$([a-z]+)/g, (_, name) => ids[name]!)) as Input
  const held = definition.onlyFor === 'public' ? keys.public : keys.all
  return toRequest(definition, filled, {
    key: faults.includes('key') ? undefined : faults.includes('permission') ? keys.none : held,
    type: faults.includes('type') ? 'text/plain' : undefined,
    filler: faults.includes('size') ? ' '.repeat(20_000) : '',
  })
}

function missingOf(definition: RoutedOperation): Input | undefined {
  const last = definition.endpoint.parameters.at(-1)
  return faultyInputsOf(definition).missing ?? (last === undefined ? undefined : { [last]: NOBODY })
}

/** The faults that the operation can have, in their order. */
function faultsOf(definition: RoutedOperation): Fault[] {
  const { good, ...faulty } = faultyInputsOf(definition)
  const { body } = formatRequest(definition, good)
  return (Object.keys(STATUSES) as Fault[]).filter((fault) => {
    if (fault === 'permission') return definition.permissions.length > 0 || definition.onlyFor !== undefined
    if (fault === 'type' || fault === 'size') return body !== undefined
    if (fault === 'missing') return missingOf(definition) !== undefined
    return fault === 'key' || fault in faulty
  })
}

t.test('of two faults the earlier one is answered, whatever the operation', async (t) => {
  const worlds = { tokens: await createWorld(true), rest: await createWorld(false) }
  let pairs = 0
  for (const definition of registry.routed) {
    const world = isOfTokens(definition) ? worlds.tokens : worlds.rest
    const faults = faultsOf(definition)
    for (const [at, first] of faults.entries()) {
      for (const second of [undefined, ...faults.slice(at + 1)]) {
        const both = second === undefined ? [first] : [first, second]
        const wrongs = both.includes('input') ? faultyInputsOf(definition).input! : [{}]
        for (const wrong of wrongs) {
          const { status } = await world.handler(requestOf(world, definition, both, wrong))
          if (status !== STATUSES[first])
            t.fail(`${definition.name}: ${both.join(' and ')} ${JSON.stringify(wrong)} is ${status}`)
          pairs++
        }
      }
    }
  }
  t.ok(pairs > 700, `${pairs} requests`)
  for (const definition of registry.routed.filter(({ destroys }) => destroys === undefined)) {
    if (definition.name === 'app whoami') continue
    const world = isOfTokens(definition) ? worlds.tokens : worlds.rest
    const { status } = await world.handler(requestOf(world, definition, []))
    t.ok(status < 300, `${definition.name} without any fault is ${status}`)
  }
})

t.test('route, method, key and permission come before a path or query that cannot be read', async (t) => {
  const world = await createWorld(true)
  const ask = async (method: string, target: string, key: string) => {
    const headers = key === '' ? {} : { 'svc-api-key': key }
    return (await world.handler(new Request(`http://localhost${target}`, { method, headers }))).status
  }
  const { all, none } = world.keys
  t.equal(await ask('GET', '/nowhere/%zz?x=%zz', ''), 404)
  t.equal(await ask('PUT', '/tokens/%zz?x=%zz', ''), 405)
  t.equal(await ask('GET', '/tokens/%zz', ''), 401)
  t.equal(await ask('GET', '/tokens?size=0&x=%zz', none), 403)
  t.equal(await ask('GET', '/tokens/%zz', none), 403)
  t.equal(await ask('GET', '/tokens/%zz', all), 400)
  t.equal(await ask('GET', '/tokens/unknown/children?metadata=x&size=0', all), 400)
})

t.test('what a patch makes of a token is judged after the containers that it has and gets', async (t) => {
  const { app, ask, askAs, createApplication } = await openTestVault()
  t.teardown(() => app.close())
  for (const id of ['open', 'closed'])
    await ask('token create', { id, type: 'card_number', data: '4242424242424242', containers: [`/${id}/`] })
  const permissions: Permission[] = ['token:update']
  const rules = [{ priority: 1, container: '/open/', transform: 'reveal' as const, permissions }]
  const { key } = await createApplication('private', { rules })
  const patch = (input: Input) => askAs(key, 'token update', { data: 'no number', ...input })
  await t.rejects(patch({ id: 'open' }), { code: 'validation' })
  await t.rejects(patch({ id: 'open', containers: ['/closed/'] }), { code: 'forbidden' })
  await t.rejects(patch({ id: 'closed' }), { code: 'forbidden' })
})

/** Operation, input, and every property that is complained of. */
const COMPLAINTS: [name: string, input: Input, paths: string][] = [
  [
    'token create',
    {
      id: 'x',
      type: 'card',
      data: { number: '1', cvc: 7, more: 1 },
      containers: ['bad', 1],
      mask: { a: '{{ x', b: ['{{ data.number | nope }}'] },
      metadata: { 'a/b': 1, '\n': 'x' },
      search_indexes: ['{{', 2],
      fingerprint_expression: '{{ other }}',
      expires_at: '2/30/2031',
      deduplicate_token: 'yes',
    },
    'id data.number data.cvc data.more containers[0] containers[1] mask.a mask.b[0] metadata.a/b metadata search_indexes[0] search_indexes[1] fingerprint_expression expires_at deduplicate_token',
  ],
  [
    'token create',
    { type: 'token', data: { a: 'x' }, mask: { a: '{{ no }}', b: '{{ data.a | to_number }}' } },
    'mask.a mask.b',
  ],
  [
    'token update',
    { id: 'unknown', data: null, containers: [7, 'bad'], mask: ['{{'], metadata: { a: 1 }, expires_at: 'x' },
    'data containers[0] containers[1] mask[0] metadata.a expires_at',
  ],
  [
    'token list',
    { size: 0, page: 'x', id: [''], types: ['a,'], metadata: {} },
    'size page id[0] types metadata',
  ],
  [
    'token tokenize',
    { payload: { a: [{ type: 'x', data: null }], b: { type: 'card', data: {}, mask: '{{' } } },
    'a[0].type a[0].data b.data.number b.mask',
  ],
  [
    'app create',
    {
      type: 'x',
      rules: [{ priority: 0, container: 'x', transform: 1, permissions: ['y', 1], more: 1 }, 'z'],
    },
    'name type rules[0].priority rules[0].container rules[0].transform rules[0].permissions[0] rules[0].permissions[1] rules[0].more rules[1]',
  ],
  [
    'formula create',
    {
      type: 'x',
      icon: 'x',
      configuration: [{ name: 'a b' }, 1],
      request_parameters: [{ name: 'a..b', type: 'string', optional: 1 }],
    },
    'name type code icon configuration[0].name configuration[0].type configuration[1] request_parameters[0].name request_parameters[0].optional',
  ],
  ['reactor react', { id: 'unknown', args: { a: '{{', b: ['{{ x | nope }}'] } }, 'args.a args.b[0]'],
]

t.test('all complaints about an input come in one answer, up to a hundred', async (t) => {
  const { app, textOf } = await openTestVault()
  t.teardown(() => app.close())
  const complaintsOf = async (name: string, input: Input) => {
    const [, errors] = JSON.parse(await textOf(() => app.owner({ reveal: true }), name, input)) as [
      string,
      object,
    ]
    return Object.keys(errors).sort()
  }
  for (const [name, input, paths] of COMPLAINTS)
    t.strictSame(await complaintsOf(name, input), paths.split(' ').sort(), name)
  const args = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`a${at}`, `{{ x${at} | nope }}`]))
  const payload = Array.from({ length: 900 }, () => ({ type: 'x', data: 1 }))
  t.equal((await complaintsOf('reactor react', { id: 'unknown', args })).length, 100)
  t.equal((await complaintsOf('token tokenize', { payload })).length, 100)
  t.equal((await complaintsOf('token detokenize', { payload: args })).length, 100)
})
