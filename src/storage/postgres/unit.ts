/** One attempt at a unit of work. It keeps what it writes until it reads again, and commits all of it with one statement. */
import type { QueryResult } from 'pg'
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import * as port from '../engine.js'
import { checkRow } from '../lsm/row-change.js'
import type { ClockState } from '../store.js'
import { advanceTimes, clockStatus, type Times } from '../time.js'
import type { Logged } from './logs.js'
import { Collision, isUnavailable, type Statement } from './pool.js'
import * as sql from './read-sql.js'
import { Session, type Shared, type UnitOptions } from './session.js'
import { HIGHEST_REV, MAX_STEP, randomNumber } from './tables.js'
import * as writes from './write-sql.js'

export class Unit implements port.EngineWriter {
  readonly now: number
  clock: ClockState
  /** Entries that nobody waits for. */
  readonly entries: port.LogEntry[] = []
  hasWritten = false
  droppedTenant: number | undefined
  readonly #shared: Shared
  readonly #options: UnitOptions
  readonly #session: Session
  /** Stored by the commit if a person has confirmed the clock. */
  #trusted: Times | undefined
  /** Rows that a change has read by their ids and has not written. */
  readonly #rows = new Map<string, sql.FoundRow | undefined>()
  /** Checks of those that are not cached, and of how many rows its pages found, by their keys. */
  readonly #unchanged = new Map<string, writes.Change>()
  /** By the names of rows, because one statement changes a row once. */
  readonly #changes = new Map<string, writes.Change>()
  readonly #changedKinds = new Set<number>()
  #isNoted = false
  /** It refuses to read and write. */
  #isOver = false

  constructor(shared: Shared, options: UnitOptions) {
    this.#shared = shared
    this.#options = options
    this.#session = new Session(shared, options)
    this.now = Math.floor(shared.clock())
    this.clock = clockStatus(shared.state.times, this.now)
  }

  async get(kind: number, tenant: number, id: port.RowId, options?: { expired?: boolean }) {
    const found = await this.#readRow(kind, tenant, id)
    return found && (options?.expired || this.#isLive(found)) ? sql.rowOf(found) : undefined
  }

  async find(query: port.Query): Promise<port.RowPage> {
    const found = await this.#search(query)
    return { rows: sql.rowsOf(found), total: found[0].total }
  }

  async seek(query: port.SeekQuery): Promise<port.Row[]> {
    const { kind, tenant, size, below, above, where } = query
    if (size === 1 && below === undefined && above === undefined && where !== undefined && 'key' in where) {
      const newest = await this.#readKey({ kind, tenant, id: where.key, asks: sql.NEWEST })
      if (newest.kind === null || this.#isLive(newest)) return sql.rowsOf([newest])
    }
    return sql.rowsOf(await this.#search(query))
  }

  async findExpired(limit: number): Promise<port.Row[]> {
    return sql.rowsOf(await this.#read(sql.findExpiredStatement(limit, this.clock.purgeBefore)))
  }

  async pendingEntries(tenant: number): Promise<readonly (port.LogEntry | undefined)[]> {
    const { logs } = this.#shared
    if (!this.#options.hasSent) {
      await logs.send()
      this.#options.hasSent = true
      // Earlier reads of this unit may be of a moment before they were stored.
      if (this.#session.moments > 0) throw this.#session.collide('stale')
    }
    const rows = await this.readPending(sql.readPendingStatement(tenant))
    rows.sort((one, other) => one.written - other.written)
    const opened = await Promise.all(rows.map((row) => logs.sealer.openPending(this, row, row.sealed)))
    const found = opened.flatMap<port.LogEntry | undefined>((entries) => entries ?? [undefined])
    // Those of one server are in order; what is undefined is sorted behind all.
    return found.sort((one, other) => one!.time - other!.time)
  }

  async readPending(statement: Statement): Promise<port.PendingEntries[]> {
    return (await this.#read(statement)).filter(({ id }) => id !== null)
  }

  /** Stores pending entries; or removes them, because the unit puts them into a chain. */
  changePending(pending: port.PendingEntries, isChained = false): void {
    this.#write(rowName('pending', pending.tenant, pending.id), writes.changePending(pending, isChained))
  }

  changeCounter(kind: number): number | undefined {
    if (!this.#isCached(kind) || this.#changedKinds.has(kind)) return undefined
    this.#session.relies = true
    return this.#session.state.changes
  }

  async put({ kind, tenant, id, seq, created, modified, expires, keys, seal }: port.Draft) {
    const rev = randomNumber(this.#shared.random, HIGHEST_REV)
    const isNew = seq === undefined
    const row = { kind, tenant, id, seq: seq ?? 0, rev, modified, expires, keys, sealed: keys }
    checkRow({ ...row, created: created ?? (isNew ? this.now : -1) })
    const known = isNew ? undefined : await this.#readRow(kind, tenant, id)
    if (!isNew && known === undefined) throw this.#session.collide('conflict')
    const action = isNew ? writes.INSERT : writes.REPLACE
    const content = { rev, created: created ?? this.now, modified, expires, keys, sealed: seal(rev) }
    this.#change(writes.createChange(action, row, known?.rev, content))
  }

  async remove(kind: number, tenant: number, id: port.RowId): Promise<void> {
    const known = await this.#readRow(kind, tenant, id)
    if (known !== undefined) this.#change(writes.createChange(writes.REMOVE, known, known.rev))
  }

  append(entry: port.LogEntry): void {
    this.#refuseLate()
    this.entries.push(entry)
  }

  /** From the commit on the tenant has no keys; the engine deletes what others add until then. */
  dropTenant(tenant: number): void {
    this.droppedTenant = tenant
    for (const kind of this.#shared.remembered) this.#changedKinds.add(kind)
    this.hasWritten = true
    this.#session.hold({ changes: this.#takeChanges() }, [], writes.dropTenantStatements(tenant))
    this.#rows.clear()
    this.#unchanged.clear()
  }

  storeTime({ isTrusted = false } = {}): void {
    this.#isNoted = true
    if (!isTrusted) return
    this.#trusted = { time: this.now, last: this.now, since: 0, until: 0 }
    this.clock = { isJump: false, purgeBefore: this.now }
  }

  /**
   * Rows that the unit changes are compared with what it read. So are rows that it has only read, because it may have based
   * a decision on them; cached records are compared by their counter.
   */
  async commit(): Promise<void> {
    const session = this.#session
    if (session.collision !== undefined) throw session.collision
    const entries = this.#options.isChange || this.hasWritten ? this.entries.splice(0) : []
    const logs: Logged[] = []
    for (const tenant of new Set(entries.map((entry) => entry.tenant))) {
      const seal = await this.#shared.logs.sealer.sealerOf(this, tenant)
      const own = entries.filter((entry) => entry.tenant === tenant)
      if (seal !== undefined) logs.push({ tenant, entries: own, seal })
    }
    this.#isOver = true
    this.hasWritten ||= logs.length > 0
    const compares = this.#changedKinds.size > 0 || session.moments > 1
    if (!this.hasWritten && !this.#isNoted && !compares) return session.endReading()
    if (compares) for (const [name, change] of this.#unchanged) this.#changes.set(name, change)
    const isCached = [...this.#changedKinds].some((kind) => this.#isCached(kind))
    const step = isCached ? randomNumber(this.#shared.random, MAX_STEP) : undefined
    const times = this.#trusted ?? advanceTimes(this.#shared.state.times, this.now)
    const changes = this.#takeChanges()
    await session.commit({ changes, logs, times: this.#isNoted ? times : undefined, step })
  }

  /**
   * Undoes what it wrote, and returns why it is run again: its error may come from what it read, or from cached records
   * that are out of date. @throws CofferError `unavailable` if the store does not answer
   */
  async fail(error: unknown): Promise<Collision | undefined> {
    const session = this.#session
    this.#isOver = true
    // A work may have taken the collision for an error of its own.
    if (error instanceof Collision) session.collision ??= error
    const isKnown = session.collision !== undefined || isUnavailable(error)
    for (const [name, change] of this.#changes)
      if (change.action <= writes.REMOVE)
        this.#unchanged.set(name, writes.createChange(writes.CHECK, change, change.was))
    try {
      await session.abandon(isKnown || session.moments <= 1 ? undefined : this.#unchanged)
      if (!isKnown) await session.endReading()
    } catch (failure) {
      if (!(failure instanceof Collision)) throw failure
      session.collision ??= failure
    }
    return session.collision
  }

  async #readRow(kind: number, tenant: number, id: port.RowId): Promise<sql.FoundRow | undefined> {
    const name = rowName(kind, tenant, id)
    if (this.#rows.has(name)) return this.#rows.get(name)
    const [found] = await this.#read({ kind, tenant, id }, name)
    const row = found.kind === null ? undefined : found
    if (!this.#options.isChange) return row
    this.#rows.set(name, row)
    // Rows of a log are changed by the server that has the chain.
    if (kind !== port.LOG_ROWS) this.#keep({ kind, tenant, id }, row?.rev)
    return row
  }

  /** A change compares the rows that its pages have, and how many have their keys. */
  async #search(query: port.Query | port.SeekQuery): Promise<QueryResult['rows']> {
    const { kind, tenant } = query
    const keys = this.#options.isChange ? sql.countedKeys(query) : []
    const counting = keys.map(async (id) => {
      const isChanged = this.#changedKinds.has(kind)
      const known = isChanged ? undefined : this.#unchanged.get(rowName(kind, tenant, id))
      const count = known?.was ?? (await this.#readKey({ kind, tenant, id, asks: sql.COUNT })).keyed
      this.#keep({ kind, tenant, id }, count, writes.COUNT)
      return count
    })
    const counts: number[] = await Promise.all(counting)
    if (keys.length > 0 && counts.every((count) => count === 0)) return [{ kind: null, total: 0 }]
    const statement = sql.searchStatement(query, this.now, keys)
    const found = await this.#read(statement, `${kind}/${tenant}/`, kind)
    // The page is of a later moment.
    if (counts.some((count, at) => count !== found[0].counts[at])) throw this.#session.collide('conflict')
    if (keys.length > 0) for (const row of sql.rowsOf(found)) this.#keep(row, row.rev)
    return found
  }

  /** The state that was found first is compared when the unit commits. */
  #keep(row: sql.RowName, was?: number, action = writes.CHECK): void {
    const { kind, tenant, id } = row
    const name = rowName(kind, tenant, id)
    if (action === writes.CHECK && this.#isCached(kind)) return
    if (!this.#unchanged.has(name)) this.#unchanged.set(name, writes.createChange(action, row, was))
  }

  async #readKey(name: sql.RowName): Promise<QueryResult['rows'][number]> {
    return (await this.#read(name, `${name.kind}/${name.tenant}/`))[0]
  }

  /** Sends first what the unit has written, if its names begin with `prefix`, because the answer is to show that. */
  #read(wanted: Statement | sql.RowName, prefix = '', kind = 'kind' in wanted ? wanted.kind : undefined) {
    this.#refuseLate()
    if (this.#changes.size > 0 && [...this.#changes.keys()].some((name) => name.startsWith(prefix)))
      this.#session.hold({ changes: this.#takeChanges(kind) })
    return this.#session.read(wanted, kind !== undefined && this.#isCached(kind))
  }

  #isCached(kind: number): boolean {
    return this.#shared.remembered.has(kind)
  }

  #isLive({ expires }: sql.FoundRow): boolean {
    return expires === 0 || expires > this.now
  }

  #change(change: writes.Change): void {
    // A unit that logs reads has not kept what it read.
    if (!this.#options.isChange) {
      Object.assign(this.#options, { isChange: true, isTransaction: false })
      throw this.#session.collide('stale')
    }
    const name = rowName(change.kind, change.tenant, change.id)
    if (this.#changes.has(name)) this.#session.hold({ changes: this.#takeChanges(change.kind) })
    // A page may have found it before it was read by its id.
    change.was = this.#unchanged.get(name)?.was ?? change.was
    this.#write(name, change)
    this.#changedKinds.add(change.kind)
    this.#rows.delete(name)
    this.#unchanged.delete(name)
  }

  #write(name: string, change: writes.Change): void {
    this.#refuseLate()
    this.hasWritten = true
    this.#changes.set(name, change)
  }

  #refuseLate(): void {
    if (this.#isOver) throw new CofferError('internal', 'A unit of work wrote after it had ended.')
  }

  /**
   * All changes, or those of a kind, with the checks of numbers that they may change. The others wait for the commit, which
   * locks the rows that it compares.
   */
  #takeChanges(kind?: number): writes.Changes {
    const changes = new Map<string, writes.Change>()
    for (const from of [this.#changes, this.#unchanged])
      for (const [name, change] of from) {
        const isKept = from === this.#unchanged && change.action !== writes.COUNT
        if (isKept || (kind ?? change.kind) !== change.kind) continue
        changes.set(name, change)
        from.delete(name)
      }
    return changes
  }
}

function rowName(kind: number | 'pending', tenant: number, id: port.RowId): string {
  return `${kind}/${tenant}/${toText(id)}`
}
