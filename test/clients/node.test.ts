/** The unmodified newest client for Node. The test makes every call that the client offers. */
import { setTimeout as pause } from 'node:timers/promises'
import { BasisTheoryClient } from '@basis-theory/node-sdk'
import t from 'tap'
import { encryptLikePhones } from '../support/encrypt.js'
import { type Client, listCalls, manage, watch } from './calls.js'
import { serveClients } from './server.js'

/** Calls of areas that are not emulated. `bodies.test.ts` lists their paths as `Not Emulated`. */
const OF_TENANTS = '(?:connections|merchants\\.requestOnboarding)'
const OUT = new RegExp(`^(?:agentic|tenants\\.${OF_TENANTS})\\b`)

/** The documented answers of these calls are objects, but the client expects texts and throws an error. */
const UNREADABLE = ['applePay.delete', 'applePay.session.create', 'googlePay.delete']

const BROWSER = {
  browserJavascriptEnabled: true,
  browserJavaEnabled: false,
  browserLanguage: 'en-US',
  browserColorDepth: '24',
  browserScreenHeight: '900',
  browserScreenWidth: '1440',
  browserTz: '-60',
  browserUserAgent: 'Mozilla/5.0',
}
const PAYMENT = {
  authenticationCategory: 'payment',
  authenticationType: 'payment-transaction',
  purchaseInfo: { amount: '80000', currency: '826', exponent: '2', date: '20240109141010' },
  merchantInfo: {
    ...{ mid: '9876543210001', acquirerBin: '000000999', name: 'Shop' },
    ...{ countryCode: '826', categoryCode: '7922' },
  },
}

const CODE = 'module.exports = async ({ args }) => ({ raw: { sum: args.a + 1 } })'

t.test('every call is answered or refused as not emulated', async (t) => {
  const { url, keys, accept, completeChallenges } = await serveClients(t)
  const answered = new Set<string>()
  const open = (apiKey: string): Client => watch(new BasisTheoryClient({ baseUrl: url, apiKey }), answered)
  const [own, manager, browser] = [open(keys.private), open(keys.management), open(keys.public)]

  // Tokens.
  const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2040, cvc: '123' }
  const metadata = { team: 'Blue' }
  const token = await own.tokens.create({ type: 'card', data: card, metadata, containers: ['/pci/high/'] })
  t.match(token, { type: 'card', card: { last4: '4242', brand: 'visa' }, extras: { deduplicated: false } })
  t.match(await own.tokens.get(token.id), { id: token.id, metadata })
  t.match(await own.tokens.update(token.id, { metadata: { team: 'Red' } }), { metadata: { team: 'Red' } })
  for (let at = 0; at < 4; at++) await own.tokens.create({ type: 'token', data: `text ${at}`, metadata })
  const collect = async (asked: Promise<AsyncIterable<{ id: string }>>) => {
    const ids: string[] = []
    for await (const { id } of await asked) ids.push(id)
    return ids
  }
  t.equal((await collect(own.tokens.listV2({ size: 2 }))).length, 5, 'all pages')
  t.same(await collect(own.tokens.listV2({ type: 'card' })), [token.id])
  t.equal(
    (await collect(own.tokens.listV2({ metadata: { team: 'blue' } }))).length,
    0,
    'list filters distinguish upper and lower case',
  )
  const query = 'type:token AND container:/general/'
  t.equal((await collect(own.tokens.searchV2({ size: 3, query }))).length, 4)
  // `coffer help search` says that these queries are supported.
  for (const query of ['metadata.team:Blue', 'container:/pci/ AND type:card', 'data:4111'])
    t.ok(await collect(own.tokens.searchV2({ query })), query)
  const made = await own.tokens.tokenize({ a: 'x', b: { type: 'token', data: 'y' } })
  t.match(made, { a: /^[0-9a-f-]{36}$/, b: { type: 'token' } })
  const number = await own.tokens.detokenize(`{{ ${token.id} | json: '$.number' }}`)
  t.equal(number, '4242424242424242')

  const again = () => own.tokens.create({ type: 'token', data: 'once' }, { idempotencyKey: 'node-1' })
  t.equal(
    (await again()).id,
    (await again()).id,
    'a retry with the same idempotency key creates no second token',
  )

  // Token intents.
  const [intent, dropped] = [1, 2].map(() => browser.tokenIntents.create({ type: 'card', data: card }))
  const { id: tokenIntentId, ...shown } = await intent
  t.match(shown, { type: 'card', card: { last4: '4242' }, fingerprint: token.fingerprint })
  t.match(await own.tokenIntents.get(tokenIntentId), { id: tokenIntentId })
  const cvc = await own.tokens.detokenize(`{{ token_intent: ${tokenIntentId} | json: '$.data.cvc' }}`)
  t.equal(cvc, '123')
  t.match(await own.tokens.create({ tokenIntentId }), { type: 'card', fingerprint: token.fingerprint })
  await own.tokenIntents.delete((await dropped).id)

  // Enrichment.
  const account = { routing_number: '021000021', account_number: '00001' }
  const bank = await own.tokens.create({ type: 'bank', data: account })
  t.match(await own.enrichments.bankAccountVerify({ tokenId: bank.id }), { status: 'enabled' })
  t.match(await own.enrichments.getcarddetails({ bin: '424242' }), { brand: 'Visa' })

  // Documents.
  const file = new File(['Hello'], 'hello.txt', { type: 'text/plain' })
  const described = { metadata: { 'attribute 1': 'a' } }
  const document = await own.documents.upload({ document: file, request: described })
  t.match(document, {
    ...described,
    id: String,
    contentType: 'text/plain',
    createdAt: Date,
    tenantId: String,
  })
  t.match(await own.documents.get(document.id), document)
  const textOf = async (id: string) =>
    Buffer.from(await (await own.documents.data.get(id)).arrayBuffer()).toString('latin1')
  t.equal(await textOf(document.id), 'Hello')
  const scan = await browser.documents.upload({ document: Buffer.from([0, 255, 10]) })
  t.match(scan, { metadata: {}, contentType: 'application/octet-stream' })
  t.equal(await textOf(scan.id), '\x00\xff\n')
  await own.documents.delete(scan.id)
  for (const call of [() => own.documents.get(scan.id), () => own.documents.data.get(scan.id)])
    await t.rejects(call(), { statusCode: 404 } as object as Error)
  await t.rejects(own.documents.upload({}), { statusCode: 400 } as object as Error)

  // Account updater.
  const dated = { number: '4111111111111111', expiration_month: 12, expiration_year: 2023 }
  const outdated = await own.tokens.create({ type: 'card', data: dated })
  const { realTime, jobs } = own.accountUpdater
  t.match(await realTime.invoke({ tokenId: outdated.id }), {
    resultCode: 'UPD_PAN',
    newToken: { type: 'card', card: { last4: '6746' } },
  })
  const job = await jobs.create()
  t.ok(job.createdAt instanceof Date)
  t.match(job, { status: 'pending', uploadUrl: String, tenantId: String, createdBy: String, expiresAt: Date })
  await fetch(job.uploadUrl, { method: 'PUT', body: `token\n${outdated.id}\n` })
  while ((await jobs.get(job.id)).status !== 'completed') await pause(20)
  const { downloadUrl, results } = await jobs.get(job.id)
  t.strictSame(results, { UPD_PAN: 1 })
  t.match(await (await fetch(downloadUrl)).text(), `${outdated.id},,,`)
  t.match(await jobs.list({ size: 1 }), {
    pagination: { pageSize: 1 },
    data: [{ id: job.id, uploadUrl: String }],
  })

  // Network tokens.
  const networkToken = await own.networkTokens.create({ tokenId: token.id })
  t.match(networkToken, {
    status: 'active',
    data: { number: /^X{12}\d{4}$/, expirationMonth: 12, expirationYear: 2043 },
    networkToken: { brand: 'visa', expirationYear: 2043 },
    card: { last4: '4242', expirationYear: 2040 },
    par: /^[0-9A-Z]{29}$/,
    tokenId: token.id,
    extras: { deduplicated: false },
  })
  t.ok(networkToken.createdAt instanceof Date)
  t.match(await own.networkTokens.create({ tokenId: token.id }), { extras: { deduplicated: true } })
  t.strictSame((await own.tokens.get(token.id)).extras, { networkTokenIds: [networkToken.id] })
  t.match(await own.networkTokens.cryptogram(networkToken.id), { cryptogram: /^.{22}==$/, eci: '07' })
  t.match(await own.networkTokens.suspend(networkToken.id), { status: 'suspended' })
  await t.rejects(own.networkTokens.suspend(networkToken.id), { statusCode: 409 } as object as Error)
  t.match(await own.networkTokens.resume(networkToken.id), { status: 'active', modifiedAt: Date })
  t.match(await own.networkTokens.get(networkToken.id), { id: networkToken.id, status: 'active' })
  t.strictSame(await own.networkTokens.account.get(networkToken.id), {})
  const declined = { number: '4929544240318920', expirationMonth: 12, expirationYear: 2023 }
  await t.rejects(own.networkTokens.create({ data: declined }), {
    statusCode: 422,
    body: { title: 'CARD_DECLINED' },
  } as object as Error)
  await own.networkTokens.delete(networkToken.id)
  // Wallets.
  const plain = (signature: string, message: object) => ({
    googlePaymentData: { protocolVersion: 'BasisTheory', signature, signedMessage: JSON.stringify(message) },
  })
  const date = { expiration_month: 12, expiration_year: 2040 }
  /** The documented answer is an object, but this client expects a text. The call itself succeeds. */
  const readsText = async (call: Promise<unknown>) =>
    t.match(await call.catch((error: Error) => error), { message: /Expected string. Received object/ })
  const device = { number: '4000000000000000006', ...date, cryptogram: 'AAAAAA=', eci_indicator: '7' }
  const { googlePay, tokenIntent: none } = await browser.googlePay.create(plain('network_token', device))
  t.equal(none, undefined)
  t.match(googlePay, { status: 'active', createdAt: Date, details: { authMethod: 'CRYPTOGRAM_3DS' } })
  t.match(await own.googlePay.get(googlePay.id), {
    id: googlePay.id,
    data: { number: '4000000000000000006', expiration_year: 2040 },
    authentication: { threedsCryptogram: 'AAAAAA=', eciIndicator: '7' },
  })
  await readsText(own.googlePay.delete(googlePay.id))
  t.match(await own.googlePay.get(googlePay.id).catch((error: object) => error), { statusCode: 404 })
  const { tokenIntent } = await browser.googlePay.create(
    plain('card', { number: '4242424242424242', ...date }),
  )
  t.match(tokenIntent, {
    card: { last4: '4242' },
    extras: { tspDetails: { authMethod: 'PAN_ONLY', assuranceDetails: { accountVerified: true } } },
  })
  const { googlePaymentData: expired } = plain('a signature', {})
  const intermediateSigningKey = { signedKey: '{}', signatures: ['a'] }
  const googlePaymentData = { ...expired, protocolVersion: 'ECv2', intermediateSigningKey }
  const refusal = await own.googlePay.create({ googlePaymentData }).catch((error: object) => error)
  t.match(refusal, {
    statusCode: 422,
    body: { title: 'Unprocessable Google Pay Token', detail: /Failed to process the Google Pay token/ },
  })
  const base64 = 'bWFkZSB1cA=='
  const { applePay } = await browser.applePay.create({
    // The client sends only these two attributes of the payment token.
    applePaymentData: {
      paymentData: {
        ...{ version: 'EC_v1', data: base64, signature: base64 },
        header: { ephemeralPublicKey: base64, publicKeyHash: base64, transactionId: 'c0ffee' },
      },
      transactionIdentifier: 'c0ffee',
    },
  })
  t.match(applePay, { type: 'dpan', status: 'active', transactionId: 'c0ffee', expiresAt: Date })
  t.match(await own.applePay.get(applePay.id), {
    data: { number: '4242424242424242' },
    authentication: { threedsCryptogram: 'AAAAAA=', eciIndicator: '7' },
  })
  await readsText(own.applePay.delete(applePay.id))
  t.match(await own.applePay.get(applePay.id).catch((error: object) => error), { statusCode: 404 })
  const { domain: domains, merchant: appleMerchants } = own.applePay
  const verified = { domains: [{ domain: 'shop.example.com', status: 'verified' }] }
  t.match(await domains.register({ domain: 'shop.example.com' }), verified)
  t.match(await domains.registerAll({ domains: ['shop.example.com'] }), verified)
  t.match(await domains.get(), verified)
  await readsText(browser.applePay.session.create({ domain: 'shop.example.com', displayName: 'Shop' }))
  await domains.deregister({ domain: 'shop.example.com' })
  const p12 = 'MAMCAQM='
  const processor = {
    paymentProcessorCertificateData: p12,
    paymentProcessorCertificatePassword: 'made up',
    domain: 'shop.example.com',
  }
  const merchantFile = { merchantCertificateData: p12, merchantCertificatePassword: 'made up' }
  const fingerprint = /^[0-9a-f]{64}$/
  for (const [merchants, files, shown] of [
    [appleMerchants, processor, { paymentProcessorCertificateFingerprint: fingerprint }],
    [own.googlePay.merchant, merchantFile, { merchantCertificateFingerprint: fingerprint }],
  ]) {
    const merchant = await merchants.create({ merchantIdentifier: 'merchant.com.example' })
    t.match(await merchants.get(merchant.id), { merchantIdentifier: 'merchant.com.example', createdAt: Date })
    const certificate = await merchants.certificates.create(merchant.id, files)
    t.match(await merchants.certificates.get(merchant.id, certificate.id), shown)
    await merchants.certificates.delete(merchant.id, certificate.id)
    await merchants.delete(merchant.id)
  }

  // Applications and their keys.
  const draft = { name: 'made', type: 'private', permissions: ['token:read'] }
  const app = await manage(t, manager.applications, draft)
  t.match(app, { key: /^key_/, keys: [{ key: /^key_/ }] })
  t.ok(
    (await collect(manager.applications.list({ size: 1 }))).includes(app.id),
    'the application is found in pages of one record',
  )
  t.match(await own.applications.getByKey(), { type: 'private' })
  const key = await manager.applicationKeys.create(app.id)
  t.match(await manager.applicationKeys.list(app.id), [{ id: key.id }, {}])
  t.match(await manager.applicationKeys.get(app.id, key.id), { id: key.id })
  await manager.applicationKeys.delete(app.id, key.id)
  await manager.applications.delete(app.id)

  // Reactors.
  const sum = { name: 'sum', code: CODE, configuration: { A: 'b' } }
  const reactor = await manage(t, manager.reactors, sum)
  t.equal(reactor.state, 'active')
  t.match(await own.reactors.react(reactor.id, { args: { a: 2 } }), { raw: { sum: 3 } })
  const { asyncReactorRequestId: run } = await own.reactors.reactAsync(reactor.id, { args: { a: 2 } })
  t.match(await poll(() => own.reactors.results.get(reactor.id, run)), { raw: { sum: 3 } })
  await manager.reactors.delete(reactor.id)

  // Proxies.
  const echo = { name: 'echo', destinationUrl: 'https://example.com/api' }
  const proxy = await manage(t, manager.proxies, echo)
  t.match(proxy.key, /^.{22}$/)
  await manager.proxies.delete(proxy.id)

  // Sessions.
  const session = await browser.sessions.create()
  await own.sessions.authorize({ nonce: session.nonce, permissions: ['token:create'] })
  const guest = await open(session.sessionKey).tokens.create({ type: 'token', data: 'by a session' })
  t.match(guest, { type: 'token' })

  // 3-D Secure.
  const start3ds = async (number: string) => {
    const { id: tokenId } = await own.tokens.create({ type: 'card', data: { number } })
    return browser.threeds.sessions.create({ tokenId, device: 'browser', deviceInfo: BROWSER })
  }
  const asked = { ...PAYMENT, cardholderInfo: { name: 'Ada', email: 'ada@example.com' } }
  await completeChallenges()
  const challenged = await start3ds('4000020000000000')
  t.match(challenged, { cardBrand: 'Visa', recommendedVersion: '2.2.0', directoryServerId: 'M000000003' })
  t.match(await own.threeds.sessions.authenticate(challenged.id, asked), {
    authenticationStatus: 'challenge',
    acsChallengeUrl: `${url}/3ds/acs/browser/creq`,
  })
  const final = { authenticationStatus: 'successful', eci: '05', directoryStatusCode: 'C' }
  t.match(await own.threeds.sessions.getChallengeResult(challenged.id), final)
  t.match(await own.threeds.sessions.get(challenged.id), { id: challenged.id, authentication: final })
  const failing = await start3ds('4264281500003339')
  await t.rejects(own.threeds.sessions.authenticate(failing.id, asked), {
    statusCode: 424,
    body: { error: { service_status: '502', error_source: 'Directory Server' } },
  } as object as Error)

  // Keys with which browsers and phones encrypt.
  const clientKey = await manager.keys.create()
  t.match(clientKey, { keyId: /^[0-9a-f-]{36}$/, publicKeyPem: /^-----BEGIN PUBLIC KEY-----\n/ })
  t.same(Object.keys(await manager.keys.get(clientKey.keyId)).sort(), ['expiresAt', 'id', 'keyId'])
  t.match(await manager.keys.list(), [{ keyId: clientKey.keyId }])
  const publicKey = { key_id: clientKey.keyId, public_key_pem: clientKey.publicKeyPem }
  const encrypted = encryptLikePhones(card, publicKey)
  const opened = await browser.tokens.create({ type: 'card', encrypted })
  t.match(opened, { fingerprint: token.fingerprint, extras: { decryptedPayload: true }, data: undefined })
  const secret = await own.tokens.detokenize(`{{ ${opened.id} | json: '$.cvc' }}`)
  t.equal(secret, '123')
  t.match(await browser.tokenIntents.create({ type: 'card', encrypted }), { card: { last4: '4242' } })
  await manager.keys.delete(clientKey.keyId)
  await t.rejects(manager.keys.get(clientKey.keyId), { statusCode: 404 } as object as Error)
  await t.rejects(browser.tokens.create({ type: 'card', encrypted }), { statusCode: 400 } as object as Error)

  // The tenant, its members, its log.
  t.match(await manager.tenants.self.get(), { name: 'clients' })
  t.match(await manager.tenants.self.update({ name: 'renamed' }), { name: 'renamed' })
  t.match(await manager.tenants.self.getUsageReports(), { token_report: { monthly_active_tokens: 17 } })
  const { id } = await manager.tenants.invitations.create({ email: 'ada@example.com', role: 'READ_ONLY' })
  t.same(await collect(manager.tenants.invitations.list({ size: 1 })), [id])
  t.match(await manager.tenants.invitations.get(id), { email: 'ada@example.com' })
  await manager.tenants.invitations.resend(id)
  await accept()
  const gone = await manager.tenants.invitations.create({ email: 'eve@example.com' })
  await manager.tenants.invitations.delete(gone.id)
  const [member] = (await manager.tenants.members.list()).data
  t.match(await manager.tenants.members.update(member.id, { role: 'ADMIN' }), { role: 'ADMIN' })
  const owner = await manager.tenants.owner.get()
  t.match(owner, { role: 'OWNER', tenantId: String, user: { id: String }, createdDate: Date })
  t.match(await manager.tenants.ownerTransfer({ memberId: member.id }), { id: member.id, role: 'OWNER' })
  t.match(await manager.tenants.owner.get(), { user: { email: 'ada@example.com' } })
  await manager.tenants.ownerTransfer({ memberId: owner.id })
  const email = 'security@example.com'
  t.match(await manager.tenants.securityContact.get(), { email: undefined })
  t.match(await manager.tenants.securityContact.update({ email }), { email })
  t.match(await manager.tenants.securityContact.get(), { email })
  await t.rejects(manager.tenants.securityContact.update({ email: 'x' }), {
    statusCode: 400,
  } as object as Error)

  // Merchants.
  const { merchants } = manager.tenants
  const shop = {
    name: 'shop',
    details: { merchant: { fullLegalName: 'Shop Ltd', address: { street1: '1 Main Street' } } },
  }
  const merchant = await merchants.create(owner.tenantId, shop)
  t.match(merchant, { ...shop, id: String, tenantId: owner.tenantId })
  t.match(await merchants.get(owner.tenantId, merchant.id), shop)
  t.match(await merchants.update(owner.tenantId, merchant.id, { ...shop, name: 'store' }), { name: 'store' })
  t.same(await collect(merchants.list(owner.tenantId, { size: 1 })), [merchant.id])
  t.match(await merchants.delete(owner.tenantId, merchant.id), { id: merchant.id, name: 'store' })
  await t.rejects(merchants.get(owner.tenantId, merchant.id), { statusCode: 404 } as object as Error)

  // Templates of applications.
  const templates = await browser.applicationTemplates.list()
  t.equal(templates.length, 4)
  for (const { id, name, applicationType: type, rules, permissions } of templates) {
    t.match(await browser.applicationTemplates.get(id), { id, isStarter: Boolean, templateType: String })
    t.match(await manager.applications.create({ name, type, rules, permissions }), { type, permissions })
  }

  await manager.tenants.members.delete(member.id)
  t.ok((await collect(manager.logs.list({ size: 100 }))).length > 20)
  t.ok((await manager.logs.getEntityTypes()).some(({ value }: { value: string }) => value === 'token'))
  t.ok((await manager.permissions.list()).length > 10)
  t.match(await manager.roles.list(), [{ name: 'OWNER' }, { name: 'ADMIN' }, { name: 'READ_ONLY' }])
  await own.tokens.delete(guest.id)

  // Webhooks.
  await browser.webhooks.ping()
  const address = { url: 'https://example.com/events', events: ['token.created'] }
  const draftHook = { name: 'hook', ...address, notifyEmail: 'ada@example.com' }
  const hook = await manage(t, manager.webhooks, draftHook)
  t.equal(hook.status, 'enabled')
  t.ok((await manager.webhooks.events.list()).includes('token.created'))
  await manager.webhooks.delete(hook.id)

  const calls = listCalls(new BasisTheoryClient({ baseUrl: url, apiKey: keys.management }))
  t.ok(calls.length > 120, `${calls.length} calls`)
  await manager.tenants.self.delete()
  const unanswered = calls.filter((each) => !OUT.test(each) && !answered.has(each))
  t.strictSame(unanswered.sort(), UNREADABLE, 'each other call was answered')
})

/** Repeats the request for a result, because the server answers with 404 until the run has ended. */
async function poll<T>(ask: () => Promise<T>, tries = 100): Promise<T> {
  return ask().catch(async (error: { statusCode?: number }) => {
    if (tries === 0 || error.statusCode !== 404) throw error
    await new Promise((resolve) => setTimeout(resolve, 50))
    return poll(ask, tries - 1)
  })
}
