/**
 * Every operation of the registry over HTTP. Who may call it: without a key, with wrong keys, as each type of application
 * with all that it may hold and with each single permission, and as sessions likewise. Which fault is answered first where
 * a request has several (decisions 2): every pair of faults that it can have.
 */
import t, { type Test } from 'tap'
import { spellRequest } from '../../src/client/spell-request.js'
import { type ApplicationType, PERMISSIONS, type Permission } from '../../src/domain/access/permissions.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import { createHandler, type Handler } from '../../src/http/handle.js'
import { completeService } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { FORMULA, type Input, NEEDED, NEEDS_ONE, ONLY_FOR, PROXY, SPOILINGS } from './documented.js'
import { openTestVault, permissionsOf, sampleOf, type TestVault } from './vault.js'

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
  holders.push({ name: 'an expired key', key })
  clock.now += 1000
  for (const type of TYPES) {
    const all = permissionsOf(type)
    holders.push({
      name: `${type}, all`,
      ...(await createApplication(type, { permissions: all })),
      type,
      permissions: all,
    })
    for (const permission of all) {
      const only = [permission]
      holders.push({
        name: `${type}, ${permission}`,
        ...(await createApplication(type, { permissions: only })),
        type,
        permissions: only,
      })
    }
  }
  return [...holders, ...(await createSessions(vault))]
}

/** Of a public application and authorized by a private one, both of which may do all that their types may. */
async function createSessions({ createApplication, askAs }: TestVault): Promise<Holder[]> {
  const page = await createApplication('public', { permissions: permissionsOf('public') })
  const backend = await createApplication('private', { permissions: permissionsOf('private') })
  const create = async (name: string, permissions: readonly Permission[]): Promise<Holder> => {
    const session = (await askAs(page.key, 'session create')) as { session_key: string; nonce: string }
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

function serve({ app }: TestVault): Handler {
  const service = { host: app, registry, authenticate, version: '0.0.0', bodyLimitBytes: 16_384 }
  return createHandler(completeService(service))
}

/** A request that fits the schema, about something that is not there. */
function sampleRequest(definition: RoutedOperation, key: string | undefined): Request {
  const { parameters } = definition.endpoint
  const path = Object.fromEntries(parameters.map((name) => [name, 'unknown']))
  return toRequest(definition, { ...(sampleOf(definition.input) as Input), ...path }, { key })
}

function toRequest(
  definition: RoutedOperation,
  input: Input,
  { key, type, filler = '' }: { key: string | undefined; type?: string | undefined; filler?: string },
): Request {
  const { target, body } = spellRequest(definition, input)
  return new Request(`http://localhost${target}`, {
    method: definition.endpoint.method,
    headers: {
      'content-type': type ?? definition.contentType ?? 'application/json',
      ...(key !== undefined && { 'svc-api-key': key }),
    },
    ...(body !== undefined && { body: body + filler }),
  })
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
  'app key list',
  'app list',
  'app permissions',
  'app whoami',
  'formula list',
  'invite list',
  'log entity-types',
  'log list',
  'member list',
  'member roles',
  'proxy list',
  'reactor list',
  'reactor logs',
  'reactor result',
  'session authorize',
  'session create',
  'tenant delete',
  'tenant usage',
]

t.test(
  'every operation on an entity writes a record, and lists of other things than tokens none',
  async (t) => {
    const unlogged = registry.routed.filter(({ log }) => log === undefined).map(({ name }) => name)
    t.strictSame(
      unlogged.filter((name) => !UNLOGGED.includes(name)),
      [],
    )
    t.strictSame(
      UNLOGGED.filter((name) => registry.find(name)?.log !== undefined),
      [],
    )
  },
)

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
  return {
    handler: serve(vault),
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
  const { good, container, conflict } = SPOILINGS[definition.name]!
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

function missingOf({ name, endpoint }: RoutedOperation): Input | undefined {
  const last = endpoint.parameters.at(-1)
  return SPOILINGS[name]!.missing ?? (last === undefined ? undefined : { [last]: NOBODY })
}

/** The faults that the operation can have, in their order. */
function faultsOf(definition: RoutedOperation): Fault[] {
  const { good, ...spoilings } = SPOILINGS[definition.name]!
  const { body } = spellRequest(definition, good)
  return (Object.keys(STATUSES) as Fault[]).filter((fault) => {
    if (fault === 'permission') return definition.permissions.length > 0 || definition.onlyFor !== undefined
    if (fault === 'type' || fault === 'size') return body !== undefined
    if (fault === 'missing') return missingOf(definition) !== undefined
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
