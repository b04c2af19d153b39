import { setTimeout } from 'node:timers/promises'
import { isObject, tryJson } from '../../domain/json/json.js'
import type { Build } from '../../domain/reactor/state.js'
import type { FaultRule } from '../../framework/ports/control.js'
import type { HttpResponse } from '../../http/exchange.js'
import { readHeader } from '../../http/headers.js'
import { DEFAULT_BODY_LIMIT_BYTES } from '../../http/server.js'
import { SERVICE_STATUS, serviceFault } from '../../operations/3ds/service-error.js'
import { closeStream, cutStream, problemOf, titleByStatus, watchDestination } from '../faults.js'
import { textOf } from './body.js'
import type { VaultExchange, VaultStep } from './exchange.js'
import type { Refusal } from './refuse.js'

export function applyFaults({ refuse, refuseStale }: Refusal): VaultStep {
  return async (exchange, next) => {
    if (!exchange.isWatched) return next(exchange)
    const { control, request, relayed, destination } = exchange
    const rules = await chooseRules(exchange)
    exchange.fault = rules.at(-1)?.kind
    if (relayed !== undefined) {
      const { destination: fault } = rules.find(({ kind }) => kind === 'destination') ?? {}
      request.outboundWrapper = watchDestination(fault, destination)
    }
    request.provision = findProvision(rules)
    const { generation } = control.app
    for (const { kind, delay_ms = 0 } of rules) if (kind === 'delay') await setTimeout(delay_ms)
    if (control.app.generation !== generation) return refuseStale(exchange)
    const rule = rules.find(({ kind }) => !PASSED_ON.includes(kind))
    if (rule === undefined) return next(exchange)
    if (rule.kind !== 'drop' && rule.kind !== 'status') return cut(await next(exchange), rule)
    const isOfService = rule.status === SERVICE_STATUS && exchange.operation?.noun === '3ds'
    const problem = isOfService ? serviceFault(exchange.path, rule.detail) : problemOf(rule)
    const response = refuse(problem, request)
    if (!isOfService) titleByStatus(response)
    if (rule.retry_after !== undefined) response.headers['retry-after'] = String(rule.retry_after)
    return rule.kind === 'drop' ? { ...response, cutAt: 'start' } : response
  }
}

/** With these kinds of faults, the server still runs the request. */
const PASSED_ON: readonly FaultRule['kind'][] = ['delay', 'destination', 'provision']

function findProvision(rules: readonly FaultRule[]): Build | undefined {
  const rule = rules.find(({ kind }) => kind === 'provision')
  if (rule === undefined) return undefined
  const { delay_ms = 0, error_code: code, error_message: message, error_details: details } = rule
  const given = isObject(details) ? { details } : {}
  const error = code === undefined ? undefined : { code, message: message ?? NO_REASON, ...given }
  return { delayMs: delay_ms, error }
}

const NO_REASON = 'A fault rule of the control plane caused this failure.'

function chooseRules(exchange: VaultExchange): Promise<FaultRule[]> {
  const { control, request, operation, path, relayed } = exchange
  return control.faults.choose({
    operation: operation?.name,
    method: request.method,
    path,
    isRelayed: relayed !== undefined,
    header: (name) => readHeader(request.headers, name),
    // A form is not read here, because the operation reads it in pieces.
    body: async () =>
      operation?.http?.body?.form === undefined
        ? tryJson(await textOf(request.readBody(DEFAULT_BODY_LIMIT_BYTES)))
        : undefined,
  })
}

async function cut(response: HttpResponse, { kind, bytes }: FaultRule): Promise<HttpResponse> {
  if (kind === 'lose') {
    await closeStream(response)
    response.cutAt = 'start'
  } else if (response.stream !== undefined) response.stream = cutStream(response.stream, bytes ?? 0)
  else response.cutAt = bytes ?? Math.floor((response.bytes ?? response.body).length / 2)
  return response
}
