/**
 * The engine of an ephemeral vault: one overlay, nothing on disk, gone when closed.
 */

import type { Clock } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import type { MaybePromise } from '../../maybe-promise.js'
import { toText } from '../bytes.js'
import type { Engine, EngineBranches, EngineReader, EngineState, EngineWriter, LogSealer } from '../engine.js'
import { ChangeCounters } from '../lsm/change-counters.js'
import { type Counters, copyCounters, createCounters } from '../lsm/counters.js'
import { Memtable } from '../lsm/memtable.js'
import type { View } from '../lsm/query.js'
import { INSERT } from '../lsm/sstable/row-change.js'
import { TimeSlice } from '../lsm/time-slice.js'
import { createReader, Transaction } from '../lsm/transaction.js'

/** With more layers than this, they are merged before another is added. */
const MOST_LAYERS = 8

interface MemoryState extends EngineState {
  readonly layers: readonly Memtable[]
  readonly counters: Counters
  /** What forks begin with, once there was one. */
  forked?: Memtable
}

class MemoryEngine implements Engine {
  readonly #clock: Clock
  /** Youngest first. All but the first are part of saved states, and do not change. */
  #layers: Memtable[] = [new Memtable()]
  readonly #changeCounters = new ChangeCounters()
  #counters = createCounters()
  #sealer: LogSealer | undefined
  #last: Promise<unknown> = Promise.resolve()
  readonly #pace = new TimeSlice()
  #waiting = 0
  #isClosed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  read<T>(work: (reader: EngineReader) => MaybePromise<T>): Promise<T> {
    return this.#inTurn(async () =>
      work(createReader(() => this.#view(), this.#counters, Math.floor(this.#clock()))),
    )
  }

  write<T>(work: (writer: EngineWriter) => MaybePromise<T>): Promise<T> {
    return this.#inTurn(async () => {
      const now = Math.floor(this.#clock())
      const transaction = new Transaction(this.#view(), this.#counters, now)
      try {
        const result = await work(transaction)
        if (transaction.entries.length > 0) await transaction.seal(this.#sealer!, transaction.entries)
        for (const change of transaction.changes) {
          this.#changeCounters.note(change)
          const { kind, row } = change
          // Copies, because views would keep the pool that they are in.
          const [keys, sealed] = [new Uint8Array(row.keys), new Uint8Array(row.sealed)]
          this.#layers[0]!.apply({ kind, row: { ...row, keys, sealed } })
        }
        if (transaction.hasEffect) transaction.advance(this.#counters)
        return result
      } finally {
        transaction.end()
      }
    })
  }

  attach(sealer: LogSealer): void {
    this.#sealer = sealer
  }

  readonly branches: EngineBranches = {
    save: () =>
      this.#inTurn(async (): Promise<MemoryState> => {
        if (this.#layers.length >= MOST_LAYERS) this.#layers = [merge(this.#layers, () => true)]
        const [youngest, ...older] = this.#layers
        const isChanged = youngest!.count + youngest!.shadowed.length > 0
        const layers = isChanged || youngest!.dropped.size > 0 ? this.#layers : older
        this.#layers = [new Memtable(), ...layers]
        return { branches: 'of this process', layers, counters: copyCounters(this.#counters) }
      }),
    restore: (state) =>
      this.#inTurn(async () => {
        const { layers, counters } = state as MemoryState
        const { seq, rev } = this.#counters
        this.#layers = [new Memtable(), ...layers]
        this.#counters = { ...copyCounters(counters), seq, rev }
        this.#changeCounters.noteAll()
      }),
    fork: (state, { clock, keeps }) => {
      const memory = state as MemoryState
      const engine = new MemoryEngine(clock)
      memory.forked ??= merge(memory.layers, keeps)
      engine.#layers = [new Memtable(), memory.forked]
      engine.#counters = copyCounters(memory.counters)
      return engine
    },
  }

  changeCounter(kind: number): number {
    return this.#changeCounters.of(kind)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#last
  }

  #view(): View {
    return {
      memtables: this.#layers,
      uncommitted: 0,
      records: [],
      held: [],
      changeCounters: this.#changeCounters,
    }
  }

  async #rest(): Promise<void> {
    this.#waiting--
    if (this.#waiting > 0 && this.#pace.isOver) await this.#pace.yieldToOthers()
  }

  /** Works run one after another, in the order they came. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new CofferError('internal', 'The vault is closed already.'))
    if (this.#waiting++ === 0) this.#pace.begin()
    const result = this.#last.then(work)
    this.#last = result.catch(() => undefined).then(() => this.#rest())
    return result
  }
}

/** The live rows of the kinds that `keeps` names, as one. */
function merge(layers: readonly Memtable[], keeps: (kind: number) => boolean): Memtable {
  const merged = new Memtable()
  for (let depth = layers.length - 1; depth >= 0; depth--)
    for (const row of layers[depth]!.each()) {
      const isHidden = layers.slice(0, depth).some((above) => above.hides(row.tenant, toText(row.id)))
      if (keeps(row.kind) && !isHidden) merged.apply({ kind: INSERT, row })
    }
  return merged
}

export function createMemoryEngine({ clock }: { clock: Clock }): Engine {
  return new MemoryEngine(clock)
}
