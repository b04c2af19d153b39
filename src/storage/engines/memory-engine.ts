/** The engine of an ephemeral vault. All rows are in memtables, and are lost when the engine closes. */
import type { Clock } from '../../crypto/ports.js'
import { toText } from '../bytes.js'
import type { Awaitable, Engine, EngineReader, EngineWriter, LogEntry, LogSealer, Row } from '../engine.js'
import { Memtable } from '../lsm/memtable.js'
import { ChangeCounters, Reader, type View } from '../lsm/query.js'
import { Transaction } from '../lsm/transaction.js'
import { DROP, INSERT } from '../rows/frame.js'
import { type Counters, createCounters } from '../time.js'
import { TaskQueue } from './task-queue.js'

/** If there are this many layers, they are merged into one layer before the next layer is added. */
const MAX_LAYERS = 8

/**
 * Log entries are sealed when this many are pending. Sealing each entry alone would be slow, because each addition to a
 * chain seals the head of the chain again.
 */
const SEALED_AT_ONCE = 32

/** Several engines may share these rows, because no engine changes them. */
export interface MemoryState {
  readonly layers: readonly Memtable[]
  readonly counters: Counters
  /** The rows with which all forks of this state begin. The first fork sets this field. */
  forked?: Memtable
}

export class MemoryEngine implements Engine {
  readonly #clock: Clock
  readonly #tasks = new TaskQueue()
  readonly #changeCounters = new ChangeCounters()
  /** The newest layer comes first. Only the newest layer changes. The older layers may belong to saved states. */
  #layers: readonly Memtable[]
  #counters: Counters
  #sealer: LogSealer | undefined
  #pending: readonly LogEntry[] = []

  constructor(clock: Clock, layers: readonly Memtable[] = [], counters = createCounters()) {
    this.#clock = clock
    this.#layers = [new Memtable(), ...layers]
    this.#counters = { ...counters }
  }

  get #view(): View {
    const changeCounters = this.#changeCounters
    return {
      memtables: this.#layers,
      uncommitted: 0,
      sstables: [],
      pendingEntries: this.#pending,
      changeCounters,
    }
  }

  get #now(): number {
    return Math.floor(this.#clock())
  }

  read<T>(work: (reader: EngineReader) => Awaitable<T>): Promise<T> {
    return this.#tasks.run(() => work(new Reader(this.#view, this.#counters, this.#now)))
  }

  write<T>(work: (writer: EngineWriter) => Awaitable<T>): Promise<T> {
    return this.#tasks.run(() => this.#write(work, SEALED_AT_ONCE))
  }

  async #write<T>(work: (writer: EngineWriter) => Awaitable<T>, most: number): Promise<T> {
    const transaction = new Transaction(this.#view, this.#counters, this.#now)
    try {
      const result = await work(transaction)
      const { entries } = transaction
      let pending = entries.length === 0 ? this.#pending : [...this.#pending, ...entries]
      if (pending.length >= most) {
        await transaction.seal(this.#sealer!, pending)
        pending = []
      }
      for (const change of transaction.changes) {
        this.#changeCounters.note(change)
        const { kind, row } = change
        if (kind === DROP) pending = pending.filter(({ tenant }) => tenant !== row.tenant)
        // Copies the bytes, because a view would keep Node's whole buffer pool in memory.
        const [keys, sealed] = [new Uint8Array(row.keys), new Uint8Array(row.sealed)]
        this.#layers[0]!.apply({ kind, row: { ...row, keys, sealed } })
      }
      this.#pending = pending
      if (transaction.hasEffect) transaction.advance(this.#counters)
      return result
    } finally {
      transaction.end()
    }
  }

  attach(sealer: LogSealer): void {
    this.#sealer = sealer
  }

  changeCounter(kind: number): number {
    return this.#changeCounters.of(kind)
  }

  sealPending(): Promise<void> {
    return this.#tasks.run(() => this.#sealPending())
  }

  async #sealPending(): Promise<void> {
    if (this.#pending.length > 0) await this.#write(() => undefined, 0)
  }

  save(): Promise<MemoryState> {
    return this.#tasks.run(async () => {
      await this.#sealPending()
      if (this.#layers.length >= MAX_LAYERS) this.#layers = [merge(this.#layers, () => true)]
      const layers = this.#layers[0]!.isEmpty ? this.#layers.slice(1) : this.#layers
      this.#layers = [new Memtable(), ...layers]
      return { layers, counters: { ...this.#counters } }
    })
  }

  /**
   * `seq` and `rev` never go back, and {@link changeCounter} changes for all kinds. Calls `also` before the next unit
   * of work runs.
   */
  restore({ layers, counters }: MemoryState, also?: () => void): Promise<void> {
    return this.#tasks.run(() => {
      const { seq, rev } = this.#counters
      this.#layers = [new Memtable(), ...layers]
      this.#pending = []
      this.#counters = { ...counters, seq, rev }
      this.#changeCounters.recordAll()
      also?.()
    })
  }

  /**
   * The new engine gets the rows of those kinds for which `keeps` returns true. Only the first fork of a state calls
   * `keeps`.
   */
  fork(state: MemoryState, clock: Clock, keeps: (kind: number) => boolean): MemoryEngine {
    state.forked ??= merge(state.layers, keeps)
    return new MemoryEngine(clock, [state.forked], state.counters)
  }

  /** Requires: no unit of work runs until the rows were read. */
  rows(): Iterable<Row> {
    return merge(this.#layers, () => true).each()
  }

  close(): Promise<void> {
    return this.#tasks.close()
  }
}

function merge(layers: readonly Memtable[], keeps: (kind: number) => boolean): Memtable {
  const merged = new Memtable()
  for (let depth = layers.length - 1; depth >= 0; depth--)
    for (const row of layers[depth]!.each()) {
      const isHidden = layers.slice(0, depth).some((above) => above.hides(row.tenant, toText(row.id)))
      if (keeps(row.kind) && !isHidden) merged.apply({ kind: INSERT, row })
    }
  return merged
}
