/**
 * One attempt at a unit of work: a serializable transaction, or a single statement. What earlier units read is believed
 * until the first answer of the database tells whether it is still true, so that remembering costs no round trip and is
 * never out of date.
 */
import type { QueryResult } from 'pg'
import { CofferError } from '../../errors.js'
import type { Draft, EngineWriter, LogEntry, Query, Row, RowId, RowPage, SeekQuery } from '../engine.js'
import { checkRow } from '../lsm/sstable/row-change.js'
import type { ClockState } from '../store.js'
import { judgeClock, passTime, type Times } from '../time.js'
import { Belief } from './belief.js'
import { drawRev, drawStep } from './draw.js'
import { HeldWrites } from './held-writes.js'
import * as logs from './log-sql.js'
import { Collision } from './pool.js'
import * as sql from './query-sql.js'
import { type Batch, type Shared, sealBatch, type UnitOptions } from './shared.js'
import { createTransaction } from './transaction.js'
import {
  countChangeStatement,
  dropTenantStatements,
  noteTimeStatement,
  removeStatements,
} from './write-sql.js'

/** The time is noted when it is older, with whatever is written then. */
const NOTE_TIME_MS = 60_000
/** Rows of pending log entries that are read at most, and their bytes. */
const MOST_WAITING = [10_000, 2 ** 30] as const

export class Unit implements EngineWriter {
  readonly now: number
  clock: ClockState
  /** Why the unit is run again, once it is to be. */
  collision: Collision | undefined
  /** What it logged, where that may wait for others. */
  readonly entries: LogEntry[] = []
  readonly #shared: Shared
  readonly #options: UnitOptions
  readonly #belief: Belief
  #times: Times
  /** Whether log entries were in this process alone before the unit read anything. */
  readonly #hadUnsent: boolean
  /** What it logged, as it is committed. */
  #batches: readonly Batch[] = []
  readonly #transaction: ReturnType<typeof createTransaction>
  /** Sent with the next read, or at the end. */
  readonly #writes = new HeldWrites()
  readonly #changed = new Set<number>()
  #hasQueried = false
  hasWritten = false
  /** Whether it left log entries in the table of those that wait. */
  hasLogged = false
  dropsTenant = false
  #isNoted = false
  #isOver = false

  constructor(shared: Shared, options: UnitOptions) {
    this.#shared = shared
    this.#options = options
    const begin = options.holds ? sql.BEGIN_HOLDING : sql.BEGIN
    this.#transaction = createTransaction(shared.pool, begin, options.isSlow)
    this.#belief = new Belief(shared)
    this.#hadUnsent = shared.logs.hasUnsent && !options.hasSent
    this.now = Math.floor(shared.clock())
    this.clock = judgeClock(this.#belief.state, this.now)
    this.#times = passTime(this.#belief.state, this.now)
  }

  async get(kind: number, tenant: number, id: RowId, { expired = false } = {}): Promise<Row | undefined> {
    const [row] = this.#options.inTransaction
      ? sql.rowsOf(await this.#query(sql.getStatement(kind, tenant, id)))
      : [(await this.#ask(() => this.#shared.reads.ask({ kind, tenant, id }))).row]
    return row === undefined || (!expired && row.expires !== 0 && row.expires <= this.now) ? undefined : row
  }

  async find(query: Query): Promise<RowPage> {
    const found = await this.#query(sql.findStatement(query, this.now))
    return { rows: sql.rowsOf(found), total: found[0].total }
  }

  async seek(query: SeekQuery): Promise<Row[]> {
    return sql.rowsOf(await this.#query(sql.seekStatement(query, this.now)))
  }

  async findExpired(limit: number): Promise<Row[]> {
    return sql.rowsOf(
      await this.#query(sql.findExpiredStatement(limit, this.clock.purgeUntil, this.#options.inTransaction)),
    )
  }

  async pendingEntries(tenant: number): Promise<readonly (LogEntry | undefined)[]> {
    if (this.#hadUnsent) this.#collide('unsent')
    const found: LogEntry[] = []
    let unreadable = 0
    for (const row of await this.readWaiting({ tenant }, ...MOST_WAITING)) {
      const entries = await this.#shared.sealer.openPending(this, row, row.sealed)
      if (entries === undefined) unreadable++
      else for (const entry of entries) found.push(entry)
    }
    // Those of several servers are in the order of each of them.
    return [...found.sort((one, other) => one.time - other.time), ...Array<undefined>(unreadable)]
  }

  /** Log entries that are in no row yet, the oldest first. */
  async readWaiting(which: logs.WhichWaiting, limit: number, bytes: number): Promise<logs.Waiting[]> {
    const found = await this.#query(logs.readWaitingStatement(which, limit, bytes))
    return found.filter(({ id }) => id !== null)
  }

  endWaiting(waiting: readonly logs.Waiting[]): void {
    this.#hold().add([logs.endWaitingStatement(waiting.map(({ id }) => id))])
  }

  /** Keeps log entries until they are put into rows. */
  async wait(batch: Batch): Promise<void> {
    const waiting = await sealBatch(this.#shared, this, batch)
    if (waiting === undefined) return
    this.#hold().wait(waiting)
    this.hasLogged = true
  }

  changeCounter(kind: number): number | undefined {
    if (!this.#shared.remembered.has(kind) || this.#changed.has(kind)) return undefined
    return this.#belief.relyOn()
  }

  put(draft: Draft): void {
    const { kind, tenant, id, seq = 0, modified, expires, keys } = draft
    const { created = draft.seq === undefined ? this.now : -1 } = draft
    // Written out, here and elsewhere: members after a spread give an object a slow form, which costs microseconds.
    checkRow({ kind, tenant, id, seq, rev: 0, created, modified, expires, keys, sealed: keys })
    this.#hold().put(draft, drawRev(this.#shared.random), this.now)
    this.#noteChange(kind)
  }

  remove(kind: number, tenant: number, id: RowId): void {
    this.#hold().add(removeStatements(kind, tenant, id))
    this.#noteChange(kind)
  }

  append(entry: LogEntry): void {
    this.#refuseLate()
    this.entries.push(entry)
  }

  dropTenant(tenant: number): void {
    for (const kind of this.#shared.remembered) this.#changed.add(kind)
    this.dropsTenant = true
    this.#hold().add(dropTenantStatements(tenant))
  }

  noteTime({ isTrusted = false } = {}): void {
    this.#isNoted = true
    if (!isTrusted) return
    this.#times = { time: this.now, last: this.now, since: 0, until: 0 }
    this.clock = { isJump: false, purgeUntil: this.now }
  }

  /** Makes it durable what the unit wrote, and sure what it believed. */
  async commit(): Promise<void> {
    if (this.collision !== undefined) throw this.collision
    const logs = !this.#options.maySendLater || this.hasWritten ? this.entries.splice(0) : []
    this.hasWritten ||= logs.length > 0
    const notesTime = this.#notesTime()
    const areNew = this.#writes.areNew || (this.#writes.length === 0 && logs.length > 0)
    const isPlain = this.#options.inTransaction && !this.#hasQueried && !notesTime && this.#changed.size === 0
    if (areNew && isPlain && this.#options.mayJoin) return this.#commitWithOthers(logs)
    this.#batches = this.#shared.logs.begin(logs)
    for (const batch of this.#batches) await this.wait(batch)
    const step = this.#changed.size > 0 ? drawStep(this.#shared.random) : 0
    if (step > 0) this.#hold().add([countChangeStatement(step)])
    else if (this.#options.holds) this.#hold().add([sql.HOLD_STATE])
    if (notesTime) this.#hold().add([noteTimeStatement(this.#times)])
    if (this.hasWritten && !this.#options.inTransaction) this.#collide('promote')
    if (!this.#transaction.hasBegun() && !this.hasWritten) {
      if (this.#belief.isOpen) this.#confirm(sql.stateOf((await this.#alone(sql.READ_STATE)).rows[0]))
      return
    }
    if (this.hasWritten) this.#hold().add([sql.checkOpen(this.#options.closed ?? 0)])
    if (!(await this.#sending((statements) => this.#transaction.commit(statements))))
      this.#collide('conflict')
    const changes = this.#belief.state.changes + step
    this.#belief.change({ ...(notesTime && this.#times), changes })
  }

  /** What is put as new without having read goes in one statement with that of other units. */
  async #commitWithOthers(entries: LogEntry[]): Promise<void> {
    await this.#ask(() =>
      this.#shared.commits.ask({ news: this.#writes.news, entries, believed: this.#belief.state }),
    )
    this.hasLogged ||= entries.length > 0
  }

  /** With what it writes, at times; one unit does it for all that run at once. */
  #notesTime(): boolean {
    const isOld = this.now - this.#belief.state.last > NOTE_TIME_MS
    const isFirst = Math.abs(this.now - this.#shared.notedAt) > NOTE_TIME_MS
    const isTimely = this.clock.isJump || (isOld && isFirst)
    // Two that hold the state would wait for one another to change it.
    const notes = this.#isNoted || (isTimely && this.hasWritten && !this.#options.holds)
    if (notes) this.#shared.notedAt = this.now
    return notes
  }

  /** Takes back what it wrote. */
  abandon(): Promise<void> {
    return this.#transaction.rollBack()
  }

  /**
   * Why a unit that failed is run again: an error too may come from what it believed. Undefined where nothing is in
   * doubt. @throws CofferError `unavailable` where the store does not tell
   */
  async doubt(error: unknown): Promise<Collision | undefined> {
    if (error instanceof Collision) return error
    const isAway = error instanceof CofferError && error.code === 'unavailable'
    if (!this.#belief.isOpen || isAway) return undefined
    try {
      this.#confirm(sql.stateOf((await this.#alone(sql.READ_STATE)).rows[0]))
    } catch (failure) {
      if (!(failure instanceof Collision)) throw failure
    }
    return this.collision
  }

  /** Whether no later answer has told another state than the unit began with. */
  get isStillBelieved(): boolean {
    const { changes } = this.#shared.state
    return changes === this.#belief.state.changes
  }

  /** From here on every write is refused. */
  end(): void {
    this.#isOver = true
    this.#shared.logs.end(this.#batches)
  }

  #noteChange(kind: number): void {
    if (this.#shared.remembered.has(kind)) this.#changed.add(kind)
  }

  /** What is to take a write. */
  #hold(): HeldWrites {
    this.#refuseLate()
    this.hasWritten = true
    return this.#writes
  }

  #refuseLate(): void {
    if (this.#isOver) throw new CofferError('internal', 'A unit of work wrote after it had ended.')
  }

  // biome-ignore lint/suspicious/noExplicitAny: the columns of each statement are in `query-sql.ts`.
  async #query(statement: sql.Statement): Promise<any[]> {
    const { rows } = await this.#ask(async () => {
      const { rows } = await (this.#options.inTransaction
        ? this.#sending((held) => this.#transaction.send([...held, statement]))
        : this.#alone(statement))
      return { rows, state: sql.stateOf(rows[0]) }
    })
    return rows
  }

  async #ask<Answer extends { state: sql.StoreState }>(ask: () => Promise<Answer>): Promise<Answer> {
    if (this.collision !== undefined) throw this.collision
    if (this.#isOver) throw new CofferError('internal', 'A unit of work read after it had ended.')
    // A single statement is a transaction of its own; a second one would see another state.
    if (!this.#options.inTransaction && (this.#hasQueried || this.hasWritten)) this.#collide('promote')
    this.#hasQueried = true
    try {
      const answer = await ask()
      this.#confirm(answer.state)
      return answer
    } catch (error) {
      throw this.#note(error)
    }
  }

  async #alone(statement: sql.Statement): Promise<QueryResult> {
    try {
      return await this.#shared.pool.query(statement)
    } catch (error) {
      throw this.#note(error)
    }
  }

  /** What `send` makes of all that was held back. */
  async #sending<T>(send: (statements: sql.Statement[]) => Promise<T>): Promise<T> {
    // What is believed is checked by the answer to the first statement that reads; without one, by one of its own.
    const isChecked = this.#transaction.hasBegun() || !this.#belief.isOpen || this.#hasQueried
    const check = isChecked ? [] : [sql.checkState(this.#belief.state)]
    try {
      return await send([...check, ...this.#writes.take()])
    } catch (error) {
      throw this.#note(error)
    }
  }

  #confirm(state: sql.StoreState): void {
    if (!this.#belief.confirm(state)) this.#collide('stale')
  }

  #collide(reason: Collision['reason']): never {
    throw this.#note(new Collision(reason))
  }

  #note(error: unknown): unknown {
    if (error instanceof Collision) this.collision ??= error
    return error
  }
}
