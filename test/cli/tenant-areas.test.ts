/** The commands for the owner, the security contact, the merchants and the templates of applications. */
import t from 'tap'
import { createVaultHome } from './home.js'

t.test('commands find members, merchants and templates by their names', async (t) => {
  const { run, json } = await createVaultHome(t)
  const { id: invitation } = await json(['invite', 'create', 'ada@example.com'])
  const { data } = await json('invite outbox')
  t.equal(data[0].invitation_id, invitation)
  await json(['invite', 'accept', '-'], { stdin: data[0].link })
  const owner = await json('tenant owner')
  t.match(await json('tenant transfer-owner ada@example.com'), {
    role: 'OWNER',
    user: { email: 'ada@example.com' },
  })
  t.match(await json('tenant owner'), { user: { email: 'ada@example.com' } })
  await json(`tenant transfer-owner --member-id ${owner.id}`)
  t.equal((await json('tenant owner')).id, owner.id)
  const { id } = await json([
    'tenant',
    'merchant',
    'create',
    '--name',
    'shop',
    '--details',
    '{"merchant":{"descriptor":"SHOP"}}',
  ])
  t.match(await json('tenant merchant get shop'), { id, details: { merchant: { descriptor: 'SHOP' } } })
  t.match(await json('tenant merchant patch shop --name store'), { id, name: 'store' })
  t.equal((await json('tenant merchant list')).pagination.total_items, 1)
  t.match(await run('tenant merchant get stre'), { code: 3, stderr: /store/ })
  t.match(await json(['app', 'template', 'get', 'Read only']), { application_type: 'private' })
  const { stdout } = await run('tenant merchant get shop --curl --url http://localhost:4010')
  t.match(stdout, "'http://localhost:4010/tenants/self/merchants/shop'")
  await json('tenant merchant delete store --yes')
  t.equal((await json('tenant merchant list')).pagination.total_items, 0)
})

t.test('control characters in an address or a merchant never reach the terminal', async (t) => {
  const { run, json } = await createVaultHome(t)
  const hostile = 'a\u001b]0;x\u0007@example.com'
  const refused = await run(['tenant', 'set-security-contact', hostile])
  t.match(refused, { code: 2, stdout: '' })
  t.notMatch(refused.stderr, /[\u001b\u0007]/)
  t.same(await json('tenant security-contact'), {})
  t.same(await json('tenant set-security-contact security@example.com'), { email: 'security@example.com' })
  const details = { merchant: { descriptor: 'a\u001b[31mb\u0007' } }
  await json('tenant merchant create', { stdin: JSON.stringify({ name: 'shop', details }) })
  for (const line of [
    'tenant merchant list -o table',
    'tenant merchant get shop -o table',
    'tenant merchant get shop -o value --fields details.merchant.descriptor',
  ]) {
    const { code, stdout } = await run(line, { columns: 100 })
    t.equal(code, 0, line)
    t.notMatch(stdout, /[\u001b\u0007]/, line)
  }
})
