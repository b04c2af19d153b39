/** The screen "Who sees what" and the form of rules, in a real browser. */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { type Seed, startServer } from '../../src/index.js'
import { checkPage, launchChromium, needsChromium } from '../http/chromium.js'

const options = { ...needsChromium, timeout: 400_000 }
const HOSTILE = '<img src=x onerror=alert(1)> \u202egnp'
const MARK = 'MARKED-PLAINTEXT'
const rule = (priority: number, container: string, transform: string, more: object = {}) => ({
  ...{ priority, container, transform, permissions: ['token:read'], ...more },
})

const seed = {
  applications: [
    {
      ...{ name: 'support', type: 'private' },
      rules: [
        rule(5, '/', 'redact'),
        rule(2, '/pci/', 'mask', { description: 'help desk', permissions: ['token:read', 'token:search'] }),
      ],
    },
    { name: 'backend', type: 'private', rules: [rule(1, '/', 'reveal')] },
    { name: HOSTILE, type: 'private', rules: [rule(1, '/general/', 'mask', { description: HOSTILE })] },
    { name: 'checkout', type: 'public', permissions: ['token:create'] },
  ],
  tokens: [
    { id: 'card', type: 'card', data: { number: '5555555555554444' } },
    { id: 'note', type: 'token', data: MARK, containers: ['/general/high/'] },
    { id: 'mask', type: 'token', data: MARK, mask: HOSTILE, containers: ['/general/mask/'] },
    { id: 'deep', type: 'token', data: MARK, containers: [`/deep/${'x'.repeat(380)}/`] },
  ],
} as unknown as Seed

async function open(t: Test, given: Seed = seed) {
  const server = await startServer({ seed: given })
  const browser = await launchChromium()
  t.teardown(async () => {
    await browser.close()
    await server.stop()
  })
  const page = await (await browser.newContext({ viewport: { width: 1400, height: 900 } })).newPage()
  const complaints: string[] = []
  page.on('pageerror', ({ message }) => complaints.push(message))
  page.on('dialog', (dialog) => {
    complaints.push('a dialog of the browser')
    void dialog.dismiss()
  })
  const told: string[] = []
  page.on('response', (response) => {
    if (response.url().includes('/_dashboard/'))
      void response.text().then(
        (text) => told.push(text),
        () => undefined,
      )
  })
  await page.goto((await server.control.page()).url)
  await page.getByRole('heading', { name: 'Requests', level: 1 }).waitFor()
  const show = async (hash: string, heading: string) => {
    await page.evaluate(`location.hash = '#/${hash}'`)
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
  }
  return { server, page, complaints, told, show }
}

/** Returns the texts of the cells in the row, by container. */
async function readRow(page: Page, name: string): Promise<Record<string, string>> {
  const table = page.locator('.matrix table')
  const heads = await table.locator('thead th code').allInnerTexts()
  const row = table.getByRole('row').filter({ has: page.locator('th', { hasText: name }) })
  const cells = await row.locator('td').allInnerTexts()
  return Object.fromEntries(heads.map((head, at) => [head, cells[at]!.replaceAll(/\s+/g, ' ')]))
}

t.test(
  'the matrix shows each cell, and the link in a cell leads to the rule that decides',
  options,
  async (t) => {
    const { page, complaints, told, show } = await open(t)
    await show('access', 'Who sees what')
    await page.locator('.matrix tbody a').first().waitFor()
    t.same(await readRow(page, 'support'), {
      '/': 'redacted',
      [`/deep/${'x'.repeat(380)}/`]: 'redacted',
      '/general/mask/': 'redacted',
      '/general/': 'redacted',
      '/general/high/': 'redacted',
      '/pci/': 'masked XXXXXXXXXXXX4242',
      '/pci/high/': 'masked XXXXXXXXXXXX4242',
    })
    t.match(await readRow(page, 'backend'), {
      '/pci/high/': 'plain 4242424242424242',
      '/general/high/': 'plain Ada Example',
    })
    t.match(await readRow(page, '<img src=x'), {
      '/pci/': 'no access',
      '/general/high/': 'masked hidden: no mask',
    })
    t.match(await page.locator('.on-screen').innerText(), /Every value is an example: made-up data/)
    t.match((await readRow(page, '<img src=x'))['/general/mask/'], /^masked <img src=x onerror/)
    t.equal(await page.locator('.matrix thead th[scope=col]').count(), 8)
    const head = await page.locator('.matrix thead th', { hasText: '/deep/' }).boundingBox()
    t.ok(head && head.width < 350, `a long container is ${head?.width} pixels wide`)
    t.equal(await page.locator('.matrix tbody th[scope=row]').count(), 4)
    t.equal(await page.locator('img').count(), 0, 'a name is text')
    await checkPage(t, page, 'who sees what')
    for (const width of [768, 1024]) {
      await page.setViewportSize({ width, height: 900 })
      t.ok(
        Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth')) <= 0,
        `${width} pixels`,
      )
    }
    await page.emulateMedia({ forcedColors: 'active' })
    t.ok(await page.getByText('redacted').first().isVisible())
    await page.emulateMedia({ forcedColors: null, colorScheme: null })
    await page.setViewportSize({ width: 1400, height: 900 })

    await page.getByLabel('Find in Who sees what').fill('/pci/h')
    await page.locator('.matrix thead:not(:has(th:nth-child(3)))').waitFor()
    await page.getByLabel('Find in Who sees what').fill('supp')
    await page.locator('.matrix tbody:not(:has(tr:nth-child(2)))').waitFor()
    await page.getByLabel('Find in Who sees what').fill('nothing fits')
    await page.getByRole('link', { name: 'Reset filters' }).click()
    const words = await page.getByLabel('Permission').boundingBox()
    t.ok(words && words.width > 200, `the longest permission fits: ${words?.width} pixels`)
    await page.getByLabel('Permission').selectOption('token:use')
    await page.locator('.matrix', { hasNotText: 'masked' }).waitFor()
    t.match(await readRow(page, 'support'), { '/pci/': 'no access' })
    await page.getByLabel('Permission').selectOption('')
    await page.locator('.matrix', { hasText: 'masked' }).waitFor()

    const cell = page
      .locator('.matrix tbody tr', { hasText: 'support' })
      .getByRole('link', { name: 'masked' })
      .first()
    t.equal(await cell.getAttribute('title'), 'Rule 2: help desk')
    await cell.click()
    await page.getByRole('heading', { name: 'Applications', level: 1 }).waitFor()
    await page.locator('.detail').getByRole('heading', { name: 'support' }).waitFor()
    t.match(await page.locator('.rules .decider').innerText(), /Rule 2[\s\S]*decides this cell/)
    await page.locator('.detail').getByText('Rule 2 decides /pci/ in Who sees what.').waitFor()
    t.equal(await page.getByLabel('Container or token').inputValue(), '/pci/')
    await page.getByRole('link', { name: 'backend' }).click()
    await page.locator('.detail').getByRole('heading', { name: 'backend' }).waitFor()
    t.equal(await page.locator('.rules .decider').count(), 0, 'the mark is for one application')
    t.same(complaints, [])
    t.notMatch(told.join('\n'), new RegExp(`${MARK}|5555555555554444`), 'no response has data of a token')
  },
)

t.test('the keyboard moves from cell to cell, and Tab leaves the matrix', options, async (t) => {
  const { page, show } = await open(t)
  await show('access', 'Who sees what')
  await page.locator('.matrix tbody a').first().waitFor()
  t.equal(await page.locator('.matrix a[tabindex="0"]').count(), 1)
  await page.getByRole('button', { name: 'Print' }).focus()
  await page.keyboard.press('Tab')
  const focused = () =>
    page.evaluate(
      `[document.activeElement.closest('tr')?.rowIndex, document.activeElement.closest('td, th')?.cellIndex]`,
    )
  t.same(await focused(), [1, 0])
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  t.same(await focused(), [2, 2])
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  t.same(await focused(), [1, 2], 'ArrowUp stops at the first row')
  await page.keyboard.press('Shift+Tab')
  t.same(await focused(), [null, null])
  await page.keyboard.press('Tab')
  t.same(await focused(), [1, 2], 'Tab returns to the cell')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Applications', level: 1 }).waitFor()
})

t.test('the printed matrix fits on A4 in landscape, without controls', options, async (t) => {
  const many = Array.from({ length: 14 }, (_, at) => rule(at + 1, `/customers/${at}/`, 'mask'))
  const { page, show } = await open(t, {
    ...seed,
    applications: [...(seed.applications ?? []), { name: 'many', type: 'private', rules: many }],
  } as Seed)
  await show('access', 'Who sees what')
  await page.locator('.matrix tbody a').first().waitFor()
  await page.emulateMedia({ media: 'print' })
  // 277 mm: the width of A4 in landscape without its margins.
  await page.setViewportSize({ width: 1047, height: 794 })
  await page.evaluate(`dispatchEvent(new Event('beforeprint'))`)
  const text = await page.locator('body').innerText()
  t.match(text, /Who sees what/)
  t.match(text, /Vault in memory, tenant test · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC · permission token:read/)
  t.match(text, /Every value is an example/)
  t.match(text, /Containers 1 to 6 of 21[\s\S]*Containers 13 to 18 of 21[\s\S]*Containers 19 to 21 of 21/)
  t.notMatch(text, /Print|Find|Requests|Outbox/)
  t.equal(await page.locator('.printed table').count(), 4)
  t.equal(await page.locator('.printed td').count(), 5 * 21)
  for (const table of await page.locator('.printed table').all()) {
    const box = await table.boundingBox()
    t.ok(box && box.x >= 0 && box.x + box.width <= 1047, JSON.stringify(box))
  }
  t.equal(
    await page.evaluate(
      `[...document.querySelectorAll('.printed :is(td, th)')].filter((each) => each.scrollWidth > each.clientWidth + 1).length`,
    ),
    0,
    'no cell overflows',
  )
  await page.evaluate(`dispatchEvent(new Event('afterprint'))`)
  t.equal(await page.locator('.printed table').count(), 0)
  await page.emulateMedia({ media: null })
  const pdf = (await page.pdf({ preferCSSPageSize: true })).toString('latin1')
  const boxes = [...pdf.matchAll(/\/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]/g)].map(
    ([, width, height]) => [Math.round(Number(width)), Math.round(Number(height))],
  )
  t.ok(boxes.length >= 1 && boxes.length <= 4, `${boxes.length} pages`)
  for (const box of boxes) t.same(box, [842, 595])
})

t.test('60 applications and 60 containers are shown without lag', options, async (t) => {
  const applications = Array.from({ length: 60 }, (_, at) => ({
    ...{ name: `app ${at}`, type: 'private' },
    rules: [rule(1, `/c/${at}/`, 'reveal', { description: 'x'.repeat(50) }), rule(2, '/', 'mask')],
  }))
  const { page, show, server } = await open(t, { applications } as unknown as Seed)
  const start = performance.now()
  await show('access', 'Who sees what')
  await page.locator('.matrix tbody a').first().waitFor()
  const ms = performance.now() - start
  t.equal(await page.locator('.matrix td').count(), 60 * 61)
  t.ok(ms < 5000, `shown after ${Math.round(ms)} ms`)
  const longest = await page.evaluate(`new Promise((done) => {
    const link = document.querySelector('.matrix tbody a')
    link.focus()
    let most = 0
    for (let at = 0; at < 50; at++) {
      const before = performance.now()
      document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }))
      document.activeElement.getBoundingClientRect()
      most = Math.max(most, performance.now() - before)
    }
    done(most)
  })`)
  t.ok(Number(longest) < 500, `a key takes at most ${longest} ms`)
  t.equal(await page.evaluate(`document.activeElement.closest('tr').rowIndex`), 51)
  await page.evaluate(`{
    window.changes = 0
    new MutationObserver((all) => (window.changes += all.length)).observe(document.querySelector('.matrix'), { subtree: true, childList: true, attributes: true, characterData: true })
  }`)
  await server.fetch('/tokens')
  await page.locator('.nav a', { hasText: 'Requests' }).getByText('new').waitFor({ state: 'attached' })
  t.equal(await page.evaluate('window.changes'), 0, 'a new request does not draw the matrix again')
})

t.test('rules are rows of a form, and the server previews them', options, async (t) => {
  const { server, page, complaints, told, show } = await open(t)
  await show('applications', 'Applications')
  await page.getByRole('link', { name: 'support' }).click()
  await page.getByRole('button', { name: 'Edit rules' }).click()
  const dialog = page.getByRole('dialog')
  const rows = dialog.locator('.rule-rows > li')
  await dialog.getByText('support would see masked XXXXXXXXXXXX4242 in /pci/').waitFor()
  t.same(
    await rows
      .locator('legend')
      .allInnerTexts()
      .then((all) => all.filter((each) => each.startsWith('Rule'))),
    ['Rule 2', 'Rule 5'],
  )
  await checkPage(t, page, 'the form of rules')
  await page.setViewportSize({ width: 1400, height: 900 })

  await rows.nth(0).getByLabel('Sees').selectOption('redact')
  await dialog.getByText('support would see redacted in /pci/').waitFor()
  await dialog.getByRole('button', { name: 'Add a rule' }).click()
  t.equal(
    await page.evaluate(
      `document.activeElement.closest('li') === document.querySelector('.rule-rows').lastElementChild`,
    ),
    true,
    'the new rule has the focus',
  )
  const added = rows.nth(2)
  await added.getByLabel('Container, and all below').fill('general')
  await added.getByText('must be a path such as').waitFor()
  t.equal(await added.getByLabel('Container, and all below').getAttribute('aria-invalid'), 'true')
  await added.getByLabel('Container, and all below').fill('/general/')
  await added.getByLabel('Sees').selectOption('reveal')
  await added.getByText('support would see redacted in /general/ (Rule 5)').waitFor()
  await added.getByRole('button', { name: 'Up' }).click()
  const moved = rows.nth(1)
  await moved.getByText('support would see plain Ada Example in /general/').waitFor()
  t.equal(await moved.getByLabel('Number').inputValue(), '5')
  t.equal(await rows.nth(2).getByLabel('Number').inputValue(), '6')
  t.equal(await page.evaluate('document.activeElement.textContent'), 'Up', 'the button keeps the focus')
  await moved.getByText('Permissions:').click()
  await moved.getByLabel('token:use', { exact: true }).check()
  await moved.getByLabel('token:read', { exact: true }).uncheck()
  await moved.getByText('support would see redacted in /general/').waitFor()
  await moved.getByLabel('Number').fill('2')
  await moved.getByText('must be unique').waitFor()
  await moved.getByLabel('Number').fill('4')
  await rows.nth(0).getByRole('button', { name: 'Remove' }).click()
  t.equal(await rows.count(), 2)
  await dialog.getByText('What support would see').waitFor()
  const before = await server.ask('app list', {})
  t.match(
    before.data.find(({ name }) => name === 'support')?.rules?.length,
    2,
    'the preview has stored nothing',
  )
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'hidden' })
  const { data } = await server.ask('app list', {})
  t.strictSame(data.find(({ name }) => name === 'support')?.rules, [
    rule(4, '/general/', 'reveal', { permissions: ['token:use'] }),
    rule(6, '/', 'redact'),
  ])

  await page.getByRole('button', { name: 'New application' }).click()
  await dialog.getByLabel('Name').fill('auditor')
  await dialog.getByLabel('Type').selectOption('management')
  t.equal(await rows.count(), 0, 'a management application has no rules')
  await dialog.getByLabel('Type').selectOption('private')
  await dialog.getByText('auditor would see').first().waitFor()
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.locator('.detail').getByRole('heading', { name: 'auditor' }).waitFor()
  t.same(complaints, [])
  t.notMatch(told.join('\n'), new RegExp(`${MARK}|5555555555554444|key_[0-9A-Za-z]{10}`))
})

t.test(
  'the form shows and keeps properties, transforms and permissions that it does not support',
  options,
  async (t) => {
    const { page, show } = await open(t)
    await show('applications', 'Applications')
    await page.getByRole('link', { name: 'support' }).click()
    await page.getByRole('button', { name: 'Edit rules' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Edit as JSON' }).click()
    const text = dialog.getByLabel('Permissions and rules (JSON)')
    const strange = {
      ...{ name: 'support', from_later: 1 },
      rules: [
        rule(2, '/pci/', 'rot13', { only_at_night: true, permissions: ['token:read', 'token:teleport'] }),
      ],
    }
    await text.fill(JSON.stringify(strange))
    await dialog.getByRole('button', { name: 'Edit as form' }).click()
    await dialog.getByText('Kept, but not understood by this form: {"only_at_night":true}').waitFor()
    t.equal(await dialog.getByLabel('Sees').inputValue(), 'rot13')
    await dialog.getByText('No preview yet').waitFor()
    await dialog.getByText('token:teleport').first().waitFor()
    await dialog.getByLabel('Description').fill('kept')
    await dialog.getByRole('button', { name: 'Edit as JSON' }).click()
    const [first] = strange.rules
    t.same(JSON.parse(await text.inputValue()), { ...strange, rules: [{ ...first, description: 'kept' }] })
    for (const [bad, message] of [
      ['{', 'JSON'],
      ['[]', 'Write a JSON object.'],
      ['{"rules":{}}', 'The form cannot show this: rules is not a list.'],
    ] as const) {
      await text.fill(bad)
      await dialog.getByRole('button', { name: 'Edit as form' }).click()
      await dialog.getByRole('alert').filter({ hasText: message }).waitFor()
      t.equal(await text.inputValue(), bad, 'the text stays')
    }
  },
)

t.test(
  'after a change with a button, the first Escape warns, and the second Escape discards the change',
  options,
  async (t) => {
    const { page, show } = await open(t)
    await show('applications', 'Applications')
    await page.getByRole('link', { name: 'support' }).click()
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Edit rules' }).click()
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: 'Edit rules' }).click()
    await dialog.getByRole('button', { name: 'Remove rule 1' }).click()
    await page.keyboard.press('Escape')
    await dialog.getByText('Press Escape again to discard the changes').waitFor()
    t.equal(await dialog.locator('.rule-rows > li').count(), 1, 'the change is still there')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    t.equal(await page.locator('.rules > li').count(), 3, 'nothing is saved')
  },
)
