/** One attempt at a unit of work. It keeps what it writes until it reads again, and commits all of it with one statement. */
import type { QueryResult } from 'pg'
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import type {
  Draft,
  EngineWriter,
  LogEntry,
  PendingEntries,
  Query,
  Row,
  RowId,
  RowPage,
  SeekQuery,
} from '../engine.js'
import { checkRow } from '../lsm/row-change.js'
import type { ClockState } from '../store.js'
import { advanceTimes, clockStatus, type Times } from '../time.js'
import type { Batch, PendingLogs } from './logs.js'
import { Collision, isUnavailable } from './pool.js'
import * as sql from './read-sql.js'
import { Session, type Shared, type UnitOptions } from './session.js'
import { randomRev, randomStep } from './tables.js'
import { type Change, createChange, INSERT, LOCK, REMOVE, REPLACE, splitKeys } from './write-sql.js'

/** The time is stored with whatever is written if it is older, ms. */
const NOTE_TIME_MS = 60_000
/** The most pending entries that a list reads. */
const MOST_PENDING = { limit: 10_000, bytes: 2 ** 30 }
const KEY_BYTES = 8

export class Unit implements EngineWriter {
  readonly now: number
  clock: ClockState
  /** Entries that nobody waits for. */
  readonly entries: LogEntry[] = []
  hasWritten = false
  /** Whether it left entries in `coffer_waiting`. */
  hasLogged = false
  droppedTenant: number | undefined
  readonly #shared: Shared
  readonly #options: UnitOptions
  readonly #logs: PendingLogs
  readonly #session: Session
  #times: Times
  /** Rows that it read by their ids and has not written; a unit that only reads does not use them again. */
  readonly #rows = new Map<string, sql.FoundRow | undefined>()
  /** Keys that it searched for. */
  readonly #searched = new Set<string>()
  /** By the names of rows, because one statement changes a row once. */
  readonly #changes = new Map<string, Change>()
  readonly #pending: PendingEntries[] = []
  /** Pending entries that the unit has put into a chain. */
  readonly #chained: PendingEntries[] = []
  readonly #changedKinds = new Set<number>()
  #batches: readonly Batch[] = []
  #isNoted = false
  #isOver = false

  constructor(shared: Shared, options: UnitOptions, logs: PendingLogs) {
    this.#shared = shared
    this.#options = options
    this.#logs = logs
    this.#session = new Session(shared, options)
    this.now = Math.floor(shared.clock())
    this.clock = clockStatus(shared.state, this.now)
    this.#times = advanceTimes(shared.state, this.now)
  }

  async get(kind: number, tenant: number, id: RowId, { expired = false } = {}): Promise<Row | undefined> {
    const found = await this.#readRow(kind, tenant, id)
    const isGone = found === undefined || (!expired && found.expires !== 0 && found.expires <= this.now)
    return isGone ? undefined : sql.rowOf(found)
  }

  async find(query: Query): Promise<RowPage> {
    const found = await this.#search(query)
    return { rows: rowsOf(found), total: found[0].total }
  }

  async seek(query: SeekQuery): Promise<Row[]> {
    return rowsOf(await this.#search(query))
  }

  async findExpired(limit: number): Promise<Row[]> {
    return rowsOf(await this.#read(sql.findExpiredStatement(limit, this.clock.purgeBefore), { begins: true }))
  }

  async pendingEntries(tenant: number): Promise<readonly (LogEntry | undefined)[]> {
    if (!this.#options.hasSent && this.#logs.hasUnsent) {
      await this.#logs.send()
      this.#options.hasSent = true
      throw this.#session.collide('conflict')
    }
    const found: LogEntry[] = []
    let unreadable = 0
    for (const row of await this.readPending({ tenant, ...MOST_PENDING })) {
      const entries = await this.#logs.sealer.openPending(this, row, row.sealed)
      if (entries === undefined) unreadable++
      else for (const entry of entries) found.push(entry)
    }
    // Those of one server are in order.
    return [...found.sort((one, other) => one.time - other.time), ...Array<undefined>(unreadable)]
  }

  async readPending(page: sql.PendingPage): Promise<PendingEntries[]> {
    return (await this.#read(sql.readPendingStatement(page))).filter(({ id }) => id !== null)
  }

  /** Removes pending entries, which the unit puts into a chain. */
  endPending(pending: readonly PendingEntries[]): void {
    this.#write()
    this.#chained.push(...pending)
  }

  async storePending(batch: Batch): Promise<void> {
    const { id, tenant, chain, written, entries } = batch
    const sealed = await this.#logs.sealer.sealPending(this, batch, entries)
    // The tenant was deleted.
    if (sealed === undefined) return
    this.#write()
    this.#pending.push({ id, tenant, chain, written, sealed })
    this.hasLogged = true
  }

  changeCounter(kind: number): number | undefined {
    if (!this.#shared.remembered.has(kind) || this.#changedKinds.has(kind)) return undefined
    this.#session.relies = true
    return this.#session.state.changes
  }

  put(draft: Draft): Promise<void> | undefined {
    const { seq = 0, created = draft.seq === undefined ? this.now : -1, seal, ...content } = draft
    const row = { ...content, seq, rev: 0, created, sealed: content.keys }
    checkRow(row)
    this.#refuseSkew(row.keys)
    if (draft.seq !== undefined) return this.#replace(row, seal)
    row.rev = randomRev(this.#shared.random)
    row.sealed = seal(row.rev)
    this.#change(createChange(INSERT, row))
    return undefined
  }

  async #replace(row: Row, seal: Draft['seal']): Promise<void> {
    const known = await this.#readRow(row.kind, row.tenant, row.id)
    if (known === undefined) throw this.#session.collide('conflict')
    const rev = randomRev(this.#shared.random)
    this.#change(createChange(REPLACE, { ...row, seq: known.seq, rev, sealed: seal(rev) }, known))
  }

  async remove(kind: number, tenant: number, id: RowId): Promise<void> {
    const known = await this.#readRow(kind, tenant, id)
    if (known !== undefined) this.#change(createChange(REMOVE, sql.rowOf(known), known))
  }

  append(entry: LogEntry): void {
    this.#refuseLate()
    this.entries.push(entry)
  }

  dropTenant(tenant: number): void {
    for (const kind of this.#shared.remembered) this.#changedKinds.add(kind)
    this.droppedTenant = tenant
    this.#write()
    this.#flush()
    this.#rows.clear()
    this.#session.holdDrop(tenant)
  }

  storeTime({ isTrusted = false } = {}): void {
    this.#isNoted = true
    if (!isTrusted) return
    this.#times = { time: this.now, last: this.now, since: 0, until: 0 }
    this.clock = { isJump: false, purgeBefore: this.now }
  }

  async commit(): Promise<void> {
    const session = this.#session
    if (session.collision !== undefined) throw session.collision
    if (!this.hasWritten && session.isLoose) throw session.collide('snapshot')
    const { isChange, isolation } = this.#options
    if (isChange || this.hasWritten) await this.#storeEntries(this.entries.splice(0))
    const times = this.#timesToNote()
    if (!this.hasWritten && times === undefined) return session.endReading()
    const { remembered, random } = this.#shared
    // The unit may have based a decision on what it read. Cached records are compared by the counter.
    if (this.#changedKinds.size > 0 && isolation !== 'serializable')
      for (const [name, row] of this.#rows)
        if (row !== undefined && !remembered.has(row.kind))
          this.#changes.set(name, createChange(LOCK, sql.rowOf(row), { ...row, keys: sql.NOTHING }))
    const isCached = [...this.#changedKinds].some((kind) => remembered.has(kind))
    await session.commit(this.#takeWrites(), { times, step: isCached ? randomStep(random) : undefined })
  }

  /** Undoes what it wrote. */
  abandon(): Promise<void> {
    return this.#session.abandon()
  }

  /**
   * Why a unit that failed is run again: its error may come from what it read, or from cached records that are out of date.
   * @throws CofferError `unavailable` if the store does not answer
   */
  async explain(error: unknown): Promise<Collision | undefined> {
    const session = this.#session
    if (error instanceof Collision) session.collision ??= error
    if (session.collision !== undefined || isUnavailable(error)) return session.collision
    if (session.isLoose) return session.collide('snapshot')
    await session.confirm().catch((failure) => {
      if (!(failure instanceof Collision)) throw failure
    })
    return session.collision
  }

  /** From here on it refuses to read and write. */
  end(): void {
    this.#isOver = true
    this.#logs.end(this.#batches)
  }

  async #storeEntries(entries: readonly LogEntry[]): Promise<void> {
    if (entries.length === 0) return
    this.#batches = this.#logs.begin(entries, await this.#logs.claim())
    for (const batch of this.#batches) await this.storePending(batch)
  }

  /** One unit stores the time for all that run at once. */
  #timesToNote(): Times | undefined {
    const isOld = this.now - this.#session.state.last > NOTE_TIME_MS
    const isFirst = Math.abs(this.now - this.#shared.notedAt) > NOTE_TIME_MS
    const isTimely = this.clock.isJump || (isOld && isFirst)
    if (!this.#isNoted && !(isTimely && this.hasWritten)) return undefined
    this.#shared.notedAt = this.now
    return this.#times
  }

  async #readRow(kind: number, tenant: number, id: RowId): Promise<sql.FoundRow | undefined> {
    const name = rowName(kind, tenant, id)
    const { isChange } = this.#options
    if (isChange && this.#rows.has(name)) return this.#rows.get(name)
    const isCached = this.#shared.remembered.has(kind)
    const [row] = await this.#read(sql.getStatement(kind, tenant, id), { isCached })
    const found = row.kind === null ? undefined : row
    this.#rows.set(name, isChange ? found : found && { ...found, sealed: null })
    return found
  }

  /** A change that begins with a search may put what it did not find, so it is serializable from then on. */
  #search(query: Query | SeekQuery): Promise<QueryResult['rows']> {
    const { where, all, kind } = query
    if (this.#options.isChange && !this.hasWritten && !this.#session.hasRead)
      this.#options.isolation ??= 'serializable'
    const keys = sql.searchedKeys(where)
    for (const key of keys.length === 0 ? [toText(all)] : keys) this.#searched.add(key)
    const isCached = this.#shared.remembered.has(kind)
    return this.#read(sql.searchStatement(query, this.now), { isCached })
  }

  /** Two units that search for a key, find nothing and put a row with it would both commit, were they not serializable. */
  #refuseSkew(keys: Uint8Array): void {
    if (this.#searched.size === 0 || this.#options.isolation === 'serializable') return
    const all = toText(keys, 0, KEY_BYTES)
    if ([all, ...splitKeys(keys).keys()].some((key) => this.#searched.has(key)))
      throw this.#session.collide('serializable')
  }

  #read(statement: Parameters<Session['read']>[0], options: Parameters<Session['read']>[1] = {}) {
    this.#refuseLate()
    if (this.#changes.size + this.#pending.length + this.#chained.length > 0) this.#flush()
    return this.#session.read(statement, options)
  }

  #change(change: Change): void {
    this.#write()
    const name = rowName(change.kind, change.tenant, change.id)
    if (this.#changes.has(name)) this.#flush()
    this.#changes.set(name, change)
    this.#changedKinds.add(change.kind)
    this.#rows.delete(name)
  }

  #write(): void {
    this.#refuseLate()
    this.hasWritten = true
  }

  #refuseLate(): void {
    if (this.#isOver) throw new CofferError('internal', 'A unit of work wrote after it had ended.')
  }

  #flush(): void {
    this.#session.hold(this.#takeWrites())
  }

  #takeWrites() {
    const changes = [...this.#changes.values()]
    this.#changes.clear()
    return { changes, pending: this.#pending.splice(0), chained: this.#chained.splice(0) }
  }
}

function rowName(kind: number, tenant: number, id: RowId): string {
  return `${kind}/${tenant}/${toText(id)}`
}

function rowsOf(found: QueryResult['rows']): Row[] {
  return found.filter(({ kind }) => kind !== null).map(sql.rowOf)
}
