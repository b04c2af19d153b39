import type { Problem } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { ResponseLimits } from '../../framework/limits.js'
import type { OwnCall } from '../../framework/ports/own-server.js'
import type { HttpRequest, HttpResponse } from '../exchange.js'
import type { RelayMatch } from '../router.js'

/** A request and the results of earlier steps. Each step sets members that later steps read. */
export class Exchange {
  readonly request: HttpRequest
  readonly path: string
  readonly search: string
  traceId = ''
  /** The pattern of the route, for the access log; `-` until it is known. */
  route = '-'
  /** The name of the operation, for metrics; undefined until it is known. */
  operationName: string | undefined
  relayed: RelayMatch | undefined
  describeError: ((problem: Problem) => object) | undefined
  /** Finds the caller. If `identify` is absent, the caller is found by the API key of the request. */
  identify: (() => Promise<Caller>) | undefined
  /** The run whose code sends this request. */
  ofRun: (Pick<OwnCall, 'asRun' | 'outer'> & { limits: ResponseLimits }) | undefined
  /** Receives the caller before it is authorized, and returns the caller to authorize. */
  watchCaller: ((caller: Caller) => Caller) | undefined
  applicationId: string | undefined
  isNoReveal = false
  isForPages = false

  constructor(request: HttpRequest) {
    const { path, search } = splitTarget(request.target)
    this.request = request
    this.path = path
    this.search = search
  }
}

/** Answers an exchange. Each implementation documents whether it rejects. */
export type Answer<E extends Exchange = Exchange> = (exchange: E) => Promise<HttpResponse>

/** Answers the exchange, or calls `next` and may change the response of `next`. */
export type Step<E extends Exchange = Exchange> = (exchange: E, next: Answer<E>) => Promise<HttpResponse>

export function inOrder<E extends Exchange>(steps: readonly Step<E>[], last: Answer<E>): Answer<E> {
  return steps.reduceRight<Answer<E>>((next, step) => (exchange) => step(exchange, next), last)
}

/** Path and query of the request target, which can be an absolute URL (RFC 9112, 3.2.2). */
function splitTarget(target: string): { path: string; search: string } {
  const rest = target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  const at = rest.indexOf('?')
  if (at === -1) return { path: rest || '/', search: '' }
  return { path: rest.slice(0, at) || '/', search: rest.slice(at + 1) }
}
