/** The server of a vault. The code of a run calls the server without a socket. */
import type { SubjectCollector } from '../audit-entry.js'
import type { Caller } from '../caller/caller.js'
import type { OnLeave, OutboundAnswer, OutboundRequest } from './outbound.js'

/** The address of a vault that is not open in a server. */
export const NO_SERVER = 'http://localhost'

export interface OwnCall {
  /**
   * Returns the caller. If `identify` is absent, the server finds the caller by the key in the request.
   * @throws CofferError `unauthenticated` if the run has ended
   */
  identify?: (() => Promise<Caller>) | undefined
  /** Marks a caller as code of a run. The server also marks a caller that was found by a key. */
  asRun(caller: Caller): Caller
  left?: OnLeave | undefined
  /** If the answer of the run is stored, collects the records of the request. */
  outer?: SubjectCollector | undefined
}

export interface OwnServer {
  /** The prefix of the server's header names, in lower case. */
  prefix(): string
  /** The origins by which the code of a run calls this server: `https://NAME`. */
  ownOrigins(): readonly string[]
  /**
   * Returns the origin of the server. If `host` (the header Host) contains a name of this server, the origin has this
   * name.
   */
  addressFor(host: string | undefined): string
  /**
   * Answers a request like a request from a socket, but without the control plane and the dashboard.
   * @throws CofferError
   */
  send(request: OutboundRequest, call: OwnCall): Promise<OutboundAnswer>
}

/** A server that answers for a vault and for the forks of this vault. */
export interface AttachedServer extends Pick<OwnServer, 'addressFor'> {
  readonly ownOrigins: readonly string[]
  send(vault: object, ...call: Parameters<OwnServer['send']>): Promise<OutboundAnswer>
}
