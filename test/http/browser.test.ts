/** An invitation in a real browser with the built program, until the invited person is a member. */
import t, { type Test } from 'tap'
import { checkPage, launchChromium, needsChromium } from './chromium.js'
import { createWorkplace, runCommand, serveFor, type Workplace } from './process.js'

t.test(
  'an invitation can be created, read in the outbox and accepted in a browser, and afterwards its link is refused',
  needsChromium,
  async (t) => {
    const { place, server, page } = await start(t)
    const created = await run(place, ['invite', 'create', '--email', 'ada@example.com', '--output', 'json'])
    t.match(created.stderr, /stays in the outbox/)
    const openOutbox = async (url: string) => {
      await page.goto(url)
      await page.getByRole('link', { name: /^Outbox/ }).click()
      await page.getByRole('link', { name: /^ada@example.com/ }).click()
      await page.getByRole('link', { name: 'Open the link' }).waitFor()
    }
    await openOutbox(server.announcement.page_url!)
    t.notMatch(page.url(), 'login', 'the address in the browser no longer contains the sign-in secret')
    await checkPage(t, page, 'outbox')
    const link = (await page.getByRole('link', { name: 'Open the link' }).getAttribute('href'))!
    await page.goto(link)
    t.match(created.stderr, link, 'the command line prints the same link')
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
    t.notMatch(server.printed.stderr, new URL(link).searchParams.get('token')!, 'the log contains no secret')
  },
)

/** Starts a server with a vault, and a browser. */
async function start(t: Test) {
  const place = createWorkplace()
  await run(place, ['init', '--quiet'])
  const server = await serveFor(t, ['--starter-apps'], place)
  const browser = await launchChromium()
  t.teardown(() => browser.close())
  return { place, server, page: await browser.newPage() }
}

async function run(place: Workplace, words: readonly string[]) {
  const outcome = await runCommand(place, words)
  if (outcome.code !== 0) throw new Error(`coffer ${words.join(' ')}: ${outcome.stderr}`)
  return outcome
}
