/**
 * Stores log entries in two steps. In the first step, the entries become sealed rows of `coffer_waiting`. The commit of
 * a change stores the log entries of the change. The entries of reads wait for up to 25 ms and are stored together.
 * Each row of `coffer_waiting` contains the number of the chain that the writing server leases. In the second step, the
 * server moves its rows into the chain that it leases, oldest first, so that a chain is in the order of time. If a
 * server has died and its lease has expired, another server moves the rows of the dead server.
 */
import type { Clock, RandomSource } from '../../crypto/ports.js'
import type { EngineWriter, LogEntry, LogSealer, PendingEntries, SealEntries } from '../engine.js'
import { logUnavailable, MAX_PENDING_MS } from '../engine.js'
import { TaskQueue } from '../engines/task-queue.js'
import { Collision } from './attempt.js'
import { ChainLease } from './chain-lease.js'
import { type Batch, PendingBatches, readMicros } from './pending-batches.js'
import { type ConnectionPool, isUnavailable, type Statement } from './pool.js'
import { NOW_MS, readChainStatement } from './read-sql.js'

/** The log entry of a read waits at most this long for the entries of other reads, ms. */
const GATHER_MS = 25
/** A server moves its rows this often, ms. */
const CHAIN_MS = 400
/** A server looks this often for rows of servers that have died, ms. */
const LOOK_MS = 10_000
const MOVED_PAGE = { limit: 500, bytes: 256 * 1024 }
const UNLEASED = `where not exists (select 1 from coffer_chains c where c.id = w.chain and c.until >= ${NOW_MS})`

export interface Logged {
  tenant: number
  entries: readonly LogEntry[]
  seal: SealEntries
}

interface PendingUnit extends EngineWriter {
  readPending(statement: Statement): Promise<PendingEntries[]>
  changePending(pending: PendingEntries, isChained?: boolean): void
}

interface PendingLogsOptions {
  pool: ConnectionPool
  random: RandomSource
  clock: Clock
  write<T>(work: (unit: PendingUnit) => Promise<T>): Promise<T>
  notice?: ((text: string) => void) | undefined
}

export class PendingLogs {
  readonly #options: PendingLogsOptions
  readonly lease: ChainLease
  declare sealer: LogSealer
  readonly #batches: PendingBatches
  /** True if `coffer_waiting` has rows of this server, or if this server will soon add rows. */
  #hasRows = false
  #lookedAt = -LOOK_MS
  #sendTimer: NodeJS.Timeout | undefined
  #chainTimer: NodeJS.Timeout | undefined
  readonly #sending = new TaskQueue()
  /** The queue runs one move of rows at a time, because two moves would append to the same end of a chain. */
  readonly #chaining = new TaskQueue()
  #isReported = false
  #reason = ''

  constructor(options: PendingLogsOptions) {
    this.#options = options
    const owner = options.random.bytes(16)
    this.lease = new ChainLease(options.pool, owner)
    this.#batches = new PendingBatches(owner, options.clock)
  }

  attach(sealer: LogSealer): void {
    this.sealer = sealer
    const chain = async () => {
      await this.#inBackground(() => this.#chainDue())
      this.#chainTimer?.refresh()
    }
    this.#chainTimer = setTimeout(chain, CHAIN_MS).unref()
  }

  add(entries: readonly LogEntry[]): void {
    this.refuseUnstored()
    for (const entry of entries) this.#batches.addRead(entry)
    this.#hasRows = true
    this.#sendTimer ??= setTimeout(() => {
      this.#sendTimer = undefined
      void this.#inBackground(() => this.send())
    }, GATHER_MS)
  }

  /** @throws CofferError `unavailable` if entries of reads have waited longer than {@link MAX_PENDING_MS} */
  refuseUnstored(): void {
    const oldest = this.#batches.oldestOfReads
    if (oldest !== undefined && readMicros() - oldest.written > MAX_PENDING_MS * 1000)
      throw logUnavailable(this.#reason)
  }

  /**
   * Seals the entries of each tenant into one row, and calls `commit` with these rows. Requires: `commit` stores the
   * rows.
   */
  async commit<T>(logged: readonly Logged[], commit: (pending: PendingEntries[]) => Promise<T>): Promise<T> {
    if (logged.length === 0) return commit([])
    const chain = await this.lease.claim()
    const batches = this.#batches.addCommit(logged.flatMap(({ entries }) => entries))
    this.#hasRows = true
    const seals = new Map(logged.map(({ tenant, seal }) => [tenant, seal]))
    try {
      return await commit(batches.map((batch) => sealBatch(batch, chain, seals.get(batch.tenant)!)))
    } finally {
      this.#batches.remove(batches)
    }
  }

  /** Resolves when all entries that were added before this call are stored. */
  send(): Promise<void> {
    return this.#sending.run(async () => {
      const batches = this.#batches.closeReads()
      if (batches.length === 0) return
      await this.#options.write(async (unit) => {
        const chain = await this.lease.claim()
        for (const batch of batches) {
          const seal = await this.sealer.sealerOf(unit, batch.tenant)
          // A deleted tenant has no keys for a seal, so its entries are dropped.
          if (seal !== undefined) unit.changePending(sealBatch(batch, chain, seal))
        }
      })
      this.#batches.removeReads(batches.length)
    })
  }

  chainPending(): Promise<void> {
    return this.#chaining.run(async () => {
      await this.#chainOwn()
      await this.#chainOthers()
    })
  }

  #chainDue(): Promise<void> {
    return this.#chaining.run(async () => {
      await this.#chainOwn()
      if (performance.now() - this.#lookedAt >= LOOK_MS) await this.#chainOthers(UNLEASED)
    })
  }

  async #chainOthers(where = ''): Promise<void> {
    this.#lookedAt = performance.now()
    const text = `select distinct chain from coffer_waiting w ${where} order by chain`
    const { rows } = await this.#options.pool.query({ text })
    for (const { chain } of rows) await this.#moveAll(chain, Number.MAX_SAFE_INTEGER)
  }

  /** Moves only rows that are older than every unstored batch, so that the chain stays in the order of time. */
  async #chainOwn(): Promise<void> {
    await this.send()
    if (!this.#hasRows) return
    const { oldest } = this.#batches
    this.#hasRows = oldest !== undefined
    const below = oldest?.written ?? this.#batches.nextMoment()
    await this.#moveAll(await this.lease.claim(), below).catch((error) => {
      this.#hasRows = true
      throw error
    })
  }

  /**
   * Moves the rows of a chain that are older than `below`, page by page. A row that cannot be opened stays in the
   * table, and `vault verify` reports the row.
   */
  async #moveAll(chain: number, below: number): Promise<void> {
    let after: PendingEntries | undefined
    do
      after = await this.#options.write(async (unit) => {
        const page = await unit.readPending(readChainStatement(chain, below, after, MOVED_PAGE))
        const opened = await Promise.all(page.map((row) => this.sealer.openPending(unit, row, row.sealed)))
        const moved = page.filter((_, at) => opened[at] !== undefined)
        if (moved.length > 0) {
          const entries = opened.flatMap((found) => found ?? [])
          await this.sealer.seal(unit, entries, chain, moved)
          for (const each of moved) unit.changePending(each, true)
        }
        return page.at(-1)
      })
    while (after !== undefined)
  }

  async close(): Promise<void> {
    clearTimeout(this.#sendTimer)
    clearTimeout(this.#chainTimer)
    this.#chainTimer = undefined
    await this.send()
    if (!this.lease.isUsed) return
    // If this move fails, other servers move the rows when the lease expires.
    const moving = this.#chaining.run(() => this.#chainOwn())
    await moving.then(() => this.lease.release()).catch(() => undefined)
  }

  /**
   * If `work` fails, a timer runs it again later. The operator sees one notice, but no notice for a collision or an
   * unreachable store.
   */
  async #inBackground(work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
      this.#isReported = false
    } catch (error) {
      this.#reason = error instanceof Error ? error.message : ''
      if (this.#isReported || isUnavailable(error) || error instanceof Collision) return
      this.#isReported = true
      this.#options.notice?.(
        `New log records could not be stored in the log. Coffer will try again. ${this.#reason}`,
      )
    }
  }
}

function sealBatch({ entries, ...batch }: Batch, chain: number, seal: SealEntries): PendingEntries {
  return { ...batch, chain, sealed: seal(batch.id, entries) }
}
