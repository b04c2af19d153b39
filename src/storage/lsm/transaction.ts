/** A transaction: what one unit of work sees and has changed so far. The engine commits the changes or drops them. */

import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import type {
  Draft,
  EngineReader,
  EngineWriter,
  LogEntry,
  LogSealer,
  Query,
  Row,
  RowId,
  RowPage,
  SeekQuery,
} from '../engine.js'
import type { ClockState } from '../store.js'
import { judgeClock, passTime, type Times } from '../time.js'
import type { Counters } from './counters.js'
import { Memtable } from './memtable.js'
import { changeCounterOf, findExpired, findRows, getRow, seekRows, type View } from './query.js'
import {
  type Change,
  type ChangeKind,
  changeLength,
  checkRow,
  DROP,
  INSERT,
  nameRow,
  REMOVE,
  REPLACE,
} from './sstable/row-change.js'

/** @param view called for each query @param times those of the newest change @param now the clock's */
export function createReader(view: () => View, times: Times, now: number): EngineReader {
  const clock = judgeClock(times, now)
  return {
    now,
    clock,
    get: (kind, tenant, id, { expired = false } = {}) => getRow(view(), { kind, tenant, id, expired }, now),
    find: (query) => findRows(view(), query, now),
    seek: (query) => seekRows(view(), query, now),
    findExpired: (limit) => findExpired(view(), limit, clock.purgeUntil),
    changeCounter: (kind) => changeCounterOf(view(), kind),
    pendingEntries: (tenant) => pendingOf(view(), tenant),
  }
}

export class Transaction implements EngineWriter {
  readonly now: number
  /** Whether its time is committed even if it changes nothing. */
  isNoted = false
  readonly changes: Change[] = []
  /** Log entries, made into rows when the unit is committed. */
  readonly entries: LogEntry[] = []
  /** Bytes that the changes take in a frame. */
  bytes = 0
  readonly #below: View
  readonly #counters: Counters
  #memtable: Memtable | undefined
  /** The memtable on top of `#below`. */
  #view: View | undefined
  /** How many of the changes are in the memtable. */
  #applied = 0
  #seq: number
  /** Set when a person confirmed the clock. */
  #confirmed: Times | undefined
  #isOver = false

  /**
   * @param below the state below the changes of the work; it does not change while the work runs
   * @param now the clock's
   */
  constructor(below: View, counters: Counters, now: number) {
    this.#below = below
    this.#counters = counters
    this.now = now
    this.#seq = counters.seq
  }

  get clock(): ClockState {
    if (this.#confirmed !== undefined) return { isJump: false, purgeUntil: this.now }
    return judgeClock(this.#counters, this.now)
  }

  /** Applies the changes when it is read, because most units of work write only at their end. */
  get memtable(): Memtable {
    this.#memtable ??= new Memtable()
    while (this.#applied < this.changes.length) this.#memtable.apply(this.changes[this.#applied++]!)
    return this.#memtable
  }

  #viewAll(): View {
    const below = this.#below
    if (this.changes.length === 0) return below
    const { memtable } = this
    this.#view ??= { ...below, memtables: [memtable, ...below.memtables], uncommitted: below.uncommitted + 1 }
    return this.#view
  }

  get #revision(): number {
    return this.#counters.rev + this.changes.length
  }

  get(
    kind: number,
    tenant: number,
    id: RowId,
    { expired = false }: { expired?: boolean } = {},
  ): Row | undefined {
    return getRow(this.#viewAll(), { kind, tenant, id, expired }, this.now)
  }

  find(query: Query): RowPage {
    return findRows(this.#viewAll(), query, this.now)
  }

  seek(query: SeekQuery): Row[] {
    return seekRows(this.#viewAll(), query, this.now)
  }

  findExpired(limit: number): Row[] {
    return findExpired(this.#viewAll(), limit, this.clock.purgeUntil)
  }

  changeCounter(kind: number): number | undefined {
    return changeCounterOf(this.#viewAll(), kind)
  }

  get hasEffect(): boolean {
    return this.changes.length > 0 || this.entries.length > 0 || this.isNoted
  }

  put(draft: Draft): void {
    if (draft.seq !== undefined) {
      this.#replace(draft, draft.seq)
      return
    }
    if (this.#isKnown(toText(draft.id), draft.tenant)) {
      throw new CofferError('internal', 'A row was put as new though there is one of its id.')
    }
    this.#take(INSERT, this.#rowOf(draft, this.#seq++, this.now))
  }

  #replace(draft: Draft, seq: number): void {
    if (draft.created === undefined)
      throw new CofferError('internal', 'A row was replaced without its time of creation.')
    this.#take(REPLACE, this.#rowOf(draft, seq, draft.created))
  }

  /** Lists the fields, here and below, so that all rows have one shape: there are many of them. */
  #rowOf(draft: Draft, seq: number, created: number): Row {
    const { kind, tenant, id, modified, expires, keys } = draft
    const rev = this.#revision
    const sealed = draft.seal(rev)
    return { kind, tenant, id, seq, rev, created, modified, expires, keys, sealed }
  }

  remove(kind: number, tenant: number, id: RowId): void {
    this.#take(REMOVE, nameRow(kind, tenant, id, this.#revision))
  }

  append(entry: LogEntry): void {
    if (this.#isOver) throw writtenLate()
    this.entries.push(entry)
  }

  pendingEntries(tenant: number): LogEntry[] {
    return pendingOf(this.#below, tenant)
  }

  /** Puts the rows of log entries, even after {@link end}. */
  async seal(sealer: LogSealer, entries: readonly LogEntry[]): Promise<void> {
    this.#isOver = false
    await sealer.seal(this, entries)
    this.#isOver = true
  }

  dropTenant(tenant: number): void {
    this.#take(DROP, nameRow(0, tenant, new Uint8Array(16), this.#revision))
  }

  noteTime({ isTrusted = false } = {}): void {
    this.isNoted = true
    if (isTrusted) this.#confirmed = { time: this.now, last: this.now, since: 0, until: 0 }
  }

  /** From here on every write is refused. */
  end(): void {
    this.#isOver = true
  }

  /** Moves `counters` on by what the transaction used. Contract: they are those it began with. */
  advance(counters: Counters): void {
    counters.rev += this.changes.length
    counters.seq = this.#seq
    Object.assign(counters, this.#confirmed ?? passTime(counters, this.now))
  }

  #take(kind: ChangeKind, row: Row): void {
    if (this.#isOver) throw writtenLate()
    checkRow(row)
    const change = { kind, row }
    this.changes.push(change)
    this.bytes += changeLength(change)
  }

  /** Whether a memtable holds a row of this id; the caller has searched the tables. */
  #isKnown(text: string, tenant: number): boolean {
    for (const memtable of this.#viewAll().memtables) {
      const entry = memtable.entry(text)
      if (entry !== undefined) return entry.item !== undefined
      if (memtable.dropped.has(tenant)) return false
    }
    return false
  }
}

function pendingOf({ held }: View, tenant: number): LogEntry[] {
  return held.filter((entry) => entry.tenant === tenant)
}

function writtenLate(): CofferError {
  return new CofferError('internal', 'A unit of work wrote after it had ended.')
}
