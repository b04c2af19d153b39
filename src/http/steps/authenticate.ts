import { CofferError } from '../../errors.js'
import { type Caller, noRevealCaller } from '../../framework/caller/caller.js'
import type { HttpRequest } from '../exchange.js'
import { headerNames, readHeader } from '../headers.js'
import type { AnswererOptions } from '../options.js'
import type { Exchange } from './step.js'

export type Authenticator = ReturnType<typeof createAuthenticator>

export function createAuthenticator({
  host,
  prefix,
  authenticate,
  rateLimit,
}: Pick<AnswererOptions, 'host' | 'prefix' | 'authenticate' | 'rateLimit'>) {
  const names = headerNames(prefix)

  /** A header of the request puts the caller into no-reveal mode. The answer repeats this header. */
  const applyNoReveal = (exchange: Exchange, caller: Caller): Caller => {
    exchange.isNoReveal = readHeader(exchange.request.headers, names.noReveal) !== undefined
    return exchange.isNoReveal ? noRevealCaller(caller) : caller
  }

  const requireKey = ({ headers }: HttpRequest): string => {
    const key = readHeader(headers, names.apiKey)
    if (key === undefined || key === '') throw missingKey(names.apiKey, Object.keys(headers))
    return key
  }

  const admit = (exchange: Exchange, { actor }: Caller): void => {
    const { lease } = exchange.request
    exchange.applicationId = actor.id
    if (lease !== undefined) lease.holder = actor.id
    const retryAfterSeconds = rateLimit?.take(actor.id) ?? 0
    if (retryAfterSeconds === 0) return
    const message = `Too many requests. Try again in ${retryAfterSeconds} s.`
    throw new CofferError('rate_limited', message, { retryAfterSeconds })
  }

  /**
   * Code of a run can send another API key instead of the key of the run. The caller with that API key is also marked
   * as code of the run.
   */
  const byHeader = async ({ request, ofRun }: Exchange, allowsCached: boolean): Promise<Caller> => {
    const found = await authenticate(host, requireKey(request), { allowsCached })
    return ofRun?.asRun(found) ?? found
  }

  return {
    /**
     * If `allowsCached` is true, the result can lack changes that another server has made to the rights of the caller.
     * @throws CofferError `unauthenticated`, `rate_limited`
     */
    async byKey(exchange: Exchange, allowsCached: boolean): Promise<Caller> {
      const found = await (exchange.identify?.() ?? byHeader(exchange, allowsCached))
      const caller = applyNoReveal(exchange, exchange.watchCaller?.(found) ?? found)
      if (caller.applicationType !== 'public') exchange.isForPages = false
      admit(exchange, caller)
      return caller
    },

    /**
     * For a caller that a relay has identified without an API key.
     * @throws CofferError `rate_limited`
     */
    found(exchange: Exchange, known: Caller): Caller {
      const caller = applyNoReveal(exchange, exchange.ofRun?.asRun(known) ?? known)
      admit(exchange, caller)
      return caller
    },
  }
}

/**
 * `given`: header names of the request. If the request has a key in a header with another prefix, the error contains
 * the command that starts the server with this prefix.
 */
function missingKey(wanted: string, given: readonly string[]): CofferError {
  const [, prefix] = given.join('\n').match(/^([a-z][a-z\d]{0,19})-api-key$/m) ?? []
  const advice = ` Clients that send ${prefix?.toUpperCase()}-API-KEY need: coffer serve --prefix ${prefix}`
  const message = `Send an API key in the header ${wanted.toUpperCase()}.${prefix === undefined ? '' : advice}`
  return new CofferError('unauthenticated', message)
}
