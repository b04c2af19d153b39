/** The examples of `docs/browser.md` in a browser: for Playwright, for Cypress, and the script tag. */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page, Route } from 'playwright-core'
import t, { type Test } from 'tap'
import { startServer } from '../../src/index.js'
import { type Block, parseBlocks, ROOT, readDocument } from '../docs/document.js'
import { launchChromium, needsChromium } from '../http/chromium.js'

interface Runner {
  tests: { name: string; run(given: { page: Page }): Promise<void> }[]
  before: (() => Promise<void>)[]
  after: (() => Promise<void>)[]
}

/**
 * A stand-in for the part of `@playwright/test` that the tests of the document use. This machine does not have the
 * package `@playwright/test`.
 */
const RUNNER = `
export const [tests, before, after] = [[], [], []]
export const test = (name, run) => tests.push({ name, run })
test.beforeAll = (run) => before.push(run)
test.afterAll = (run) => after.push(run)
export const expect = (value) => ({
  toHaveText: (text) => value.filter({ hasText: text }).waitFor(),
  toBe(wanted) {
    if (value !== wanted) throw new Error(value + ' is not ' + wanted)
  },
})
`
const NUMBER = '4242424242424242'
const KEY = `key_${'1'.repeat(22)}`

const blocks = parseBlocks(readDocument('docs/browser.md'))
const [page = '', spec = ''] = blocks.map(({ code }) => code)
const recorded = find(({ code }) => code.includes('routeFromHAR'))
const cypress = find(({ code }) => code.includes('cy.intercept'))
const tag = find(({ code, language }) => language === 'html' && code.startsWith('<script'))

function find(isWanted: (block: Block) => boolean): string {
  return blocks.find(isWanted)?.code ?? ''
}

let browser: Browser | undefined
const place = mkdtempSync(join(tmpdir(), 'coffer-browser-'))
t.before(async () => {
  if (!('skip' in needsChromium)) browser = await launchChromium()
  symlinkSync(join(ROOT, 'node_modules'), join(place, 'node_modules'))
  writeFileSync(join(place, 'page.html'), page)
  writeFileSync(join(place, 'runner.mjs'), RUNNER)
})
t.teardown(async () => {
  await browser?.close()
  rmSync(place, { recursive: true, force: true })
})

/** Writes the code block to a file, as a module that imports the built package. */
function writeModule(name: string, code: string): string {
  const path = join(place, name)
  const local = code
    .replace("'@playwright/test'", "'./runner.mjs'")
    .replace("'coffer/playwright'", JSON.stringify(join(ROOT, 'dist/playwright.cjs')))
    .replace("'coffer'", JSON.stringify(join(ROOT, 'dist/index.cjs')))
    .replaceAll("'page.html'", JSON.stringify(join(place, 'page.html')))
  writeFileSync(path, local)
  return path
}

async function openTab(t: Test): Promise<Page> {
  const context = await browser!.newContext()
  t.teardown(() => context.close())
  await context.route('**/*', (route) => {
    const isLocal = new URL(route.request().url()).hostname === 'localhost'
    return isLocal ? route.continue() : route.abort()
  })
  return context.newPage()
}

t.test('the tests for Playwright in docs/browser.md pass without network', needsChromium, async (t) => {
  await import(writeModule('checkout.spec.mjs', spec))
  const { tests, before, after } = (await import(join(place, 'runner.mjs'))) as Runner
  for (const run of before) await run()
  t.equal(tests.length, 2)
  for (const { name, run } of tests) {
    const tab = await openTab(t)
    tab.setDefaultTimeout(10_000)
    await t.resolves(run({ page: tab }), name)
  }
  for (const run of after) await run()
  await t.resolves(import(writeModule('recorded.spec.mjs', recorded)))
})

/** Opens the page of the document on a server of this machine, with the API key of the Coffer server. */
async function openPage(t: Test, prepare: (tab: Page, url: string) => Promise<string>): Promise<void> {
  const applications = [
    { name: 'page', type: 'public', key: KEY, permissions: ['token:create'] },
    { name: 'backend', type: 'private', permissions: ['token:read'] },
  ] as const
  const coffer = await startServer({ prefix: 'bt', seed: { applications } })
  t.teardown(() => coffer.stop())
  const tab = await openTab(t)
  const body = await prepare(tab, coffer.url)
  // Chromium lets a page reach a server on this machine only if the page itself comes from this machine.
  const shop = createServer((_, response) => response.setHeader('content-type', 'text/html').end(body))
  shop.listen(0, '127.0.0.1')
  await once(shop, 'listening')
  t.teardown(() => {
    shop.closeAllConnections()
    shop.close()
  })
  tab.setDefaultTimeout(10_000)
  await tab.goto(`http://localhost:${(shop.address() as AddressInfo).port}`)
  await tab.getByLabel('Card Number').fill(NUMBER)
  await tab.getByLabel('Expiration Date').fill('12/30')
  await tab.getByLabel('CVC').fill('123')
  await tab.getByRole('button', { name: 'Pay' }).click()
  await tab.locator('#result').filter({ hasText: '-' }).waitFor()
  const id = (await tab.locator('#result').textContent()) ?? ''
  const { data } = await coffer.as(coffer.keys.backend).tokens.get({ id })
  t.match(data, { number: 'XXXXXXXXXXXX4242' })
}

t.test(
  'the redirect for Cypress in docs/browser.md serves the script from Coffer',
  needsChromium,
  async (t) => {
    await openPage(t, async (tab, url) => {
      // A stand-in for the part of Cypress that the document uses.
      const routes: Promise<unknown>[] = []
      const cy = {
        intercept: (address: string, handler: (request: { redirect(to: string): void }) => void) => {
          const handle = (route: Route) =>
            handler({ redirect: (location) => route.fulfill({ status: 302, headers: { location } }) })
          routes.push(tab.route(address, handle))
        },
      }
      const local = cypress.replace('http://localhost:4010', url)
      new Function('cy', 'beforeEach', local)(cy, (run: () => void) => run())
      await Promise.all(routes)
      return page
    })
  },
)

t.test('the script tag in docs/browser.md loads the card fields', needsChromium, async (t) => {
  await openPage(t, async (_, url) => {
    const hosted = /^<script src="https:\/\/js\..*$/m
    t.match(page, hosted)
    return page.replace(hosted, tag.replace('http://localhost:4010', url).trim())
  })
})

t.test(
  'docs/browser.md lists every option of the card fields that the program reports as missing',
  async (t) => {
    const [, missing = ''] = readDocument('docs/browser.md').split('\n## What is missing\n')
    const options = readFileSync(join(ROOT, 'src/elements/options.ts'), 'utf8')
    const [, list = ''] = /const MISSING = \[(.*)\]/.exec(options) ?? []
    for (const [, name] of list.matchAll(/'(\w+)'/g)) t.match(missing, `\`${name}\``)
  },
)
