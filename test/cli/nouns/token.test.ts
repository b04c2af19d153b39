/** Tables of tokens. */
import { measureWidth } from '../../../src/cli/output/display.js'
import type { Permission } from '../../../src/domain/access/permissions.js'
import { formatDate } from '../../../src/domain/dates.js'
import { ruleOf, testVault } from '../home.js'

const CARD = '4242424242424242'
const ROWS = [
  { type: 'card', data: { number: '378282246310005' } },
  { type: 'bank', data: { routing_number: '021000021', account_number: '1234567890' } },
  { type: 'social_security_number', data: '078-05-1120' },
  { id: 'ada', data: { name: 'Ada', n: 1 }, mask: { n: '{{ data.n }}', name: '{{ data.name }}' } },
  { id: 'none', type: 'token', data: 'secret', containers: ['/pii/low/'] },
  { id: 'card-1', type: 'card', data: { number: CARD } },
]

testVault('a table shows the useful digits of masked data at every width', async (t, home) => {
  for (const row of ROWS) await home.createToken(row)
  for (const columns of [60, 80, 100]) {
    const { stdout } = await home.run('token list', { columns })
    for (const line of stdout.split('\n')) t.ok(measureWidth(line) <= columns, line)
    const shown = ['visa •••• 4242', 'amex •••• 0005', '021000021 •••• 7890', 'XXX-XX-1120', '(no mask)']
    for (const text of [...shown, 'Ada', '/pii/low/']) t.match(stdout, text, `${columns} columns`)
    t.notMatch(stdout, '/pci/high/', 'the default containers of a type are not shown')
    t.match(stdout, /^card-1 +card +visa •••• 4242 .*\d s ago$/m)
  }
  t.match((await home.run('token list --reveal', { columns: 80 })).stdout, `visa ${CARD}`)
  t.match((await home.run('token search type:bank', { columns: 80 })).stdout, '021000021 •••• 7890')
  const page = await home.run('token list --after --size 2', { columns: 80 })
  t.match(page.stderr, /^2 items · more: --all, or --after\s+\S/)
  const permissions: Permission[] = ['token:read', 'token:search']
  for (const rights of [{ permissions }, { rules: [ruleOf('mask', { permissions })] }]) {
    const { key } = await home.createApp(rights)
    const env = { COFFER_API_KEY: key }
    for (const words of ['token list', 'token list --wide', 'token list --after', 'token search type:bank'])
      t.match(
        await home.run(words, { columns: 80, env }),
        { code: 0, stdout: /XXX|••••/ },
        `${words}, with a key`,
      )
  }
  const wide = await home.run('token list --wide', { columns: 200 })
  t.match(wide.stdout, /^[0-9a-f]{8}-[0-9a-f-]{27} +card .*20\d\d-\d\d-\d\dT[\d:]{8}Z$/m)
  t.match(wide.stdout, '"number":"XXXXXXXXXXXX4242"')
})

testVault('a table shows when records expire, if at least one of them does', async (t, home) => {
  const now = Date.now()
  const table = async (line: string, more = {}) =>
    (await home.run(line, { columns: 120, clock: () => now, ...more })).stdout
  await home.createToken({ id: 'stays' })
  await home.createApp({ name: 'stays', permissions: ['token:read'] })
  const lists = ['token list', 'token list --wide', 'app list']
  for (const line of lists) t.notMatch(await table(line), 'expires', line)
  const at = formatDate(now + 7_260_000)
  await home.createToken({ id: 'ends', expires_at: at })
  await home.createApp({ name: 'ends', permissions: ['token:read'], expires_at: at })
  t.match(await table('token list'), /^ends +token .* in 2 h$/m)
  t.match(await table('token list'), /^stays +token +\(no mask\) +\S+$/m)
  t.match(await table('token list --wide'), `${at.slice(0, 19)}Z`)
  t.match(await table('app list'), / ends +private .* in 2 h$/m)
  t.match((await home.run('token list -o csv')).stdout, /^"id",.*"expires_at"$/m)
  t.match(
    await table('token list', { columns: 40 }),
    /^ends .* in 2 h$/m,
    'the time is shown on a narrow terminal too',
  )
})

testVault('data is marked as masked or plaintext, also for applications', async (t, home) => {
  await home.createToken({ id: 'card-1', type: 'card', data: { number: CARD } })
  const get = (more = '', env = {}) =>
    home.run(`token get card-1 --fields data${more}`, { columns: 100, env })
  t.match(await get(), { stdout: 'data •: {"number":"XXXXXXXXXXXX4242"}\n', stderr: /^• masked\./ })
  t.match(await get(' --reveal'), { stdout: `data !: {"number":"${CARD}"}\n`, stderr: '! in plaintext\n' })
  for (const [transform, mark] of [
    ['mask', '•'],
    ['reveal', '!'],
  ] as const) {
    const { key } = await home.createApp({ rules: [ruleOf(transform)] })
    t.match((await get('', { COFFER_API_KEY: key })).stdout, `data ${mark}: `)
  }
})
