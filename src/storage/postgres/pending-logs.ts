/**
 * Log entries that were committed and are in no chain yet. A unit that changes something commits its entries as a sealed row
 * of `coffer_waiting`; entries of reads get there within 25 ms. Later this server puts its rows into its own chain, and rows
 * that a dead server left. Entries have the order of their commits, so a chain is in the order of time.
 */
import type { Clock, RandomSource } from '../../crypto/ports.js'
import { nameBatch } from '../../domain/records/taken-batches.js'
import { CofferError } from '../../errors.js'
import { type LogEntry, type LogSealer, logUnavailable, MOST_PENDING_MS } from '../engine.js'
import type { Waiting, WaitingPlace, WhichWaiting } from './log-sql.js'
import type { Batch } from './shared.js'
import type { Unit } from './unit.js'

/** How long entries of reads wait for others before they are sent. */
const GATHER_MS = 25
/** How long rows wait for others, so that many go into one part of a chain; half of it is left to chance. */
const CHAIN_MS = 400
/** Only a dead server leaves rows for so long, µs. */
const LEFT_US = 5_000_000
/** How often a server looks for such rows when it has none itself. */
const LOOK_MS = 10_000
const RETRY_MS = 1_000
/** The operator is told after so many failures in a row; at once, if waiting does not help. */
const REPORTED_AT = 5
const MOST_UNSENT = 20_000
/** Batches in one transaction, and bytes of them. */
const MOST_BATCHES = 500
const MOST_BYTES = 256 * 1024
const MOST_US = Number.MAX_SAFE_INTEGER

export interface PendingLogsOptions {
  random: RandomSource
  clock: Clock
  sealer(): LogSealer
  owner: Uint8Array
  /** The chain that only this process adds to. */
  claimChain(): Promise<number>
  /** Runs a unit of work that changes something. */
  write<T>(work: (unit: Unit) => Promise<T>, isSlow: boolean): Promise<T>
  /** Tells the operator. */
  notice?(text: string): void
}

type Which = Exclude<WhichWaiting, { tenant: number }>
type Bounds = Pick<Which, 'below' | 'left'>

export class PendingLogs {
  readonly #options: PendingLogsOptions
  /** Batches of reads, oldest first. */
  readonly #unsent: Batch[] = []
  #unsentEntries = 0
  /** The batches that take more entries, by tenant. */
  readonly #open = new Map<number, Batch>()
  /** Batches whose commits are under way, oldest first. */
  readonly #inFlight = new Set<Batch>()
  /** How many batches were named, by tenant. */
  readonly #numbers = new Map<number, number>()
  #newest = 0
  /** When a row was last left in the table. */
  #leftAt = 0
  #isClosed = false
  #sendTimer: NodeJS.Timeout | undefined
  #chainTimer: NodeJS.Timeout | undefined
  /** When the chain timer ends, by `performance.now()`. */
  #chainAt = 0
  #sending: Promise<unknown> = Promise.resolve()
  #chaining: Promise<unknown> = Promise.resolve()
  #failures = 0
  /** Why entries could not be sent, the last time. */
  #reason = ''

  constructor(options: PendingLogsOptions) {
    this.#options = options
  }

  get hasUnsent(): boolean {
    return this.#unsent.length > 0
  }

  /** Takes what a read has logged. @throws CofferError as {@link refuseUnstored} */
  add(entries: readonly LogEntry[]): void {
    this.refuseUnstored()
    for (const entry of entries) this.#push(entry, this.#unsent)
    this.#unsentEntries += entries.length
    this.#sendTimer ??= setTimeout(() => {
      this.#sendTimer = undefined
      this.#inBackground(() => this.send())
    }, GATHER_MS)
  }

  /** @throws CofferError `unavailable` if entries wait for too long, or too many */
  refuseUnstored(): void {
    const oldest = this.#unsent[0]?.written ?? MOST_US
    if (this.#unsentEntries > MOST_UNSENT || readClock() - oldest > MOST_PENDING_MS * 1000)
      throw logUnavailable(this.#reason)
  }

  /** Makes batches of what a unit commits now. Contract: {@link end} is called when the commit has ended, well or not. */
  begin(entries: readonly LogEntry[]): Batch[] {
    // Entries of reads that come later are newer.
    this.#open.clear()
    const batches: Batch[] = []
    for (const entry of entries) this.#push(entry, batches)
    this.#open.clear()
    for (const batch of batches) this.#inFlight.add(batch)
    return batches
  }

  end(batches: readonly Batch[]): void {
    for (const batch of batches) this.#inFlight.delete(batch)
  }

  #push(entry: LogEntry, batches: Batch[]): void {
    const { tenant } = entry
    let batch = this.#open.get(tenant)
    if (batch === undefined) {
      const number = (this.#numbers.get(tenant) ?? 0) + 1
      this.#numbers.set(tenant, number)
      const written = this.#tick()
      const id = nameBatch(this.#options.owner, number, Math.floor(written / 1000))
      batch = { id, tenant, written, entries: [] }
      this.#open.set(tenant, batch)
      batches.push(batch)
    }
    entry.time = Math.floor(this.#options.clock())
    batch.entries.push(entry)
  }

  /** Resolves when everything that was added before is in the table. */
  send(): Promise<void> {
    const sending = this.#sending.then(() => this.#send())
    this.#sending = sending.catch(() => undefined)
    return sending
  }

  async #send(): Promise<void> {
    const batches = [...this.#unsent]
    if (batches.length === 0) return
    this.#open.clear()
    await this.#options.write(async (unit) => {
      for (const batch of batches) await unit.wait(batch)
    }, false)
    this.#unsent.splice(0, batches.length)
    this.#unsentEntries -= batches.reduce((sum, { entries }) => sum + entries.length, 0)
    this.noteRow()
  }

  /** This process has left a row in the table. */
  noteRow(): void {
    this.#leftAt = this.#tick()
    this.look()
  }

  /** Puts rows into chains after `delay` ms, unless it will do so sooner. */
  look(delay = CHAIN_MS): void {
    const wait = delay * (0.5 + this.#options.random.bytes(1)[0]! / 512)
    const at = performance.now() + wait
    if (this.#isClosed || (this.#chainTimer !== undefined && this.#chainAt <= at)) return
    clearTimeout(this.#chainTimer)
    this.#chainAt = at
    this.#chainTimer = setTimeout(() => {
      this.#chainTimer = undefined
      this.#inBackground(() => this.#chainOwn())
    }, wait).unref()
  }

  /** Puts all rows of the table into chains, whoever left them there. */
  chainPending(): Promise<void> {
    return this.#chain(() => ({ below: MOST_US, left: MOST_US }))
  }

  /** Puts into the chain what no entry of this process can precede any more, and what dead servers left. */
  async #chainOwn(): Promise<void> {
    const began = this.#tick()
    await this.#chain(() => {
      const [oldest] = [...this.#unsent.slice(0, 1), ...this.#inFlight]
      return { below: Math.min(oldest?.written ?? MOST_US, this.#tick()), left: began - LEFT_US }
    })
    if (this.#leftAt < began) this.#leftAt = 0
    this.look(this.#leftAt > 0 ? CHAIN_MS : LOOK_MS)
  }

  /** One after the other: two would add to the same end of a chain. */
  #chain(boundsOf: () => Bounds): Promise<void> {
    const chaining = this.#chaining.then(async () => {
      await this.send()
      const bounds = boundsOf()
      let after: WaitingPlace | undefined
      do after = await this.#chainPage({ owner: this.#options.owner, ...bounds, after })
      while (after !== undefined)
    })
    this.#chaining = chaining.catch(() => undefined)
    return chaining
  }

  /** Gives where to go on. A row that does not open stays where it is: verifying the vault reports it. */
  async #chainPage(which: Which): Promise<WaitingPlace | undefined> {
    const { write, claimChain, sealer } = this.#options
    // Without rows no chain is claimed.
    if (this.#leftAt === 0 && (await write((unit) => readPage(unit, which), true)).length === 0)
      return undefined
    const chain = await claimChain()
    return write(async (unit) => {
      const page = await readPage(unit, which)
      const entries: LogEntry[] = []
      const done: Waiting[] = []
      for (const row of page) {
        const found = await sealer().openPending(unit, row, row.sealed)
        if (found === undefined) continue
        for (const entry of found) entries.push(entry)
        done.push(row)
      }
      if (done.length > 0) {
        await sealer().seal(unit, entries, chain, done)
        unit.endWaiting(done)
      }
      return endOf(page)
    }, true)
  }

  /** Tenants with rows that do not open, or that do not exist. */
  async findUnreadable(): Promise<Set<number>> {
    const { write, sealer, owner } = this.#options
    const found = new Set<number>()
    let after: WaitingPlace | undefined
    do
      after = await write(async (unit) => {
        const page = await readPage(unit, { owner, below: MOST_US, left: MOST_US, after })
        for (const row of page)
          if ((await sealer().openPending(unit, row, row.sealed)) === undefined) found.add(row.tenant)
        return endOf(page)
      }, true)
    while (after !== undefined)
    return found
  }

  /** Nothing is left in this process. @throws CofferError `unavailable` if the store did not take it */
  async close(): Promise<void> {
    clearTimeout(this.#sendTimer)
    await this.send()
    this.#isClosed = true
    // Other servers put the rows into their chains if this does not succeed.
    const bounds = { below: MOST_US, left: this.#tick() - LEFT_US }
    if (this.#leftAt > 0) await this.#chain(() => bounds).catch(() => undefined)
    clearTimeout(this.#sendTimer)
    clearTimeout(this.#chainTimer)
  }

  #tick(): number {
    this.#newest = Math.max(this.#newest + 1, readClock())
    return this.#newest
  }

  /** A failure is no one's answer: the work is tried again, and the failure reported if it repeats. */
  #inBackground(work: () => Promise<unknown>): void {
    const succeed = () => {
      this.#failures = 0
    }
    work().then(succeed, (error) => {
      const isAway = error instanceof CofferError && error.code === 'unavailable'
      const before = this.#failures
      this.#reason = error instanceof Error ? error.message : ''
      this.#failures = isAway ? before + 1 : Math.max(before + 1, REPORTED_AT)
      if (before < REPORTED_AT && this.#failures >= REPORTED_AT)
        this.#options.notice?.(`New log records are not in the log yet, and are tried again. ${this.#reason}`)
      this.#sendTimer ??= setTimeout(() => {
        this.#sendTimer = undefined
        this.#inBackground(() => this.send())
      }, RETRY_MS).unref()
      this.look(RETRY_MS)
    })
  }
}

/** µs since the epoch. */
function readClock(): number {
  return Math.floor((performance.timeOrigin + performance.now()) * 1000)
}

const readPage = (unit: Unit, which: Which) => unit.readWaiting(which, MOST_BATCHES, MOST_BYTES)

/** Undefined if the page was the last. */
function endOf(page: readonly Waiting[]): WaitingPlace | undefined {
  const bytes = page.reduce((sum, { sealed }) => sum + sealed.length, 0)
  return page.length < MOST_BATCHES && bytes < MOST_BYTES ? undefined : page.at(-1)
}
