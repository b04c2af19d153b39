/** One request on its way through the steps that answer it, and the list of those steps. */
import type { Problem } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { HttpRequest, HttpResponse } from '../exchange.js'
import type { RelayMatch } from '../router.js'

/** A request, with what the steps have found out about it. An earlier step sets what later steps read. */
export class Exchange {
  readonly request: HttpRequest
  readonly path: string
  /** The query, without its question mark. */
  readonly search: string
  traceId = ''
  /** The pattern of the route, for the access log; `-` until it is known. */
  route = '-'
  /** The relay that the path belongs to. */
  relayed: RelayMatch | undefined
  /** Puts a problem document into the form that the clients of a relay expect. */
  describeError: ((problem: Problem) => object) | undefined
  /** Finds the caller. Without it, the API key of the request does. */
  identify: (() => Promise<Caller>) | undefined
  /** Receives the caller before it is authorized, and returns the caller that acts. */
  watchCaller: ((caller: Caller) => Caller) | undefined
  /** The calling application, after it was authenticated. */
  applicationId: string | undefined
  isNoReveal = false
  /** Whether web pages of other origins may read the answer. */
  isForPages = false

  constructor(request: HttpRequest) {
    const { path, search } = splitTarget(request.target)
    this.request = request
    this.path = path
    this.search = search
  }
}

/** Answers an exchange. Rejects only where the caller's documentation says so. */
export type Answer<E extends Exchange = Exchange> = (exchange: E) => Promise<HttpResponse>

/** Answers the exchange itself, or calls `next` and may change its response. */
export type Step<E extends Exchange = Exchange> = (exchange: E, next: Answer<E>) => Promise<HttpResponse>

/** The steps as one function: the first step is called first, and `last` answers what no step has answered. */
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
