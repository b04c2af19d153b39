/**
 * Log entries that are in no chain yet. A change commits its entries as a sealed row of `coffer_waiting`; entries of reads
 * get there within 25 ms. Each row names the chain that its server leases. The server moves its rows into that chain, oldest
 * first, so a chain is in the order of time. When a server has died and its lease is over, another one moves its rows.
 */
import type { Clock, RandomSource } from '../../crypto/ports.js'
import { nameBatch } from '../../domain/records/taken-batches.js'
import type { EngineWriter, LogEntry, LogSealer, PendingBatch, PendingEntries } from '../engine.js'
import { logUnavailable, MOST_PENDING_MS } from '../engine.js'
import { Collision, type ConnectionPool, isUnavailable } from './pool.js'
import { NOW_MS, type PendingPage } from './read-sql.js'

/** How long entries of reads wait for others. */
const GATHER_MS = 25
/** How often a server moves its rows, and looks for the rows of dead ones. */
const CHAIN_MS = 400
const LOOK_MS = 10_000
/** How long a chain stays with a server that has died. Two that add to one chain collide, so the lease is for order only. */
const LEASE_MS = 60_000
const OWNER_BYTES = 16
const MOST_US = Number.MAX_SAFE_INTEGER
/** The most that one transaction moves. */
const MOVED_PAGE = { limit: 500, bytes: 256 * 1024 }

/** Entries of one tenant that are committed together. `written`: µs since the epoch, in the order of commits. */
export interface Batch extends PendingBatch {
  readonly written: number
  readonly entries: LogEntry[]
  chain: number
}

/** The unit of work that moves entries. */
interface PendingUnit extends EngineWriter {
  readPending(page: PendingPage): Promise<PendingEntries[]>
  storePending(batch: Batch): Promise<void>
  endPending(pending: readonly PendingEntries[]): void
}

type Lease = { chain: number; at: number }

interface PendingLogsOptions {
  pool: ConnectionPool
  random: RandomSource
  clock: Clock
  write<T>(work: (unit: PendingUnit) => Promise<T>, isSlow: boolean): Promise<T>
  /** Tells the operator. */
  notice?: ((text: string) => void) | undefined
}

export class PendingLogs {
  readonly #options: PendingLogsOptions
  /** Random, of this process. */
  readonly #owner: Uint8Array
  #sealer: LogSealer | undefined
  #lease: Lease = { chain: 0, at: Number.NEGATIVE_INFINITY }
  #claiming: Promise<Lease> | undefined
  /** Entries of reads that are in no batch yet. */
  readonly #gathered: LogEntry[] = []
  /** Batches of reads that are to be stored, oldest first. */
  readonly #unsent: Batch[] = []
  /** These, and batches whose commits are under way, oldest first. */
  readonly #inFlight = new Set<Batch>()
  /** How many batches were named, by tenant. */
  readonly #numbers = new Map<number, number>()
  #newest = 0
  /** When a row was last left in the table; 0 if none is there. */
  #leftAt = 0
  #lookedAt = Number.NEGATIVE_INFINITY
  #sendTimer: NodeJS.Timeout | undefined
  #chainTimer: NodeJS.Timeout | undefined
  #sending: Promise<unknown> = Promise.resolve()
  #chaining: Promise<unknown> = Promise.resolve()
  #turns = 0
  #isReported = false
  /** Why entries could not be stored, the last time. */
  #reason = ''

  constructor(options: PendingLogsOptions) {
    this.#options = options
    this.#owner = options.random.bytes(OWNER_BYTES)
  }

  attach(sealer: LogSealer): void {
    this.#sealer = sealer
    this.#chainTimer = setInterval(() => {
      if (this.#turns === 0) void this.#inBackground(() => this.#inTurn(() => this.#chainDue()))
    }, CHAIN_MS).unref()
  }

  get sealer(): LogSealer {
    return this.#sealer!
  }

  get hasUnsent(): boolean {
    return this.#gathered.length + this.#unsent.length > 0
  }

  /** Takes what a read has logged. @throws CofferError as {@link refuseUnstored} */
  add(entries: readonly LogEntry[]): void {
    this.refuseUnstored()
    for (const entry of entries) this.#gathered.push(entry)
    this.#sendTimer ??= setTimeout(() => {
      this.#sendTimer = undefined
      void this.#inBackground(() => this.send())
    }, GATHER_MS)
  }

  /** @throws CofferError `unavailable` if entries wait for too long */
  refuseUnstored(): void {
    const [oldest] = this.#unsent
    if (oldest !== undefined && readClock() - oldest.written > MOST_PENDING_MS * 1000)
      throw logUnavailable(this.#reason)
  }

  /** Makes batches of what is committed now. Contract: {@link end} is called when the commit has ended, well or not. */
  begin(entries: readonly LogEntry[], chain: number): Batch[] {
    // What reads have logged until now is older.
    this.#closeGathered()
    return this.#createBatches(entries, chain)
  }

  #closeGathered(): void {
    this.#unsent.push(...this.#createBatches(this.#gathered.splice(0), 0))
  }

  #createBatches(entries: readonly LogEntry[], chain: number): Batch[] {
    const batches = new Map<number, Batch>()
    for (const entry of entries) {
      const { tenant } = entry
      let batch = batches.get(tenant)
      if (batch === undefined) {
        const number = (this.#numbers.get(tenant) ?? 0) + 1
        this.#numbers.set(tenant, number)
        const written = this.#tick()
        const id = nameBatch(this.#owner, number, Math.floor(written / 1000))
        batch = { id, tenant, chain, written, entries: [] }
        batches.set(tenant, batch)
        this.#inFlight.add(batch)
      }
      entry.time = Math.floor(this.#options.clock())
      batch.entries.push(entry)
    }
    return [...batches.values()]
  }

  end(batches: readonly Batch[]): void {
    for (const batch of batches) this.#inFlight.delete(batch)
  }

  /** Resolves when everything that was added before is stored. */
  send(): Promise<void> {
    const sending = this.#sending.then(async () => {
      this.#closeGathered()
      const batches = [...this.#unsent]
      if (batches.length === 0) return
      await this.#options.write(async (unit) => {
        const chain = await this.claim()
        for (const batch of batches) await unit.storePending(Object.assign(batch, { chain }))
      }, false)
      this.end(this.#unsent.splice(0, batches.length))
    })
    this.#sending = sending.catch(() => undefined)
    return sending
  }

  /** This server has left a row in the table. */
  recordRow(): void {
    this.#leftAt = this.#tick()
  }

  /** Moves all rows into their chains, also those of other servers. */
  chainPending(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#chainOwn()
      for (const chain of await this.#listChains('')) await this.#moveAll(chain)
    })
  }

  /** One after the other: two would add to the same end of a chain. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#turns++
    const chaining = this.#chaining.then(work).finally(() => this.#turns--)
    this.#chaining = chaining.catch(() => undefined)
    return chaining
  }

  async #chainDue(): Promise<void> {
    await this.#chainOwn()
    if (performance.now() - this.#lookedAt < LOOK_MS) return
    this.#lookedAt = performance.now()
    const isLeased = `select 1 from coffer_chains c where c.id = w.chain and c.until >= ${NOW_MS}`
    for (const chain of await this.#listChains(`where not exists (${isLeased})`)) {
      const owner = this.#options.random.bytes(OWNER_BYTES)
      await this.#leaseChain('$3::integer', owner, chain)
      await this.#moveAll(chain).finally(() => this.#endLease(owner))
    }
  }

  /** Moves the rows that no entry of this server can precede any more. */
  async #chainOwn(): Promise<void> {
    await this.send()
    if (this.#leftAt === 0) return
    const began = this.#tick()
    const [oldest] = this.#inFlight
    await this.#moveAll(this.#lease.chain, Math.min(oldest?.written ?? MOST_US, began))
    if (this.#leftAt < began) this.#leftAt = 0
  }

  /** The chains of pending rows. */
  async #listChains(where: string): Promise<number[]> {
    const text = `select distinct chain from coffer_waiting w ${where} order by chain`
    return (await this.#options.pool.query({ text })).rows.map(({ chain }) => chain)
  }

  /** A row that does not open stays where it is: verifying the vault reports it. */
  async #moveAll(chain: number, below = MOST_US): Promise<void> {
    let after: PendingEntries | undefined
    do
      after = await this.#options.write(async (unit) => {
        const page = await unit.readPending({ chain, below, after, ...MOVED_PAGE })
        const entries: LogEntry[] = []
        const moved: PendingEntries[] = []
        for (const row of page) {
          const found = await this.sealer.openPending(unit, row, row.sealed)
          if (found === undefined) continue
          for (const entry of found) entries.push(entry)
          moved.push(row)
        }
        if (moved.length > 0) {
          await this.sealer.seal(unit, entries, chain, moved)
          unit.endPending(moved)
        }
        const bytes = page.reduce((sum, { sealed }) => sum + sealed.length, 0)
        return page.length < MOVED_PAGE.limit && bytes < MOVED_PAGE.bytes ? undefined : page.at(-1)
      }, true)
    while (after !== undefined)
  }

  /**
   * The chain that this server has, else one whose lease is over, else a new one; no other server adds to it meanwhile.
   * @throws Collision if another server takes it first
   */
  async claim(): Promise<number> {
    if (performance.now() - this.#lease.at > LEASE_MS / 2) {
      const chains = [
        '(select min(id) from coffer_chains where owner = $1)',
        `(select min(id) from coffer_chains where until < ${NOW_MS})`,
        '(select coalesce(max(id), 0) + 1 from coffer_chains)',
      ]
      this.#claiming ??= this.#leaseChain(`coalesce(${chains.join(', ')})`, this.#owner).finally(() => {
        this.#claiming = undefined
      })
      this.#lease = await this.#claiming
    }
    return this.#lease.chain
  }

  /** @throws Collision if another server has the chain */
  async #leaseChain(chain: string, owner: Uint8Array, ...values: number[]): Promise<Lease> {
    const at = performance.now()
    const text =
      `insert into coffer_chains (id, owner, until) select ${chain}, $1::bytea, ${NOW_MS} + $2` +
      ' on conflict (id) do update set owner = excluded.owner, until = excluded.until' +
      ` where coffer_chains.owner = excluded.owner or coffer_chains.until < ${NOW_MS} returning id`
    const { rows } = await this.#options.pool.query({ text, values: [owner, LEASE_MS, ...values] })
    if (rows.length === 0) throw new Collision('conflict')
    return { chain: rows[0].id, at }
  }

  async #endLease(owner: Uint8Array): Promise<void> {
    await this.#options.pool.query({
      text: 'update coffer_chains set until = 0 where owner = $1',
      values: [owner],
    })
  }

  /** Nothing is left in this process. @throws CofferError `unavailable` if the store did not take it */
  async close(): Promise<void> {
    clearTimeout(this.#sendTimer)
    clearInterval(this.#chainTimer)
    await this.send()
    if (this.#lease.chain === 0) return
    // Other servers move the rows if this does not succeed.
    const moving = this.#inTurn(() => this.#chainOwn())
    await moving.then(() => this.#endLease(this.#owner)).catch(() => undefined)
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

/** µs since the epoch. */
function readClock(): number {
  return Math.floor((performance.timeOrigin + performance.now()) * 1000)
}
