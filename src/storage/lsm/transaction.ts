import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import type { Draft, EngineWriter, LogEntry, LogSealer, Row, RowId } from '../engine.js'
import * as frame from '../rows/frame.js'
import { checkRow, tombstone } from '../rows/row.js'
import type { ClockState } from '../store.js'
import { advanceTimes, type Counters, type Times } from '../time.js'
import { Memtable } from './memtable.js'
import { Reader, type View } from './query.js'

export class Transaction extends Reader implements EngineWriter {
  storesTime = false
  readonly changes: frame.Change[] = []
  readonly entries: LogEntry[] = []
  readonly #counters: Counters
  /**
   * The changes as a memtable. The memtable is created only when the unit of work reads after a change, because most
   * units write only at their end.
   */
  own: Memtable | undefined
  #view: View | undefined
  #seq: number
  #confirmed: Times | undefined
  #isOver = false

  constructor(below: View, counters: Counters, now: number) {
    super(below, counters, now)
    this.#counters = counters
    this.#seq = counters.seq
  }

  override get clock(): ClockState {
    return this.#confirmed === undefined ? super.clock : { isJump: false, purgeBefore: this.now }
  }

  protected override get view(): View {
    const { below } = this
    if (this.changes.length === 0) return below
    this.own ??= new Memtable(this.changes)
    const memtables = [this.own, ...below.memtables]
    this.#view ??= { ...below, memtables, uncommitted: below.uncommitted + 1 }
    return this.#view
  }

  get #revision(): number {
    return this.#counters.rev + this.changes.length
  }

  get hasEffect(): boolean {
    return this.changes.length > 0 || this.entries.length > 0 || this.storesTime
  }

  put(draft: Draft): void {
    const { seq, created } = draft
    if (seq === undefined) {
      if (this.#isKnown(toText(draft.id), draft.tenant))
        throw new CofferError('internal', 'A row was put as new, but a row with its id exists.')
      this.#take(frame.INSERT, this.#rowOf(draft, this.#seq++, this.now))
    } else if (created === undefined)
      throw new CofferError('internal', 'A row was replaced without its time of creation.')
    else this.#take(frame.REPLACE, this.#rowOf(draft, seq, created))
  }

  /** The fields are listed one by one, so that all rows have the same hidden class in V8. */
  #rowOf(draft: Draft, seq: number, created: number): Row {
    const { kind, tenant, id, modified, expires, keys } = draft
    const rev = this.#revision
    const sealed = draft.seal(rev)
    return { kind, tenant, id, seq, rev, created, modified, expires, keys, sealed }
  }

  remove(kind: number, tenant: number, id: RowId): void {
    this.#take(frame.REMOVE, tombstone(kind, tenant, id, this.#revision))
  }

  dropTenant(tenant: number): void {
    this.#take(frame.DROP, tombstone(0, tenant, new Uint8Array(16), this.#revision))
  }

  append(entry: LogEntry): void {
    if (this.#isOver) throw writtenLate()
    this.entries.push(entry)
  }

  /** Puts rows that contain the log entries. May be called after {@link end}. */
  async seal(sealer: LogSealer, entries: readonly LogEntry[]): Promise<void> {
    this.#isOver = false
    await sealer.seal(this, entries)
    this.#isOver = true
  }

  storeTime({ isTrusted = false } = {}): void {
    this.storesTime = true
    if (isTrusted) this.#confirmed = { time: this.now, last: this.now, since: 0, until: 0 }
  }

  end(): void {
    this.#isOver = true
  }

  /**
   * Moves `counters` past all numbers that this transaction has assigned. Requires: the counters have not changed since
   * the transaction began.
   */
  advance(counters: Counters): void {
    counters.rev += this.changes.length
    counters.seq = this.#seq
    Object.assign(counters, this.#confirmed ?? advanceTimes(counters, this.now))
  }

  #take(kind: frame.ChangeKind, row: Row): void {
    if (this.#isOver) throw writtenLate()
    checkRow(row)
    const change = { kind, row }
    this.changes.push(change)
    this.own?.apply(change)
  }

  /** Returns whether a memtable has a row with this id. Requires: the caller has searched the tables. */
  #isKnown(text: string, tenant: number): boolean {
    for (const memtable of this.view.memtables) {
      const entry = memtable.entry(text)
      if (entry !== undefined) return entry.item !== undefined
      if (memtable.dropped.has(tenant)) return false
    }
    return false
  }
}

function writtenLate(): CofferError {
  return new CofferError('internal', 'A unit of work wrote after it had ended.')
}
