/**
 * One attempt at a unit of work. Reads are sent at once. Changes are collected, and the commit sends all of them with one
 * statement, together with the preconditions: what the attempt has read must be unchanged. If it is not, or if the attempt
 * cannot go on by its plan, a {@link Collision} ends it, and the engine runs the unit again by another plan.
 */
import { CofferError } from '../../errors.js'
import type * as port from '../engine.js'
import { checkRow } from '../lsm/row-change.js'
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

/** Rows that an answer depends on: those whose names begin with `prefix`. `kind`: undefined for rows of several kinds. */
interface Scope {
  prefix: string
  kind?: number
}

const EVERYTHING: Scope = { prefix: '' }

export class Unit implements port.EngineWriter {
  readonly now: number
  clock: ClockState
  /** The plan of this attempt, and what it has done that the next one need not repeat. */
  plan: Plan
  /** Log entries of the unit. Those that the commit does not store are stored by the engine, soon. */
  readonly entries: port.LogEntry[] = []
  hasWritten = false
  droppedTenant: number | undefined
  readonly #shared: Shared
  readonly #session: Session
  readonly #check: StateCheck
  readonly #reads: ReadSet
  readonly #writes = new WriteSet()
  /** The commit stores the time, also if it stores nothing else. */
  #storesTime = false
  /** The times to store if a person has confirmed the clock. */
  #confirmedTimes: Times | undefined
  /** Kept, because a handler may swallow the collision. */
  #collision: Collision | undefined
  /** The attempt refuses to read and write. */
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
    // The entries of one server are in order already. What cannot be read is undefined, and `sort` puts it at the end.
    return found.sort((one, other) => one!.time - other!.time)
  }

  /** Stores the log entries of earlier reads of this process, so that the unit finds them. */
  async #sendLogs(): Promise<void> {
    if (this.plan.hasSentLogs) return
    await this.#shared.logs.send()
    this.plan = { ...this.plan, hasSentLogs: true }
    // What the attempt has read may be older than these entries.
    if (this.#reads.hasMoment) throw this.#collide('logs')
  }

  async readPending(statement: Statement): Promise<port.PendingEntries[]> {
    return (await this.#read(statement, EVERYTHING)).filter(({ id }) => id !== null)
  }

  changeCounter(kind: number): number | undefined {
    return this.#isCached(kind) && !this.#writes.hasChanged(kind) ? this.#check.useCache() : undefined
  }

  /** A change reads a row once. */
  async #readRow(name: RowName): Promise<sql.FoundRow | undefined> {
    if (this.#reads.hasRow(name)) return this.#reads.rowOf(name)
    const [found] = await this.#read(name, { prefix: nameOf(name), kind: name.kind })
    const row = found.kind === null ? undefined : found
    if (this.#isChange) this.#reads.addRow(name, row)
    return row
  }

  /**
   * In a change, rows that are added to or removed from the result are noticed by the number of rows that have a key of
   * the query, and rows of the page that are changed by their revisions.
   */
  async #search(query: port.Query | port.SeekQuery): Promise<Answer[]> {
    const { kind, tenant } = query
    const keys = this.#isChange ? sql.countedKeys(query) : []
    const counts = await Promise.all(keys.map((id) => this.#countRows({ kind, tenant, id })))
    if (keys.length > 0 && counts.every((count) => count === 0)) return [{ kind: null, total: 0 }]
    const statement = sql.searchStatement(query, this.now, keys)
    const found = await this.#read(statement, { prefix: prefixOf(query), kind })
    // The page is of a later moment than the counts.
    if (counts.some((count, at) => count !== found[0].counts[at])) throw this.#collide('conflict')
    if (keys.length > 0) this.#reads.addPage(sql.rowsOf(found))
    return found
  }

  async #countRows(key: RowName): Promise<number> {
    // Own changes may have changed the number.
    const known = this.#writes.hasChanged(key.kind) ? undefined : this.#reads.countOf(key)
    const count: number = known ?? (await this.#readKey(key, sql.COUNT)).keyed
    this.#reads.addCount(key, count)
    return count
  }

  async #readKey(key: RowName, asks: sql.Lookup['asks'] & number): Promise<Answer> {
    return (await this.#read({ ...key, asks }, { prefix: prefixOf(key), kind: key.kind }))[0]
  }

  /** Every read goes through here. If the unit has changed rows of the scope, their changes are sent before it. */
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

  /** Stores pending entries; or removes them, because the unit puts them into a chain. */
  changePending(pending: port.PendingEntries, isChained = false): void {
    this.#refuseLate()
    this.#writes.addPending(pending, isChained)
    this.hasWritten = true
  }

  /** From the commit on the tenant has no keys; the engine deletes what others add until then. */
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
    // One statement changes a row once.
    if (this.#writes.hasUnsent(change)) this.#flush(change.kind)
    // A page may have found another revision before the row was read by its id.
    const was = this.#reads.revisionOf(change) ?? change.was
    this.#writes.add({ ...change, was })
    this.#reads.forget(change)
    this.hasWritten = true
  }

  /**
   * Sends changes with the next statement, those of one kind or all, and with them the numbers of rows that they may change.
   * Revisions are compared by the commit, which locks their rows.
   */
  #flush(kind?: number, then?: readonly Statement[]): void {
    const changes = new Map([...this.#writes.take(kind), ...this.#reads.takeCounts(kind)])
    this.#session.enqueue({ changes }, [], then)
  }

  // ---- the end

  async commit(): Promise<void> {
    if (this.#collision !== undefined) throw this.#collision
    const logs = await this.#sealEntries()
    this.#isOver = true
    this.hasWritten ||= logs.length > 0
    // An attempt that has read one moment, and changes no row, is as if it had run at that moment.
    const mustCompare = this.#writes.hasChangedRows() || this.#reads.spansMoments
    if (!this.hasWritten && !this.#storesTime && !mustCompare) return this.#session.endReading()
    // Numbers of rows are always compared, because that needs no lock.
    const preconditions = mustCompare ? this.#reads.preconditions : this.#reads.takeCounts()
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

  /** What the commit adds to the counter of cached records; undefined if it changes none of them. */
  #counterStep(): number | undefined {
    const { cachedKinds, random } = this.#shared
    const isChanged = [...cachedKinds].some((kind) => this.#writes.hasChanged(kind))
    return isChanged ? randomNumber(random, MAX_STEP) : undefined
  }

  /** A change commits its log entries. The entries of a read are left to the engine. */
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
   * Undoes what the attempt wrote. Returns the collision if the unit must run again: `error` may be one, or may come from
   * rows that were never there at the same time, or from cached records that are out of date.
   * @throws CofferError `unavailable` if the store does not answer
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

  /** @throws Collision if the attempt has not seen one current state of the store */
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
    if (this.#isOver) throw new CofferError('internal', 'A unit of work wrote after it had ended.')
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
