/** The screens of the dashboard that manage proxies, webhooks, people, the tenant, tokens and reactors, in Chromium. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Seed } from '../../src/index.js'
import { checkPage, needsChromium } from '../http/chromium.js'
import { open, show, signIn } from './page-browser.js'

const seed: Seed = JSON.parse(
  readFileSync(new URL('../../../fixtures/seeds/payments.json', import.meta.url), 'utf8'),
)

t.test('proxies and webhooks are managed on the page', { ...needsChromium, timeout: 600_000 }, async (t) => {
  const { server, page, complaints } = await open(t, seed)
  await signIn(server, page)
  const dialog = page.getByRole('dialog')
  const detail = page.locator('.detail')
  const button = (name: string | RegExp) => page.getByRole('button', { name })

  await show(page, 'proxies', 'Proxies')
  await page.getByText('No proxy yet').waitFor()
  await checkPage(t, page, 'no proxy')
  await button('New proxy').first().click()
  await dialog.getByLabel('Name', { exact: true }).fill('billing')
  const destination = dialog.getByLabel('Destination URL')
  await destination.fill('nothing')
  const transforms = dialog.getByLabel('Request transforms')
  await transforms.fill('[{"type": "append_header",')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByText('is not JSON').waitFor()
  t.equal(await transforms.getAttribute('aria-invalid'), 'true')
  const value = { value: 'Bearer {{ req.a }}', location: 'x-key' }
  await transforms.fill(JSON.stringify([{ type: 'append_header', options: value }]))
  await dialog.getByLabel('Configuration').fill('API_KEY=first\nREGION=eu')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByText('must be an http or https URL').waitFor()
  t.equal(await transforms.getAttribute('aria-invalid'), null, 'a corrected field is no longer marked')
  t.equal(
    await page.evaluate(`document.activeElement.name`),
    'destination_url',
    'the focus is in the first refused field',
  )
  const described = await destination.evaluate(
    `(input => input.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id).textContent).join(' '))(document.activeElement)`,
  )
  t.match(described, /must be an http or https URL/, 'a message is connected to its field')
  await checkPage(t, page, 'a refused form')
  await page.setViewportSize({ width: 1400, height: 900 })
  await destination.fill('https://api.example.com/v1')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await detail.getByRole('heading', { name: 'billing' }).waitFor()
  t.equal(await page.title(), 'billing · Proxies · Coffer')
  await detail.getByText('API_KEY, REGION').waitFor()
  await checkPage(t, page, 'a proxy')
  const [made] = (await server.ask('proxy list', {})).data
  t.match(made, {
    configuration: { API_KEY: 'first', REGION: 'eu' },
    require_auth: true,
    request_transforms: [{ options: value }],
  })

  await button('Edit').click()
  await dialog.getByLabel('Name', { exact: true }).fill('payments')
  await dialog.getByLabel('Calls need an API key').uncheck()
  await dialog.getByLabel('Application').selectOption({ label: 'backend (private)' })
  await checkPage(t, page, 'the form of a proxy')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await detail.getByRole('heading', { name: 'payments' }).waitFor()
  const { id } = made!
  t.match(
    await server.ask('proxy get', { id }),
    {
      configuration: { API_KEY: 'first', REGION: 'eu' },
      require_auth: false,
      request_transforms: [{ options: value }],
      destination_url: 'https://api.example.com/v1',
    },
    'a change keeps the values that the page does not have',
  )
  await button('Edit').click()
  await dialog.getByLabel('Replace: configuration').check()
  await dialog.locator('[name=configuration]').fill('API_KEY=second')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  t.same((await server.ask('proxy get', { id })).configuration, { API_KEY: 'second' })
  await button('Delete …').click()
  await dialog.getByRole('heading', { name: 'Delete payments?' }).waitFor()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No proxy yet').waitFor()
  t.same((await server.ask('proxy list', {})).data, [])

  await show(page, 'webhooks', 'Webhooks')
  await button('New webhook').first().click()
  await dialog.getByLabel('Name', { exact: true }).fill('hook')
  await dialog.getByLabel('URL', { exact: true }).fill('https://hooks.example/events?key=one')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByText('must be types of events').waitFor()
  await checkPage(t, page, 'a refused webhook')
  await page.setViewportSize({ width: 1400, height: 900 })
  t.equal(await dialog.getByLabel('tenant.created', { exact: true }).count(), 0, 'never sent, so not offered')
  await dialog.getByLabel('token.created', { exact: true }).check()
  await dialog.getByLabel('token.read', { exact: true }).check()
  await dialog.getByRole('button', { name: 'Create' }).click()
  await detail.getByText('token.created, token.read').waitFor()
  const hook = async () => (await server.ask('webhook list', {})).data[0]
  await button('Edit').click()
  await dialog.getByRole('group', { name: /^Events: 2 of \d+ chosen/ }).waitFor()
  t.same(
    (await dialog.locator('.choices label').allInnerTexts()).slice(0, 2),
    ['token.created', 'token.read'],
    'the chosen events are first',
  )
  await dialog.getByLabel('token.read', { exact: true }).uncheck()
  await dialog.getByRole('group', { name: /^Events: 1 of \d+ chosen/ }).waitFor()
  await dialog.getByLabel('Status').selectOption('disabled')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await detail.getByText('disabled').waitFor()
  t.match(await hook(), {
    url: 'https://hooks.example/events?key=one',
    events: ['token.created'],
    status: 'disabled',
  })
  await button('Edit').click()
  await dialog.getByLabel('URL', { exact: true }).fill('https://hooks.example/v2')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await detail.getByText('https://hooks.example/v2').waitFor()
  await button('Delete …').click()
  await dialog.getByRole('heading', { name: 'Delete hook?' }).waitFor()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No webhook yet').waitFor()
  t.equal(await hook(), undefined)
  t.ok(complaints.every((text) => text.includes('400')))
})

t.test(
  'people, the tenant, tokens and reactors are managed on the page',
  { ...needsChromium, timeout: 600_000 },
  async (t) => {
    const { server, page, complaints } = await open(t, seed)
    const sent: string[] = []
    page.on('request', (request) => sent.push(request.postData() ?? ''))
    await signIn(server, page)
    const dialog = page.getByRole('dialog')
    const detail = page.locator('.detail')
    const button = (name: string | RegExp) => page.getByRole('button', { name })

    await show(page, 'members', 'Members')
    await page.getByRole('link', { name: 'The owner of the vault' }).click()
    await detail.getByText('cannot be removed').waitFor()
    await checkPage(t, page, 'members')
    await page.setViewportSize({ width: 1400, height: 900 })
    await button('Invite').click()
    await dialog.getByLabel('Email').fill('nobody')
    await dialog.getByRole('button', { name: 'Invite' }).click()
    await dialog.getByText('must be an e-mail address').waitFor()
    await dialog.getByLabel('Email').fill('alan@example.com')
    await dialog.getByLabel('Role').selectOption('READ_ONLY')
    await checkPage(t, page, 'an invitation form')
    await page.setViewportSize({ width: 1400, height: 900 })
    await dialog.getByRole('button', { name: 'Invite' }).click()
    await detail.getByRole('heading', { name: 'alan@example.com' }).waitFor()
    t.equal(await page.title(), 'alan@example.com · Members · Coffer')
    const invited = async () =>
      (await server.ask('invite list', {})).data.find(({ email }) => email === 'alan@example.com')
    const before = await invited()
    t.match(before, { role: 'READ_ONLY', status: 'PENDING' })
    await button('Send again: alan@example.com').click()
    await detail.getByText('in 5 d').waitFor()
    t.not((await invited())!.expires_at, before!.expires_at, 'the expiry is later')
    await checkPage(t, page, 'an invitation')
    await page.setViewportSize({ width: 1400, height: 900 })
    await button('Withdraw …').click()
    await dialog.getByRole('heading', { name: 'Withdraw the invitation of alan@example.com?' }).waitFor()
    await dialog.getByRole('button', { name: 'Withdraw' }).click()
    await page.getByText('alan@example.com').first().waitFor({ state: 'detached' })
    t.equal(await invited(), undefined)
    await page.getByRole('link', { name: 'Ada Example' }).click()
    await button('Change role').click()
    await dialog.getByLabel('Role').selectOption('READ_ONLY')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await detail.getByText('READ_ONLY').first().waitFor()
    await button('Remove …').click()
    await dialog.getByRole('heading', { name: 'Remove Ada Example?' }).waitFor()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('link', { name: 'Ada Example' }).waitFor({ state: 'detached' })
    t.equal((await server.ask('member list', {})).data.length, 1)

    await show(page, 'tenant', 'Tenant')
    await page.getByLabel('Name', { exact: true }).fill('  ')
    await button('Save').click()
    await page.locator('.fault').waitFor()
    t.match(await page.locator('.fault').innerText(), /is required/)
    await checkPage(t, page, 'a refused tenant')
    await page.setViewportSize({ width: 1400, height: 900 })
    await page.getByLabel('Name', { exact: true }).fill('shop')
    await page.getByLabel('Disable ephemeral proxy').selectOption('yes')
    await button('Save').click()
    await page.getByRole('heading', { name: 'About shop' }).waitFor()
    t.match(await server.ask('tenant get', {}), {
      name: 'shop',
      settings: { deduplicate_tokens: 'true', disable_ephemeral_proxy: 'true' },
    })
    await checkPage(t, page, 'the tenant')
    await page.setViewportSize({ width: 1400, height: 900 })

    await show(page, 'tokens/card-visa', 'Tokens')
    await button('Edit').click()
    await dialog.getByLabel('Metadata').fill('order=17')
    await dialog.getByLabel('Containers').fill('/pci/high/\n/general/low/')
    await dialog.getByLabel('Expires').fill('2090-01-15T09:00:00')
    await dialog.getByLabel('Search indexes').fill('{{ data.number }}')
    await checkPage(t, page, 'the form of a token')
    await page.setViewportSize({ width: 1400, height: 900 })
    sent.length = 0
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    const update = sent.find((text) => text.includes('token update'))
    t.match(JSON.parse(update!).input, { metadata: { customer: null, order: '17' } })
    t.strictSame(
      Object.keys(JSON.parse(update!).input).sort(),
      ['containers', 'expires_at', 'id', 'metadata', 'search_indexes'],
      'only what was changed is sent',
    )
    t.match(await server.ask('token get', { id: 'card-visa' }, { reveal: true }), {
      metadata: { order: '17' },
      containers: ['/pci/high/', '/general/low/'],
      expires_at: /^2090-01-15T09:00:00/,
      data: { number: '4242424242424242' },
    })
    await button('Edit').click()
    await dialog.getByLabel('Replace: data').check()
    t.equal(
      await dialog.getByLabel('Data', { exact: true }).inputValue(),
      '',
      'the stored data is not in the form',
    )
    await dialog.getByLabel('Data', { exact: true }).fill('{"number": "12"}')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('must be a string of 12 to 19 digits').waitFor()
    await dialog.getByLabel('Data', { exact: true }).fill('{"number": "5555555555554444"}')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('is the data of the token card-mastercard').waitFor()
    await dialog.getByLabel('Data', { exact: true }).fill('{"number": "4012888888881881"}')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await detail.getByText('XXXXXXXXXXXX1881').waitFor()
    t.match(await server.ask('token get', { id: 'card-visa' }, { reveal: true }), {
      data: { number: '4012888888881881' },
    })
    await button('Delete …').click()
    await dialog.getByRole('heading', { name: 'Delete the token card-visa?' }).waitFor()
    await page.keyboard.press('Escape')

    const { id } = await server.ask('reactor create', {
      name: 'old',
      code: 'module.exports = async () => ({})',
    })
    await show(page, `reactors/${id}`, 'Reactors')
    await button('Delete …').click()
    await dialog.getByRole('heading', { name: 'Delete old?' }).waitFor()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('link', { name: 'old' }).waitFor({ state: 'detached' })
    t.ok(
      complaints.every((text) => / 40[04] /.test(text)),
      String(complaints),
    )
  },
)
