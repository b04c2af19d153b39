/** The control plane and the dashboard, both for this machine alone; forks, records of requests, faults. */
import { setTimeout } from 'node:timers/promises'
import { formatDate } from '../domain/dates.js'
import { ACCEPT_PATH } from '../domain/invitation/invitation.js'
import { tryJson } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError } from '../errors.js'
import { authenticate, readApplicationCaller } from '../framework/caller/authenticate.js'
import { type ExplainedDecision, recordDecisions } from '../framework/caller/decisions.js'
import { CONTROL_PATH } from '../framework/operation.js'
import type { FaultRule, RequestRecord } from '../framework/ports/control.js'
import { staleWorkError } from '../framework/unit.js'
import { type Answerer, splitTarget } from '../http/answerer.js'
import { answerProblem, HEALTH_PATH, type HttpRequest, type HttpResponse } from '../http/exchange.js'
import { type HeaderNames, headerNames, readHeader } from '../http/headers.js'
import { createRouter } from '../http/router.js'
import { DEFAULT_BODY_LIMIT_BYTES } from '../http/server.js'
import { answererFactory, type CreateAnswerer, type ServiceOptions } from '../http/start.js'
import { registry } from '../operations/all.js'
import { DeadLink, inspectLink } from '../operations/invite/accept-invitation.js'
import { VERSION } from '../version.js'
import type { ControlState } from './control-state.js'
import { DASHBOARD_PATH, type Dashboard, isOwnOrigin, whyRemote } from './dashboard.js'
import { closeStream, cutStream, problemOf, titleByStatus, watchDestination } from './faults.js'
import type { SendRequest } from './page-work.js'
import { knownOf, queryNames, redactBody, redactResponse } from './requests.js'

export interface MiddlewareOptions {
  control: ControlState
  /** The key of the control plane, if requests can reach that. */
  key?: string | undefined
  dashboard?: Dashboard | undefined
  prefix: string
}

/** A request on its way to `control`, the vault of the server or a fork. */
interface RequestState {
  request: HttpRequest
  readonly path: string
  readonly search: string
  readonly control: ControlState
  /** The page sends it, with the grants of this application instead of a key. */
  readonly application?: { id: string; tenant: number } | undefined
  /** The data was replaced while the request was under way. */
  isStale?: true
  applicationId?: string | undefined
  readonly decisions: Map<string, ExplainedDecision>
}

const MAX_DECISIONS = 20
const LOCAL_ONLY =
  'The control plane answers its own machine only, at http://localhost or a loopback address, without a proxy.'

/** A browser that shows the page asks for them. */
const PAGE_PATHS = ['/', '/openapi.json', '/favicon.ico']

const FORK_PATH = new RegExp(`^${CONTROL_PATH}/forks/([^/]+)(/.+)$`)

export type VaultServiceOptions = Omit<ServiceOptions, 'registry' | 'authenticate' | 'version' | 'host'>

/** Answers for the vault of `options.control`; with `allowHosts`, for these and other usual hosts alone. */
export function createVaultAnswerer(
  given: VaultServiceOptions,
  options: MiddlewareOptions,
  allowHosts?: readonly string[],
): Answerer {
  const service = { ...given, host: options.control.app, registry, authenticate, version: VERSION }
  return new ControlMiddleware(options, answererFactory(service, allowHosts), given.record).answer
}

class ControlMiddleware {
  readonly #options: MiddlewareOptions
  readonly #create: CreateAnswerer
  readonly #writeLog: VaultServiceOptions['record'] | undefined
  readonly #names: HeaderNames
  readonly #answerDashboard: Answerer | undefined
  readonly #router = createRouter(registry)
  readonly #answerers = new WeakMap<ControlState, { api: Answerer; control: Answerer }>()
  readonly #states = new WeakMap<HttpRequest, RequestState>()

  constructor(
    options: MiddlewareOptions,
    create: CreateAnswerer,
    writeLog: VaultServiceOptions['record'] | undefined,
  ) {
    const { control, dashboard, prefix } = options
    this.#options = options
    this.#create = create
    this.#writeLog = writeLog
    this.#names = headerNames(prefix)
    const noOperations = { ...registry, operations: [], routed: [] }
    const pages = { host: control.app, registry: noOperations, cors: false, record: undefined }
    this.#answerDashboard = dashboard && create({ ...pages, ...dashboard.handlers(this.#send) })
  }

  readonly answer: Answerer = (request) => {
    const { control: base, key } = this.#options
    const { path, search } = splitTarget(request.target)
    if (key !== undefined && isBelow(path, CONTROL_PATH)) return this.#answerControl(request, path)
    if (this.#answerDashboard !== undefined && isBelow(path, DASHBOARD_PATH))
      return this.#answerDashboard(request)
    // Without a control plane and a dashboard nobody can see records or set faults.
    const pass = (control: ControlState) => {
      const state: RequestState = { request, path, search, control, decisions: new Map() }
      const isWatched = control.app.control !== undefined || this.#options.dashboard?.isWatched() === true
      const isSeen = isWatched && !PAGE_PATHS.includes(path)
      return isSeen ? this.#record(state) : this.#perform(state)
    }
    return base.forks.size === 0 ? pass(base) : this.#chooseFork(request, path, search).then(pass)
  }

  /** It is recorded, limited and explained as any other request. */
  readonly #send: SendRequest = async (control, request, application) => {
    const decisions: RequestState['decisions'] = new Map()
    const state = { request, ...splitTarget(request.target), control, decisions, application }
    await closeStream(await this.#record(state))
  }

  async #answerControl(request: HttpRequest, path: string): Promise<HttpResponse> {
    const { control: base } = this.#options
    const started = performance.now()
    try {
      const remote = whyRemote(request)
      if (remote !== undefined)
        throw new CofferError('forbidden', `${LOCAL_ONLY} This request is refused: ${remote}.`)
      if (!isOwnOrigin(request))
        throw new CofferError('forbidden', 'Pages of other origins may not use the control plane.')
      const [, id, rest] = FORK_PATH.exec(path) ?? []
      if (id === undefined || rest === undefined) return await this.#answererOf(base).control(request)
      request.target = `${CONTROL_PATH}${rest}${request.target.slice(request.target.indexOf(path) + path.length)}`
      return await this.#answererOf(base.findFork(id)).control(request)
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      const answer = this.#fail(error, request)
      const { method } = request
      const { status } = answer
      const traceId = answer.headers[this.#names.traceId] ?? ''
      this.#writeLog?.({ method, route: CONTROL_PATH, status, ms: performance.now() - started, traceId })
      return answer
    }
  }

  /** Forks are known by their keys and by the links in their mail. */
  async #chooseFork(request: HttpRequest, path: string, search: string): Promise<ControlState> {
    const { control: base } = this.#options
    const key = readHeader(request.headers, this.#names.apiKey)
    const link = new URLSearchParams(search).get('token') ?? ''
    const forks = [...base.forks.values()]
    /** A fork that was deleted meanwhile is closed. */
    const isThere = (fork: ControlState) => fork === base || base.forks.get(fork.fact?.id ?? '') === fork
    if (path === ACCEPT_PATH) {
      for (const each of [base, ...forks]) {
        const found = await inspectLink(each.app, link).catch((error: unknown) => error)
        if (!(found instanceof DeadLink && found.reason === 'unknown') && isThere(each)) return each
      }
      return base
    }
    for (const fork of key === undefined ? [] : forks) {
      try {
        await authenticate(fork.app, key!)
        return fork
      } catch (error) {
        const isUnknown = error instanceof CofferError && error.code === 'unauthenticated'
        if (!isUnknown && isThere(fork)) throw error
      }
    }
    return base
  }

  async #record(state: RequestState): Promise<HttpResponse> {
    const { path, search, control, request, decisions } = state
    const { method, headers } = request
    const started = performance.now()
    const relayed = this.#router.findRelay(path)
    const operation = relayed?.operation ?? this.#router.find(method, path)
    let sent: Promise<Uint8Array | undefined> | undefined
    const read = request.readBody.bind(request)
    const readBody = (limitBytes: number) => (sent ??= read(limitBytes))
    request.readBody = readBody
    this.#states.set(request, state)
    const rules = await control.faults.choose({
      operation: operation?.name,
      method,
      path,
      isRelayed: relayed !== undefined,
      header: (name) => readHeader(headers, name),
      body: async () => tryJson(await textOf(readBody(DEFAULT_BODY_LIMIT_BYTES))),
    })
    const destination: Pick<RequestRecord, 'destination' | 'destination_status'> = {}
    if (relayed !== undefined) {
      const { destination: fault } = rules.find(({ kind }) => kind === 'destination') ?? {}
      request.outboundWrapper = watchDestination(fault, destination)
    }
    const response = await (rules.length === 0 ? this.#perform(state) : this.#applyFaults(state, rules))
    if (state.isStale) return response
    const leftOut = response.status === 501 ? this.#router.findLeftOut(path) : undefined
    if (leftOut !== undefined) control.requests.addNotEmulated(method, path, leftOut)
    control.requests.add({
      method,
      path,
      status: response.cutAt === 'start' ? 0 : response.status,
      trace_id: response.headers[this.#names.traceId] ?? '',
      at: formatDate(control.now()),
      ms: Math.round((performance.now() - started) * 100) / 100,
      ...destination,
      ...omitUndefined({
        operation: operation?.name,
        application_id: state.applicationId,
        query: queryNames(search, operation),
        fault: rules.at(-1)?.kind,
        request: redactBody(await textOf(sent), knownOf(operation, 'input')),
        decisions: decisions.size === 0 ? undefined : [...decisions.values()],
        answer: redactResponse(response, operation),
      }),
    })
    return response
  }

  async #applyFaults(state: RequestState, rules: readonly FaultRule[]): Promise<HttpResponse> {
    const { control, request } = state
    const { generation } = control.app
    for (const { kind, delay_ms = 0 } of rules) if (kind === 'delay') await setTimeout(delay_ms)
    if (control.app.generation !== generation) return this.#refuseStale(state)
    const rule = rules.find(({ kind }) => kind !== 'delay' && kind !== 'destination')
    if (rule === undefined) return this.#perform(state)
    const { kind, bytes, retry_after } = rule
    if (kind === 'drop' || kind === 'status') {
      const response = this.#fail(problemOf(rule), request)
      titleByStatus(response)
      if (retry_after !== undefined) response.headers['retry-after'] = String(retry_after)
      return kind === 'drop' ? { ...response, cutAt: 'start' } : response
    }
    const response = await this.#perform(state)
    if (kind === 'lose') {
      await closeStream(response)
      response.cutAt = 'start'
    } else if (response.stream !== undefined) response.stream = cutStream(response.stream, bytes ?? 0)
    else response.cutAt = bytes ?? Math.floor((response.bytes ?? response.body).length / 2)
    return response
  }

  #perform(state: RequestState): Promise<HttpResponse> {
    const { control, request, path } = state
    const { api } = this.#answererOf(control)
    // A reset waits for slow clients and destinations, and other requests wait for the reset.
    if (control.app.control === undefined || path === HEALTH_PATH) return api(request)
    return control.lock.shared(async () => {
      const { generation } = control.app
      const response = await api(request)
      if (control.app.generation === generation) return response
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
    const traceId = this.#options.control.app.createUuid()
    const response = answerProblem(error, traceId, readHeader(request.headers, 'accept'))
    response.headers[this.#names.traceId] = traceId
    return response
  }

  #answererOf(control: ControlState): { api: Answerer; control: Answerer } {
    const known = this.#answerers.get(control)
    if (known !== undefined) return known
    const { app: host } = control
    const { key } = this.#options
    const made = {
      api: this.#create({
        host,
        observe: ({ applicationId }, request) => {
          const state = this.#states.get(request)
          if (state !== undefined) state.applicationId = applicationId
        },
        authenticate: async (_, given, { request, allowsCached }) => {
          const state = this.#states.get(request)
          const { id, tenant } = state?.application ?? {}
          const caller =
            id === undefined
              ? await authenticate(host, given, { allowsCached })
              : await host.store.read((reader) => readApplicationCaller(reader, tenant!, id))
          return state === undefined ? caller : recordDecisions(caller, state.decisions, MAX_DECISIONS)
        },
      }),
      control: this.#create({
        host,
        registry: { ...registry, routed: registry.controls },
        authenticate: async (_, given) => {
          if (key !== undefined && host.isEqualSecret(given, key)) return host.owner({ reveal: false })
          throw new CofferError('unauthenticated', 'This is not the control key, which coffer serve prints.')
        },
        cors: false,
        rate: undefined,
      }),
    }
    this.#answerers.set(control, made)
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
