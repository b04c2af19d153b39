/** Handles a request: route, API key, permission, body, `perform`. This order decides the error that callers get. */
import { CofferError, type Problem } from '../errors.js'
import { admit, authorizeNow } from '../framework/caller/authorize.js'
import { type Caller, noRevealCaller } from '../framework/caller/caller.js'
import { IDEMPOTENCY_KEY } from '../framework/declaration.js'
import type { Host } from '../framework/host.js'
import { LOCAL_LIMITS } from '../framework/limits.js'
import { isOneUnit } from '../framework/operation.js'
import { perform, performRelay } from '../framework/perform.js'
import type { Endpoint, Registry } from '../framework/registry.js'
import type { AccessEntry } from './access-log.js'
import type { HttpRequest, HttpResponse } from './exchange.js'
import { ALL_METHODS, answerGiven, answerProblem, answerResult } from './exchange.js'
import type { HeaderNames } from './headers.js'
import { answerPreflight, createCorsHeaders, headerNames, readHeader, readTraceId } from './headers.js'
import { readBodyInput, readQuery, readWhole } from './input.js'
import type { Page } from './pages/pages.js'
import type { RateLimit } from './rate-limit.js'
import { createRouter, type Match, type RelayMatch } from './router.js'

export interface AnswererOptions {
  host: Host
  registry: Registry
  /** The caller that `key` belongs to. `allowsCached`: one of before the last change on another server may be returned. @throws CofferError `unauthenticated` */
  authenticate(host: Host, key: string, how: { request: HttpRequest; allowsCached: boolean }): Promise<Caller>
  prefix: string
  bodyLimitBytes: number
  /** Absent if the caller checked it. A promise if it reads settings. @throws CofferError `misdirected` */
  checkHost?(request: HttpRequest): Promise<void> | undefined
  pages: ReadonlyMap<string, Page>
  forms?: ReadonlyMap<string, Page>
  rateLimit?: RateLimit
  /** Whether web pages of other origins may read answers. */
  cors: boolean
  record?: ((entry: AccessEntry) => void) | undefined
  /** Receives every entry too, before the answer. */
  observe?(entry: AccessEntry, request: HttpRequest): void
  /** Receives internal errors, of which the caller sees only the trace id, and those of responses that could not be sent. */
  reportFault?: ((error: unknown, traceId: string) => void) | undefined
  clock(): number
}

const RETRY_SECONDS = '1'
const ENCODED_LIMITS = { ...LOCAL_LIMITS, wantsEncoded: true }

/** Never rejects. */
export type Answerer = (request: HttpRequest) => Promise<HttpResponse>

export function createAnswerer(options: AnswererOptions): Answerer {
  const parts = createParts(options)
  return (request) => new RequestState(parts, request).answer()
}

const createParts = (options: AnswererOptions) => ({
  ...options,
  router: createRouter(options.registry),
  names: headerNames(options.prefix),
  corsHeaders: createCorsHeaders(options.prefix),
})
type Parts = ReturnType<typeof createParts>

class RequestState {
  readonly #parts: Parts
  readonly #request: HttpRequest
  readonly #traceId: string
  #route = '-'
  #isForPages: boolean
  #isNoReveal = false
  #applicationId: string | undefined
  #wrap: ((problem: Problem) => object) | undefined

  constructor(parts: Parts, request: HttpRequest) {
    this.#parts = parts
    this.#request = request
    this.#traceId = readTraceId(request, parts.names) ?? parts.host.createUuid()
    this.#isForPages = parts.cors
  }

  async answer(): Promise<HttpResponse> {
    const { clock, names, corsHeaders, observe, record } = this.#parts
    const started = clock()
    let answer: HttpResponse
    try {
      answer = await this.#handle()
    } catch (error) {
      answer = this.#refuse(error)
    }
    answer.headers[names.traceId] = this.#traceId
    if (this.#isNoReveal) answer.headers[names.noReveal] = 'true'
    if (this.#isForPages) Object.assign(answer.headers, corsHeaders)
    if (observe === undefined && record === undefined) return answer
    const entry: AccessEntry = {
      method: this.#request.method,
      route: this.#route,
      status: answer.status,
      ms: clock() - started,
      traceId: this.#traceId,
      applicationId: this.#applicationId,
    }
    observe?.(entry, this.#request)
    record?.(entry)
    return answer
  }

  #handle(): Promise<HttpResponse> | HttpResponse {
    const { router, checkHost } = this.#parts
    const { path, search } = splitTarget(this.#request.target)
    const relayed = router.findRelay(path)
    if (relayed !== undefined) this.#wrap = relayed.operation.relay.describeError
    const checking = checkHost?.(this.#request)
    const route = () => (relayed === undefined ? this.#routeTo(path, search) : this.#relay(relayed, search))
    return checking === undefined ? route() : checking.then(route)
  }

  #routeTo(path: string, search: string): Promise<HttpResponse> | HttpResponse {
    const { router, pages, forms } = this.#parts
    const { method } = this.#request
    const pagePath = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
    const [page, form] = [pages.get(pagePath), forms?.get(pagePath)]
    if (page !== undefined || form !== undefined) {
      this.#route = pagePath
      const handler = method === 'POST' ? form : method === 'GET' || method === 'HEAD' ? page : undefined
      if (handler !== undefined) return handler(this.#request, this.#traceId)
      return this.#refuseMethod([page && 'GET, HEAD', form && 'POST'].filter(Boolean).join(', '))
    }
    const match = router.match(method, path)
    return 'allow' in match ? this.#refuseMethod(match.allow) : this.#perform(match, search)
  }

  /** @throws CofferError `unauthenticated`, `rate_limited` */
  #identify(allowsCached: boolean): Promise<Caller> {
    const { host, names, authenticate } = this.#parts
    const { headers } = this.#request
    const key = readHeader(headers, names.apiKey)
    if (key === undefined || key === '') throw missingKey(names.apiKey, Object.keys(headers))
    return authenticate(host, key, { request: this.#request, allowsCached }).then((known) => {
      const caller = this.#limit(known)
      if (caller.applicationType !== 'public') this.#isForPages = false
      this.#admit(caller)
      return caller
    })
  }

  /** The caller in no-reveal mode if the request asks for it; the answer then says so. */
  #limit(caller: Caller): Caller {
    this.#isNoReveal = readHeader(this.#request.headers, this.#parts.names.noReveal) !== undefined
    return this.#isNoReveal ? noRevealCaller(caller) : caller
  }

  #admit({ actor }: Caller): void {
    this.#applicationId = actor.id
    if (this.#request.lease !== undefined) this.#request.lease.holder = actor.id
    const retryAfterSeconds = this.#parts.rateLimit?.take(actor.id) ?? 0
    if (retryAfterSeconds === 0) return
    const message = `Too many requests. Try again in ${retryAfterSeconds} s.`
    throw new CofferError('rate_limited', message, { retryAfterSeconds })
  }

  async #relay({ operation, rest: path }: RelayMatch, query: string): Promise<HttpResponse> {
    const { relay } = operation
    const { host, prefix, bodyLimitBytes } = this.#parts
    const request = this.#request
    const { method, outboundWrapper: through } = request
    this.#route = relay.path
    if (!relay.methods.includes(method)) return this.#refuseMethod(relay.methods.join(', '))
    const headers: Record<string, string> = {}
    for (const name of Object.keys(request.headers)) headers[name] = readHeader(request.headers, name) ?? ''
    const readBody = () => readWhole(request, bodyLimitBytes)
    const left = request.onLeave?.bind(request)
    const relayed = { method, path, query, headers, prefix: prefix.toLowerCase(), readBody, left, through }
    const admitted = await relay.admit(host, relayed)
    const caller = admitted === undefined ? await this.#identify(false) : this.#limit(admitted)
    const isAdmitted = admitted !== undefined
    if (isAdmitted) this.#admit(caller)
    const about = { traceId: this.#traceId, isAdmitted }
    const answer = await performRelay(host, caller, operation, relayed, about)
    const content = answer.whole === undefined ? { stream: answer.body } : { bytes: answer.whole }
    return { status: answer.status, headers: { ...answer.headers }, body: '', ...content }
  }

  async #perform({ operation, parameters }: Match, search: string): Promise<HttpResponse> {
    const { host, names, bodyLimitBytes } = this.#parts
    const request = this.#request
    const { endpoint } = operation
    this.#route = endpoint.path
    const idempotencyKey = readHeader(request.headers, names.idempotencyKey)
    // One unit of work can check a cached caller.
    const identified = await this.#identify(isOneUnit(operation) && idempotencyKey === undefined)
    // `perform` checks the permission too; here it avoids reading a body that is not allowed.
    const caller = await admit(host.store, identified, operation)
    const body = endpoint.takesBody ? await readBodyInput(request, operation, bodyLimitBytes) : {}
    try {
      const query = readQuery(endpoint, search)
      const input = { ...body, ...query.input, ...parameters() }
      const limits = request.lease ?? ENCODED_LIMITS
      const options = { parseErrors: query.parseErrors, limits, idempotencyKey }
      const outcome = await perform(host, caller, operation, input, this.#traceId, options)
      const { status, headers, result, isReplayed } = outcome
      const answer =
        headers === undefined ? answerResult(status, result) : answerGiven(status, headers, result)
      if (isReplayed) answer.headers[names.replayed] = 'true'
      return answer
    } catch (error) {
      throw renameAsSent(await this.#reasonOf(error, caller, operation), endpoint, names)
    }
  }

  /** Errors of the input come before any unit of work, so nothing has asked yet whether the caller may still do this. */
  async #reasonOf(error: unknown, caller: Caller, operation: Match['operation']): Promise<unknown> {
    if (!(error instanceof CofferError) || error.errors === undefined) return error
    try {
      await this.#parts.host.store.read((reader) => authorizeNow(caller, operation, reader))
      return error
    } catch (refusal) {
      return refusal
    }
  }

  #refuse(error: unknown): HttpResponse {
    const { names, cors, reportFault } = this.#parts
    const known = error instanceof CofferError ? error : undefined
    // Without it a page could not read that its next request is not emulated.
    const isOfPage = known?.code === 'not_emulated' && cors
    const preflight = isOfPage ? answerPreflight(this.#request, ALL_METHODS) : undefined
    if (preflight !== undefined) return preflight
    const isOfStorage = known?.code === 'storage_failed' || known?.code.startsWith('vault_') === true
    const answer = this.#answerProblem(known !== undefined && isOfStorage ? hideReason(known) : error)
    // RFC 9110, 11.6.1: a 401 says how to authenticate.
    if (answer.status === 401)
      answer.headers['www-authenticate'] = `ApiKey name="${names.apiKey.toUpperCase()}"`
    if (known?.retryAfterSeconds !== undefined)
      answer.headers['retry-after'] = String(known.retryAfterSeconds)
    else if (answer.status === 503) answer.headers['retry-after'] = RETRY_SECONDS
    if (known === undefined || known.code === 'internal' || isOfStorage) reportFault?.(error, this.#traceId)
    return answer
  }

  /** Answers a method that the path does not take; a preflight is such a request, and is answered without a key. */
  #refuseMethod(allow: string): HttpResponse {
    const preflight = this.#parts.cors ? answerPreflight(this.#request, allow) : undefined
    if (preflight !== undefined) return preflight
    const answer = this.#answerProblem(new CofferError('method_not_allowed', `This path takes ${allow}.`))
    answer.headers.allow = allow
    return answer
  }

  #answerProblem(error: unknown): HttpResponse {
    return answerProblem(error, this.#traceId, readHeader(this.#request.headers, 'accept'), this.#wrap)
  }
}

/** Its message names files of the server: the operator reads the reason, callers read only that the vault is the cause. */
function hideReason(error: CofferError): CofferError {
  const { code, status } = error
  const message =
    error.toCallers ?? 'The server cannot read or write its vault. The log of the server has the reason.'
  return new CofferError(code, message, { status, cause: error })
}

/** Renames properties in errors to what the caller wrote: `size` to `query.size`, the idempotency key to its header. */
function renameAsSent(error: unknown, { query }: Endpoint, { idempotencyKey }: HeaderNames): unknown {
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

/** `given`: the headers of the request; those of another prefix are what a client sends to a server with that prefix. */
function missingKey(wanted: string, given: readonly string[]): CofferError {
  const [, prefix] = given.join('\n').match(/^([a-z][a-z\d]{0,19})-api-key$/m) ?? []
  const advice = ` Clients that send ${prefix?.toUpperCase()}-API-KEY need: coffer serve --prefix ${prefix}`
  const message = `Send an API key in the header ${wanted.toUpperCase()}.${prefix === undefined ? '' : advice}`
  return new CofferError('unauthenticated', message)
}
