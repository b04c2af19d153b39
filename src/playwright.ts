/**
 * Helpers for tests with Playwright. They route the addresses of the hosted card fields to Coffer, so that pages work
 * unchanged and without network. The helpers do not import Playwright.
 */

/** The part of Playwright's `Page` and `BrowserContext` that these helpers use. */
export interface RoutedPage {
  addInitScript(script: { content: string }): Promise<unknown>
  route(url: RegExp, handler: (route: PageRoute) => Promise<void>): Promise<unknown>
  readonly request: { get(url: string): Promise<FetchedAnswer> }
}

/** The part of Playwright's `Route` that these helpers use. */
export interface PageRoute {
  request(): { url(): string; headers(): Record<string, string> }
  fetch(options: {
    url: string
    headers: Record<string, string>
    maxRedirects: number
  }): Promise<FetchedAnswer>
  fulfill(answer: {
    // biome-ignore lint/suspicious/noExplicitAny: this file does not import Playwright's type.
    response?: any
    status?: number
    contentType?: string
    headers?: Record<string, string>
    body?: string
  }): Promise<void>
}

/** The part of Playwright's `APIResponse` that these helpers use. */
export interface FetchedAnswer {
  status(): number
  text(): Promise<string>
}

/** A running server, such as the result of `startServer`. Unmodified pages need the header prefix `bt`. */
export interface Server {
  readonly url: string
}

export interface InstallOptions {
  /** Puts each field into a frame, so that tests find it with `frameLocator`, like a hosted field. Default: false. */
  frame?: boolean
}

const SCRIPT_PATH = '/elements/client/index.js'

const API = /^https:\/\/api[\w.-]*\.basistheory\.com\//
/** The addresses of the frames of 3-D Secure. */
const BANK = /^https:\/\/3ds[\w.-]*\.basistheory\.com\//
/** The hosted fields call the API through their own host. */
const API_OF_FIELDS = /^https:\/\/js\.basistheory\.com\/api\//
const FIELDS = /^https:\/\/js\.basistheory\.com\/(?!api\/)/

/**
 * Replaces the hosted card fields with the fields of Coffer, and routes the hosted API to Coffer. Call this before
 * `page.goto`. Pages with `@basis-theory/web-elements` 2.x, `react-elements` 2.x, `basis-theory-js` or a script tag
 * need no change.
 * @throws Error if Coffer does not answer
 */
export async function installElements(
  page: RoutedPage,
  coffer: Server,
  { frame = false }: InstallOptions = {},
): Promise<void> {
  const script = await readScript(page, coffer, frame)
  await page.addInitScript({ content: script })
  // If the page has a script tag too, the script runs twice. The second run does nothing.
  await page.route(FIELDS, (route) => fulfillScript(route, script))
  await routeElements(page, coffer)
}

/** Routes only the hosted API to Coffer. The page still loads the hosted fields. */
export async function routeElements(page: RoutedPage, { url }: Server): Promise<void> {
  const base = url.replace(/\/$/, '')
  await page.route(API_OF_FIELDS, (route) => passOn(route, base, '/api'))
  await page.route(API, (route) => passOn(route, base, ''))
  await page.route(BANK, (route) => redirect(route, base))
}

/**
 * Redirects the browser to Coffer instead of answering at the public address. Chromium does not let a frame with a
 * public address send a form to a server on this machine.
 */
function redirect(route: PageRoute, base: string): Promise<void> {
  const { pathname, search } = new URL(route.request().url())
  return route.fulfill({ status: 302, headers: { location: base + pathname + search } })
}

async function readScript({ request }: RoutedPage, { url }: Server, frame: boolean): Promise<string> {
  const address = `${url.replace(/\/$/, '')}${SCRIPT_PATH}?routed=true&frame=${frame}`
  const answer = await request.get(address).catch((cause: Error) => {
    throw new Error(`${describeSilence(url)} ${cause.message}`, { cause })
  })
  const text = await answer.text()
  if (answer.status() !== 200 || !text.includes('BasisTheoryElements'))
    throw new Error(`${url} is no server of Coffer: ${SCRIPT_PATH} is not the script of the card fields.`)
  return text
}

function describeSilence(url: string): string {
  return `Coffer does not answer at ${url}. Start it: \`coffer serve --ephemeral --prefix bt\`.`
}

async function fulfillScript(route: PageRoute, script: string): Promise<void> {
  const { pathname } = new URL(route.request().url())
  const headers = { 'access-control-allow-origin': '*' }
  if (pathname === '/' || pathname.endsWith('.js'))
    return route.fulfill({ status: 200, contentType: 'text/javascript', headers, body: script })
  const body = `The card fields of Coffer do not have ${pathname}.`
  return route.fulfill({ status: 404, contentType: 'text/plain', headers, body })
}

/** Removes `prefix` from the start of the path. */
async function passOn(route: PageRoute, base: string, prefix: string): Promise<void> {
  const request = route.request()
  const { pathname, search } = new URL(request.url())
  // The header `host` is left out, because Playwright sets it for the new address.
  const { host: _, ...headers } = request.headers()
  const url = base + pathname.slice(prefix.length) + search
  const answer = await route.fetch({ url, headers, maxRedirects: 0 }).catch((error: Error) => error)
  if (!(answer instanceof Error)) return route.fulfill({ response: answer })
  const detail = `${describeSilence(base)} ${answer.message}`
  await route
    .fulfill({
      status: 502,
      contentType: 'application/problem+json',
      headers: { 'access-control-allow-origin': '*' },
      body: JSON.stringify({ title: 'Bad Gateway', status: 502, detail }),
    })
    // `fulfill` fails if the test has closed the page.
    .catch(() => undefined)
}
