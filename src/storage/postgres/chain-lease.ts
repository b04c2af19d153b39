/**
 * The lease of a chain. While a server has the lease, no other server appends to the chain, so the chain's entries are
 * in the order of time. Without the lease, nothing would be lost: if two servers append to one chain, their units
 * collide, and one unit runs again.
 */
import { Collision } from './attempt.js'
import type { ConnectionPool } from './pool.js'
import { NOW_MS } from './read-sql.js'

/** A lease that is not renewed expires after this time, ms. Then another server may acquire the chain. */
const LEASE_MS = 60_000

export class ChainLease {
  readonly #pool: ConnectionPool
  readonly #owner: Uint8Array
  #chain: Promise<number> | undefined
  #leasedAt = 0

  constructor(pool: ConnectionPool, owner: Uint8Array) {
    this.#pool = pool
    this.#owner = owner
  }

  get isUsed(): boolean {
    return this.#chain !== undefined
  }

  /**
   * Returns the number of the chain that this process leases, and renews the lease before it expires. The first call
   * acquires a chain whose lease has expired, or else a new chain. @throws Collision if another server acquires the
   * chain first
   */
  claim(): Promise<number> {
    const now = performance.now()
    if (this.#chain === undefined || now - this.#leasedAt > LEASE_MS / 2) {
      this.#leasedAt = now
      this.#chain = this.#lease()
      this.#chain.catch(() => {
        this.#chain = undefined
      })
    }
    return this.#chain
  }

  async #lease(): Promise<number> {
    const chains = [
      '(select min(id) from coffer_chains where owner = $1)',
      `(select min(id) from coffer_chains where until < ${NOW_MS})`,
      '(select coalesce(max(id), 0) + 1 from coffer_chains)',
    ]
    const text =
      `insert into coffer_chains (id, owner, until) select coalesce(${chains.join(', ')}), $1::bytea, ${NOW_MS} + $2` +
      ' on conflict (id) do update set owner = excluded.owner, until = excluded.until' +
      ` where coffer_chains.owner = excluded.owner or coffer_chains.until < ${NOW_MS} returning id`
    const { rows } = await this.#pool.query({ text, values: [this.#owner, LEASE_MS] })
    if (rows.length === 0) throw new Collision('conflict')
    return rows[0].id
  }

  async release(): Promise<void> {
    const text = 'update coffer_chains set until = 0 where owner = $1'
    await this.#pool.query({ text, values: [this.#owner] })
  }
}
