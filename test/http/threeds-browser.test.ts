/** The unmodified package `@basis-theory/web-threeds` in Chromium: frames, windows and the redirect page. */
import type { Browser } from 'playwright-core'
import t, { type Test } from 'tap'
import { checkPage, launchChromium, needsChromium } from './chromium.js'
import { openPage, serveShop } from './threeds-page.js'
import { type Backend, createBackend, type Json, NUMBERS, openShop, type Scenario } from './threeds-shop.js'

let browser: Browser | undefined
t.before(async () => {
  if (!('skip' in needsChromium)) browser = await launchChromium()
})
t.teardown(() => browser?.close())

const openShopPage = (t: Test, around?: Parameters<typeof openPage>[2]) => openPage(t, browser!, around)

t.test('web-threeds can create sessions with and without the method step', needsChromium, async (t) => {
  const { createSession, backend, tab, strangers } = await openShopPage(t)
  const started = performance.now()
  const session = await createSession('FY')
  t.ok(performance.now() - started < 3000, 'it does not wait until the method step times out')
  t.match(session, { id: String, cardBrand: 'Mastercard' })
  t.equal((await backend.get(session.id)).method.method_completion_indicator, 'Y')
  t.equal(await tab.locator('#methodIframe').count(), 0, 'the frame is gone')
  t.match(await backend.authenticate(session.id), { authentication_status: 'successful', eci: '02' })
  const skipped = await createSession('CY', { skipMethodRequest: true })
  t.equal((await backend.get(skipped.id)).method.method_completion_indicator, 'N')
  t.equal((await backend.get((await createSession('CYX')).id)).method.method_completion_indicator, 'U')
  t.match(await createSession('X'), { refused: '3DS is not supported for the provided card' })
  t.match(await createSession('EI'), { refused: /The 3DS server failed/ })
  t.strictSame(strangers, [], 'no other host was asked')
})

t.test('a person can answer a challenge in a frame by keyboard and by mouse', needsChromium, async (t) => {
  const { createSession, startChallenge, ended, backend, tab, bank, strangers } = await openShopPage(t)
  const { id } = await createSession('CY')
  await startChallenge(id)
  await bank.getByLabel('Passcode').waitFor()
  t.match(await bank.locator('main').textContent(), /test bank.*You pay 800\.00.*Example 3DS Merchant/s)
  await bank.getByLabel('Passcode').fill('9999')
  await bank.getByRole('button', { name: 'Submit' }).click()
  await bank.getByRole('alert').waitFor()
  await bank.getByLabel('Passcode').focus()
  await tab.keyboard.type('1234')
  await tab.keyboard.press('Enter')
  t.strictSame(await ended(), { id, isCompleted: true, authenticationStatus: 'successful' })
  t.equal(await tab.locator('#challengeIframe').count(), 0, 'the frame is gone')
  t.match((await backend.result(id)).json, { authentication_status: 'successful', challenge_attempts: '02' })

  const table = [
    ['CA', 'successful', 'attempted'],
    ['CN', 'failed', 'failed'],
    ['CU', 'failed', 'unavailable'],
    ['CR', 'failed', 'rejected'],
  ] as const
  for (const [scenario, told, final] of table) {
    const session = await createSession(scenario)
    await startChallenge(session.id)
    await bank.getByLabel('Passcode').fill('1234')
    await bank.getByRole('button', { name: 'Submit' }).click()
    t.match(await ended(), { id: session.id, authenticationStatus: told })
    t.match((await backend.result(session.id)).json, { authentication_status: final })
  }
  const outside = await createSession('CYO')
  await startChallenge(outside.id)
  await bank.getByRole('button', { name: 'Done' }).click()
  t.match(await ended(), { authenticationStatus: 'successful' })
  const cancelled = await createSession('CY')
  await startChallenge(cancelled.id)
  await bank.getByRole('button', { name: 'Cancel' }).click()
  t.match(await ended(), { isCompleted: true, authenticationStatus: 'failed' })
  t.match((await backend.result(cancelled.id)).json, { challenge_cancel_reason_code: '01' })
  t.strictSame(strangers, [])
})

t.test(
  'startChallenge fails for a wrong id and after its timeout, and shows no passcode field if the challenge is already decided',
  needsChromium,
  async (t) => {
    const { createSession, startChallenge, ended, backend, bank } = await openShopPage(t)
    const wrong = await createSession('CY')
    await startChallenge(wrong.id, { acsTransactionId: wrong.id })
    t.match(await ended(), { refused: /No session has this threeDSServerTransID/ })
    const late = await createSession('CY')
    await startChallenge(late.id, { timeout: 500 })
    t.match(await ended(), { refused: 'Timed out waiting for a challenge response. Please try again.' })
    t.equal((await backend.result(late.id)).status, 409, 'the challenge is still pending')
    const { server, backend: other } = await openShop(t)
    const page = await openShopPage(t, { backend: other })
    const decided = await page.createSession('CY')
    await other.authenticate(decided.id)
    await server.control.threeds.decide({ id: decided.id, outcome: 'failed' })
    const { authentication } = await other.get(decided.id)
    await page.tab.evaluate(
      ([id, { acs_challenge_url, acs_transaction_id }]) => {
        const scope = globalThis as Json
        scope.ended = scope.threeds.startChallenge({
          sessionId: id,
          acsChallengeUrl: acs_challenge_url,
          acsTransactionId: acs_transaction_id,
          threeDSVersion: '2.2.0',
        })
      },
      [decided.id, authentication] as const,
    )
    t.match(await page.ended(), { authenticationStatus: 'failed' })
    t.equal(await bank.getByLabel('Passcode').count(), 0)
  },
)

t.test(
  'a challenge frame has the requested size, also in a container of the shop, and with a frozen clock',
  needsChromium,
  async (t) => {
    const { server, backend } = await openShop(t)
    await server.control.clock.set({ mode: 'frozen', at: '2030-01-01T00:00:00Z' })
    const { createSession, startChallenge, ended, tab, bank } = await openShopPage(t, { backend })
    await tab.evaluate(() => {
      const { document } = globalThis as Json
      document.body.insertAdjacentHTML('beforeend', '<section id="own" style="width: 700px"></section>')
    })
    const sizes = { '01': [250, 400], '02': [390, 400], '03': [500, 600], '04': [600, 400] }
    for (const [windowSize, [width, height]] of Object.entries(sizes)) {
      const { id } = await createSession('CY')
      await startChallenge(id, { windowSize, containerId: 'own' })
      await bank.getByLabel('Passcode').fill('1234')
      t.match(await tab.locator('#own #challengeIframe').boundingBox(), { width, height }, windowSize)
      const frame = tab.frames().find((each) => each.url().endsWith('/creq'))
      const fits =
        'document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight'
      t.equal(await frame!.evaluate(fits), true, `the page needs no scroll bars in ${width} × ${height}`)
      await bank.getByRole('button', { name: 'Submit' }).click()
      t.match(await ended(), { id, authenticationStatus: 'successful' })
    }
  },
)

t.test('a challenge can be answered in a window instead of a frame', needsChromium, async (t) => {
  const { createSession, startChallenge, ended, tab } = await openShopPage(t)
  const session = await createSession('CY', { methodRequestMode: 'redirect', challengeMode: 'redirect' })
  t.match(session, { id: String })
  const [popup] = await Promise.all([
    tab.waitForEvent('popup'),
    startChallenge(session.id, { mode: 'redirect' }),
  ])
  const isClosed = popup.waitForEvent('close')
  await popup.getByLabel('Passcode').fill('1234')
  await popup.getByRole('button', { name: 'Submit' }).click()
  t.match(await ended(), { id: session.id, authenticationStatus: 'successful' })
  await isClosed
})

t.test(
  'a challenge works with the pages of web-threeds, a strict policy, another host name, and a fork',
  needsChromium,
  async (t) => {
    const { server, backend } = await openShop(t)
    const { port } = new URL(server.url)
    const fork = await server.control.fork()
    const numeric = createBackend(`http://127.0.0.1:${port}`, backend.keys)
    const own = createBackend(server.url, fork.keys as Backend['keys'])
    const strict = `default-src 'self'; script-src 'self'; connect-src ${server.url}; frame-src ${server.url}; style-src 'unsafe-inline'`
    const table = {
      'pages of the package': await openShopPage(t, { backend, pages: 'package' }),
      'a policy that allows frames of the bank': await openShopPage(t, {
        backend,
        shop: await serveShop(t, { policy: strict }),
      }),
      'another host name': await openShopPage(t, { backend: numeric }),
      'a fork': await openShopPage(t, { backend: own }),
    }
    for (const [name, { createSession, startChallenge, ended, bank, backend }] of Object.entries(table)) {
      const { id } = await createSession('CY')
      t.equal((await backend.get(id)).method.method_completion_indicator, 'Y', name)
      await startChallenge(id)
      await bank.getByLabel('Passcode').fill('1234')
      await bank.getByRole('button', { name: 'Submit' }).click()
      t.match(await ended(), { id, authenticationStatus: 'successful' }, name)
    }
    const { id } = await numeric.session('CY')
    const answer = await backend.authenticate(id)
    t.match(answer.acs_challenge_url, numeric.url, 'the address is that of the browser, not of the backend')
  },
)

t.test('after a challenge, the redirect page leads back to the shop', needsChromium, async (t) => {
  const { backend, tab, strangers } = await openShopPage(t)
  const shop = new URL(tab.url()).origin
  const callbacks = { success: `${shop}/paid?cart=1`, failure: `${shop}/failed` }
  const open = async (scenario: Scenario, key = backend.keys.public) => {
    const { id, redirect_url } = await backend.redirect(scenario, callbacks)
    await tab.goto(redirect_url + key)
    return { id, redirect_url, bank: tab.frameLocator('iframe[name=challenge]') }
  }
  const good = await open('FY')
  await tab.waitForURL(callbacks.success)
  t.match(await backend.get(good.id), {
    authentication: { authentication_status: 'successful' },
    method: { method_completion_indicator: 'Y' },
    device_info: { browser_user_agent: /Chrom/, browser_color_depth: String },
  })
  const asked = await open('CY', '')
  await asked.bank.getByLabel('Passcode').waitFor()
  await checkPage(t, tab, 'redirect page')
  await asked.bank.getByLabel('Passcode').fill('1234')
  await asked.bank.getByRole('button', { name: 'Submit' }).click()
  await tab.waitForURL(callbacks.success)
  t.match((await backend.get(asked.id)).authentication, { authentication_status: 'successful' })
  await tab.goto(asked.redirect_url)
  t.equal(tab.url(), callbacks.success, 'opened again')
  const cancelled = await open('CY')
  await cancelled.bank.getByRole('button', { name: 'Cancel' }).click()
  await tab.waitForURL(callbacks.failure)
  for (const scenario of ['FN', 'ED'] as const) {
    await open(scenario)
    await tab.waitForURL(callbacks.failure)
  }
  t.strictSame(strangers, [])
})

t.test(
  'other sites cannot frame pages of Coffer, and frames of the bank cannot reach other pages',
  needsChromium,
  async (t) => {
    const { tab, backend, strangers } = await openShopPage(t)
    const redirect = await backend.redirect('CY', { success: 'https://a.test', failure: 'https://a.test' })
    const refused: string[] = []
    tab.on('console', (message) => {
      if (/frame-ancestors/.test(message.text())) refused.push(message.text())
    })
    const targets = [`${backend.url}/`, `${backend.url}/invitations/accept?token=x`, redirect.redirect_url]
    for (const [at, src] of targets.entries()) {
      const isRefused = tab.waitForEvent('console', (message) => /frame-ancestors/.test(message.text()))
      await tab.evaluate((src) => {
        const { document } = globalThis as Json
        const frame = document.createElement('iframe')
        frame.src = src
        document.body.append(frame)
      }, src)
      await isRefused
      t.equal(refused.length, at + 1, src)
    }
    // A frame page can be made to post a form to any address. Coffer must not treat the form as a form of its own
    // pages.
    const [posted] = await Promise.all([
      tab.waitForResponse(
        (answer) => answer.url().includes('/invitations/accept') && answer.request().method() === 'POST',
      ),
      tab.evaluate((base) => {
        const { document } = globalThis as Json
        const frame = document.createElement('iframe')
        frame.src = `${base}/pages/challenge.html`
        frame.onload = () => {
          const message = { type: 'startChallenge', acsURL: `${base}/invitations/accept`, creq: 'x' }
          frame.contentWindow!.postMessage(message, '*')
        }
        document.body.append(frame)
      }, backend.url),
    ])
    t.equal(posted.status(), 403)
    const told = await tab.evaluate(
      (base) =>
        new Promise((resolve) => {
          const { addEventListener } = globalThis as Json
          addEventListener('message', ({ data }: Json) => resolve(data), { once: true })
          const { document } = globalThis as Json
          const frame = document.createElement('iframe')
          frame.src = `${base}/pages/challenge.html`
          frame.onload = () =>
            frame.contentWindow!.postMessage(
              { type: 'startChallenge', acsURL: 'javascript:alert(1)', creq: 'x' },
              '*',
            )
          document.body.append(frame)
        }),
      backend.url,
    )
    t.match(told, { type: 'error', details: 'acsURL or creq is missing in the message' })
    t.strictSame(strangers, [])
  },
)

t.test('the pages of the test bank have no accessibility problem', needsChromium, async (t) => {
  const { backend, tab } = await openShopPage(t)
  for (const scenario of ['CY', 'CYO'] as const) {
    const { id } = await backend.session(scenario)
    const answer = await backend.authenticate(id)
    const show = (fields: object, url: string) =>
      Promise.all([
        tab.waitForNavigation(),
        tab.evaluate(
          ([url, fields]) => {
            const { document } = globalThis as Json
            const form = document.createElement('form')
            Object.assign(form, { action: url, method: 'POST' })
            for (const [name, value] of Object.entries(fields)) {
              const input = document.createElement('input')
              Object.assign(input, { type: 'hidden', name, value })
              form.append(input)
            }
            document.body.append(form)
            form.submit()
          },
          [url, fields] as const,
        ),
      ])
    const ids = { threeDSServerTransID: id, acsTransID: answer.acs_transaction_id }
    const creq = { messageType: 'CReq', messageVersion: '2.2.0', ...ids }
    await show({ creq: Buffer.from(JSON.stringify(creq)).toString('base64url') }, answer.acs_challenge_url)
    await checkPage(t, tab, `challenge ${NUMBERS[scenario]}`)
    if (scenario === 'CYO') continue
    await tab.getByLabel('Passcode').fill('1')
    await tab.getByRole('button', { name: 'Submit' }).click()
    await tab.getByRole('alert').waitFor()
    await checkPage(t, tab, 'challenge with a wrong code')
  }
})
