/** Keys of applications on the command line: messages, and the grace time of old keys. */
import { testVault } from './home.js'

const HOUR_MS = 3_600_000
const NOW = Date.parse('2030-01-15T12:00:00Z')

testVault('app regenerate says before and after the change what happens to the old keys', async (t, home) => {
  await home.createApp({ name: 'shop', permissions: ['token:read'] })
  const no = [['Continue?', 'n\r']] as const
  const refused = await home.run('app regenerate shop', { columns: 200, answers: no })
  t.match(refused, { code: 130, stderr: 'The old keys are refused immediately. Continue?' })
  const graced = await home.run('app regenerate shop --grace 1h', { columns: 200, answers: no })
  const asked =
    'This replaces the keys of application shop with a new key. The old keys still work for 1h, and are then refused. Continue?'
  t.match(graced, { code: 130, stderr: asked })
  const clock = () => NOW
  const { code, stderr } = await home.run('app regenerate shop --grace 1h --yes', { columns: 200, clock })
  t.equal(code, 0, stderr)
  t.match(stderr, 'The key is shown only once.\nThe old key works until 2030-01-15T13:00:00.000+00:00.')
  const [, paste = ''] = /To revoke one earlier: coffer (.*)\n/.exec(stderr) ?? []
  const list = await home.run('app key list shop', { columns: 80, clock })
  t.match(list.stdout, /^id +created_at +expires_at\n\S+ +2030-\S+\n\S+ +20\S+ +2030-01-15T13:00:00Z\n/)
  t.equal((await home.run(`${paste} --yes`, { clock })).code, 0, paste)
  t.match(await home.json('app key list shop', { clock }), { length: 1 })
  const wrong = await home.run('app regenerate shop --grace 8d', { columns: 200 })
  t.match(wrong, { code: 2, stderr: 'grace: must be a duration such as 15m, 1h or 7d, at most 7d' })
  t.notMatch(wrong.stderr, 'Continue?')
})

testVault('in a vault on disk, an old key is accepted until its grace time ends', async (t, home) => {
  const { key: old, id } = await home.createApp({ permissions: ['token:read'] })
  const at = (ms: number) => ({ clock: () => NOW + ms })
  const { key } = await home.json(`app regenerate ${id} --grace 1h --yes`, at(0))
  const codeWith = async (each: string, ms: number) =>
    (await home.run('token list', { ...at(ms), env: { COFFER_API_KEY: each } })).code
  t.same([await codeWith(old, HOUR_MS - 1), await codeWith(key, HOUR_MS - 1)], [0, 0])
  t.same([await codeWith(old, HOUR_MS), await codeWith(key, HOUR_MS)], [4, 0])
  await home.json('log verify', at(HOUR_MS))
  t.match(await home.json('log list --entity-type application', at(HOUR_MS)), {
    data: [{ message: 'Application key expired', actor_type: 'system' }, {}, {}],
  })
})

testVault(
  'with --grace, app regenerate refuses flags that do not apply, and accepts several applications',
  async (t, home) => {
    for (const name of ['a', 'b']) await home.createApp({ name, permissions: ['token:read'] })
    for (const [line, message] of [
      ['app regenerate a --grace 1h --curl', '--curl cannot be combined with --grace.'],
      [
        'app regenerate a --grace 1h --yes --idempotency-key k',
        '--idempotency-key cannot be combined with --grace.',
      ],
      ['app regenerate a --yes --grace', "Option '--grace <text>' argument missing."],
      [
        'app regenerate a --grace 1h --url http://localhost:1',
        'coffer app regenerate --grace needs the vault itself.',
      ],
    ] as const) {
      const { code, stderr } = await home.run(line, { env: { COFFER_API_KEY: '' } })
      t.equal(code, 2, line)
      t.ok(stderr.startsWith(`error: ${message}`), stderr)
    }
    for (const columns of [60, 100, 200]) {
      const { code, stdout, stderr } = await home.run('app regenerate a b --grace 1h --yes', { columns })
      t.equal(code, 0, stderr)
      t.equal(
        stdout.match(/key_[1-9A-HJ-NP-Za-km-z]{22}/g)?.length,
        2,
        `both new keys are printed: ${stdout}`,
      )
    }
    t.match(await home.json('app key list b'), { length: 4 })
  },
)

testVault('the end of a session can be given as a duration', async (t, home) => {
  const browser = await home.createApp({ type: 'public', permissions: ['token:create'] })
  const shop = await home.createApp({ permissions: ['token:read'] })
  const at = (minutes: number, key: string) => ({
    clock: () => NOW + minutes * 60_000,
    env: { COFFER_API_KEY: key },
  })
  const { session_key, nonce } = await home.json('session create', at(0, browser.key))
  home.write('nonce.txt', nonce)
  const line = 'session authorize --nonce @nonce.txt --permission token:read --expires-at 1h'
  t.equal((await home.run(line, at(0, shop.key))).code, 0)
  const codeAt = async (minutes: number) => (await home.run('token list', at(minutes, session_key))).code
  t.same([await codeAt(59), await codeAt(60)], [0, 4])
})
