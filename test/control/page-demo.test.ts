/** The dashboard of a demo that was just started, in Chromium: the demo has something to find on each screen. */
import t from 'tap'
import { launchChromium, needsChromium } from '../http/chromium.js'
import { serveFor } from '../http/process.js'
import { show } from './page-browser.js'

t.test(
  'a new demo has three failed requests, a masked reader, a failing reactor, a blocked delivery, and a movable clock',
  { ...needsChromium, timeout: 200_000 },
  async (t) => {
    const { announcement } = await serveFor(t, ['--demo'])
    const browser = await launchChromium()
    t.teardown(() => browser.close())
    const page = await (await browser.newContext({ viewport: { width: 1400, height: 900 } })).newPage()
    const complaints: string[] = []
    page.on('pageerror', ({ message }) => complaints.push(message))
    await page.goto(announcement.page_url!)
    const detail = page.locator('.detail')
    const row = (text: string) => page.getByRole('row').filter({ hasText: text })

    await page.locator('table[aria-rowcount="4"]').waitFor()
    await row('400').click()
    await detail.getByText('Refused: the request is not valid').waitFor()
    await detail.getByText('must be a string of 12 to 19 digits').first().waitFor()
    await row('403').click()
    await detail.getByText('This requires the permission token:read').first().waitFor()
    await detail.getByRole('heading', { name: 'What starter public may do' }).waitFor()
    await row('500').click()
    await detail.getByText('Failed at line 4').waitFor()
    await detail.locator('mark', { hasText: 'response.charge.id' }).waitFor()
    await detail.getByRole('link', { name: 'charge' }).click()
    await page.getByRole('heading', { name: 'Reactors', level: 1 }).waitFor()
    await detail.locator('mark', { hasText: 'response.charge.id' }).waitFor()

    await show(page, 'tokens/card-1', 'Tokens')
    await detail.getByRole('tab', { name: 'Who may read it' }).click()
    await detail.getByRole('row', { name: /support.*masked/ }).waitFor()
    for (const text of ['4242', 'visa', 'card-1', '42']) {
      await show(page, `tokens?find=${text}`, 'Tokens')
      await row('card-1').waitFor()
    }
    await show(page, 'access?find=support', 'Who sees what')
    await page.locator('.matrix tbody').getByText('XXXXXXXXXXXX4242').first().waitFor()

    await show(page, 'webhooks', 'Webhooks')
    await detail.getByText('blocked', { exact: true }).first().waitFor()
    await detail.getByText('--allow-net billing.example', { exact: true }).waitFor()
    await detail.getByRole('list', { name: 'Time line' }).getByRole('link', { name: 'order-17' }).waitFor()

    await show(page, 'members', 'Members')
    await page.getByRole('link', { name: 'grace@example.com' }).getByText('PENDING').waitFor()
    await show(page, 'controls', 'Controls')
    await page.getByText('This vault has no snapshots').waitFor()
    await page.getByRole('button', { name: '+ 30 d' }).click()
    await page.getByRole('link', { name: 'Clock + 30 d' }).waitFor()
    await show(page, 'members', 'Members')
    await page.getByRole('link', { name: 'grace@example.com' }).getByText('EXPIRED').waitFor()
    await show(page, 'controls', 'Controls')
    await page.getByRole('button', { name: 'Real time' }).click()
    await page.getByRole('link', { name: 'Clock + 30 d' }).waitFor({ state: 'detached' })
    t.same(complaints, [])
  },
)
