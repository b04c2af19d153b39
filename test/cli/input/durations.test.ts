/** Durations that are accepted in place of dates. */
import t from 'tap'
import { formatDate, parseDuration } from '../../../src/domain/dates.js'
import { createVaultHome, testVault } from '../home.js'

t.test('a duration is converted to a date before or after the current time', async (t) => {
  for (const [text, ms] of [
    ['90s', 90_000],
    ['15m', 900_000],
    ['72h', 259_200_000],
    ['30d', 2_592_000_000],
    ['2w', 1_209_600_000],
    ['0h', undefined],
    ['-1h', undefined],
    ['1y', undefined],
    ['1h30m', undefined],
    ['72', undefined],
  ] as const)
    t.equal(parseDuration(text), ms, text)
  const home = await createVaultHome(t)
  const now = Date.now()
  const create = ['token', 'create', '--type', 'token', '--data', 'x', '--quiet']
  const { expires_at } = await home.json([...create, '--expires-at', '72h'], { clock: () => now })
  t.equal(expires_at, formatDate(now + 72 * 3_600_000))
  t.equal((await home.json('log list --start-date 1h')).pagination.total_items, 2)
  const soon = {
    COFFER_API_KEY: (await home.createApp({ type: 'public', permissions: ['token:create'] })).key,
  }
  const { nonce } = await home.json('session create', { env: soon, clock: () => now })
  const backend = { COFFER_API_KEY: (await home.createApp({ permissions: ['token:read'] })).key }
  const authorize = ['session', 'authorize', '--nonce', '-', '--permission', 'token:read', '--expires-at']
  const asBackend = { env: backend, clock: () => now, stdin: nonce }
  t.match((await home.run([...authorize, '25h'], asBackend)).stderr, /at most 24 hours ahead/)
  t.equal((await home.run([...authorize, '2h'], asBackend)).code, 0, 'a session accepts a duration too')
  const later = { clock: () => now + 7_200_000 }
  t.equal((await home.json('log list --start-date 1h', later)).pagination.total_items, 0)
})

testVault('the error about a wrong date says that durations are accepted', async (t, home) => {
  const create = ['token', 'create', '--file', home.write('body.json', '{"type":"token","data":"x"}')]
  for (const [words, message] of [
    [
      [...create, '--expires-at', '2x'],
      /^error: expires_at: must be an existing date.*; --expires-at also takes a duration from now: 2h\n$/,
    ],
    [
      [...create, '--expires-at', '1/1/2001'],
      /must be in the future.*; --expires-at also takes a duration from now: 2h\n$/,
    ],
    [['log', 'list', '--start-date', '2x'], /; --start-date also takes a duration before now: 2h\n$/],
    [[...create, '--expires-at', '2x', '--container', 'x'], /expires_at: .*now: 2h\n[\s\S]*containers/],
    [[...create, '--container', 'x'], /^error: containers[^\n]*\n$/],
  ] as const)
    t.match(await home.run(words), { code: 2, stderr: message }, words.join(' '))
  const body = await home.run('token create', { stdin: '{"type":"token","data":"x","expires_at":"2h"}' })
  t.match(
    body,
    { code: 2, stderr: /; --expires-at also takes a duration from now: 2h\n$/ },
    'the error says so for a body too',
  )
})
