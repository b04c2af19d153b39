/**
 * The statements of one attempt at a unit of work. They go together with those of other units until the unit needs a
 * transaction. Each answer has the state of the store, by which the cached records that the unit uses are compared.
 */
import type { QueryResult } from 'pg'
import type { Clock, RandomSource } from '../../crypto/ports.js'
import type { PendingEntries } from '../engine.js'
import { Collision, type Plan } from './attempt.js'
import type { Batcher } from './batcher.js'
import type { PendingLogs } from './logs.js'
import { COMMIT, type Connection, type ConnectionPool, ROLLBACK, type Statement } from './pool.js'
import { getStatement, READ_STATE, type RowName, type StoreState, stateOf } from './read-sql.js'
import { type Changes, type Commit, writeStatements } from './write-sql.js'

export type Answer = QueryResult['rows'][number]

/** Shared by the units of work over one store. */
export interface Shared {
  readonly pool: ConnectionPool
  readonly reads: Batcher<RowName, Answer>
  readonly commits: Batcher<Commit, Answer>
  readonly logs: PendingLogs
  readonly clock: Clock
  readonly random: RandomSource
  /** Kinds of rows that callers cache from one unit to the next, and whose changes are therefore counted. */
  readonly remembered: ReadonlySet<number>
  /** As the last answer had it. */
  state: StoreState
}

export class Session {
  /** As earlier units knew it, and then as the answers have it. */
  state: StoreState
  /** Whether the unit used cached records, or records that are cached. */
  relies = false
  /** At how many it read rows that are not cached. They are compared when a change commits; a failure may come from them. */
  moments = 0
  /** Why the unit is run again, if it is. A work may take the error for one of its own. */
  collision: Collision | undefined
  readonly #shared: Shared
  readonly #mode: Plan['mode']
  #isConfirmed = false
  #connection: Promise<Connection> | undefined
  readonly #held: Statement[] = []

  constructor(shared: Shared, mode: Plan['mode']) {
    this.#shared = shared
    this.#mode = mode
    this.state = shared.state
  }

  /** Whether its statements are in one transaction from here on. */
  get isTransaction(): boolean {
    return this.#mode === 'snapshot' || this.#connection !== undefined || this.#held.length > 0
  }

  get #expected() {
    return this.relies ? this.state : { ...this.state, changes: -1 }
  }

  collide(reason: Collision['reason']): Collision {
    this.collision ??= new Collision(reason)
    return this.collision
  }

  /** Sent with the next read, or at the end. */
  hold(commit: Commit, pending: readonly PendingEntries[] = [], then: readonly Statement[] = []): void {
    this.#held.push(...writeStatements([{ ...commit, state: this.#expected }], pending, true), ...then)
  }

  /** `isCached`: rows that the counter compares. */
  async read(wanted: Statement | RowName, isCached: boolean): Promise<Answer[]> {
    if (this.collision !== undefined) throw this.collision
    const { pool, reads } = this.#shared
    if (isCached) this.relies = true
    // A snapshot is one moment, also of the rows that are cached.
    if (this.#mode === 'snapshot') this.moments = 1
    else if (!isCached && this.moments++ > 0 && this.#mode === 'read') throw this.collide('moments')
    try {
      if (!this.isTransaction && !('text' in wanted)) return this.#compare([await reads.ask(wanted)])
      const statement = 'text' in wanted ? wanted : getStatement([wanted])
      const { rows } = await (this.isTransaction ? this.#send(statement) : pool.query(statement))
      return this.#compare(rows)
    } catch (error) {
      if (error instanceof Collision) this.collision ??= error
      throw error
    }
  }

  /** Commits `commit`, and what was held before. */
  async commit(commit: Commit): Promise<void> {
    const { step = 0, times, logs = [] } = commit
    const end = (pending: readonly PendingEntries[]) => {
      this.hold(commit, pending)
      return this.#end()
    }
    if (this.isTransaction) await this.#shared.logs.commit(logs, end)
    else this.#compare([await this.#shared.commits.ask({ ...commit, state: this.#expected })])
    this.#learn({ ...this.state, ...(times && { times }), changes: this.state.changes + step })
  }

  /** Ends a unit that wrote nothing. @throws Collision if cached records that it used are out of date */
  async endReading(): Promise<void> {
    if (this.#connection !== undefined) await this.#end()
    else if (this.relies && !this.#isConfirmed)
      this.#compare((await this.#shared.pool.query(READ_STATE)).rows)
  }

  /** Undoes what was written. With `checks` it compares what was read before. @throws Collision */
  async abandon(checks?: Changes): Promise<void> {
    if (checks !== undefined && !this.isTransaction) return this.commit({ changes: checks })
    if (checks === undefined) this.#held.length = 0
    else this.hold({ changes: checks })
    try {
      if (this.#connection !== undefined || this.#held.length > 0) await this.#send(ROLLBACK)
    } catch (error) {
      // The error that broke the connection has ended the unit too, so that error is reported.
      if (checks !== undefined) throw error
    } finally {
      await this.#release()
    }
  }

  async #end(): Promise<void> {
    const { command } = await this.#send(COMMIT)
    if (command !== 'COMMIT') throw this.collide('conflict')
    await this.#release()
  }

  /** Sends what was held and the statement, in the transaction. */
  async #send(statement: Statement): Promise<QueryResult> {
    const level = this.#mode === 'snapshot' ? 'repeatable read' : 'read committed'
    const begin = this.#connection === undefined ? [{ text: `begin isolation level ${level}` }] : []
    this.#connection ??= this.#shared.pool.connect()
    const all: Statement[] = [...begin, ...this.#held.splice(0), statement]
    const connection = await this.#connection
    return (await connection.send(all)).at(-1)!
  }

  async #release(): Promise<void> {
    const ended = await this.#connection?.catch(() => undefined)
    this.#connection = undefined
    ended?.release(ended.isBroken)
  }

  /** @throws Collision if the commit was refused; `stale` if the unit used cached records that are out of date */
  #compare(rows: Answer[]): Answer[] {
    const state = stateOf(rows[0])
    this.#isConfirmed = true
    this.#learn(state)
    const { changes, generation } = this.state
    if (state.generation !== generation || (this.relies && state.changes !== changes))
      throw this.collide('stale')
    if (rows[0].accepted === false) throw this.collide('conflict')
    this.state = state
    return rows
  }

  /** Answers may arrive in another order than they were given. */
  #learn(state: StoreState): void {
    const { generation, changes } = this.#shared.state
    if (state.generation === generation && state.changes >= changes) this.#shared.state = state
  }
}
