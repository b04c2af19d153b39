import type { CofferError } from '../../errors.js'
import { staleWorkError } from '../../framework/unit.js'
import { answerProblem, type HttpRequest, type HttpResponse } from '../../http/exchange.js'
import { headerNames, readHeader } from '../../http/headers.js'
import type { VaultExchange } from './exchange.js'

export type Refusal = ReturnType<typeof createRefusal>

/** Creates error answers for steps that run before the service creates a trace id. */
export function createRefusal(prefix: string, createUuid: () => string) {
  const names = headerNames(prefix)
  const refuse = (error: CofferError, request: HttpRequest): HttpResponse => {
    const traceId = createUuid()
    const response = answerProblem(error, traceId, readHeader(request.headers, 'accept'))
    response.headers[names.traceId] = traceId
    if (error.retryAfterSeconds !== undefined)
      response.headers['retry-after'] = String(error.retryAfterSeconds)
    return response
  }
  return {
    refuse,
    /** Refuses a request whose vault was reset or deleted. The request is not recorded. */
    refuseStale(exchange: VaultExchange): HttpResponse {
      exchange.isStale = true
      return refuse(staleWorkError(), exchange.request)
    },
  }
}
