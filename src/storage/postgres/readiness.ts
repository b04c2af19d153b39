/** Whether the store would answer a read and a write now. */
import type { RandomSource } from '../../crypto/ports.js'
import type { ConnectionPool } from './pool.js'
import { ROLLBACK, type Statement } from './query-sql.js'

/** An answer is given again for so long, ms: anybody may ask. */
const VALID_MS = 500
/** A failed write counts for so long, ms, unless a later one succeeds. */
const FAILED_MS = 5_000
/** The database says that a table is locked before the pool gives up. */
const LOCK_MS = 1_000
const ID_BYTES = 16
/** No tenant has this number. */
const NOBODY = -1
/** Does nothing, but to take the lock of a write. */
const TOUCH: readonly Statement[] = [
  { text: 'begin isolation level read committed' },
  { text: `set local lock_timeout = ${LOCK_MS}` },
  { text: 'insert into coffer_rows select * from coffer_rows where false' },
  { text: 'insert into coffer_keys select * from coffer_keys where false' },
  { text: 'update coffer_state set changes = changes where false' },
]

export class Readiness {
  readonly #pool: ConnectionPool
  readonly #random: RandomSource
  #checking: Promise<void> | undefined
  #checkedAt = Number.NEGATIVE_INFINITY
  #failure: { error: unknown; at: number } | undefined

  constructor(pool: ConnectionPool, random: RandomSource) {
    this.#pool = pool
    this.#random = random
  }

  /** How a write ended. */
  noteWrite(error?: unknown): void {
    this.#failure = error === undefined ? undefined : { error, at: performance.now() }
  }

  /** Writes a row and takes it back. @throws CofferError that says why a write, or a read, would be refused */
  async check(): Promise<void> {
    if (performance.now() - this.#checkedAt < VALID_MS) return
    this.#checking ??= this.#write().finally(() => {
      this.#checking = undefined
    })
    await this.#checking
    if (this.#failure !== undefined && performance.now() - this.#failure.at < FAILED_MS)
      throw this.#failure.error
    this.#checkedAt = performance.now()
  }

  async #write(): Promise<void> {
    const id = this.#random.bytes(ID_BYTES)
    const text = 'insert into coffer_waiting values ($1, $2, $1, 0, $1)'
    await this.#pool.using((connection) =>
      connection.send([...TOUCH, { text, values: [id, NOBODY] }, ROLLBACK]),
    )
  }
}
