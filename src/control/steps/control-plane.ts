import { CofferError } from '../../errors.js'
import { CONTROL_PATH } from '../../framework/declaration.js'
import type { AccessEntry } from '../../http/access-log.js'
import type { HttpRequest, HttpResponse } from '../../http/exchange.js'
import { headerNames } from '../../http/headers.js'
import { type Answer, Exchange } from '../../http/steps/step.js'
import type { ControlState } from '../control-state.js'
import { isOwnOrigin, whyRemote } from '../dashboard.js'
import type { VaultStep } from './exchange.js'
import { isBelow } from './paths.js'
import type { Refusal } from './refuse.js'

export interface ControlPlaneOptions extends Pick<Refusal, 'refuse'> {
  prefix: string
  serviceOf(control: ControlState): Answer
  record: ((entry: AccessEntry) => void) | undefined
}

const LOCAL_ONLY =
  'The control plane answers its own machine only, at http://localhost or a loopback address, without a proxy.'

const FORK_PATH = new RegExp(`^${CONTROL_PATH}/forks/([^/]+)(/.+)$`)

/** Answers the paths of the control plane. If the path names a fork, the fork's own control plane answers. */
export function answerControlPlane({ prefix, serviceOf, record, refuse }: ControlPlaneOptions): VaultStep {
  const names = headerNames(prefix)

  const answer = ({
    request,
    path,
    control: base,
  }: {
    request: HttpRequest
    path: string
    control: ControlState
  }) => {
    const remote = whyRemote(request)
    if (remote !== undefined)
      throw new CofferError('forbidden', `${LOCAL_ONLY} This request is refused: ${remote}.`)
    if (!isOwnOrigin(request))
      throw new CofferError('forbidden', 'Pages of other origins may not use the control plane.')
    const [, id, rest] = FORK_PATH.exec(path) ?? []
    if (id === undefined || rest === undefined) return serviceOf(base)(new Exchange(request))
    const fork = base.findFork(id)
    request.target = `${CONTROL_PATH}${rest}${request.target.slice(request.target.indexOf(path) + path.length)}`
    return serviceOf(fork)(new Exchange(request))
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
      log(request.method, response, performance.now() - started)
      return response
    }
  }
}
