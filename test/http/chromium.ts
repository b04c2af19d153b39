/** A real Chromium, and the checks that every page must pass. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'

/** `chromium-headless-shell` is first, because it needs about half of the CPU time of `chromium`. */
const CHROMIUM = ['chromium-headless-shell', 'chromium', 'chromium-browser']
  .map((name) => `/usr/bin/${name}`)
  .find((path) => existsSync(path))
const WIDTHS = [320, 390, 1400]

/** Options for tests that need Chromium. */
export const needsChromium =
  CHROMIUM === undefined
    ? { skip: 'there is no Chromium here. Install it: apt-get install chromium-headless-shell' }
    : {}

export async function launchChromium(): Promise<Browser> {
  const { chromium } = await import('playwright-core')
  // Chromium's own sandbox refuses to run as root, and tests in containers run as root.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']
  return chromium.launch({ executablePath: CHROMIUM!, args })
}

/** Each theme, and the rules of axe-core that are checked in it. Only the contrast depends on the theme. */
const THEMES = [
  ['dark', '{}'],
  ['light', '{ runOnly: ["color-contrast"] }'],
] as const

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8')

/**
 * Checks in both themes that axe-core finds no accessibility problem, and that the page fits each of the `widths`.
 */
export async function checkPage(t: Test, page: Page, name: string, widths = WIDTHS): Promise<void> {
  // Loads axe-core. The content security policy of the page does not apply to code that a debugger evaluates.
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe)
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 })
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    t.ok(Number(overflow) <= 0, `${name} fits ${width} pixels`)
    for (const [colorScheme, rules] of THEMES) {
      await page.emulateMedia({ colorScheme })
      // The check skips hidden elements, because nobody sees them and checking them takes a long time.
      const violations = await page.evaluate(
        `axe.run({ exclude: '[hidden]' }, ${rules}).then(({ violations }) => violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]))`,
      )
      t.same(
        violations,
        [],
        `${name} is accessible in the ${colorScheme} theme at a width of ${width} pixels`,
      )
    }
  }
}
