/**
 * Sends the statements of one attempt at a unit of work, with or without a transaction. Without a transaction,
 * `batcher.ts` combines the reads by id of several units into one statement, and also combines their commits. In a
 * transaction, the attempt sees its own changes. A snapshot is a transaction from its beginning (`repeatable read`).
 * Any other attempt becomes a transaction when it must send a change before a read (`read committed`).
 */
import type { QueryResult } from 'pg'
import type { Clock, RandomSource } from '../../crypto/ports.js'
import type { PendingEntries } from '../engine.js'
import { Collision, type Plan } from './attempt.js'
import type { Batcher } from './batcher.js'
import type { PendingLogs } from './logs.js'
import type { ConnectionPool, Statement } from './pool.js'
import { getStatement, type Lookup, READ_STATE, type StoreState, stateOf } from './read-sql.js'
import type { StateCheck } from './state-check.js'
import { Transaction } from './transaction.js'
import { type Changes, type Commit, writeStatements } from './write-sql.js'

export type Answer = QueryResult['rows'][number]

export interface Shared {
  readonly pool: ConnectionPool
  readonly reads: Batcher<Lookup, Answer>
  readonly commits: Batcher<Commit, Answer>
  readonly logs: PendingLogs
  readonly clock: Clock
  readonly random: RandomSource
  /**
   * The kinds of rows that callers cache from one unit to the next. {@link StoreState.changes} counts their changes.
   */
  readonly cachedKinds: ReadonlySet<number>
  /** The newest state that this process has seen. */
  state: StoreState
}

export class Session {
  readonly #shared: Shared
  readonly #check: StateCheck
  #transaction: Transaction | undefined

  constructor(shared: Shared, mode: Plan['mode'], check: StateCheck) {
    this.#shared = shared
    this.#check = check
    if (mode === 'snapshot') this.#transaction = new Transaction(shared.pool, 'repeatable read')
  }

  async read(wanted: Statement | Lookup): Promise<Answer[]> {
    return this.#accept(await this.#ask(wanted))
  }

  async #ask(wanted: Statement | Lookup): Promise<Answer[]> {
    const { pool, reads } = this.#shared
    if (this.#transaction === undefined && !('text' in wanted)) return [await reads.ask(wanted)]
    const statement = 'text' in wanted ? wanted : getStatement([wanted])
    const sending = this.#transaction?.send(statement) ?? pool.query(statement)
    return (await sending).rows
  }

  /** After this call, the attempt is one transaction, which sends `commit` and `then` with its next statement. */
  enqueue(commit: Commit, pending: readonly PendingEntries[] = [], then: readonly Statement[] = []): void {
    this.#transaction ??= new Transaction(this.#shared.pool, 'read committed')
    const state = this.#check.expected
    this.#transaction.enqueue([...writeStatements([{ ...commit, state }], pending, true), ...then])
  }

  async commit(commit: Commit): Promise<void> {
    const { commits, logs } = this.#shared
    const transaction = this.#transaction
    if (transaction === undefined) {
      this.#accept([await commits.ask({ ...commit, state: this.#check.expected })])
    } else {
      await logs.commit(commit.logs ?? [], (pending) => {
        this.enqueue(commit, pending)
        return transaction.commit()
      })
    }
    const { state } = this.#check
    const { times = state.times, step = 0 } = commit
    learn(this.#shared, { ...state, times, changes: state.changes + step })
  }

  /** Ends an attempt that has nothing to commit. @throws Collision `stale` if it used outdated cached records */
  async endReading(): Promise<void> {
    if (this.#transaction?.hasBegun) await this.#transaction.commit()
    else if (this.#check.needsConfirmation) this.#accept((await this.#shared.pool.query(READ_STATE)).rows)
  }

  async abandon(): Promise<void> {
    await this.#transaction?.abandon()
  }

  /** Checks preconditions, and then rolls back. @throws Collision if a precondition is not met */
  async abandonChecked(preconditions: Changes): Promise<void> {
    if (this.#transaction === undefined) return this.commit({ changes: preconditions })
    this.enqueue({ changes: preconditions })
    await this.#transaction.rollback()
  }

  #accept(rows: Answer[]): Answer[] {
    const [{ accepted }] = rows
    const state = stateOf(rows[0])
    learn(this.#shared, state)
    if (!this.#check.accept(state)) throw new Collision('stale')
    if (accepted === false) throw new Collision('conflict')
    return rows
  }
}

/**
 * Ignores a state that is older than the known state, because answers can arrive in another order than they were sent.
 */
function learn(shared: Shared, state: StoreState): void {
  const { generation, changes } = shared.state
  if (state.generation === generation && state.changes >= changes) shared.state = state
}
