/** The checkout of `docs/3ds.md` in a browser: the page, the server of the shop, and the test for Playwright. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { findPort, parseBlocks, ROOT, readDocument } from '../docs/document.js'
import { launchChromium, needsChromium } from '../http/chromium.js'
import { waitFor } from '../support/process.js'

type Run = (given: { page: Page }) => Promise<void>

/**
 * Replaces the functions of `@playwright/test` that the document's test uses, because this package is not
 * installed here.
 */
const RUNNER = `
export const tests = []
export const test = (name, run) => tests.push({ name, run })
export const expect = (locator) => ({ toHaveText: (text) => locator.filter({ hasText: new RegExp('^' + text + '$') }).waitFor() })
`

t.test('the checkout in docs/3ds.md shows the result of the authentication', needsChromium, async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'coffer-checkout-'))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  const blocks = parseBlocks(readDocument('docs/3ds.md')).filter(({ directive }) =>
    directive?.endsWith('test/examples/threeds.test.ts runs it'),
  )
  const [page, shop, run, spec] = blocks.map(({ code }) => code)
  t.equal(blocks.length, 4)
  const lines = `${page}${shop}`.split('\n').filter((line) => line.trim() !== '').length
  t.ok(lines <= 40, `page and shop have ${lines} lines`)
  const port = await findPort()
  const local = (code = '') => code.replaceAll('4020', port)
  const library = JSON.stringify(join(ROOT, 'dist/index.cjs'))
  writeFileSync(join(place, 'page.html'), page!)
  writeFileSync(join(place, 'shop.mjs'), shop!)
  writeFileSync(join(place, 'run.mjs'), local(run).replace("'coffer'", library))
  writeFileSync(join(place, 'runner.mjs'), RUNNER)
  writeFileSync(join(place, 'checkout.spec.mjs'), local(spec).replace('@playwright/test', './runner.mjs'))
  symlinkSync(join(ROOT, 'node_modules'), join(place, 'node_modules'))
  const child = spawn(process.execPath, ['run.mjs'], { cwd: place })
  const ended = waitFor(child)
  await Promise.race([once(child.stdout!, 'data'), ended])
  const browser = await launchChromium()
  t.teardown(async () => {
    await browser.close()
    child.kill()
    await ended
  })
  await import(join(place, 'checkout.spec.mjs'))
  const { tests } = (await import(join(place, 'runner.mjs'))) as { tests: { name: string; run: Run }[] }
  t.equal(tests.length, 1)
  const tab = await browser.newPage()
  for (const { name, run } of tests) {
    await run({ page: tab })
    t.equal(await result(tab).textContent(), 'successful', name)
  }
  await tab.reload()
  await tab.getByLabel('Card number').fill('4264281511112228')
  await tab.getByRole('button', { name: 'Pay' }).click()
  await result(tab).filter({ hasText: 'failed' }).waitFor()
  t.equal(await tab.locator('iframe').count(), 0, 'the bank decided without a challenge')
  for (const [number, told] of [
    ['4100000000000003', '3DS is not supported for the provided card'],
    ['4264281500003339', '3DS Service Error'],
  ] as const) {
    await tab.getByLabel('Card number').fill(number)
    await tab.getByRole('button', { name: 'Pay' }).click()
    await result(tab).filter({ hasText: told }).waitFor()
  }
})

function result(tab: Page): Locator {
  return tab.locator('#result')
}
