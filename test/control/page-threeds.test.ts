/** The screen about 3-D Secure: the steps of a session, the caller of each step, and decisions by a person. */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { SessionDetail, SessionList } from '../../src/control/page-threeds.js'
import { checkPage, launchChromium, needsChromium } from '../http/chromium.js'
import { createBackend, creqOf, type Json, NUMBERS, openShop, post } from '../http/threeds-shop.js'
import { AUTHENTICATE, BROWSER } from '../operations/documented.js'

/**
 * Matches card numbers, keys, and data that browsers send about themselves. No response to the page may contain text
 * that matches.
 */
const SECRETS = new RegExp(
  `${Object.values(NUMBERS).join('|')}|key_[0-9A-Za-z]{10}|${BROWSER.browser_user_agent}`,
)
const MERCHANT = { ...AUTHENTICATE, authentication_type: 'mail-order', decoupled_challenge_max_time: 5 }
const AS_MERCHANT = { type: 'merchant', device: undefined, device_info: undefined }

async function open(t: Test) {
  const shop = await openShop(t)
  const { server, backend } = shop
  const login = new URL((await server.control.page()).url).hash.slice('#login='.length)
  let secrets: Record<string, string> = {}
  const send = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json', ...secrets }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await fetch(`${server.url}/_dashboard/${path}`, init)
    const json: Json = await answer.json()
    return { status: answer.status, json, cookie: answer.headers.get('set-cookie') ?? '' }
  }
  const early = await send('ask', { threeds: {} })
  t.equal(early.status, 401, 'nobody is signed in')
  const { json, cookie } = await send('session', { login })
  secrets = { cookie: cookie.split(';')[0]!, 'coffer-page-secret': json.page_secret }
  const read = async (id: string, more: object = {}): Promise<SessionDetail> => {
    const answer = await send('ask', { threeds: { id }, ...more })
    if (answer.status !== 200) throw Object.assign(new Error(answer.json.detail), { status: answer.status })
    t.notMatch(JSON.stringify(answer.json), SECRETS)
    return answer.json
  }
  const list = async (more: object = {}): Promise<SessionList> =>
    (await send('ask', { threeds: {}, ...more })).json
  const decide = (id: string, outcome?: string) =>
    send('ask', { operation: '3ds decide', input: { id, ...(outcome && { outcome }) } })
  const answer = ({ id, acs }: { id: string; acs: string }, fields: Record<string, string>) =>
    post(`${backend.url}/3ds/acs/browser/answer`, { session: id, acs_transaction_id: acs, ...fields })
  const show = ({ id, acs }: { id: string; acs: string }) =>
    post(`${backend.url}/3ds/acs/browser/creq`, { creq: creqOf({ id, acs }) })
  return { ...shop, read, list, decide, answer, show }
}

const namesOf = ({ steps }: SessionDetail) => steps.map(({ name }) => name)

t.test('the dashboard shows each step of a challenge in a browser, and who caused the step', async (t) => {
  const { server, backend, read, list, answer, show } = await open(t)
  const session = await backend.session('CN', { metadata: { order: '7' } })
  await post(session.method_notification_url, {})
  const before = await server.ask('log list', { size: 1 })
  t.match(await read(session.id), { state: 'created', metadata: { order: '7' }, method: 'done' })
  t.equal((await server.ask('log list', { size: 1 })).pagination.total_items, before.pagination.total_items)
  const { acs_transaction_id: acs } = await backend.authenticate(session.id)
  const ids = { id: session.id, acs }
  t.match((await read(ids.id)).authentication?.challenge, { isOpened: false, attempts: 0 })
  await show(ids)
  await answer(ids, { code: '1' })
  const waiting = await read(ids.id)
  t.match(waiting, { state: 'waiting', authentication: { challenge: { isOpened: true, attempts: 1 } } })
  await answer(ids, { code: '1234' })
  t.match(await read(ids.id), {
    state: 'ended',
    authentication: { challenge: { endedBy: 'cardholder', ended: { status: 'failed' } } },
  })
  await backend.get(ids.id)
  await backend.result(ids.id)
  const final = await read(ids.id)
  t.equal(final.state, 'failed')
  const { data: applications } = await server.ask('app list')
  const nameOf = (id = '') => applications.find((each) => each.id === id)?.type ?? 'none'
  t.strictSame(
    final.steps.map(({ name, actor_type, actor_id }) => [name, actor_type, nameOf(actor_id)]),
    [
      ['created', 'application', 'public'],
      ['method', 'system', 'none'],
      ['authenticated', 'application', 'private'],
      ['answered', 'system', 'none'],
      ['ended', 'system', 'none'],
      ['read', 'application', 'private'],
      ['retrieved', 'application', 'private'],
    ],
  )
  const traces = (await server.control.requests.list()).map(({ trace_id }) => trace_id)
  t.ok(
    final.steps.every(({ trace_id }) => traces.includes(trace_id!)),
    'each step leads to its request',
  )
  t.match(await list(), { total: 1, data: [{ id: ids.id, state: 'failed', brands: ['Visa'] }] })
})

t.test(
  'the dashboard shows what ended a challenge, the clock or a setting, and shows no callback address',
  async (t) => {
    const { server, backend, read, show } = await open(t)
    const late = await backend.challenged()
    const retrieved = await backend.challenged()
    await show(late)
    await server.control.clock.advance({ by: '11m' })
    await backend.result(retrieved.id)
    for (const { id } of [late, retrieved]) {
      const session = await read(id)
      const end = session.steps.find(({ name }) => name === 'ended')
      t.match(session, { authentication: { challenge: { endedBy: 'clock' } } })
      t.equal(Date.parse(end!.at), session.authentication!.challenge!.until, 'when its time was over')
      t.notOk(end?.trace_id)
    }
    t.strictSame(namesOf(await read(late.id)), ['created', 'authenticated', 'ended'])
    t.strictSame(namesOf(await read(retrieved.id)), ['created', 'authenticated', 'ended', 'retrieved'])

    const { id: merchant } = await backend.session('CY', AS_MERCHANT)
    await backend.authenticate(merchant, MERCHANT)
    t.match(await read(merchant), { state: 'waiting', type: 'merchant', method: 'none' })
    await server.control.clock.advance({ by: '61s' })
    t.match(await read(merchant), { state: 'ended', authentication: { challenge: { endedBy: 'clock' } } })
    t.strictSame(namesOf(await read(merchant)), ['created', 'authenticated', 'ended'])

    const callbacks = { success: 'https://shop.test/paid', failure: 'https://shop.test/failed' }
    const { id } = await backend.redirect('FY', callbacks)
    t.match(await read(id), { state: 'created', isRedirect: true })
    await post(`${backend.url}/3ds/redirect/${id}/authenticate`, { device_info: JSON.stringify(BROWSER) })
    const redirected = await read(id)
    t.strictSame(redirected.steps.at(-1)?.actor_type, 'system')
    t.notMatch(JSON.stringify(redirected), /shop\.test/)

    await server.ask('config set', { name: 'threeds.challenges', value: 'complete' })
    const complete = await backend.challenged()
    await backend.result(complete.id)
    t.strictSame(namesOf(await read(complete.id)), ['created', 'authenticated', 'ended', 'retrieved'])
    t.match(await read(complete.id), { authentication: { challenge: { endedBy: 'setting' } } })
  },
)

t.test(
  'a person can decide a challenge once, and the dashboard reads only sessions of the chosen tenant or fork',
  async (t) => {
    const { server, backend, read, list, decide } = await open(t)
    for (const [outcome, state] of [
      ['successful', 'successful'],
      ['cancelled', 'failed'],
      [undefined, 'rejected'],
    ] as const) {
      const { id } = await backend.challenged('CR')
      t.equal((await decide(id, outcome)).status, 200)
      t.equal((await decide(id, 'failed')).status, 409)
      await backend.result(id)
      t.match(await read(id), { state, authentication: { challenge: { endedBy: 'decision' } } })
    }
    const { id } = await backend.session('CY', { device: 'app', device_info: undefined })
    t.match(await read(id), { lacksDevice: true, device: 'app' })
    t.equal((await decide(id)).status, 409, 'it is not authenticated')
    t.equal((await decide(id, 'informational')).status, 400)
    const fork = await server.control.fork()
    const inFork = createBackend(server.url, fork.keys as typeof backend.keys)
    const own = await inFork.challenged()
    await t.rejects(read(own.id), { status: 404 } as object as Error)
    t.match(await read(own.id, { fork: fork.tenant.id }), { state: 'waiting' })
    t.equal((await list({ fork: fork.tenant.id })).total, 1)
    await server.ask('tenant create', { name: 'other' })
    await t.rejects(read(id, { tenant: 'other' }), { status: 404 } as object as Error)
    t.strictSame(await list({ tenant: 'other' }), { data: [], total: 0 })
  },
)

const chosen = (page: Page) => page.locator('.detail')

t.test(
  'a person can watch a 3-D Secure session and decide its challenge on the dashboard',
  { ...needsChromium, timeout: 300_000 },
  async (t) => {
    const { server, backend } = await openShop(t)
    const browser = await launchChromium()
    t.teardown(() => browser.close())
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
    const complaints: string[] = []
    page.on('pageerror', ({ message }) => complaints.push(message))
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text())
    })
    const told: string[] = []
    page.on('response', (response) => {
      if (!response.url().includes('/_dashboard/ask')) return
      void response.text().then(
        (text) => told.push(text),
        () => undefined,
      )
    })
    await page.goto((await server.control.page()).url)
    await page.getByRole('link', { name: '3-D Secure' }).click()
    await page.getByText('No 3DS session yet').waitFor()
    await checkPage(t, page, 'no session')
    await page.setViewportSize({ width: 1400, height: 900 })

    const name = '<img src=x onerror=alert(1)>'
    const { id } = await backend.session('CY', { metadata: { order: name } })
    await chosen(page).getByText('Not authenticated yet').waitFor()
    await chosen(page).getByText(`order = ${name}`).waitFor()
    await backend.authenticate(id)
    await chosen(page).getByText('The bank waits for the cardholder in the browser').waitFor()
    await chosen(page).getByText('by starter private').waitFor()
    await checkPage(t, page, 'waiting')
    await page.setViewportSize({ width: 1400, height: 900 })
    await chosen(page).getByRole('button', { name: 'Accept' }).focus()
    await page.keyboard.press('Enter')
    await chosen(page).getByText('The challenge has ended: successful').waitFor()
    await chosen(page).getByText('by a decision, without a browser').waitFor()
    await checkPage(t, page, 'ended')
    await page.setViewportSize({ width: 1400, height: 900 })
    t.match((await backend.result(id)).json, { authentication_status: 'successful' })
    await chosen(page).getByText('Result retrieved: successful').waitFor()
    t.equal(await chosen(page).getByRole('status').innerText(), 'successful')
    await chosen(page).getByRole('listitem').last().locator('a[href^="#/requests"]').click()
    await page.getByRole('heading', { name: 'Requests', level: 1 }).waitFor()
    await chosen(page).getByText('challenge-result').first().waitFor()

    const choices: [act: () => Promise<void>, final: object][] = [
      [
        () => chosen(page).getByRole('button', { name: 'Refuse' }).click(),
        { authentication_status: 'failed' },
      ],
      [
        () => chosen(page).getByRole('button', { name: 'Cancel as the cardholder' }).click(),
        { challenge_cancel_reason: 'cardholder-canceled' },
      ],
      [
        async () => {
          await chosen(page).getByLabel('Another outcome').selectOption('timed-out')
          // After each new request to the server, the page renders again.
          await server.fetch('/healthz')
          await page
            .locator('nav')
            .getByText(String((await server.control.requests.list()).length))
            .first()
            .waitFor()
          await chosen(page).getByRole('button', { name: 'Decide' }).click()
        },
        { authentication_status_reason: 'timeout-at-acs' },
      ],
      [
        () => chosen(page).getByRole('button', { name: 'As the card says: attempted' }).click(),
        { authentication_status: 'attempted' },
      ],
    ]
    for (const [act, final] of choices) {
      const session = await backend.challenged('CA')
      await page.evaluate(`location.hash = '#/3ds/${session.id}'`)
      await act()
      await chosen(page).getByText('The challenge has ended').waitFor()
      t.match((await backend.result(session.id)).json, final)
    }
    const { id: merchant } = await backend.session('CY', AS_MERCHANT)
    await backend.authenticate(merchant, MERCHANT)
    await page.evaluate(`location.hash = '#/3ds/${merchant}'`)
    await chosen(page).getByText('The bank asks the cardholder without a browser').waitFor()
    await server.control.clock.advance({ by: '2m' })
    await chosen(page).getByText('by the clock').waitFor()
    await page.getByLabel('Find in 3-D Secure').fill('merchant')
    t.equal(await page.locator('.items [data-link]').count(), 1)
    t.notOk(SECRETS.exec(told.join('\n')), 'no number, key or device reaches the page')
    t.same(complaints, [])
  },
)
