/** One transaction of a unit of work, on its own connection. The transaction begins with the first statement. */
import type { QueryResult } from 'pg'
import { Collision } from './attempt.js'
import { COMMIT, type Connection, type ConnectionPool, ROLLBACK, type Statement } from './pool.js'

export class Transaction {
  readonly #pool: ConnectionPool
  readonly #isolation: 'read committed' | 'repeatable read'
  #connection: Promise<Connection> | undefined
  /** Statements that are sent together with the next statement. Their results are not needed. */
  readonly #queued: Statement[] = []

  constructor(pool: ConnectionPool, isolation: 'read committed' | 'repeatable read') {
    this.#pool = pool
    this.#isolation = isolation
  }

  get hasBegun(): boolean {
    return this.#connection !== undefined
  }

  enqueue(statements: readonly Statement[]): void {
    this.#queued.push(...statements)
  }

  /** Also sends the queued statements, in the same round trip. @throws Collision, CofferError */
  async send(statement: Statement): Promise<QueryResult> {
    const begin = { text: `begin isolation level ${this.#isolation}` }
    const first = this.#connection === undefined ? [begin] : []
    const statements = [...first, ...this.#queued.splice(0), statement]
    this.#connection ??= this.#pool.connect()
    const connection = await this.#connection
    return (await connection.send(statements)).at(-1)!
  }

  async commit(): Promise<void> {
    const { command } = await this.send(COMMIT)
    if (command !== 'COMMIT') throw new Collision('conflict')
    await this.#release()
  }

  async rollback(): Promise<void> {
    try {
      if (this.hasBegun || this.#queued.length > 0) await this.send(ROLLBACK)
    } finally {
      await this.#release()
    }
  }

  /** Rolls back without sending the queued statements. Never fails, because the caller reports an earlier error. */
  async abandon(): Promise<void> {
    this.#queued.length = 0
    await this.rollback().catch(() => undefined)
  }

  async #release(): Promise<void> {
    const ended = await this.#connection?.catch(() => undefined)
    this.#connection = undefined
    ended?.release(ended.isBroken)
  }
}
