/** The chain of logs that this process adds to, and no other meanwhile, so that none waits for another. */
import { CofferError } from '../../errors.js'
import { addChainStatement, claimChainStatement, leaveChainStatement } from './log-sql.js'
import { Collision, type ConnectionPool } from './pool.js'
import type { Statement } from './query-sql.js'

/**
 * How long a chain stays with a process that has died. A process that was thought dead and goes on meets the next one in
 * the same rows, where one of the two is run again: the lease saves time and keeps nothing from harm.
 */
const LEASE_MS = 60_000
const MOST_ATTEMPTS = 25

export function createOwnChain(pool: ConnectionPool, owner: Uint8Array) {
  let claimed: { chain: number; at: number } | undefined

  return { claim, leave }

  /** Its number. The lease is renewed before half of it is over. */
  async function claim(): Promise<number> {
    const now = performance.now()
    if (claimed !== undefined && now - claimed.at < LEASE_MS / 2) return claimed.chain
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      const chain =
        (await ask(claimChainStatement(owner, LEASE_MS))) ?? (await ask(addChainStatement(owner, LEASE_MS)))
      if (chain === undefined) continue
      claimed = { chain, at: now }
      return chain
    }
    throw new CofferError(
      'unavailable',
      'The store has no chain for the log records of this server. Try again.',
    )
  }

  /** The next process may take it. */
  async function leave(): Promise<void> {
    if (claimed !== undefined) await pool.query(leaveChainStatement(owner))
    claimed = undefined
  }

  async function ask(statement: Statement): Promise<number | undefined> {
    try {
      return (await pool.query(statement)).rows[0]?.id
    } catch (error) {
      if (error instanceof Collision) return undefined
      throw error
    }
  }
}
