/**
 * Helpers for tests with Playwright: they route the addresses of the hosted card fields to Coffer, so that pages work
 * unchanged and without network. The helpers take a page or a browser context, and do not import Playwright.
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
    // biome-ignore lint/suspicious/noExplicitAny: Playwright takes only its own answers, and this file does not know their type.
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

/**
 * A running server, such as the result of `startServer`. The server needs the header prefix `bt` if the pages are
 * unmodified.
 */
export interface Server {
  readonly url: string
}

export interface InstallOptions {
  /**
   * If true, each field is in a frame of the page. Then a test finds the field with `frameLocator`, like a hosted
   * field. Default: false.
   */
  frame?: boolean
}

const SCRIPT_PATH = '/elements/client/index.js'

/** Host names of the API. */
const API = /^https:\/\/api[\w.-]*\.basistheory\.com\//
/** The host of the frames of 3-D Secure. */
const BANK = /^https:\/\/3ds[\w.-]*\.basistheory\.com\//
/** The hosted fields ask for this path of their own host. */
const API_OF_FIELDS = /^https:\/\/js\.basistheory\.com\/api\//
/** The host of the fields. */
const FIELDS = /^https:\/\/js\.basistheory\.com\/(?!api\/)/

/**
 * Gives the page the card fields of Coffer in place of the hosted ones, and routes the hosted API to Coffer. Call it
 * before `page.goto`. Pages with `@basis-theory/web-elements` 2.x, `react-elements` 2.x, `basis-theory-js` or a script
 * tag need no change.
 * @throws Error if Coffer does not answer
 */
export async function installElements(
  page: RoutedPage,
  coffer: Server,
  { frame = false }: InstallOptions = {},
): Promise<void> {
  const script = await readScript(page, coffer, frame)
  await page.addInitScript({ content: script })
  // A script tag of the page loads the same script. A second run of the script leaves the fields of the page as they
  // are.
  await page.route(FIELDS, (route) => fulfillScript(route, script))
  await routeElements(page, coffer)
}

/** Routes only the hosted API to Coffer. The page loads the hosted fields themselves, or a recording of them. */
export async function routeElements(page: RoutedPage, { url }: Server): Promise<void> {
  const base = url.replace(/\/$/, '')
  await page.route(API_OF_FIELDS, (route) => passOn(route, base, '/api'))
  await page.route(API, (route) => passOn(route, base, ''))
  await page.route(BANK, (route) => redirect(route, base))
}

/**
 * The frames of the bank have to be at the address of Coffer. If a frame seems to be of a public site, Chromium does
 * not let this frame send a form to a server on this machine.
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
  return `Coffer does not answer at ${url}. Start it: coffer serve --ephemeral --prefix bt.`
}

async function fulfillScript(route: PageRoute, script: string): Promise<void> {
  const { pathname } = new URL(route.request().url())
  const headers = { 'access-control-allow-origin': '*' }
  if (pathname === '/' || pathname.endsWith('.js'))
    return route.fulfill({ status: 200, contentType: 'text/javascript', headers, body: script })
  const body = `The card fields of Coffer do not have ${pathname}.`
  return route.fulfill({ status: 404, contentType: 'text/plain', headers, body })
}

/** Sends the request of the page to Coffer, and gives the page the answer. `prefix`: the part of the path to leave out. */
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
    // The test has closed the page during the request, so nobody waits for the answer.
    .catch(() => undefined)
}
