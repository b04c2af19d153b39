/** The chain of logs that this process adds to, and no other meanwhile, so that none waits for another. */
import { CofferError } from '../../errors.js'
import { claimChainStatement, leaveChainStatement } from './log-sql.js'
import { Collision, type ConnectionPool } from './pool.js'

/**
 * How long a chain stays with a process that has died. A process that was thought dead and goes on meets the next one in
 * the same rows, where one of the two is run again: the lease saves time and keeps nothing from harm.
 */
const LEASE_MS = 60_000
const MOST_ATTEMPTS = 25

export class OwnChain {
  readonly #pool: ConnectionPool
  readonly #owner: Uint8Array
  #claimed: { chain: number; at: number } | undefined

  constructor(pool: ConnectionPool, owner: Uint8Array) {
    this.#pool = pool
    this.#owner = owner
  }

  /** Gives its number. The lease is renewed before half of it is over. */
  async claim(): Promise<number> {
    const now = performance.now()
    if (this.#claimed !== undefined && now - this.#claimed.at < LEASE_MS / 2) return this.#claimed.chain
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      const answer = await this.#pool.query(claimChainStatement(this.#owner, LEASE_MS)).catch((error) => {
        if (!(error instanceof Collision)) throw error
      })
      const chain: number | undefined = answer?.rows[0]?.id
      if (chain === undefined) continue
      this.#claimed = { chain, at: now }
      return chain
    }
    throw new CofferError(
      'unavailable',
      'The store has no chain for the log records of this server. Try again.',
    )
  }

  /** The next process may take it. */
  async leave(): Promise<void> {
    if (this.#claimed !== undefined) await this.#pool.query(leaveChainStatement(this.#owner))
    this.#claimed = undefined
  }
}
