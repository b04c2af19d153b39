/** The server of the page at `/`. A session performs a fixed set of operations, which reveal nothing. */
import { BoundedMap } from '../bounded-map.js'
import { isObject, parseJson } from '../domain/json/json.js'
import { CofferError } from '../errors.js'
import { answerResult, type HttpRequest, type HttpResponse } from '../http/exchange.js'
import { readCookie, readHeader } from '../http/headers.js'
import { createFormTokens, digest } from '../http/pages/form.js'
import type { Page } from '../http/pages/pages.js'
import type { OperationName } from '../operations/all.js'
import type { ControlState } from './control-state.js'
import { isDirect, isLoopback, isOwnOrigin } from './local.js'

export const DASHBOARD_PATH = '/_dashboard'
const SESSION = 'session'
const SECRET_BYTES = 32
const LOGIN_LIFE_MS = 2 * 60_000
const SESSION_LIFE_MS = 12 * 60 * 60_000
const MOST_SESSIONS = 20
const BODY_LIMIT_BYTES = 64 * 1024

/** The operations of a session. None shows a key, or data in plaintext to an owner who does not ask for it. */
const OPERATIONS: ReadonlySet<string> = new Set<OperationName>([
  'tenant list',
  'token list',
  'token search',
  'app list',
  'log list',
  'reactor list',
  'reactor logs',
  'invite outbox',
  'control reset',
  'control snapshot list',
  'control snapshot create',
  'control snapshot restore',
  'control clock get',
  'control clock set',
  'control clock advance',
  'control fault list',
  'control fault set',
  'control fault clear',
  'control request clear',
])

export type Dashboard = ReturnType<typeof createDashboard>

/** `prefix`: of header names. `isSecure`: the cookie is for TLS alone. `clock`: ms of a monotonic clock. */
export function createDashboard(
  base: ControlState,
  options: { prefix: string; isSecure: boolean; clock?(): number },
) {
  const { prefix, isSecure, clock = () => performance.now() } = options
  const drawBytes = (count: number) => base.app.random.bytes(count)
  const drawText = (count: number) => Buffer.from(drawBytes(count)).toString('base64url')
  const logins = createFormTokens(drawBytes, clock, LOGIN_LIFE_MS)
  // Cookies do not depend on the port, so each server uses its own name.
  const cookie = `coffer_page_${drawText(6)}`
  /** When sessions end, by the digests of their secrets. */
  const sessions = new BoundedMap<string, number>(MOST_SESSIONS)
  const [session, questions] = [`${DASHBOARD_PATH}/${SESSION}`, `${DASHBOARD_PATH}/ask`]
  return {
    handlers: {
      pages: new Map<string, Page>([[session, describe]]),
      forms: new Map<string, Page>([
        [session, signIn],
        [questions, answer],
      ]),
    },

    /** Gives addresses of the page of the server at `url`. The secret in one, which browsers do not send, signs in once. */
    listenAt: (url: string): string => {
      const create = () => `${url}/#login=${logins.create(SESSION)}`
      base.app.createPageUrl = create
      return create()
    },

    /** Whether somebody is signed in. */
    isWatched: () => [...sessions.values()].some((until) => until > clock()),
  }

  async function signIn(request: HttpRequest): Promise<HttpResponse> {
    const { login } = await readLocalJson(request)
    if (typeof login !== 'string' || !logins.take(login, SESSION))
      throw new CofferError(
        'forbidden',
        'This address was used before, or is older than two minutes. HttpRequest for another: coffer control page',
      )
    const secret = drawText(SECRET_BYTES)
    sessions.set(digest(secret), clock() + SESSION_LIFE_MS)
    const answer = answerResult(204, undefined)
    answer.headers['set-cookie'] =
      `${cookie}=${secret}; HttpOnly; SameSite=Strict; Path=${DASHBOARD_PATH}${isSecure ? '; Secure' : ''}`
    return answer
  }

  /** Describes the session. It is no error to be signed out: everybody may read the reference. */
  async function describe(request: HttpRequest): Promise<HttpResponse> {
    requireLocal(request)
    if (!isSignedIn(request)) return answerResult(200, { is_signed_in: false })
    const { app, forks } = base
    const tenants = await app.ask({ operation: 'tenant list', input: {}, as: { reveal: false } })
    return answerResult(200, {
      is_signed_in: true,
      header: `${prefix.toUpperCase()}-API-KEY`,
      tenants: tenants.result.map(({ id, name }) => ({ id, name })),
      forks: [...forks.keys()],
      controls: { faults: app.control !== undefined, state: base.hasState },
    })
  }

  async function answer(request: HttpRequest): Promise<HttpResponse> {
    const { operation, input = {}, tenant, fork, after } = await readLocalJson(request)
    if (!isSignedIn(request)) throw new CofferError('unauthenticated', 'Sign in again.')
    const plane = fork === undefined ? base : base.forks.get(String(fork))?.plane
    if (plane === undefined) throw new CofferError('not_found', 'There is no fork with this id.')
    if (typeof after === 'number') return answerResult(200, plane.requests.after(after))
    if (typeof operation !== 'string' || !OPERATIONS.has(operation) || !isObject(input))
      throw new CofferError('forbidden', 'The page does not perform this operation.')
    const as = { reveal: false, ...(typeof tenant === 'string' ? { tenant } : {}) }
    const perform = () => plane.app.ask({ operation: operation as OperationName, input, as })
    // A change of state waits for all others, and would wait for itself.
    const outcome = operation.startsWith('control ') ? await perform() : await plane.lock.shared(perform)
    return answerResult(outcome.status, outcome.result)
  }

  function isSignedIn(request: HttpRequest): boolean {
    const secret = readCookie(request, cookie)
    return secret !== undefined && (sessions.get(digest(secret)) ?? 0) > clock()
  }
}

/** @throws CofferError `not_found` for another machine, `forbidden` for another origin */
function requireLocal(request: HttpRequest): void {
  if (!isLoopback(request) || !isDirect(request))
    throw new CofferError('not_found', 'There is nothing at this path.')
  const site = readHeader(request.headers, 'sec-fetch-site') ?? 'same-origin'
  if (site === 'same-origin' && isOwnOrigin(request)) return
  throw new CofferError('forbidden', 'Pages of other origins may not ask this.')
}

/** @throws CofferError `unsupported_media_type`, `too_large`, `validation`, and as {@link requireLocal} */
async function readLocalJson(request: HttpRequest): Promise<Record<string, unknown>> {
  requireLocal(request)
  // Forms of other sites cannot send it without a preflight.
  if (readHeader(request.headers, 'content-type') !== 'application/json')
    throw new CofferError('unsupported_media_type', 'The page sends application/json.')
  const bytes = await request.readBody(BODY_LIMIT_BYTES)
  if (bytes === undefined)
    throw new CofferError('too_large', `The body is larger than ${BODY_LIMIT_BYTES} bytes.`)
  const body = parseJson(Buffer.from(bytes).toString('utf8'))
  if (!isObject(body)) throw new CofferError('validation', 'The body must be an object.')
  return body
}
