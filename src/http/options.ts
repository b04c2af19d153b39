import type { Caller } from '../framework/caller/caller.js'
import type { Host } from '../framework/host.js'
import type { Registry } from '../framework/registry.js'
import type { AccessEntry } from './access-log.js'
import type { Page } from './pages/pages.js'
import type { RateLimit } from './rate-limit.js'

/** What the steps of a service need. */
export interface AnswererOptions {
  host: Host
  registry: Registry
  /** The caller that `key` belongs to. `allowsCached`: a caller as it was before the last change on another server may be returned. @throws CofferError `unauthenticated` */
  authenticate(host: Host, key: string, how: { allowsCached: boolean }): Promise<Caller>
  prefix: string
  bodyLimitBytes: number
  /** Accepted host names besides the usual ones. Absent if somebody else checks the host. */
  allowHosts?: readonly string[] | undefined
  pages: ReadonlyMap<string, Page>
  forms?: ReadonlyMap<string, Page>
  rateLimit?: RateLimit
  /** Whether web pages of other origins may read answers. */
  cors: boolean
  record?: ((entry: AccessEntry) => void) | undefined
  /** Receives internal errors, of which the caller sees only the trace id, and errors of responses that could not be sent. */
  reportFault?: ((error: unknown, traceId: string) => void) | undefined
  /** ms of a monotonic clock. */
  clock(): number
}
