/** A server with its dashboard in Chromium, for the tests of the dashboard. */
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { type CofferServer, type Seed, type ServerOptions, startServer } from '../../src/index.js'
import { launchChromium } from '../http/chromium.js'

/** Starts a server and a browser. `told` collects the responses of the server to the page. */
export async function open(t: Test, seed: Seed, options: Pick<ServerOptions, 'allowNet'> = {}) {
  const server = await startServer({ ...options, seed })
  const browser = await launchChromium()
  t.teardown(async () => {
    await browser.close()
    await server.stop()
  })
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', ({ message }) => complaints.push(message))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  const told: string[] = []
  page.on('response', (response) => {
    if (response.url().includes('/_dashboard/'))
      void response.text().then(
        (text) => told.push(text),
        () => undefined,
      )
  })
  const call = (path: string, key = 'backend', body?: object) =>
    fetch(`${server.url}${path}`, {
      headers: { 'svc-api-key': server.keys[key]!, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
  return { server, page, complaints, told, call }
}

export async function signIn(server: CofferServer, page: Page): Promise<string> {
  const { url } = await server.control.page()
  await page.goto(url)
  await page.getByRole('heading', { name: 'Requests', level: 1 }).waitFor()
  return url
}

export const show = async (page: Page, hash: string, heading: string) => {
  await page.evaluate(`location.hash = '#/${hash}'`)
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
}
