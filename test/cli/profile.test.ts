/** Profiles: settings under a name, beneath flags and environment; and the file that they stand in. */
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { createVaultHome, type Home } from './home.js'

const fileOf = ({ place }: Home) => join(place, 'config', 'coffer', 'config.json')

async function open(t: Parameters<typeof createVaultHome>[0]) {
  const home = await createVaultHome(t)
  await home.createToken({ id: 'note', mask: 'm' })
  const { key, id } = await home.createApp({ permissions: ['token:read'] })
  await home.run('profile set support api-key', { stdin: `${key}\n` })
  return { home, key, id }
}

t.test('a profile acts as the application whose key it holds, where it is named or chosen', async (t) => {
  const { home, id } = await open(t)
  t.equal((await home.run('app whoami')).code, 3, 'no profile counts yet')
  t.equal((await home.json('app whoami --profile support')).id, id)
  t.equal((await home.json('app whoami', { env: { COFFER_PROFILE: 'support' } })).id, id)
  await home.run('profile use support')
  t.equal((await home.json('app whoami')).id, id)
  t.equal((await home.run('app list')).code, 4, 'with its permissions alone')
  await home.run('profile use')
  t.equal((await home.run('app whoami')).code, 3)
})

t.test('a flag goes before the environment, and that before the profile', async (t) => {
  const { home } = await open(t)
  await home.run('profile set lines output ndjson')
  await home.run('profile set lines fields id')
  await home.run('profile use lines')
  t.equal((await home.run('token list')).stdout, '{"id":"note"}\n')
  const env = { COFFER_FIELDS: 'type' }
  t.equal((await home.run('token list', { env })).stdout, '{"type":"token"}\n')
  t.equal((await home.run('token list --output id', { env })).stdout, 'note\n')
  const failed = await home.run('token get nobody')
  t.equal(JSON.parse(failed.stderr).status, 404, 'failures are told in the format of the profile too')
})

t.test('keys are shown to nobody, and the file is its owner’s alone', async (t) => {
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

t.test('what is no profile, and what no profile holds, is refused', async (t) => {
  const { home } = await open(t)
  for (const [line, stderr] of [
    ['token list --profile nobody', 'There is no profile "nobody"'],
    ['profile use nobody', 'There is no profile "nobody"'],
    ['profile delete nobody', 'There is no profile "nobody". Profiles: support. '],
    ['profile use none', 'coffer profile use, without a name, uses none.'],
    ['profile set support url htp:/x', 'The address of a server begins with https://'],
    ['profile set support yes true', 'A profile has no setting'],
    ['profile set support nonsense x', 'A profile has no setting'],
  ] as const)
    t.match(await home.run(line), { code: 2, stderr }, line)
  writeFileSync(fileOf(home), '{"profile":"p","profiles":{"p":{"nonsense":"x"}},"more":1}')
  t.match((await home.run('token list')).stderr, 'contains "nonsense", which is not a setting of profiles')
})

t.test('deleting the chosen profile leaves none chosen, and the rest of the file as it was', async (t) => {
  const { home } = await open(t)
  await home.run('profile set other output json')
  await home.run('profile use support')
  await home.run('profile delete support')
  t.same(JSON.parse(readFileSync(fileOf(home), 'utf8')), { profiles: { other: { output: 'json' } } })
  t.same(await home.json('profile list'), [{ name: 'other', is_used: false, settings: { output: 'json' } }])
})

t.test('the path in a profile is where it was when it was set', async (t) => {
  const home = await createVaultHome(t)
  for (const setting of ['key-file', 'passphrase-file', 'modules']) {
    const { settings } = await home.json(['profile', 'set', 'p', setting, '../path'])
    t.equal(settings[setting], resolve(home.place, '../path'))
  }
  await home.json('profile set here vault .coffer')
  t.equal((await home.run('token list --profile here', { cwd: '/' })).code, 0)
  t.equal((await home.json('profile set here tenant a/b')).settings.tenant, 'a/b')
})
