/** Enrichment: the verification of bank accounts, and the details of cards. */
import t, { type Test } from 'tap'
import published from '../../fixtures/enrichment.json' with { type: 'json' }
import { binLength } from '../../src/domain/token/card-number.js'
import { isLuhnValid } from '../../src/domain/token/luhn.js'
import { beginAsService } from '../../src/vault/sample-applications.js'
import { createHandler } from '../support/service.js'
import { openTestVault, setSetting } from '../support/test-vault.js'

async function open(t: Test, isFake = false) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  if (isFake) await setSetting(vault.app, 'enrichments.fake', 'true')
  return vault
}

const card = (number: string) => ({ type: 'card', data: { number } })

t.test('verifying a bank account requires token:use on the containers of its token', async (t) => {
  const { ask, createApplication, settle, app } = await open(t)
  const data = { routing_number: '021000021', account_number: '00001' }
  const { id } = await ask('token create', { type: 'bank', data, containers: ['/bank/high/'] })
  const handle = createHandler(app)
  const verify = async (grants: object) => {
    const { key } = await createApplication('private', grants)
    const request = new Request('http://localhost/enrichments/bank-account-verify', {
      method: 'POST',
      headers: { 'svc-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ token_id: id }),
    })
    const answer = await handle(request)
    return { status: answer.status, body: await answer.json() }
  }
  const rule = { priority: 1, transform: 'redact', permissions: ['token:use'] }
  t.match(await verify({ rules: [{ ...rule, container: '/bank/' }] }), {
    status: 200,
    body: { status: 'enabled' },
  })
  t.equal((await verify({ rules: [{ ...rule, container: '/pci/' }] })).status, 403)
  t.equal((await verify({ permissions: ['token:read'] })).status, 403)
  const { data: logs } = await ask('log list', { entity_type: 'bank', entity_id: id })
  t.match(logs[0], { operation: 'use', message: 'Token used', actor_type: 'application' })
  t.equal(logs.filter(({ operation }) => operation === 'use').length, 1, 'a refused call is not logged')
  t.equal((await settle(() => app.owner({ reveal: false }), 'enrich bank', { token_id: id })).status, 200)
})

t.test('if the setting enrichments.fake is true, cards of the published ranges have details', async (t) => {
  const { ask } = await open(t, true)
  const show = async (number: string) => (await ask('token create', card(number))).card
  t.strictSame(await show('4242424242424242'), {
    bin: '42424242',
    last4: '4242',
    brand: 'visa',
    funding: 'credit',
    issuer_country: { alpha2: 'BM', numeric: '060', name: 'Bermuda' },
  })
  t.match(await show('378282246310005'), {
    funding: 'credit',
    issuer_country: { name: 'Faroe Islands' },
  })
  t.match(await show('4000056655665556'), { funding: 'credit', issuer_country: { name: 'Chile' } })
  t.match(await show('5555555555564443'), { funding: undefined }, 'just above a range')
  t.match(await show('5555555555550004'), { funding: 'credit', issuer_country: { name: 'Türkiye' } })
  t.match(await show('5589092000000000006'), { funding: 'debit' })
  t.match(await show('4000020000000000'), {
    funding: 'credit',
    authentication: 'sca_required',
    issuer_country: undefined,
  })
  t.match(await show('4000000000000002'), { funding: undefined, issuer_country: undefined })
  const intent = await ask('intent create', card('6011981111111113'))
  t.match(intent.card, { funding: 'debit', issuer_country: { alpha2: 'US' } })
  const { id } = await ask('token create', { token_intent_id: intent.id })
  t.match((await ask('token get', { id })).card, { funding: 'debit', issuer_country: { alpha2: 'US' } })
  const plain = await ask('token create', { type: 'card_number', data: '4242424242424242' })
  t.match(plain.card, { funding: 'credit' })
})

t.test('a card number in a published range has the details of this range', async (t) => {
  const { ask } = await open(t, true)
  for (const { from, to, funding, country } of published.card_ranges) {
    const number = findCard(from, to)
    if (number === undefined) continue
    const { card: shown } = await ask('token create', card(number))
    t.match(
      shown,
      { bin: number.slice(0, binLength(number.length)), funding, issuer_country: { alpha2: country } },
      number,
    )
  }
})

/** Returns the first number of the range with a valid check digit. */
function findCard(from: string, to: string): string | undefined {
  for (let number = BigInt(from); number <= BigInt(to); number++)
    if (isLuhnValid(String(number))) return String(number)
  return undefined
}

t.test('the details of a card are looked up when its number is stored', async (t) => {
  const { ask, app } = await open(t)
  const { id } = await ask('token create', card('4242424242424242'))
  t.equal((await ask('token get', { id })).card?.funding, undefined, 'the setting is false by default')
  await setSetting(app, 'enrichments.fake', 'true')
  await ask('token update', { id, data: { expiration_month: 1 } })
  t.equal((await ask('token get', { id })).card?.funding, undefined, 'the number has not changed')
  await ask('token update', { id, data: { number: '6011981111111113' } })
  t.equal((await ask('token get', { id })).card?.funding, 'debit')
  await setSetting(app, 'enrichments.fake', undefined)
  await ask('token update', { id, metadata: { a: 'b' } })
  t.equal((await ask('token get', { id })).card?.funding, 'debit', 'details stay with their number')
  await ask('token update', { id, data: { number: '4242424242424242' } })
  t.equal((await ask('token get', { id })).card?.funding, undefined)
})

t.test(
  'the details for the first digits of a number are the details that all published cards with these digits share',
  async (t) => {
    const { ask } = await open(t, true)
    t.strictSame(await ask('enrich card', { bin: '424242' }), {
      brand: 'Visa',
      funding: 'Credit',
      issuer: { country: 'Bermuda' },
    })
    t.strictSame(await ask('enrich card', { bin: '378282' }), { brand: 'American Express' })
    t.strictSame(await ask('enrich card', { bin: '555555' }), {
      brand: 'Mastercard',
      funding: 'Credit',
      issuer: { country: 'Türkiye' },
    })
    t.strictSame(await ask('enrich card', { bin: '400000' }), { brand: 'Visa' })
  },
)

t.test(
  'a test server turns enrichments.fake on by default, unless somebody has set this setting',
  async (t) => {
    const { app, ask } = await open(t)
    await beginAsService(app)
    t.equal((await ask('config get', { name: 'enrichments.fake' })).value, true)
    await setSetting(app, 'enrichments.fake', 'false')
    await beginAsService(app)
    t.equal((await ask('config get', { name: 'enrichments.fake' })).value, false)
  },
)
