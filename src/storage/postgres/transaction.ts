/** One transaction: a connection of its own from the first statement on, until it ends. */
import type { QueryResult } from 'pg'
import type { Connection, ConnectionPool } from './pool.js'
import { COMMIT, ROLLBACK, type Statement } from './query-sql.js'

export class Transaction {
  readonly #pool: ConnectionPool
  readonly #begin: Statement
  readonly #isSlow: boolean
  #connection: Promise<Connection> | undefined

  /** `begin`: what it begins with. `isSlow`: what follows may take long for a reason. */
  constructor(pool: ConnectionPool, begin: Statement, isSlow = false) {
    this.#pool = pool
    this.#begin = begin
    this.#isSlow = isSlow
  }

  get hasBegun(): boolean {
    return this.#connection !== undefined
  }

  /** Gives the result of the last. @throws Collision, CofferError `unavailable` */
  async send(statements: readonly Statement[]): Promise<QueryResult> {
    const own = this.#isSlow ? statements.map((each) => ({ ...each, isSlow: true })) : statements
    const all = this.hasBegun ? own : [this.#begin, ...own]
    this.#connection ??= this.#pool.connect()
    return (await (await this.#connection).send(all)).at(-1)!
  }

  /** False where the database took it back, as it does where a statement failed. */
  async commit(last: readonly Statement[]): Promise<boolean> {
    const { command } = await this.send([...last, COMMIT])
    await this.#release(false)
    return command === 'COMMIT'
  }

  async rollBack(): Promise<void> {
    if (!this.hasBegun) return
    try {
      await this.send([ROLLBACK])
      await this.#release(false)
    } catch {
      // What broke the connection has ended the unit of work too, and that error is the one to report.
      await this.#release(true)
    }
  }

  async #release(isBroken: boolean): Promise<void> {
    const connection = await this.#connection?.catch(() => undefined)
    this.#connection = undefined
    connection?.release(isBroken)
  }
}
