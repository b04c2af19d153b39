/** One transaction: a connection of its own from the first statement on, until it ends. */
import type { QueryResult } from 'pg'
import type { Connection, ConnectionPool } from './pool.js'
import { COMMIT, ROLLBACK, type Statement } from './query-sql.js'

/** `begin`: what it begins with. `isSlow`: what follows may take long for a reason. */
export function createTransaction(pool: ConnectionPool, begin: Statement, isSlow = false) {
  let connection: Promise<Connection> | undefined
  const hasBegun = () => connection !== undefined

  return { hasBegun, send, commit, rollBack }

  /** Gives the result of the last. @throws Collision, CofferError `unavailable` */
  async function send(statements: readonly Statement[]): Promise<QueryResult> {
    const own = isSlow ? statements.map((each) => ({ ...each, isSlow: true })) : statements
    const all = hasBegun() ? own : [begin, ...own]
    connection ??= pool.connect()
    return (await (await connection).send(all)).at(-1)!
  }

  /** False where the database took it back, as it does where a statement failed. */
  async function commit(last: readonly Statement[]): Promise<boolean> {
    const { command } = await send([...last, COMMIT])
    await release(false)
    return command === 'COMMIT'
  }

  async function rollBack(): Promise<void> {
    if (!hasBegun()) return
    try {
      await send([ROLLBACK])
      await release(false)
    } catch {
      // What broke the connection has ended the unit of work too, and that error is the one to report.
      await release(true)
    }
  }

  async function release(isBroken: boolean): Promise<void> {
    const ended = await connection?.catch(() => undefined)
    connection = undefined
    ended?.release(isBroken)
  }
}
