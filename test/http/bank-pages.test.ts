/** The pages of the test bank as HTTP answers. `threeds-browser.test.ts` uses these pages in a browser. */
import t from 'tap'
import type { CofferServer } from '../../src/index.js'
import { AUTHENTICATE } from '../operations/documented.js'
import {
  type Backend,
  call,
  createBackend,
  creqOf,
  encode,
  type Json,
  openShop,
  post,
} from './threeds-shop.js'

const METHOD = '/3ds/acs/browser/method'
const CREQ = '/3ds/acs/browser/creq'
const ANSWER = '/3ds/acs/browser/answer'
const UNKNOWN = 'b2385523-a66c-4907-ac3c-91848e8c0067'
const CALLBACKS = { success: 'https://shop.test/paid?cart=1', failure: 'https://shop.test/failed' }
const DEVICE = JSON.stringify({
  browser_javascript_enabled: true,
  browser_java_enabled: false,
  browser_language: 'en',
  browser_color_depth: '24',
  browser_screen_height: '900',
  browser_screen_width: '1440',
  browser_tz: '0',
  browser_user_agent: 'test',
})

/** Returns the value that is in the page for the script of the page. */
function dataOf(html: string): Record<string, unknown> {
  const [, value = '{}'] = /<data id="\w+" value="([^"]*)">/.exec(html) ?? []
  const marks = { '&quot;': '"', '&#39;': "'", '&lt;': '<', '&gt;': '>', '&amp;': '&' }
  return JSON.parse(Object.entries(marks).reduce((text, [from, to]) => text.replaceAll(from, to), value))
}

const notify = (url: string, { id, acs }: { id: string; acs: string }, transStatus = 'Y') =>
  post(`${url}/3ds/sessions/${id}/challenge-notification`, {
    cres: encode({ messageType: 'CRes', threeDSServerTransID: id, acsTransID: acs, transStatus }),
  })

const answerAs = (url: string, { id, acs }: { id: string; acs: string }, fields: Record<string, string>) =>
  post(url + ANSWER, { session: id, acs_transaction_id: acs, ...fields })

async function eventsOf(server: Pick<CofferServer, 'ask'>): Promise<string[]> {
  const { data } = await server.ask('webhook deliveries', { size: 100 })
  return data.map(({ payload }) => (payload as Json).event.type)
}

t.test(
  'only the pages of the bank may be shown in frames, and these pages have a separate origin',
  async (t) => {
    const { server, backend } = await openShop(t)
    const { id, acs } = await backend.challenged()
    const redirect = await backend.redirect('CY', CALLBACKS)
    const { url } = server
    const framed = [
      await call(`${url}/pages/method.html`),
      await call(`${url}/pages/challenge.html`),
      await post(url + METHOD, { threeDSMethodData: encode({ threeDSServerTransID: UNKNOWN }) }),
      await post(url + CREQ, { creq: creqOf({ id, acs }) }),
      await answerAs(url, { id, acs }, { code: '1' }),
      await answerAs(url, { id, acs }, { code: '1234' }),
      await notify(url, { id, acs }),
      await post(`${url}/3ds/sessions/${id}/method-notification`, {}),
    ]
    for (const { headers, text } of framed) {
      const policy = headers.get('content-security-policy') ?? ''
      t.match(policy, /^sandbox allow-forms allow-scripts; default-src 'none'/)
      t.notMatch(policy, /frame-ancestors|unsafe|allow-same-origin/)
      t.notOk(headers.has('x-frame-options') || headers.has('set-cookie'))
      t.equal(headers.get('cache-control'), 'no-store')
      t.match(text, /Coffer test bank|<main><\/main>/)
    }
    const others = [
      await call(`${url}/`),
      await call(`${url}/invitations/accept?token=x`),
      await call(redirect.redirect_url),
      await call(`${url}/3ds/redirect/${UNKNOWN}`),
    ]
    for (const { headers } of others)
      t.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/)
    for (const path of ['/healthz', '/openapi.json', '/nothing', `/3ds/sessions/${id}`])
      t.notMatch((await call(url + path)).headers.get('content-type') ?? '', 'html')
  },
)

t.test(
  'each page accepts only its own HTTP method, and unknown sessions, ids and messages are refused',
  async (t) => {
    const { server, backend } = await openShop(t)
    const { url } = server
    const { id, acs } = await backend.challenged()
    t.equal((await call(url + CREQ)).status, 405)
    t.equal((await post(`${url}/pages/method.html`, {})).status, 405)
    t.equal((await call(`${url}/3ds/other`)).status, 404)
    t.equal((await call(`${url}/3ds/redirect/x`)).status, 404)
    t.equal((await call(url + CREQ, { method: 'POST', body: '{}' })).status, 415)
    const long = await post(url + CREQ, { creq: 'a'.repeat(70_000) })
    t.equal(long.status, 413)
    const frictionless = (await backend.session('FY')).id
    await backend.authenticate(frictionless)
    const ids = (await backend.get(frictionless)).authentication
    for (const [creq, status] of [
      ['', 404],
      ['!!', 404],
      [encode([]), 404],
      [creqOf({ id: UNKNOWN, acs }), 404],
      [creqOf({ id, acs: UNKNOWN }), 404],
      [creqOf({ id, acs }, { messageVersion: '3.0.0' }), 400],
      [creqOf({ id, acs }, { messageType: 'AReq' }), 400],
      [creqOf({ id: frictionless, acs: ids.acs_transaction_id }), 409],
    ] as const) {
      const answer = await post(url + CREQ, { creq })
      t.equal(answer.status, status)
      t.match(dataOf(answer.text), { type: 'error', isCompleted: false, id: String, details: String })
    }
  },
)

t.test(
  'the method step notifies only its own 3-D Secure session, and a repeated notification changes nothing',
  async (t) => {
    const { server, backend } = await openShop(t)
    await server.ask('webhook create', {
      name: 'all',
      url: 'https://example.com/events',
      events: ['3ds.session.method-completed'],
    })
    const { id, method_url, method_notification_url } = await backend.session('CY')
    t.match({ method_url, method_notification_url }, { method_url: server.url + METHOD })
    const ask = (threeDSMethodNotificationURL: unknown) =>
      post(method_url, {
        threeDSMethodData: encode({ threeDSServerTransID: id, threeDSMethodNotificationURL }),
      })
    for (const wrong of [
      'https://evil.test/',
      `${method_notification_url}.evil.test`,
      `${method_notification_url}/../x`,
      `${method_notification_url}#x`,
      'javascript:alert(1)',
      undefined,
      { toString: method_notification_url },
    ])
      t.equal((await ask(wrong)).status, 400, JSON.stringify(wrong))
    const page = await ask(`${method_notification_url}?mode=redirect`)
    t.equal(page.status, 200)
    t.match(page.text, `action="${method_notification_url}?mode=redirect"`)
    t.equal(
      (await backend.get(id)).method.method_completion_indicator,
      'N',
      'the page alone does not complete the step',
    )
    for (const _ of [1, 2]) {
      const told = await post(method_notification_url, {
        threeDSMethodData: encode({ threeDSServerTransID: id }),
      })
      t.strictSame(dataOf(told.text), { type: 'method', isCompleted: true, id })
    }
    t.equal((await backend.get(id)).method.method_completion_indicator, 'Y')
    t.strictSame(await eventsOf(server), ['3ds.session.method-completed'])
  },
)

t.test(
  'the answer on the challenge page decides a challenge, and a forged, early or repeated notification does not',
  async (t) => {
    const { server, backend } = await openShop(t)
    const { url } = server
    const events = ['3ds.session.challenge-completed'] as const
    await server.ask('webhook create', {
      name: 'all',
      url: 'https://example.com/events',
      events: [...events],
    })
    const ids = await backend.challenged('CN')
    const early = await notify(url, ids)
    t.equal(early.status, 409)
    t.match(dataOf(early.text), { type: 'error', isCompleted: false, id: ids.id })
    const without = await answerAs(url, ids, { code: '1234' })
    t.equal(without.status, 409, 'nobody has opened the page')
    t.equal((await backend.result(ids.id)).status, 409, 'the challenge is pending')
    const page = await post(url + CREQ, { creq: creqOf(ids) })
    t.equal(page.status, 200)
    for (const part of ['id="coffer-3ds-code"', 'id="coffer-3ds-submit"', 'id="coffer-3ds-cancel"', '800.00'])
      t.match(page.text, part)
    const wrong = await answerAs(url, ids, { code: '0000' })
    t.match(wrong.text, /role="alert">The passcode is wrong. Attempt 2 of 3/)
    const last = await answerAs(url, ids, { code: ' 1234 ' })
    t.match(last.text, `action="${url}/3ds/sessions/${ids.id}/challenge-notification"`)
    for (const status of ['Y', 'N', 'Y']) {
      const told = dataOf((await notify(url, ids, status)).text)
      const authenticationStatus = 'failed'
      t.strictSame(told, { type: 'challenge', isCompleted: true, id: ids.id, authenticationStatus })
    }
    t.equal((await notify(url, { ...ids, acs: UNKNOWN })).status, 404)
    const other = await backend.challenged()
    const crossed = await post(`${url}/3ds/sessions/${other.id}/challenge-notification`, {
      cres: encode({ messageType: 'CRes', threeDSServerTransID: ids.id, acsTransID: ids.acs }),
    })
    t.equal(crossed.status, 400, 'the message is about another session')
    t.equal((await answerAs(url, ids, { action: 'cancel' })).status, 200, 'a second answer is not an error')
    t.match((await backend.result(ids.id)).json, {
      authentication_status: 'failed',
      authentication_status_reason: 'card-authentication-failed',
      challenge_attempts: '02',
    })
    t.strictSame(await eventsOf(server), [...events])
  },
)

t.test(
  'a challenge ends by a cancel, by three wrong codes, out of band, or by a decision outside of its page',
  async (t) => {
    const { server, backend } = await openShop(t)
    const { url } = server
    const open = async (scenario: Parameters<Backend['challenged']>[0]) => {
      const ids = await backend.challenged(scenario)
      return { ids, page: await post(url + CREQ, { creq: creqOf(ids) }) }
    }
    const cancelled = await open('CY')
    await answerAs(url, cancelled.ids, { action: 'cancel', code: '1234' })
    t.match((await backend.result(cancelled.ids.id)).json, {
      authentication_status: 'failed',
      challenge_cancel_reason: 'cardholder-canceled',
    })
    const wrong = await open('CY')
    for (const code of ['', '1', '12345']) await answerAs(url, wrong.ids, { code })
    t.match((await backend.result(wrong.ids.id)).json, {
      authentication_status_reason: 'max-challenges-exceeded',
      challenge_attempts: '03',
    })
    const outside = await open('CYO')
    t.match(outside.page.text, 'coffer-3ds-done')
    t.notMatch(outside.page.text, 'coffer-3ds-code')
    await answerAs(url, outside.ids, { action: 'done' })
    t.match((await backend.result(outside.ids.id)).json, { authentication_status: 'successful' })
    const decided = await backend.challenged()
    await server.control.threeds.decide({ id: decided.id, outcome: 'failed' })
    t.match(
      (await post(url + CREQ, { creq: creqOf(decided) })).text,
      'challenge-notification',
      'the page asks nothing, and tells the result',
    )
  },
)

t.test('text of a request is escaped on the pages of the test bank', async (t) => {
  const { server, backend } = await openShop(t)
  const script = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
  const merchant_info = { ...AUTHENTICATE.merchant_info, name: script }
  const ids = await backend.challenged('CY', { ...AUTHENTICATE, merchant_info })
  const { text } = await post(server.url + CREQ, { creq: creqOf(ids) })
  t.match(text, '&lt;script&gt;alert(1)&lt;/script&gt;')
  const reflected = await post(server.url + CREQ, { creq: creqOf({ id: script, acs: script }) })
  for (const html of [text, reflected.text]) {
    t.notMatch(html, '<img')
    t.notMatch(html, '<script>alert')
  }
})

t.test(
  'the redirect page leads to a stored callback address, and no part of a request changes the address',
  async (t) => {
    const { server, backend } = await openShop(t)
    const { url } = server
    const [key, other] = [backend.keys.public, backend.keys.private]
    const finish = async (scenario: Parameters<Backend['redirect']>[0]) => {
      const { id, redirect_url } = await backend.redirect(scenario, CALLBACKS)
      t.equal(redirect_url, `${url}/3ds/redirect/${id}?apiKey=`)
      t.match((await call(redirect_url)).text, '<h1>Loading</h1>')
      const page = await post(`${url}/3ds/redirect/${id}/authenticate?success=https://evil.test`, {
        device_info: DEVICE,
        url: 'https://evil.test',
      })
      return { id, page, redirect_url }
    }
    const good = await finish('FY')
    t.strictSame(dataOf(good.page.text), { url: CALLBACKS.success })
    const again = await call(`${good.redirect_url}${key}&success=https://evil.test`)
    t.strictSame([again.status, again.headers.get('location')], [303, CALLBACKS.success])
    for (const wrong of [other, 'key_unknown'])
      t.equal((await call(good.redirect_url + wrong)).status, 401, 'the key is no public key')
    const stranger = await server.ask('tenant create', { name: 'stranger' })
    const { key: strange } = await server.ask(
      'app create',
      { name: 'page', type: 'public', permissions: ['3ds:session:create'] },
      { tenant: stranger.id },
    )
    t.equal((await call(good.redirect_url + strange)).status, 401, 'the key of another tenant')
    const { key: weak } = await server.ask('app create', {
      name: 'weak',
      type: 'public',
      permissions: ['token:create'],
    })
    t.equal((await call(good.redirect_url + weak)).status, 401, 'the key may not create sessions')
    t.match(await backend.get(good.id), { device_info: { browser_user_agent: 'test' } })
    t.strictSame(dataOf((await finish('FN')).page.text), { url: CALLBACKS.failure })
    t.strictSame(dataOf((await finish('ED')).page.text), { url: CALLBACKS.failure })

    const asked = await finish('CA')
    t.match(asked.page.text, '<iframe name="challenge"')
    t.equal(
      (await post(`${url}/3ds/redirect/${asked.id}/finish`, {})).status,
      409,
      'the challenge is pending',
    )
    t.match((await call(asked.redirect_url)).text, '<iframe name="challenge"', 'opened again')
    const { acs_transaction_id: acs } = (await backend.get(asked.id)).authentication
    await post(url + CREQ, { creq: creqOf({ id: asked.id, acs }) })
    await answerAs(url, { id: asked.id, acs }, { code: '1234' })
    t.match(await backend.get(asked.id), { authentication: { authentication_status: 'challenge' } })
    const end = await post(`${url}/3ds/redirect/${asked.id}/finish`, {})
    t.strictSame(dataOf(end.text), { url: CALLBACKS.success })
    t.match(await backend.get(asked.id), {
      authentication: { authentication_status: 'attempted', directory_status_code: 'C' },
    })
    t.equal((await call(asked.redirect_url)).headers.get('location'), CALLBACKS.success)

    const usual = (await backend.session('CY')).id
    for (const id of [usual, UNKNOWN]) t.equal((await call(`${url}/3ds/redirect/${id}`)).status, 404)
    const { id: bare } = await backend.redirect('FY', CALLBACKS)
    for (const device_info of ['', '[]', '{}', JSON.stringify({ ...JSON.parse(DEVICE), browser_tz: {} })])
      t.equal((await post(`${url}/3ds/redirect/${bare}/authenticate`, { device_info })).status, 400)
    t.equal((await post(`${url}/3ds/redirect/${bare}/finish`, {})).status, 409)
  },
)

t.test('a session is not created if a callback address is misleading or a brand is wrong', async (t) => {
  const { backend } = await openShop(t)
  const token_id = await backend.token('CY')
  const create = (callback_urls: object, more: object = {}) =>
    backend.send('POST /3ds/sessions', {
      token_id,
      device: 'browser',
      authentication_request: { ...AUTHENTICATE, ...more },
      callback_urls,
    })
  for (const success of [
    'javascript:alert(1)',
    '//evil.test',
    '/x',
    'https://shop.test@evil.test/',
    'data:,x',
  ]) {
    const { status, json } = await create({ ...CALLBACKS, success })
    t.equal(status, 400, success)
    t.ok('callback_urls.success' in json.errors)
  }
  const { json } = await create(CALLBACKS, { card_brand: 'JCB' })
  t.ok('authentication_request.card_brand' in json.errors)
  t.equal((await create(CALLBACKS, { card_brand: 'visa' })).status, 201)
})

t.test(
  'the bank pages of a fork show only sessions of the fork, and expired sessions have no pages',
  async (t) => {
    const { server, backend } = await openShop(t)
    const fork = await server.control.fork()
    const { url } = server
    const own = createBackend(url, fork.keys as Backend['keys'])
    const ids = await own.challenged()
    t.equal((await backend.send(`GET /3ds/sessions/${ids.id}`)).status, 404)
    t.equal((await post(url + CREQ, { creq: creqOf(ids) })).status, 200)
    await answerAs(url, ids, { code: '1234' })
    t.equal((await notify(url, ids)).status, 200)
    t.match((await own.result(ids.id)).json, { authentication_status: 'successful' })
    const session = await own.session('FY')
    await post(session.method_notification_url, {})
    t.equal((await own.get(session.id)).method.method_completion_indicator, 'Y')
    const base = await backend.challenged()
    t.equal((await post(url + CREQ, { creq: creqOf(base) })).status, 200)
    await fork.stop()
    t.equal((await post(url + CREQ, { creq: creqOf(ids) })).status, 404, 'the fork is gone')

    const waiting = await backend.redirect('CY', CALLBACKS)
    await server.control.clock.advance({ by: '61m' })
    t.equal((await call(waiting.redirect_url)).status, 404)
    t.equal((await post(waiting.method_notification_url, {})).status, 404)
  },
)

t.test('if wrong codes arrive at the same time, the third of them ends the challenge', async (t) => {
  const { server, backend } = await openShop(t)
  const events = ['3ds.session.challenge-completed'] as const
  await server.ask('webhook create', { name: 'all', url: 'https://example.com/events', events: [...events] })
  const ids = await backend.challenged()
  await post(server.url + CREQ, { creq: creqOf(ids) })
  const codes = Array.from({ length: 12 }, (_, at) => String(at))
  await Promise.all(codes.map((code) => answerAs(server.url, ids, { code })))
  await answerAs(server.url, ids, { code: '1234' })
  t.match((await backend.result(ids.id)).json, {
    authentication_status: 'failed',
    authentication_status_reason: 'max-challenges-exceeded',
    challenge_attempts: '03',
  })
  t.strictSame(await eventsOf(server), [...events])
})

t.test('a callback address cannot add a header or a script to the redirect page', async (t) => {
  const { server, backend } = await openShop(t)
  const finish = async (success: string) => {
    const { id, redirect_url } = await backend.redirect('FY', { ...CALLBACKS, success })
    const page = await post(`${server.url}/3ds/redirect/${id}/authenticate`, { device_info: DEVICE })
    return { page, again: await call(redirect_url) }
  }
  const broken = await finish('https://shop.test/paid\r\nset-cookie: a=b\r\n\r\n<script>alert(1)</script>')
  t.equal(broken.again.headers.get('set-cookie'), null)
  t.equal(new URL(broken.again.headers.get('location') ?? '').host, 'shop.test')
  const quoted = await finish(`https://shop.test/"'><script>alert(1)</script>`)
  t.strictSame(dataOf(quoted.page.text), { url: `https://shop.test/"'><script>alert(1)</script>` })
  for (const { page } of [broken, quoted]) t.notMatch(page.text, '<script>alert')
  const policy = quoted.page.headers.get('content-security-policy') ?? ''
  t.match(policy, /script-src 'sha256-[^']+';/)
})

t.test('text from a merchant or from metadata is escaped on every page that shows it', async (t) => {
  const { server, backend } = await openShop(t)
  const evil = `</title></data><img src=x onerror="alert(1)">\u202e`
  const merchant_info = { ...AUTHENTICATE.merchant_info, name: evil, url: 'javascript:alert(1)' }
  const purchase_info = { ...AUTHENTICATE.purchase_info, exponent: '99999999', amount: '9'.repeat(400) }
  const request = { ...AUTHENTICATE, merchant_info, purchase_info }
  for (const scenario of ['CY', 'CYO'] as const) {
    const ids = await backend.challenged(scenario, request)
    const { status, text } = await post(server.url + CREQ, { creq: creqOf(ids) })
    t.equal(status, 200)
    t.notMatch(text, /<img|javascript:/)
    t.match(text, '<bdi>&lt;/title&gt;')
  }
})
