import { CofferError } from '../../errors.js'
import { admit, authorizeNow } from '../../framework/caller/authorize.js'
import type { Caller } from '../../framework/caller/caller.js'
import { Content } from '../../framework/content.js'
import { IDEMPOTENCY_KEY } from '../../framework/declaration.js'
import { LOCAL_LIMITS } from '../../framework/limits.js'
import { isOneUnit } from '../../framework/operation.js'
import { perform } from '../../framework/perform.js'
import type { Endpoint } from '../../framework/registry.js'
import { answerContent, answerGiven, answerResult } from '../exchange.js'
import type { FormRequest } from '../forms/receive-form.js'
import { type HeaderNames, headerNames, readHeader } from '../headers.js'
import { readBodyInput, readQuery } from '../input.js'
import type { AnswererOptions } from '../options.js'
import { HttpOrigin } from '../origin.js'
import type { Match, Router } from '../router.js'
import type { Authenticator } from './authenticate.js'
import { refuseMethod } from './respond.js'
import type { Answer } from './step.js'

const ENCODED_LIMITS = { ...LOCAL_LIMITS, wantsEncoded: true }

export function performOperation(
  { host, prefix, bodyLimitBytes, cors }: AnswererOptions,
  router: Router,
  authenticator: Authenticator,
): Answer {
  const names = headerNames(prefix)

  /**
   * If the caller no longer has the permission, returns the refusal instead of the error in the input. Input is
   * validated before the rights of a cached caller are read again.
   */
  const reasonOf = async (error: unknown, caller: Caller, operation: Match['operation']) => {
    if (!(error instanceof CofferError) || error.errors === undefined) return error
    try {
      await host.store.read((reader) => authorizeNow(caller, operation, reader))
      return error
    } catch (refusal) {
      return refusal
    }
  }

  return async (exchange) => {
    const { request, path, search, traceId } = exchange
    const match = router.match(request.method, path)
    if ('allow' in match) return refuseMethod(exchange, match.allow, cors)
    const { operation, parameters } = match
    const { endpoint } = operation
    exchange.route = endpoint.path
    exchange.operationName = operation.name
    const idempotencyKey = readHeader(request.headers, names.idempotencyKey)
    // An operation with one unit of work reads the rights of the caller again in this unit, so the caller may come from
    // the cache.
    const allowsCached = isOneUnit(operation) && idempotencyKey === undefined
    const identified = await authenticator.byKey(exchange, allowsCached)
    // `perform` checks the permission too. This earlier check refuses a forbidden request before the body is read.
    const caller = await admit(host.store, identified, operation)
    const received =
      operation.http?.body?.form && (await receive({ host, caller, operation, request, traceId }))
    const read = endpoint.takesBody && received === undefined
    const body = received?.input ?? (read ? await readBodyInput(request, operation, bodyLimitBytes) : {})
    try {
      const query = readQuery(endpoint, search)
      const input = { ...body, ...query.input, ...parameters() }
      const { ofRun } = exchange
      const limits = ofRun?.limits ?? request.lease ?? ENCODED_LIMITS
      const reachedAt = isOneUnit(operation) ? undefined : readHeader(request.headers, 'host')
      const options = {
        parseErrors: query.parseErrors,
        limits,
        idempotencyKey,
        reachedAt,
        origin: new HttpOrigin(request),
        outer: ofRun?.outer,
        provision: request.provision,
      }
      const outcome = await perform(host, caller, operation, input, traceId, options)
      const { status, headers, result, isReplayed } = outcome
      if (result instanceof Content) return answerContent(status, result, request.method === 'HEAD')
      const answer =
        headers === undefined ? answerResult(status, result) : answerGiven(status, headers, result)
      if (isReplayed) answer.headers[names.replayed] = 'true'
      return answer
    } catch (error) {
      await received?.discard()
      throw renameAsSent(await reasonOf(error, caller, operation), endpoint, names)
    }
  }
}

async function receive(request: FormRequest) {
  return (await import('../forms/receive-form.js')).receiveForm(request)
}

/**
 * Errors use the names that the caller sent: `query.size` instead of `size`, or the name of the header with the
 * idempotency key.
 */
function renameAsSent(error: unknown, { query }: Endpoint, { idempotencyKey }: HeaderNames): unknown {
  if (!(error instanceof CofferError) || error.errors === undefined) return error
  const entries = Object.entries(error.errors).map(([path, messages]) => {
    if (path === IDEMPOTENCY_KEY) return [idempotencyKey.toUpperCase(), messages] as const
    const property = /^[^.[]*/.exec(path)![0]
    return [Object.hasOwn(query, property) ? `query.${path}` : path, messages] as const
  })
  const { code, message, status, mayTellData } = error
  const errors = Object.fromEntries(entries)
  return new CofferError(code, message, { errors, status, mayTellData, cause: error })
}
