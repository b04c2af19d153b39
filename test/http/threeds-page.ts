/** Opens the page of a shop in Chromium. The page uses the unmodified package `@basis-theory/web-threeds`. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import type { Browser, FrameLocator, Page } from 'playwright-core'
import type { Test } from 'tap'
import { CERTIFICATE, PRIVATE_KEY } from './certificate.js'
import { type Backend, type Json, openShop, type Scenario } from './threeds-shop.js'

const PACKAGE = dirname(dirname(createRequire(import.meta.url).resolve('@basis-theory/web-threeds')))
const SDK = readFileSync(join(PACKAGE, 'bundle/index.js'))

export interface ShopPage {
  tab: Page
  backend: Backend
  /** The hosts to which the page sent requests. The servers of the test itself are not in this list. */
  strangers: string[]
  /** Runs the package's `createSession`, with a new token. */
  createSession(scenario: Scenario, more?: object): Promise<Json>
  /**
   * Authenticates the session and calls the package's `startChallenge`, but does not wait for the end of the challenge.
   */
  startChallenge(id: string, more?: object): Promise<Json>
  /** Resolves to the outcome of the challenge as the package reports it to the page. */
  ended(): Promise<Json>
  bank: FrameLocator
}

/**
 * Starts the web server of a shop on another port than the bank. Below `/pages/`, the server serves the pages of the
 * package. For all other paths, the server answers with the page of the shop.
 */
export async function serveShop(
  t: Test,
  { policy, isSecure = false }: { policy?: string; isSecure?: boolean } = {},
): Promise<string> {
  const answer: RequestListener = (request, response) => {
    const [path = '/'] = (request.url ?? '/').split('?')
    if (path.startsWith('/pages/')) {
      response.setHeader('content-type', 'text/html')
      response.end(readFileSync(join(PACKAGE, path)))
      return
    }
    response.setHeader('content-type', path === '/sdk.js' ? 'text/javascript' : 'text/html')
    if (policy !== undefined) response.setHeader('content-security-policy', policy)
    response.end(
      path === '/sdk.js'
        ? SDK
        : '<!doctype html><title>Shop</title><h1>Shop</h1><script src="/sdk.js"></script>',
    )
  }
  const server = isSecure
    ? createSecureServer({ cert: CERTIFICATE, key: PRIVATE_KEY }, answer)
    : createServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `${isSecure ? 'https' : 'http'}://localhost:${(server.address() as AddressInfo).port}`
}

interface Around {
  /** If true, the test controls the clock of the page with `tab.clock`. */
  isTimed?: boolean
  backend?: Backend
  shop?: string
  pages?: 'own' | 'package'
}

export async function openPage(
  t: Test,
  browser: Browser,
  { pages = 'own', ...given }: Around = {},
): Promise<ShopPage> {
  const backend = given.backend ?? (await openShop(t)).backend
  const shop = given.shop ?? (await serveShop(t))
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  t.teardown(() => context.close())
  const strangers: string[] = []
  await context.route('**/*', (route) => {
    const { hostname, host } = new URL(route.request().url())
    if (['localhost', '127.0.0.1'].includes(hostname)) return route.continue()
    strangers.push(host)
    return route.abort()
  })
  const tab = await context.newPage()
  if (given.isTimed === true) await tab.clock.install()
  await tab.goto(shop)
  const config = {
    apiBaseUrl: backend.url,
    sdkBaseUrl: pages === 'own' ? backend.url : shop,
    disableTelemetry: true,
  }
  await tab.evaluate(
    ([key, config]) => {
      const scope = globalThis as Json
      scope.threeds = scope.BasisTheory3ds(key, config)
    },
    [backend.keys.public, config] as const,
  )
  return {
    tab,
    backend,
    strangers,
    async createSession(scenario, more = {}) {
      const tokenId = await backend.token(scenario)
      return tab.evaluate(
        (request) =>
          (globalThis as Json).threeds
            .createSession(request)
            .catch((error: unknown) => ({ refused: (error as Error)?.message ?? error })),
        { tokenId, ...more },
      )
    },
    async startChallenge(id, more = {}) {
      const answer = await backend.authenticate(id)
      const request = {
        sessionId: id,
        acsChallengeUrl: answer.acs_challenge_url,
        acsTransactionId: answer.acs_transaction_id,
        threeDSVersion: answer.threeds_version,
        ...more,
      }
      await tab.evaluate((request) => {
        const scope = globalThis as Json
        scope.ended = scope.threeds
          .startChallenge(request)
          .catch((error: unknown) => ({ refused: (error as Error)?.message ?? error }))
      }, request)
      return answer
    },
    ended: () => tab.evaluate(() => (globalThis as Json).ended),
    bank: tab.frameLocator('#challengeIframe').frameLocator('iframe'),
  }
}
