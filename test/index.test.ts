import { writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import t from 'tap'
import { type Coffer, createHandler, openTestVault, openVault, startServer } from '../src/index.js'
import { createVault } from '../src/vault/open.js'

const CARD = JSON.stringify({ type: 'card_number', data: '4242424242424242' })

function postCard(vault: Pick<Coffer, 'fetch' | 'keys'>, header = 'svc-api-key'): Promise<Response> {
  const headers = { [header]: vault.keys.private!, 'content-type': 'application/json' }
  return vault.fetch('/tokens', { method: 'POST', headers, body: CARD })
}

t.test('a vault in memory has keys, and answers requests without a socket', async (t) => {
  await using vault = await openTestVault()
  t.same(Object.keys(vault.keys).sort(), ['management', 'private', 'public'])
  const created = await postCard(vault)
  t.equal(created.status, 201)
  const { id, data, tenant_id } = (await created.json()) as Record<string, string>
  t.equal(data, 'XXXXXXXXXXXX4242')
  t.equal(tenant_id, vault.tenant.id)
  t.equal((await vault.fetch('/tokens')).status, 401, 'a request without a key is refused')
  const headers = { 'svc-api-key': vault.keys.private! }
  const handle = createHandler(vault)
  t.match(await (await handle(new Request(`http://localhost/tokens/${id}`, { headers }))).json(), {
    data: '4242424242424242',
  })
  const other = createHandler(vault, { prefix: 'bt' })
  t.equal((await other(new Request('http://localhost/tokens', { headers }))).status, 401, 'another prefix')
})

t.test(
  'operations can be called by name with their declared types, as owner or as application',
  async (t) => {
    await using vault = await openTestVault()
    const token = await vault.ask('token create', JSON.parse(CARD) as Record<string, unknown>)
    t.match(await vault.ask('token get', { id: token.id }), { data: 'XXXXXXXXXXXX4242' })
    t.match(await vault.ask('token get', { id: token.id }, { reveal: true }), { data: '4242424242424242' })
    const asPublic = vault.ask('token get', { id: token.id }, { key: vault.keys.public! })
    await t.rejects(asPublic, { code: 'forbidden' })
    await vault.ask('tenant create', { name: 'second' })
    const { pagination } = await vault.ask('token list', {}, { tenant: 'second' })
    t.equal(pagination.total_items, 0)
  },
)

t.test('a server listens on its own port, and closes the vault that it opened', async (t) => {
  const server = await startServer({ prefix: 'bt' })
  t.equal(server.url, `http://localhost:${server.port}`)
  const headers = { 'bt-api-key': server.keys.private! }
  const answer = await fetch(`${server.url}/tokens`, { headers })
  t.match(await answer.json(), { pagination: { total_items: 0 }, data: [] })
  t.equal(
    (await postCard(server, 'bt-api-key')).status,
    201,
    'the vault is closed for calls without a socket too',
  )
  await Promise.all([server.stop(), server.stop()])
  await t.rejects(fetch(`${server.url}/tokens`, { headers }))
  await t.rejects(server.ask('token list'))

  const vault = await openTestVault()
  const first = await startServer({ vault })
  const second = await startServer({ vault })
  t.not(first.port, second.port)
  await first.stop()
  t.equal((await postCard(second)).status, 201, 'a vault that was passed to the server is not closed')
  await second.stop()
  await t.rejects(startServer({ vault, addresses: ['192.0.2.1'] }), { code: 'unavailable' })
  t.equal((await postCard(vault)).status, 201)
  await vault.stop()
  await t.rejects(startServer({ vault: {} as Coffer }), TypeError)
})

t.test('the error for an unknown option names the option', async (t) => {
  const unknown = { allownet: ['a.example'], reactors: {}, seed: undefined }
  const message = /^Unknown options: allownet, reactors\. Known options: .*allowNet/
  const opens: ((options: never) => Promise<Coffer>)[] = [openTestVault, startServer, openVault]
  for (const open of opens) await t.rejects(open(unknown as never), { code: 'usage', message }, open.name)
  await using vault = await openTestVault({ allowNet: ['a.example'] })
  await t.rejects(startServer({ vault, seed: {} }), {
    code: 'usage',
    message: /Unknown options: seed\. Known/,
  })
})

t.test('a vault on disk opens with a key file or a passphrase', async (t) => {
  const root = t.testdir()
  const directory = join(root, 'vault')
  const keyFile = join(root, 'key')
  const save = (_: string, text: string) => writeFile(keyFile, text, { mode: 0o600 })
  const place = { directory, pid: process.pid, notice: () => {} }
  await (await createVault(place, 'first', { kind: 'key-file', save })).close()
  {
    await using vault = await openVault({ directory, keyFile })
    t.equal(vault.tenant.name, 'first')
    t.same(vault.keys, {}, 'keys are known only when they are created')
    await vault.ask('token create', { id: 'kept', type: 'token', data: 'x' })
  }
  {
    await using again = await openVault({ directory, keyFile })
    t.match(await again.ask('token get', { id: 'kept' }, { reveal: true }), { data: 'x' })
  }
  await t.rejects(openVault({ directory, passphrase: 'correct horse battery' }), { code: 'vault_locked' })
  const other = join(root, 'other')
  await t.rejects(openVault({ directory: other, keyFile }), { code: 'vault_missing' })
})

t.test(
  'a relative path of a directory of bundles is resolved in the working directory of the program',
  async (t) => {
    const directory = t.testdir({ 'answer.js': 'module.exports = 42' })
    await using vault = await openTestVault({ modulesDirectory: relative(process.cwd(), directory) })
    const code = `module.exports = async () => ({ raw: require('answer') })`
    const { id } = await vault.ask('reactor create', { name: 'r', code })
    t.match(await vault.ask('reactor react', { id }), { raw: 42 })
  },
)
