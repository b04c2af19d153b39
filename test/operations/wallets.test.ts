/** Cards of wallets: who sees what, expiry, expressions, the settings, and what is never stored. */
import t, { type Test } from 'tap'
import type { Permission } from '../../src/domain/access/permissions.js'
import { perform } from '../../src/framework/perform.js'
import { openTestVault, REVEALS_ALL, requireOperation, setSetting } from '../support/test-vault.js'
import {
  APPLE_PAYMENT,
  AUTHENTICATION,
  applePayload,
  CARD,
  CERTIFICATE_FILE,
  ENCRYPTED,
  plainPayload,
} from '../support/wallet-payloads.js'

const NETWORK_TOKEN = plainPayload('network_token', { ...CARD, ...AUTHENTICATION })
const MASKED = { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2040 }

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const { ask, createApplication } = vault
  const createGoogle = async (more: object = {}) =>
    (await ask('google-pay create', { ...NETWORK_TOKEN, ...more })).google_pay!
  const createApple = async (more: object = {}) =>
    (await ask('apple-pay create', { ...applePayload(), ...more })).apple_pay
  const keyWith = async (...permissions: Permission[]) =>
    (await createApplication('private', { permissions })).key
  const logOf = async (entity_id: string) => (await ask('log list', { entity_id })).data
  return { ...vault, createGoogle, createApple, keyWith, logOf }
}

t.test('an encrypted payload of Google Pay is refused, whatever it contains', async (t) => {
  const { ask } = await open(t)
  const refused = { code: 'google_pay_refused', status: 422 }
  await t.rejects(ask('google-pay create', ENCRYPTED), refused)
  const { google_payment_data: data } = ENCRYPTED
  await t.rejects(ask('google-pay create', { google_payment_data: { ...data, signedMessage: '' } }), refused)
})

t.test(
  'with the setting wallets.google, a well-formed encrypted payload becomes a simulated card',
  async (t) => {
    const { ask, app } = await open(t)
    await setSetting(app, 'wallets.google', 'simulate')
    const { google_pay, token_intent } = await ask('google-pay create', ENCRYPTED)
    t.equal(token_intent, undefined)
    t.match(google_pay, { card: { last4: '4242', expiration_month: 6, expiration_year: 2033 } })
    t.match(await ask('google-pay get', { id: google_pay!.id }), {
      data: { number: '4242424242424242', expiration_month: 6, expiration_year: 2033 },
      authentication: { threeds_cryptogram: 'AAAAAA=', eci_indicator: '7' },
      details: { auth_method: 'CRYPTOGRAM_3DS' },
    })
    const { google_payment_data: data } = ENCRYPTED
    await t.rejects(ask('google-pay create', { google_payment_data: { ...data, signedMessage: 'x' } }), {
      code: 'google_pay_refused',
    })
    await setSetting(app, 'wallets.google', 'pan_only')
    const plain = await ask('google-pay create', ENCRYPTED)
    t.equal(plain.google_pay, undefined)
    t.match(plain.token_intent, {
      card: { last4: '4242' },
      _extras: { tsp_details: { auth_method: 'PAN_ONLY' } },
    })
  },
)

t.test(
  'the setting wallets.apple decides the type of the card, or refuses a payload of Apple Pay',
  async (t) => {
    const { ask, app, createApple } = await open(t)
    t.equal((await createApple()).type, 'dpan')
    await setSetting(app, 'wallets.apple', 'mpan')
    t.equal((await createApple()).type, 'mpan')
    await setSetting(app, 'wallets.apple', 'refuse')
    await t.rejects(ask('apple-pay create', applePayload()), { code: 'apple_pay_refused', status: 422 })
  },
)

t.test('a malformed payload of Apple Pay is refused', async (t) => {
  const { ask } = await open(t)
  for (const wrong of [{ version: 'RSA_v1' }, { data: 'not base64' }, { header: {} }, { signature: null }])
    await t.rejects(ask('apple-pay create', applePayload(wrong)), { code: 'apple_pay_refused' })
  await t.rejects(ask('apple-pay create', { apple_payment_data: { paymentData: 'text' } }), {
    code: 'validation',
  })
  const long = { header: { ...APPLE_PAYMENT.header, transactionId: 'a'.repeat(256) } }
  await t.rejects(ask('apple-pay create', applePayload(long)), { code: 'validation' })
})

t.test('the permissions to read and to reveal decide how a card is shown', async (t) => {
  const { askAs, createGoogle, createApple, keyWith, createApplication } = await open(t)
  const [google, apple] = [await createGoogle(), await createApple()]
  for (const [area, { id }, number] of [
    ['google-pay', google, '4242424242424242'],
    ['apple-pay', apple, '4242424242424242'],
  ] as const) {
    const get = async (key: string) => (await askAs(key, `${area} get`, { id })) as typeof google
    const [reader, revealer] = [await keyWith(`${area}:read`), await keyWith(`${area}:reveal`)]
    t.match(await get(reader), {
      data: { number: 'XXXXXXXXXXXX4242' },
      authentication: { threeds_cryptogram: 'XXXXXXX', eci_indicator: '7' },
    })
    for (const key of [revealer, await keyWith(`${area}:read`, `${area}:reveal`)])
      t.match(await get(key), { data: { number }, authentication: { threeds_cryptogram: 'AAAAAA=' } })
    const other = area === 'google-pay' ? 'apple-pay' : 'google-pay'
    await t.rejects(get(await keyWith(`${other}:reveal`)), { code: 'forbidden' })
    const ruled = async (container: string, transform: 'redact' | 'reveal') => {
      const rules = [{ priority: 1, container, transform, permissions: [`${area}:read` as const] }]
      return (await createApplication('private', { rules })).key
    }
    const { data, authentication } = await get(await ruled('/pci/', 'redact'))
    t.strictSame([data, authentication], [undefined, undefined], 'a rule can redact')
    t.match(await get(await ruled('/pci/', 'reveal')), { data: { number } })
    t.match(
      await get(await ruled('/general/', 'reveal')),
      { data: { number: 'XXXXXXXXXXXX4242' } },
      'another container',
    )
  }
})

t.test('the owner sees a card masked without the flag to reveal, and in no-reveal mode', async (t) => {
  const { app, createGoogle, textOf } = await open(t)
  const { id } = await createGoogle()
  const masked = await textOf(() => app.owner({ reveal: false }), 'google-pay get', { id })
  t.match(masked, /"number":"XXXXXXXXXXXX4242"/)
  t.notMatch(masked, /4242424242424242|AAAAAA=/)
  t.match(await textOf(() => app.owner({ reveal: true }), 'google-pay get', { id }), /4242424242424242/)
  const hidden = { ...(await app.owner({ reveal: false })), isNoReveal: true as const }
  const { result } = await perform(app, hidden, requireOperation('google-pay get'), { id }, 'trace')
  t.match(result, { data: MASKED })
  t.notMatch(JSON.stringify(result), /fingerprint|4242424242424242|AAAAAA=/)
})

t.test(
  'without expires_at, a card of Apple Pay expires with its month, and a card of Google Pay never expires',
  async (t) => {
    const { ask, clock, createGoogle, createApple } = await open(t)
    const soon = await createGoogle({ expires_at: '2030-01-15T13:00:00Z' })
    t.equal(soon.expires_at, '2030-01-15T13:00:00.000+00:00')
    const never = await createGoogle()
    const month = await createApple()
    const short = await createApple({ expires_at: '2030-01-15T13:00:00Z' })
    await t.rejects(createGoogle({ expires_at: '2030-01-15T11:00:00Z' }), { code: 'validation' })
    clock.now += 60 * 60 * 1000
    const gone = { code: 'not_found' }
    await t.rejects(ask('google-pay get', { id: soon.id }), gone)
    await t.rejects(ask('apple-pay get', { id: short.id }), gone)
    await t.rejects(ask('apple-pay delete', { id: short.id }), gone)
    await t.rejects(ask('token detokenize', { payload: `{{ google_pay: ${soon.id} }}` }), {
      code: 'validation',
    })
    t.ok(await ask('apple-pay get', { id: month.id }))
    clock.now = Date.UTC(2033, 6)
    await t.rejects(ask('apple-pay get', { id: month.id }), gone)
    t.ok(await ask('google-pay get', { id: never.id }))
  },
)

t.test('a card of the type mpan can be unlinked, and is deleted 30 days later', async (t) => {
  const { ask, app, clock, createApple, logOf } = await open(t)
  await t.rejects(ask('apple-pay unlink', { id: (await createApple()).id }), { code: 'unprocessable' })
  await setSetting(app, 'wallets.apple', 'mpan')
  const [unlinked, deleted] = [await createApple(), await createApple()]
  t.match(await ask('apple-pay unlink', { id: unlinked.id }), {
    apple_pay: { type: 'mpan', status: 'unlinked', expires_at: '2030-02-14T12:00:00.000+00:00' },
  })
  t.match(await ask('apple-pay get', { id: unlinked.id }), { status: 'unlinked', modified_at: String })
  const { length } = await logOf(unlinked.id)
  t.match(await ask('apple-pay unlink', { id: unlinked.id }), { apple_pay: { status: 'unlinked' } })
  t.equal((await logOf(unlinked.id)).length, length, 'the second call changes nothing')
  t.match(await ask('apple-pay delete', { id: deleted.id }), { apple_pay: { status: 'unlinked' } })
  clock.now += 30 * 24 * 60 * 60 * 1000
  await t.rejects(ask('apple-pay get', { id: unlinked.id }), { code: 'not_found' })
})

t.test('the rules for tokens in the container of a card decide how expressions show the card', async (t) => {
  const { askAs, createGoogle, createApplication, logOf } = await open(t)
  const { id } = await createGoogle()
  const payload = {
    number: `{{ google_pay: ${id} | json: '$.data.number' }}`,
    year: `{{google_pay:${id} | json: '$.data' | card_exp: 'YYYY'}}`,
    cryptogram: `{{ google_pay: ${id} | json: '$.authentication.threeds_cryptogram' }}`,
    wrong: `{{ google_pay: ${id} | json: '$.data.authentication.threeds_cryptogram' }}`,
    whole: `{{ google_pay: ${id} }}`,
  }
  const as = async (transform: 'mask' | 'reveal' | 'redact', container = '/pci/') => {
    const rules = [{ ...REVEALS_ALL, transform, container }]
    const { key } = await createApplication('private', { rules })
    return (await askAs(key, 'token detokenize', { payload })) as Record<string, unknown>
  }
  t.match(await as('reveal'), {
    ...{ number: '4242424242424242', year: '2040', cryptogram: 'AAAAAA=', wrong: null },
    whole: { id, status: 'active', data: CARD, details: { tsp: 'Google' } },
  })
  t.match(await as('mask'), { number: 'XXXXXXXXXXXX4242', cryptogram: 'XXXXXXX', whole: { data: MASKED } })
  await t.rejects(as('reveal', '/general/'), { code: 'forbidden' })
  t.match(await logOf(id), [
    { operation: 'read', message: 'Google Pay retrieved', entity_type: 'google_pay' },
  ])
})

t.test(
  'a caller with token:use can pass a card to a reactor as an argument, and the use is logged',
  async (t) => {
    const { ask, askAs, createApple, keyWith, logOf } = await open(t)
    const { id } = await createApple()
    const code =
      'module.exports = async ({ args }) => ({ raw: { last: args.number.slice(-4), all: args.whole.status } })'
    const reactor = await ask('reactor create', { name: 'r', code })
    const args = { number: `{{ apple_pay: ${id} | json: '$.data.number' }}`, whole: `{{ apple_pay: ${id} }}` }
    const react = async (key: string) => askAs(key, 'reactor react', { id: reactor.id, args })
    t.match(await react(await keyWith('token:use')), { raw: { last: '4242', all: 'active' } })
    await t.rejects(react(await keyWith('apple-pay:reveal')), { code: 'forbidden' })
    t.match(await logOf(id), [{ operation: 'use', message: 'Apple Pay used', entity_type: 'apple_pay' }])
  },
)

t.test('merchant_registration_id must be the id of a merchant of the same wallet', async (t) => {
  const { ask, createGoogle, createApple } = await open(t)
  const merchant_identifier = 'merchant.com.example'
  const { id: google } = await ask('google-pay merchant create', { merchant_identifier })
  const { id: apple } = await ask('apple-pay merchant create', { merchant_identifier })
  t.ok(await createGoogle({ merchant_registration_id: google }))
  t.ok(await createApple({ merchant_registration_id: apple }))
  const wrong = { code: 'validation', message: /merchant_registration_id: .* does not exist/ }
  await t.rejects(createGoogle({ merchant_registration_id: apple }), wrong)
  await t.rejects(createApple({ merchant_registration_id: google }), wrong)
  await ask('apple-pay domain register', { domain: 'shop.example.com' })
  const session = { domain: 'SHOP.example.com', display_name: 'Shop', merchant_registration_id: apple }
  t.match(await ask('apple-pay session', session), { merchantIdentifier: merchant_identifier })
})

t.test('neither a certificate file nor its password is stored', async (t) => {
  const { ask, app } = await open(t)
  const { id: merchant_id } = await ask('apple-pay merchant create', { merchant_identifier: 'm' })
  const { id } = await ask('apple-pay certificate create', {
    merchant_id,
    merchant_certificate_data: CERTIFICATE_FILE,
    merchant_certificate_password: 'the password',
    payment_processor_certificate_data: CERTIFICATE_FILE,
    payment_processor_certificate_password: 'the password',
  })
  const { number } = await app.tenant()
  const stored = await app.store.read(async (store) => store.get('wallet_certificate', number, id))
  t.match(stored, { merchant_id, wallet: 'apple' })
  t.notMatch(JSON.stringify(stored), /the password|MAMCAQM/)
  await t.rejects(
    ask('apple-pay certificate create', {
      merchant_id,
      merchant_certificate_password: 'the password',
      payment_processor_certificate_data: CERTIFICATE_FILE,
      payment_processor_certificate_password: 'the password',
    }),
    { code: 'validation', message: /required with the password/ },
  )
})

t.test('a tenant has at most 99 domains, also if they are registered at the same time', async (t) => {
  const { ask, app } = await open(t)
  const names = Array.from({ length: 99 }, (_, at) => `shop-${at}.example.com`)
  t.equal((await ask('apple-pay domain replace', { domains: names.slice(0, 97) })).domains.length, 97)
  const many = ['a.example', 'a.example', 'A.example', 'b.example', 'c.example', 'd.example']
  const asked = await Promise.allSettled(many.map((domain) => ask('apple-pay domain register', { domain })))
  t.equal(asked.filter(({ status }) => status === 'rejected').length, 2)
  const listed = (await ask('apple-pay domain list')).domains.map(({ domain }) => domain.toLowerCase())
  t.equal(listed.length, 99)
  t.equal(new Set(listed).size, 99)
  await t.rejects(ask('apple-pay domain replace', { domains: [...names, 'z.example'] }), {
    code: 'unprocessable',
    message: /at most 99/,
  })
  t.ok(await ask('apple-pay domain replace', { domains: [...names, ...names] }), 'names twice count once')
  await setSetting(app, 'wallets.unverified_domains', 'x.example,y.example')
  await ask('apple-pay domain replace', { domains: [] })
  const unverified = { code: 'unprocessable', message: /cannot be verified/ }
  await t.rejects(ask('apple-pay domain register', { domain: 'Y.example' }), unverified)
  await t.rejects(ask('apple-pay domain replace', { domains: ['a.example', 'x.example'] }), unverified)
  t.strictSame((await ask('apple-pay domain list')).domains, [], 'a refused call registers nothing')
})

t.test('cards, merchants and domains belong to their tenant', async (t) => {
  const { ask, createTenant, createGoogle, createApple } = await open(t)
  await createTenant('other')
  const [google, apple] = [await createGoogle(), await createApple()]
  const merchant = await ask('google-pay merchant create', { merchant_identifier: 'm' })
  await ask('apple-pay domain register', { domain: 'a.example' })
  const gone = { code: 'not_found' }
  await t.rejects(ask('google-pay get', { id: google.id }, 'other'), gone)
  await t.rejects(ask('google-pay delete', { id: google.id }, 'other'), gone)
  await t.rejects(ask('apple-pay get', { id: apple.id }, 'other'), gone)
  await t.rejects(ask('google-pay merchant delete', { id: merchant.id }, 'other'), gone)
  await t.rejects(ask('token detokenize', { payload: `{{ apple_pay: ${apple.id} }}` }, 'other'), {
    code: 'validation',
  })
  t.strictSame((await ask('apple-pay domain list', {}, 'other')).domains, [])
  const other = (await ask('google-pay create', NETWORK_TOKEN, 'other')).google_pay
  t.not(other?.fingerprint, google.fingerprint)
})

t.test('the fingerprint of a card is the fingerprint of a token with the same number', async (t) => {
  const { ask, createGoogle } = await open(t)
  const token = await ask('token create', { type: 'card', data: CARD })
  t.equal((await createGoogle()).fingerprint, token.fingerprint)
})

t.test('public applications may create cards and sessions, and nothing else', async (t) => {
  const { ask, askAs, createApplication } = await open(t)
  const permissions: Permission[] = ['google-pay:create', 'apple-pay:create', 'apple-pay:session']
  const { key } = await createApplication('public', { permissions })
  t.ok((await askAs(key, 'google-pay create', NETWORK_TOKEN)).google_pay)
  t.ok((await askAs(key, 'apple-pay create', applePayload())).apple_pay)
  await ask('apple-pay domain register', { domain: 'a.example' })
  t.ok(await askAs(key, 'apple-pay session', { domain: 'a.example', display_name: 'Shop' }))
  for (const permission of [
    'google-pay:read',
    'apple-pay:reveal',
    'apple-pay:manage',
    'google-pay:manage',
  ] as const)
    await t.rejects(ask('app create', { name: 'p', type: 'public', permissions: [permission] }), {
      code: 'validation',
    })
  for (const permission of ['enrollment:get', 'enrollment:create'] as const)
    t.ok(await ask('app create', { name: 'p', type: 'public', permissions: [permission] }))
})
