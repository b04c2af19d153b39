/** The view and the changes of one unit of work. The engine commits the changes or drops them. */
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import type { Draft, EngineWriter, LogEntry, LogSealer, Row, RowId } from '../engine.js'
import type { ClockState } from '../store.js'
import { advanceTimes, type Counters, type Times } from '../time.js'
import { Memtable } from './memtable.js'
import { Reader, type View } from './query.js'
import * as rowChange from './row-change.js'

export class Transaction extends Reader implements EngineWriter {
  /** Whether its time is committed even if it changes nothing. */
  storesTime = false
  readonly changes: rowChange.Change[] = []
  /** Log entries, made into rows when the unit is committed. */
  readonly entries: LogEntry[] = []
  readonly #counters: Counters
  /** The changes, and a view that has them, once the work reads after a change: most units write only at their end. */
  own: Memtable | undefined
  #view: View | undefined
  #seq: number
  /** Set when a person confirmed the clock. */
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
        throw new CofferError('internal', 'A row was put as new though there is one of its id.')
      this.#take(rowChange.INSERT, this.#rowOf(draft, this.#seq++, this.now))
    } else if (created === undefined)
      throw new CofferError('internal', 'A row was replaced without its time of creation.')
    else this.#take(rowChange.REPLACE, this.#rowOf(draft, seq, created))
  }

  /** Lists the fields, here and below, so that all rows have one shape: there are many of them. */
  #rowOf(draft: Draft, seq: number, created: number): Row {
    const { kind, tenant, id, modified, expires, keys } = draft
    const rev = this.#revision
    const sealed = draft.seal(rev)
    return { kind, tenant, id, seq, rev, created, modified, expires, keys, sealed }
  }

  remove(kind: number, tenant: number, id: RowId): void {
    this.#take(rowChange.REMOVE, rowChange.tombstone(kind, tenant, id, this.#revision))
  }

  dropTenant(tenant: number): void {
    this.#take(rowChange.DROP, rowChange.tombstone(0, tenant, new Uint8Array(16), this.#revision))
  }

  append(entry: LogEntry): void {
    if (this.#isOver) throw writtenLate()
    this.entries.push(entry)
  }

  /** Puts the rows of log entries, even after {@link end}. */
  async seal(sealer: LogSealer, entries: readonly LogEntry[]): Promise<void> {
    this.#isOver = false
    await sealer.seal(this, entries)
    this.#isOver = true
  }

  storeTime({ isTrusted = false } = {}): void {
    this.storesTime = true
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
    Object.assign(counters, this.#confirmed ?? advanceTimes(counters, this.now))
  }

  #take(kind: rowChange.ChangeKind, row: Row): void {
    if (this.#isOver) throw writtenLate()
    rowChange.checkRow(row)
    const change = { kind, row }
    this.changes.push(change)
    this.own?.apply(change)
  }

  /** Whether a memtable holds a row of this id; the caller has searched the tables. */
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
