/**
 * Who may call what: every operation of the registry asked over HTTP without a key, with wrong keys, as each type of
 * application with all that it may hold, and with each single permission, and as sessions likewise. Exactly the
 * documented calls pass.
 */
import t, { type Test } from 'tap'
import type { ApplicationType, Permission } from '../../src/domain/permissions.js'
import { PERMISSIONS } from '../../src/domain/permissions.js'
import { authenticate } from '../../src/framework/authenticate.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import { createHandler, type Handler } from '../../src/http/handle.js'
import { completeService } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, permissionsOf, sampleOf, type TestVault } from './vault.js'

/** Every call and what it takes, written from the specification and not from the registry. */
const DOCUMENTED: Record<string, Permission[]> = {
  'POST /tokens': ['token:create'],
  'GET /tokens': ['token:read'],
  'GET /v2/tokens': ['token:read'],
  'POST /v2/tokens/search': ['token:search'],
  'GET /tokens/{id}': ['token:read'],
  'PATCH /tokens/{id}': ['token:update'],
  'DELETE /tokens/{id}': ['token:delete'],
  'POST /tokens/search': ['token:search'],
  'POST /tokenize': ['token:create'],
  'POST /detokenize': ['token:read'],
  'POST /tokens/{parent_id}/children/{child_id}': ['token:read'],
  'DELETE /tokens/{parent_id}/children/{child_id}': ['token:delete'],
  'POST /tokens/{parent_id}/children': ['token:create', 'token:read'],
  'GET /tokens/{parent_id}/children': ['token:read'],
  'POST /applications': ['application:create'],
  'GET /applications': ['application:read'],
  'GET /applications/{id}': ['application:read'],
  'PUT /applications/{id}': ['application:update'],
  'DELETE /applications/{id}': ['application:delete'],
  'POST /applications/{id}/regenerate': ['application:update'],
  'POST /applications/{application_id}/keys': ['application:create'],
  'GET /applications/{application_id}/keys': ['application:read'],
  'GET /applications/{application_id}/keys/{id}': ['application:read'],
  'DELETE /applications/{application_id}/keys/{id}': ['application:delete'],
  'GET /applications/key': [],
  'GET /permissions': [],
  'POST /sessions': [],
  'POST /sessions/authorize': [],
  'GET /logs': ['log:read'],
  'GET /logs/entity-types': ['log:read'],
  'GET /tenants/self': ['tenant:read'],
  'PUT /tenants/self': ['tenant:update'],
  'DELETE /tenants/self': ['tenant:delete'],
  'GET /tenants/self/reports/usage': ['report:read'],
  'GET /tenants/self/members': ['tenant:member:read'],
  'PUT /tenants/self/members/{id}': ['tenant:member:update'],
  'GET /roles': [],
  'DELETE /tenants/self/members/{id}': ['tenant:member:delete'],
  'POST /tenants/self/invitations': ['tenant:invitation:create'],
  'POST /tenants/self/invitations/{id}/resend': ['tenant:invitation:create', 'tenant:invitation:update'],
  'GET /tenants/self/invitations': ['tenant:invitation:read'],
  'GET /tenants/self/invitations/{id}': ['tenant:invitation:read'],
  'DELETE /tenants/self/invitations/{id}': ['tenant:invitation:delete'],
  'POST /reactor-formulas': ['reactor:create'],
  'GET /reactor-formulas': ['reactor:read'],
  'GET /reactor-formulas/{id}': ['reactor:read'],
  'PUT /reactor-formulas/{id}': ['reactor:update'],
  'DELETE /reactor-formulas/{id}': ['reactor:delete'],
  'POST /reactors': ['reactor:create'],
  'GET /reactors': ['reactor:read'],
  'POST /proxies': ['proxy:create'],
  'GET /proxies': ['proxy:read'],
  'GET /proxies/{id}': ['proxy:read'],
  'PUT /proxies/{id}': ['proxy:update'],
  'PATCH /proxies/{id}': ['proxy:update'],
  'DELETE /proxies/{id}': ['proxy:delete'],
  'GET /reactors/{id}': ['reactor:read'],
  'PUT /reactors/{id}': ['reactor:update'],
  'PATCH /reactors/{id}': ['reactor:update'],
  'DELETE /reactors/{id}': ['reactor:delete'],
  'POST /reactors/{id}/react': ['token:use', 'reactor:invoke'],
  'POST /reactors/{id}/react-async': ['token:use', 'reactor:invoke'],
  'GET /reactors/{id}/results/{request_id}': ['token:use', 'reactor:invoke'],
}

/** The calls for which one of their permissions is enough. */
const NEEDS_ONE = [
  'POST /reactors/{id}/react',
  'POST /reactors/{id}/react-async',
  'GET /reactors/{id}/results/{request_id}',
]

/** The calls that take the key of an application of this type, and no session. */
const ONLY_FOR: Record<string, ApplicationType> = {
  'POST /sessions': 'public',
  'POST /sessions/authorize': 'private',
}

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
  const service = { host: vault.app, registry, authenticate, version: '0.0.0' }
  return { handler: createHandler(completeService(service)), holders: await createHolders(vault) }
}

function requestOf(definition: RoutedOperation, key: string | undefined): Request {
  const { method, path, parameters, body: properties } = definition.endpoint
  const input = sampleOf(definition.input) as Record<string, unknown>
  const body = Object.fromEntries(Object.entries(input).filter(([name]) => name in properties))
  const target = parameters.reduce((text, name) => text.replace(`{${name}}`, 'unknown'), path)
  const hasBody = method !== 'GET' && method !== 'DELETE'
  return new Request(`http://localhost${target}`, {
    method,
    headers: {
      ...(key === undefined ? {} : { 'svc-api-key': key }),
      'content-type': definition.contentType ?? 'application/json',
    },
    ...(hasBody ? { body: JSON.stringify(body) } : {}),
  })
}

t.test('every operation is documented, and takes what is documented', async (t) => {
  for (const { route, permissions, needsOnePermission = false, onlyFor } of registry.routed) {
    t.equal(onlyFor, ONLY_FOR[route!], route!)
    t.strictSame([...permissions], DOCUMENTED[route!], route!)
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

for (const definition of registry.routed) {
  t.test(`${definition.route}: exactly the documented calls pass`, async (t) => {
    const needed = DOCUMENTED[definition.route!] ?? []
    let { handler, holders } = await open(t)
    const wrong: string[] = []
    let refused = 0
    for (let at = 0; at < holders.length; at++) {
      const { name, key, permissions, type, isPending = false } = holders[at]!
      const { status } = await handler(requestOf(definition, key))
      const held = needed.filter((permission) => permissions?.includes(permission))
      const least = NEEDS_ONE.includes(definition.route!) ? 1 : needed.length
      const only = ONLY_FOR[definition.route!] ?? type
      const may = permissions !== undefined && held.length >= least && type === only && !isPending
      const expected = permissions === undefined ? status === 401 : may !== (status === 403) && status !== 401
      if (!expected || status >= 500) wrong.push(`${name}: ${status}`)
      if (!may) refused++
      // What passed may have taken the tenant away, and with it the keys of those who come next.
      if (may && definition.destroys !== undefined) ({ handler, holders } = await open(t))
    }
    t.strictSame(wrong, [])
    t.ok(refused >= 5 && refused < holders.length, 'some were refused, some were not')
  })
}
