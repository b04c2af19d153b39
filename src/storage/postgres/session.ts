/**
 * The statements of one attempt at a unit of work. Each is a transaction of its own until the unit needs one for several.
 * Each answer has the state of the store, by which the cached records that the unit uses are compared.
 */
import type { QueryResult } from 'pg'
import type { Clock, RandomSource } from '../../crypto/ports.js'
import { COMMIT, Collision, type Connection, type ConnectionPool, ROLLBACK, type Statement } from './pool.js'
import { READ_STATE, type StoreState, stateOf } from './read-sql.js'
import { dropTenantStatements, type WriteOptions, type Writes, writeStatement } from './write-sql.js'

/** How a unit is run; a collision changes it for the next attempt. */
export interface UnitOptions {
  /** It may write. */
  isChange: boolean
  /** It reads in one transaction of one moment, from the beginning. */
  isTransaction?: boolean
  /** It moves or deletes many rows: its statements may take long, and each sees what is committed by then. */
  isBulk?: boolean
  /** The entries of this process are stored. */
  hasSent?: boolean
}

/** Shared by the units of work over one store. */
export interface Shared {
  readonly pool: ConnectionPool
  readonly clock: Clock
  readonly random: RandomSource
  /** Kinds of rows that callers cache. */
  readonly remembered: ReadonlySet<number>
  /** As the last answer had it. */
  state: StoreState
}

export class Session {
  /** As earlier units knew it, and then as the answers have it. */
  state: StoreState
  /** Whether the unit used cached records, or records that are cached. */
  relies = false
  /** Why the unit is run again, if it is. A work may take the error for one of its own. */
  collision: Collision | undefined
  readonly #shared: Shared
  readonly #options: UnitOptions
  #isConfirmed = false
  #connection: Promise<Connection> | undefined
  /** The moments at which it read rows that are not cached. */
  #moments = 0
  /** Sent with the next read, or at the end. */
  #held: Statement[] = []

  constructor(shared: Shared, options: UnitOptions) {
    this.#shared = shared
    this.#options = options
    this.state = shared.state
  }

  /** Whether it read rows of different moments. They are compared when a change commits; a failure may come from them. */
  get isLoose(): boolean {
    return this.#moments > 1
  }

  collide(reason: Collision['reason']): Collision {
    this.collision ??= new Collision(reason)
    return this.collision
  }

  hold(writes: Writes, options: WriteOptions = {}): void {
    const { generation, changes } = this.state
    const state = { generation, changes: this.relies ? changes : undefined }
    this.#held.push(writeStatement(writes, { ...options, state }))
  }

  holdDrop(tenant: number): void {
    this.#held.push(...dropTenantStatements(tenant))
  }

  /** `isCached`: rows that the counter compares; `begins`: in a transaction. The columns are in `read-sql.ts`. */
  async read(statement: Statement, { isCached = false, begins = false } = {}): Promise<QueryResult['rows']> {
    if (this.collision !== undefined) throw this.collision
    const isAlone = !this.isTransaction && !begins
    const isFirst = this.#options.isTransaction !== true || this.#connection === undefined
    if (isCached) this.relies = true
    else if (isFirst && this.#moments++ > 0 && !this.#options.isChange) throw this.collide('moments')
    return this.#confirm(isAlone ? this.#shared.pool.share('read', statement) : this.#send([statement]))
  }

  /** Commits what was held and `writes`. */
  async commit(writes: Writes, options: WriteOptions): Promise<void> {
    const isTransaction = this.isTransaction
    this.hold(writes, options)
    if (isTransaction) await this.#end()
    else {
      const { pool } = this.#shared
      const { isBulk: isSlow = false } = this.#options
      const [statement] = this.#held as [Statement]
      // One that only inserts waits for no other unit.
      const isFree = statement.name === 'insert' && !isSlow
      await this.#confirm(isFree ? pool.share('write', statement) : pool.query({ ...statement, isSlow }))
    }
    this.#learn({ ...this.state, ...options.times, changes: this.state.changes + (options.step ?? 0) })
  }

  /** Ends a unit that wrote nothing. @throws Collision if cached records that it used are out of date */
  async endReading(): Promise<void> {
    if (this.#connection !== undefined) await this.#end()
    else await this.confirm()
  }

  /** Compares the cached records that the unit used, unless an answer did. @throws Collision, CofferError `unavailable` */
  async confirm(): Promise<void> {
    if (this.relies && !this.#isConfirmed) await this.#confirm(this.#shared.pool.share('read', READ_STATE))
  }

  /** Undoes what was written. */
  async abandon(): Promise<void> {
    // The error that broke the connection has ended the unit too, so that error is reported.
    if (this.#connection !== undefined) await this.#send([ROLLBACK]).catch(() => undefined)
    await this.#release()
  }

  get hasRead(): boolean {
    return this.#moments > 0
  }

  /** Whether its statements are in one transaction from here on. */
  get isTransaction(): boolean {
    return this.#options.isTransaction === true || this.#connection !== undefined || this.#held.length > 0
  }

  async #end(): Promise<void> {
    const { command } = await this.#send([COMMIT])
    if (command !== 'COMMIT') throw this.collide('conflict')
    await this.#release()
  }

  /** Sends what was held and the statements, in the transaction, and returns the last answer. */
  async #send(statements: readonly Statement[]): Promise<QueryResult> {
    const { isBulk: isSlow = false, isChange, isTransaction } = this.#options
    // A transaction that has begun with a write sees what others commit until it searches.
    const atOnce = isChange ? 'serializable' : 'repeatable read'
    const level = isTransaction === true && !isSlow ? atOnce : 'read committed'
    const begin = this.#connection === undefined ? [{ text: `begin isolation level ${level}` }] : []
    this.#connection ??= this.#shared.pool.connect()
    const all: Statement[] = [...begin, ...this.#held.splice(0), ...statements]
    const connection = await this.#connection
    const sent = isSlow ? all.map((each) => ({ ...each, isSlow })) : all
    return (await this.#recordCollision(connection.send(sent))).at(-1)!
  }

  async #release(): Promise<void> {
    const ended = await this.#connection?.catch(() => undefined)
    this.#connection = undefined
    ended?.release(ended.isBroken)
  }

  /** @throws Collision `stale` if the unit used cached records that are out of date */
  async #confirm(sending: Promise<QueryResult>): Promise<QueryResult['rows']> {
    const { rows } = await this.#recordCollision(sending)
    const state = stateOf(rows[0])
    this.#isConfirmed = true
    this.#learn(state)
    const { changes, generation } = this.state
    if (state.generation !== generation || (this.relies && state.changes !== changes))
      throw this.collide('stale')
    this.state = state
    return rows
  }

  /** Answers may arrive in another order than they were given. */
  #learn(state: StoreState): void {
    const { generation, changes } = this.#shared.state
    if (state.generation === generation && state.changes >= changes) this.#shared.state = state
  }

  async #recordCollision<T>(sending: Promise<T>): Promise<T> {
    try {
      return await sending
    } catch (error) {
      if (error instanceof Collision) this.collision ??= error
      throw error
    }
  }
}
