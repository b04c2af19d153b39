import t, { type Test } from 'tap'
import { registry } from '../../src/operations/all.js'
import { createHandler } from '../support/service.js'
import { openTestVault, permissionsOf } from '../support/test-vault.js'

/** Each area that is left out: a path of it, and what the detail names. Written from the decision, not from the table. */
const OUT: Record<string, string> = {
  '/3ds': '3-D Secure',
  '/apple-pay': 'Apple Pay',
  '/google-pay': 'Google Pay',
  '/enrichments': 'Enrichment',
  '/documents': 'Documents',
  '/keys': 'Keys for encryption',
  '/network-tokens': 'Network tokens',
  '/account-updater': 'Account updater',
  '/agentic': 'Payments by agents',
  '/ai': 'Payments by agents',
  '/issuers': 'Enrichment',
  '/atomic': 'before 2022',
  '/connections': 'Connections',
  '/application-templates': 'Application templates',
  '/tenants/self/connections': 'Connections',
  '/tenants/self/merchants': 'Merchants',
  '/tenants/0d7f2bb0-52f5-4d6b-9f0d-6a6f7c1e2b3a/merchants': 'Merchants',
  '/tenants/self/owner': 'Owner',
  '/tenants/self/security-contact': 'security contact',
}
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const TYPES = ['public', 'private', 'management'] as const

async function start(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const handle = createHandler(vault.app)
  const ask = async (method: string, path: string, key?: string) => {
    const headers: Record<string, string> = key === undefined ? {} : { 'svc-api-key': key }
    const answer = await handle(new Request(`http://localhost${path}`, { method, headers }))
    const text = await answer.text()
    return { status: answer.status, json: text === '' ? undefined : JSON.parse(text) }
  }
  const keys: Record<string, string> = {}
  for (const type of TYPES)
    keys[type] = (await vault.createApplication(type, { permissions: permissionsOf(type) })).key
  /** The key of an application that may perform the operation. */
  const keyFor = (permissions: readonly string[]) =>
    TYPES.filter((type) => permissions.every((each) => permissionsOf(type).includes(each as never)))
      .map((type) => keys[type])
      .at(-1)
  return { ask, keyFor, keys }
}

t.test('a path of an area that is left out says so, with and without a key', async (t) => {
  const { ask, keys } = await start(t)
  for (const [path, area] of Object.entries(OUT)) {
    for (const below of ['', '/', '/x', '/x/y/z', '?page=1'])
      for (const key of [undefined, 'key_unknown', keys.management]) {
        const { status, json } = await ask('GET', path + below, key)
        t.match(
          [status, json],
          [404, { status: 404, title: 'Not Emulated', type: 'urn:coffer:problem:not-emulated' }],
          path + below,
        )
        t.match(json.detail, area)
      }
    for (const method of METHODS) t.equal((await ask(method, path)).json.title, 'Not Emulated', method)
  }
})

t.test('what only looks like such a path is unknown', async (t) => {
  const { ask } = await start(t)
  for (const path of [
    '/webhook',
    '/webhooksx',
    '/x/webhooks',
    '/Webhooks',
    '/tenants/self/ownership',
    '/tenants',
  ])
    t.match(await ask('GET', path), { status: 404, json: { title: 'Not Found' } }, path)
})

t.test('lists ignore a start beside the page, and end with an empty page', async (t) => {
  const { ask, keyFor } = await start(t)
  const lists = registry.routed.filter(
    ({ endpoint: { method, query, parameters } }) =>
      method === 'GET' && 'page' in query && !('start' in query) && parameters.length === 0,
  )
  t.ok(lists.length >= 6)
  for (const { endpoint, permissions, name } of lists)
    for (const query of ['page=1&size=2', 'page=1&start=%7B%7D&start=b', 'page=999&size=2&start=abc']) {
      const { status, json } = await ask('GET', `${endpoint.path}?${query}`, keyFor(permissions))
      t.match([status, json.pagination.page_number], [200, Number(/\d+/.exec(query)![0])], name)
      if (query.startsWith('page=999')) t.same(json.data, [], name)
    }
})

t.test(
  'paths from before answer: a ping without a look at the key, and a report under its other name',
  async (t) => {
    const { ask, keys } = await start(t)
    for (const key of [undefined, 'key_unknown', keys.public])
      t.same(await ask('GET', '/ping', key), { status: 200, json: undefined })
    t.equal((await ask('POST', '/ping')).status, 405)
    const usage = await ask('GET', '/tenants/self/reports/usage', keys.management)
    t.match(usage, { status: 200, json: { total_tokens: 0 } })
    t.same(await ask('GET', '/tenants/self/reports/operations', keys.management), usage)
    t.equal((await ask('GET', '/tenants/self/reports/operations', keys.private)).status, 403)
    t.equal((await ask('GET', '/tenants/self/reports/operations')).status, 401)
    t.equal((await ask('POST', '/tenants/self/reports/operations', keys.management)).status, 405)
  },
)
