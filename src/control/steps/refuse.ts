import type { CofferError } from '../../errors.js'
import { staleWorkError } from '../../framework/unit.js'
import { answerProblem, type HttpRequest, type HttpResponse } from '../../http/exchange.js'
import { headerNames, readHeader } from '../../http/headers.js'
import type { VaultExchange } from './exchange.js'

export type Refusal = ReturnType<typeof createRefusal>

/** Answers of the steps before a service is asked. They have a trace id of their own. */
export function createRefusal(prefix: string, createUuid: () => string) {
  const names = headerNames(prefix)
  const refuse = (error: CofferError, request: HttpRequest): HttpResponse => {
    const traceId = createUuid()
    const response = answerProblem(error, traceId, readHeader(request.headers, 'accept'))
    response.headers[names.traceId] = traceId
    return response
  }
  return {
    refuse,
    /** The request asked for data that is gone. After a reset it gets neither an answer with data nor a record. */
    refuseStale(exchange: VaultExchange): HttpResponse {
      exchange.isStale = true
      return refuse(staleWorkError(), exchange.request)
    },
  }
}
