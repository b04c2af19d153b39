/** Reads rows by their ids for several units of work in one statement. */
import type { QueryResult } from 'pg'
import { type ConnectionPool, missing } from './pool.js'
import { getStatement, type RowName } from './read-sql.js'

export type Answer = QueryResult['rows'][number]

interface Asked {
  name: RowName
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** Statements under way. What is asked for meanwhile waits, and goes together. */
const AT_ONCE = 2
/** Rows of one statement. */
const MOST = 64

export class RowReader {
  readonly #pool: ConnectionPool
  readonly #waiting: Asked[] = []
  #running = 0

  constructor(pool: ConnectionPool) {
    this.#pool = pool
  }

  read(name: RowName): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // Later requests of this turn of the event loop go along.
      if (this.#waiting.push({ name, resolve, reject }) === 1) setImmediate(() => this.#sendWaiting())
    })
  }

  #sendWaiting(): void {
    while (this.#running < AT_ONCE && this.#waiting.length > 0) {
      this.#running++
      void this.#send(this.#waiting.splice(0, MOST)).then(() => {
        this.#running--
        this.#sendWaiting()
      })
    }
  }

  async #send(batch: readonly Asked[]): Promise<void> {
    try {
      const { rows } = await this.#pool.query(getStatement(batch.map(({ name }) => name)))
      if (rows.length < batch.length) throw missing()
      for (const row of rows) batch[row.number - 1]!.resolve(row)
    } catch (error) {
      // Those that wait would not be answered either.
      for (const { reject } of [...batch, ...this.#waiting.splice(0)]) reject(error)
    }
  }
}
