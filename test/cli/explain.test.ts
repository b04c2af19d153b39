/** `--explain`: which rule decides, what would be answered, and that nothing is done. */
import t from 'tap'
import type { Explanation } from '../../src/framework/caller/explain.js'
import { createVaultHome } from './home.js'

const RULES = [
  { description: 'cards', priority: 1, container: '/pci/', transform: 'mask', permissions: ['token:read'] },
  { priority: 2, container: '/', transform: 'reveal', permissions: ['token:read', 'token:delete'] },
]
const card = '{"id":"card","type":"card","data":{"number":"4242424242424242"}}'
const note = '{"id":"note","type":"token","data":"secret text"}'

async function open(t: Parameters<typeof createVaultHome>[0]) {
  const home = await createVaultHome(t)
  for (const stdin of [card, note]) await home.json('token create', { stdin })
  const words = RULES.flatMap((rule) => ['--rule', JSON.stringify(rule)])
  const app = await home.json(['app', 'create', '--name', 'support', '--type', 'private', ...words])
  const explain = (words: string[], options = {}): Promise<Explanation> =>
    home.json([...words, '--explain-as', app.id], options)
  return { home, app, explain }
}

t.test('says which rule decides and which were passed over', async (t) => {
  const { app, explain } = await open(t)
  const { sees, ...explanation } = await explain(['token', 'get', 'card'])
  t.same(explanation, {
    operation: 'token get',
    caller: { type: 'application', id: app.id },
    permissions: [{ permission: 'token:read', is_held: true }],
    decisions: [
      {
        permission: 'token:read',
        container: '/pci/high/',
        decided_by: { priority: 1, description: 'cards' },
        transform: 'mask',
        passed_over: [],
      },
    ],
    outcome: { status: 200 },
  })
  t.match(sees, { id: 'card', data: { number: 'XXXXXXXXXXXX4242' } })
  const { decisions } = await explain(['token', 'delete', 'card'])
  t.same(decisions, [
    {
      permission: 'token:delete',
      container: '/pci/high/',
      decided_by: { priority: 2 },
      transform: 'reveal',
      passed_over: [{ priority: 1, description: 'cards', reason: 'other permissions' }],
    },
  ])
})

t.test('says what a refusal would be, and why', async (t) => {
  const { home, explain } = await open(t)
  const update = await explain(['token', 'update', 'note', '--metadata', 'a=b'])
  t.match(update, { outcome: { status: 403 }, permissions: [{ permission: 'token:update', is_held: false }] })
  t.notOk('sees' in update)
  const missing = await explain(['token', 'get', 'nobody'])
  t.match(missing, { outcome: { status: 404 }, decisions: [] })
  const rule = { priority: 1, container: '/pci/', transform: 'mask', permissions: ['token:read'] }
  const words = ['app', 'create', '--name', 'cards', '--type', 'private', '--rule', JSON.stringify(rule)]
  const cards = await home.json(words)
  const refused = await home.json(['token', 'get', 'note', '--explain-as', cards.id])
  t.match(refused, {
    outcome: { status: 403 },
    decisions: [{ container: '/general/high/', passed_over: [{ priority: 1, reason: 'other container' }] }],
  })
  t.notOk('decided_by' in refused.decisions[0])
  const list = await home.json(['token', 'list', '--explain-as', cards.id])
  t.same(
    list.decisions.map((each: { container: string; decided_by?: unknown }) => [
      each.container,
      !!each.decided_by,
    ]),
    [
      ['/general/high/', false],
      ['/pci/high/', true],
    ],
    'a list tells why what it hides is hidden',
  )
  t.equal(list.sees.pagination.total_items, 1)
  t.equal((await home.run('token get note --explain-as nobody')).code, 3)
})

t.test('does nothing: no token, no log record, no deletion', async (t) => {
  const { home, explain } = await open(t)
  const count = async () => {
    const status = await home.json('vault status')
    return [status.tokens, status.logs]
  }
  const before = await count()
  await home.json('token create --explain', { stdin: '{"id":"third","type":"token","data":1}' })
  t.match(await explain(['token', 'delete', 'note']), { outcome: { status: 204 } })
  await explain(['token', 'get', 'note'])
  t.same(await count(), before)
})

t.test('the owner, a key, and an expired key', async (t) => {
  const { home, app } = await open(t)
  const owner = await home.json('token get note --explain')
  t.match(owner, { caller: { type: 'user' }, decisions: [{ decided_by: 'owner' }], outcome: { status: 200 } })
  const env = { COFFER_API_KEY: app.key }
  const asKey = await home.json('token get note --explain', { env })
  t.match(asKey, {
    caller: { id: app.id },
    decisions: [{ decided_by: { priority: 2 }, transform: 'reveal' }],
  })
  t.notOk(JSON.stringify(asKey).includes('secret text'), 'data is masked on every screen')
  const revealed = await home.json('token get note --explain --reveal', { env })
  t.equal(revealed.sees.data, 'secret text')
  const wrong = await home.json('token get note --explain', {
    env: { COFFER_API_KEY: 'key_1111111111111111111111' },
  })
  t.match(wrong, { outcome: { status: 401 }, decisions: [] })
})
