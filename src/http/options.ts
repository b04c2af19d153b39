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
   * If `allowsCached` is true, the result can lack changes that another server has made to the rights of the caller.
   * @throws CofferError `unauthenticated`
   */
  authenticate(host: Host, key: string, how: { allowsCached: boolean }): Promise<Caller>
  prefix: string
  bodyLimitBytes: number
  /**
   * `localhost`, IP addresses and the host of the setting `public_url` are always accepted. Undefined: hosts are not
   * checked.
   */
  allowHosts?: readonly string[] | undefined
  pages: ReadonlyMap<string, Page>
  forms?: ReadonlyMap<string, Page>
  rateLimit?: RateLimit
  cors: boolean
  record?: ((entry: AccessEntry) => void) | undefined
  /** Receives internal errors, of which callers get only the trace id, and errors while sending a response. */
  reportFault?: ((error: unknown, traceId: string) => void) | undefined
  /** ms of a monotonic clock. */
  clock(): number
}
