/** The server of a vault, as the code of a run calls it: without a socket. */
import type { SubjectCollector } from '../audit-entry.js'
import type { Caller } from '../caller/caller.js'
import type { OnLeave, OutboundAnswer, OutboundRequest } from './outbound.js'

/** The address of a vault that no server has open. */
export const NO_SERVER = 'http://localhost'

export interface OwnCall {
  /** @throws CofferError `unauthenticated` if the run has ended */
  identify(): Promise<Caller>
  /** Marks a caller whom the server has found itself, for example the caller of a proxy without authentication. */
  asRun(caller: Caller): Caller
  left?: OnLeave | undefined
  /** Collects the records of the request, if the answer of the run is stored. */
  outer?: SubjectCollector | undefined
}

export interface OwnServer {
  /** The start of header names, in lower case. */
  prefix(): string
  /** These origins mean this server in the code of a run: `https://NAME`. */
  ownOrigins(): readonly string[]
  /**
   * The origin of the server. It has the name of `host`, the header of a request, if that is a name of this server.
   */
  addressFor(host: string | undefined): string
  /** Answers a request like any other, except for the control plane and the dashboard. @throws CofferError */
  send(request: OutboundRequest, call: OwnCall): Promise<OutboundAnswer>
}

/** A server that answers for a vault and for the forks of this vault. */
export interface AttachedServer extends Pick<OwnServer, 'addressFor'> {
  readonly ownOrigins: readonly string[]
  send(vault: object, ...call: Parameters<OwnServer['send']>): Promise<OutboundAnswer>
}
