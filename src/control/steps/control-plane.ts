import { CofferError } from '../../errors.js'
import { CONTROL_PATH } from '../../framework/declaration.js'
import type { AccessEntry } from '../../http/access-log.js'
import type { HttpRequest, HttpResponse } from '../../http/exchange.js'
import { headerNames, readHeader } from '../../http/headers.js'
import { createHostCheck } from '../../http/steps/check-host.js'
import { type Answer, Exchange } from '../../http/steps/step.js'
import { type ControlKeyOptions, createKeyCheck } from '../control-key.js'
import type { ControlState } from '../control-state.js'
import { isOwnOrigin, whyForwarded, whyRemote } from '../dashboard.js'
import type { VaultStep } from './exchange.js'
import { isBelow } from './paths.js'
import type { Refusal } from './refuse.js'

export interface ControlPlaneOptions extends Pick<Refusal, 'refuse'>, Omit<ControlKeyOptions, 'app'> {
  control: ControlState
  /** In requests from other machines, the header Host may contain these hosts, `localhost` and IP addresses. */
  allowHosts: readonly string[]
  serviceOf(control: ControlState): Answer
  record: ((entry: AccessEntry) => void) | undefined
}

const LOCAL_ONLY =
  'The control plane answers only requests from its own machine, at http://localhost or a loopback address, without a proxy.'
const NOT_FORWARDED = 'The control plane refuses requests that a proxy has forwarded.'

const FORK_PATH = new RegExp(`^${CONTROL_PATH}/forks/([^/]+)(/.+)$`)

/** Answers the paths of the control plane. A path that names a fork reaches the control plane of the fork. */
export function answerControlPlane(options: ControlPlaneOptions): VaultStep {
  const { control, prefix, isForOthers, allowHosts, serviceOf, record, refuse } = options
  const names = headerNames(prefix)
  const requireKey = createKeyCheck({ ...options, app: control.app })
  const checkHost = createHostCheck(control.app, allowHosts)

  /** Checks the sender before the key, so that a web page cannot try keys. */
  const checkSender = async (request: HttpRequest) => {
    const why = isForOthers ? whyForwarded(request) : whyRemote(request)
    if (why !== undefined) {
      const rule = isForOthers ? NOT_FORWARDED : LOCAL_ONLY
      throw new CofferError('forbidden', `${rule} This request is refused: ${why}.`)
    }
    // Browsers omit Origin in some requests from other sites, but mark these requests with Sec-Fetch-Site.
    const site = readHeader(request.headers, 'sec-fetch-site')
    if (!isOwnOrigin(request) || (site !== undefined && site !== 'same-origin' && site !== 'none'))
      throw new CofferError('forbidden', 'Pages of other origins may not use the control plane.')
    if (isForOthers) await checkHost(request)
  }

  const answer = async ({
    request,
    path,
    control: base,
  }: {
    request: HttpRequest
    path: string
    control: ControlState
  }) => {
    await checkSender(request)
    requireKey(request)
    const [, id, rest] = FORK_PATH.exec(path) ?? []
    if (id === undefined || rest === undefined) return serve(base, request)
    const fork = base.findFork(id)
    request.target = `${CONTROL_PATH}${rest}${request.target.slice(request.target.indexOf(path) + path.length)}`
    return serve(fork, request)
  }

  /** The key was checked, so the caller is the owner. */
  const serve = (chosen: ControlState, request: HttpRequest) => {
    const exchange = new Exchange(request)
    exchange.identify = () => chosen.app.owner({ reveal: false })
    return serviceOf(chosen)(exchange)
  }

  const log = (method: string, response: HttpResponse, ms: number) => {
    const { status, headers } = response
    record?.({ method, route: CONTROL_PATH, status, ms, traceId: headers[names.traceId] ?? '' })
  }

  return async (exchange, next) => {
    if (!isBelow(exchange.path, CONTROL_PATH)) return next(exchange)
    const { request } = exchange
    const started = performance.now()
    try {
      return await answer(exchange)
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      const response = refuse(error, request)
      if (response.status === 401)
        response.headers['www-authenticate'] = `ApiKey name="${names.controlKey.toUpperCase()}"`
      log(request.method, response, performance.now() - started)
      return response
    }
  }
}
