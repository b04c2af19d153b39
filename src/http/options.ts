import type { Caller } from '../framework/caller/caller.js'
import type { Host } from '../framework/host.js'
import type { Registry } from '../framework/registry.js'
import type { AccessEntry } from './access-log.js'
import type { Page } from './pages/pages.js'
import type { RateLimit } from './rate-limit.js'

export interface AnswererOptions {
  host: Host
  registry: Registry
  /**
   * Returns the caller of `key`. With `allowsCached`, a change on another server may not be known yet.
   * @throws CofferError `unauthenticated`
   */
  authenticate(host: Host, key: string, how: { allowsCached: boolean }): Promise<Caller>
  prefix: string
  bodyLimitBytes: number
  /** Accepted host names besides the usual names. Absent if the host is checked elsewhere. */
  allowHosts?: readonly string[] | undefined
  pages: ReadonlyMap<string, Page>
  forms?: ReadonlyMap<string, Page>
  rateLimit?: RateLimit
  cors: boolean
  record?: ((entry: AccessEntry) => void) | undefined
  /** Receives internal errors, for which the caller gets only a trace id, and errors of sending a response. */
  reportFault?: ((error: unknown, traceId: string) => void) | undefined
  /** ms of a monotonic clock. */
  clock(): number
}
