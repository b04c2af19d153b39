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
  /** For the access log. `-` until the route is known. */
  route = '-'
  /** For metrics. Undefined until the operation is known. */
  operationName: string | undefined
  relayed: RelayMatch | undefined
  describeError: ((problem: Problem) => object) | undefined
  /** Undefined: the API key of the request identifies the caller. */
  identify: (() => Promise<Caller>) | undefined
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

export type Step<E extends Exchange = Exchange> = (exchange: E, next: Answer<E>) => Promise<HttpResponse>

export function inOrder<E extends Exchange>(steps: readonly Step<E>[], last: Answer<E>): Answer<E> {
  return steps.reduceRight<Answer<E>>((next, step) => (exchange) => step(exchange, next), last)
}

/** The target can be an absolute URL (RFC 9112, 3.2.2). */
function splitTarget(target: string): { path: string; search: string } {
  const rest = target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  const at = rest.indexOf('?')
  if (at === -1) return { path: rest || '/', search: '' }
  return { path: rest.slice(0, at) || '/', search: rest.slice(at + 1) }
}
