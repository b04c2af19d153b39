/**
 * A command with `--explain` performs no operation. The command shows which rule decides, and which answer the
 * command would get without `--explain`.
 */
import t, { type Test } from 'tap'
import type { Explanation } from '../../src/framework/caller/explain.js'
import { createVaultHome, ruleOf } from './home.js'

const CARDS = ruleOf('mask', { description: 'cards', container: '/pci/' })
const RULES = [CARDS, ruleOf('reveal', { priority: 2, permissions: ['token:read', 'token:delete'] })]

async function open(t: Test) {
  const home = await createVaultHome(t)
  await home.createToken({ id: 'card', type: 'card', data: { number: '4242424242424242' } })
  await home.createToken({ id: 'note', data: 'secret text' })
  const app = await home.createApp({ rules: RULES })
  const explain = (line: string): Promise<Explanation> => home.json(`${line} --explain-as ${app.id}`)
  return { home, app, explain }
}

t.test('--explain shows which rule decides and which rules were skipped', async (t) => {
  const { app, explain } = await open(t)
  const { sees, ...explanation } = await explain('token get card')
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
  const { decisions } = await explain('token delete card')
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

t.test('--explain shows how and why a request would be refused', async (t) => {
  const { home, explain } = await open(t)
  const update = await explain('token update note --metadata a=b')
  t.match(update, { outcome: { status: 403 }, permissions: [{ permission: 'token:update', is_held: false }] })
  t.notOk('sees' in update)
  const missing = await explain('token get nobody')
  t.match(missing, { outcome: { status: 404 }, decisions: [] })
  const cards = await home.createApp({ rules: [CARDS] })
  const refused = await home.json(['token', 'get', 'note', '--explain-as', cards.id])
  t.match(refused, {
    outcome: { status: 403 },
    decisions: [{ container: '/general/high/', passed_over: [{ priority: 1, reason: 'other container' }] }],
  })
  t.notOk('decided_by' in refused.decisions[0])
  const list = await home.json(['token', 'list', '--explain-as', cards.id])
  t.match(
    list.decisions[0],
    { container: '/general/high/', decided_by: undefined },
    'the explanation says why the container is hidden',
  )
  t.match(list.decisions[1], { container: '/pci/high/', decided_by: {} })
  t.equal(list.sees.pagination.total_items, 1)
  t.equal((await home.run('token get note --explain-as nobody')).code, 3)
})

t.test('--explain prints sentences unless JSON is requested', async (t) => {
  const { home, app } = await open(t)
  const show = async (line: string, more = '') =>
    (await home.run(`${line} --explain-as ${app.id} -o table${more}`)).stdout
  const who = `May ${app.id} do`
  t.match(
    await show('token get card'),
    `Allowed: token get would be answered with 200.
${who} token:read on /pci/high/? Yes, with the transform mask: rule 1 “cards” grants it.
`,
  )
  t.match(await show('token get card'), /^Number|XXXXXXXXXXXX4242/m, 'the explanation also shows the answer')
  t.equal(
    await show('token delete card'),
    `Allowed: token delete would be answered with 204.
${who} token:delete on /pci/high/? Yes, with the transform reveal: rule 2 grants it. Passed over: rule 1 “cards” (other permissions).
`,
  )
  const narrow = await home.createApp({ name: 'narrow', rules: [CARDS] })
  const refused = (await home.run('token get note --explain-as narrow -o table')).stdout
  t.equal(
    refused,
    `Refused (403): nothing grants token:read on /general/high/.
May narrow do token:read on /general/high/? No: no rule and no permission grants it. Passed over: rule 1 “cards” (other container).
`,
  )
  t.equal(
    await show('token get nobody'),
    'Refused (404): There is no token with this id.\n',
    'the refusal is printed without a decision',
  )
  t.match(await show('token create --type none --data x'), /^Refused \(40[03]\): /)
  t.match(
    (await home.run('token get note --explain -o table')).stdout,
    'May the caller do token:read on /general/high/? Yes: the owner of the vault may do everything.',
  )
  t.match(JSON.parse((await home.run(`token get card --explain-as ${narrow.id}`)).stdout), { sees: {} })
  t.notMatch(
    await show('token get card', ' --fields outcome'),
    /Allowed/,
    'selected fields are printed as they are, without sentences',
  )
})

t.test('--explain creates no token, logs nothing and deletes nothing', async (t) => {
  const { home, explain } = await open(t)
  const count = async () => {
    const status = await home.json('vault status')
    return [status.tokens, status.logs]
  }
  const before = await count()
  await home.json('token create --type token --data x --explain')
  t.match(await explain('token delete note'), { outcome: { status: 204 } })
  await explain('token get note')
  t.same(await count(), before)
})

t.test('--explain works for the owner, for a valid key and for an expired key', async (t) => {
  const { home, app } = await open(t)
  const owner = await home.json('token get note --explain')
  t.match(owner, { caller: { type: 'user' }, decisions: [{ decided_by: 'owner' }], outcome: { status: 200 } })
  const env = { COFFER_API_KEY: app.key }
  const asKey = await home.json('token get note --explain', { env })
  t.match(asKey, {
    caller: { id: app.id },
    decisions: [{ decided_by: { priority: 2 }, transform: 'reveal' }],
  })
  t.notOk(JSON.stringify(asKey).includes('secret text'), 'data is masked')
  const refused = await home.run('token get note --explain --reveal', { env })
  t.match(refused, { code: 2, stdout: '' }, '--explain refuses a reveal, because the log would lack it')
  const unknown = { COFFER_API_KEY: 'key_1111111111111111111111' }
  const wrong = await home.json('token get note --explain', { env: unknown })
  t.match(wrong, { outcome: { status: 401 }, decisions: [] })
})
