/**
 * Which fault is answered first where a request has several (decisions 2), and that all complaints about an input come
 * in one answer: every operation over HTTP, with every pair of faults that it can have.
 */
import t from 'tap'
import { spellRequest } from '../../src/client/spell-request.js'
import { authenticate } from '../../src/framework/authenticate.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import { createHandler, type Handler } from '../../src/http/handle.js'
import { completeService } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, permissionsOf, requireOperation } from './vault.js'

type Input = Record<string, unknown>

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

/** How a request for an operation is made, and spoiled: inputs that are laid over the good one. */
interface Spoiling {
  good: Input
  /** Each wrong in itself, whatever is stored. */
  input?: Input[]
  missing?: Input
  container?: Input
  conflict?: Input
}

const NOBODY = '00000000-0000-4000-8000-000000000000'
const PAGE = [{ size: 0 }, { page: 'x' }]
const CREATE = { type: 'token', data: 'new', containers: ['/open/'] }
const WRONG_TOKENS = [
  { type: 'cards' },
  { type: 'card', data: { number: '1' } },
  { containers: ['open'] },
  { mask: '{{ data | no_such_filter }}' },
  { fingerprint_expression: '{{' },
  { search_indexes: ['{{ data.missing }}'] },
  { metadata: { a: 1 } },
  { expires_at: '1/1/2001' },
]
const WRONG_PATCHES = [
  { data: null },
  { containers: null },
  { containers: ['open'] },
  { mask: { a: ['{{ data | no_such_filter }}'] } },
  { fingerprint_expression: '{{' },
  { search_indexes: ['{% if %}'] },
  { metadata: { '': 'x' } },
  { expires_at: '1/1/2001' },
  { deduplicate_token: 'yes' },
  { encrypted: 'x' },
  { token_intent_id: 'x' },
]
const RULE = { priority: 1, container: '/', transform: 'mask', permissions: ['token:read'] }
const CONDITION = { attribute: 'id', operator: 'equals', value: 'open' }
const WRONG_GRANTS = [
  { name: '' },
  { permissions: ['token:nothing'] },
  { permissions: [] },
  { rules: [{ ...RULE, container: 'x' }] },
  { rules: [{ ...RULE, conditions: [] }] },
  { rules: [RULE, RULE] },
  { expires_at: '1/1/2001' },
]
const PROXY = { name: 'p', destination_url: 'https://api.example.com' }
const WRONG_PROXIES = [
  { name: '' },
  { destination_url: 'x' },
  { configuration: { a: [] } },
  { request_transforms: [{ type: 'mask' }] },
  { response_transform: 1 },
  { response_reactor_id: 'x' },
]
const FORMULA = { name: 'f', type: 'private', code: 'module.exports = async () => ({})' }
const WRONG_FORMULAS = [
  { name: '' },
  { code: '' },
  { icon: 'no image' },
  { configuration: [{ name: 'a b', type: 'string' }] },
  { request_parameters: [{ name: 'a', type: 'x' }] },
]
const WRONG_REACTORS = [
  { name: '' },
  { configuration: { KEY: {} } },
  { code: '' },
  { runtime: { timeout: 0 } },
  { image: 'node22' },
]

const closed = { id: 'closed' }
const unknown = { id: 'unknown' }

const SPOILINGS: Record<string, Spoiling> = {
  'token create': {
    good: CREATE,
    input: WRONG_TOKENS,
    container: { containers: ['/closed/'] },
    conflict: { id: 'open' },
  },
  'token list': { good: {}, input: [...PAGE, { type: [''] }, { types: [','] }] },
  'token get': { good: { id: 'open' }, missing: unknown, container: closed },
  'token update': {
    good: { id: 'open', metadata: { a: 'b' } },
    input: WRONG_PATCHES,
    missing: unknown,
    container: closed,
  },
  'token delete': { good: { id: 'open' }, missing: unknown, container: closed },
  'token search': { good: {}, input: [...PAGE, { query: 'data:' }, { query: 'created_at:x' }] },
  'token list-after': {
    good: {},
    input: [{ size: 0 }, { size: 101 }, { type: 'card', fingerprint: 'x' }],
    container: { container: '/closed/' },
  },
  'token search-after': {
    good: {},
    input: [{ size: 0 }, { query: 'type:a OR type:b' }],
    container: { query: 'container:/closed/' },
  },
  'token tokenize': {
    good: { payload: CREATE },
    input: WRONG_TOKENS.map((wrong) => ({ payload: [CREATE, { ...CREATE, ...wrong }] })),
    container: { payload: { ...CREATE, containers: ['/closed/'] } },
    conflict: { payload: { ...CREATE, id: 'open' } },
  },
  'token detokenize': {
    good: { payload: { a: '{{ open }}' } },
    input: [
      { payload: ['{{ closed | no_such_filter }}'] },
      { payload: manyTokens() },
      { payload: '{{ unknown }}' },
      { payload: '{{ encrypted: closed }}' },
    ],
    container: { payload: ['{{ open }}', '{{ closed }}'] },
  },
  'token link': {
    good: { parent_id: 'open', child_id: 'other' },
    missing: { child_id: 'unknown' },
    container: { parent_id: 'closed' },
    conflict: { child_id: 'child' },
  },
  'token unlink': {
    good: { parent_id: 'open', child_id: 'child' },
    missing: { child_id: 'unknown' },
    container: { parent_id: 'closed', child_id: 'shut' },
  },
  'token create-child': {
    good: { ...CREATE, parent_id: 'open' },
    input: WRONG_TOKENS,
    missing: { parent_id: 'unknown' },
    container: { containers: ['/closed/'] },
    conflict: { id: 'other' },
  },
  'token children': {
    good: { parent_id: 'open' },
    input: PAGE,
    missing: { parent_id: 'unknown' },
    container: { parent_id: 'closed' },
  },
  'app create': {
    good: { name: 'a', type: 'private', permissions: ['token:read'] },
    input: [...WRONG_GRANTS, { permissions: ['log:read'] }, { create_key: 'no' }],
  },
  'app list': { good: {}, input: [...PAGE, { id: [''] }] },
  'app get': { good: { id: '$app' }, missing: { id: NOBODY } },
  'app update': {
    good: { id: '$app', name: 'a', permissions: ['token:read'] },
    input: WRONG_GRANTS,
    missing: { id: NOBODY },
  },
  'app delete': { good: { id: '$app' }, missing: { id: NOBODY } },
  'app regenerate': { good: { id: '$app' }, missing: { id: NOBODY } },
  'app key create': {
    good: { application_id: '$app' },
    missing: { application_id: NOBODY },
    conflict: { application_id: '$full' },
  },
  'app key list': {
    good: { application_id: '$app' },
    input: [{ id: [''] }],
    missing: { application_id: NOBODY },
  },
  'app key get': { good: { application_id: '$app', id: '$key' }, missing: { id: NOBODY } },
  'app key delete': { good: { application_id: '$app', id: '$key' }, missing: { id: NOBODY } },
  'session create': { good: {} },
  'session authorize': {
    good: { nonce: '$nonce', permissions: ['token:create'] },
    input: [
      { permissions: [] },
      { permissions: ['log:read'] },
      { rules: [RULE, { ...RULE, priority: 2, conditions: [CONDITION] }] },
      { rules: [{ ...RULE, container: null }] },
      { rules: [{ ...RULE, container: null, conditions: [] }] },
      { rules: [{ ...RULE, container: null, conditions: [{ ...CONDITION, attribute: 'type' }] }] },
      { expires_at: '1/1/2031' },
      { expires_at: '2030-01-15' },
      { expires_at: '2031-01-15' },
    ],
    missing: { nonce: '1111111111111111111111' },
    conflict: { nonce: '$used' },
  },
  'app whoami': { good: {} },
  'app permissions': { good: {}, input: [{ application_type: '' }] },
  'formula create': { good: FORMULA, input: WRONG_FORMULAS, container: { type: 'official' } },
  'formula list': { good: {}, input: [...PAGE, { name: '' }] },
  'formula get': { good: { id: '$formula' }, missing: { id: NOBODY } },
  'formula update': {
    good: { ...FORMULA, id: '$formula' },
    input: WRONG_FORMULAS,
    missing: { id: NOBODY },
    container: { type: 'official' },
  },
  'formula delete': { good: { id: '$unused' }, missing: { id: NOBODY } },
  'reactor create': { good: { name: 'r', formula: { id: '$formula' } }, input: WRONG_REACTORS },
  'reactor list': { good: {}, input: [...PAGE, { name: '' }] },
  'reactor get': { good: { id: '$reactor' }, missing: { id: NOBODY } },
  'reactor update': { good: { id: '$reactor', name: 'r' }, input: WRONG_REACTORS, missing: { id: NOBODY } },
  'reactor patch': { good: { id: '$reactor', name: 'r' }, input: WRONG_REACTORS, missing: { id: NOBODY } },
  'reactor delete': { good: { id: '$reactor' }, missing: { id: NOBODY } },
  'reactor react': {
    good: { id: '$reactor', args: { a: 'x' } },
    input: [
      { args: 1 },
      { args: { a: '{{ closed | no_such_filter }}' } },
      { args: manyTokens() },
      { callback_url: '' },
    ],
    missing: { id: NOBODY },
    container: { args: { a: '{{ closed }}' } },
  },
  'reactor react-async': {
    good: { id: '$reactor', args: { a: 'x' } },
    input: [
      { args: 1 },
      { args: { a: '{{ closed | no_such_filter }}' } },
      { args: manyTokens() },
      { callback_url: '' },
    ],
    missing: { id: NOBODY },
    container: { args: { a: '{{ closed }}' } },
  },
  'reactor result': { good: { id: '$reactor', request_id: '$result' }, missing: { request_id: NOBODY } },
  'proxy create': { good: PROXY, input: WRONG_PROXIES },
  'proxy list': { good: {}, input: [...PAGE, { name: '' }] },
  'proxy get': { good: { id: '$proxy' }, missing: { id: NOBODY } },
  'proxy update': { good: { id: '$proxy', ...PROXY }, input: WRONG_PROXIES, missing: { id: NOBODY } },
  'proxy patch': { good: { id: '$proxy' }, input: WRONG_PROXIES, missing: { id: NOBODY } },
  'proxy delete': { good: { id: '$proxy' }, missing: { id: NOBODY } },
  'log list': { good: {}, input: [...PAGE, { start_date: 'soon' }, { entity_id: '' }] },
  'log entity-types': { good: {} },
  'tenant get': { good: {} },
  'tenant update': {
    good: { name: 't' },
    input: [{ name: ' ' }, { name: 'a\nb' }, { settings: { x: '1' } }],
  },
  'tenant delete': { good: {} },
  'tenant usage': { good: {} },
  'member list': { good: {}, input: [...PAGE, { user_id: [''] }] },
  'member update': {
    good: { id: '$member', role: 'READ_ONLY' },
    input: [{ role: 'OWNER' }, { role: 'USER' }, { role: null }],
    missing: { id: NOBODY },
  },
  'member roles': { good: {} },
  'member delete': { good: { id: '$member' }, missing: { id: NOBODY } },
  'invite create': {
    good: { email: 'ada@example.com' },
    input: [{ email: 'ada' }, { email: 1 }, { role: 'OWNER' }],
  },
  'invite list': { good: {}, input: [...PAGE, { status: 'USED' }, { status: '' }] },
  'invite get': { good: { id: '$invitation' }, missing: { id: NOBODY } },
  'invite resend': { good: { id: '$invitation' }, missing: { id: NOBODY } },
  'invite delete': { good: { id: '$invitation' }, missing: { id: NOBODY } },
}

function manyTokens(): Input {
  return Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`a${at}`, `{{ token-${at} }}`]))
}

interface World {
  handler: Handler
  /** One that may do everything that operations on this type of application's side take, and one that may nothing. */
  keys: { all: string; none: string; public: string }
  /** What `$name` stands for in inputs. */
  ids: Record<string, string>
}

async function createWorld(isOfTokens: boolean): Promise<World> {
  const { app, ask, askAs, createApplication } = await openTestVault()
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
  const created = (await ask('app create', grants)) as { id: string; keys: [{ id: string }] }
  const { id: tenant_id, owner_id: user_id } = (await ask('tenant get')) as { id: string; owner_id: string }
  const member = { id: app.createUuid(), tenant_id, role: 'ADMIN' as const, user_id, created_at: '' }
  await app.store.write(async (store) => store.insert('member', 1, member))
  const page = await createApplication('public', { permissions: permissionsOf('public') })
  const createNonce = async () => ((await askAs(page.key, 'session create')) as { nonce: string }).nonce
  const used = await createNonce()
  const backend = await createApplication('private', { permissions: ['token:read'] })
  await askAs(backend.key, 'session authorize', { nonce: used, permissions: ['token:read'] })
  const ids = {
    used,
    nonce: await createNonce(),
    app: created.id,
    key: created.keys[0].id,
    full,
    formula,
    unused: await make('formula create', FORMULA),
    reactor: await make('reactor create', { name: 'r', formula: { id: formula } }),
    proxy: await make('proxy create', PROXY),
    invitation: await make('invite create', { email: 'eve@example.com' }),
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
  const result = {
    id: ids.result,
    reactor_id: ids.reactor,
    started_by,
    created_at: '',
    ended: { result: {} },
  }
  await app.store.write(async (store) => store.insert('reactor_result', 1, result))
  const service = { host: app, registry, authenticate, version: '0.0.0', bodyLimitBytes: 16_384 }
  return {
    handler: createHandler(completeService(service)),
    keys: { all: all.key, none: none.key, public: page.key },
    ids,
  }
}

const isOfTokens = ({ permissions, onlyFor }: RoutedOperation) =>
  onlyFor === 'private' || permissions.some((each) => each.startsWith('token:'))

/** A request for `definition` with `faults`; `wrong` is the one input fault of them, if any. */
function requestOf(
  { keys, ids }: World,
  definition: RoutedOperation,
  faults: readonly Fault[],
  wrong: Input = {},
): Request {
  const { good, missing, container, conflict } = SPOILINGS[definition.name]!
  const laid = [
    good,
    faults.includes('conflict') && conflict,
    faults.includes('container') && container,
    faults.includes('missing') && missing,
    faults.includes('input') && wrong,
  ]
  const spoiled = Object.assign({}, ...laid) as Input
  const input = JSON.parse(
    JSON.stringify(spoiled).replaceAll(/\$([a-z]+)/g, (_, name) => ids[name]!),
  ) as Input
  const { target, body } = spellRequest(definition, input)
  const type = faults.includes('type') ? 'text/plain' : (definition.contentType ?? 'application/json')
  const held = definition.onlyFor === 'public' ? keys.public : keys.all
  const key = faults.includes('permission') ? keys.none : held
  return new Request(`http://localhost${target}`, {
    method: definition.endpoint.method,
    headers: { 'content-type': type, ...(faults.includes('key') ? {} : { 'svc-api-key': key }) },
    ...(body === undefined ? {} : { body: faults.includes('size') ? body + ' '.repeat(20_000) : body }),
  })
}

/** The faults that the operation can have, in their order. */
function faultsOf(definition: RoutedOperation): Fault[] {
  const { good, ...spoilings } = SPOILINGS[definition.name]!
  const { body } = spellRequest(definition, good)
  return (Object.keys(STATUSES) as Fault[]).filter((fault) => {
    if (fault === 'permission') return definition.permissions.length > 0 || definition.onlyFor !== undefined
    if (fault === 'type' || fault === 'size') return body !== undefined
    return fault === 'key' || fault in spoilings
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
        const wrongs = both.includes('input') ? SPOILINGS[definition.name]!.input! : [{}]
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
  const rule = {
    priority: 1,
    container: '/open/',
    transform: 'reveal',
    permissions: ['token:update'],
  } as const
  const { key } = await createApplication('private', {
    rules: [{ ...rule, permissions: [...rule.permissions] }],
  })
  const patch = (input: Input) => askAs(key, 'token update', { data: 'no number', ...input })
  await t.rejects(patch({ id: 'open' }), { code: 'validation' })
  await t.rejects(patch({ id: 'open', containers: ['/closed/'] }), { code: 'forbidden' })
  await t.rejects(patch({ id: 'closed' }), { code: 'forbidden' })
})

/** Operation, input, and every property that is complained of; each over whatever door. */
const COMPLAINTS: [name: string, input: Input, paths: string[]][] = [
  [
    'token create',
    {
      id: 'x',
      type: 'card',
      data: { number: '1', cvc: 7, more: 1 },
      containers: ['bad', 1],
      mask: { a: '{{ x', b: ['{{ data.number | nope }}'] },
      metadata: { a: 1, '\n': 'x' },
      search_indexes: ['{{', 2],
      fingerprint_expression: '{{ other }}',
      expires_at: '2/30/2031',
      deduplicate_token: 'yes',
    },
    [
      'id',
      'data.number',
      'data.cvc',
      'data.more',
      'containers[0]',
      'containers[1]',
      'mask.a',
      'mask.b[0]',
      'metadata.a',
      'metadata',
      'search_indexes[0]',
      'search_indexes[1]',
      'fingerprint_expression',
      'expires_at',
      'deduplicate_token',
    ],
  ],
  [
    'token create',
    { type: 'token', data: { a: 'x' }, mask: { a: '{{ no }}', b: '{{ data.a | to_number }}' } },
    ['mask.a', 'mask.b'],
  ],
  ['token create', { data: 1, mask: '{{' }, ['type', 'mask']],
  [
    'token update',
    { id: 'unknown', data: null, containers: [7, 'bad'], mask: ['{{'], metadata: { a: 1 }, expires_at: 'x' },
    ['data', 'containers[0]', 'containers[1]', 'mask[0]', 'metadata.a', 'expires_at'],
  ],
  [
    'token list',
    { size: 0, page: 'x', id: [''], types: ['a,'], metadata: {} },
    ['size', 'page', 'id[0]', 'types', 'metadata'],
  ],
  ['token search', { size: 0, query: 'created_at:x' }, ['size', 'query']],
  [
    'token create-child',
    { parent_id: 'unknown', type: 'bank', data: { routing_number: 1 }, containers: 'x' },
    ['data.routing_number', 'data.account_number', 'containers'],
  ],
  [
    'token tokenize',
    { payload: { a: [{ type: 'x', data: null }], b: { type: 'card', data: {}, mask: '{{' } } },
    ['a[0].type', 'a[0].data', 'b.data.number', 'b.mask'],
  ],
  ['token detokenize', { payload: { a: '{{', b: ['{{ x | nope }}'] } }, ['a', 'b[0]']],
  [
    'app create',
    {
      type: 'x',
      rules: [{ priority: 0, container: 'x', transform: 1, permissions: ['y', 1], more: 1 }, 'z'],
    },
    [
      'name',
      'type',
      'rules[0].priority',
      'rules[0].container',
      'rules[0].transform',
      'rules[0].permissions[0]',
      'rules[0].permissions[1]',
      'rules[0].more',
      'rules[1]',
    ],
  ],
  [
    'app update',
    { id: 'unknown', permissions: ['x'], rules: [{ container: 'x' }], expires_at: '1/1/2001' },
    [
      'name',
      'permissions[0]',
      'rules[0].priority',
      'rules[0].container',
      'rules[0].transform',
      'rules[0].permissions',
      'expires_at',
    ],
  ],
  [
    'formula create',
    {
      type: 'x',
      icon: 'x',
      configuration: [{ name: 'a b' }, 1],
      request_parameters: [{ name: 'a..b', type: 'string', optional: 1 }],
    },
    [
      'name',
      'type',
      'code',
      'icon',
      'configuration[0].name',
      'configuration[0].type',
      'configuration[1]',
      'request_parameters[0].name',
      'request_parameters[0].optional',
    ],
  ],
  [
    'reactor create',
    { formula: {}, configuration: { a: [] }, code: 1 },
    ['name', 'formula.id', 'configuration.a', 'code'],
  ],
  ['reactor update', { id: 'unknown', application: 'x', runtime: 1 }, ['name', 'application', 'runtime']],
  ['reactor react', { id: 'unknown', args: { a: '{{', b: ['{{ x | nope }}'] } }, ['args.a', 'args.b[0]']],
  ['log list', { size: 0, start_date: 'x', end_date: 'y' }, ['size', 'start_date', 'end_date']],
  ['tenant update', { name: '\t', settings: { a: 1 } }, ['name', 'settings.a']],
  ['token link', { parent_id: 'same', child_id: 'same' }, ['child_id']],
]

t.test('all complaints about an input come in one answer, nested ones included', async (t) => {
  const { app, textOf } = await openTestVault()
  t.teardown(() => app.close())
  for (const [name, input, paths] of COMPLAINTS) {
    requireOperation(name)
    const text = await textOf(() => app.owner({ reveal: true }), name, input)
    const [, errors] = JSON.parse(text) as [string, object | null]
    t.strictSame(Object.keys(errors ?? {}).sort(), [...paths].sort(), `${name}: ${text}`)
  }
})

t.test('of many faulty parts a bounded number is complained of', async (t) => {
  const { app, textOf } = await openTestVault()
  t.teardown(() => app.close())
  const owner = () => app.owner({ reveal: true })
  const args = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`a${at}`, `{{ x${at} | nope }}`]))
  const payload = Array.from({ length: 900 }, () => ({ type: 'x', data: 1 }))
  for (const text of [
    await textOf(owner, 'reactor react', { id: 'unknown', args }),
    await textOf(owner, 'token tokenize', { payload }),
    await textOf(owner, 'token detokenize', { payload: args }),
  ]) {
    const [, errors] = JSON.parse(text) as [string, object]
    t.equal(Object.keys(errors).length, 100)
  }
})
