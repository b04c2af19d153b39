/** The dashboard at `/` in a real browser, served by the library. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { type Seed, startServer } from '../../src/index.js'
import { checkPage, needsChromium } from '../http/chromium.js'
import { open, show, signIn } from './page-browser.js'

const MAX_BYTES = 200_000
/** A text in the data of tokens, in requests and in the output of code. This text must not reach the page. */
const MARK = 'MARKED-PLAINTEXT'
const SECRETS = new RegExp(`${MARK}|4242424242424242|key_[0-9A-Za-z]{10}`)

const payments = JSON.parse(
  readFileSync(new URL('../../../fixtures/seeds/payments.json', import.meta.url), 'utf8'),
)
const seed: Seed = {
  ...payments,
  tokens: [
    ...payments.tokens,
    { id: 'marked', type: 'token', data: { text: MARK }, containers: ['/pci/high/'] },
  ],
}
const CODE = `module.exports = async ({ args }) => { console.log(JSON.stringify(args)); return { raw: args } }`

t.test('the page is small, and its content security policy allows only its own script', async (t) => {
  const server = await startServer()
  t.teardown(() => server.stop())
  const answer = await server.fetch('/')
  const html = await answer.text()
  t.ok(Buffer.byteLength(html) <= MAX_BYTES, `${Buffer.byteLength(html)} bytes`)
  const markup = html.replaceAll(/(<script[^>]*>)[\s\S]*?<\/script>/g, '$1')
  t.notMatch(markup, /<[^>]+\s(src|on[a-z]+|style)=|<link|@import|url\(/, 'the page loads nothing else')
  const policy = answer.headers.get('content-security-policy')
  t.match(
    policy,
    /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'; /,
  )
  t.match(
    policy,
    /require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  )
})

t.test(
  'a person can find out on the page why a test failed',
  { ...needsChromium, timeout: 400_000 },
  async (t) => {
    const { server, page, complaints, told, call } = await open(t, seed)
    await page.goto(`${server.url}/`)
    await page.getByText('coffer control page').waitFor()
    await page.locator('.items .method').first().waitFor()
    const { paths } = (await (await server.fetch('/openapi.json')).json()) as {
      paths: Record<string, object>
    }
    const operations = Object.values(paths).flatMap((methods) => Object.keys(methods))
    t.equal(
      await page.locator('.items .method').count(),
      operations.length,
      'the reference on the page is complete',
    )
    await page.getByLabel('Find in Reference').fill('detokenize')
    await page.getByRole('link', { name: '/detokenize' }).waitFor()
    t.equal(await page.locator('.items [data-link]').count(), 1)
    await checkPage(t, page, 'signed out')
    const url = await signIn(server, page)
    t.equal(new URL(page.url()).hash, '', 'the sign-in secret is no longer in the address')
    await page.getByText('No request yet').waitFor()
    await checkPage(t, page, 'no request')

    await call('/tokens/marked')
    await call('/tokens/customer-ada?page=SECRET', 'support')
    await call('/tokens', 'checkout', { type: 'card', data: { number: '1' } })
    const row = page.getByRole('row', { name: '/tokens/customer-ada' })
    await row.click()
    const detail = page.locator('.detail')
    await detail.getByText('Refused: nothing grants token:read here').waitFor()
    t.match(new URL(page.url()).hash, /^#\/requests\/[0-9a-f]{8}$/)
    await checkPage(t, page, 'requests')
    await detail.getByRole('tab', { name: 'Decision' }).click()
    await detail.getByText('may read and search tokens').waitFor()
    t.match(
      await detail.innerText(),
      /May support do token:read on \/general\/high\/[\s\S]*Rule 1[\s\S]*In \/pci\/ and below, may read and search tokens[\s\S]*A rule that would allow it/,
    )
    await checkPage(t, page, 'decision')
    await detail.getByRole('tab', { name: 'Code' }).click()
    t.match(await detail.innerText(), `curl '${server.url}/tokens/customer-ada' \\`)
    t.notMatch(await detail.innerText(), /SECRET/)
    for (const [language, word] of Object.entries({ Node: 'await fetch', Python: 'requests', Go: 'http.' })) {
      await detail.getByLabel('Language').selectOption(language)
      await detail.locator('pre', { hasText: word }).waitFor()
      t.match(await detail.innerText(), /COFFER_API_KEY/, language)
    }
    await detail.getByLabel('Language').selectOption('curl')

    await page.locator('body').press('k')
    await detail.getByText('Refused: the request is not valid').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await detail.getByRole('heading', { name: '/tokens/marked' }).waitFor()
    await page.locator('tr a:focus', { hasText: '/tokens/marked' }).waitFor()
    await detail.getByRole('button', { name: 'Send again' }).click()
    await page.getByRole('row', { name: '/tokens/marked' }).nth(1).waitFor()
    t.match(await server.control.requests.list(), { length: 4 })
    await page.keyboard.press('e')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('As', { exact: true }).selectOption({ label: 'support (private)' })
    await dialog.getByRole('button', { name: 'Send' }).click()
    await dialog.getByText('Answer, without data').waitFor()
    t.match(await dialog.innerText(), /200[\s\S]*"id": "marked"/)
    await checkPage(t, page, 'edit and send')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await page.keyboard.press('Escape')
    t.equal(new URL(page.url()).hash, '#/requests', 'Escape closes the detail')

    await page.keyboard.press('/')
    await page.keyboard.type('customer')
    t.equal(await page.locator('tbody [data-link]').count(), 1)
    t.match(page.url(), '?find=customer')
    await page.keyboard.press('Escape')
    await page.getByText('4xx').click()
    t.equal(await page.locator('tbody [data-link]').count(), 2)
    await page.getByLabel('Caller', { exact: true }).selectOption('support')
    t.equal(await page.locator('tbody [data-link]').count(), 1)
    await page.getByText('5xx').click()
    await page.getByText('No request matches').waitFor()
    await page.getByRole('link', { name: 'Reset filters' }).click()
    t.equal(new URL(page.url()).hash, '#/requests')
    await show(page, 'requests/00000000', 'Requests')
    await detail.getByText('There is no request 00000000').waitFor()
    await detail.getByText('This server has not received the request').waitFor()
    const box = await detail.boundingBox()
    t.ok(box && box.x > 300, 'the list stays beside the detail')
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('Next row, previous row').waitFor()
    await checkPage(t, page, 'keys')
    await page.keyboard.press('Escape')

    await Promise.all([page.waitForEvent('load'), page.goto(url)])
    await page.getByRole('heading', { name: 'Requests' }).waitFor()
    t.match(complaints, [/403/])
    t.equal(complaints.length, 1, 'the only complaint is about the sign-in link that was used before')
    t.ok(told.length > 10)
    t.notOk(SECRETS.exec(told.join('\n')), 'no response of the server has plaintext')
  },
)

t.test('every screen is usable and shows no plaintext', { ...needsChromium, timeout: 600_000 }, async (t) => {
  const { server, page, complaints, told, call } = await open(t, seed)
  const { id: reactor } = (await server.ask('reactor create', { name: 'noisy', code: CODE })) as {
    id: string
  }
  await signIn(server, page)
  await call('/tokens/marked')
  const seen: string[] = []
  const check = async (name: string) => {
    await checkPage(t, page, name)
    seen.push(await page.locator('#page').innerHTML())
  }

  await show(page, 'tokens', 'Tokens')
  await page.getByRole('row', { name: 'card-visa' }).getByText('visa •••• 4242 · 12/40').waitFor()
  await page.getByRole('row', { name: 'marked' }).click()
  await page.locator('.detail').getByText('has no mask').waitFor()
  await page.getByRole('tab', { name: 'Who may read it' }).click()
  await page.getByRole('row', { name: 'backend' }).getByText('plain', { exact: true }).waitFor()
  t.match(await page.locator('.detail').innerText(), /support\s+masked\s+rule 1[\s\S]*checkout\s+no/)
  await check('tokens')
  await page.locator('body').press('n')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Type', { exact: true }).selectOption('token')
  await dialog.getByLabel('Id', { exact: true }).fill('fresh')
  await dialog.locator('[name=data]').fill(JSON.stringify({ text: `${MARK} 2` }))
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.locator('.detail').getByText('fresh').first().waitFor()
  t.match(await server.ask('token get', { id: 'fresh' }), { id: 'fresh' })
  await page.getByLabel('Find in Tokens').fill('card-amex')
  await page.getByRole('row', { name: 'card-amex' }).waitFor()
  await page.locator('table[aria-rowcount="2"]').waitFor()

  await show(page, 'applications', 'Applications')
  await page.getByRole('link', { name: 'support' }).click()
  await page.locator('.detail').getByRole('heading', { name: 'support' }).waitFor()
  await page.getByLabel('Container or token').fill('customer-ada')
  await page.getByRole('button', { name: 'Ask' }).click()
  await page.getByText('no rule and no permission grants it').waitFor()
  await page.getByLabel('Container or token').fill('/pci/high/')
  await page.getByRole('button', { name: 'Ask' }).click()
  await page.getByRole('heading', { name: 'Yes' }).waitFor()
  await check('applications')
  await page.getByRole('button', { name: 'Edit rules' }).click()
  await dialog.getByRole('button', { name: 'Edit as JSON' }).click()
  const grants = { name: 'helpdesk', permissions: ['token:read'], rules: [] }
  await dialog.getByLabel('Permissions and rules').fill(JSON.stringify(grants))
  await page.keyboard.press('Escape')
  await dialog.getByText('Press Escape again to discard the changes').waitFor()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.locator('.detail').getByText('It may read tokens').waitFor()

  await show(page, `reactors/${reactor}`, 'Reactors')
  await page.getByText('It has not run yet').waitFor()
  await page.getByLabel('As', { exact: true }).selectOption({ label: 'backend (private)' })
  await page.getByLabel('Body').fill(JSON.stringify({ args: { text: `{{ marked }}` } }))
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByText('Answer, without data').waitFor()
  await page.getByText('done 200').waitFor()
  await check('reactors')
  t.notOk(SECRETS.exec(told.join('\n')), 'no response of the server has plaintext')
  await page.locator('pre', { hasText: 'log: [withheld: it would reveal data of a token]' }).waitFor()

  await show(page, 'log', 'Log')
  await page.getByRole('row', { name: 'backend Reactor' }).first().waitFor()
  const records = await page.locator('.list').innerText()
  t.match(records, /owner\s+Token created\s+fresh/)
  t.notMatch(records, /owner\s+Token retrieved\s+card/, 'reads by the page are not logged')
  await page.getByRole('button', { name: 'Verify' }).click()
  await page.getByText('Chain verified').waitFor()
  await check('log')
  await show(page, 'outbox', 'Outbox')
  await page.getByRole('link', { name: 'Open the link' }).waitFor()
  await check('outbox')

  await show(page, 'webhooks', 'Webhooks')
  await page.getByText('No webhook yet').waitFor()
  const hook = { name: 'billing', url: 'https://hooks.example/events', events: ['token.created'] }
  await server.ask('webhook create', hook)
  await server.ask('token create', { type: 'token', data: `${MARK} 3` })
  await page.locator('.detail').getByText('token.created').first().waitFor()
  await page.getByRole('button', { name: /^Send again: delivery/ }).click()
  await page.locator('.detail pre', { hasText: 'token.created' }).waitFor()
  await check('webhooks')

  await show(page, 'controls', 'Controls')
  await page.getByLabel('Or go to (UTC)').fill('2040-01-15T09:00:00')
  await page.getByRole('button', { name: 'Go to this time' }).click()
  await page.getByRole('link', { name: /^Clock \+/ }).waitFor()
  t.match((await server.control.clock.get()).now, /^2040-01-15T09:00/)
  await page.getByRole('button', { name: '503, once' }).click()
  await page.getByText('Answers 503 to any request, the first request').waitFor()
  await page.getByRole('link', { name: '1 fault on' }).waitFor()
  t.same([(await call('/tokens/marked')).status, (await call('/tokens/marked')).status], [503, 200])
  await page.getByLabel('Name of a snapshot').fill('here')
  await page.getByRole('button', { name: 'Keep a snapshot' }).click()
  await page.getByRole('button', { name: 'Restore here' }).waitFor()
  await page.getByLabel('Name of a fork').fill('worker-2')
  await page.getByRole('button', { name: 'New fork' }).click()
  await page.getByRole('button', { name: 'Show fork worker-2' }).click()
  await page.getByText('shown').waitFor()
  await page.getByLabel('Tenant or fork').selectOption({ index: 0 })
  await check('controls')
  await page.getByRole('button', { name: 'Reset …' }).click()
  await dialog.getByRole('button', { name: 'Reset' }).click()
  await page.getByText('real', { exact: true }).waitFor()
  t.same(await server.control.faults.list(), [])

  await show(page, 'reference/token-get', 'Reference')
  await page.getByLabel('id', { exact: true }).fill('marked')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('Answer, without data').waitFor()
  t.match(await page.locator('.detail').innerText(), `curl '${server.url}/tokens/marked'`)
  await check('reference')
  await show(page, 'reference/proxy-list', 'Reference')
  const grant = { name: 'proxies', type: 'management', permissions: ['proxy:read'] }
  const { key: reader } = await server.ask('app create', grant)
  const proxy = await server.ask('proxy create', { name: 'bank', destination_url: 'https://bank.example/v1' })
  await page.getByLabel('As', { exact: true }).selectOption('a key of mine …')
  await page.getByLabel('Key', { exact: true }).fill(reader!)
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('Answer, without data').waitFor()
  t.match(await page.locator('.detail').innerText(), /\b200\b/)
  t.notMatch(JSON.stringify(await server.control.requests.list()), proxy.key)
  await show(page, 'reference/fidelity', 'Reference')
  await page.getByText('not emulated').first().waitFor()

  const never = new RegExp(`${MARK}|key_[0-9A-Za-z]{10}|${proxy.key}`)
  t.notOk(never.exec(seen.join('\n')), 'not shown')
  t.notOk(SECRETS.exec(told.join('\n')) ?? never.exec(told.join('\n')), 'no secret reaches the page')
  t.same(complaints, [])
})

t.test(
  'a click on a failed request shows why the request failed',
  { ...needsChromium, timeout: 300_000 },
  async (t) => {
    const { server, page, complaints, told, call } = await open(t, seed)
    const code = `module.exports = async ({ args }) => {
  console.log(args)
  return { raw: args.missing.id }
}`
    const { id } = (await server.ask('reactor create', { name: 'failing', code })) as { id: string }
    await server.ask('webhook create', {
      name: 'blocked',
      url: 'https://hooks.example/',
      events: ['token.created'],
    })
    await call('/applications', 'checkout')
    await call(`/reactors/${id}/react`, 'backend', { args: { card: '{{ card-visa }}' } })
    const created = await call('/tokens', 'backend', { type: 'card', data: { number: '4242424242424242' } })
    const { id: token } = (await created.json()) as { id: string }
    for (const header of ['svc-api-key', 'other-api-key'])
      await fetch(`${server.url}/tokens/marked`, { headers: { [header]: 'key_1111111111111111111111' } })
    const destination = 'https://api.example.com/v1'
    await fetch(`${server.url}/proxy`, {
      headers: { 'svc-api-key': server.keys.backend!, 'svc-proxy-url': destination },
    })
    await call('/tokens/card-visa', 'support')
    await signIn(server, page)
    const detail = page.locator('.detail')
    const dialog = page.getByRole('dialog')
    const row = (text: string) => page.getByRole('row').filter({ hasText: text })

    await row('/tokens/card-visa').click()
    await detail.getByText('by rule 1').waitFor()
    t.match(await detail.innerText(), /Data:\s+masked\s+by rule 1\s+of support/)
    await detail.getByRole('button', { name: 'Show decision' }).click()
    await detail.locator('[role=tab]:focus', { hasText: 'Decision' }).waitFor()
    await detail.getByText('may read and search tokens').waitFor()

    await row('/proxy').click()
    await detail.getByText('--allow-net api.example.com').first().waitFor()
    t.equal(await detail.getByText('What backend may do').count(), 0, 'no rule refused the call')
    await detail.getByRole('tab', { name: 'Decision' }).click()
    await detail.getByText('Refused by --allow-net, not by a rule.').waitFor()
    await detail.getByRole('tab', { name: 'Code' }).click()
    await detail.getByText(`-H 'SVC-PROXY-URL: ${destination}'`).waitFor()
    await page.keyboard.press('e')
    t.equal(await dialog.getByLabel('SVC-PROXY-URL').inputValue(), destination)
    t.notMatch(await dialog.innerText(), /sample data|placeholders/, 'there is no body to complete')
    await dialog.getByRole('button', { name: 'Send' }).click()
    await dialog.getByText('--allow-net api.example.com').first().waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })

    await row('unknown key').click()
    await detail.getByRole('tab', { name: 'Request' }).click()
    await detail.getByText('in SVC-API-KEY, no application has this key').waitFor()
    await row('key in OTHER-API-KEY').click()
    t.equal(await detail.getByRole('button', { name: 'Send again' }).count(), 0, 'its key is not recorded')
    await detail.getByRole('tab', { name: 'Request' }).click()
    await detail.getByText('in OTHER-API-KEY, which this server does not read').waitFor()
    await detail.getByRole('tab', { name: 'Code' }).click()
    await detail.getByText('-H "SVC-API-KEY: $COFFER_API_KEY"').waitFor()
    await detail.getByText('The request had its key in OTHER-API-KEY').waitFor()

    await row('This requires the permission application:read').click()
    await detail.getByRole('heading', { name: 'What checkout may do' }).waitFor()
    await detail.getByRole('link', { name: 'Rules of checkout' }).waitFor()

    t.match(await row('/react').innerText(), /reactor failed/)
    await row('/react').click()
    await detail.getByText('Failed at line 3').waitFor()
    await detail.locator('mark', { hasText: 'args.missing.id' }).waitFor()
    await detail.getByRole('tab', { name: 'Time line' }).click()
    await detail.locator('.trail .badge.bad', { hasText: 'reactor failed 500' }).waitFor()
    await detail.getByRole('tab', { name: 'Overview' }).click()
    await checkPage(t, page, 'a failed run')
    await detail.getByRole('link', { name: 'failing' }).click()
    await detail.locator('mark', { hasText: 'args.missing.id' }).waitFor()
    t.same(JSON.parse(await detail.getByLabel('Body').inputValue()), { args: { missing: '<missing>' } })

    await show(page, `tokens/${token}`, 'Tokens')
    await detail.getByRole('link', { name: 'Requests with its id' }).click()
    await row('POST').click()
    await detail.getByRole('tab', { name: 'Code' }).click()
    await detail.getByText('Coffer records no data').waitFor()
    await detail.locator('mark', { hasText: 'data.number' }).waitFor()
    await detail.getByLabel('Language').selectOption('coffer')
    await detail.getByText(`coffer token create --url '${server.url}' --file -`).waitFor()
    for (const [text, shown] of Object.entries({
      4242: 'card-visa',
      VISA: 'card-visa',
      'er-ad': 'customer-ada',
    })) {
      await show(page, `tokens?find=${text}`, 'Tokens')
      await row(shown).waitFor()
    }
    await show(page, 'tokens?find=nothing-like-it', 'Tokens')
    await page.getByText('No token matches “nothing-like-it”').waitFor()
    await show(page, 'webhooks', 'Webhooks')
    await detail.getByText('--allow-net hooks.example', { exact: true }).waitFor()

    await show(page, 'requests', 'Requests')
    await page.getByRole('button', { name: /^Live/ }).click()
    await call('/tokens/marked')
    await page.getByRole('button', { name: /^Paused, 1 new/ }).waitFor()
    await page.getByRole('button', { name: 'Delete all requests' }).click()
    await dialog.getByRole('heading', { name: 'Delete 9 requests?' }).waitFor()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No request yet').waitFor()

    await page.setViewportSize({ width: 390, height: 844 })
    await show(page, 'log', 'Log')
    const cell = await page.locator('td.first').first().boundingBox()
    t.ok(cell && cell.width > 300, 'a row of the log is a card on a phone')
    await checkPage(t, page, 'log on a phone')
    t.notOk(SECRETS.exec(told.join('\n')), 'no response of the server has plaintext')
    t.same(complaints, [])
  },
)

t.test(
  'a time line links a request, its token, log records and deliveries, and the log is filtered by date and exported',
  { ...needsChromium, timeout: 300_000 },
  async (t) => {
    const { server, page, complaints, told } = await open(t, seed)
    const hook = { name: 'billing', url: 'https://hooks.example/', events: ['token.created'] }
    await server.ask('webhook create', hook)
    const name = '=cmd()'
    const { key } = await server.ask('app create', { name, type: 'private', permissions: ['token:create'] })
    const created = await fetch(`${server.url}/tokens`, {
      method: 'POST',
      headers: { 'svc-api-key': key!, 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'traced', type: 'token', data: MARK }),
    })
    t.equal(created.status, 201)
    await signIn(server, page)
    const detail = page.locator('.detail')
    await page.getByRole('row').filter({ hasText: 'POST' }).click()
    await detail.getByRole('link', { name: 'traced' }).waitFor()
    await detail.getByRole('tab', { name: 'Time line' }).click()
    const line = detail.getByRole('list', { name: 'Time line' })
    await line.getByText('token.created').waitFor()
    t.match(
      await line.innerText(),
      /Request\s+POST \/tokens 201[\s\S]*Log\s+=cmd\(\): Token created traced[\s\S]*Delivery\s+token.created to billing blocked/,
    )
    t.match(await line.locator('[aria-current]').innerText(), 'POST /tokens')
    await checkPage(t, page, 'time line of a request')

    await line.getByRole('link', { name: 'token.created' }).click()
    await detail.getByRole('heading', { name: 'token.created' }).waitFor()
    await line.locator('[aria-current]', { hasText: 'token.created' }).waitFor()
    await checkPage(t, page, 'delivery')
    await line.getByRole('link', { name: 'Token created' }).click()
    await detail.getByRole('heading', { name: 'Token created' }).waitFor()
    await line.locator('[aria-current]', { hasText: 'Token created' }).waitFor()
    await checkPage(t, page, 'log record')
    await line.getByRole('link', { name: 'traced' }).click()
    await page.getByRole('heading', { name: 'Tokens', level: 1 }).waitFor()
    await detail.getByRole('tab', { name: 'Time line' }).click()
    await line.getByRole('link', { name: 'POST /tokens' }).click()
    await page.getByRole('heading', { name: 'Requests', level: 1 }).waitFor()
    await detail.getByRole('heading', { name: '/tokens' }).waitFor()

    await show(page, 'log', 'Log')
    const row = page.getByRole('row').filter({ hasText: 'Token created' })
    await row.first().waitFor()
    await page.getByLabel('To (UTC)').fill('2020-01-01T00:00')
    await page.getByText('No record matches the filters').waitFor()
    await page.getByRole('link', { name: 'Reset filters' }).click()
    await page.getByLabel('From (UTC)').fill('2020-01-01T00:00')
    await page.getByLabel('Find in Log').fill('traced')
    await page.locator('table[aria-rowcount="2"]').waitFor()
    const save = async (name: string) => {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name }).click(),
      ])
      return readFileSync(await file.path(), 'utf8')
    }
    const csv = await save('Export CSV')
    t.match(
      csv,
      /^"created_at","actor",.*\r\n"20[^"]*","'=cmd\(\)","application",.*"traced","Token created",/,
    )
    t.equal(csv.trim().split('\r\n').length, 2, 'the filters apply to the export')
    await page.getByText('Exported 1 record.').waitFor()
    const [record] = JSON.parse(await save('Export JSON')) as object[]
    t.match(record, { entity_id: 'traced', message: 'Token created', actor: '=cmd()' })
    await page.setViewportSize({ width: 390, height: 844 })
    await checkPage(t, page, 'filters of the log on a phone')
    await page.emulateMedia({ forcedColors: 'active' })
    await show(page, `requests/${created.headers.get('svc-trace-id')!.slice(0, 8)}`, 'Requests')
    await detail.getByRole('tab', { name: 'Time line' }).click()
    await line.locator('[aria-current]').waitFor()
    const style = `getComputedStyle(document.querySelector('.trail [aria-current]')).outlineStyle`
    t.equal(await page.evaluate(style), 'solid', 'forced colours show the current item')
    t.notOk(new RegExp(MARK).exec(told.join('\n')), 'no response of the server has plaintext')
    t.same(complaints, [])

    await server.stop()
    await page.getByRole('button', { name: /^Server stopped/ }).waitFor()
    t.equal(await page.locator('.live').count(), 0, 'nothing is shown as live')
  },
)

t.test(
  'on a slow network, the page shows a skeleton and announces once that it loads',
  { ...needsChromium, timeout: 120_000 },
  async (t) => {
    const { server, page } = await open(t, seed)
    await signIn(server, page)
    const held: (() => void)[] = []
    await page.route('**/_dashboard/ask', async (route) => {
      if (/"log":/.test(route.request().postData() ?? '')) await new Promise<void>((go) => held.push(go))
      await route.continue()
    })
    await show(page, 'log', 'Log')
    await page.locator('.list .skeleton').waitFor()
    t.equal(await page.locator('[role=status]', { hasText: 'Loading' }).count(), 1)
    while (held.length === 0) await page.waitForTimeout(20)
    for (const go of held.splice(0)) go()
    await page.getByRole('row').filter({ hasText: 'Token created' }).first().waitFor()
    t.equal(await page.locator('.skeleton').count(), 0)
  },
)

t.test(
  'a server on another port of the host gets the cookie, which is useless without the secret of the page',
  { ...needsChromium, timeout: 120_000 },
  async (t) => {
    const { server, page, call } = await open(t, seed)
    const cookies: string[] = []
    const other = createServer((request, response) => {
      cookies.push(request.headers.cookie ?? '')
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>other</title>')
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    t.teardown(() => other.close())
    await signIn(server, page)
    await call('/tokens/marked')
    const row = page.getByRole('row', { name: '/tokens/marked' })
    await row.waitFor()
    const { hostname } = new URL(server.url)
    const beside = await page.context().newPage()
    await beside.goto(`http://${hostname}:${(other.address() as AddressInfo).port}/_dashboard/x`)
    const cookie = cookies.find((each) => each.includes('coffer_page_'))
    t.ok(cookie, 'a browser sends the cookie to the port')
    t.equal(
      await beside.evaluate('JSON.stringify({ ...localStorage })'),
      '{}',
      'the page of the other port cannot read the secret of the dashboard',
    )
    const post = { method: 'POST', headers: { cookie: cookie!, 'content-type': 'application/json' } }
    for (const body of [{ operation: 'token list' }, { after: 0 }, { operation: 'control reset' }])
      t.equal(
        (await fetch(`${server.url}/_dashboard/ask`, { ...post, body: JSON.stringify(body) })).status,
        401,
      )
    t.equal((await fetch(`${server.url}/_dashboard/session`, { headers: { cookie: cookie! } })).status, 401)

    await beside.goto(`${server.url}/#/requests`)
    await beside.getByRole('row', { name: '/tokens/marked' }).waitFor()
    t.pass('another tab of the page is signed in')
    await page.reload()
    await row.waitFor()
    await signIn(server, beside)
    await call('/tokens/card-visa')
    for (const tab of [page, beside]) await tab.getByRole('row', { name: '/tokens/card-visa' }).waitFor()
    t.pass('all tabs stay signed in after one of them opened a second link')
  },
)

/**
 * Measures how long a scroll to the end and a filter take until they are painted. Returns the shortest of three
 * measurements, in ms.
 */
const MEASURE = `(async () => {
  const list = document.querySelector('.list')
  const search = document.querySelector('[type=search]')
  const paint = async (text) => {
    search.value = text
    search.dispatchEvent(new InputEvent('input', { bubbles: true }))
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame)
  }
  const times = []
  for (let round = 0; round < 3; round++) {
    const began = performance.now()
    list.scrollTo(0, list.scrollHeight)
    await paint('')
    await paint('none')
    times.push(performance.now() - began)
    list.scrollTo(0, 0)
    await paint('')
  }
  return Math.min(...times)
})()`

const FIRST_SEEN = `(() => {
  const { left, top } = document.querySelector('.list').getBoundingClientRect()
  return document.elementFromPoint(left + 200, top + 200).closest('tr').querySelector('a').hash
})()`

t.test('1,000 requests do not slow the page down', { ...needsChromium, timeout: 200_000 }, async (t) => {
  const { server, page, call } = await open(t, seed)
  await signIn(server, page)
  const ask50 = () =>
    Promise.all(Array.from({ length: 50 }, (_, at) => call(`/tokens/${at % 2 ? 'marked' : 'none'}`)))
  await ask50()
  await page.locator('table[aria-rowcount="51"]').waitFor()
  const few = Number(await page.evaluate(MEASURE))
  for (let round = 1; round < 20; round++) await ask50()
  await page.locator('table[aria-rowcount="1001"]').waitFor()
  const count = () => page.locator('tbody tr[aria-rowindex]').count()
  t.ok((await count()) < 120, `the page has only ${await count()} rows`)
  const elements = Number(await page.evaluate(`document.querySelectorAll('main *').length`))
  t.ok(elements < 1500, `${elements} elements`)
  const many = Number(await page.evaluate(MEASURE))
  t.ok(many < 10 * few, `scroll and filter take ${many} ms, and ${few} ms with 50 requests`)
  await page.getByLabel('Find in Requests').fill('none')
  await page.locator('table[aria-rowcount="501"]').waitFor()
  await page.getByLabel('Find in Requests').fill('')
  await page.locator('table[aria-rowcount="1001"]').waitFor()
  await page.evaluate(`document.querySelector('.list').scrollTo(0, 9000)`)
  await page.locator('tr[aria-rowindex="310"]').waitFor()
  const first = () => page.evaluate(FIRST_SEEN)
  const before = await first()
  await call('/tokens/marked')
  await page.getByRole('button', { name: '1 new' }).waitFor()
  t.equal(await first(), before, 'a new row does not move the rows on the screen')
  await page.getByRole('button', { name: '1 new' }).click()
  await page.getByRole('button', { name: '1 new' }).waitFor({ state: 'hidden' })
})
