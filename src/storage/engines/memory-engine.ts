/** The engine of an ephemeral vault: all rows in memtables, nothing on disk, gone when closed. */
import type { Clock } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import type { Engine, EngineBranches, EngineState, LogSealer } from '../engine.js'
import { ChangeCounters } from '../lsm/change-counters.js'
import { type Counters, createCounters } from '../lsm/counters.js'
import { Memtable } from '../lsm/memtable.js'
import type { View } from '../lsm/query.js'
import { INSERT } from '../lsm/sstable/row-change.js'
import { TimeSlice } from '../lsm/time-slice.js'
import { createReader, Transaction } from '../lsm/transaction.js'

/** If there are this many layers, they are merged before another is added. */
const MOST_LAYERS = 8

interface MemoryState extends EngineState {
  readonly layers: readonly Memtable[]
  readonly counters: Counters
  /** The rows that forks begin with, once there was a fork. */
  forked?: Memtable
}

export function createMemoryEngine({ clock, from }: { clock: Clock; from?: MemoryState }): Engine {
  /** Youngest first. All but the first belong to saved states, and do not change. */
  let layers: readonly Memtable[] = [new Memtable(), ...(from?.layers ?? [])]
  let counters = from === undefined ? createCounters() : { ...from.counters }
  const changeCounters = new ChangeCounters()
  const timeSlice = new TimeSlice()
  let sealer: LogSealer | undefined
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let isClosed = false

  const view = (): View => ({ memtables: layers, uncommitted: 0, sstables: [], held: [], changeCounters })
  const rest = async () => {
    waiting--
    if (waiting > 0 && timeSlice.isOver) await timeSlice.yieldToOthers()
  }
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    if (isClosed) return Promise.reject(new CofferError('internal', 'The vault is closed already.'))
    if (waiting++ === 0) timeSlice.begin()
    const result = last.then(work)
    last = result.catch(() => undefined).then(rest)
    return result
  }
  const branches: EngineBranches = {
    save: () =>
      inTurn(async (): Promise<MemoryState> => {
        if (layers.length >= MOST_LAYERS) layers = [merge(layers, () => true)]
        const [youngest, ...older] = layers
        const isChanged = youngest!.count + youngest!.shadowed.length > 0
        const saved = isChanged || youngest!.dropped.size > 0 ? layers : older
        layers = [new Memtable(), ...saved]
        return { branches: 'of this process', layers: saved, counters: { ...counters } }
      }),
    restore: (state) =>
      inTurn(async () => {
        const saved = state as MemoryState
        const { seq, rev } = counters
        layers = [new Memtable(), ...saved.layers]
        counters = { ...saved.counters, seq, rev }
        changeCounters.noteAll()
      }),
    fork: (state, { clock, keeps }) => {
      const memory = state as MemoryState
      memory.forked ??= merge(memory.layers, keeps)
      return createMemoryEngine({ clock, from: { ...memory, layers: [memory.forked] } })
    },
  }

  return {
    branches,
    read: (work) => inTurn(async () => work(createReader(view, counters, Math.floor(clock())))),
    write: (work) =>
      inTurn(async () => {
        const transaction = new Transaction(view(), counters, Math.floor(clock()))
        try {
          const result = await work(transaction)
          if (transaction.entries.length > 0) await transaction.seal(sealer!, transaction.entries)
          for (const change of transaction.changes) {
            changeCounters.note(change)
            const { kind, row } = change
            // Copies, because views would keep their whole pool in memory.
            const [keys, sealed] = [new Uint8Array(row.keys), new Uint8Array(row.sealed)]
            layers[0]!.apply({ kind, row: { ...row, keys, sealed } })
          }
          if (transaction.hasEffect) transaction.advance(counters)
          return result
        } finally {
          transaction.end()
        }
      }),
    attach: (given) => {
      sealer = given
    },
    changeCounter: (kind) => changeCounters.of(kind),
    close: async () => {
      isClosed = true
      await last
    },
  }
}

/** Makes one memtable of the live rows whose kinds `keeps` accepts. */
function merge(layers: readonly Memtable[], keeps: (kind: number) => boolean): Memtable {
  const merged = new Memtable()
  for (let depth = layers.length - 1; depth >= 0; depth--)
    for (const row of layers[depth]!.each()) {
      const isHidden = layers.slice(0, depth).some((above) => above.hides(row.tenant, toText(row.id)))
      if (keeps(row.kind) && !isHidden) merged.apply({ kind: INSERT, row })
    }
  return merged
}
