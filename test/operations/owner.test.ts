/** The operations of the vault's owner: what each operation logs, and that each result matches its declaration. */
import t from 'tap'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { List } from '../../src/framework/page.js'
import { perform } from '../../src/framework/perform.js'
import { registry } from '../../src/operations/all.js'
import { createVaultHome } from '../cli/home.js'
import { checkOutput, openTestVault } from '../support/test-vault.js'

t.test(
  'an operation of the owner is refused for an application, even if its declaration permits applications by mistake',
  async (t) => {
    const vault = await openTestVault()
    t.teardown(() => vault.app.close())
    const { key } = await vault.createApplication('management', { permissions: ['tenant:read'] })
    const open = { ...registry.find('vault verify')!, audience: undefined }
    const caller = await authenticate(vault.app, key)
    // biome-ignore lint/suspicious/noExplicitAny: simulates a wrong declaration
    await t.rejects(perform(vault.app, caller, open as any, {}, 'trace'), { code: 'forbidden' })
  },
)

t.test(
  'changes of the owner are logged in the tenant that they change, and reads and failures are not logged',
  async (t) => {
    const vault = await openTestVault()
    t.teardown(() => vault.app.close())
    const other = await vault.createTenant('other')
    const ask = (operation: string, input: Record<string, unknown>, tenant?: string) =>
      vault.app.ask({ operation, input, as: { reveal: false, ...(tenant && { tenant }) } })
    const logs = async (tenant?: string) => (await vault.ask('log list', {}, tenant)).data
    const before = await logs()
    const beforeOther = await logs(other)
    await ask('config get', { name: 'mail.from' })
    await t.rejects(ask('config set', { name: 'reactors.time_limit_ms', value: 'x' }))
    await t.rejects(ask('config set', { name: 'mail.from' }))
    await ask('tenant list', {})
    await ask('config set', { name: 'reactors.time_limit_ms', value: '500' }, 'other')
    await ask('config unset', { name: 'reactors.time_limit_ms' }, other)
    await ask('tenant create', { name: 'third' }, other)
    t.same(await logs(), before)
    const update = { operation: 'update', entity_type: 'tenant', entity_id: other }
    t.match(await logs(other), [
      { ...update, message: 'Another tenant created' },
      { ...update, message: 'Vault setting changed' },
      { ...update, message: 'Vault setting changed' },
      ...beforeOther,
    ])
  },
)

t.test('operations on the vault work even if the chosen tenant or all tenants are deleted', async (t) => {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const ask = (operation: string, input = {}) =>
    vault.app.ask({ operation, input, as: { reveal: false, tenant: 'gone' } })
  await ask('config set', { name: 'public_url', value: 'https://vault.example.com' })
  t.match(
    (await vault.ask('log list')).data[0],
    { message: 'Vault setting changed' },
    'the record is in the log of the oldest tenant',
  )
  await t.rejects(ask('log verify'), { code: 'not_found' })
  await vault.ask('tenant delete')
  t.same((await ask('tenant list')).result, [])
  await ask('config unset', { name: 'public_url' })
  await ask('tenant create', { name: 'new' })
  t.equal(((await ask('tenant list')).result as unknown[]).length, 1)
})

t.test('internal operations cannot be called as commands', async (t) => {
  const home = await createVaultHome(t)
  const internal = registry.operations.filter(({ cli }) => cli?.isInternal === true)
  t.ok(internal.length > 0)
  for (const { name, noun, verb } of internal) {
    t.equal((await home.run([noun, verb])).code, 2, name)
    t.notMatch((await home.run([noun, '--help'])).stdout, new RegExp(`^  ${verb} `, 'm'))
  }
})

t.test('changes of key slots and keys are logged, and every result matches its declaration', async (t) => {
  const home = await createVaultHome(t)
  const ask = async (name: string, words: readonly string[] = [], options = {}) => {
    const result = await home.json([...name.split(' '), ...words, '--quiet'], options)
    checkOutput(registry.find(name)!, result)
    return result
  }
  home.write('words', 'correct horse battery staple\n')
  home.write('code.js', 'module.exports = async ({ args }) => ({ raw: args.name })')
  await ask('vault keys', ['add', '--new-key-file', 'second.key'])
  const slots = await ask('vault passwd', ['--new-passphrase-file', 'words'])
  await ask('vault keys', ['remove', slots[1].id, '--yes'])
  await ask('vault status')
  await ask('vault verify')
  await ask('vault backup', ['copy'])
  await ask('vault restore', ['copy', '--vault', 'restored'])
  await ask('vault copy', ['--skip-damaged', '--to', 'copied'])
  await ask('vault rekey', ['--yes'])
  await ask('config set', ['tokens.included_monthly_active', '5'])
  const { id } = await ask('tenant create', ['staging'])
  await ask('tenant use', [id])
  await ask('tenant use', ['default'])
  await ask('formula check', ['code.js'])
  await ask('formula install', ['card-alias'])
  const invitation = await home.json(['invite', 'create', '--email', 'ada@example.com', '--quiet'])
  const letter = await ask('invite outbox', [invitation.id])
  await ask('invite accept', [letter.link])
  t.ok((await ask('log verify')).is_whole)
  const { data } = (await home.json(['log', 'list', '--size', '100'])) as List<Record<string, string>>
  const messages = data
    .filter(({ operation, entity_type }) => operation === 'update' && entity_type === 'tenant')
    .map(({ message }) => message)
  t.same(messages.toReversed(), [
    'Vault key slots changed',
    'Vault key slots changed',
    'Vault key slots changed',
    'Vault keys changed',
    'Vault setting changed',
    'Another tenant created',
  ])
})
