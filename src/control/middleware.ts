/**
 * The steps of a request on its way to a vault with a control plane: the control plane under `/_coffer/` and the dashboard,
 * for this machine alone; the choice of a fork; the record of the request; and faults.
 */
import { setTimeout } from 'node:timers/promises'
import { formatDate } from '../domain/dates.js'
import { ACCEPT_PATH } from '../domain/invitation/invitation.js'
import { tryJson } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError } from '../errors.js'
import { authenticate } from '../framework/caller/authenticate.js'
import { type ExplainedDecision, recordDecisions } from '../framework/caller/decisions.js'
import { CONTROL_PATH } from '../framework/operation.js'
import type { FaultRule, RequestRecord } from '../framework/ports/control.js'
import type { RegisteredOperation } from '../framework/registry.js'
import { staleWorkError } from '../framework/unit.js'
import type { AccessEntry } from '../http/access-log.js'
import { type Answerer, splitTarget } from '../http/answerer.js'
import { answerProblem, changeRequest, type HttpRequest, type HttpResponse } from '../http/exchange.js'
import { type HeaderNames, nameHeaders, readHeader } from '../http/headers.js'
import { HEALTH_PATH } from '../http/pages/pages.js'
import { createRelayFinder } from '../http/relay.js'
import { createRouter, noControl } from '../http/router.js'
import { DEFAULT_BODY_LIMIT_BYTES } from '../http/sockets.js'
import type { CreateAnswerer } from '../http/start.js'
import { registry } from '../operations/all.js'
import type { ControlState } from './control-state.js'
import { DASHBOARD_PATH, type Dashboard } from './dashboard.js'
import { watchDestination } from './destination.js'
import { closeStream, cutStream, problemOf, titleByStatus } from './fault-responses.js'
import { findByKey, findByLink } from './forks.js'
import { isDirect, isLoopback, isOwnOrigin } from './local.js'
import { knownOf, queryNames, redactBody, redactResponse } from './requests.js'

export interface MiddlewareOptions {
  plane: ControlState
  /** The key of the control plane, if requests can reach that. */
  key?: string | undefined
  dashboard?: Dashboard | undefined
  prefix: string
}

/** Facts about a request that the vault notes while it answers it. */
interface RequestTrace {
  entry?: AccessEntry
  decisions: Map<string, ExplainedDecision>
}

/** A request on its way through the steps. */
interface RequestState {
  request: HttpRequest
  readonly path: string
  readonly search: string
  /** The vault that answers: the one of the server, or a fork. */
  plane: ControlState
  operation?: RegisteredOperation | undefined
  /** Faults that apply to the request. */
  rules: readonly FaultRule[]
  /** The data was replaced while the request was under way. */
  isStale: boolean
}

type Step = (state: RequestState, next: () => Promise<HttpResponse>) => Promise<HttpResponse>

/** The decisions that are kept of a request. */
const MOST_DECISIONS = 20

const FORK_PATH = new RegExp(`^${CONTROL_PATH}/forks/([^/]+)(/.+)$`)

export function createControlMiddleware(options: MiddlewareOptions): (create: CreateAnswerer) => Answerer {
  return (create) => {
    const middleware = new ControlMiddleware(options, create)
    return (request) => middleware.answer(request)
  }
}

class ControlMiddleware {
  readonly #base: ControlState
  readonly #key: string | undefined
  readonly #dashboard: Dashboard | undefined
  readonly #dashboardAnswerer: Answerer | undefined
  readonly #create: CreateAnswerer
  readonly #names: HeaderNames
  readonly #router = createRouter(registry)
  readonly #findRelay = createRelayFinder(registry)
  readonly #answerers = new WeakMap<ControlState, { api: Answerer; control: Answerer }>()
  readonly #traces = new WeakMap<HttpRequest, RequestTrace>()
  readonly #steps: readonly Step[]

  constructor({ plane, key, dashboard, prefix }: MiddlewareOptions, create: CreateAnswerer) {
    this.#base = plane
    this.#key = key
    this.#dashboard = dashboard
    this.#create = create
    this.#names = nameHeaders(prefix)
    this.#dashboardAnswerer =
      dashboard &&
      create({
        host: plane.app,
        registry: { ...registry, operations: [], routed: [] },
        ...dashboard.handlers,
        cors: false,
        record: undefined,
      })
    this.#steps = [
      this.#controlRoutes,
      this.#dashboardRoutes,
      this.#chooseFork,
      this.#record,
      this.#applyFaults,
    ]
  }

  answer(request: HttpRequest): Promise<HttpResponse> {
    const { path, search } = splitTarget(request.target)
    return this.#run({ request, path, search, plane: this.#base, rules: [], isStale: false }, 0)
  }

  async #control(request: HttpRequest, path: string): Promise<HttpResponse> {
    if (!isLoopback(request) || !isDirect(request)) return this.#fail(noControl(), request)
    if (!isOwnOrigin(request))
      return this.#fail(
        new CofferError('forbidden', 'Pages of other origins may not use the control plane.'),
        request,
      )
    const [, id, rest] = FORK_PATH.exec(path) ?? []
    if (id === undefined || rest === undefined) return this.#answererOf(this.#base).control(request)
    const fork = this.#base.forks.get(id)
    if (fork === undefined)
      return this.#fail(new CofferError('not_found', 'There is no fork with this id.'), request)
    const target = `${CONTROL_PATH}${rest}${request.target.slice(request.target.indexOf(path) + path.length)}`
    return this.#answererOf(fork.plane).control(changeRequest(request, { target }))
  }

  #run(state: RequestState, at: number): Promise<HttpResponse> {
    const step = this.#steps[at]
    if (step === undefined) return this.#perform(state)
    return step(state, () => this.#run(state, at + 1))
  }

  #controlRoutes: Step = ({ request, path }, next) =>
    this.#key !== undefined && isBelow(path, CONTROL_PATH) ? this.#control(request, path) : next()

  #dashboardRoutes: Step = ({ request, path }, next) =>
    this.#dashboardAnswerer !== undefined && isBelow(path, DASHBOARD_PATH)
      ? this.#dashboardAnswerer(request)
      : next()

  /** Forks are known by their keys and by the links in their mail. */
  #chooseFork: Step = (state, next) => {
    const { request, path, search } = state
    if (this.#base.forks.size === 0) return next()
    const key = readHeader(request.headers, this.#names.apiKey)
    const link = new URLSearchParams(search).get('token') ?? ''
    const finding = path === ACCEPT_PATH ? findByLink(this.#base, link) : findByKey(this.#base, key)
    return finding.then((plane) => {
      state.plane = plane
      return next()
    })
  }

  /** Without a control plane and a dashboard nobody can see records or set faults. */
  #record: Step = (state, next) =>
    state.plane.app.control === undefined && this.#dashboard?.isWatched() !== true
      ? this.#perform(state)
      : this.#recordRequest(state, next)

  async #recordRequest(state: RequestState, next: () => Promise<HttpResponse>): Promise<HttpResponse> {
    const { path, search, plane } = state
    const started = performance.now()
    const relayed = this.#findRelay(path)
    const operation = relayed?.operation ?? this.#router.find(state.request.method, path)
    state.operation = operation
    let sent: Promise<Uint8Array | undefined> | undefined
    const original = state.request
    const readBody = (limitBytes: number) => (sent ??= original.readBody(limitBytes))
    state.request = changeRequest(original, { readBody })
    const target = {
      operation: operation?.name,
      method: original.method,
      path,
      isRelayed: relayed !== undefined,
      header: (name: string) => readHeader(original.headers, name),
      body: async () => tryJson(await textOf(readBody(DEFAULT_BODY_LIMIT_BYTES))),
    }
    state.rules = await plane.faults.choose(target)
    const destination: Pick<RequestRecord, 'destination' | 'destination_status'> = {}
    if (relayed !== undefined) {
      const { destination: fault } = state.rules.find(({ kind }) => kind === 'destination') ?? {}
      state.request.outboundWrapper = watchDestination(fault, destination)
    }
    const trace: RequestTrace = { decisions: new Map() }
    this.#traces.set(state.request, trace)
    const response = await next()
    if (state.isStale) return response
    plane.requests.add({
      method: original.method,
      path,
      status: response.cutAt === 'start' ? 0 : response.status,
      trace_id: response.headers[this.#names.traceId] ?? '',
      at: formatDate(plane.now()),
      ms: Math.round((performance.now() - started) * 100) / 100,
      ...destination,
      ...omitUndefined({
        operation: operation?.name,
        application_id: trace.entry?.applicationId,
        query: queryNames(search, operation),
        fault: state.rules.at(-1)?.kind,
        request: redactBody(await textOf(sent), knownOf(operation, 'input')),
        decisions: trace.decisions.size === 0 ? undefined : [...trace.decisions.values()],
        answer: redactResponse(response, operation),
      }),
    })
    return response
  }

  #applyFaults: Step = (state, next) => (state.rules.length === 0 ? next() : this.#fault(state, next))

  async #fault(state: RequestState, next: () => Promise<HttpResponse>): Promise<HttpResponse> {
    const { rules, plane, request } = state
    const { generation } = plane.app
    for (const { kind, delay_ms = 0 } of rules) if (kind === 'delay') await setTimeout(delay_ms)
    if (plane.app.generation !== generation) return this.#refuseStale(state)
    const rule = rules.find(({ kind }) => kind !== 'delay' && kind !== 'destination')
    if (rule === undefined) return next()
    if (rule.kind === 'drop') return { ...this.#fail(problemOf({ status: 503 }), request), cutAt: 'start' }
    if (rule.kind === 'status') {
      const response = this.#fail(problemOf(rule), request)
      titleByStatus(response)
      if (rule.retry_after !== undefined) response.headers['retry-after'] = String(rule.retry_after)
      return response
    }
    const response = await next()
    if (rule.kind === 'lose') {
      await closeStream(response)
      response.cutAt = 'start'
    } else if (response.stream !== undefined) response.stream = cutStream(response.stream, rule.bytes ?? 0)
    else response.cutAt = rule.bytes ?? Math.floor((response.bytes ?? response.body).length / 2)
    return response
  }

  #perform(state: RequestState): Promise<HttpResponse> {
    const { plane, request, path } = state
    const { api } = this.#answererOf(plane)
    // A reset waits for slow clients and destinations, and other requests wait for the reset.
    if (plane.app.control === undefined || path === HEALTH_PATH) return api(request)
    return plane.lock.shared(async () => {
      const { generation } = plane.app
      const response = await api(request)
      if (plane.app.generation === generation) return response
      // Only the deletion of a fork does not wait for the request.
      await closeStream(response)
      return this.#refuseStale(state)
    })
  }

  /** The request asked for data that is gone: neither its answer nor a record of it comes after a reset. */
  #refuseStale(state: RequestState): HttpResponse {
    state.isStale = true
    return this.#fail(staleWorkError(), state.request)
  }

  #fail(error: CofferError, request: HttpRequest): HttpResponse {
    const traceId = this.#base.app.createUuid()
    const response = answerProblem(error, traceId, readHeader(request.headers, 'accept'))
    response.headers[this.#names.traceId] = traceId
    return response
  }

  #answererOf(plane: ControlState): { api: Answerer; control: Answerer } {
    const known = this.#answerers.get(plane)
    if (known !== undefined) return known
    const host = plane.app
    const api = this.#create({
      host,
      observe: (entry, request) => {
        const trace = this.#traces.get(request)
        if (trace !== undefined) trace.entry = entry
      },
      authenticate: async (_, given, { request, allowsCached }) => {
        const caller = await authenticate(host, given, { allowsCached })
        const trace = this.#traces.get(request)
        return trace === undefined ? caller : recordDecisions(caller, trace.decisions, MOST_DECISIONS)
      },
    })
    const control = this.#create({
      host,
      registry: { ...registry, routed: registry.controls },
      authenticate: async (_, given) => {
        if (this.#key !== undefined && host.isEqualSecret(given, this.#key))
          return host.owner({ reveal: false })
        throw new CofferError('unauthenticated', 'This is not the control key, which coffer serve prints.')
      },
      cors: false,
      rate: undefined,
    })
    const made = { api, control }
    this.#answerers.set(plane, made)
    return made
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

/** The text of a body; empty if the body does not arrive, which the operation then answers as an error. */
async function textOf(body: Promise<Uint8Array | undefined> | undefined): Promise<string> {
  return Buffer.from((await body?.catch(() => undefined)) ?? []).toString('utf8')
}
