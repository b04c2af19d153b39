/**
 * The engine of an ephemeral vault: one overlay, nothing on disk, gone when closed.
 */

import type { Clock, EngineKeys } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import type { Engine, EngineReader, EngineWriter, LogQuery, MaybePromise, Row } from '../engine.js'
import { ChangeCounters } from '../lsm/change-counters.js'
import { createCounters } from '../lsm/counters.js'
import { checkChain } from '../lsm/log-chain.js'
import { Memtable } from '../lsm/memtable.js'
import { type View, walkMatches } from '../lsm/query.js'
import { TimeSlice } from '../lsm/time-slice.js'
import { createReader, Transaction } from '../lsm/transaction.js'
import type { LogCheck } from '../store.js'

class MemoryEngine implements Engine {
  readonly #keys: EngineKeys
  readonly #clock: Clock
  readonly #rows = new Memtable()
  readonly #changeCounters = new ChangeCounters()
  readonly #counters = createCounters()
  #last: Promise<unknown> = Promise.resolve()
  readonly #pace = new TimeSlice()
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
      const transaction = new Transaction(this.#view(), this.#counters, this.#keys.chain, now)
      try {
        const result = await work(transaction)
        for (const change of transaction.changes) {
          this.#changeCounters.note(change)
          this.#rows.apply(change)
        }
        if (transaction.changes.length > 0 || transaction.isNoted) transaction.advance(this.#counters)
        return result
      } finally {
        transaction.end()
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
    return this.#changeCounters.of(kind)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#last
  }

  #view(): View {
    return {
      memtables: [this.#rows],
      uncommitted: 0,
      records: [],
      logs: [],
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

/** An empty vault in memory. */
export function createMemoryEngine({ keys, clock }: { keys: EngineKeys; clock: Clock }): Engine {
  return new MemoryEngine(keys, clock)
}
