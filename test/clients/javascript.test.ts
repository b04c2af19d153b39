/** The unmodified JavaScript clients of today and of January 2023. The test makes all calls of these clients. */
import { createRequire } from 'node:module'
import t, { type Test } from 'tap'
import { type Client, listCalls, manage, watch } from './calls.js'
import { type Served, serveClients } from './server.js'

const require = createRequire(import.meta.url)

/**
 * The test leaves out internal steps of other calls, and the calls of the vendor's input fields, which are pages on the
 * vendor's servers.
 */
const INNER =
  /^(?:init|createElement|loadElements|elements|post|put|patch|get|delete|proxy\.proxyRequest|initOptions.*)$/
/**
 * The test also leaves out the calls about templates of applications, which `node.test.ts` makes, and the calls about
 * transactions. Transactions belong to neither version of the API, so Coffer has no path for them.
 */
const OUT = /^(?:applicationTemplates|transactions)\./

interface Setup {
  served: Served
  open(key: string): Promise<Client>
  answered: Set<string>
  calls: string[]
}

async function start(t: Test, name: string): Promise<Setup> {
  const served = await serveClients(t)
  const { BasisTheory } = require(name) as Client
  const create = (key: string): Promise<Client> =>
    new BasisTheory().init(key, { apiBaseUrl: served.url, disableTelemetry: true })
  const answered = new Set<string>()
  const calls = listCalls(await create(served.keys.management))
  return { served, open: async (key) => watch(await create(key), answered), answered, calls }
}

/** Deletes the tenant, which is also a call of the client, and then checks that each call was answered. */
async function finish(t: Test, { served, open, answered, calls }: Setup): Promise<void> {
  const manager = await open(served.keys.management)
  await manager.tenants.delete()
  const others = calls.filter((each) => !OUT.test(each) && !INNER.test(each))
  t.ok(others.length >= 45, `${others.length} calls`)
  const unanswered = others.filter((each) => !answered.has(each))
  t.strictSame(unanswered, [], 'each other call was answered')
}

const metadata = { team: 'Blue' }

/** Makes the calls that both clients have. */
async function useCommon(t: Test, { served, open }: Setup): Promise<void> {
  const [own, manager, browser] = await Promise.all([
    open(served.keys.private),
    open(served.keys.management),
    open(served.keys.public),
  ])
  const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2040, cvc: '123' }
  const searchIndexes = ['{{ data.number | last4 }}']
  const token = await own.tokens.create({ type: 'card', data: card, metadata, searchIndexes })
  t.match(token, { type: 'card', metadata, data: { number: 'XXXXXXXXXXXX4242' } })
  t.match(await own.tokens.retrieve(token.id), { id: token.id })
  t.match(await own.tokens.update(token.id, { metadata: { team: 'Red' } }), { metadata: { team: 'Red' } })
  const found = { pagination: { totalItems: 1 }, data: [{ id: token.id }] }
  t.match(await own.tokens.list({ type: ['card'], size: 5 }), found)
  t.match(
    await own.tokens.list({ metadata: { team: 'red' } }),
    found,
    'the brand is found in any case of its letters',
  )
  t.match(await own.tokens.search({ query: 'data:4242' }), { pagination: { totalItems: 1 } })
  t.match(await own.tokenize({ a: 'x' }), { a: /^[0-9a-f-]{36}$/ })

  const again = () => own.tokens.create({ type: 'token', data: 'once' }, { idempotencyKey: 'js-1' })
  t.equal(
    (await again()).id,
    (await again()).id,
    'a retry with the same idempotency key creates no second token',
  )

  const app = { name: 'made', type: 'private', permissions: ['token:read'] }
  const made = await manage(t, manager.applications, app)
  t.match(await manager.applications.regenerateKey(made.id), { key: /^key_/ })
  t.match(await own.applications.retrieveByKey(), { type: 'private' })
  t.match(await own.applications.getApplicationByKey(), { type: 'private' })
  await manager.applications.delete(made.id)

  const code = 'module.exports = async ({ args }) => ({ raw: { sum: args.a + 1 } })'
  const requestParameters = [{ name: 'a', type: 'number' }]
  const draft = { type: 'private', name: 'sum', code, configuration: [], requestParameters }
  const formula = await manage(t, manager.reactorFormulas, draft)
  const running = { name: 'one', formula: { id: formula.id }, configuration: {} }
  const reactor = await manage(t, manager.reactors, running)
  t.match(await own.reactors.react(reactor.id, { args: { a: 2 } }), { raw: { sum: 3 } })
  await manager.reactors.delete(reactor.id)
  await manager.reactorFormulas.delete(formula.id)

  const target = { name: 'echo', destinationUrl: 'https://example.com/api' }
  const proxy = await manage(t, manager.proxies, target)
  await manager.proxies.delete(proxy.id)

  const headers = { 'BT-PROXY-URL': served.destination }
  for (const method of ['get', 'post', 'put', 'patch', 'delete']) {
    const hasBody = !['get', 'delete'].includes(method)
    const body = hasBody && { body: { number: `{{ ${token.id} | json: '$.number' }}` } }
    const answer = await own.proxy[method]({ headers, ...body })
    t.equal(answer.method, method.toUpperCase())
    if (hasBody) t.match(answer.body, /"4242424242424242"/, method)
  }

  const session = await browser.sessions.create()
  await own.sessions.authorize({ nonce: session.nonce, permissions: ['token:create'] })
  const guest = await (await open(session.sessionKey)).tokens.create({ type: 'token', data: 'x' })
  await own.tokens.delete(guest.id)

  t.match(await manager.tenants.retrieve(), { name: 'clients' })
  t.match(await manager.tenants.update({ name: 'renamed' }), { name: 'renamed' })
  t.ok((await manager.tenants.retrieveUsageReport()).tokenReport)
  const invitation = await manager.tenants.createInvitation({ email: 'ada@example.com' })
  t.match((await manager.tenants.listInvitations()).data, [{ id: invitation.id }])
  t.match(await manager.tenants.retrieveInvitation(invitation.id), { status: 'PENDING' })
  await manager.tenants.resendInvitation(invitation.id)
  await served.accept()
  const other = await manager.tenants.createInvitation({ email: 'eve@example.com' })
  await manager.tenants.deleteInvitation(other.id)
  const { data: members } = await manager.tenants.listMembers()
  await manager.tenants.deleteMember(members.find(({ role }: { role: string }) => role === 'ADMIN').id)
  t.ok((await manager.logs.list({ size: 100 })).data.length > 20)
  t.ok((await manager.permissions.list()).length > 10)
}

/** Attributes in camel case. The client translates their names. */
const DEVICE = {
  browserJavascriptEnabled: true,
  browserJavaEnabled: false,
  browserLanguage: 'en',
  browserColorDepth: '24',
  browserScreenHeight: '900',
  browserScreenWidth: '1440',
  browserTz: '0',
  browserUserAgent: 'test',
}
const PAYMENT = {
  authenticationCategory: 'payment',
  authenticationType: 'payment-transaction',
  merchantInfo: { mid: '1', acquirerBin: '1', name: 'Shop', countryCode: '826', categoryCode: '7922' },
  purchaseInfo: { amount: '1250', currency: '978', exponent: '2', date: '20300115120000' },
  cardholderInfo: { name: 'Ada', email: 'ada@example.com' },
}

async function useThreeDs(t: Test, { served, open }: Setup): Promise<void> {
  const [own, browser] = await Promise.all([open(served.keys.private), open(served.keys.public)])
  await served.completeChallenges()
  const start = async (number: string) => {
    const token = await own.tokens.create({ type: 'card', data: { number } })
    const card = { type: 'customer', tokenId: token.id, device: 'browser', deviceInfo: DEVICE }
    return browser.threeds.createSession(card)
  }
  const { id, ...made } = await start('4000020000000000')
  t.match(made, { cardBrand: 'Visa', methodUrl: `${served.url}/3ds/acs/browser/method` })
  t.match(await own.threeds.authenticateSession(id, PAYMENT), {
    authenticationStatus: 'challenge',
    acsChallengeUrl: `${served.url}/3ds/acs/browser/creq`,
  })
  const final = { authenticationStatus: 'successful', eci: '05', directoryStatusCode: 'C' }
  t.match(await own.threeds.getChallengeResult(id), final)
  t.match(await own.threeds.getSessionById(id), { id, authentication: final, deviceInfo: DEVICE })
  const failing = await start('4264281500003339')
  await t.rejects(own.threeds.authenticateSession(failing.id, PAYMENT), { status: 424 } as object as Error)
}

t.test("all calls of today's JavaScript client are answered", async (t) => {
  const setup = await start(t, '@basis-theory/basis-theory-js')
  await useCommon(t, setup)
  const manager = await setup.open(setup.served.keys.management)
  const draft = { name: 'keys', type: 'private', permissions: ['token:read'] }
  const { id } = await manager.applications.create(draft)
  const key = await manager.applicationKeys.create(id)
  t.match(await manager.applicationKeys.get(id), [{ id: key.id }, {}])
  t.match(await manager.applicationKeys.getById(id, key.id), { id: key.id })
  await manager.applicationKeys.delete(id, key.id)
  const own = await setup.open(setup.served.keys.private)
  const intent = await own.tokenIntents.create({ type: 'card_number', data: '4242424242424242' })
  t.match(intent, { type: 'card_number', card: { last4: '4242' }, data: undefined })
  await own.tokenIntents.delete(intent.id)
  await useThreeDs(t, setup)
  await finish(t, setup)
})

t.test('all calls of the JavaScript client 1.79.3 are answered', async (t) => {
  const setup = await start(t, 'basis-theory-js-1')
  await useCommon(t, setup)
  const own = await setup.open(setup.served.keys.private)
  const [parent, child] = await own.tokenize([1, 2].map((data) => ({ type: 'token', data })))
  await own.tokens.createAssociation(parent.id, child.id)
  t.match((await own.tokens.listChildren(parent.id)).data, [{ id: child.id }])
  await own.tokens.deleteAssociation(parent.id, child.id)
  t.match(await own.tokens.createChild(parent.id, { type: 'token', data: 3 }), { type: 'token' })
  await finish(t, setup)
})
