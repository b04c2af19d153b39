/**
 * Performs every operation as every kind of caller, with every fault, with every pair of faults, and with ids of
 * another tenant. The requests are generated from the registry of operations. The file `documented.ts` defines the
 * expected statuses.
 */

import t, { type Test } from 'tap'
import { formatRequest } from '../../src/client/format-request.js'
import {
  type ApplicationType,
  permissionsOf as allPermissionsOf,
  PERMISSIONS,
  type Permission,
} from '../../src/domain/access/permissions.js'
import type { CofferError } from '../../src/errors.js'
import { isControl } from '../../src/framework/declaration.js'
import type { RegisteredOperation, RoutedOperation } from '../../src/framework/registry.js'
import type { Handler } from '../../src/http/handler.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, permissionsOf, sampleOf, type TestVault } from '../support/test-vault.js'
import {
  APPLE_PAYLOAD,
  AUTHENTICATE,
  BROWSER,
  FORMULA,
  faultyInputsOf,
  GOOGLE_PAYLOAD,
  type Input,
  MERCHANT,
  MERCHANT_FILE,
  NEEDED,
  NEEDS_ONE,
  NOT_FOR_SESSIONS,
  ONLY_FOR,
  PROCESSOR_FILE,
  PROXY,
  type Sent,
  serve,
  toRequest,
  WEBHOOK,
} from './documented.js'

const TYPES: ApplicationType[] = ['public', 'private', 'management']

// Section: the callers that send the requests.

/** An API key and its rights. A holder without `permissions` has an invalid key. */
interface Holder {
  name: string
  key?: string
  type?: ApplicationType | 'session' | 'session, not authorized'
  permissions?: readonly Permission[]
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
  holders.push({ name: 'an expired key', key })
  clock.now += 1000
  for (const type of TYPES) {
    const create = async (permissions: Permission[], grants: object = { permissions }) =>
      holders.push({
        name: `${type}, ${JSON.stringify(grants)}`,
        ...(await createApplication(type, grants)),
        type,
        permissions,
      })
    const all = permissionsOf(type)
    const idle = allPermissionsOf(type).filter((each) => !all.includes(each))
    t.ok(idle.length >= 5, `${idle.length} permissions have no effect`)
    await create([], { permissions: idle })
    await create(all)
    for (const permission of all) {
      const permissions = [permission]
      await create(permissions)
      // An access rule grants the same operations as a permission without a rule. Applications of the type
      // `management` cannot have rules.
      const rules = [{ priority: 1, container: '/', transform: 'mask', permissions }]
      if (type !== 'management') await create(permissions, { rules })
    }
  }
  return [...holders, ...(await createSessions(vault))]
}

/**
 * Creates sessions of a public application. A private application authorizes the sessions. Both applications have all
 * permissions of their types.
 */
async function createSessions({ createApplication, askAs }: TestVault): Promise<Holder[]> {
  const page = await createApplication('public', { permissions: permissionsOf('public') })
  const backend = await createApplication('private', { permissions: permissionsOf('private') })
  const create = async (
    type: 'session' | 'session, not authorized',
    permissions: readonly Permission[],
  ): Promise<Holder> => {
    const { session_key: key, nonce } = await askAs(page.key, 'session create')
    if (permissions.length > 0) await askAs(backend.key, 'session authorize', { nonce, permissions })
    return { name: `${type}, ${permissions}`, key, type, permissions }
  }
  const all = permissionsOf('private')
  const held = [all, ...all.map((permission) => [permission])]
  const sessions = await Promise.all(held.map((permissions) => create('session', permissions)))
  return [await create('session, not authorized', []), ...sessions]
}

/** Returns whether the documentation allows the holder to call `route`. */
function mayCall(route: string, { permissions = [], type }: Holder): boolean {
  const needed = NEEDED[route] ?? []
  const held = needed.filter((permission) => permissions.includes(permission))
  const least = NEEDS_ONE.includes(route) ? 1 : needed.length
  if (type === 'session' && NOT_FOR_SESSIONS.includes(route)) return false
  return held.length >= least && type === (ONLY_FOR[route] ?? type) && type !== 'session, not authorized'
}

// Section: two tenants whose records have the same ids, data and names.

interface Side {
  name: string
  keys: Record<'tokens' | 'rest', { all: string; none: string }> & { public: string }
  /** The ids that replace `$name` in inputs. */
  ids: Record<string, string>
  /** Texts that only this tenant has: its random ids, keys and fingerprints. */
  own: string[]
}

async function populate(vault: TestVault, name: string): Promise<Side> {
  const { app } = vault
  const ask = (operation: string, input: Input = {}) => vault.ask(operation, input, name)
  const make = async (operation: string, input: Input) => ((await ask(operation, input)) as { id: string }).id
  const createApplication = (type: ApplicationType, grants: object) =>
    vault.createApplication(type, grants, name)
  for (const id of ['open', 'other', 'child', 'closed', 'shut']) {
    const container = /closed|shut/.test(id) ? '/closed/' : '/open/'
    await ask('token create', { id, type: 'token', data: id, containers: [container] })
  }
  await ask('token link', { parent_id: 'open', child_id: 'child' })
  await ask('token link', { parent_id: 'closed', child_id: 'shut' })
  const data = { number: '4242424242424242', expiration_year: 2031 }
  const card = (await ask('token create', { type: 'card', data })) as { id: string; fingerprint: string }
  const bank = { type: 'bank', data: { routing_number: '021000021', account_number: '00001' } }
  const formula = await make('formula create', FORMULA)
  const grants = { name: 'a', type: 'private', permissions: ['token:read'] }
  const full = await make('app create', grants)
  for (let count = 1; count < 20; count++) await ask('app key create', { application_id: full })
  const created = (await ask('app create', grants)) as { id: string; keys: { id: string }[] }
  const { id: tenant_id, owner_id: user_id } = await vault.ask('tenant get', {}, name)
  const { number } = await app.tenant(name)
  const created_at = new Date(vault.clock.now).toISOString()
  const member = { id: app.createUuid(), tenant_id, role: 'ADMIN' as const, user_id, created_at }
  await app.store.write(async (store) => store.insert('member', number, member))
  const page = await createApplication('public', { permissions: permissionsOf('public') })
  const createNonce = async () => (await vault.askAs(page.key, 'session create')).nonce
  const used = await createNonce()
  const backend = await createApplication('private', { permissions: ['token:read'] })
  await vault.askAs(backend.key, 'session authorize', { nonce: used, permissions: ['token:read'] })
  const challenged = await make('token create', { type: 'card', data: { number: '4000020000000000' } })
  const browser = { device: 'browser', device_info: BROWSER }
  const threedsover = await make('3ds create', { token_id: challenged, ...browser })
  await ask('3ds authenticate', { id: threedsover, ...AUTHENTICATE })
  await ask('3ds decide', { id: threedsover })
  const dated = { ...data, expiration_month: 12 }
  const makeCard = (container: string) =>
    make('token create', { type: 'card', data: dated, containers: [container] })
  const suspended = await make('network-token create', { data: { ...dated, number: '5555555555554444' } })
  await ask('network-token suspend', { id: suspended })
  const ids = {
    threeds: await make('3ds create', { token_id: card.id, ...browser }),
    threedsapp: await make('3ds create', { token_id: card.id, device: 'app' }),
    threedsover,
    tenant: tenant_id,
    token: card.id,
    bank: await make('token create', { ...bank, containers: ['/open/'] }),
    closedbank: await make('token create', { ...bank, containers: ['/closed/'] }),
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
    document: await make('document create', { document: 'text' }),
    clientkey: await make('key create', {}),
    updaterjob: await make('updater job create', {}),
    merchant: await make('tenant merchant create', { name: 'shop' }),
    othermerchant: await make('tenant merchant create', { name: 'other' }),
    opencard: await makeCard('/open/'),
    closedcard: await makeCard('/closed/'),
    networktoken: await make('network-token create', { data: { ...dated, number: '4111111111111111' } }),
    suspended,
    ...(await populateWallets(ask)),
    intent: await make('intent create', { type: 'token', data: 1 }),
    invite: await make('invite create', { email: 'eve@example.com' }),
    member: member.id,
    owner: (await vault.ask('tenant owner', {}, name)).id,
    result: app.createUuid(),
  }
  const rule = { priority: 1, container: '/open/', transform: 'reveal' }
  const rules = [{ ...rule, permissions: permissionsOf('private') }]
  const [reader, manager] = [
    await createApplication('private', { rules }),
    await createApplication('management', { permissions: permissionsOf('management') }),
  ]
  const noneOfTokens = await createApplication('management', { permissions: ['log:read'] })
  const noneOfRest = await createApplication('private', { permissions: ['token:use'] })
  for (const { id } of [reader, manager]) {
    const by = { started_by: `application/${id}`, created_at, ended: { result: {} } }
    const result = { id: id === reader.id ? ids.result : app.createUuid(), reactor_id: ids.reactor, ...by }
    await app.store.write(async (store) => store.insert('reactor_result', number, result))
  }
  const keys = {
    tokens: { all: reader.key, none: noneOfTokens.key },
    rest: { all: manager.key, none: noneOfRest.key },
    public: page.key,
  }
  const own = [...Object.values(ids), reader.id, reader.key, manager.id, manager.key, card.fingerprint]
  return { name, keys, ids, own }
}

/** Creates records of both wallets. Returns their ids. */
async function populateWallets(ask: (operation: string, input?: Input) => Promise<unknown>) {
  const id = async (operation: string, input: Input) => ((await ask(operation, input)) as { id: string }).id
  const google = (await ask('google-pay create', GOOGLE_PAYLOAD)) as { google_pay: { id: string } }
  const apple = (await ask('apple-pay create', APPLE_PAYLOAD)) as { apple_pay: { id: string } }
  await ask('config set', { name: 'wallets.apple', value: 'mpan' })
  const unlinkable = (await ask('apple-pay create', APPLE_PAYLOAD)) as { apple_pay: { id: string } }
  await ask('config unset', { name: 'wallets.apple' })
  await ask('apple-pay domain register', { domain: 'shop.example.com' })
  const googlemerchant = await id('google-pay merchant create', MERCHANT)
  const applemerchant = await id('apple-pay merchant create', MERCHANT)
  return {
    googlepay: google.google_pay.id,
    applepay: apple.apple_pay.id,
    applempan: unlinkable.apple_pay.id,
    googlemerchant,
    applemerchant,
    googlecertificate: await id('google-pay certificate create', {
      merchant_id: googlemerchant,
      ...MERCHANT_FILE,
    }),
    applecertificate: await id('apple-pay certificate create', {
      merchant_id: applemerchant,
      ...PROCESSOR_FILE,
    }),
  }
}

async function openTwo(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  await vault.createTenant('other')
  const [ours, theirs] = [await populate(vault, 'default'), await populate(vault, 'other')]
  return { vault, handler: serve(vault), ours, theirs }
}

/** Returns everything about a tenant that the owner can read. The log is left out, because reading adds to the log. */
async function describe({ ask }: TestVault, { name: tenant }: Side): Promise<string> {
  const seen: unknown[] = [await ask('token children', { parent_id: 'open' }, tenant)]
  for (const { name, endpoint, input } of registry.routed) {
    const needsNothing = (input.required ?? []).length === 0
    if (endpoint.method === 'GET' && needsNothing && !/^log list|whoami/.test(name))
      seen.push(await ask(name, {}, tenant))
  }
  return JSON.stringify(seen)
}

// Section: the requests, one row for each request.

/**
 * The status of each fault. If a request has several faults, the response has the status of the fault that is first in
 * this list.
 */
const STATUSES = {
  key: 401,
  permission: 403,
  type: 415,
  size: 413,
  input: 400,
  missing: 404,
  forbidden: 403,
  conflict: 409,
} as const

type Fault = keyof typeof STATUSES

interface World {
  vault: TestVault
  handler: Handler
  ours: Side
  theirs: Side
  holders: Holder[]
}

/** A request, its description and its expected status. The status `passes` means any status except 401 and 403. */
interface Row {
  about: string
  input: Input
  /** `owner`: the owner of the vault performs the operation, without HTTP. */
  sent: Sent | 'owner'
  status: number | 'passes' | 'any'
}

/**
 * Returns a suffix that makes the address of a request invalid. If the path ends in an id, the suffix becomes part of
 * the id. Otherwise, the suffix becomes the query.
 */
const unreadableIn = ({ endpoint }: RoutedOperation) => (endpoint.path.endsWith('}') ? '%zz' : '?%zz')

const isRouted = (definition: RegisteredOperation): definition is RoutedOperation =>
  definition.endpoint !== undefined && !isControl(definition)

/** Returns whether an application of the type may have the permissions that the operation needs. */
function mayPerform(type: ApplicationType, { permissions, isAnyEnough }: RoutedOperation['access']): boolean {
  const held = permissionsOf(type)
  const isHeld = (permission: Permission) => held.includes(permission)
  return isAnyEnough ? permissions.some(isHeld) : permissions.every(isHeld)
}

function keysOf({ access }: RoutedOperation, { keys }: Side) {
  const { permissions, keyOf } = access
  const isOfTokens = keyOf === 'private' || (permissions.length > 0 && mayPerform('private', access))
  const { all, none } = isOfTokens ? keys.tokens : keys.rest
  return { none, all: keyOf === 'public' ? keys.public : all }
}

const fill = (input: Input, { ids }: Side): Input =>
  JSON.parse(JSON.stringify(input).replaceAll(/\$([a-z]+)/g, (_, name) => ids[name]!))

/** Returns an input that fits the schema and refers to no existing record. */
function sampleFor({ input, endpoint }: RegisteredOperation, id = 'unknown'): Input {
  const path = (endpoint?.parameters ?? []).map((name) => [name, id])
  return { ...(sampleOf(input) as Input), ...Object.fromEntries(path) }
}

function* rowsOfHolders(definition: RegisteredOperation, { holders }: World): Generator<Row> {
  const input = sampleFor(definition)
  // The suffix makes the request invalid. If `tenant delete` succeeded, it would also delete the keys that the next
  // rows use.
  const suffix = definition.name === 'tenant delete' ? '?%zz' : ''
  for (const holder of holders) {
    const { key, permissions, name: about } = holder
    const may = isRouted(definition) && mayCall(definition.route!, holder)
    const status = permissions === undefined ? 401 : may ? 'passes' : 403
    yield { about, input, sent: { key, suffix }, status }
  }
}

/** Returns the possible faults of the operation, in the order in which the program checks them. */
function faultsOf(definition: RoutedOperation): Fault[] {
  const faulty = faultyInputsOf(definition)
  const { access } = definition
  const { body } = formatRequest(definition, faulty.good)
  return (Object.keys(STATUSES) as Fault[]).filter((fault) => {
    if (fault === 'permission') return access.permissions.length > 0 || access.keyOf !== undefined
    // A document has a limit of its own, which is larger than the limit of other bodies.
    if (fault === 'size') return body !== undefined && definition.http?.body?.form === undefined
    if (fault === 'type') return body !== undefined
    return fault === 'key' || fault in faulty
  })
}

/** Returns a request that has the faults `faults`. If one fault is a wrong input, `wrong` is that input. */
function rowOf(
  definition: RoutedOperation,
  side: Side,
  faults: readonly Fault[],
  wrong: Input | string,
): Row {
  const faulty = faultyInputsOf(definition)
  const laid = (['conflict', 'forbidden', 'missing'] as const).map(
    (each) => faults.includes(each) && faulty[each],
  )
  const { all, none } = keysOf(definition, side)
  return {
    about: `${faults.join(' and ')} ${JSON.stringify(wrong)}`,
    input: fill(Object.assign({}, faulty.good, ...laid, typeof wrong === 'object' && wrong), side),
    sent: {
      key: faults.includes('key') ? undefined : faults.includes('permission') ? none : all,
      ...(faults.includes('type') && { type: 'text/plain' }),
      ...(faults.includes('size') && { filler: ' '.repeat(20_000) }),
      ...(typeof wrong === 'string' && { suffix: wrong }),
    },
    status: faults[0] === undefined ? 'passes' : STATUSES[faults[0]],
  }
}

/** Yields requests with two faults. The response to each request must name the earlier fault. */
function* rowsOfFaults(definition: RoutedOperation, { ours }: World): Generator<Row> {
  const faults = faultsOf(definition)
  for (const [at, first] of faults.entries())
    for (const second of [first, ...faults.slice(at + 1)]) {
      const isWrong = first === 'input' || second === 'input'
      for (const wrong of isWrong ? [unreadableIn(definition), ...faultyInputsOf(definition).input] : [''])
        yield rowOf(definition, ours, [first, second], wrong)
    }
}

/**
 * Yields requests that have, in each place for an id, the id of each record of the other tenant. Also yields
 * requests for lists that are filtered by these ids.
 */
function* rowsOfOthers(definition: RoutedOperation, { ours, theirs }: World): Generator<Row> {
  const {
    endpoint,
    cli: { confirmation } = {},
    access: { keyOf },
  } = definition
  const { good, missing } = faultyInputsOf(definition)
  const own = fill(good, ours)
  const all: Sent = { key: keysOf(definition, ours).all }
  const places = new Set([...endpoint.parameters, ...Object.keys(missing ?? {})])
  // The rest of the input is valid, so only the id of the other tenant can be the reason for a refusal.
  for (const place of places)
    for (const [what, id] of Object.entries(theirs.ids))
      for (const sent of keyOf === undefined ? [all, 'owner' as const] : [all])
        yield { about: `their ${what} as ${place}`, input: { ...own, [place]: id }, sent, status: 404 }
  if (confirmation !== undefined) return
  const ids = Object.values(theirs.ids)
  const filters = { id: ids, entity_id: ids[0], query: `id:${ids[0]}` }
  const { properties = {} } = definition.input
  const known = Object.entries(filters).filter(([name]) => name in properties && !places.has(name))
  const sample = sampleFor(definition, 'open')
  for (const sent of [{ key: ours.keys.tokens.all }, { key: ours.keys.rest.all }, 'owner'] as const)
    for (const filter of [[], ...known.map((each) => [each])])
      yield {
        about: JSON.stringify(filter),
        input: { ...sample, ...Object.fromEntries(filter) },
        sent,
        status: 'any',
      }
}

function* rowsOf(definition: RegisteredOperation, world: World): Generator<Row> {
  yield* rowsOfHolders(definition, world)
  if (!isRouted(definition)) return
  yield* rowsOfFaults(definition, world)
  yield* rowsOfOthers(definition, world)
}

async function ask({ vault, handler }: World, definition: RegisteredOperation, { input, sent }: Row) {
  const { name } = definition
  if (sent === 'owner') return vault.settle(() => vault.app.owner({ reveal: true }), name, input)
  if (isRouted(definition)) {
    const answer = await handler(toRequest(definition, input, sent))
    return { status: answer.status, text: await answer.text() }
  }
  const asked = vault.app.ask({ operation: name, input, as: { key: sent.key ?? '' } })
  return asked.then(
    () => ({ status: 200, text: '' }),
    ({ status, message }: CofferError) => ({ status, text: message }),
  )
}

// Section: the tests.

t.test('every operation is documented and requires the documented permissions', async (t) => {
  for (const { route, access } of registry.routed) {
    const { permissions, isAnyEnough = false, keyOf, refusesSessions = false } = access
    t.equal(refusesSessions, NOT_FOR_SESSIONS.includes(route!), route!)
    t.equal(keyOf, ONLY_FOR[route!], route!)
    t.strictSame([...permissions], NEEDED[route!], route!)
    t.equal(isAnyEnough, NEEDS_ONE.includes(route!), route!)
  }
  const types = Object.values(PERMISSIONS).flatMap(({ application_types }) => [...application_types])
  t.ok(types.every((type) => TYPES.includes(type)))
})

/**
 * The operations that are not logged. For example, `tenant delete` is not logged, because it deletes the log of the
 * tenant.
 */
const UNLOGGED = [
  ...['app key list', 'app list', 'app permissions', 'app template get', 'app template list', 'app whoami'],
  ...['apple-pay domain list', 'enrich card', 'formula list'],
  ...['invite list', 'key list', 'log entity-types', 'log list', 'member list', 'member roles', 'proxy list'],
  ...['reactor list', 'reactor logs', 'reactor result', 'session authorize', 'session create'],
  ...[
    'tenant delete',
    'tenant merchant list',
    'tenant usage',
    'updater job list',
    'webhook event-types',
    'webhook list',
  ],
]

t.test('every operation is logged, except the operations in the list UNLOGGED', async (t) => {
  const unlogged = registry.routed.filter(({ log }) => log === undefined).map(({ name }) => name)
  t.same([...unlogged, 'reactor logs'].sort(), UNLOGGED)
})

t.test(
  'each request is answered as documented, and the answer reveals nothing about another tenant',
  async (t) => {
    const two = await openTwo(t)
    const world: World = { ...two, holders: await createHolders(two.vault) }
    const { vault, ours, theirs } = world
    t.notOk(
      ours.own.some((text) => theirs.own.includes(text)),
      'fingerprints of equal data differ between tenants',
    )
    await describe(vault, theirs)
    const before = await describe(vault, theirs)
    let count = 0
    for (const definition of registry.operations.filter(
      ({ access, endpoint }) => access.owner || endpoint !== undefined,
    )) {
      const wrong: string[] = []
      const expected = new Set<Row['status']>()
      for (const row of rowsOf(definition, world)) {
        count++
        expected.add(row.status)
        const { status, text } = await ask(world, definition, row)
        const passes = status !== 401 && status !== 403
        const isRight = row.status === 'passes' ? passes : row.status === 'any' || row.status === status
        if (!isRight || status >= 500 || theirs.own.some((own) => text.includes(own)))
          wrong.push(`${row.about}: ${status}, not ${row.status}`)
      }
      t.strictSame(wrong, [], definition.name)
      const some = isRouted(definition) ? [401, 403, 'passes'] : [401, 403]
      t.ok(
        some.every((status) => expected.has(status as Row['status'])),
        `${definition.name}: ${[...expected]}`,
      )
    }
    t.ok(count > 10_000, `${count} rows`)
    for (const [method, path, status] of [
      ['GET', '/nowhere/%zz?x=%zz', 404],
      ['PUT', '/tokens/%zz?x=%zz', 405],
    ] as const)
      t.match(await world.handler(new Request(`http://localhost${path}`, { method })), { status })
    t.equal(await describe(vault, theirs), before, 'the data of the other tenant has not changed')
    for (const definition of registry.routed.filter(({ cli }) => cli?.confirmation === undefined)) {
      if (definition.name === 'app whoami') continue
      const { status } = await ask(world, definition, rowOf(definition, ours, [], ''))
      t.ok(status < 300, `${definition.name} without any fault gets ${status}`)
    }
  },
)

t.test(
  'creating a token or renaming a tenant does not reveal which records another tenant has',
  async (t) => {
    const { vault, ours, theirs } = await openTwo(t)
    const shared = { type: 'token', data: 'only there', deduplicate_token: true }
    await vault.ask('token create', shared, 'other')
    const containers = ['/open/']
    for (const token of [{ ...shared, data: 'x', id: theirs.ids.token }, shared])
      t.match(await vault.askAs(ours.keys.tokens.all, 'token create', { ...token, containers }), {
        containers,
      })
    t.match(await vault.askAs(ours.keys.rest.all, 'tenant update', { name: 'other' }), { name: 'other' })
  },
)

t.test('deleting a tenant deletes all its records and no record of another tenant', async (t) => {
  const { vault, ours, theirs } = await openTwo(t)
  const before = await describe(vault, ours)
  const [reader, manager] = [theirs.keys.tokens.all, theirs.keys.rest.all]
  await vault.askAs(manager, 'tenant delete')
  for (const key of [reader, manager])
    await t.rejects(vault.askAs(key, 'app whoami'), { code: 'unauthenticated' })
  await t.rejects(vault.ask('tenant get', {}, 'other'), { code: 'not_found' })
  t.equal(await describe(vault, ours), before)
  await vault.createTenant('other')
  t.match(
    await vault.ask('token list', {}, 'other'),
    { data: [] },
    'a new tenant with the same name is empty',
  )
  t.match((await vault.ask('log list', {}, 'other')).data[0], { message: 'Tenant created' })
})
