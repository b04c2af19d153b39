/** The server of a vault for calls from the code of a run. Calls from the code of a run need no socket. */
import type { SubjectCollector } from '../audit-entry.js'
import type { Caller } from '../caller/caller.js'
import type { OnLeave, OutboundAnswer, OutboundRequest } from './outbound.js'

/** The address of a vault that is not open in a server. */
export const NO_SERVER = 'http://localhost'

export interface OwnCall {
  /**
   * Returns the caller of the request. `identify` is absent if the server must find the caller by the key in the
   * request.
   * @throws CofferError `unauthenticated` if the run has ended
   */
  identify?: (() => Promise<Caller>) | undefined
  /**
   * Marks a caller as code of a run. The server also marks a caller that it found by the key in the request.
   */
  asRun(caller: Caller): Caller
  left?: OnLeave | undefined
  /** If the answer of the run is stored, `outer` collects the records of the request. */
  outer?: SubjectCollector | undefined
}

export interface OwnServer {
  /** The prefix of the server's header names, in lower case. */
  prefix(): string
  /** The origins by which the code of a run can call this server: `https://NAME`. */
  ownOrigins(): readonly string[]
  /**
   * The origin of the server. `host`: the header Host of a request. If `host` contains a name of this server,
   * the origin has this name.
   */
  addressFor(host: string | undefined): string
  /**
   * Answers a request as if the request had arrived by a socket. The control plane and the dashboard cannot be reached
   * in this way.
   * @throws CofferError
   */
  send(request: OutboundRequest, call: OwnCall): Promise<OutboundAnswer>
}

/** A server that answers for a vault and for the forks of this vault. */
export interface AttachedServer extends Pick<OwnServer, 'addressFor'> {
  readonly ownOrigins: readonly string[]
  send(vault: object, ...call: Parameters<OwnServer['send']>): Promise<OutboundAnswer>
}
