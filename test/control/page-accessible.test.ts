/**
 * The parts of the dashboard's accessibility that axe-core does not check: announcements, titles, forced colours,
 * widths between phone and desktop, and long lists.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Seed } from '../../src/index.js'
import { checkPage, needsChromium } from '../http/chromium.js'
import { open, show, signIn } from './page-browser.js'

const seed: Seed = JSON.parse(
  readFileSync(new URL('../../../fixtures/seeds/payments.json', import.meta.url), 'utf8'),
)
const LIVE = '[aria-live=polite]'

t.test(
  'new requests are announced to a screen reader, and requests from before a reload are not',
  { ...needsChromium, timeout: 200_000 },
  async (t) => {
    const { server, page, call } = await open(t, seed)
    for (let at = 0; at < 3; at++) await call('/tokens/card-visa')
    await page.clock.install()
    await signIn(server, page)
    await page.locator('table[aria-rowcount="4"]').waitFor()
    await page.clock.runFor(11_000)
    t.equal(await page.locator(LIVE).innerText(), '', 'after the page was loaded')
    await call('/tokens/card-visa')
    await page.clock.runFor(1500)
    await page.locator('table[aria-rowcount="5"]').waitFor()
    await page.clock.runFor(6000)
    t.equal(await page.locator(LIVE).innerText(), '1 new')
    await page.clock.resume()
    await page.reload()
    await page.locator('table[aria-rowcount="5"]').waitFor()
    await page.clock.runFor(11_000)
    t.equal(await page.locator(LIVE).innerText(), '', 'after a reload')
  },
)

t.test(
  'loading is announced, each item has a title, and forced colours show the selected item',
  { ...needsChromium, timeout: 300_000 },
  async (t) => {
    const { server, page } = await open(t, seed)
    await server.ask('proxy create', { name: 'billing', destination_url: 'https://api.example.com/v1' })
    await signIn(server, page)
    for (const [screen, title] of Object.entries({
      tokens: 'Tokens',
      proxies: 'Proxies',
      members: 'Members',
      log: 'Log',
    })) {
      let release = () => undefined as unknown
      const held = new Promise<void>((resolve) => {
        release = resolve
      })
      await page.route('**/_dashboard/ask', async (route) => {
        await held
        await route.continue()
      })
      await show(page, screen, title)
      const status = page.locator('.list [role=status]', { hasText: 'Loading' })
      await status.waitFor({ state: 'attached' })
      release()
      await status.waitFor({ state: 'detached' })
      await page.unroute('**/_dashboard/ask')
      t.equal(await page.title(), `${title} · Coffer`)
    }
    const titles = new Set<string>()
    await show(page, 'tokens', 'Tokens')
    for (const id of ['card-visa', 'card-mastercard', 'customer-ada']) {
      await page.getByRole('row', { name: id }).click()
      await page.waitForFunction(`!document.title.startsWith('Tokens')`)
      await page.locator('.detail').getByText(id, { exact: true }).first().waitFor()
      titles.add(await page.title())
    }
    t.equal(titles.size, 3, [...titles].join(', '))

    await page.emulateMedia({ forcedColors: 'active' })
    const outlineOf = (selector: string) =>
      page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).outlineStyle`)
    for (const selector of [
      '.list tr:has([aria-current])',
      '.nav [aria-current]',
      '.tabs [aria-selected=true]',
    ])
      t.equal(await outlineOf(selector), 'solid', selector)
    await show(page, 'proxies', 'Proxies')
    await page.locator('.items [aria-current]').waitFor()
    t.equal(await outlineOf('.items [aria-current]'), 'solid', 'an item')
    await show(page, 'requests', 'Requests')
    t.equal(await outlineOf('.switch label:has(:checked)'), 'solid', 'a filter')
  },
)

t.test('every screen fits a tablet and a small laptop', { ...needsChromium, timeout: 600_000 }, async (t) => {
  const { server, page, call } = await open(t, seed)
  await server.ask('proxy create', { name: 'billing', destination_url: 'https://api.example.com/v1' })
  await server.ask('webhook create', {
    name: 'hook',
    url: 'https://hooks.example/',
    events: ['token.created'],
  })
  await server.ask('reactor create', { name: 'charge', code: 'module.exports = async () => ({})' })
  await call('/tokens/card-visa')
  await call('/tokens/none')
  await signIn(server, page)
  const screens = {
    requests: 'Requests',
    'tokens/card-visa': 'Tokens',
    applications: 'Applications',
    reactors: 'Reactors',
    proxies: 'Proxies',
    webhooks: 'Webhooks',
    '3ds': '3-D Secure',
    log: 'Log',
    outbox: 'Outbox',
    members: 'Members',
    tenant: 'Tenant',
    controls: 'Controls',
    'reference/token-get': 'Reference',
    'proxies/none': 'Proxies',
  }
  for (const [screen, title] of Object.entries(screens)) {
    await page.setViewportSize({ width: 1400, height: 900 })
    await show(page, screen, title)
    await page.waitForLoadState('networkidle')
    await checkPage(t, page, screen, [768, 1024])
    const cell = page.locator('.list td.link').first()
    const width = (await cell.isVisible()) ? (await cell.boundingBox())!.width : 100
    t.ok(width > 90, `the link of a row of ${screen} is ${width} pixels wide at a width of 1024 pixels`)
  }
  await page.setViewportSize({ width: 1400, height: 900 })
  await show(page, 'webhooks', 'Webhooks')
  await page.getByRole('button', { name: 'Edit' }).click()
  await checkPage(t, page, 'a form', [768, 1024])
})

t.test(
  'in a log of 1,000 records, the page renders only the visible records',
  { ...needsChromium, timeout: 200_000 },
  async (t) => {
    const { server, page } = await open(t, seed)
    for (let round = 0; round < 10; round++)
      await Promise.all(
        Array.from({ length: 100 }, () =>
          server.ask('token create', { type: 'token', data: crypto.randomUUID() }),
        ),
      )
    await signIn(server, page)
    await show(page, 'log', 'Log')
    await page.locator('table[aria-rowcount="1001"]').waitFor()
    const count = await page.locator('tbody tr[aria-rowindex]').count()
    t.ok(count < 120, `${count} rows`)
    const ms = await page.evaluate(`(async () => {
    const list = document.querySelector('.list')
    const times = []
    for (let round = 0; round < 5; round++) {
      const began = performance.now()
      list.scrollTo(0, round % 2 ? 0 : list.scrollHeight)
      for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame)
      times.push(performance.now() - began)
    }
    return Math.min(...times)
  })()`)
    t.comment(`a scroll over all rows takes ${ms} ms`)
    await page.locator('tr[aria-rowindex="1001"]').waitFor()
    t.pass('the last row is drawn')
  },
)
