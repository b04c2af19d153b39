import { formatDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { recordDecisions } from '../../framework/caller/decisions.js'
import { headerNames } from '../../http/headers.js'
import type { Router } from '../../http/router.js'
import { knownOf, queryNames, redactBody, redactResponse } from '../requests.js'
import { keepBody, textOf } from './body.js'
import type { VaultStep } from './exchange.js'

const MAX_DECISIONS = 20

export function recordRequest(prefix: string, router: Router): VaultStep {
  const names = headerNames(prefix)
  return async (exchange, next) => {
    if (!exchange.isWatched) return next(exchange)
    const { path, search, control, request, decisions } = exchange
    const { method } = request
    const started = performance.now()
    exchange.relayed = router.findRelay(path)
    const operation = exchange.relayed?.operation ?? router.find(method, path)
    exchange.operation = operation
    exchange.watchCaller = (caller) => recordDecisions(caller, decisions, MAX_DECISIONS)
    const sent = keepBody(request)
    const response = await next(exchange)
    if (exchange.isStale) return response
    const leftOut = response.status === 501 ? router.findLeftOut(path) : undefined
    if (leftOut !== undefined) control.requests.addNotEmulated(method, path, leftOut)
    control.requests.add({
      method,
      path,
      status: response.cutAt === 'start' ? 0 : response.status,
      trace_id: response.headers[names.traceId] ?? '',
      at: formatDate(control.now()),
      ms: Math.round((performance.now() - started) * 100) / 100,
      ...exchange.destination,
      ...omitUndefined({
        operation: operation?.name,
        application_id: exchange.applicationId,
        query: queryNames(search, operation),
        fault: exchange.fault,
        request: redactBody(await textOf(sent()), knownOf(operation, 'input')),
        decisions: decisions.size === 0 ? undefined : [...decisions.values()],
        answer: redactResponse(response, operation),
      }),
    })
    return response
  }
}
