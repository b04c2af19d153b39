/**
 * One attempt at a unit of work: a serializable transaction, or a single statement. What earlier units read is believed
 * until the first answer of the database tells whether it is still true, so that remembering costs no round trip and is
 * never out of date.
 */
import type { QueryResult } from 'pg'
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import type { Draft, EngineWriter, LogEntry, Query, Row, RowId, RowPage, SeekQuery } from '../engine.js'
import { checkRow } from '../lsm/sstable/row-change.js'
import type { ClockState } from '../store.js'
import { judgeClock, passTime, type Times } from '../time.js'
import * as logs from './log-sql.js'
import { Collision, type Connection } from './pool.js'
import * as sql from './query-sql.js'
import { type Batch, intoBatches, type Shared } from './shared.js'

/** The time is noted when it is older, with whatever is written then. */
const NOTE_TIME_MS = 60_000
const REV_BYTES = 6
/** Half of what a row has room for: files, which the vault may be moved to, count on from the highest. */
const HIGHEST_REV = 2 ** 47
/** Batches of log entries that a list of a log reads at most. */
const MOST_WAITING = 10_000

export class Unit implements EngineWriter {
  readonly now: number
  clock: ClockState
  /** Why the unit is run again, once it is to be. */
  collision: Collision | undefined
  /** What it logged, where that may wait for others. */
  readonly entries: LogEntry[] = []
  readonly #shared: Shared
  readonly #inTransaction: boolean
  readonly #maySendLater: boolean
  /** What it believes. */
  #state: sql.StoreState
  #times: Times
  /** Of this process, before the unit read anything: what is sent meanwhile it does not see in the table. */
  readonly #gathered: readonly Batch[]
  #connection: Promise<Connection> | undefined
  /** Statements that are sent with the next read, or at the end. */
  #unsent: sql.Statement[] = []
  #inserted = 0
  readonly #changed = new Set<number>()
  /** Whether it relies on something that was remembered. */
  #relies = false
  #hasQueried = false
  /** Whether an answer of the database has confirmed what it believes. */
  #isConfirmed = false
  #hasWritten = false
  /** Whether it left log entries in the table of those that wait. */
  hasLogged = false
  #isNoted = false
  #isOver = false

  /** `maySendLater`: nobody waits for what it logs to be durable. */
  constructor(shared: Shared, options: { inTransaction: boolean; maySendLater: boolean }) {
    this.#shared = shared
    this.#inTransaction = options.inTransaction
    this.#maySendLater = options.maySendLater
    this.#state = shared.state
    this.now = Math.floor(shared.clock())
    this.clock = judgeClock(this.#state, this.now)
    this.#times = passTime(this.#state, this.now)
    this.#gathered = shared.unsent()
  }

  async get(kind: number, tenant: number, id: RowId, { expired = false } = {}): Promise<Row | undefined> {
    const [row] = sql.rowsOf(await this.#query(sql.getStatement(kind, tenant, id)))
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
      await this.#query(sql.findExpiredStatement(limit, this.clock.purgeUntil, this.#inTransaction)),
    )
  }

  async held(tenant: number): Promise<readonly LogEntry[]> {
    const found = this.#gathered.filter((batch) => batch.tenant === tenant)
    const unsent = new Set(found.map(({ id }) => toText(id)))
    for (const { id, written, sealed } of await this.readWaiting({ tenant }, MOST_WAITING)) {
      const entries = unsent.has(toText(id)) ? [] : await this.#shared.sealer.recall(this, tenant, id, sealed)
      found.push({ id, tenant, written, entries: entries ?? [] })
    }
    return found.toSorted((one, other) => one.written - other.written).flatMap(({ entries }) => entries)
  }

  /** Log entries that are in no row yet, the oldest first. */
  async readWaiting(which: logs.WhichWaiting, limit: number): Promise<logs.Waiting[]> {
    const found = await this.#query(logs.readWaitingStatement(which, limit))
    return found.filter(({ id }) => id !== null)
  }

  endWaiting(waiting: readonly logs.Waiting[]): void {
    this.#write([logs.endWaitingStatement(waiting.map(({ id }) => id))])
  }

  /** Keeps log entries until they are put into rows. */
  async wait({ id, tenant, written, entries }: Batch): Promise<void> {
    const sealed = await this.#shared.sealer.keep(this, tenant, id, entries)
    if (sealed === undefined) return
    this.#write([logs.waitStatement({ id, tenant, owner: this.#shared.self, written, sealed })])
    this.hasLogged = true
  }

  changeCounter(kind: number): number | undefined {
    if (!this.#shared.remembered.has(kind) || this.#changed.has(kind)) return undefined
    this.#relies = true
    return this.#state.changes
  }

  put(draft: Draft): void {
    const { seq = 0, created = draft.seq === undefined ? this.now : -1 } = draft
    checkRow({ ...draft, seq, created, rev: 0, sealed: draft.keys })
    const rev = Buffer.from(this.#shared.random.bytes(REV_BYTES)).readUIntLE(0, REV_BYTES) % HIGHEST_REV
    const isNew = draft.seq === undefined
    this.#change(
      draft.kind,
      isNew
        ? [sql.insertStatement(draft, rev, this.now, this.#inserted++)]
        : sql.replaceStatements(draft, rev),
    )
  }

  remove(kind: number, tenant: number, id: RowId): void {
    this.#change(kind, sql.removeStatements(kind, tenant, id))
  }

  append(entry: LogEntry): void {
    this.#refuseLate()
    this.entries.push(entry)
  }

  dropTenant(tenant: number): void {
    for (const kind of this.#shared.remembered) this.#changed.add(kind)
    this.#write(sql.dropTenantStatements(tenant))
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
    if (this.entries.length > 0 && (!this.#maySendLater || this.#hasWritten))
      for (const batch of intoBatches(this.#shared, this.entries.splice(0))) await this.wait(batch)
    const isTimely = this.#isNoted || this.now - this.#state.last > NOTE_TIME_MS || this.clock.isJump
    const notesTime = isTimely && (this.#hasWritten || this.#isNoted)
    if (this.#changed.size > 0) this.#unsent.push(sql.COUNT_CHANGE)
    if (notesTime) this.#unsent.push(sql.noteTimeStatement(this.#times))
    if (this.#unsent.length > 0 && !this.#inTransaction) this.#collide('promote')
    if (this.#connection === undefined && this.#unsent.length === 0) {
      if (this.#relies && !this.#isConfirmed)
        this.#confirm(sql.stateOf((await this.#alone(sql.READ_STATE)).rows[0]))
      return
    }
    const result = await this.#send([sql.COMMIT])
    await this.#release(false)
    // The database takes back a transaction in which something failed, and says so.
    if (result.command !== 'COMMIT') this.#collide('conflict')
    if (!this.#isConfirmed) return
    const changes = this.#state.changes + Math.sign(this.#changed.size)
    this.#learn({ ...this.#state, ...(notesTime && this.#times), changes })
  }

  /** Takes back what it wrote. */
  async abandon(): Promise<void> {
    if (this.#connection === undefined) return
    try {
      await (await this.#connection).send([sql.ROLLBACK])
      await this.#release(false)
    } catch {
      // What broke the connection has ended the unit of work too, and that error is the one to report.
      await this.#release(true)
    }
  }

  /**
   * Why a unit that failed is run again: an error too may come from what it believed. Undefined where nothing is in
   * doubt. @throws CofferError `unavailable` where the store does not tell
   */
  async doubt(error: unknown): Promise<Collision | undefined> {
    if (error instanceof Collision) return error
    const isAway = error instanceof CofferError && error.code === 'unavailable'
    if (!this.#relies || this.#isConfirmed || isAway) return undefined
    try {
      this.#confirm(sql.stateOf((await this.#alone(sql.READ_STATE)).rows[0]))
    } catch (failure) {
      if (!(failure instanceof Collision)) throw failure
    }
    return this.collision
  }

  /** From here on every write is refused. */
  end(): void {
    this.#isOver = true
  }

  #change(kind: number, statements: sql.Statement[]): void {
    this.#write(statements)
    if (this.#shared.remembered.has(kind)) this.#changed.add(kind)
  }

  #write(statements: sql.Statement[]): void {
    this.#refuseLate()
    this.#unsent.push(...statements)
    this.#hasWritten = true
  }

  #refuseLate(): void {
    if (this.#isOver) throw new CofferError('internal', 'A unit of work wrote after it had ended.')
  }

  // biome-ignore lint/suspicious/noExplicitAny: the columns of each statement are in `query-sql.ts`.
  async #query(statement: sql.Statement): Promise<any[]> {
    if (this.collision !== undefined) throw this.collision
    if (this.#isOver) throw new CofferError('internal', 'A unit of work read after it had ended.')
    // A single statement is a transaction of its own; a second one would see another state.
    if (!this.#inTransaction && (this.#hasQueried || this.#hasWritten)) this.#collide('promote')
    this.#hasQueried = true
    const { rows } = this.#inTransaction ? await this.#send([statement]) : await this.#alone(statement)
    this.#confirm(sql.stateOf(rows[0]))
    return rows
  }

  async #alone(statement: sql.Statement): Promise<QueryResult> {
    try {
      return await this.#shared.pool.query(statement)
    } catch (error) {
      throw this.#note(error)
    }
  }

  /** Sends all that was held back, then the statements; gives the result of the last. */
  async #send(statements: sql.Statement[]): Promise<QueryResult> {
    const isFirst = this.#connection === undefined
    const held = this.#unsent.splice(0, this.#unsent.length)
    // What is believed is checked by the answer to the first statement that reads; without one, by one of its own.
    const check = isFirst && this.#relies && !this.#hasQueried ? [sql.checkState(this.#state)] : []
    try {
      this.#connection ??= this.#shared.pool.connect()
      const connection = await this.#connection
      const results = await connection.send([
        ...(isFirst ? [sql.BEGIN] : []),
        ...check,
        ...held,
        ...statements,
      ])
      return results.at(-1)!
    } catch (error) {
      throw this.#note(error)
    }
  }

  /** Takes what the database says for what it believes, unless it relied on something else. */
  #confirm(state: sql.StoreState): void {
    this.#isConfirmed = true
    this.#learn(state)
    const { changes, generation } = this.#state
    if (state.generation !== generation || (this.#relies && state.changes !== changes)) this.#collide('stale')
    this.#state = state
  }

  /** Answers may arrive in another order than they were given. */
  #learn(state: sql.StoreState): void {
    const { generation, changes } = this.#shared.state
    if (state.generation === generation && state.changes >= changes) this.#shared.state = state
  }

  #collide(reason: Collision['reason']): never {
    throw this.#note(new Collision(reason))
  }

  #note(error: unknown): unknown {
    if (error instanceof Collision) this.collision ??= error
    return error
  }

  async #release(isBroken: boolean): Promise<void> {
    const connection = await this.#connection?.catch(() => undefined)
    this.#connection = undefined
    connection?.release(isBroken)
  }
}
