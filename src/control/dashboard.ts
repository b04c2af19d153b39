/**
 * Answers the requests of the page at `/`. A signed-in browser has a session, which allows the operations of
 * `page-work.ts`. Each session has two secrets. The first secret is in a cookie. Browsers send a cookie to servers on
 * all ports of the host, so the cookie alone is not enough. The page sends the second secret in a header, and keeps it
 * in storage that only pages from this port can read.
 */
import { createHash } from 'node:crypto'
import { BoundedMap } from '../bounded-map.js'
import { isObject, MAX_JSON_VALUES, parseJson } from '../domain/json/json.js'
import { CofferError } from '../errors.js'
import { answerResult, type HttpRequest, type HttpResponse } from '../http/exchange.js'
import { type HeaderNames, headerNames, readCookie, readHeader } from '../http/headers.js'
import { readWhole } from '../http/input.js'
import type { Page } from '../http/pages/pages.js'
import type { ControlState } from './control-state.js'
import { findTokens } from './find-tokens.js'
import { listSessions, readSession } from './page-threeds.js'
import { readLog, readTrail } from './page-trail.js'
import * as work from './page-work.js'

export const DASHBOARD_PATH = '/_dashboard'
const SESSION_PATH = `${DASHBOARD_PATH}/session`
const PAGE_SECRET = 'coffer-page-secret'
const SECRET_BYTES = 32
const LOGIN_LIFE_MS = 2 * 60_000
const SESSION_LIFE_MS = 12 * 60 * 60_000
const MAX_SESSIONS = 20
const LOGIN_LIMIT_BYTES = 64 * 1024

/**
 * `prefix`: the prefix of header names. `place`: the address of the vault. `isSecure`: the browser sends the cookie
 * over TLS only. `clock`: ms of a monotonic clock.
 */
interface DashboardOptions {
  prefix: string
  place?: string
  isSecure: boolean
  clock?(): number
}

export class Dashboard {
  readonly handlers = (send: work.SendRequest, bodyLimitBytes: number) => ({
    pages: new Map<string, Page>([[SESSION_PATH, (request) => this.#describe(request)]]),
    forms: new Map<string, Page>([
      [SESSION_PATH, (request) => this.#signIn(request)],
      [`${DASHBOARD_PATH}/ask`, (request) => this.#ask(request, send, askLimitOf(bodyLimitBytes))],
    ]),
  })
  readonly #control: ControlState
  readonly #options: DashboardOptions
  readonly #clock: () => number
  readonly #names: HeaderNames
  /**
   * Each server has a different cookie name. Browsers send a cookie to all ports of a host, so servers with one cookie
   * name would overwrite each other's cookies.
   */
  readonly #cookie: string
  /**
   * These maps contain the end time of each session and each sign-in link. The keys of the maps are digests, so that
   * the duration of a lookup reveals nothing about a secret.
   */
  readonly #sessions = new BoundedMap<string, number>(MAX_SESSIONS)
  readonly #logins = new BoundedMap<string, number>(MAX_SESSIONS)

  constructor(control: ControlState, options: DashboardOptions) {
    this.#control = control
    this.#options = options
    this.#names = headerNames(options.prefix)
    this.#clock = options.clock ?? (() => performance.now())
    this.#cookie = `coffer_page_${this.#randomText(6)}`
  }

  /**
   * Returns a sign-in link to the page at `url`. The link works once. The secret of the link is in the fragment of the
   * URL, which browsers do not send to the server.
   */
  listenAt(url: string): string {
    const create = () => {
      const login = this.#randomText(SECRET_BYTES)
      this.#logins.set(digest(login), this.#clock() + LOGIN_LIFE_MS)
      return `${url}/#login=${login}`
    }
    this.#control.app.offerPage(create)
    return create()
  }

  isWatched(): boolean {
    return [...this.#sessions.values()].some((until) => until > this.#clock())
  }

  #randomText(bytes: number): string {
    return Buffer.from(this.#control.app.random.bytes(bytes)).toString('base64url')
  }

  async #signIn(request: HttpRequest): Promise<HttpResponse> {
    requireLocal(request)
    const login = digest(String((await readJson(request, LOGIN_LIMIT_BYTES)).login))
    const until = this.#logins.get(login) ?? 0
    this.#logins.delete(login)
    if (until <= this.#clock())
      throw new CofferError(
        'forbidden',
        'This sign-in link was used before, or is older than 2 minutes. Get a new one: coffer control page',
      )
    const secret = { cookie: this.#randomText(SECRET_BYTES), page: this.#randomText(SECRET_BYTES) }
    this.#sessions.set(digestOfSession(secret), this.#clock() + SESSION_LIFE_MS)
    const answer = answerResult(200, { page_secret: secret.page })
    const secure = this.#options.isSecure ? '; Secure' : ''
    answer.headers['set-cookie'] =
      `${this.#cookie}=${secret.cookie}; HttpOnly; SameSite=Strict; Path=${DASHBOARD_PATH}${secure}`
    return answer
  }

  /**
   * Describes the session. A caller without a session gets no error, because everybody may read the reference.
   * @throws CofferError `unauthenticated` if only the cookie is sent
   */
  async #describe(request: HttpRequest): Promise<HttpResponse> {
    requireLocal(request)
    const { cookie, page } = this.#secretsOf(request)
    if (cookie !== undefined && page === undefined) throw signInAgain()
    if (!this.#isSignedIn(request)) return answerResult(200, { is_signed_in: false })
    const header = this.#names.apiKey.toUpperCase()
    return answerResult(200, await work.describeSession(this.#control, header, this.#options.place))
  }

  /** Reads the body only if a person is signed in, because the limit of the body is large. */
  async #ask(request: HttpRequest, send: work.SendRequest, limitBytes: number): Promise<HttpResponse> {
    requireLocal(request)
    if (!this.#isSignedIn(request)) throw signInAgain()
    const { operation, input = {}, tenant: named, fork, ...asked } = await readJson(request, limitBytes)
    const control = fork === undefined ? this.#control : this.#control.findFork(String(fork))
    const place = { control, tenant: typeof named === 'string' ? named : undefined }
    const { after, version, access, find, trail, log, threeds, request: sent } = asked
    if (typeof after === 'number')
      return answerResult(200, await work.readNews(place, this.#control, after, version))
    if (isObject(find)) return answerResult(200, await findTokens(place, find))
    if (isObject(trail)) return answerResult(200, await readTrail(place, trail))
    if (isObject(log)) return answerResult(200, await readLog(place, log))
    if (isObject(access)) return answerResult(200, await work.dryRun(place, access))
    if (isObject(threeds)) {
      const shown = threeds.id === undefined ? listSessions(place) : readSession(place, String(threeds.id))
      return answerResult(200, await shown)
    }
    if (isObject(sent)) return answerResult(200, await work.sendForPage(place, sent, this.#names, send))
    const { status, result } = await work.performForPage(place, operation, input)
    return answerResult(status, result)
  }

  #isSignedIn(request: HttpRequest): boolean {
    const { cookie, page } = this.#secretsOf(request)
    if (cookie === undefined || page === undefined) return false
    return (this.#sessions.get(digestOfSession({ cookie, page })) ?? 0) > this.#clock()
  }

  #secretsOf(request: HttpRequest): { cookie: string | undefined; page: string | undefined } {
    return { cookie: readCookie(request, this.#cookie), page: readHeader(request.headers, PAGE_SECRET) }
  }
}

function signInAgain(): CofferError {
  return new CofferError('unauthenticated', 'You are signed out. Get a new sign-in link: coffer control page')
}

function digestOfSession({ cookie, page }: { cookie: string; page: string }): string {
  return digest(JSON.stringify([cookie, page]))
}

function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('base64')
}

const LOOPBACK_CLIENT = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/
/** Headers that proxies, load balancers and content delivery networks add. */
const FORWARDED =
  /^(?:forwarded|via|x-real-ip|x-forwarded-.*|x-original-.*|x-client-ip|x-cluster-client-ip|true-client-ip|cf-connecting-ip|cf-ray|fastly-client-ip|x-envoy-.*|x-azure-.*|x-appengine-.*)$/
const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i

/**
 * Whether the request came from this machine, to a loopback name, and not through a proxy. A request without a socket
 * counts as local.
 */
export function isLocal(request: HttpRequest): boolean {
  return whyRemote(request) === undefined
}

export function whyRemote({ client, headers }: HttpRequest): string | undefined {
  const host = readHeader(headers, 'host')
  if (client !== undefined && !LOOPBACK_CLIENT.test(client)) return 'it came from another machine'
  const forwarded = whyForwarded({ headers })
  if (forwarded !== undefined) return forwarded
  if (host !== undefined && !LOOPBACK_HOST.test(host)) return 'it names another host than localhost'
  return undefined
}

export function whyForwarded({ headers }: Pick<HttpRequest, 'headers'>): string | undefined {
  const forwarded = Object.keys(headers).find((name) => FORWARDED.test(name))
  return forwarded && `a proxy passed it on (header ${forwarded})`
}

export function isOwnOrigin({ headers }: HttpRequest): boolean {
  const origin = readHeader(headers, 'origin')
  if (origin === undefined) return true
  return URL.canParse(origin) && new URL(origin).host === readHeader(headers, 'host')
}

/** @throws CofferError `not_found` for another machine, `forbidden` for another origin */
function requireLocal(request: HttpRequest): void {
  if (!isLocal(request)) throw new CofferError('not_found', 'There is nothing at this path.')
  const site = readHeader(request.headers, 'sec-fetch-site') ?? 'same-origin'
  if (site === 'same-origin' && isOwnOrigin(request)) return
  throw new CofferError('forbidden', 'Pages of other origins may not send this request.')
}

/** The page sends request bodies as texts in JSON, where each quote and each line break takes two bytes. */
function askLimitOf(bodyLimitBytes: number): number {
  return 2 * bodyLimitBytes + LOGIN_LIMIT_BYTES
}

/** @throws CofferError `unsupported_media_type`, `too_large`, `validation` */
async function readJson(request: HttpRequest, limitBytes: number): Promise<Record<string, unknown>> {
  // Only JSON is accepted, because a form on another site cannot send this content type without a preflight.
  if (readHeader(request.headers, 'content-type') !== 'application/json')
    throw new CofferError('unsupported_media_type', 'The content type must be application/json.')
  const text = Buffer.from(await readWhole(request, limitBytes)).toString('utf8')
  const body = parseJson(text, { source: 'the request body', maxValues: MAX_JSON_VALUES })
  if (!isObject(body)) throw new CofferError('validation', 'The body must be an object.')
  return body
}
