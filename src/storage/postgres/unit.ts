/** One attempt at a unit of work. It keeps what it writes until it reads again, and commits all of it with one statement. */
import type { QueryResult } from 'pg'
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import type * as port from '../engine.js'
import { checkRow } from '../lsm/row-change.js'
import type { ClockState } from '../store.js'
import { advanceTimes, clockStatus, type Times } from '../time.js'
import type { Batch, PendingLogs } from './logs.js'
import { Collision, isUnavailable, type Statement } from './pool.js'
import * as sql from './read-sql.js'
import { Session, type Shared, type UnitOptions } from './session.js'
import { randomRev, randomStep } from './tables.js'
import { type Change, createChange, createCheck, INSERT, keyTexts, REMOVE, REPLACE } from './write-sql.js'

/** The most pending entries that a list reads. */
const MOST_PENDING = 10_000

export class Unit implements port.EngineWriter {
  readonly now: number
  clock: ClockState
  /** Entries that nobody waits for. */
  readonly entries: port.LogEntry[] = []
  hasWritten = false
  droppedTenant: number | undefined
  readonly #shared: Shared
  readonly #options: UnitOptions
  readonly #logs: PendingLogs
  readonly #session: Session
  #times: Times
  /** Rows that a change has read by their ids and has not written. */
  readonly #rows = new Map<string, sql.FoundRow | undefined>()
  /** Checks of those that are not cached. */
  readonly #unchanged = new Map<string, Change>()
  /** Keys that it searched for. */
  readonly #searched = new Set<string>()
  /** By the names of rows, because one statement changes a row once. */
  readonly #changes = new Map<string, Change>()
  readonly #pending: port.PendingEntries[] = []
  /** Pending entries that the unit has put into a chain. */
  readonly #chained: port.PendingEntries[] = []
  readonly #changedKinds = new Set<number>()
  #batches: readonly Batch[] = []
  /** Whether entries were in this process only when the unit began: it may have read before they were stored. */
  readonly #hadUnsent: boolean
  #isNoted = false
  #isOver = false

  constructor(shared: Shared, options: UnitOptions, logs: PendingLogs) {
    this.#shared = shared
    this.#options = options
    this.#logs = logs
    this.#session = new Session(shared, options)
    this.#hadUnsent = logs.hasUnsent
    this.now = Math.floor(shared.clock())
    this.clock = clockStatus(shared.state, this.now)
    this.#times = advanceTimes(shared.state, this.now)
  }

  async get(
    kind: number,
    tenant: number,
    id: port.RowId,
    { expired = false } = {},
  ): Promise<port.Row | undefined> {
    const found = await this.#readRow(kind, tenant, id)
    const isGone = found === undefined || (!expired && found.expires !== 0 && found.expires <= this.now)
    return isGone ? undefined : sql.rowOf(found)
  }

  async find(query: port.Query): Promise<port.RowPage> {
    const found = await this.#search(query)
    return { rows: sql.rowsOf(found), total: found[0].total }
  }

  async seek(query: port.SeekQuery): Promise<port.Row[]> {
    return sql.rowsOf(await this.#search(query))
  }

  async findExpired(limit: number): Promise<port.Row[]> {
    const statement = sql.findExpiredStatement(limit, this.clock.purgeBefore)
    return sql.rowsOf(await this.#read(statement, () => true, { begins: true }))
  }

  async pendingEntries(tenant: number): Promise<readonly (port.LogEntry | undefined)[]> {
    if (!this.#options.hasSent && this.#hadUnsent) {
      await this.#logs.send()
      this.#options.hasSent = true
      throw this.#session.collide('conflict')
    }
    const found: port.LogEntry[] = []
    let unreadable = 0
    const rows = await this.#readPending(sql.readPendingStatement(tenant, MOST_PENDING))
    for (const row of rows.sort((one, other) => one.written - other.written)) {
      const entries = await this.#logs.sealer.openPending(this, row, row.sealed)
      if (entries === undefined) unreadable++
      else for (const entry of entries) found.push(entry)
    }
    // Those of one server are in order.
    return [...found.sort((one, other) => one.time - other.time), ...Array<undefined>(unreadable)]
  }

  readChain(page: sql.ChainPage): Promise<port.PendingEntries[]> {
    return this.#readPending(sql.readChainStatement(page))
  }

  async #readPending(statement: Statement): Promise<port.PendingEntries[]> {
    return (await this.#read(statement, () => true)).filter(({ id }) => id !== null)
  }

  /** Removes pending entries, which the unit puts into a chain. */
  endPending(pending: readonly port.PendingEntries[]): void {
    this.#write()
    this.#chained.push(...pending)
  }

  async storePending(batch: Batch): Promise<void> {
    const { id, tenant, chain, written, entries } = batch
    const sealed = await this.#logs.sealer.sealPending(this, batch, entries)
    if (sealed === undefined) return // The tenant was deleted.
    this.#write()
    this.#pending.push({ id, tenant, chain, written, sealed })
  }

  changeCounter(kind: number): number | undefined {
    if (!this.#shared.remembered.has(kind) || this.#changedKinds.has(kind)) return undefined
    this.#session.relies = true
    return this.#session.state.changes
  }

  async put({
    seal,
    seq,
    created = seq === undefined ? this.now : -1,
    ...content
  }: port.Draft): Promise<void> {
    const { kind, tenant, id } = content
    const rev = randomRev(this.#shared.random)
    const row = { ...content, seq: seq ?? 0, rev, created, sealed: content.keys }
    checkRow(row)
    this.#refuseSkew(row.keys)
    const known = seq === undefined ? undefined : await this.#readRow(kind, tenant, id)
    if (seq !== undefined && known === undefined) throw this.#session.collide('conflict')
    const sealed = { ...row, seq: known?.seq ?? 0, sealed: seal(rev) }
    this.#change(createChange(known === undefined ? INSERT : REPLACE, sealed, known))
  }

  async remove(kind: number, tenant: number, id: port.RowId): Promise<void> {
    const known = await this.#readRow(kind, tenant, id)
    if (known !== undefined) this.#change(createChange(REMOVE, sql.rowOf(known), known))
  }

  append(entry: port.LogEntry): void {
    this.#refuseLate()
    this.entries.push(entry)
  }

  /** In a unit of many rows. From its commit on the tenant has no keys; the engine deletes what others add until then. */
  dropTenant(tenant: number): void {
    if (!this.#options.isBulk) {
      this.#options.isBulk = true
      throw this.#session.collide('moments')
    }
    this.droppedTenant = tenant
    for (const kind of this.#shared.remembered) this.#changedKinds.add(kind)
    this.#write()
    this.#session.hold(this.#takeWrites())
    this.#rows.clear()
    this.#session.holdDrop(tenant)
  }

  storeTime({ isTrusted = false } = {}): void {
    this.#isNoted = true
    if (!isTrusted) return
    this.#times = { time: this.now, last: this.now, since: 0, until: 0 }
    this.clock = { isJump: false, purgeBefore: this.now }
  }

  /**
   * Rows that the unit changes are compared with what it read. So are rows that it has only read, because it may have based
   * a decision on them; cached records are compared by their counter.
   */
  async commit(): Promise<void> {
    const session = this.#session
    if (session.collision !== undefined) throw session.collision
    const { isChange, isBulk } = this.#options
    if (this.#changedKinds.size === 0 && session.isLoose && !isBulk) throw session.collide('moments')
    if (isChange || this.hasWritten) await this.#storeEntries(this.entries.splice(0))
    if (!this.hasWritten && !this.#isNoted) return session.endReading()
    const { remembered, random } = this.#shared
    if (this.#changedKinds.size > 0 && !isBulk)
      for (const [name, change] of this.#unchanged) this.#changes.set(name, change)
    const isCached = [...this.#changedKinds].some((kind) => remembered.has(kind))
    const step = isCached ? randomStep(random) : undefined
    await session.commit(this.#takeWrites(), { times: this.#isNoted ? this.#times : undefined, step })
  }

  /**
   * Undoes what it wrote, and returns why it is run again: its error may come from what it read, or from cached records
   * that are out of date. @throws CofferError `unavailable` if the store does not answer
   */
  async fail(error: unknown): Promise<Collision | undefined> {
    const session = this.#session
    await session.abandon()
    // A work may have taken the collision for an error of its own.
    if (error instanceof Collision) session.collision ??= error
    if (session.collision !== undefined || isUnavailable(error)) return session.collision
    if (session.isLoose) return session.collide('moments')
    await session.confirm().catch((failure) => {
      if (!(failure instanceof Collision)) throw failure
    })
    return session.collision
  }

  /** From here on it refuses to read and write. */
  end(): void {
    this.#isOver = true
    this.#logs.end(this.#batches, this.#batches.length > 0)
  }

  async #storeEntries(entries: readonly port.LogEntry[]): Promise<void> {
    if (entries.length === 0) return
    this.#batches = this.#logs.begin(entries, await this.#logs.claim())
    for (const batch of this.#batches) await this.storePending(batch)
  }

  async #readRow(kind: number, tenant: number, id: port.RowId): Promise<sql.FoundRow | undefined> {
    const name = rowName(kind, tenant, id)
    if (this.#rows.has(name)) return this.#rows.get(name)
    const isCached = this.#shared.remembered.has(kind)
    const [found] = await this.#read(sql.getStatement(kind, tenant, id), (each) => each === name, {
      isCached,
    })
    const row = found.kind === null ? undefined : found
    if (this.#options.isChange) this.#rows.set(name, row)
    if (!isCached) this.#unchanged.set(name, createCheck({ kind, tenant, id }, row?.rev))
    return row
  }

  /**
   * A change that begins with a search may put what it did not find, so it is one transaction. One that removes a parent
   * sends that before it searches children, so it sees all of them.
   */
  #search(query: port.Query | port.SeekQuery): Promise<QueryResult['rows']> {
    const { where, all, kind } = query
    if (this.#options.isChange && !this.hasWritten && !this.#session.hasRead)
      this.#options.isTransaction = true
    const keys = sql.searchedKeys(where)
    for (const key of keys.length === 0 ? [toText(all)] : keys) this.#searched.add(key)
    const isCached = this.#shared.remembered.has(kind)
    return this.#read(sql.searchStatement(query, this.now), () => true, { isCached })
  }

  /** Two units that search for a key, find nothing and put a row with it would both commit, were they not serializable. */
  #refuseSkew(keys: Uint8Array): void {
    if (this.#searched.size === 0 || this.#options.isTransaction === true) return
    if (keyTexts(keys).some((key) => this.#searched.has(key))) throw this.#session.collide('moments')
  }

  /** Sends first what the unit has written, if the statement is to see it. */
  #read(statement: Statement, sees: (name: string) => boolean, options: Parameters<Session['read']>[1] = {}) {
    this.#refuseLate()
    if ([...this.#changes.keys()].some(sees)) this.#session.hold(this.#takeWrites())
    return this.#session.read(statement, options)
  }

  #change(change: Change): void {
    this.#write()
    // A unit that logs reads has not kept what it read.
    if (!this.#options.isChange) {
      this.#options.isChange = true
      throw this.#session.collide('moments')
    }
    const name = rowName(change.kind, change.tenant, change.id)
    if (this.#changes.has(name)) this.#session.hold(this.#takeWrites())
    this.#changes.set(name, change)
    this.#changedKinds.add(change.kind)
    this.#rows.delete(name)
    this.#unchanged.delete(name)
  }

  #write(): void {
    this.#refuseLate()
    this.hasWritten = true
  }

  #refuseLate(): void {
    if (this.#isOver) throw new CofferError('internal', 'A unit of work wrote after it had ended.')
  }

  #takeWrites() {
    const changes = [...this.#changes.values()]
    this.#changes.clear()
    return { changes, pending: this.#pending.splice(0), chained: this.#chained.splice(0) }
  }
}

function rowName(kind: number, tenant: number, id: port.RowId): string {
  return `${kind}/${tenant}/${toText(id)}`
}
