/** The page at `/` in a real browser, on what the library serves. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { type Seed, startServer } from '../../src/index.js'
import { checkPage, launchChromium, needsChromium } from '../http/chromium.js'

const MOST_BYTES = 150_000
const VIEWS = ['requests', 'tokens', 'applications', 'reactors', 'log', 'outbox', 'controls']
const SECRET = '4242424242424242'
const seed = JSON.parse(
  readFileSync(new URL('../../../fixtures/seeds/payments.json', import.meta.url), 'utf8'),
) as Seed

t.test('the page is small, and its policy allows its own script alone', async (t) => {
  const server = await startServer()
  t.teardown(() => server.stop())
  const answer = await server.fetch('/')
  const html = await answer.text()
  t.ok(Buffer.byteLength(html) <= MOST_BYTES, `${Buffer.byteLength(html)} bytes`)
  t.notMatch(html, /\s(src|on[a-z]+)=|<link|@import|url\(/, 'it loads nothing else')
  const policy = answer.headers.get('content-security-policy')
  t.match(
    policy,
    /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'; /,
  )
  t.match(policy, /trusted-types 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/)
})

t.test('a person looks at what their test did', { ...needsChromium, timeout: 400_000 }, async (t) => {
  const server = await startServer({ seed })
  const browser = await launchChromium()
  t.teardown(async () => {
    await browser.close()
    await server.stop()
  })
  const page = await browser.newPage()
  const complaints: string[] = []
  page.on('pageerror', ({ message }) => complaints.push(message))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  const [key = ''] = [server.keys.support]
  const get = (path: string) => fetch(`${server.url}${path}`, { headers: { 'svc-api-key': key } })
  await server.ask('reactor create', {
    name: 'noisy',
    code: 'module.exports = async () => { console.log("I was here"); return { raw: {} } }',
  })
  const reactors = await server.ask('reactor list')
  await server.ask('reactor react', { id: reactors.data.find(({ name }) => name === 'noisy')!.id })

  await page.goto(`${server.url}/`)
  t.match(await page.textContent('body'), 'coffer control page', 'signed out it says how to sign in')
  await checkPage(t, page, 'reference')
  const { url } = await server.control.page()
  await page.goto(url)
  // The same document: a reload is what a new tab does.
  await page.reload()
  await page.getByRole('heading', { name: 'Requests' }).waitFor()
  t.equal(new URL(page.url()).hash, '', 'the secret is in the address no more')
  await page.goto(`${server.url}/`)
  await page.getByRole('heading', { name: 'Requests' }).waitFor()

  await get('/tokens/card-visa')
  await get('/tokens/customer-ada?page=SECRET')
  const refused = page.locator('summary', { hasText: '/tokens/customer-ada' })
  await refused.waitFor()
  await refused.focus()
  await page.keyboard.press('Enter')
  const opened = page.locator('details[open]', { hasText: '/tokens/customer-ada' })
  await opened.getByText('Why it was refused').waitFor()
  const told = await opened.innerText()
  t.match(
    told,
    /Which rule decided[\s\S]*token:read on \/general\/high\/[\s\S]*refused: nothing grants it[\s\S]*rule 1: other container/,
  )
  t.match(told, `curl '${server.url}/tokens/customer-ada`)
  t.match(told, '-H "SVC-API-KEY: $KEY"')
  t.notMatch(told, /SECRET|key_/)
  const isLoaded = async () => {
    while (/Loading/.test(await page.locator('main:visible').innerText())) await page.waitForTimeout(20)
  }
  for (const name of VIEWS) {
    await page.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
    await isLoaded()
    for (const summary of (await page.locator('main:visible summary').all()).slice(0, 2))
      await summary.click()
    await isLoaded()
    await checkPage(t, page, name)
    if (name === 'requests' || name === 'controls') {
      await page.emulateMedia({ colorScheme: 'dark' })
      await checkPage(t, page, `${name} in the dark`, ['color-contrast'])
      await page.emulateMedia({ colorScheme: 'light' })
    }
    t.notMatch(await page.innerText('body'), new RegExp(SECRET), `${name} reveals nothing`)
    if (name === 'reactors') await page.getByText('log: I was here').waitFor()
  }

  await page.getByRole('link', { name: 'tokens', exact: true }).click()
  await page.getByLabel('Find').fill('card-amex')
  await page.keyboard.press('Enter')
  await page.getByText('1 found').waitFor()

  await page.getByRole('link', { name: 'controls', exact: true }).click()
  await page.getByRole('button', { name: '+ 30d' }).click()
  await page.getByText('(offset)').waitFor()
  t.equal((await server.control.clock.get()).mode, 'offset')
  await page.getByLabel('Operation').fill('token get')
  await page.getByLabel('Times').fill('1')
  await page.getByRole('button', { name: 'Add the fault' }).click()
  await page.getByRole('button', { name: 'Remove fault 1' }).waitFor()
  t.match([(await get('/tokens/card-visa')).status, (await get('/tokens/card-visa')).status], [503, 200])
  page.once('dialog', (dialog) => void dialog.accept())
  await page.getByRole('button', { name: 'Reset' }).click()
  await page.getByText('(real)').waitFor()
  t.same(await server.control.faults.list(), [])

  await page.getByRole('link', { name: 'reference', exact: true }).click()
  await page.getByLabel('API key').fill(server.keys.backend!)
  await page.locator('#token-get > summary').click()
  const form = page.locator('#token-get form')
  await form.getByLabel('id').fill('card-visa')
  await form.getByRole('button', { name: 'Send' }).click()
  await form.getByText('Answer: 200').waitFor()
  const answer = await form.innerText()
  t.match(answer, /"id": "card-visa"/)
  t.match(answer, '(not shown on this page)')
  t.match(answer, `curl '${server.url}/tokens/card-visa'`)
  t.notMatch(answer, /4242424242424242|key_/)
  await checkPage(t, page, 'reference in use')

  const grants = { name: 'proxies', type: 'management', permissions: ['proxy:read'] }
  const { key: reader } = await server.ask('app create', grants)
  const proxy = await server.ask('proxy create', { name: 'bank', destination_url: 'https://bank.example/v1' })
  await page.getByLabel('API key').fill(reader!)
  await page.locator('#proxy-list > summary').click()
  await page.locator('#proxy-list form').getByRole('button', { name: 'Send' }).click()
  await page.locator('#proxy-list form').getByText('Answer: 200').waitFor()
  const proxies = await page.locator('#proxy-list form').innerText()
  t.match(proxies, '"destination_url": "https://bank.example/v1"')
  t.notMatch(proxies, proxy.key, 'who knows the key of a proxy may call it')
  t.notMatch(JSON.stringify(await server.control.requests.list()), proxy.key)
  await page.goto(url)
  await page.reload()
  await page.getByRole('heading', { name: 'Requests' }).waitFor()
  t.match(complaints, [/403/])
  t.equal(complaints.length, 1, 'of the address that was used before')
})
