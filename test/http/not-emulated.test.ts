/** Paths of areas that are not emulated, and paths and parameters of older API versions. */
import t, { type Test } from 'tap'
import { registry } from '../../src/operations/all.js'
import { createHandler } from '../support/service.js'
import { openTestVault, permissionsOf } from '../support/test-vault.js'

/**
 * Paths that are not emulated, each with the area that the problem document must name. The list is written by hand, so
 * that it is independent of the table in the program.
 */
const OUT: Record<string, string> = {
  '/agentic /ai': 'Payments by agents',
  '/atomic': 'before 2022',
  '/connections /tenants/self/connections': 'Connections',
  '/tenants/self/merchants/x/services /tenants/0d7f2bb0-52f5-4d6b-9f0d-6a6f7c1e2b3a/merchants/x/services':
    'Services of merchants',
}

async function start(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const handle = createHandler(vault.app)
  const ask = async (line: string, key = '') => {
    const [method = '', path = ''] = line.split(' ')
    const headers = { 'svc-api-key': key }
    const answer = await handle(new Request(`http://localhost${path}`, { method, headers }))
    const text = await answer.text()
    return { status: answer.status, json: text === '' ? undefined : JSON.parse(text) }
  }
  const keyOf = async (type: 'private' | 'management') =>
    (await vault.createApplication(type, { permissions: permissionsOf(type) })).key
  return { ask, keys: { private: await keyOf('private'), management: await keyOf('management') } }
}

t.test(
  'a request for an area that is not emulated gets an error that says this, with and without a key',
  async (t) => {
    const { ask, keys } = await start(t)
    const problem = { status: 501, title: 'Not Emulated', type: 'urn:coffer:problem:not-emulated' }
    for (const [paths, area] of Object.entries(OUT))
      for (const path of paths.split(' ')) {
        for (const below of ['', '/', '/x/y/z', '?page=1'])
          t.match(
            await ask(`PATCH ${path}${below}`),
            { status: 501, json: { ...problem, detail: area } },
            path + below,
          )
        t.match((await ask(`GET ${path}`, keys.management)).json, problem, path)
      }
    for (const path of ['/webhooksx', '/x/webhooks', '/Webhooks', '/tenants/self/ownership', '/tenants'])
      t.match(await ask(`GET ${path}`), { status: 404, json: { title: 'Not Found' } }, path)
  },
)

t.test(
  'a list by page number ignores the parameter start, and a page after the last page is empty',
  async (t) => {
    const { ask, keys } = await start(t)
    const lists = registry.routed.filter(
      ({ endpoint: { method, query, parameters } }) =>
        method === 'GET' && 'page' in query && !('start' in query) && parameters.length === 0,
    )
    t.ok(lists.length >= 6)
    for (const { endpoint, access } of lists) {
      const isManaged = access.permissions.some((each) =>
        (permissionsOf('management') as string[]).includes(each),
      )
      const key = isManaged ? keys.management : keys.private
      const { status, json } = await ask(`GET ${endpoint.path}?page=999&size=2&start=%7B%7D&start=b`, key)
      t.match([status, json.pagination.page_number, json.data], [200, 999, []], endpoint.path)
    }
  },
)

t.test('/ping still needs no key, and the usage report still has a second path', async (t) => {
  const { ask, keys } = await start(t)
  for (const key of ['', 'key_unknown', keys.private])
    t.same(await ask('GET /ping', key), { status: 200, json: undefined })
  t.equal((await ask('POST /ping')).status, 405)
  const usage = await ask('GET /tenants/self/reports/usage', keys.management)
  t.match(usage, { status: 200, json: { total_tokens: 0 } })
  t.same(await ask('GET /tenants/self/reports/operations', keys.management), usage)
  t.equal((await ask('GET /tenants/self/reports/operations', keys.private)).status, 403)
})
