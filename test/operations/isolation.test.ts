/**
 * Tenants are walls: two tenants of one vault with the same ids, data and names. Whatever one asks for, by every id of
 * the other, tells nothing of the other and changes nothing in it.
 */
import t from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { Caller } from '../../src/framework/caller/caller.js'
import type { ObjectSchema } from '../../src/framework/schema.js'
import { registry } from '../../src/operations/all.js'
import { openTestVault, permissionsOf, sampleOf, type TestVault } from './vault.js'

interface Item {
  id: string
  key?: string
  fingerprint?: string
}

interface Side {
  name: string
  tenantId: string
  callers: (() => Promise<Caller>)[]
  /** Everything of it that could be asked for. */
  ids: string[]
  /** Texts that are nobody else's: drawn ids, keys, fingerprints. */
  own: string[]
}

const DATA = { number: '4242424242424242', expiration_year: 2031 }

/** The same in each tenant, but for what is drawn. */
async function populate(vault: TestVault, name: string): Promise<Side> {
  const { app, ask, createApplication } = vault
  const { id: tenantId } = (await ask('tenant get', {}, name)) as Item
  const all = { permissions: permissionsOf('private') }
  const reader = await createApplication('private', all, name)
  const manager = await createApplication('management', { permissions: permissionsOf('management') }, name)
  const tokens: Item[] = []
  for (const id of ['customer-42', 'note-1', undefined]) {
    const input = { type: 'card', data: DATA, metadata: { customer: '42' }, ...(id && { id }) }
    tokens.push((await ask('token create', input, name)) as Item)
  }
  const [parent, child, drawn] = tokens as [Item, Item, Item]
  await ask('token link', { parent_id: parent.id, child_id: child.id }, name)
  const member = (await ask('member list', {}, name)) as { data: Item[] }
  const code = 'module.exports = async () => ({})'
  const formula = (await ask('formula create', { name: 'f', type: 'private', code }, name)) as Item
  const setUp = { name: 'r', formula: { id: formula.id }, configuration: {} }
  const reactor = (await ask('reactor create', setUp, name)) as Item
  const invitation = (await ask('invite create', { email: 'ada@example.com' }, name)) as Item
  const others = [formula, reactor, invitation, ...member.data].map(({ id }) => id)
  const drawnIds = [drawn.id, reader.id, manager.id, tenantId, ...others]
  return {
    name,
    tenantId,
    callers: [
      () => authenticate(app, reader.key),
      () => authenticate(app, manager.key),
      () => app.owner({ reveal: true, tenant: name }),
    ],
    ids: drawnIds,
    own: [...drawnIds, reader.key, manager.key, ...tokens.map(({ fingerprint }) => fingerprint!)],
  }
}

/** All that the owner can see of a tenant. Its log is left out, for looking writes to it. */
async function describe({ ask }: TestVault, { name }: Side): Promise<string> {
  const lists = registry.routed.filter(({ endpoint: { method, parameters }, name }) => {
    return method === 'GET' && parameters.length === 0 && !['log list', 'app whoami'].includes(name)
  })
  const seen = []
  for (const definition of lists) seen.push(await ask(definition.name, {}, name))
  const children = await ask('token children', { parent_id: 'customer-42' }, name)
  return JSON.stringify([seen, children])
}

async function openTwo() {
  const vault = await openTestVault()
  await vault.createTenant('other')
  const ours = await populate(vault, 'default')
  const theirs = await populate(vault, 'other')
  return { vault, ours, theirs }
}

t.test('equal data has unrelated fingerprints in two tenants', async (t) => {
  const { ours, theirs } = await openTwo()
  t.ok(ours.own.length > 5)
  t.strictSame(
    ours.own.filter((text) => theirs.own.includes(text)),
    [],
  )
})

t.test('no operation reaches anything of another tenant by its id', async (t) => {
  const { vault, ours, theirs } = await openTwo()
  await describe(vault, theirs)
  const before = await describe(vault, theirs)
  const wrong: string[] = []
  let asked = 0
  for (const definition of registry.routed) {
    const { parameters } = definition.endpoint
    if (parameters.length === 0) continue
    for (const id of theirs.ids) {
      // The other end of a link is our own, so that nothing but the foreign id can be what is refused.
      for (const foreign of parameters) {
        const path = Object.fromEntries(
          parameters.map((name) => [name, name === foreign ? id : 'customer-42']),
        )
        const input = { ...(sampleOf(definition.input) as object), ...path }
        const status = await vault.statusOf(ours.callers[2]!, definition.name, input)
        asked++
        // Of an invitation, formula or reactor the body is refused before anybody looks for the id.
        if (status !== 404 && status !== 400) wrong.push(`${definition.name} ${foreign}: ${status}`)
      }
    }
  }
  t.ok(asked > 50, `${asked} calls`)
  t.strictSame(wrong, [])
  t.equal(await describe(vault, theirs), before, 'nothing of the other tenant has changed')
})

t.test('no answer holds a text that is the other tenant’s', async (t) => {
  const { vault, ours, theirs } = await openTwo()
  const found: string[] = []
  let answered = 0
  for (const definition of registry.routed.filter(({ destroys }) => destroys === undefined)) {
    for (const caller of ours.callers) {
      const filters = [{}, { id: theirs.ids }, { entity_id: theirs.ids[0] }, { query: `id:${theirs.ids[0]}` }]
      for (const filter of filters) {
        const { parameters } = definition.endpoint
        const path = Object.fromEntries(parameters.map((name) => [name, 'customer-42']))
        const input = {
          ...(sampleOf(definition.input) as object),
          ...path,
          ...pick(filter, definition.input),
        }
        const answer = await vault.textOf(caller, definition.name, input)
        answered++
        const leaked = theirs.own.filter((text) => answer.includes(text))
        if (leaked.length > 0) found.push(`${definition.name}: ${leaked.join(', ')}`)
      }
    }
  }
  t.ok(answered > 50, `${answered} answers`)
  t.strictSame(found, [])
})

t.test('what another tenant has is not told by what can be created', async (t) => {
  const { vault, ours, theirs } = await openTwo()
  const id = theirs.ids[0]!
  const input = { id, type: 'card', data: DATA, deduplicate_token: false }
  t.equal(
    await vault.statusOf(ours.callers[0]!, 'token create', input),
    201,
    'an id that exists there is free here',
  )
  const shared = { type: 'token', data: 'only there', deduplicate_token: true }
  await vault.ask('token create', shared, 'other')
  t.equal(
    await vault.statusOf(ours.callers[0]!, 'token create', shared),
    201,
    'no duplicate of what is there',
  )
  const renamed = await vault.statusOf(ours.callers[1]!, 'tenant update', { name: 'other' })
  t.equal(renamed, 200, 'its name may be taken')
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
  const again = (await vault.ask('token list', {}, 'other')) as { data: unknown[] }
  t.strictSame(again.data, [], 'a new tenant of the same name is empty')
  const logs = (await vault.ask('log list', {}, 'other')) as { data: { message: string }[] }
  t.strictSame(
    logs.data.map(({ message }) => message),
    ['Tenant created'],
  )
})

function pick(filter: Record<string, unknown>, { properties = {} }: ObjectSchema) {
  return Object.fromEntries(Object.entries(filter).filter(([name]) => name in properties))
}
