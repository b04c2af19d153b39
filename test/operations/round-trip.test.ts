/**
 * The body of a response to GET is a valid body of PUT. A part of that body is a valid body of PATCH. Sending these
 * bodies back changes nothing.
 */
import t, { type Test } from 'tap'
import type { RoutedOperation } from '../../src/framework/registry.js'
import type { Handler } from '../../src/http/handler.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, permissionsOf, type TestVault } from '../support/test-vault.js'
import { FORMULA, serve } from './documented.js'

type Json = Record<string, unknown>
type Make = (vault: TestVault) => Promise<string>

const CODE = 'module.exports = async ({ args }) => args'
const DESTINATION = { name: 'p', destination_url: 'https://api.example.com/v1' }
const RULE = { priority: 1, container: '/pci/', transform: 'mask', permissions: ['token:read'] }
const MASK = { type: 'mask', matcher: 'regex', expression: '([0-9]{12})', replacement: '*' }
const HEADER = { type: 'append_header', options: { value: 'x', location: 'x-added' } }
const PARAMETERS = { configuration: [{ name: 'KEY', type: 'string', description: 'A key.' }] }

const made =
  (operation: string, ...inputs: (Json | ((vault: TestVault) => Promise<Json>))[]): Make =>
  async (vault) => {
    const given = await Promise.all(inputs.map((each) => (typeof each === 'function' ? each(vault) : each)))
    return ((await vault.ask(operation, Object.assign({}, ...given))) as { id: string }).id
  }
const makeCode = made('reactor create', { name: 'r', code: CODE })
const makeFormula = made('formula create', { ...FORMULA, ...PARAMETERS })
const withApplication = async (vault: TestVault) => ({
  application: { id: (await vault.createApplication('private', { permissions: ['token:read'] })).id },
})

/** For each noun, records that together have every attribute. Every noun with PUT or PATCH must be in this list. */
const MAKE: Record<string, Make[]> = {
  app: [
    made('app create', { name: 'a', type: 'private', permissions: ['token:read', 'token:create'] }),
    made('app create', {
      ...{ name: 'a', type: 'private', expires_at: '2031-01-01T00:00:00Z' },
      rules: [RULE, { ...RULE, priority: 2, container: '/', description: 'the rest' }],
    }),
  ],
  formula: [
    makeFormula,
    made('formula create', FORMULA, {
      ...{ description: 'A formula.', icon: 'data:image/png;base64,iVBORw0KGgo=' },
      request_parameters: [{ name: 'card.number', type: 'string', optional: true }],
    }),
  ],
  member: [
    async ({ app, clock, ask }) => {
      const { id: tenant_id, owner_id: user_id } = await ask('tenant get')
      const { number } = await app.tenant()
      const created_at = new Date(clock.now).toISOString()
      const member = { id: app.createUuid(), tenant_id, role: 'READ_ONLY' as const, user_id, created_at }
      await app.store.write(async (store) => store.insert('member', number, member))
      return member.id
    },
  ],
  proxy: [
    made('proxy create', DESTINATION),
    made('proxy create', DESTINATION, withApplication, {
      ...{ configuration: { KEY: 'value' }, require_auth: false, disable_detokenization: true },
      request_transform: { type: 'code', code: CODE },
      response_transforms: [MASK],
    }),
    made('proxy create', DESTINATION, {
      request_transforms: [{ type: 'code', code: CODE }, HEADER],
      response_transforms: [MASK, HEADER],
    }),
    made('proxy create', DESTINATION, async (vault) => ({
      request_reactor_id: await makeCode(vault),
      response_reactor_id: await makeCode(vault),
    })),
  ],
  reactor: [
    makeCode,
    made('reactor create', withApplication, {
      ...{ name: 'r', code: CODE, configuration: { KEY: 'value' }, runtime: { timeout: 5 } },
    }),
    made('reactor create', async (vault) => ({
      ...{ name: 'r', formula: { id: await makeFormula(vault) }, configuration: { KEY: 'value' } },
    })),
  ],
  tenant: [
    async ({ ask }) => {
      const settings = { deduplicate_tokens: 'true', disable_ephemeral_proxy: 'false' }
      return (await ask('tenant update', { name: 'whole', settings })).id
    },
  ],
  'tenant set-security-contact': [made('tenant set-security-contact', { email: 'ada@example.com' })],
  'tenant merchant patch': [
    made('tenant merchant create', { name: 'plain' }),
    made('tenant merchant create', {
      name: 'whole',
      details: {
        merchant: { full_legal_name: 'Shop Ltd', contact: { email: 'ada@example.com' } },
        card_network_info: { visa: { acquirer_bin: '000000999' } },
      },
    }),
  ],
  token: [
    made('token create', { type: 'card', data: { number: '4242424242424242', expiration_month: 1 } }),
    made('token create', {
      ...{ type: 'token', data: { a: 'secret' }, mask: { a: '{{ data.a | last4 }}' }, metadata: { a: 'b' } },
      ...{ containers: ['/pci/'], search_indexes: ['{{ data.a }}'], fingerprint_expression: '{{ data.a }}' },
      expires_at: '2031-01-01T00:00:00Z',
    }),
  ],
  webhook: [
    made('webhook create', { name: 'w', url: 'https://example.com/events', events: ['token.created'] }),
    async (vault) => {
      const address = { url: 'https://example.com/a?b=c', notify_email: 'ada@example.com' }
      const input = { name: 'w', ...address, events: ['token.created', 'token.read'] }
      const id = await made('webhook create', input)(vault)
      await vault.ask('webhook update', { id, ...input, status: 'disabled' })
      return id
    },
  ],
}

/**
 * `given`: names of attributes in requests, if responses use other names. `lost`: the names in responses. A PUT of a
 * response therefore removes these attributes.
 */
const RENAMED: Record<string, { given: string[]; lost: string[] }> = {
  proxy: { given: ['application'], lost: ['application_id'] },
}
/** Attributes that request bodies have, but responses never have. */
const NOT_SHOWN: Record<string, string[]> = { token: ['deduplicate_token'] }

interface World {
  vault: TestVault
  ask(line: string, body?: unknown, type?: string): Promise<{ status: number; body: Json }>
}

/** Opens a vault with a caller that has all permissions and sees unmasked data. */
async function open(t: Test): Promise<World> {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const handler: Handler = serve(vault)
  const rules = [
    { priority: 1, container: '/', transform: 'reveal' as const, permissions: permissionsOf('private') },
  ]
  const keys = {
    tokens: (await vault.createApplication('private', { rules })).key,
    rest: (await vault.createApplication('management', { permissions: permissionsOf('management') })).key,
  }
  return {
    vault,
    async ask(line, body, type = 'application/json') {
      const [method = '', path = ''] = line.split(' ')
      const headers = {
        'svc-api-key': path.startsWith('/tokens') ? keys.tokens : keys.rest,
        ...(body !== undefined && { 'content-type': type }),
      }
      const sent = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
      const answer = await handler(new Request(`http://localhost${path}`, sent))
      const text = await answer.text()
      return { status: answer.status, body: text === '' ? {} : JSON.parse(text) }
    },
  }
}

function pathOf({ path }: RoutedOperation['endpoint'], id: string): string {
  return path.replace('{tenant_id}', 'self').replace('{id}', id)
}

/** Returns the record as GET answers it. Members have no GET, so a member is read from the list. */
async function read({ ask }: World, { endpoint }: RoutedOperation, id: string): Promise<Json> {
  const path = pathOf(endpoint, id)
  const hasOwn = registry.routed.some(
    ({ endpoint: other }) => other.method === 'GET' && other.path === endpoint.path,
  )
  if (hasOwn) return (await ask(`GET ${path}`)).body
  const { body } = await ask(`GET ${endpoint.path.replace('/{id}', '')}?size=50`)
  return (body.data as Json[]).find((each) => each.id === id)!
}

function without(thing: Json, names: readonly string[] = []): Json {
  const ignored = ['modified_at', 'modified_by', ...names]
  return Object.fromEntries(Object.entries(thing).filter(([name]) => !ignored.includes(name)))
}

const withMethod = (method: string) => registry.routed.filter(({ endpoint }) => endpoint.method === method)

/**
 * A PUT of these operations takes only a part of the record, or the record in another form. The response to `3ds
 * update` has the form of the response to a creation. A PUT of domains takes only the names of the domains, and a GET
 * also shows the status of each domain.
 */
const PARTIAL = ['3ds update', 'tenant transfer-owner', 'apple-pay domain replace']

t.test('a PUT of the body of GET changes nothing', async (t) => {
  const all = withMethod('PUT').filter(({ name }) => !PARTIAL.includes(name))
  t.ok(all.length >= 7, `${all.length} operations`)
  for (const operation of all) {
    const world = await open(t)
    const { noun, endpoint, name } = operation
    const { given = [], lost = [] } = RENAMED[noun] ?? {}
    const shown = new Set<string>(given)
    for (const make of MAKE[name] ?? MAKE[noun] ?? []) {
      const id = await make(world.vault)
      const before = await read(world, operation, id)
      for (const property of Object.keys(before)) shown.add(property)
      const { status, body } = await world.ask(`PUT ${pathOf(endpoint, id)}`, before)
      t.equal(status, 200, `${name}: ${JSON.stringify(body)}`)
      t.strictSame(without(body), without(before, lost), `${name} has the same response as before`)
      t.strictSame(
        without(await read(world, operation, id)),
        without(before, lost),
        `${name} stores the same record as before`,
      )
    }
    const missing = Object.keys(endpoint.body).filter((property) => !shown.has(property))
    t.strictSame(missing, [], `${name}: add each missing attribute to a sample in MAKE`)
  }
})

t.test('a PATCH with the patchable part of the body of GET changes nothing', async (t) => {
  const all = withMethod('PATCH')
  t.ok(all.length >= 3, `${all.length} operations`)
  for (const operation of all) {
    const world = await open(t)
    const { noun, endpoint, name, http } = operation
    const shown = new Set<string>([...(RENAMED[noun]?.given ?? []), ...(NOT_SHOWN[noun] ?? [])])
    for (const make of MAKE[name] ?? MAKE[noun] ?? []) {
      const id = await make(world.vault)
      const before = await read(world, operation, id)
      const patch = Object.fromEntries(
        Object.entries(before).filter(([property]) => property in endpoint.body),
      )
      for (const property of Object.keys(patch)) shown.add(property)
      const path = pathOf(endpoint, id)
      const { status, body } = await world.ask(`PATCH ${path}`, patch, http?.body?.types?.[0])
      t.equal(status, endpoint.success, `${name}: ${JSON.stringify(body)}`)
      t.strictSame(
        without(await read(world, operation, id)),
        without(before),
        `${name} stores the same record as before`,
      )
    }
    const missing = Object.keys(endpoint.body).filter((property) => !shown.has(property))
    t.strictSame(missing, [], `${name}: each attribute occurred in a sample`)
  }
})
