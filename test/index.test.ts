import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createHandler, createVault, openTestVault, openVault, startServer } from '../src/index.js'

async function openWithKey() {
  const app = await openTestVault()
  const input = { name: 'test', type: 'private', permissions: ['token:create', 'token:read'] }
  // Typed by the operation's declaration.
  const { result } = await app.ask({ operation: 'app create', input, as: { reveal: false } })
  return { app, key: result.key! }
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

t.test('a vault whose server cannot listen for commands is let go, and opens later', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'coffer-index-'))
  const { TMPDIR } = process.env
  t.teardown(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
    rmSync(root, { recursive: true, force: true })
  })
  // Too long for a socket of its own, which then lies among the temporary files.
  const directory = join(root, 'long'.repeat(30))
  const place = { directory, pid: process.pid, notice: () => {}, role: 'server' } as const
  let text = ''
  const save = async (_: string, key: string) => {
    text = key
  }
  const open = () => openVault(place, async () => ({ kind: 'key-file', text }))
  process.env.TMPDIR = join(root, 'missing')
  await t.rejects(createVault(place, 'first', { kind: 'key-file', save }), { code: 'storage_failed' })
  await t.rejects(open(), { code: 'storage_failed' })
  process.env.TMPDIR = root
  const app = await open()
  t.equal((await app.tenant()).name, 'first')
  await app.close()
})

t.test('the scheme of an address says where a vault is kept', async (t) => {
  const locate = (directory: string) => ({ directory, pid: process.pid, notice: () => {} })
  const opener = { kind: 'passphrase', passphrase: 'correct horse battery' } as const
  const app = await createVault(locate('memory:'), 'first', opener)
  t.equal((await app.tenant()).name, 'first')
  t.throws(() => app.maintenance(), { code: 'unprocessable' })
  await app.close()
  await t.rejects(
    openVault(locate('memory:'), async () => opener),
    { code: 'vault_missing' },
  )
  const unknown = { code: 'usage', message: /postgres:.*a directory, or memory:/ }
  await t.rejects(createVault(locate('postgres://host/name'), 'first', opener), unknown)
  await t.rejects(
    openVault(locate('postgres://host/name'), async () => opener),
    unknown,
  )
})
