/**
 * Who may do what: every operation of the registry for every kind of caller; access rules against a reference written from
 * the sentences of the specification; no character of data beyond what a transform grants; nothing of another tenant.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { Rule, RuleCondition } from '../../src/domain/access/access.js'
import {
  type ApplicationType,
  permissionsOf as allPermissionsOf,
  PERMISSIONS,
  type Permission,
  type Transform,
} from '../../src/domain/access/permissions.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { Caller } from '../../src/framework/caller/caller.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import type { Handler } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, permissionsOf, sampleOf, setSetting, type TestVault } from '../support/test-vault.js'
import { type Input, NEEDED, NEEDS_ONE, ONLY_FOR, serve, toRequest } from './documented.js'

// ---------------------------------------------------------------- every operation, every kind of caller

const TYPES: ApplicationType[] = ['public', 'private', 'management']

/** A key and what may be done with it; without `permissions` it is no key at all. */
interface Holder {
  name: string
  key?: string
  type?: ApplicationType | 'session'
  permissions?: readonly Permission[]
  isPending?: true
}

async function createHolders(vault: TestVault): Promise<Holder[]> {
  const { createApplication, clock } = vault
  const holders: Holder[] = [
    { name: 'no key' },
    { name: 'an empty key', key: '' },
    { name: 'text that is no key', key: 'key_0' },
    { name: 'a key that nobody has', key: 'key_1111111111111111111111' },
  ]
  const expires_at = new Date(clock.now + 1000).toISOString()
  const permissions = permissionsOf('management')
  const { key } = await createApplication('management', { permissions, expires_at })
  for (const type of TYPES) {
    const idle = allPermissionsOf(type).filter((each) => !permissionsOf(type).includes(each))
    t.ok(idle.length >= 31, `${idle.length} permissions without effect`)
    const made = await createApplication(type, { permissions: idle })
    holders.push({ name: `${type}, without effect`, ...made, type, permissions: [] })
  }
  holders.push({ name: 'an expired key', key })
  clock.now += 1000
  for (const type of TYPES) {
    const all = permissionsOf(type)
    const create = async (permissions: Permission[], grants: object = { permissions }) =>
      holders.push({
        name: `${type}, ${JSON.stringify(grants)}`,
        ...(await createApplication(type, grants)),
        type,
        permissions,
      })
    await create(all)
    for (const permission of all) {
      const permissions = [permission]
      await create(permissions)
      // A rule grants what a plain permission grants; applications of type management have no rules.
      const rules = [{ priority: 1, container: '/', transform: 'mask', permissions }]
      if (type !== 'management') await create(permissions, { rules })
    }
  }
  return [...holders, ...(await createSessions(vault))]
}

/** Of a public application and authorized by a private one, both of which may do all that their types may. */
async function createSessions({ createApplication, askAs }: TestVault): Promise<Holder[]> {
  const page = await createApplication('public', { permissions: permissionsOf('public') })
  const backend = await createApplication('private', { permissions: permissionsOf('private') })
  const create = async (name: string, permissions: readonly Permission[]): Promise<Holder> => {
    const session = await askAs(page.key, 'session create')
    if (permissions.length > 0)
      await askAs(backend.key, 'session authorize', { nonce: session.nonce, permissions })
    return { name: `session, ${name}`, key: session.session_key, type: 'session', permissions }
  }
  const all = permissionsOf('private')
  const single = await Promise.all(all.map((permission) => create(permission, [permission])))
  return [{ ...(await create('not authorized', [])), isPending: true }, await create('all', all), ...single]
}

interface Opened {
  handler: Handler
  holders: Holder[]
}

async function open(t: Test): Promise<Opened> {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  return { handler: serve(vault), holders: await createHolders(vault) }
}

/** A request that fits the schema, about something that is not there. */
function sampleRequest(definition: RoutedOperation, key: string | undefined): Request {
  const { parameters } = definition.endpoint
  const path = Object.fromEntries(parameters.map((name) => [name, 'unknown']))
  return toRequest(definition, { ...(sampleOf(definition.input) as Input), ...path }, { key })
}

t.test('every operation is documented, and takes what is documented', async (t) => {
  for (const { route, permissions, needsOnePermission = false, onlyFor } of registry.routed) {
    t.equal(onlyFor, ONLY_FOR[route!], route!)
    t.strictSame([...permissions], NEEDED[route!], route!)
    t.equal(needsOnePermission, NEEDS_ONE.includes(route!), route!)
  }
  const types = Object.values(PERMISSIONS).flatMap(({ application_types }) => [...application_types])
  t.ok(types.every((type) => TYPES.includes(type)))
})

/** Reading these leaves no trace; a deleted tenant takes its log along. */
const UNLOGGED = [
  ...['app key list', 'app list', 'app permissions', 'app whoami', 'formula list', 'invite list'],
  ...['log entity-types', 'log list', 'member list', 'member roles', 'proxy list', 'reactor list'],
  ...['reactor logs', 'reactor result', 'session authorize', 'session create', 'tenant delete'],
  ...['tenant usage', 'webhook event-types', 'webhook list'],
]

t.test('every operation on an entity writes a record; lists of other things than tokens none', async (t) => {
  const unlogged = registry.routed.filter(({ log }) => log === undefined).map(({ name }) => name)
  t.same([...unlogged, 'reactor logs'].sort(), UNLOGGED)
})

t.test('exactly the documented calls pass', async (t) => {
  let { handler, holders } = await open(t)
  let decisions = 0
  for (const definition of registry.routed) {
    const route = definition.route!
    const needed = NEEDED[route] ?? []
    const wrong: string[] = []
    let refused = 0
    for (let at = 0; at < holders.length; at++) {
      const { name, key, permissions, type, isPending = false } = holders[at]!
      const { status } = await handler(sampleRequest(definition, key))
      decisions++
      const held = needed.filter((permission) => permissions?.includes(permission))
      const least = NEEDS_ONE.includes(route) ? 1 : needed.length
      const only = ONLY_FOR[route] ?? type
      const may = permissions !== undefined && held.length >= least && type === only && !isPending
      const expected = permissions === undefined ? status === 401 : may !== (status === 403) && status !== 401
      if (!expected || status >= 500) wrong.push(`${name}: ${status}`)
      if (!may) refused++
      // It takes the tenant away, and with it the keys of those who come next.
      if (may && definition.name === 'tenant delete') ({ handler, holders } = await open(t))
    }
    t.strictSame(wrong, [], route)
    t.ok(refused >= 5 && refused < holders.length, `${route}: some were refused, some were not`)
  }
  t.ok(decisions > 3000, `${decisions} calls`)
})

// ---------------------------------------------------------------- rules, against a reference

interface Granted {
  rules: Rule[]
  permissions: Permission[]
}

interface Shown {
  id: string
  data?: unknown
}

interface Page {
  data: Shown[]
  pagination: { total_items: number }
}

/** Strictest first. */
const TRANSFORMS = ['redact', 'mask', 'reveal'] as const

const segments = fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 3 })
const container = segments.map((names) => `/${names.map((name) => `${name}/`).join('')}`)
const containers = fc.uniqueArray(container, { minLength: 1, maxLength: 3 })
const granted = fc.uniqueArray(fc.constantFrom(...permissionsOf('private')), { minLength: 1, maxLength: 4 })
const transform = fc.constantFrom<Transform>(...TRANSFORMS)
const plain = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Permission[]>([]) },
  { weight: 1, arbitrary: granted },
)
const operator = fc.constantFrom<RuleCondition['operator']>('equals', 'starts_with')
const values = fc.constantFrom('card-', 'card-1', 'Card-1', 'note-1', 'c', '')
const paths = fc.oneof(container, fc.constantFrom('/', '/a', '/ab/'))
const condition = fc.oneof(
  fc.record({ attribute: fc.constant<'id'>('id'), operator, value: values }),
  fc.record({ attribute: fc.constant<'container'>('container'), operator, value: paths }),
)
const ofContainer = fc.record({
  priority: fc.integer({ min: 1, max: 9 }),
  container,
  transform,
  permissions: granted,
})
const conditional = fc.record({
  priority: fc.integer({ min: 10, max: 19 }),
  conditions: fc.array(condition, { minLength: 1, maxLength: 2 }),
  transform,
  permissions: granted,
})
const several = <T extends { priority: number }>(rule: fc.Arbitrary<T>, maxLength: number) =>
  fc.uniqueArray(rule, { selector: ({ priority }) => priority, maxLength })
const ofApplication: fc.Arbitrary<Granted> = fc.record({
  rules: several(ofContainer, 5) as fc.Arbitrary<Rule[]>,
  permissions: plain,
})
const ofSession: fc.Arbitrary<Granted> = fc
  .tuple(several(ofContainer, 5), several(conditional, 4), plain)
  .map(([some, more, permissions]) => ({ rules: [...some, ...more] as Rule[], permissions }))
const tokens = fc.array(fc.tuple(fc.constantFrom('card', 'note'), containers), { minLength: 1, maxLength: 8 })

/** What the sentences of the specification say, one container after another. */
function decide(
  grants: Granted,
  permission: Permission,
  paths: readonly string[],
  id?: string,
): Transform | undefined {
  const meets = ({ attribute, operator, value }: RuleCondition, path: string) => {
    const text = attribute === 'id' ? id : path
    return operator === 'equals' ? text === value : text?.slice(0, value.length) === value
  }
  const above = (path: string) => path.split('/').map((_, at, all) => `${all.slice(0, at).join('/')}/`)
  const decided = paths.map((path): Transform | undefined => {
    const fitting = grants.rules.filter(
      (rule) =>
        (rule.conditions?.every((each) => meets(each, path)) ??
          [path, ...above(path)].includes(rule.container!)) &&
        rule.permissions.includes(permission),
    )
    fitting.sort((one, other) => one.priority - other.priority)
    if (fitting[0] !== undefined) return fitting[0].transform
    if (!grants.permissions.includes(permission)) return undefined
    return /:(use|invoke)$/.test(permission) ? 'reveal' : 'mask'
  })
  return strictest(decided)
}

/** All must grant, and the strictest holds. */
function strictest(decided: readonly (Transform | undefined)[]): Transform | undefined {
  return decided.includes(undefined) ? undefined : TRANSFORMS.find((each) => decided.includes(each))
}

/** What a reader is shown of the data `secret` under the mask `masked`. */
const shownUnder = (transform: Transform) =>
  transform === 'redact' ? {} : { data: transform === 'reveal' ? 'secret' : 'masked' }

const HOLDERS = {
  application: async ({ createApplication }: TestVault, own: Granted) => {
    const { key } = await createApplication('private', own)
    return { key, deciding: [own] }
  },
  session: createSession,
  'session that may go beyond its authorizer': async (
    vault: TestVault,
    own: Granted,
    authorizer: Granted,
  ) => {
    await setSetting(vault.app, 'sessions.beyond_authorizer', 'true')
    return { ...(await createSession(vault, own, authorizer)), deciding: [own] }
  },
}

async function createSession({ createApplication, askAs }: TestVault, own: Granted, authorizer: Granted) {
  const page = await createApplication('public', { permissions: ['token:create'] })
  const backend = await createApplication('private', authorizer)
  const { session_key, nonce } = await askAs(page.key, 'session create')
  await askAs(backend.key, 'session authorize', { nonce, ...own })
  return { key: session_key!, deciding: [own, authorizer] }
}

for (const [holder, create] of Object.entries(HOLDERS))
  t.test(`${holder}: rules decide as the specification says, whatever they are`, async (t) => {
    const counts = { denied: 0, allowed: 0 }
    const property = async (own: Granted, authorizer: Granted, tokens: [kind: string, string[]][]) => {
      const held = holder === 'application' ? [own] : [own, authorizer]
      if (held.some((each) => each.rules.length + each.permissions.length === 0)) return
      const vault = await openTestVault()
      const { app, ask, askAs, statusOf } = vault
      const { key, deciding } = await create(vault, own, authorizer)
      const caller = () => authenticate(app, key)
      const decideAll = (permission: Permission, paths: readonly string[], id?: string) =>
        strictest(deciding.map((each) => decide(each, permission, paths, id)))
      const holds = (permission: Permission) =>
        deciding.every((each) => [...each.rules, each].some((one) => one.permissions.includes(permission)))
      const check = async (
        permission: Permission,
        status: number,
        name: string,
        input: Input,
        id?: string,
      ) => {
        const { containers, ...about } = input
        const decision = decideAll(permission, containers as string[], id)
        counts[decision === undefined ? 'denied' : 'allowed']++
        const asked = id === undefined ? input : { id, ...about }
        t.equal(await statusOf(caller, name, asked), decision === undefined ? 403 : status)
        return decision
      }
      const readable: string[] = []
      const found: string[] = []
      for (const [index, [kind, containers]] of tokens.entries()) {
        const id = `${kind}-${index}`
        const input = { type: 'token', data: 'secret', mask: 'masked', containers }
        await ask('token create', { id, ...input })
        const read = await check('token:read', 200, 'token get', { containers }, id)
        if (read !== undefined) {
          readable.unshift(id)
          const { data } = await askAs(key, 'token get', { id })
          t.strictSame(data === undefined ? {} : { data }, shownUnder(read))
          if (decideAll('token:search', containers, id) !== undefined) found.unshift(id)
        }
        await check('token:update', 200, 'token update', { metadata: { a: 'b' }, containers }, id)
      }
      const ids = tokens.map(([kind], index) => `${kind}-${index}`)
      for (const [permission, name, filter, expected] of [
        ['token:read', 'token list', {}, readable],
        ['token:read', 'token list', { id: ids }, readable],
        ['token:search', 'token search', {}, found],
      ] as const) {
        const isHeld = holds(permission)
        t.equal(await statusOf(caller, name, { ...filter }), isHeld ? 200 : 403)
        if (!isHeld) continue
        const { data, pagination } = (await askAs(key, name, { ...filter, size: 3 })) as Page
        const first = expected.slice(0, 3)
        t.strictSame([data.map(({ id }) => id), pagination.total_items], [first, expected.length])
      }
      for (const [index, [kind, containers]] of tokens.entries()) {
        const id = `${kind}-${index}`
        await check('token:create', 201, 'token create', { type: 'token', data: 'secret', containers })
        await check('token:delete', 204, 'token delete', { containers }, id)
      }
      await app.close()
    }
    const own = holder === 'application' ? ofApplication : ofSession
    await fc.assert(fc.asyncProperty(own, ofApplication, tokens, property), { numRuns: 80 })
    t.ok(counts.denied > 100 && counts.allowed > 10, JSON.stringify(counts))
  })

/** Letters that nothing else in the vault is written with, so that one of them anywhere is a leak. */
const SECRET = 'жщшюядфгцэ'
const GRANTED: Record<Transform, string> = { redact: '', mask: SECRET.slice(-2), reveal: SECRET }

t.test('no answer holds a character of data beyond what its transform grants', async (t) => {
  const { app, ask, textOf, createApplication } = await openTestVault()
  const token = {
    type: 'token',
    data: SECRET,
    mask: '{{ data | reveal_last: 2 }}',
    search_indexes: ['{{ data }}'],
    metadata: { customer: '42' },
  }
  let shown = 0
  for (const transform of ['redact', 'mask', 'reveal'] as const) {
    const permissions = permissionsOf('private')
    const rule = { priority: 1, container: '/', transform, permissions }
    const { key } = await createApplication('private', { rules: [rule] })
    const caller = () => authenticate(app, key)
    const { id } = await ask('token create', token)
    const { id: other } = await ask('token create', token)
    await ask('token link', { parent_id: id, child_id: other })
    const reads: [string, Input][] = [
      ['token get', { id }],
      ['token list', { id: [id, other] }],
      ['token search', { query: `data:${SECRET}` }],
      ['token children', { parent_id: id }],
    ]
    const patches: Input[] = [
      { metadata: { customer: '43' } },
      { mask: '{{ data | no_such_filter }}' },
      { mask: '{{ data | to_number }}' },
      { search_indexes: ['{{ data | json: "$[" }}'] },
      { fingerprint_expression: '{{ data | to_boolean }}' },
      { deduplicate_token: true },
    ]
    const writes: [string, Input][] = [
      ['token create', token],
      ['token create', { ...token, deduplicate_token: true }],
      ['token create-child', { parent_id: id, ...token }],
      ...patches.map((patch): [string, Input] => ['token update', { id, ...patch }]),
      ['token tokenize', { payload: { deep: [token] } }],
      ['token delete', { id }],
    ]
    for (const [name, input] of [...reads, ...writes]) {
      const isRead = reads.some(([read, asked]) => read === name && asked === input)
      const most = isRead ? GRANTED[transform] : transform === 'redact' ? '' : GRANTED.mask
      const text = await textOf(caller, name, input)
      const leaked = [...SECRET].filter((letter) => !most.includes(letter) && text.includes(letter))
      t.strictSame(leaked, [], `${name} under ${transform}: ${leaked.length} letters`)
      if (most !== '' && text.includes(most)) shown++
    }
  }
  t.ok(shown >= 14, `what is granted is shown (${shown} times)`)
  const logs = await textOf(() => app.owner({ reveal: true }), 'log list', { size: 1000 })
  t.notMatch(logs, /[жщшюядфгцэ]/, 'the log holds none of it')
})

// ---------------------------------------------------------------- two tenants with the same ids, data and names

interface Side {
  name: string
  callers: (() => Promise<Caller>)[]
  /** Everything of it that could be asked for. */
  ids: string[]
  /** Texts that are nobody else's: drawn ids, keys, fingerprints. */
  own: string[]
}

const DATA = { number: '4242424242424242', expiration_year: 2031 }

/** The same in each tenant, but for what is drawn. */
async function populate({ app, ask, createApplication }: TestVault, name: string): Promise<Side> {
  const make = async (operation: string, input: Input = {}) =>
    (await ask(operation, input, name)) as { id: string; fingerprint: string }
  const reader = await createApplication('private', { permissions: permissionsOf('private') }, name)
  const manager = await createApplication('management', { permissions: permissionsOf('management') }, name)
  const card = { type: 'card', data: DATA, metadata: { customer: '42' } }
  const parent = await make('token create', { ...card, id: 'customer-42' })
  await make('token create', { ...card, id: 'note-1' })
  await make('token link', { parent_id: 'customer-42', child_id: 'note-1' })
  const { data: members } = await ask('member list', {}, name)
  const code = 'module.exports = async () => ({})'
  const formula = await make('formula create', { name: 'f', type: 'private', code })
  const made = [
    await make('token create', card),
    await make('tenant get'),
    formula,
    await make('reactor create', { name: 'r', formula: { id: formula.id }, configuration: {} }),
    await make('invite create', { email: 'ada@example.com' }),
    reader,
    manager,
    ...members,
  ]
  const ids = made.map(({ id }) => id)
  return {
    name,
    callers: [
      () => authenticate(app, reader.key),
      () => authenticate(app, manager.key),
      () => app.owner({ reveal: true, tenant: name }),
    ],
    ids,
    own: [...ids, reader.key, manager.key, parent.fingerprint],
  }
}

/** All that the owner can see of a tenant. Its log is left out, for looking writes to it. */
async function describe({ ask }: TestVault, { name: tenant }: Side): Promise<string> {
  const seen: unknown[] = [await ask('token children', { parent_id: 'customer-42' }, tenant)]
  for (const { name, endpoint } of registry.routed)
    if (endpoint.method === 'GET' && endpoint.parameters.length === 0 && !/^log list|whoami/.test(name))
      seen.push(await ask(name, {}, tenant))
  return JSON.stringify(seen)
}

async function openTwo() {
  const vault = await openTestVault()
  await vault.createTenant('other')
  return { vault, ours: await populate(vault, 'default'), theirs: await populate(vault, 'other') }
}

t.test('no operation reaches, tells or changes anything of another tenant', async (t) => {
  const { vault, ours, theirs } = await openTwo()
  t.notOk(
    ours.own.some((text) => theirs.own.includes(text)),
    'fingerprints of equal data are unrelated too',
  )
  await describe(vault, theirs)
  const before = await describe(vault, theirs)
  const wrong: string[] = []
  let asked = 0
  const ask = async (caller: () => Promise<Caller>, name: string, input: Input, isForeign: boolean) => {
    asked++
    const { status, text } = await vault.settle(caller, name, input)
    // Of an invitation, formula or reactor the body is refused before anybody looks for the id.
    const isReached = isForeign && status !== 404 && status !== 400
    if (isReached || theirs.own.some((own) => text.includes(own)))
      wrong.push(`${name} ${JSON.stringify(input)}: ${status}`)
  }
  for (const { name, input, destroys, endpoint } of registry.routed) {
    const { parameters } = endpoint
    const sample = {
      ...(sampleOf(input) as Input),
      ...Object.fromEntries(parameters.map((each) => [each, 'customer-42'])),
    }
    // The other end of a link is our own, so that nothing but the foreign id can be what is refused.
    for (const foreign of parameters)
      for (const id of theirs.ids) await ask(ours.callers[2]!, name, { ...sample, [foreign]: id }, true)
    const filters = { id: theirs.ids, entity_id: theirs.ids[0], query: `id:${theirs.ids[0]}` }
    const known = Object.entries(filters).filter(
      ([filter]) => filter in (input.properties ?? {}) && !parameters.includes(filter),
    )
    for (const caller of destroys === undefined ? ours.callers : [])
      for (const filter of [undefined, ...known])
        await ask(caller, name, { ...sample, ...(filter && { [filter[0]]: filter[1] }) }, false)
  }
  t.ok(asked > 300, `${asked} calls`)
  t.strictSame(wrong, [])
  t.equal(await describe(vault, theirs), before, 'nothing of the other tenant has changed')
})

t.test('what another tenant has is not told by what can be created', async (t) => {
  const { vault, ours, theirs } = await openTwo()
  const shared = { type: 'token', data: 'only there', deduplicate_token: true }
  await vault.ask('token create', shared, 'other')
  for (const token of [{ ...shared, data: 'x', id: theirs.ids[0] }, shared])
    t.equal(await vault.statusOf(ours.callers[0]!, 'token create', token), 201)
  t.equal(await vault.statusOf(ours.callers[1]!, 'tenant update', { name: 'other' }), 200)
})

t.test('a deleted tenant takes everything along, and its neighbour stays', async (t) => {
  const { vault, ours, theirs } = await openTwo()
  const before = await describe(vault, ours)
  const [reader, manager] = theirs.callers
  t.equal(await vault.statusOf(manager!, 'tenant delete'), 204)
  for (const caller of [reader!, manager!]) t.equal(await vault.statusOf(caller, 'app whoami'), 401)
  await t.rejects(vault.ask('tenant get', {}, 'other'), { code: 'not_found' })
  t.equal(await describe(vault, ours), before)
  await vault.createTenant('other')
  t.match(await vault.ask('token list', {}, 'other'), { data: [] }, 'a new tenant of the same name is empty')
  t.match((await vault.ask('log list', {}, 'other')).data[0], { message: 'Tenant created' })
})
