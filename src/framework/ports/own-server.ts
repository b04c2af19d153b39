/** The server of a vault, as the code of a run calls it: without a socket. */
import type { SubjectCollector } from '../audit-entry.js'
import type { Caller } from '../caller/caller.js'
import type { OnLeave, OutboundAnswer, OutboundRequest } from './outbound.js'

/** The address of a vault that no server has open. */
export const NO_SERVER = 'http://localhost'

export interface OwnCall {
  /** Absent if the server finds the caller by the key of the request. @throws CofferError `unauthenticated` if the run has ended */
  identify?: (() => Promise<Caller>) | undefined
  /** Marks a caller as code of a run. Also for a caller whom the server has found itself. */
  asRun(caller: Caller): Caller
  left?: OnLeave | undefined
  /** Collects the records of the request, if the answer of the run is stored. */
  outer?: SubjectCollector | undefined
}

export interface OwnServer {
  /** The start of header names, in lower case. */
  prefix(): string
  /** The origins by which the code of a run can call this server: `https://NAME`. */
  ownOrigins(): readonly string[]
  /**
   * The origin of the server. It has the name of `host`, the header of a request, if that is a name of this server.
   */
  addressFor(host: string | undefined): string
  /**
   * Answers a request as if it had arrived by a socket, except for requests to the control plane and the
   * dashboard.
   * @throws CofferError
   */
  send(request: OutboundRequest, call: OwnCall): Promise<OutboundAnswer>
}

/** A server that answers for a vault and for the forks of this vault. */
export interface AttachedServer extends Pick<OwnServer, 'addressFor'> {
  readonly ownOrigins: readonly string[]
  send(vault: object, ...call: Parameters<OwnServer['send']>): Promise<OutboundAnswer>
}
