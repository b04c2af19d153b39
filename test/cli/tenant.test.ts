/** Several tenants in one vault, as its owner works with them: create, list, choose, delete. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createVaultHome, type Home } from './home.js'

/** The names of the tenants, each with whether it is used. */
const list = async (home: Home) =>
  (await home.json('tenant list')).map(({ name, is_used }: Record<string, unknown>) => [name, is_used])

t.test('a tenant is created, listed, chosen, and acted in by everything after', async (t) => {
  const home = await createVaultHome(t)
  const staging = await home.json('tenant create Staging')
  t.match(staging, { id: String, name: 'Staging', owner_id: String, settings: {} })
  t.notOk('keys' in staging || 'number' in staging, 'its keys are shown to nobody')
  t.same(await list(home), [
    ['Staging', false],
    ['default', true],
  ])
  t.equal((await home.json('tenant use staging')).id, staging.id, 'whatever the case')
  t.same(await list(home), [
    ['Staging', true],
    ['default', false],
  ])
  await home.createToken()
  t.equal((await home.json('tenant get')).name, 'Staging')
  t.equal((await home.json('vault status')).tenant.name, 'Staging')
  t.equal((await home.json('token list --tenant default')).pagination.total_items, 0)
  const env = { COFFER_TENANT: 'default' }
  t.equal((await home.json('token list', { env })).pagination.total_items, 0, 'the environment goes first')
  t.equal((await home.json('token list')).pagination.total_items, 1)
  t.equal(statSync(join(home.place, 'config', 'coffer', 'config.json')).mode & 0o777, 0o600)
})

t.test('the choice is kept beside whatever else the file holds, and for one vault alone', async (t) => {
  const home = await createVaultHome(t)
  const path = join(home.place, 'config', 'coffer', 'config.json')
  writeFileSync(path, '{"theme":"dark","tenants":{"other-vault":"x"}}')
  await home.json('tenant create staging')
  const { id } = await home.json('tenant use staging')
  const { vault } = await home.json('vault status')
  t.same(JSON.parse(readFileSync(path, 'utf8')), {
    theme: 'dark',
    tenants: { 'other-vault': 'x', [vault]: id },
  })
  const second = ['--vault', join(home.place, 'second')]
  await home.json(['init', ...second])
  t.equal((await home.json(['tenant', 'get', ...second])).name, 'default')
  for (const text of ['not json', '[]', '{"tenants":5}']) {
    writeFileSync(path, text)
    const { code, stderr } = await home.run('token list')
    t.same([code, stderr.includes(path)], [2, true], text)
  }
})

t.test('refuses a name that is taken, empty or unknown', async (t) => {
  const home = await createVaultHome(t)
  for (const [words, code] of [
    [['create', 'DEFAULT'], 5],
    [['create', 'a\nb'], 2],
    [['update', '--name', '\u3000'], 2],
    [['use', 'nobody'], 3],
  ] as const) {
    t.equal((await home.run(['tenant', ...words])).code, code, words.join(' ').slice(0, 20))
  }
  await home.json('tenant create staging')
  await home.json('tenant update --name staging')
  const several = { code: 2, stderr: /Several tenants have this name/ }
  t.match(await home.run('token list --tenant staging'), several)
})

t.test(
  'a tenant is deleted by --yes alone where nobody can type its name, and its choice is forgotten',
  async (t) => {
    const home = await createVaultHome(t)
    await home.json('tenant create staging')
    await home.json('tenant use staging')
    await home.createToken()
    const app = await home.createApp({ permissions: ['token:read'] })
    t.match(await home.run('tenant delete'), { code: 2, stderr: /--yes/ })
    t.equal((await home.json('token list')).pagination.total_items, 1, 'nothing was changed')
    await home.json('tenant delete --yes')
    t.equal((await home.json('tenant get')).name, 'default')
    t.equal((await home.run('app whoami', { env: { COFFER_API_KEY: app.key } })).code, 4)
    t.same(await list(home), [['default', true]])
  },
)

t.test('a person types the name of the tenant that is to go', async (t) => {
  const home = await createVaultHome(t)
  const type = (answer: string) =>
    home.run('tenant delete', {
      columns: 100,
      answers: [['Type the name of the tenant to delete it:', `${answer}\r`]],
    })
  const refused = await type('yes')
  t.match(refused, { code: 130, stderr: 'The name does not match. Nothing was changed.' })
  t.match(refused.stderr, 'This deletes the tenant "default" with all of its tokens, applications and logs.')
  t.match(refused.stderr, /Earlier\s+backups\s+contain\s+their\s+own\s+keys/)
  t.equal((await list(home)).length, 1)
  const done = await type('default')
  t.equal(done.code, 0, done.stderr)
  t.same(await list(home), [])
  const stderr = 'This vault has no tenant. Create one: coffer tenant create NAME'
  t.match(await home.run('token list'), { code: 3, stderr })
})

t.test('an application deletes its own tenant, whichever was chosen', async (t) => {
  const home = await createVaultHome(t)
  await home.json('tenant create staging')
  const words = ['app', 'create', '--name', 'a', '--type', 'management', '--permission', 'tenant:delete']
  const { key } = await home.json([...words, '--tenant', 'staging'])
  await home.json('tenant delete --yes', { env: { COFFER_API_KEY: key } })
  t.same(await list(home), [['default', true]])
})
