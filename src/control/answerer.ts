/**
 * Answers all requests to a server: requests to the control plane, the dashboard, the vault, and forks of the
 * vault.
 */
import { CofferError } from '../errors.js'
import { authenticate, readApplicationCaller } from '../framework/caller/authenticate.js'
import { CONTROL_PATH } from '../framework/declaration.js'
import { type Answerer, createAnswerer, createService } from '../http/answerer.js'
import { answerText, JSON_TYPE } from '../http/exchange.js'
import { CONTROL_DOCUMENT_PATH, createControlDocument } from '../http/openapi/control-openapi.js'
import { DEFAULT_BODY_LIMIT_BYTES, DEFAULT_PREFIX } from '../http/server.js'
import { completeService, type ServiceOptions } from '../http/service.js'
import { type Answer, inOrder } from '../http/steps/step.js'
import { registry } from '../operations/all.js'
import { VERSION } from '../version.js'
import type { ControlState } from './control-state.js'
import { DASHBOARD_PATH, type Dashboard } from './dashboard.js'
import { closeStream } from './faults.js'
import { createMetrics, METRICS_TYPE } from './metrics.js'
import type { SendRequest } from './page-work.js'
import { RequestCounts } from './request-counts.js'
import { applyFaults } from './steps/apply-faults.js'
import { chooseFork } from './steps/choose-fork.js'
import { answerControlPlane } from './steps/control-plane.js'
import { VaultExchange, type VaultStep } from './steps/exchange.js'
import { holdData } from './steps/hold-data.js'
import { isBelow } from './steps/paths.js'
import { recordRequest } from './steps/record-request.js'
import { createRefusal } from './steps/refuse.js'

export type VaultServiceOptions = Omit<
  ServiceOptions,
  'registry' | 'authenticate' | 'version' | 'host' | 'allowHosts'
>

export interface VaultAnswererOptions {
  control: ControlState
  /** The control key. Undefined: no request can reach the control plane. */
  key?: string | undefined
  /** Whether other machines may use the control plane. Default: false. */
  isKeyForOthers?: boolean | undefined
  dashboard?: Dashboard | undefined
  prefix: string
  allowHosts?: readonly string[] | undefined
}

const METRICS_PATH = `${CONTROL_PATH}/metrics`

/** Browsers request these paths to show the page. These requests are not recorded, and no faults are applied to them. */
const PAGE_PATHS = ['/', '/openapi.json', '/favicon.ico']

export function createVaultAnswerer(given: VaultServiceOptions, options: VaultAnswererOptions): Answerer {
  return createVaultService(given, options).answerer
}

/** `answerOwn` answers requests of reactor code, which reach neither the control plane nor the dashboard. */
export function createVaultService(
  given: VaultServiceOptions,
  { control, key, isKeyForOthers: isForOthers = false, dashboard, prefix, allowHosts }: VaultAnswererOptions,
): { answerer: Answerer; answerOwn: Answer<VaultExchange> } {
  const requests = new RequestCounts()
  // Without a control plane, nobody can read metrics, so nothing is counted.
  const record = key === undefined ? given.record : recordBoth(requests.add, given.record)
  const service = {
    ...given,
    record,
    host: control.app,
    prefix,
    registry,
    authenticate,
    version: VERSION,
    allowHosts,
  }
  const services = createServices(service, requests)
  const refusal = createRefusal(prefix, control.app.createUuid)

  const recorded = [recordRequest(prefix, registry), applyFaults(refusal), holdData(refusal)]
  const answerVault: Answer<VaultExchange> = (exchange) => services.vaultOf(exchange.control)(exchange)

  const plane = { control, prefix, isForOthers, allowHosts: allowHosts ?? [], record, refuse: refusal.refuse }
  const controlPlane =
    key === undefined ? [] : [answerControlPlane({ ...plane, key, serviceOf: services.controlPlaneOf })]
  const page =
    dashboard === undefined
      ? []
      : [answerDashboard(service, dashboard, sendThrough(inOrder(recorded, answerVault)))]

  const answer = inOrder(
    [...controlPlane, ...page, chooseFork(prefix), watch(dashboard), ...recorded],
    answerVault,
  )
  // Requests of reactor code skip `holdData`. A reset waits for the call that started the run, and this call waits for
  // the code. If the code also waited for the reset, all three would wait forever.
  const answerOwn = inOrder(
    [watch(dashboard), recordRequest(prefix, registry), applyFaults(refusal)],
    answerVault,
  )
  return { answerer: (request) => answer(new VaultExchange(request, control)), answerOwn }
}

/** Requests are recorded, and faults are applied, only if the vault has a control plane or the dashboard is watched. */
function watch(dashboard: Dashboard | undefined): VaultStep {
  return (exchange, next) => {
    const isSeen = exchange.control.app.control !== undefined || dashboard?.isWatched() === true
    exchange.isWatched = isSeen && !PAGE_PATHS.includes(exchange.path)
    return next(exchange)
  }
}

function answerDashboard(service: ServiceOptions, dashboard: Dashboard, send: SendRequest): VaultStep {
  const noOperations = { ...registry, operations: [], routed: [] }
  const pages = { registry: noOperations, cors: false, record: undefined }
  const { bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES } = service
  const handlers = dashboard.handlers(send, bodyLimitBytes)
  const answer = createAnswerer(completeService({ ...service, ...pages, ...handlers }))
  return (exchange, next) =>
    isBelow(exchange.path, DASHBOARD_PATH) ? answer(exchange.request) : next(exchange)
}

/** Sends the requests of the page through the steps `recorded`. */
function sendThrough(answer: Answer<VaultExchange>): SendRequest {
  return async (control, request, application) => {
    const exchange = new VaultExchange(request, control)
    exchange.isWatched = true
    if (application !== undefined) {
      const { tenant, id } = application
      exchange.identify = () => control.app.store.read((reader) => readApplicationCaller(reader, tenant, id))
    }
    await closeStream(await answer(exchange))
  }
}

type RecordEntry = NonNullable<ServiceOptions['record']>

function recordBoth(one: RecordEntry, other: RecordEntry | undefined): RecordEntry {
  if (other === undefined) return one
  return (entry) => {
    one(entry)
    other(entry)
  }
}

function createServices(service: ServiceOptions, requests: RequestCounts) {
  const { version, prefix = DEFAULT_PREFIX } = service
  const describe = () => JSON.stringify(createControlDocument(registry, { version, prefix }))
  const create = (changes: Partial<ServiceOptions>) =>
    createService(completeService({ ...service, ...changes }))
  return {
    vaultOf: remember(({ app: host }) => create({ host })),
    controlPlaneOf: remember(({ app: host }) => {
      const metrics = createMetrics(host, requests)
      return create({
        host,
        pages: new Map([
          [METRICS_PATH, async () => answerText(200, METRICS_TYPE, await metrics())],
          [CONTROL_DOCUMENT_PATH, async () => answerText(200, JSON_TYPE, describe())],
        ]),
        registry: { ...registry, routed: registry.controls },
        // Never called, because `answerControlPlane` checks the control key and sets `identify`.
        authenticate: async () => {
          throw new CofferError('unauthenticated', 'The control plane accepts only its own key.')
        },
        cors: false,
        rate: undefined,
      })
    }),
  }
}

function remember(make: (control: ControlState) => Answer): (control: ControlState) => Answer {
  const made = new WeakMap<ControlState, Answer>()
  return (control) => {
    const known = made.get(control) ?? make(control)
    made.set(control, known)
    return known
  }
}
