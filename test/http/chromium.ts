/** A real browser, and what every page must be in it. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path))
const WIDTHS = [320, 390, 1400]

/** Options of a test. */
export const needsChromium =
  CHROMIUM === undefined ? { skip: 'there is no chromium: apt-get install chromium' } : {}

export async function launchChromium(): Promise<Browser> {
  const { chromium } = await import('playwright-core')
  // Chromium's own sandbox cannot be had by root, as which tests run in containers.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']
  return chromium.launch({ executablePath: CHROMIUM!, args })
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8')

/** Nothing for axe-core to complain of, and nothing beyond the edge, however narrow the window, in both themes. */
export async function checkPage(t: Test, page: Page, name: string): Promise<void> {
  // What a debugger evaluates is not held to the page's policy.
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe)
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 })
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    t.ok(Number(overflow) <= 0, `${name} fits ${width} pixels`)
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme })
      // What is hidden has nothing to complain of, and takes long to look through.
      const violations = await page.evaluate(
        `axe.run({ exclude: '[hidden]' }).then(({ violations }) => violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]))`,
      )
      t.same(violations, [], `${name} is accessible, ${colorScheme}, ${width} pixels wide`)
    }
  }
}
