/**
 * Log entries that are in no chain yet. A change commits its entries as a sealed row of `coffer_waiting`; entries of reads
 * get there within 25 ms. Each row names the chain that its server leases. The server moves its rows into that chain, oldest
 * first, so a chain is in the order of time. When a server has died and its lease is over, another one moves its rows.
 */
import type { Clock, RandomSource } from '../../crypto/ports.js'
import type {
  EngineWriter,
  LogEntry,
  LogSealer,
  PendingBatch,
  PendingEntries,
  SealEntries,
} from '../engine.js'
import { logUnavailable, MAX_PENDING_MS } from '../engine.js'
import { TaskQueue } from '../engines/task-queue.js'
import { batchKey } from '../taken-batches.js'
import { Collision } from './attempt.js'
import { ChainLease } from './chain-lease.js'
import { type ConnectionPool, isUnavailable, type Statement } from './pool.js'
import { NOW_MS, readChainStatement } from './read-sql.js'

/** How long entries of reads wait for others. */
const GATHER_MS = 25
/** How often a server moves its rows, and looks for the rows of dead ones. */
const CHAIN_MS = 400
const LOOK_MS = 10_000
/** The most that one transaction moves. */
const MOVED_PAGE = { limit: 500, bytes: 256 * 1024 }
const UNLEASED = `where not exists (select 1 from coffer_chains c where c.id = w.chain and c.until >= ${NOW_MS})`

/** Entries that a unit of work has logged in one tenant. */
export interface Logged {
  tenant: number
  entries: readonly LogEntry[]
  seal: SealEntries
}

/** Entries of one tenant that are committed together. `written`: µs since the epoch, in the order of commits. */
interface Batch extends PendingBatch {
  readonly written: number
  readonly entries: LogEntry[]
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
  /** Tells the operator. */
  notice?: ((text: string) => void) | undefined
}

export class PendingLogs {
  readonly #options: PendingLogsOptions
  /** Random, of this process. */
  readonly #owner: Uint8Array
  readonly lease: ChainLease
  declare sealer: LogSealer
  /** Batches of reads that are to be stored, oldest first. The next reads of a tenant are added to the open one. */
  readonly unsent: Batch[] = []
  #open = new Map<number, Batch>()
  /** These, and batches whose commits are under way, oldest first. */
  readonly #inFlight = new Set<Batch>()
  /** How many batches were named, by tenant. */
  readonly #numbers = new Map<number, number>()
  #newest = 0
  /** Whether rows of this server may be in the table. */
  #hasRows = false
  #lookedAt = -LOOK_MS
  #sendTimer: NodeJS.Timeout | undefined
  #chainTimer: NodeJS.Timeout | undefined
  readonly #sending = new TaskQueue()
  /** Two at once would add to the same end of a chain. */
  readonly #chaining = new TaskQueue()
  #isReported = false
  /** Why entries could not be stored, the last time. */
  #reason = ''

  constructor(options: PendingLogsOptions) {
    this.#options = options
    this.#owner = options.random.bytes(16)
    this.lease = new ChainLease(options.pool, this.#owner)
  }

  attach(sealer: LogSealer): void {
    this.sealer = sealer
    const chain = async () => {
      await this.#inBackground(() => this.#chainDue())
      this.#chainTimer?.refresh()
    }
    this.#chainTimer = setTimeout(chain, CHAIN_MS).unref()
  }

  /** Takes what a read has logged. @throws CofferError as {@link refuseUnstored} */
  add(entries: readonly LogEntry[]): void {
    this.refuseUnstored()
    for (const entry of entries) {
      const batch = this.#addTo(this.#open, entry)
      if (batch.entries.length === 1) this.unsent.push(batch)
    }
    this.#sendTimer ??= setTimeout(() => {
      this.#sendTimer = undefined
      void this.#inBackground(() => this.send())
    }, GATHER_MS)
  }

  /** @throws CofferError `unavailable` if entries wait for too long */
  refuseUnstored(): void {
    const [oldest] = this.unsent
    if (oldest !== undefined && readClock() - oldest.written > MAX_PENDING_MS * 1000)
      throw logUnavailable(this.#reason)
  }

  /** Has `commit` store what units have logged. Entries of one tenant are one row. */
  async commit<T>(logged: readonly Logged[], commit: (pending: PendingEntries[]) => Promise<T>): Promise<T> {
    if (logged.length === 0) return commit([])
    const chain = await this.lease.claim()
    // Entries that reads have logged until now are older than this commit.
    this.#open = new Map()
    const own = new Map<number, Batch>()
    for (const { entries } of logged) for (const entry of entries) this.#addTo(own, entry)
    const batches = [...own.values()]
    const seals = new Map(logged.map(({ tenant, seal }) => [tenant, seal]))
    try {
      return await commit(batches.map((batch) => sealBatch(batch, chain, seals.get(batch.tenant)!)))
    } finally {
      this.#end(batches)
    }
  }

  #addTo(batches: Map<number, Batch>, entry: LogEntry): Batch {
    const { tenant } = entry
    let batch = batches.get(tenant)
    if (batch === undefined) {
      const number = (this.#numbers.get(tenant) ?? 0) + 1
      const written = this.#tick()
      batch = { id: batchKey(this.#owner, number, Math.floor(written / 1000)), tenant, written, entries: [] }
      this.#numbers.set(tenant, number)
      this.#inFlight.add(batch)
      this.#hasRows = true
      batches.set(tenant, batch)
    }
    entry.time = Math.floor(this.#options.clock())
    batch.entries.push(entry)
    return batch
  }

  #end(batches: readonly Batch[]): void {
    for (const batch of batches) this.#inFlight.delete(batch)
  }

  /** Resolves when everything that was added before is stored. */
  send(): Promise<void> {
    return this.#sending.run(async () => {
      this.#open = new Map()
      const batches = [...this.unsent]
      if (batches.length === 0) return
      await this.#options.write(async (unit) => {
        const chain = await this.lease.claim()
        for (const batch of batches) {
          const seal = await this.sealer.sealerOf(unit, batch.tenant)
          // The tenant was deleted if there is none.
          if (seal !== undefined) unit.changePending(sealBatch(batch, chain, seal))
        }
      })
      this.#end(this.unsent.splice(0, batches.length))
    })
  }

  /** Moves all rows into their chains, also the rows of other servers. */
  chainPending(): Promise<void> {
    return this.#chaining.run(async () => {
      await this.#chainOwn()
      await this.#chainOthers()
    })
  }

  /** Moves the rows of this server and, every {@link LOOK_MS}, the rows of servers whose lease is over. */
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

  /** Moves the rows that no entry of this server can precede any more. */
  async #chainOwn(): Promise<void> {
    await this.send()
    if (!this.#hasRows) return
    const [oldest] = this.#inFlight
    this.#hasRows = oldest !== undefined
    const below = oldest?.written ?? this.#tick()
    await this.#moveAll(await this.lease.claim(), below).catch((error) => {
      this.#hasRows = true
      throw error
    })
  }

  /** A row that does not open stays where it is: verifying the vault reports it. */
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

  /** Nothing is left in this process. @throws CofferError `unavailable` if the store did not take it */
  async close(): Promise<void> {
    clearTimeout(this.#sendTimer)
    clearTimeout(this.#chainTimer)
    this.#chainTimer = undefined
    await this.send()
    if (!this.lease.isUsed) return
    // Other servers move the rows if this does not succeed.
    const moving = this.#chaining.run(() => this.#chainOwn())
    await moving.then(() => this.lease.release()).catch(() => undefined)
  }

  #tick(): number {
    this.#newest = Math.max(this.#newest + 1, readClock())
    return this.#newest
  }

  /** A work that failed is tried again {@link CHAIN_MS} later. The operator is told if waiting may not help. */
  async #inBackground(work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
      this.#isReported = false
    } catch (error) {
      this.#reason = error instanceof Error ? error.message : ''
      if (this.#isReported || isUnavailable(error) || error instanceof Collision) return
      this.#isReported = true
      this.#options.notice?.(`New log records are not in the log yet, and are tried again. ${this.#reason}`)
    }
  }
}

function sealBatch({ entries, ...batch }: Batch, chain: number, seal: SealEntries): PendingEntries {
  return { ...batch, chain, sealed: seal(batch.id, entries) }
}

/** µs since the epoch. */
function readClock(): number {
  return Math.floor((performance.timeOrigin + performance.now()) * 1000)
}
