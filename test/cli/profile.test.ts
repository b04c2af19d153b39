/** The contents of config.json: profiles, which are named sets of settings, and the selected tenant of each vault. */
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { createVaultHome, type Home, testVault } from './home.js'

const fileOf = ({ place }: Home) => join(place, 'config', 'coffer', 'config.json')

async function open(t: Test) {
  const home = await createVaultHome(t)
  await home.createToken({ id: 'note', mask: 'm' })
  const { key, id } = await home.createApp({ permissions: ['token:read'] })
  await home.run('profile set support api-key', { stdin: `${key}\n` })
  return { home, key, id }
}

t.test(
  "a command with a named or selected profile acts as the application of the profile's key",
  async (t) => {
    const { home, id } = await open(t)
    t.equal((await home.run('app whoami')).code, 3, 'no profile is selected')
    t.equal((await home.json('app whoami --profile support')).id, id)
    t.equal((await home.json('app whoami', { env: { COFFER_PROFILE: 'support' } })).id, id)
    await home.run('profile use support')
    t.equal((await home.json('app whoami')).id, id)
    t.equal((await home.run('app list')).code, 4, 'the command has only the permissions of the application')
    await home.run('profile use')
    t.equal((await home.run('app whoami')).code, 3)
  },
)

t.test('a flag overrides the environment, and the environment overrides the profile', async (t) => {
  const { home } = await open(t)
  await home.run('profile set lines output ndjson')
  await home.run('profile set lines fields id')
  await home.run('profile use lines')
  t.equal((await home.run('token list')).stdout, '{"id":"note"}\n')
  const env = { COFFER_FIELDS: 'type' }
  t.equal((await home.run('token list', { env })).stdout, '{"type":"token"}\n')
  t.equal((await home.run('token list --output id', { env })).stdout, 'note\n')
  const failed = await home.run('token get nobody')
  t.equal(JSON.parse(failed.stderr).status, 404, 'failures have the format of the profile too')
})

t.test('keys in profiles are never shown, and the file is private', async (t) => {
  const { home, key } = await open(t)
  await home.run('profile set support tenant default')
  const listed = await home.run('profile list')
  t.same(JSON.parse(listed.stdout), [
    { name: 'support', is_used: false, settings: { 'api-key': '********', tenant: 'default' } },
  ])
  t.notOk(listed.stdout.includes(key))
  t.equal(statSync(fileOf(home)).mode & 0o777, 0o600)
  chmodSync(fileOf(home), 0o640)
  const { code, stderr } = await home.run('token list')
  t.equal(code, 6)
  t.match(stderr, `chmod 600 ${fileOf(home)}`)
  chmodSync(fileOf(home), 0o600)
  const exposed = await home.run('profile set other api-key key_x')
  t.match(exposed.stderr, 'Other processes can see the arguments of a command')
})

t.test('invalid profiles and unknown settings are refused', async (t) => {
  const { home } = await open(t)
  for (const [line, stderr] of [
    ['token list --profile nobody', 'There is no profile "nobody"'],
    ['profile use nobody', 'There is no profile "nobody"'],
    ['profile delete nobody', 'There is no profile "nobody". Profiles: support. '],
    ['profile use none', 'To use no profile: coffer profile use'],
    ['profile set support url htp:/x', 'The address of a server begins with https://'],
    ['profile set support yes true', 'A profile has no setting'],
    ['profile set support nonsense x', 'A profile has no setting'],
  ] as const)
    t.match(await home.run(line), { code: 2, stderr }, line)
  writeFileSync(fileOf(home), '{"profile":"p","profiles":{"p":{"nonsense":"x"}},"more":1}')
  t.match((await home.run('token list')).stderr, 'contains "nonsense", which is not a setting of profiles')
})

t.test(
  'after the selected profile is deleted, no profile is selected, and the other profiles are unchanged',
  async (t) => {
    const { home } = await open(t)
    await home.run('profile set other output json')
    await home.run('profile use support')
    await home.run('profile delete support')
    t.same(JSON.parse(readFileSync(fileOf(home), 'utf8')), { profiles: { other: { output: 'json' } } })
    t.same(await home.json('profile list'), [{ name: 'other', is_used: false, settings: { output: 'json' } }])
  },
)

testVault('a relative path in a profile is resolved when the profile is set', async (t, home) => {
  for (const setting of ['key-file', 'passphrase-file', 'modules']) {
    const { settings } = await home.json(['profile', 'set', 'p', setting, '../path'])
    t.equal(settings[setting], resolve(home.place, '../path'))
  }
  await home.json('profile set here vault .coffer')
  t.equal((await home.run('token list --profile here', { cwd: '/' })).code, 0)
  t.equal((await home.json('profile set here tenant a/b')).settings.tenant, 'a/b')
})

/** Returns the name of each tenant, and whether the tenant is selected. */
const list = async (home: Home) =>
  (await home.json('tenant list')).map(({ name, is_used }: Record<string, unknown>) => [name, is_used])

testVault(
  'a tenant can be created, listed and selected, and later commands use the selected tenant',
  async (t, home) => {
    const staging = await home.json('tenant create Staging')
    t.match(staging, { id: String, name: 'Staging', owner_id: String, settings: {} })
    t.notOk('keys' in staging || 'number' in staging, 'keys are never shown')
    t.same(await list(home), [
      ['Staging', false],
      ['default', true],
    ])
    t.equal(
      (await home.json('tenant use staging')).id,
      staging.id,
      'names of tenants are compared without regard to case',
    )
    t.same(await list(home), [
      ['Staging', true],
      ['default', false],
    ])
    await home.createToken()
    t.equal((await home.json('tenant get')).name, 'Staging')
    t.equal((await home.json('vault status')).tenant.name, 'Staging')
    t.equal((await home.json('token list --tenant default')).pagination.total_items, 0)
    const env = { COFFER_TENANT: 'default' }
    t.equal(
      (await home.json('token list', { env })).pagination.total_items,
      0,
      'the environment overrides the selection',
    )
    t.equal((await home.json('token list')).pagination.total_items, 1)
    t.equal(statSync(join(home.place, 'config', 'coffer', 'config.json')).mode & 0o777, 0o600)
  },
)

testVault(
  'selecting a tenant keeps other contents of config.json, and applies to one vault only',
  async (t, home) => {
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
  },
)

testVault(
  'a new tenant cannot have an empty name or a name that exists, and an unknown name cannot be selected',
  async (t, home) => {
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
  },
)

testVault(
  'without a terminal, --yes is needed to delete a tenant, and a deleted tenant is no longer selected',
  async (t, home) => {
    await home.json('tenant create staging')
    await home.json('tenant use staging')
    await home.createToken()
    const app = await home.createApp({ permissions: ['token:read'] })
    t.match(await home.run('tenant delete'), { code: 2, stderr: /--yes/ })
    t.equal((await home.json('token list')).pagination.total_items, 1, 'nothing was deleted')
    await home.json('tenant delete --yes')
    t.equal((await home.json('tenant get')).name, 'default')
    t.equal((await home.run('app whoami', { env: { COFFER_API_KEY: app.key } })).code, 4)
    t.same(await list(home), [['default', true]])
  },
)

testVault('a person must type the name of the tenant to delete it', async (t, home) => {
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

testVault('an application deletes its own tenant, whichever tenant is selected', async (t, home) => {
  await home.json('tenant create staging')
  const words = ['app', 'create', '--name', 'a', '--type', 'management', '--permission', 'tenant:delete']
  const { key } = await home.json([...words, '--tenant', 'staging'])
  await home.json('tenant delete --yes', { env: { COFFER_API_KEY: key } })
  t.same(await list(home), [['default', true]])
})
