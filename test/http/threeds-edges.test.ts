/** The package `@basis-theory/web-threeds` in Chromium when something is slow, wrong or unusual. */
import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { launchChromium, needsChromium } from './chromium.js'
import { openPage, serveShop } from './threeds-page.js'
import { type Json, openShop } from './threeds-shop.js'

let browser: Browser | undefined
t.before(async () => {
  if (!('skip' in needsChromium)) browser = await launchChromium()
})
t.teardown(() => browser?.close())
const openShopPage = (t: Test, around?: Parameters<typeof openPage>[2]) => openPage(t, browser!, around)

/** Returns a list that collects the path of each later request of the page or of a frame. */
function watchPaths(tab: Page): string[] {
  const paths: string[] = []
  tab.on('request', (request) => paths.push(new URL(request.url()).pathname))
  return paths
}

t.test('without a method step, web-threeds opens no frame', needsChromium, async (t) => {
  const { createSession, tab } = await openShopPage(t)
  const paths = watchPaths(tab)
  await createSession('CY', { skipMethodRequest: true })
  await createSession('CYX')
  t.strictSame([...new Set(paths)], ['/3ds/sessions'])
  await createSession('CY')
  t.ok(paths.includes('/pages/method.html'), 'with a method step, web-threeds opens a frame')
})

t.test('if the method page is too slow, the shop continues after a timeout', needsChromium, async (t) => {
  const { server, backend } = await openShop(t)
  const path = '/3ds/acs/browser/method'
  await server.control.faults.set({ rules: [{ kind: 'delay', delay_ms: 30_000, path }] })
  const { createSession, tab } = await openShopPage(t, { backend, isTimed: true })
  const asked = tab.waitForRequest((request) => request.url().endsWith(path))
  let isOver = false
  const creating = createSession('CY').finally(() => {
    isOver = true
  })
  await asked
  await tab.clock.runFor(9000)
  t.equal(isOver, false, 'the package waits for the page of the bank')
  await tab.clock.runFor(2000)
  const session = await creating
  t.match(session, { id: String })
  t.equal((await backend.get(session.id)).method.method_completion_indicator, 'N')
  t.match(await backend.authenticate(session.id), { authentication_status: 'challenge' })
})

t.test(
  'a challenge accepts the right code at the first or third attempt, and fails after three wrong codes',
  needsChromium,
  async (t) => {
    const { createSession, startChallenge, ended, backend, bank } = await openShopPage(t)
    const table = [
      [['1234'], 'successful', { authentication_status: 'successful', challenge_attempts: '01' }],
      [['1', '2', '1234'], 'successful', { authentication_status: 'successful', challenge_attempts: '03' }],
      [['1', '2', '3'], 'failed', { authentication_status_reason_code: '19', challenge_attempts: '03' }],
    ] as const
    for (const [codes, told, final] of table) {
      const { id } = await createSession('CY')
      await startChallenge(id)
      for (const [at, code] of codes.entries()) {
        if (at > 0) await bank.getByText(`Attempt ${at + 1} of 3`).waitFor()
        await bank.getByLabel('Passcode').fill(code)
        await bank.getByRole('button', { name: 'Submit' }).click()
      }
      t.match(await ended(), { id, isCompleted: true, authenticationStatus: told })
      t.match((await backend.result(id)).json, final)
    }
  },
)

t.test(
  'a challenge frame with the window size 05 fills the container of the shop',
  needsChromium,
  async (t) => {
    const { createSession, startChallenge, ended, tab, bank } = await openShopPage(t)
    await tab.evaluate(() => {
      const { document } = globalThis as Json
      const html = '<section id="own" style="width: 720px; height: 640px"></section>'
      document.body.insertAdjacentHTML('beforeend', html)
    })
    const { id } = await createSession('CY')
    await startChallenge(id, { windowSize: '05', containerId: 'own' })
    await bank.getByLabel('Passcode').fill('1234')
    t.match(await tab.locator('#own #challengeIframe').boundingBox(), { width: 720, height: 640 })
    await bank.getByRole('button', { name: 'Submit' }).click()
    t.match(await ended(), { id, authenticationStatus: 'successful' })
  },
)

t.test(
  'the pages of a shop over HTTPS can use the test bank on this machine over HTTP',
  needsChromium,
  async (t) => {
    const shop = await serveShop(t, { isSecure: true })
    const { createSession, startChallenge, ended, tab, bank, backend, strangers } = await openShopPage(t, {
      shop,
    })
    t.equal(await tab.evaluate('isSecureContext && location.protocol'), 'https:')
    const { id } = await createSession('CY')
    t.equal((await backend.get(id)).method.method_completion_indicator, 'Y')
    await startChallenge(id)
    await bank.getByLabel('Passcode').fill('1234')
    await bank.getByRole('button', { name: 'Submit' }).click()
    t.match(await ended(), { id, authenticationStatus: 'successful' })
    t.strictSame(strangers, [])
  },
)

t.test(
  'a person can use the redirect page in a separate window, by keyboard only',
  needsChromium,
  async (t) => {
    const { backend, tab } = await openShopPage(t)
    const shop = new URL(tab.url()).origin
    const callbacks = { success: `${shop}/paid`, failure: `${shop}/failed` }
    const { id, redirect_url } = await backend.redirect('CY', callbacks)
    const [popup] = await Promise.all([
      tab.waitForEvent('popup'),
      tab.evaluate((url) => void (globalThis as Json).open(url, 'bank'), redirect_url + backend.keys.public),
    ])
    const bank = popup.frameLocator('iframe[name=challenge]')
    await bank.getByLabel('Passcode').waitFor()
    const focused = () =>
      bank
        .locator(':focus')
        .getAttribute('id', { timeout: 100 })
        .catch(() => undefined)
    for (let tabs = 0; (await focused()) !== 'coffer-3ds-code' && tabs < 10; tabs++)
      await popup.keyboard.press('Tab')
    await popup.keyboard.type('1234')
    await popup.keyboard.press('Tab')
    t.equal(await focused(), 'coffer-3ds-submit')
    await popup.keyboard.press('Enter')
    await popup.waitForURL(callbacks.success)
    t.match((await backend.get(id)).authentication, { authentication_status: 'successful' })
    for (const key of [backend.keys.private, 'key_unknown']) {
      const answer = await popup.goto(redirect_url + key)
      t.equal(answer?.status(), 401)
      t.match(await popup.locator('h1').textContent(), 'The test bank cannot do this')
    }
  },
)
