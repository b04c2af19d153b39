import { formatDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { recordDecisions } from '../../framework/caller/decisions.js'
import type { Registry } from '../../framework/registry.js'
import { type HeaderNames, headerNames } from '../../http/headers.js'
import { createRouter } from '../../http/router.js'
import { knownOf, queryNames, redactBody, redactResponse } from '../requests.js'
import { listNames } from '../shape.js'
import { keepBody, textOf } from './body.js'
import type { VaultExchange, VaultStep } from './exchange.js'

const MAX_DECISIONS = 20

export function recordRequest(prefix: string, registry: Registry): VaultStep {
  const names = headerNames(prefix)
  const router = createRouter(registry)
  let shown: ReadonlySet<string> | undefined
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
    shown ??= listNames(registry.operations)
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
        ...describeKey(exchange, response.status, names.apiKey),
        proxy_header: nameProxyHeader(exchange, names),
        query: queryNames(search, operation),
        fault: exchange.fault,
        request: redactBody(await textOf(sent()), shown, knownOf(operation, 'input')),
        decisions: decisions.size === 0 ? undefined : [...decisions.values()],
        answer: redactResponse(response, operation, shown),
      }),
    })
    return response
  }
}

/** Returns the name of the header even if the key of the proxy is in the query, because both have the same meaning. */
function nameProxyHeader({ relayed, request, search }: VaultExchange, { proxyKey, proxyUrl }: HeaderNames) {
  if (relayed === undefined) return undefined
  const sent = { [proxyKey]: new URLSearchParams(search).get(proxyKey) ?? undefined, ...request.headers }
  return [proxyKey, proxyUrl].find((name) => sent[name] !== undefined)?.toUpperCase()
}

const KEY_HEADER = /^[a-z][a-z0-9]{0,19}-api-key$/

/**
 * Describes the key of a request without its value. `key_header` may name a header with another prefix, which the
 * server does not read.
 */
function describeKey({ request, applicationId, fault }: VaultExchange, status: number, read: string) {
  const sent = Object.keys(request.headers).filter((name) => KEY_HEADER.test(name))
  const named = omitUndefined({ key_header: (sent.find((name) => name === read) ?? sent[0])?.toUpperCase() })
  if (applicationId !== undefined) return named
  const isExamined = fault === undefined && (status === 401 || !sent.includes(read))
  if (!isExamined) return { ...named, key_state: 'not_examined' } as const
  return { ...named, key_state: sent.includes(read) ? 'unknown' : 'none' } as const
}
