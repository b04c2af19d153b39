import t, { type Test } from 'tap'
import { registry } from '../../src/operations/all.js'
import { createHandler } from '../support/service.js'
import { openTestVault, permissionsOf, sampleOf } from '../support/test-vault.js'

/** Each area that is left out: a path of it, and what the detail names. Written from the decision, not from the table. */
const OUT: Record<string, string> = {
  '/webhooks': 'Webhooks',
  '/token-intents': 'Token intents',
  '/3ds': '3-D Secure',
  '/apple-pay': 'Apple Pay',
  '/google-pay': 'Google Pay',
  '/enrichments': 'Enrichment',
  '/documents': 'Documents',
  '/keys': 'Keys for encryption',
  '/network-tokens': 'Network tokens',
  '/account-updater': 'Account updater',
  '/agentic': 'Payments by agents',
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
  const ask = async (
    method: string,
    path: string,
    key?: string,
    body?: unknown,
    type = 'application/json',
  ) => {
    const headers = { 'content-type': type, ...(key === undefined ? {} : { 'svc-api-key': key }) }
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const answer = await handle(new Request(`http://localhost${path}`, init))
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
  return { vault, ask, keyFor, keys }
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

t.test('what is merely missing is never answered with 5xx, which clients would retry', async (t) => {
  const { ask, keyFor } = await start(t)
  for (const { endpoint, permissions, input, wholeBody, contentType } of registry.routed) {
    const { method, path, body, parameters, takesBody } = endpoint
    if (parameters.length === 0) continue
    const required = (input.required as readonly string[]).filter((name) => name in body)
    const sample = sampleOf({ ...input, properties: body, required })
    const sent = wholeBody === undefined ? sample : (sample as Record<string, unknown>)[wholeBody]
    for (const id of ['9a1f6a2e-4b1c-4d55-8e0f-0b7a3f0c1d2e', 'no-such-id', 'x'.repeat(1_000)]) {
      const target = path.replaceAll(/\{[^}]*\}/g, id)
      const { status } = await ask(
        method,
        target,
        keyFor(permissions),
        takesBody ? sent : undefined,
        contentType,
      )
      t.ok([400, 404].includes(status), `${method} ${path}: ${status}`)
    }
  }
  for (const path of ['/nothing', '/tokens/a/b/c/d', '/%00', '/%zz', '/tokens//'])
    for (const method of [...METHODS, 'OPTIONS', 'PROPFIND'])
      t.ok((await ask(method, path)).status < 500, `${method} ${path}`)
})

t.test('lists ignore a start beside the page, and end with an empty page', async (t) => {
  const { ask, keyFor } = await start(t)
  const lists = registry.routed.filter(
    ({ endpoint: { method, query } }) => method === 'GET' && 'page' in query && !('start' in query),
  )
  t.ok(lists.length >= 7)
  for (const { endpoint, permissions, name } of lists) {
    if (endpoint.parameters.length > 0) continue
    const key = keyFor(permissions)
    const read = (query: string) => ask('GET', `${endpoint.path}?${query}`, key)
    const plain = await read('page=1&size=2')
    t.equal(plain.status, 200, name)
    for (const start of ['start=', 'start=abc', 'start=%7B%7D', 'start=a&start=b'])
      t.match(
        await read(`page=1&size=2&${start}`),
        { status: 200, json: { pagination: { page_number: 1 } } },
        name,
      )
    t.match(await read('page=999&size=2&start=abc'), { status: 200, json: { data: [] } }, name)
  }
})
