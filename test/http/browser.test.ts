/**
 * From an invitation to a member as people see it, and calls of a page of another origin: in a real browser, on what the
 * built program serves.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { checkPage, launchChromium, needsChromium } from './chromium.js'
import { createWorkplace, runCommand, type ServerProcess, startProcess, type Workplace } from './process.js'

const options = needsChromium

t.test(
  'invite, read the outbox, follow the link, accept, be a member; the link is dead',
  options,
  async (t) => {
    const { place, server, page } = await start(t)
    const created = await run(place, ['invite', 'create', '--email', 'ada@example.com', '--output', 'json'])
    t.match(created.stderr, /stays in the outbox/)
    const openOutbox = async (url: string) => {
      await page.goto(url)
      await page.getByRole('link', { name: /^Outbox/ }).click()
      await page.getByRole('link', { name: 'ada@example.com' }).click()
      await page.getByRole('link', { name: 'Open the link' }).waitFor()
    }
    await openOutbox(server.announcement.page_url!)
    t.notMatch(page.url(), 'login', 'the login is in the address no more')
    await checkPage(t, page, 'outbox')
    const link = (await page.getByRole('link', { name: 'Open the link' }).getAttribute('href'))!
    await page.goto(link)
    t.match(created.stderr, link, 'the same link as on the command line')
    const again = JSON.parse((await run(place, ['control', 'page', '--output', 'json'])).stdout) as {
      url: string
    }
    t.not(again.url, server.announcement.page_url)
    const other = await page.context().browser()!.newPage()
    await other.goto(again.url)
    await other.getByRole('heading', { name: 'Requests', level: 1 }).waitFor()
    await checkPage(t, page, 'invitation')
    t.match(await page.textContent('main'), 'ada@example.com')
    await page.getByLabel('First name').fill('Ada')
    await page.getByLabel('Last name').fill('Lovelace\u202e')
    await page.getByRole('button').click()
    t.match(await page.textContent('main'), 'It must be visible text on one line.')
    await checkPage(t, page, 'form with a fault')
    await page.getByLabel('Last name').fill('Lovelace')
    await page.getByRole('button').click()
    await checkPage(t, page, 'welcome')
    t.equal(await page.textContent('h1'), 'You are a member')
    const members = JSON.parse((await run(place, ['member', 'list'])).stdout)
    t.match(members.data[0], {
      role: 'ADMIN',
      user: { email: 'ada@example.com', first_name: 'Ada', last_name: 'Lovelace' },
    })
    t.equal((await page.goto(link))?.status(), 410)
    await checkPage(t, page, 'used link')
    t.equal((await page.goto(`${server.announcement.url}/invitations/accept?token=x`))?.status(), 404)
    await checkPage(t, page, 'unknown link')
    await page.goto(`${server.announcement.url}/`)
    await checkPage(t, page, 'reference')
    t.match(server.printed.stderr, '/invitations/accept')
    t.notMatch(server.printed.stderr, new URL(link).searchParams.get('token')!, 'no secret is in the log')
  },
)

t.test('a page of another origin works with a public key, and with no other', options, async (t) => {
  const { server, page } = await start(t)
  const { url, applications } = server.announcement
  await page.goto(await serveBlankPage(t))
  const send = (key: string | undefined, line: string, body?: object) =>
    page.evaluate(sendFromPage, {
      url,
      key,
      line,
      body: body === undefined ? undefined : JSON.stringify(body),
    })
  const made = await send(applications.public?.key, 'POST /tokens', { type: 'card_number', data: CARD })
  t.match(made, { status: 201, traceId: /^[0-9a-f-]{36}$/, json: { data: 'XXXXXXXXXXXX4242' } })
  const { id } = (made as { json: { id: string } }).json
  t.match(
    await send(applications.public?.key, `PATCH /tokens/${id}`, { metadata: { a: 'b' } }),
    { status: 200, json: { metadata: { a: 'b' } } },
    'with a method and a content type that need a preflight',
  )
  t.match(await send(applications.public?.key, `GET /tokens/${id}`), {
    status: 403,
    json: { title: 'Forbidden' },
  })
  t.match(await send(undefined, 'GET /tokens'), { status: 401 }, 'errors can be read')
  t.match(await send(undefined, 'GET /documents'), { status: 404, json: { title: 'Not Emulated' } })
  t.match(await send(applications.private?.key, `GET /tokens/${id}`), { failure: 'Failed to fetch' })
  t.match(await send(applications.management?.key, 'GET /tenants/self'), { failure: 'Failed to fetch' })
})

const CARD = '4242424242424242'

interface PageRequest {
  url: string
  key: string | undefined
  line: string
  body: string | undefined
}

/** Runs in the page. */
async function sendFromPage({ url, key, line, body }: PageRequest): Promise<object> {
  const [method = '', path = ''] = line.split(' ')
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const headers = { 'content-type': type, ...(key === undefined ? {} : { 'svc-api-key': key }) }
  try {
    const answer = await fetch(`${url}${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
    return { status: answer.status, traceId: answer.headers.get('svc-trace-id'), json: await answer.json() }
  } catch (error) {
    return { failure: (error as Error).message }
  }
}

/** The address of a blank page of another origin. */
async function serveBlankPage(t: Test): Promise<string> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>shop</title>')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** A served vault with its three applications, and a browser before it. */
async function start(
  t: Test,
  prepare: (place: Workplace) => Promise<void> = async () => {},
  words: readonly string[] = [],
) {
  const place = createWorkplace()
  await run(place, ['init', '--quiet'])
  await prepare(place)
  const server: ServerProcess = await startProcess(place, ['--starter-apps', ...words])
  const browser = await launchChromium()
  t.teardown(async () => {
    await browser.close()
    server.child.kill('SIGTERM')
    await server.ended
    place.remove()
  })
  return { place, server, page: await browser.newPage() }
}

async function run(place: Workplace, words: readonly string[]) {
  const outcome = await runCommand(place, words)
  if (outcome.code !== 0) throw new Error(`coffer ${words.join(' ')}: ${outcome.stderr}`)
  return outcome
}
