import t from 'tap'
import { createHandler, openTestVault, startServer } from '../src/index.js'
import { createApplication } from '../src/operations/application.js'
import { perform } from '../src/operations/perform.js'

async function openWithKey() {
  const app = await openTestVault()
  const owner = await app.owner({ reveal: false })
  const input = { name: 'test', type: 'private', permissions: ['token:create', 'token:read'] }
  const { result } = await perform(app, owner, createApplication, input, 'trace')
  return { app, key: (result as { key: string }).key }
}

t.test('an embedded handler answers requests without a port', async (t) => {
  const { app, key } = await openWithKey()
  t.teardown(() => app.close())
  const handle = createHandler(app)
  const headers = { 'svc-api-key': key, 'content-type': 'application/json' }
  const body = JSON.stringify({ type: 'card_number', data: '4242424242424242' })
  const created = await handle(new Request('http://localhost/tokens', { method: 'POST', headers, body }))
  t.equal(created.status, 201)
  const { id, data } = (await created.json()) as { id: string; data: string }
  t.equal(data, 'XXXXXXXXXXXX4242')
  const got = await handle(new Request(`http://localhost/tokens/${id}`, { headers }))
  t.match(await got.json(), { id, data: 'XXXXXXXXXXXX4242' })
  t.equal((await handle(new Request('http://localhost/tokens'))).status, 401, 'without a key')
})

t.test('an embedded server answers on a port of its own', async (t) => {
  const { app, key } = await openWithKey()
  const server = await startServer(app, { port: 0 }, { prefix: 'bt' })
  const answer = await fetch(`http://localhost:${server.port}/tokens`, { headers: { 'bt-api-key': key } })
  t.match(await answer.json(), { pagination: { total_items: 0 }, data: [] })
  await server.stop()
  await app.close()
})
