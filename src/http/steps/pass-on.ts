import { performRelay } from '../../framework/perform.js'
import { readHeader } from '../headers.js'
import { readWhole } from '../input.js'
import type { AnswererOptions } from '../options.js'
import type { Router } from '../router.js'
import type { Authenticator } from './authenticate.js'
import { refuseMethod } from './respond.js'
import type { Step } from './step.js'

/** Finds the relay of the path. Later errors have the form that clients of the relay expect. */
export function findRelay(router: Router): Step {
  return (exchange, next) => {
    exchange.relayed = router.findRelay(exchange.path)
    exchange.describeError = exchange.relayed?.operation.relay.describeError
    return next(exchange)
  }
}

export function passOn(
  { host, prefix, bodyLimitBytes, cors }: AnswererOptions,
  authenticator: Authenticator,
): Step {
  return async (exchange, next) => {
    if (exchange.relayed === undefined) return next(exchange)
    const { request, search: query, traceId } = exchange
    const { operation, rest: path } = exchange.relayed
    const { relay } = operation
    const { method, outboundWrapper: through } = request
    exchange.route = relay.path
    exchange.operationName = operation.name
    if (!relay.methods.includes(method)) return refuseMethod(exchange, relay.methods.join(', '), cors)
    const headers: Record<string, string> = {}
    for (const name of Object.keys(request.headers)) headers[name] = readHeader(request.headers, name) ?? ''
    const readBody = () => readWhole(request, bodyLimitBytes)
    const left = request.onLeave?.bind(request)
    const relayed = { method, path, query, headers, prefix: prefix.toLowerCase(), readBody, left, through }
    const admitted = await relay.admit(host, relayed)
    const isAdmitted = admitted !== undefined
    const caller = isAdmitted
      ? authenticator.found(exchange, admitted)
      : await authenticator.byKey(exchange, false)
    const reachedAt = readHeader(request.headers, 'host')
    const options = { traceId, isAdmitted, reachedAt, outer: exchange.ofRun?.outer }
    const answer = await performRelay(host, caller, operation, relayed, options)
    const content = answer.whole === undefined ? { stream: answer.body } : { bytes: answer.whole }
    return { status: answer.status, headers: { ...answer.headers }, body: '', ...content }
  }
}
