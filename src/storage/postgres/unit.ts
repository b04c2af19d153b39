/**
 * One attempt at a unit of work. A read is sent at once. In mode `change`, reads by id and pages by key become
 * preconditions (`read-set.ts`). A change waits (`write-set.ts`), and the commit sends all changes and preconditions
 * with one statement. A read that must show a waiting change sends this change first. Once a change was sent, the
 * attempt is one transaction (`session.ts`). If a precondition is not met, or if the plan does not allow the next step,
 * a {@link Collision} ends the attempt. The engine then runs the unit again, with the plan that `attempt.ts` derives
 * from the reason of the collision.
 *
 * A moment is the state of the database that one statement reads. Two statements can read different moments.
 */
import { CofferError } from '../../errors.js'
import type * as port from '../engine.js'
import { checkRow } from '../rows/row.js'
import type { ClockState } from '../store.js'
import { advanceTimes, clockStatus, type Times } from '../time.js'
import { Collision, type Plan, type Reason } from './attempt.js'
import type { Logged } from './logs.js'
import { isUnavailable, type Statement } from './pool.js'
import { ReadSet } from './read-set.js'
import * as sql from './read-sql.js'
import { nameOf, prefixOf, type RowName } from './row-name.js'
import { type Answer, Session, type Shared } from './session.js'
import { StateCheck } from './state-check.js'
import { HIGHEST_REV, MAX_STEP, randomNumber } from './tables.js'
import { WriteSet } from './write-set.js'
import * as writes from './write-sql.js'

/**
 * The rows that an answer depends on. Their names begin with `prefix`. `kind`: undefined for rows of several kinds.
 */
interface Scope {
  prefix: string
  kind?: number
}

const EVERYTHING: Scope = { prefix: '' }

export class Unit implements port.EngineWriter {
  readonly now: number
  clock: ClockState
  plan: Plan
  /**
   * The commit also stores these entries if the mode is `change` or the unit has written something. Otherwise the
   * engine stores the entries after the commit.
   */
  readonly entries: port.LogEntry[] = []
  hasWritten = false
  droppedTenant: number | undefined
  readonly #shared: Shared
  readonly #session: Session
  readonly #check: StateCheck
  readonly #reads: ReadSet
  readonly #writes = new WriteSet()
  #storesTime = false
  #confirmedTimes: Times | undefined
  /** The collision that ended the attempt, even if a handler has caught and dropped the error. */
  #collision: Collision | undefined
  #isOver = false

  constructor(shared: Shared, plan: Plan) {
    this.#shared = shared
    this.plan = plan
    this.#check = new StateCheck(shared.state)
    this.#reads = new ReadSet(plan.mode, shared.cachedKinds)
    this.#session = new Session(shared, plan.mode, this.#check)
    this.now = Math.floor(shared.clock())
    this.clock = clockStatus(shared.state.times, this.now)
  }

  // ---- reads

  async get(kind: number, tenant: number, id: port.RowId, options?: { expired?: boolean }) {
    const found = await this.#readRow({ kind, tenant, id })
    return found && (options?.expired || this.#isLive(found)) ? sql.rowOf(found) : undefined
  }

  async find(query: port.Query): Promise<port.RowPage> {
    const found = await this.#search(query)
    return { rows: sql.rowsOf(found), total: found[0].total }
  }

  async seek(query: port.SeekQuery): Promise<port.Row[]> {
    const { kind, tenant, size, below, above, where } = query
    if (size === 1 && below === undefined && above === undefined && where !== undefined && 'key' in where) {
      const newest = await this.#readKey({ kind, tenant, id: where.key }, sql.NEWEST)
      // If the newest row has expired, an older row may be live.
      if (newest.kind === null || this.#isLive(newest)) return sql.rowsOf([newest])
    }
    return sql.rowsOf(await this.#search(query))
  }

  async findExpired(limit: number): Promise<port.Row[]> {
    return sql.rowsOf(await this.#read(sql.findExpiredStatement(limit, this.clock.purgeBefore), EVERYTHING))
  }

  async pendingEntries(tenant: number): Promise<readonly (port.LogEntry | undefined)[]> {
    await this.#sendLogs()
    const rows = await this.readPending(sql.readPendingStatement(tenant))
    rows.sort((one, other) => one.written - other.written)
    const { sealer } = this.#shared.logs
    const opened = await Promise.all(rows.map((row) => sealer.openPending(this, row, row.sealed)))
    const found = opened.flatMap<port.LogEntry | undefined>((entries) => entries ?? [undefined])
    // Merges the entries of the servers by time. The entries of each server are already in order. `sort` puts undefined
    // at the end.
    return found.sort((one, other) => one!.time - other!.time)
  }

  async #sendLogs(): Promise<void> {
    if (this.plan.hasSentLogs) return
    await this.#shared.logs.send()
    this.plan = { ...this.plan, hasSentLogs: true }
    // The rows that the attempt has read may be older than the pending entries.
    if (this.#reads.hasMoment) throw this.#collide('logs')
  }

  async readPending(statement: Statement): Promise<port.PendingEntries[]> {
    return (await this.#read(statement, EVERYTHING)).filter(({ id }) => id !== null)
  }

  changeCounter(kind: number): number | undefined {
    return this.#isCached(kind) && !this.#writes.hasChanged(kind) ? this.#check.useCache() : undefined
  }

  async #readRow(name: RowName): Promise<sql.FoundRow | undefined> {
    if (this.#reads.hasRow(name)) return this.#reads.rowOf(name)
    const [found] = await this.#read(name, { prefix: nameOf(name), kind: name.kind })
    const row = found.kind === null ? undefined : found
    if (this.#isChange) this.#reads.addRow(name, row)
    return row
  }

  /**
   * In mode `change`, the result becomes a precondition. The number of rows for each key shows whether rows were added
   * or removed. The revisions show whether rows of the page were changed. A query by cursor or without a key has no
   * precondition.
   */
  async #search(query: port.Query | port.SeekQuery): Promise<Answer[]> {
    const { kind, tenant } = query
    const keys = this.#isChange ? sql.countedKeys(query) : []
    const counts = await Promise.all(keys.map((id) => this.#countRows({ kind, tenant, id })))
    if (keys.length > 0 && counts.every((count) => count === 0)) return [{ kind: null, total: 0 }]
    const statement = sql.searchStatement(query, this.now, keys)
    const found = await this.#read(statement, { prefix: prefixOf(query), kind })
    // The page was read after the counts. If another unit committed in between, the page and the counts can differ.
    if (counts.some((count, at) => count !== found[0].counts[at])) throw this.#collide('conflict')
    if (keys.length > 0) this.#reads.addPage(sql.rowsOf(found))
    return found
  }

  async #countRows(key: RowName): Promise<number> {
    // If this unit has changed rows of the kind, an earlier count may be wrong.
    const known = this.#writes.hasChanged(key.kind) ? undefined : this.#reads.countOf(key)
    const count: number = known ?? (await this.#readKey(key, sql.COUNT)).keyed
    this.#reads.addCount(key, count)
    return count
  }

  async #readKey(key: RowName, asks: sql.Lookup['asks'] & number): Promise<Answer> {
    return (await this.#read({ ...key, asks }, { prefix: prefixOf(key), kind: key.kind }))[0]
  }

  /** If rows in the scope have unsent changes, first sends all changes of the kind, because counts go by kind. */
  async #read(wanted: Statement | sql.Lookup, { prefix, kind }: Scope): Promise<Answer[]> {
    this.#refuseLate()
    if (this.#collision !== undefined) throw this.#collision
    if (this.#writes.hasUnsentWith(prefix)) this.#flush(kind)
    const isCached = kind !== undefined && this.#isCached(kind)
    if (isCached) this.#check.useCache()
    if (!this.#reads.beginStatement(isCached)) throw this.#collide('moments')
    try {
      return await this.#session.read(wanted)
    } catch (error) {
      if (error instanceof Collision) this.#collision ??= error
      throw error
    }
  }

  // ---- writes

  async put({ kind, tenant, id, seq, created, modified, expires, keys, seal }: port.Draft) {
    const rev = randomNumber(this.#shared.random, HIGHEST_REV)
    const isNew = seq === undefined
    const row = { kind, tenant, id, seq: seq ?? 0, rev, modified, expires, keys, sealed: keys }
    checkRow({ ...row, created: created ?? (isNew ? this.now : -1) })
    const known = isNew ? undefined : await this.#readRow(row)
    if (!isNew && known === undefined) throw this.#collide('conflict')
    const action = isNew ? writes.INSERT : writes.REPLACE
    const content = { rev, created: created ?? this.now, modified, expires, keys, sealed: seal(rev) }
    this.#change(writes.createChange(action, row, known?.rev, content))
  }

  async remove(kind: number, tenant: number, id: port.RowId): Promise<void> {
    const known = await this.#readRow({ kind, tenant, id })
    if (known !== undefined) this.#change(writes.createChange(writes.REMOVE, known, known.rev))
  }

  append(entry: port.LogEntry): void {
    this.#refuseLate()
    this.entries.push(entry)
  }

  /**
   * Stores pending log entries. With `isChained`, the pending entries are removed instead, because the unit puts these
   * entries into a chain.
   */
  changePending(pending: port.PendingEntries, isChained = false): void {
    this.#refuseLate()
    this.#writes.addPending(pending, isChained)
    this.hasWritten = true
  }

  /**
   * Deletes the rows that the tenant has now. Other units may add rows until the commit, and the engine deletes these
   * rows after the commit. Then nobody can add rows, because the tenant has no keys.
   */
  dropTenant(tenant: number): void {
    this.droppedTenant = tenant
    this.#writes.addKinds(this.#shared.cachedKinds)
    this.hasWritten = true
    this.#flush(undefined, writes.dropTenantStatements(tenant))
    this.#reads.clear()
  }

  storeTime({ isTrusted = false } = {}): void {
    this.#storesTime = true
    if (!isTrusted) return
    this.#confirmedTimes = { time: this.now, last: this.now, since: 0, until: 0 }
    this.clock = { isJump: false, purgeBefore: this.now }
  }

  #change(change: writes.Change): void {
    this.#refuseLate()
    if (!this.#isChange) throw this.#collide('writes')
    // One statement cannot change a row twice.
    if (this.#writes.hasUnsent(change)) this.#flush(change.kind)
    // If the unit read the row in a page before it read the row by its id, the commit requires the revision in the
    // page.
    const was = this.#reads.revisionOf(change) ?? change.was
    this.#writes.add({ ...change, was })
    this.#reads.forget(change)
    this.hasWritten = true
  }

  /**
   * Sends the unsent changes of `kind` (default: all changes) with the next statement. Also sends the preconditions
   * about numbers of rows, because the changes may alter these numbers. The preconditions about revisions are sent at
   * the commit, because the commit locks the rows.
   */
  #flush(kind?: number, then?: readonly Statement[]): void {
    const changes = new Map([...this.#writes.take(kind), ...this.#reads.takeCounts(kind)])
    this.#session.enqueue({ changes }, [], then)
  }

  // ---- the end

  /**
   * Stores everything, if the preconditions still hold. If the unit changes rows or has read at several moments, the
   * revisions and the counts of rows are compared. If the unit stores only log entries or the time, only the counts are
   * compared, because comparing revisions locks rows. If the unit stores nothing and has read at one moment, nothing is
   * compared. @throws Collision
   */
  async commit(): Promise<void> {
    if (this.#collision !== undefined) throw this.#collision
    const logs = await this.#sealEntries()
    this.#isOver = true
    this.hasWritten ||= logs.length > 0
    const storesAnything = this.hasWritten || this.#storesTime
    // A result from one moment stays consistent, even if other units have committed since.
    const ranAtOneMoment = !this.#reads.spansMoments && !this.#writes.hasChangedRows()
    if (!storesAnything && ranAtOneMoment) return this.#session.endReading()
    const preconditions = ranAtOneMoment ? this.#reads.takeCounts() : this.#reads.preconditions
    await this.#session.commit({
      changes: new Map([...preconditions, ...this.#writes.take()]),
      logs,
      times: this.#timesToStore(),
      step: this.#counterStep(),
    })
  }

  #timesToStore(): Times | undefined {
    if (!this.#storesTime) return undefined
    return this.#confirmedTimes ?? advanceTimes(this.#shared.state.times, this.now)
  }

  #counterStep(): number | undefined {
    const { cachedKinds, random } = this.#shared
    const isChanged = [...cachedKinds].some((kind) => this.#writes.hasChanged(kind))
    return isChanged ? randomNumber(random, MAX_STEP) : undefined
  }

  /**
   * Returns the log entries that the commit stores. Returns none if the mode is not `change` and the unit has written
   * nothing. Then the engine stores the entries after the commit.
   */
  async #sealEntries(): Promise<Logged[]> {
    const entries = this.#isChange || this.hasWritten ? this.entries.splice(0) : []
    const logs: Logged[] = []
    for (const tenant of new Set(entries.map((entry) => entry.tenant))) {
      const seal = await this.#shared.logs.sealer.sealerOf(this, tenant)
      const own = entries.filter((entry) => entry.tenant === tenant)
      if (seal !== undefined) logs.push({ tenant, entries: own, seal })
    }
    return logs
  }

  /**
   * Undoes what the attempt wrote before `error`. Returns a collision if the unit must run again. The unit must run
   * again if `error` is a collision. The unit must also run again if it saw outdated cached records, or rows that never
   * existed at the same time, because `error` may then be wrong. @throws CofferError `unavailable` if the store does
   * not answer
   */
  async fail(error: unknown): Promise<Collision | undefined> {
    this.#isOver = true
    if (error instanceof Collision) this.#collision ??= error
    try {
      if (this.#collision !== undefined || isUnavailable(error)) await this.#session.abandon()
      else await this.#abandonIfCurrent()
    } catch (failure) {
      if (!(failure instanceof Collision)) throw failure
      this.#collision ??= failure
    }
    return this.#collision
  }

  /**
   * @throws Collision if the unit has read at several moments and the preconditions are not met, because an
   * inconsistent read may have caused the unit's error
   */
  async #abandonIfCurrent(): Promise<void> {
    for (const change of this.#writes.unsentRows()) this.#reads.requireRevision(change, change.was)
    if (this.#reads.spansMoments) await this.#session.abandonChecked(this.#reads.preconditions)
    else await this.#session.abandon()
    await this.#session.endReading()
  }

  #collide(reason: Reason): Collision {
    this.#collision ??= new Collision(reason)
    return this.#collision
  }

  #refuseLate(): void {
    if (this.#isOver) throw new CofferError('internal', 'A unit of work was used after it had ended.')
  }

  get #isChange(): boolean {
    return this.plan.mode === 'change'
  }

  #isCached(kind: number): boolean {
    return this.#shared.cachedKinds.has(kind)
  }

  #isLive({ expires }: sql.FoundRow): boolean {
    return expires === 0 || expires > this.now
  }
}
