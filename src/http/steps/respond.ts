/** The outermost step of a service: turns errors into problem documents, adds common headers, writes the access log. */
import { CofferError } from '../../errors.js'
import { ALL_METHODS, answerProblem, type HttpResponse } from '../exchange.js'
import { answerPreflight, createCorsHeaders, headerNames, readHeader, readTraceId } from '../headers.js'
import type { AnswererOptions } from '../options.js'
import type { Exchange, Step } from './step.js'

type Options = Pick<AnswererOptions, 'host' | 'prefix' | 'cors' | 'record' | 'reportFault' | 'clock'>

const RETRY_SECONDS = '1'

/** Never rejects. */
export function respond(options: Options): Step {
  const { host, prefix, cors, record, clock } = options
  const names = headerNames(prefix)
  const corsHeaders = createCorsHeaders(prefix)
  const refuse = createRefusal(options)
  return async (exchange, next) => {
    const started = clock()
    exchange.traceId = readTraceId(exchange.request, names) ?? host.createUuid()
    exchange.isForPages = cors
    let answer: HttpResponse
    try {
      answer = await next(exchange)
    } catch (error) {
      answer = refuse(exchange, error)
    }
    const { traceId, route, operationName: operation, applicationId, isNoReveal, isForPages } = exchange
    answer.headers[names.traceId] = traceId
    if (isNoReveal) answer.headers[names.noReveal] = 'true'
    if (isForPages) Object.assign(answer.headers, corsHeaders)
    const { status } = answer
    record?.({
      method: exchange.request.method,
      route,
      operation,
      status,
      ms: clock() - started,
      traceId,
      applicationId,
    })
    return answer
  }
}

function createRefusal({ prefix, cors, reportFault }: Options) {
  const apiKey = headerNames(prefix).apiKey.toUpperCase()
  return (exchange: Exchange, error: unknown): HttpResponse => {
    const known = error instanceof CofferError ? error : undefined
    // Answers a preflight, so that a web page can send its request and read that the path is not emulated.
    const isOfPage = known?.code === 'not_emulated' && cors
    const preflight = isOfPage ? answerPreflight(exchange.request, ALL_METHODS) : undefined
    if (preflight !== undefined) return preflight
    const isOfStorage = known?.code === 'storage_failed' || known?.code.startsWith('vault_') === true
    const answer = describeProblem(exchange, known !== undefined && isOfStorage ? hideReason(known) : error)
    // RFC 9110, 11.6.1: a 401 says how to authenticate.
    if (answer.status === 401) answer.headers['www-authenticate'] = `ApiKey name="${apiKey}"`
    if (known?.retryAfterSeconds !== undefined)
      answer.headers['retry-after'] = String(known.retryAfterSeconds)
    else if (answer.status === 503) answer.headers['retry-after'] = RETRY_SECONDS
    if (known === undefined || known.code === 'internal' || isOfStorage)
      reportFault?.(error, exchange.traceId)
    return answer
  }
}

export function refuseMethod(exchange: Exchange, allow: string, cors: boolean): HttpResponse {
  const preflight = cors ? answerPreflight(exchange.request, allow) : undefined
  if (preflight !== undefined) return preflight
  const error = new CofferError('method_not_allowed', `This path takes ${allow}.`)
  const answer = describeProblem(exchange, error)
  answer.headers.allow = allow
  return answer
}

function describeProblem({ request, traceId, describeError }: Exchange, error: unknown): HttpResponse {
  return answerProblem(error, traceId, readHeader(request.headers, 'accept'), describeError)
}

/**
 * Callers must not read the file names that the message can contain. The operator reads the whole message in the log.
 */
function hideReason(error: CofferError): CofferError {
  const { code, status } = error
  const message =
    error.toCallers ?? 'The server cannot read or write its vault. The log of the server has the reason.'
  return new CofferError(code, message, { status, cause: error })
}
