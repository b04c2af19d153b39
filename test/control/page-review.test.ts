/**
 * Behaviours of the dashboard in Chromium that a review found wrong or missing, and the reading order for a screen
 * reader.
 */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import t from 'tap'
import { type Seed, startServer } from '../../src/index.js'
import { checkPage, needsChromium } from '../http/chromium.js'
import { open, show, signIn } from './page-browser.js'

const payments = JSON.parse(
  readFileSync(new URL('../../../fixtures/seeds/payments.json', import.meta.url), 'utf8'),
)
const list = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at))
const FAILING = `module.exports = async ({ args }) => {
  console.log('begun')
  return { raw: args.missing.id }
}`
const seed: Seed = {
  ...payments,
  formulas: [
    {
      name: 'greet',
      type: 'private',
      code: 'module.exports = async ({ args }) => ({ raw: { hello: args.name } })',
    },
  ],
  reactors: [
    { name: 'greeter', formula: 'greet' },
    { name: 'later', code: FAILING },
  ],
}
const LONG: Seed = {
  ...seed,
  applications: [
    ...payments.applications,
    ...list(100, (at) => ({ name: `app-${at}`, type: 'private', permissions: ['token:read'] })),
  ],
  proxies: list(101, (at) => ({ name: `proxy-${at}`, destination_url: 'https://api.example.com/v1' })),
  members: list(51, (at) => ({ email: `member-${at}@example.com`, role: 'ADMIN' })),
}

const dialogOf = (page: Page) => page.getByRole('dialog')
const detailOf = (page: Page) => page.locator('.detail')
const pressButton = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).click()

t.test(
  'the page shows how background work ended, and discards or deletes only after a confirmation',
  { ...needsChromium, timeout: 300_000 },
  async (t) => {
    const { server, page, complaints, call } = await open(t, seed)
    const [dialog, detail] = [dialogOf(page), detailOf(page)]
    const reactors = (await server.ask('reactor list', {})).data
    const idOf = (name: string) => reactors.find((each) => each.name === name)!.id
    await signIn(server, page)

    await t.test('a request that was answered with 202 shows how its run ended', async (t) => {
      const { status } = await call(`/reactors/${idOf('later')}/react-async`, 'backend', { args: {} })
      t.equal(status, 202)
      const row = page.getByRole('row').filter({ hasText: 'react-async' })
      await row.getByText('reactor failed 500').waitFor()
      t.match(await row.innerText(), /Its run:\s+reactor failed 500[\s\S]*react-async[\s\S]*202/)
      await detail.getByText('Failed at line 3').waitFor()
      await detail.locator('mark', { hasText: 'args.missing.id' }).waitFor()
      await detail.getByText('log: begun').waitFor()
      await page.getByText('5xx').click()
      await row.waitFor()
      t.equal(await page.locator('tbody [data-link]').count(), 1, 'the filter finds the failed run')
    })

    await t.test('a reactor keeps its formula until a person detaches it', async (t) => {
      const id = idOf('greeter')
      const read = () => server.ask('reactor get', { id })
      await show(page, `reactors/${id}`, 'Reactors')
      await pressButton(page, 'Edit')
      await dialog.getByText('The code belongs to the formula greet').waitFor()
      t.equal(
        await dialog.locator('[name=code]').count(),
        0,
        'the code of the formula cannot be changed by accident',
      )
      await dialog.getByLabel('Name', { exact: true }).fill('welcome')
      await pressButton(page, 'Save')
      await dialog.waitFor({ state: 'detached' })
      t.match(await read(), { name: 'welcome', formula: { name: 'greet' } })
      await pressButton(page, 'Edit')
      await dialog.getByLabel('Detach from greet: give welcome its own code').check()
      await dialog.getByText('welcome no longer uses the formula').waitFor()
      t.match(await dialog.locator('[name=code]').inputValue(), /hello: args\.name/)
      await pressButton(page, 'Save')
      await dialog.waitFor({ state: 'detached' })
      const after = await read()
      t.match(after, { name: 'welcome', code: /hello: args\.name/ })
      t.notOk('formula' in after)
    })

    await t.test(
      'the first Escape in edited rules only warns, and a new application with an expiry is selected',
      async (t) => {
        await show(page, 'applications', 'Applications')
        await page.getByRole('link', { name: 'support' }).click()
        await detail.getByRole('heading', { name: 'support' }).waitFor()
        await pressButton(page, 'Edit rules')
        await dialog.getByLabel('Number').first().fill('7')
        await page.keyboard.press('Escape')
        await dialog.getByText('Press Escape again to discard the changes').waitFor()
        t.equal(await dialog.getByLabel('Number').first().inputValue(), '7')
        await page.keyboard.press('Escape')
        await dialog.waitFor({ state: 'detached' })

        await pressButton(page, 'New application')
        await dialog.getByLabel('Name', { exact: true }).fill('nightly')
        await dialog.getByLabel('Expires (UTC)').fill('2090-01-15T09:00:00')
        await pressButton(page, 'Create')
        await detail.getByRole('heading', { name: 'nightly' }).waitFor()
        t.equal(
          await page.locator('.items [aria-current]').innerText(),
          await page.getByRole('link', { name: 'nightly' }).innerText(),
        )
        t.equal(await page.locator('.items [aria-current]').count(), 1, 'no other application is chosen')
        const made = async () =>
          (await server.ask('app list', { size: 100 })).data.find(({ name }) => name === 'nightly')!
        t.match(await made(), { expires_at: /^2090-01-15T09:00:00/ })
        await detail.getByText('2090-01-15 09:00:00 UTC').waitFor()
        await pressButton(page, 'Edit rules')
        t.match(await dialog.getByLabel('Expires (UTC)').inputValue(), /^2090-01-15T09:00/)
        await dialog.getByLabel('Expires (UTC)').fill('2020-01-15T09:00:00')
        await pressButton(page, 'Save')
        await dialog.locator('.fault').waitFor()
        t.equal(await dialog.getByLabel('Expires (UTC)').getAttribute('aria-invalid'), 'true', 'at the field')
        await dialog.getByLabel('Expires (UTC)').fill('')
        await pressButton(page, 'Save')
        await dialog.waitFor({ state: 'detached' })
        t.notOk('expires_at' in (await made()))
      },
    )

    await t.test(
      'snapshots and forks are deleted only after a confirmation, and a reload keeps the chosen fork',
      async (t) => {
        await show(page, 'controls', 'Controls')
        await page.getByLabel('Name of a snapshot').fill('here')
        await pressButton(page, 'Keep a snapshot')
        await pressButton(page, 'Delete here')
        await dialog.getByRole('heading', { name: 'Delete the snapshot here?' }).waitFor()
        await page.keyboard.press('Escape')
        await dialog.waitFor({ state: 'detached' })
        t.same(await server.control.snapshots.list(), ['here'])
        await page.getByLabel('Name of a fork').fill('worker-2')
        await pressButton(page, 'New fork')
        await pressButton(page, 'Show fork worker-2')
        await page.getByText('shown', { exact: true }).waitFor()
        await page.reload()
        await page.getByText('shown', { exact: true }).waitFor()
        t.match(await page.getByLabel('Tenant or fork').innerText(), 'worker-2')
        await pressButton(page, 'Delete fork worker-2')
        await dialog.getByRole('heading', { name: 'Delete the fork worker-2?' }).waitFor()
        await pressButton(page, /^Delete$/)
        await page.getByText('worker-2').first().waitFor({ state: 'detached' })
        t.same(await server.control.forks.list(), [])
      },
    )

    await t.test('a count of one has a noun in the singular', async (t) => {
      await server.control.requests.clear()
      for (const { id } of (await server.ask('token list', { size: 100 })).data.slice(1))
        await server.ask('token delete', { id })
      await call('/tokens/none', 'operations')
      await show(page, 'controls', 'Controls')
      await page.getByRole('link', { name: 'Requests 1' }).waitFor()
      await page.getByRole('link', { name: 'Tokens 1' }).waitFor()
      await pressButton(page, 'Reset …')
      await dialog.getByText('It also removes 1 request and the faults').waitFor()
      await page.keyboard.press('Escape')
      await show(page, 'applications', 'Applications')
      await page.getByRole('link', { name: 'operations' }).click()
      await detail.getByText('1 request', { exact: true }).waitFor()
      for (const [screen, title, thing] of [
        ['proxies', 'Proxies', 'proxy'],
        ['webhooks', 'Webhooks', 'webhook'],
      ] as const) {
        if (screen === 'proxies') {
          await server.ask('proxy create', { name: 'one', destination_url: 'https://api.example.com/v1' })
          await show(page, screen, title)
          await page.locator('.items').getByText('blocked', { exact: true }).waitFor()
          await detail.getByText('--allow-net api.example.com', { exact: true }).waitFor()
        } else
          await server.ask('webhook create', {
            name: 'one',
            url: 'https://hooks.example/',
            events: ['token.created'],
          })
        await show(page, `${screen}?find=nothing`, title)
        await page.getByText(`No ${thing} matches “nothing”`).waitFor()
      }
      const { id } = await server.ask('app create', {
        name: 'wallets',
        type: 'private',
        permissions: ['apple-pay:create', 'google-pay:create', 'token-intent:create'],
      })
      await show(page, `applications/${id}`, 'Applications')
      await detail
        .getByText('It may create cards of Apple Pay, cards of Google Pay and token intents')
        .waitFor()
      t.notMatch(
        await page.locator('#page').innerText(),
        /proxys|webhookss|\bpaies\b|\b1 (?:requests|tokens|proxies)\b/,
      )
    })

    await t.test(
      'sending a delivery again is announced, and a blocked delivery is marked as blocked',
      async (t) => {
        for (let at = 0; at < 12; at++) await server.ask('token create', { type: 'token', data: `${at}` })
        await show(page, 'webhooks', 'Webhooks')
        await detail.getByText('blocked', { exact: true }).first().waitFor()
        await detail.getByText('--allow-net hooks.example', { exact: true }).waitFor()
        await detail.getByRole('button', { name: 'Copy: Option' }).waitFor()
        await page.locator('.items').getByText('blocked', { exact: true }).waitFor()
        await detail.getByText('none while blocked').first().waitFor()
        t.notMatch(await detail.innerText(), /allow it, start/, 'the advice is code to copy, not text')
        const line = detail.getByRole('list', { name: 'Time line' })
        await line.getByText(/^blocked$/).waitFor()
        await line.getByText('the host hooks.example is not on the list of --allow-net').waitFor()
        t.equal(await detail.getByText(/^waiting/).count(), 0, 'a delivery has one state')
        const [token] = (await server.ask('token list', { size: 1 })).data
        await detail.locator('table').getByRole('link', { name: token!.id }).waitFor()
        await page.setViewportSize({ width: 390, height: 844 })
        await page.getByRole('link', { name: 'one' }).click()
        await detail.getByRole('heading', { name: 'one', level: 2 }).waitFor()
        const again = page.getByRole('button', { name: /^Send again: delivery/ }).first()
        const seen = (await again.boundingBox())!
        t.ok(seen.x + seen.width <= 390, `an action of a row fits a phone: ${seen.x} + ${seen.width}`)
        const time = (await detail.locator('td code').first().boundingBox())!
        t.ok(time.height < 30, `a date has one line: ${time.height} pixels`)
        await checkPage(t, page, 'deliveries', [390])
        await page.setViewportSize({ width: 1400, height: 500 })
        await page
          .getByRole('button', { name: /^Show delivery/ })
          .last()
          .click()
        await page.locator('h3:focus', { hasText: 'token.created' }).waitFor()
        const heading = await page.locator('h3:focus').boundingBox()
        t.ok(heading && heading.y > 0 && heading.y < 400, `the opened delivery is in view: ${heading?.y}`)
        await page
          .getByRole('button', { name: /^Send again: delivery/ })
          .first()
          .click()
        await detail
          .getByRole('status')
          .filter({ hasText: 'Not sent: The destination cannot be called' })
          .waitFor()
        await page.setViewportSize({ width: 1400, height: 900 })
      },
    )

    await t.test(
      'if the vault changes during a request of the page, the page shows the answer and then requests it again',
      async (t) => {
        await show(page, 'requests', 'Requests')
        const held: (() => void)[] = []
        let isHeld = true
        await page.route('**/_dashboard/ask', async (route) => {
          if (isHeld && /"operation":"token list"/.test(route.request().postData() ?? ''))
            await new Promise<void>((go) => held.push(go))
          await route.continue()
        })
        const first = page.waitForRequest((request) => /"size":100/.test(request.postData() ?? ''))
        await show(page, 'tokens', 'Tokens')
        await first
        await page.locator('.list .skeleton').waitFor()
        const tokens = (await server.ask('token list', {})).pagination.total_items
        await server.ask('token create', { id: 'newest', type: 'token', data: 'x' })
        await page.getByRole('link', { name: `Tokens ${tokens + 1}` }).waitFor()
        for (const go of held.splice(0)) go()
        await page.locator('tbody [data-link]').first().waitFor()
        while (held.length === 0) await page.waitForTimeout(20)
        t.ok(
          (await page.locator('tbody [data-link]').count()) >= 1,
          'the rows stay while the page reads again',
        )
        isHeld = false
        for (const go of held.splice(0)) go()
        await page.locator('tbody').getByText('newest').waitFor()
        await page.unrouteAll({ behavior: 'wait' })
      },
    )

    await t.test('a body of more than 64 KiB is accepted, up to the limit of the server', async (t) => {
      await show(page, 'tokens', 'Tokens')
      await pressButton(page, 'New token')
      await dialog.getByLabel('Type', { exact: true }).selectOption('token')
      await dialog.getByLabel('Id', { exact: true }).fill('large')
      const data = JSON.stringify({ text: '"'.repeat(200_000) })
      await dialog.locator('[name=data]').fill(data)
      await pressButton(page, 'Create')
      await dialog.waitFor({ state: 'detached' })
      t.match(await server.ask('token get', { id: 'large' }), { id: 'large' })
    })
    t.ok(
      complaints.every((text) => / 40[04] /.test(text)),
      String(complaints),
    )
  },
)

t.test(
  'long lists are divided into pages, and no detail is cut off',
  { ...needsChromium, timeout: 300_000 },
  async (t) => {
    const { server, page, call } = await open(t, LONG)
    const detail = detailOf(page)
    await call('/tokens/card-visa')
    await call('/tokens/none')
    await signIn(server, page)

    await t.test('a list says how many of its records are shown, and links to the others', async (t) => {
      const people = 52 + (await server.ask('invite list', {})).pagination.total_items
      for (const [screen, title, total, oldest] of [
        ['proxies', 'Proxies', 101, 'proxy-0'],
        ['applications', 'Applications', 104, 'checkout'],
        ['members', 'Members', people, 'The owner of the vault'],
      ] as const) {
        const shown = screen === 'members' ? total - 2 : 100
        await show(page, screen, title)
        await page.getByText(`of ${total}, newest first`).waitFor()
        t.equal(await page.locator('.items [data-link]').count(), shown, screen)
        t.equal(await page.getByRole('link', { name: oldest, exact: false }).count(), 0)
        t.ok(await page.getByRole('button', { name: 'Newer' }).isDisabled())
        t.equal(
          await page.evaluate(
            `getComputedStyle(document.querySelector('nav[aria-label=Pages] :disabled')).cursor`,
          ),
          'default',
          'a button that does nothing looks so',
        )
        await pressButton(page, 'Older')
        await page.getByText('Page 2 of 2').waitFor()
        await page.getByRole('link', { name: oldest }).first().click()
        await detail.getByRole('heading', { name: oldest, level: 2 }).waitFor()
        t.ok(await page.getByRole('button', { name: 'Older' }).isDisabled())
        t.equal(await page.locator('.items [data-link]').count(), total - shown, `the rest of ${screen}`)
      }
      const [first] = (await server.ask('proxy list', { name: 'proxy-0' })).data
      await show(page, `proxies/${first!.id}`, 'Proxies')
      await detail.getByRole('heading', { name: 'proxy-0' }).waitFor()
      t.pass('an address opens an item of another page')
    })

    await t.test('at 1280 and 1024 pixels no part of a detail is cut or squeezed', async (t) => {
      for (const width of [1280, 1024]) {
        await page.setViewportSize({ width, height: 900 })
        await show(page, 'requests', 'Requests')
        await page.getByRole('row').filter({ hasText: '/tokens/none' }).click()
        const tab = detail.getByRole('tab', { name: 'Code' })
        const [edge, last] = [await detail.boundingBox(), await tab.boundingBox()]
        t.ok(last!.x + last!.width <= edge!.x + edge!.width - 8, `the last tab fits at ${width} pixels`)
        t.equal(
          Math.round(last!.y),
          Math.round((await detail.getByRole('tab').first().boundingBox())!.y),
          'in one row',
        )
        const gaps = await page.evaluate(`(() => {
        const boxes = [...document.querySelector('.detail [role=tabpanel]').children]
          .map((each) => each.getBoundingClientRect()).filter(({ height }) => height > 0)
        return boxes.slice(1).map(({ top }, at) => Math.round(top - boxes[at].bottom))
      })()`)
        t.ok(
          (gaps as number[]).length > 0 && (gaps as number[]).every((gap) => gap >= 8),
          `gaps at ${width}: ${gaps}`,
        )
        const { id } = (await server.ask('reactor list', { name: 'later' })).data[0]!
        await show(page, `reactors/${id}`, 'Reactors')
        const code = await detail.locator('.code').first().boundingBox()
        t.ok(code!.width > 400, `code has ${code!.width} pixels at ${width}`)
        await show(page, 'applications', 'Applications')
        const cut = await page.evaluate(`[...document.querySelectorAll('.items .badge')].filter((badge) =>
        badge.getBoundingClientRect().right > document.querySelector('.list').getBoundingClientRect().right).length`)
        t.equal(cut, 0, 'the badges of a list fit')
      }
      await page.setViewportSize({ width: 1400, height: 900 })
    })

    await t.test('an unknown address is reported, and the log shows names', async (t) => {
      await show(page, 'nonsense', 'Requests')
      await page.getByText('There is no screen “nonsense”. This is the screen Requests.').waitFor()
      await show(page, 'tokens/nope', 'Tokens')
      await detail.getByText('It may have been deleted.').waitFor()
      await page.keyboard.press('?')
      await dialogOf(page).getByText('Go to one of the first 10 screens, in the order of the menu').waitFor()
      await page.keyboard.press('Escape')
      await show(page, 'log?find=proxy-7', 'Log')
      const link = page.locator('tbody td:last-child a').first()
      await link.waitFor()
      t.match(await link.innerText(), /^proxy-7/, 'an object is shown by its name')
    })

    await t.test('an object in the log looks like a link and leads to the object', async (t) => {
      await show(page, 'log?find=card-visa', 'Log')
      const link = page.locator('tbody tr:first-child td:last-child a')
      await link.waitFor()
      const styleOf = (selector: string, name: string) =>
        page.evaluate(`getComputedStyle(document.querySelector('tbody tr:first-child ${selector}')).${name}`)
      t.match(await styleOf('td:last-child a', 'textDecorationLine'), 'underline')
      t.not(await styleOf('td:last-child a', 'color'), await styleOf('[data-link]', 'color'))
      const id = await link.innerText()
      await link.click()
      await page.getByRole('heading', { name: 'Tokens', level: 1 }).waitFor()
      t.match(page.url(), `#/tokens/${id}`)
    })

    await t.test('a screen reader reads navigation, heading, list and detail in this order', async (t) => {
      const session = await page.context().newCDPSession(page)
      for (const [screen, title, wanted] of [
        ['requests', 'Requests', ['table Requests', 'article Detail', 'heading 2']],
        ['applications', 'Applications', ['list', 'article Detail', 'heading 2']],
        ['log', 'Log', ['table Log records']],
        ['access', 'Who sees what', ['table Who sees what']],
        ['tenant', 'Tenant', ['region Name and settings', 'heading 2', 'form', 'region About the tenant']],
        ['controls', 'Controls', ['region Clock', 'region Faults', 'region State', 'region Forks']],
        ['reference/token-get', 'Reference', ['list', 'article Detail', 'heading 2 /tokens/{id}']],
      ] as const) {
        await show(page, screen, title)
        await page
          .locator('main :is(.list tbody a, .items a, .matrix tbody a, .card, article)')
          .first()
          .waitFor()
        await page.waitForLoadState('networkidle')
        const read = await readTree(session)
        const start = ['banner', 'navigation Screens', 'main', `region ${title}`, `heading 1 ${title}`]
        t.same(missingOf(read, [...start, ...wanted]), [], `${screen}: ${read.join(' · ')}`)
        t.equal(read.filter((each) => each.startsWith('heading 1')).length, 1, `${screen} has one title`)
        const levels = read.flatMap((each) => /^heading (\d)/.exec(each)?.slice(1).map(Number) ?? [])
        t.ok(
          levels.every((level, at) => level - (levels[at - 1] ?? 0) <= 1),
          `${screen} skips no level: ${levels}`,
        )
        const ofDetail = read
          .slice(read.indexOf('article Detail'))
          .filter((each) => each.startsWith('heading'))
        if (read.includes('article Detail'))
          t.ok(
            ofDetail.slice(1).every((each) => !/^heading [12]/.test(each)),
            `the detail of ${screen} has one title: ${ofDetail}`,
          )
      }
    })
  },
)

/** Returns the texts of `wanted` that `read` does not contain in the order of `wanted`. */
function missingOf(read: readonly string[], wanted: readonly string[]): string[] {
  let from = 0
  return wanted.filter((text) => {
    const at = read.findIndex((each, at) => at >= from && each.startsWith(text))
    if (at >= 0) from = at + 1
    return at < 0
  })
}

const READ = ['banner', 'navigation', 'main', 'region', 'article', 'heading', 'table', 'list', 'form']

/** Returns the landmarks, headings and lists of Chromium's accessibility tree, in reading order. */
async function readTree(session: Awaited<ReturnType<ReturnType<Page['context']>['newCDPSession']>>) {
  const { nodes } = await session.send('Accessibility.getFullAXTree')
  const known = new Map(nodes.map((node) => [node.nodeId, node]))
  const texts: string[] = []
  const walk = (id: string): void => {
    const { ignored, role, name, properties = [], childIds = [] } = known.get(id)!
    const level = properties.find((each) => each.name === 'level')?.value.value
    if (!ignored && READ.includes(String(role?.value)))
      texts.push(
        [role?.value, level, name?.value].filter((each) => each !== undefined && each !== '').join(' '),
      )
    for (const child of childIds) walk(child)
  }
  walk(nodes[0]!.nodeId)
  return texts
}

t.test(
  'after a restart of the server the page says that it is signed out, and a new sign-in link leads to the same place',
  { ...needsChromium, timeout: 120_000 },
  async (t) => {
    const { server, page } = await open(t, seed)
    await signIn(server, page)
    await show(page, 'tokens/card-visa', 'Tokens')
    await server.stop()
    await page.getByText('The server does not answer. It may have stopped.').first().waitFor()
    t.equal(await page.getByText('Failed to fetch').count(), 0)
    await page.locator('.detail').getByText('card-visa', { exact: true }).waitFor()
    await page.locator('tbody').getByText('card-visa').waitFor()
    const again = await startServer({ seed, port: server.port! })
    t.teardown(() => again.stop())
    await page.getByText('You are signed out').first().waitFor()
    t.equal(await page.locator('.live').count(), 0, 'nothing is shown as live')
    await Promise.all([page.waitForEvent('load'), page.goto((await again.control.page()).url)])
    await page.locator('.detail').getByText('card-visa', { exact: true }).waitFor()
    t.match(page.url(), '#/tokens/card-visa', 'the place is kept')
  },
)
