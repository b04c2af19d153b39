/**
 * The engine of an ephemeral vault: one overlay, nothing on disk, gone when closed.
 */

import type { Clock, EngineKeys } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import type { Engine, EngineReader, EngineWriter, LogQuery, MaybePromise, Row } from './engine.js'
import { Stamps } from './lsm/change-counters.js'
import { checkChain } from './lsm/log-chain.js'
import { Overlay } from './lsm/memtable.js'
import { Pace } from './lsm/pace.js'
import { type View, walkMatches } from './lsm/query.js'
import { createCounters, createReader, Stage } from './lsm/transaction.js'
import type { LogCheck } from './store.js'

class MemoryEngine implements Engine {
  readonly #keys: EngineKeys
  readonly #clock: Clock
  readonly #rows = new Overlay()
  readonly #stamps = new Stamps()
  readonly #counters = createCounters()
  #last: Promise<unknown> = Promise.resolve()
  readonly #pace = new Pace()
  #waiting = 0
  #isClosed = false

  constructor(keys: EngineKeys, clock: Clock) {
    this.#keys = keys
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
      const stage = new Stage(this.#view(), this.#counters, this.#keys.chain, now)
      try {
        const result = await work(stage)
        for (const change of stage.changes) {
          this.#stamps.note(change)
          this.#rows.apply(change)
        }
        if (stage.changes.length > 0 || stage.isNoted) stage.advance(this.#counters)
        return result
      } finally {
        stage.end()
      }
    })
  }

  verifyLogs(query: LogQuery, isAuthentic: (row: Row) => boolean): Promise<LogCheck> {
    return this.#inTurn(async () => {
      const rows = walkMatches(this.#view(), { ...query, family: 'logs' }, this.#counters.time)
      return checkChain(rows, this.#keys.chain, this.#counters.chains.get(query.tenant), isAuthentic)
    })
  }

  changeCounter(kind: number): number {
    return this.#stamps.of(kind)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#last
  }

  #view(): View {
    return { overlays: [this.#rows], unsettled: 0, records: [], logs: [], stamps: this.#stamps }
  }

  async #rest(): Promise<void> {
    this.#waiting--
    if (this.#waiting > 0 && this.#pace.isOver) await this.#pace.rest()
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

/** An empty vault in memory. */
export function createMemoryEngine({ keys, clock }: { keys: EngineKeys; clock: Clock }): Engine {
  return new MemoryEngine(keys, clock)
}
