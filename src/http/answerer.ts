/** Handles a request: route, API key, permission, body, `perform`. This order decides the error that callers get. */
import { CofferError, type Problem } from '../errors.js'
import { retryIfStale } from '../framework/caller/cached-caller.js'
import type { Caller } from '../framework/caller/caller.js'
import type { Host } from '../framework/host.js'
import { IDEMPOTENCY_KEY } from '../framework/idempotency/idempotency-key.js'
import { authorize, perform, performRelay } from '../framework/perform.js'
import { LOCAL_RECIPIENT, type Recipient } from '../framework/recipient.js'
import type { Endpoint, Registry } from '../framework/registry.js'
import type { AccessEntry } from './access-log.js'
import { placeBody, readJsonBody } from './body.js'
import { answerPreflight, isPreflight, nameCorsHeaders } from './cors.js'
import {
  ALL_METHODS,
  answerGiven,
  answerProblem,
  answerResult,
  type HttpRequest,
  type HttpResponse,
} from './exchange.js'
import { type HeaderNames, nameHeaders, readHeader, readTraceId } from './headers.js'
import type { HostCheck } from './hosts.js'
import type { Page } from './pages/pages.js'
import { readQuery } from './query.js'
import type { RateLimit } from './rate-limit.js'
import { createRelayFinder, type RelayMatch, toAnswer, toRelayRequest } from './relay.js'
import { createRouter, type Match } from './router.js'

export interface AnswererOptions {
  host: Host
  registry: Registry
  /** The caller that `key` belongs to; one that may be out of date if `allowsCached`. @throws CofferError `unauthenticated` */
  authenticate(host: Host, key: string, how: { request: HttpRequest; allowsCached: boolean }): Promise<Caller>
  /** `svc` gives the headers `SVC-API-KEY` and `SVC-TRACE-ID`. */
  prefix: string
  bodyLimitBytes: number
  /** Checks the host name of the request first; absent if the caller has checked it. */
  checkHost?: HostCheck
  /** Pages that need no API key, by path. */
  pages: ReadonlyMap<string, Page>
  /** Handlers of what pages send by POST, by path. */
  forms?: ReadonlyMap<string, Page>
  rateLimit?: RateLimit
  /** Whether web pages of other origins may read answers. */
  cors: boolean
  record?(entry: AccessEntry): void
  /** Receives every entry too, before the answer. */
  observe?(entry: AccessEntry, request: HttpRequest): void
  /** Receives internal errors; the caller sees only the trace id. */
  reportFault?(error: unknown, traceId: string): void
  /** ms of a monotonic clock. */
  clock(): number
}

/** The default of `Retry-After` for 503. */
const RETRY_SECONDS = '1'

/** Never rejects. */
export type Answerer = (request: HttpRequest) => Promise<HttpResponse>

export function createAnswerer(options: AnswererOptions): Answerer {
  const parts: Parts = {
    ...options,
    router: createRouter(options.registry),
    findRelay: createRelayFinder(options.registry),
    names: nameHeaders(options.prefix),
  }
  const corsHeaders = nameCorsHeaders(options.prefix)
  return async (request) => {
    const started = options.clock()
    const traceId = readTraceId(request, parts.names) ?? options.host.createUuid()
    const state: RequestState = { request, traceId, route: '-', isForPages: options.cors }
    const answer = await answerRequest(parts, state).catch((error: unknown) => refuse(parts, state, error))
    answer.headers[parts.names.traceId] = traceId
    if (state.isForPages) Object.assign(answer.headers, corsHeaders)
    const { observe, record } = options
    if (observe === undefined && record === undefined) return answer
    const ms = options.clock() - started
    const entry: AccessEntry = {
      method: request.method,
      route: state.route,
      status: answer.status,
      ms,
      traceId,
    }
    if (state.applicationId !== undefined) entry.applicationId = state.applicationId
    observe?.(entry, request)
    record?.(entry)
    return answer
  }
}

type Parts = AnswererOptions & {
  router: ReturnType<typeof createRouter>
  findRelay: ReturnType<typeof createRelayFinder>
  names: HeaderNames
}

/** The state of a request; filled while it is handled. */
interface RequestState {
  readonly request: HttpRequest
  readonly traceId: string
  route: string
  /** Whether web pages of other origins may read the answer. */
  isForPages: boolean
  applicationId?: string
  /** The form of errors, if it is not a plain problem. */
  wrap?: (problem: Problem) => object
}

async function answerRequest(parts: Parts, state: RequestState): Promise<HttpResponse> {
  const { request } = state
  const { path, search } = splitTarget(request.target)
  const relayed = parts.findRelay(path)
  if (relayed !== undefined) state.wrap = relayed.relay.describeError
  const checking = parts.checkHost?.(request)
  if (checking !== undefined) await checking
  if (relayed !== undefined) return answerRelay(parts, state, relayed, search)
  const pagePath = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  if (parts.pages.has(pagePath) || parts.forms?.has(pagePath)) return answerPage(parts, state, pagePath)
  const match = parts.router.match(request.method, path)
  if ('allow' in match) return refuseMethod(parts, state, match.allow)
  state.route = match.operation.endpoint.path
  const caller = await identify(parts, request, isOneUnit(parts, match, request))
  if (caller.applicationType !== 'public') state.isForPages = false
  admit(parts, state, caller)
  return runOperation(parts, state, match, caller, search)
}

/** Notes who calls. @throws CofferError `rate_limited` */
function admit({ rateLimit }: Parts, state: RequestState, { actor }: Caller): void {
  state.applicationId = actor.id
  state.request.lease?.belongsTo(actor.id)
  const waitSeconds = rateLimit?.take(actor.id) ?? 0
  if (waitSeconds > 0)
    throw new CofferError('rate_limited', `Too many requests. Try again in ${waitSeconds} s.`, {
      retryAfterSeconds: waitSeconds,
    })
}

async function answerRelay(
  parts: Parts,
  state: RequestState,
  match: RelayMatch,
  query: string,
): Promise<HttpResponse> {
  const { host, prefix, bodyLimitBytes } = parts
  const { operation, relay } = match
  const { request, traceId } = state
  state.route = relay.path
  if (!relay.methods.includes(request.method)) return refuseMethod(parts, state, relay.methods.join(', '))
  const relayed = toRelayRequest(request, match, { query, prefix, bodyLimitBytes })
  const admitted = await relay.admit(host.store, host.hashSecret, relayed)
  const caller = admitted ?? (await identify(parts, request))
  if (admitted === undefined && caller.applicationType !== 'public') state.isForPages = false
  admit(parts, state, caller)
  if (admitted === undefined) authorize(caller, operation)
  return toAnswer(await performRelay(host, caller, operation, relayed, traceId))
}

async function runOperation(
  { host, names, bodyLimitBytes }: Parts,
  { request, traceId }: RequestState,
  { operation, parameters }: Match,
  caller: Caller,
  search: string,
): Promise<HttpResponse> {
  const { endpoint } = operation
  // `perform` checks the permission too; here it avoids reading a body that is not allowed.
  await retryIfStale(caller, (current) => authorize(current, operation))
  const body = endpoint.takesBody
    ? placeBody(await readJsonBody(request, operation, bodyLimitBytes), operation)
    : {}
  try {
    const query = readQuery(endpoint, search)
    const input = { ...body, ...query.input, ...parameters() }
    const idempotencyKey = readHeader(request.headers, names.idempotencyKey)
    const options = { misspelled: query.misspelled, recipient: recipientOf(request), idempotencyKey }
    const outcome = await retryIfStale(caller, (current) =>
      perform(host, current, operation, input, traceId, options),
    )
    const { status, headers, result, isReplayed } = outcome
    const answer = headers === undefined ? answerResult(status, result) : answerGiven(status, headers, result)
    if (isReplayed) answer.headers[names.replayed] = 'true'
    return answer
  } catch (error) {
    throw nameAsWritten(error, endpoint, names)
  }
}

/** The answer is wanted as text, and its bytes must be reserved. */
function recipientOf({ lease }: HttpRequest): Recipient {
  const { mostBytes, isStrict } = LOCAL_RECIPIENT
  const reserve = lease === undefined ? LOCAL_RECIPIENT.reserve : (bytes: number) => lease.reserve(bytes)
  return { mostBytes, isStrict, wantsText: true, reserve }
}

/** Whether the request takes one unit of work, which can check a cached caller. */
function isOneUnit({ names }: Parts, { operation }: Match, { headers }: HttpRequest): boolean {
  return operation.runDetached === undefined && readHeader(headers, names.idempotencyKey) === undefined
}

/** @throws CofferError `unauthenticated` */
async function identify(
  { host, names, authenticate }: Parts,
  request: HttpRequest,
  allowsCached = false,
): Promise<Caller> {
  const key = readHeader(request.headers, names.apiKey)
  if (key !== undefined && key !== '') return authenticate(host, key, { request, allowsCached })
  throw new CofferError('unauthenticated', `Send an API key in the header ${names.apiKey.toUpperCase()}.`)
}

async function answerPage(parts: Parts, state: RequestState, path: string): Promise<HttpResponse> {
  state.route = path
  const { request } = state
  const [page, form] = [parts.pages.get(path), parts.forms?.get(path)]
  const handler = { GET: page, HEAD: page, POST: form }[request.method]
  if (handler !== undefined) return handler(request, state.traceId)
  return refuseMethod(parts, state, [page && 'GET, HEAD', form && 'POST'].filter(Boolean).join(', '))
}

function refuse(parts: Parts, { request, traceId, wrap }: RequestState, error: unknown): HttpResponse {
  // Without it a page could not read that its next request is not emulated.
  if (error instanceof CofferError && error.code === 'not_emulated' && parts.cors && isPreflight(request))
    return answerPreflight(request, ALL_METHODS)
  const answer = answerProblem(hideStorage(error), traceId, readHeader(request.headers, 'accept'), wrap)
  // RFC 9110, 11.6.1: a 401 says how to authenticate.
  if (answer.status === 401)
    answer.headers['www-authenticate'] = `ApiKey name="${parts.names.apiKey.toUpperCase()}"`
  if (error instanceof CofferError && error.retryAfterSeconds !== undefined)
    answer.headers['retry-after'] = String(error.retryAfterSeconds)
  else if (answer.status === 503) answer.headers['retry-after'] = RETRY_SECONDS
  if (!(error instanceof CofferError) || error.code === 'internal' || isOfStorage(error))
    parts.reportFault?.(error, traceId)
  return answer
}

/** The message of such an error names files of the server. */
function isOfStorage({ code }: CofferError): boolean {
  return code === 'storage_failed' || code.startsWith('vault_')
}

/** The operator of the server reads the reason, callers read only that the vault is the cause. */
function hideStorage(error: unknown): unknown {
  if (!(error instanceof CofferError) || !isOfStorage(error)) return error
  const { code, status } = error
  const message =
    error.toCallers ?? 'The server cannot read or write its vault. The log of the server has the reason.'
  return new CofferError(code, message, { status, cause: error })
}

/** Answers a method that the path does not take; a preflight is such a request, and is answered without a key. */
function refuseMethod(
  { cors }: Parts,
  { request, traceId, wrap }: RequestState,
  allow: string,
): HttpResponse {
  if (cors && isPreflight(request)) return answerPreflight(request, allow)
  const error = new CofferError('method_not_allowed', `This path takes ${allow}.`)
  const answer = answerProblem(error, traceId, readHeader(request.headers, 'accept'), wrap)
  answer.headers.allow = allow
  return answer
}

/** Renames properties in errors to what the caller wrote: `size` to `query.size`, the idempotency key to its header. */
function nameAsWritten(error: unknown, { query }: Endpoint, { idempotencyKey }: HeaderNames): unknown {
  if (!(error instanceof CofferError) || error.errors === undefined) return error
  const entries = Object.entries(error.errors).map(([path, messages]) => {
    if (path === IDEMPOTENCY_KEY) return [idempotencyKey.toUpperCase(), messages] as const
    const property = /^[^.[]*/.exec(path)![0]
    return [Object.hasOwn(query, property) ? `query.${path}` : path, messages] as const
  })
  const { code, message, status } = error
  return new CofferError(code, message, { errors: Object.fromEntries(entries), status, cause: error })
}

/** Path and query of the request target, which can be an absolute URL (RFC 9112, 3.2.2). */
export function splitTarget(target: string): { path: string; search: string } {
  const rest = target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  const at = rest.indexOf('?')
  if (at === -1) return { path: rest || '/', search: '' }
  return { path: rest.slice(0, at) || '/', search: rest.slice(at + 1) }
}
