/**
 * Log entries on their way into logs. No unit of work waits for a chain: what a unit logs is kept, sealed, in a table
 * of its own, and its server puts it into the chain that only this one adds to, a moment later. Any server takes what
 * one has left that died. What only reads log is sent together.
 */
import type { RandomSource } from '../../crypto/ports.js'
import { nameBatch } from '../../domain/taken-batches.js'
import { CofferError } from '../../errors.js'
import { type LogEntry, type LogSealer, logUnavailable, MOST_PENDING_MS } from '../engine.js'
import type { Waiting, WaitingPlace, WhichWaiting } from './log-sql.js'
import type { Batch } from './shared.js'
import type { Unit } from './unit.js'

/** How long entries of reads wait for others before they are sent. */
const GATHER_MS = 25
/** How long entries wait in their table for others, so that many go into one part of a log; half of it is left to chance. */
const FOLD_MS = 400
/** What is younger may still be joined by older entries of this server, µs. */
const SETTLED_US = 100_000
/** Nobody keeps entries so long but a server that has died, µs. */
const LEFT_US = 5_000_000
/** How often a server looks for them, when it has none itself. */
const LOOK_MS = 10_000
/** After a failure. */
const RETRY_MS = 1_000
/** As often it has to fail one after the other before it is reported; what waiting does not help, at once. */
const REPORTED_AT = 5
const MOST_UNSENT = 20_000
/** In one transaction: batches, and bytes of them. */
const FOLDED_AT_ONCE = 500
const MOST_BYTES = 256 * 1024
const MOST_US = Number.MAX_SAFE_INTEGER

export interface WaitingLogsOptions {
  random: RandomSource
  sealer(): LogSealer
  owner: Uint8Array
  /** The chain that only this process adds to. */
  claimChain(): Promise<number>
  /** Runs a unit of work that changes something. */
  write<T>(work: (unit: Unit) => Promise<T>, isSlow: boolean): Promise<T>
  /** Tells the operator. */
  notice?(text: string): void
}

export class WaitingLogs {
  readonly #options: WaitingLogsOptions
  /** Oldest first. */
  #gathered: Batch[] = []
  #sending: readonly Batch[] = []
  /** By tenant: what takes more. */
  readonly #open = new Map<number, LogEntry[]>()
  /** Of batches that were named, by tenant. */
  readonly #numbers = new Map<number, number>()
  #newest = 0
  /** When something was last left in the table. */
  #noted = 0
  #count = 0
  #isClosed = false
  #sendTimer: NodeJS.Timeout | undefined
  #foldTimer: NodeJS.Timeout | undefined
  /** When that runs out, by `performance.now()`. */
  #foldAt = 0
  #last: Promise<unknown> = Promise.resolve()
  #lastFold: Promise<unknown> = Promise.resolve()
  #failures = 0
  /** Why entries could not be sent, the last time. */
  #reason = ''

  constructor(options: WaitingLogsOptions) {
    this.#options = options
  }

  /** Contract: the unit that logged them has ended well. @throws CofferError as {@link refuseUnstored} */
  add(entries: readonly LogEntry[]): void {
    this.refuseUnstored()
    for (const entry of entries) {
      const { tenant } = entry
      const open = this.#open.get(tenant)
      if (open !== undefined) open.push(entry)
      else {
        const batch = {
          id: this.name(tenant),
          tenant,
          written: this.#tick(),
          entries: [entry],
        }
        this.#gathered.push(batch)
        this.#open.set(tenant, batch.entries)
      }
    }
    this.#count += entries.length
    this.#sendTimer ??= setTimeout(() => this.#send(), GATHER_MS)
  }

  /** @throws CofferError `unavailable` if entries wait for too long, or too many */
  refuseUnstored(): void {
    const oldest = this.unsent()[0]?.written ?? Number.POSITIVE_INFINITY
    if (this.#count > MOST_UNSENT || readClock() - oldest > MOST_PENDING_MS * 1000)
      throw logUnavailable(this.#reason)
  }

  /** The id of a new batch. */
  name(tenant: number): Uint8Array {
    const number = (this.#numbers.get(tenant) ?? 0) + 1
    this.#numbers.set(tenant, number)
    return nameBatch(this.#options.owner, number, Math.floor(this.#tick() / 1000))
  }

  unsent(): Batch[] {
    return [...this.#sending, ...this.#gathered]
  }

  /** The moment of a unit that logs, µs: what was logged before is older, what is logged later newer. */
  mark(): number {
    this.#open.clear()
    return this.#tick()
  }

  /** This process has left something in the table. */
  noteWaiting(): void {
    this.#noted = this.#tick()
    this.look()
  }

  /** Looks for what lies in the table, a moment later, unless it will do so sooner. */
  look(delay = FOLD_MS): void {
    const wait = delay * (0.5 + this.#options.random.bytes(1)[0]! / 512)
    const at = performance.now() + wait
    if (this.#foldTimer !== undefined && this.#foldAt <= at) return
    clearTimeout(this.#foldTimer)
    this.#foldAt = at
    this.#foldTimer = setTimeout(() => {
      this.#foldTimer = undefined
      this.#inBackground(() => this.#foldOwn())
    }, wait).unref()
  }

  /** Puts what lies in the table into the logs, whoever left it there. */
  async fold(): Promise<void> {
    await this.#fold({ below: MOST_US, left: MOST_US })
  }

  /** The same, of what is settled and this process has logged, or one that died. */
  async #foldOwn(): Promise<void> {
    const settled = this.#tick() - SETTLED_US
    await this.#fold({ below: settled, left: settled + SETTLED_US - LEFT_US })
    if (this.#noted < settled) this.#noted = 0
    if (!this.#isClosed) this.look(this.#noted > 0 ? FOLD_MS : LOOK_MS)
  }

  /** One after the other: two would add to the same end of a chain. */
  #fold(bounds: Bounds): Promise<void> {
    const folding = this.#lastFold.then(() => this.#foldAll(bounds))
    this.#lastFold = folding.catch(() => undefined)
    return folding
  }

  async #foldAll(bounds: Bounds): Promise<void> {
    await this.send()
    clearTimeout(this.#foldTimer)
    this.#foldTimer = undefined
    let after: WaitingPlace | undefined
    do after = await this.#foldPage({ owner: this.#options.owner, ...bounds, after })
    while (after !== undefined)
  }

  /** Gives where to go on: behind what does not open, too, and stays where it is. */
  async #foldPage(which: Which): Promise<WaitingPlace | undefined> {
    const { write, claimChain } = this.#options
    // Who has nothing needs no chain.
    if (this.#noted === 0 && (await write((unit) => readPage(unit, which), true)).length === 0)
      return undefined
    const chain = await claimChain()
    return write(async (unit) => {
      const page = await readPage(unit, which)
      await this.#foldSome(unit, page, chain)
      return endOf(page)
    }, true)
  }

  /** Tenants with entries that do not open, or that do not exist. */
  async findUnreadable(): Promise<Set<number>> {
    const { write, sealer, owner } = this.#options
    const found = new Set<number>()
    let after: WaitingPlace | undefined
    do
      after = await write(async (unit) => {
        const page = await readPage(unit, { owner, below: MOST_US, left: MOST_US, after })
        for (const { id, tenant, sealed } of page)
          if ((await sealer().recall(unit, tenant, id, sealed)) === undefined) found.add(tenant)
        return endOf(page)
      }, true)
    while (after !== undefined)
    return found
  }

  /** Sends what is gathered, and resolves when it lies in the table. */
  send(): Promise<void> {
    const sending = this.#last.then(() => this.#sendGathered())
    this.#last = sending.catch(() => undefined)
    return sending
  }

  /** Nothing is left in this process. @throws CofferError `unavailable` if the store did not take it */
  async close(): Promise<void> {
    clearTimeout(this.#sendTimer)
    await this.send()
    this.#isClosed = true
    const bounds = { below: MOST_US, left: this.#tick() - LEFT_US }
    // Others put it into the logs where this does not succeed.
    if (this.#noted > 0) await this.#fold(bounds).catch(() => undefined)
    clearTimeout(this.#sendTimer)
    clearTimeout(this.#foldTimer)
  }

  #tick(): number {
    this.#newest = Math.max(this.#newest + 1, readClock())
    return this.#newest
  }

  #send(): void {
    this.#sendTimer = undefined
    this.#inBackground(() => this.send())
  }

  /** A failure is no one's answer: it is tried again, and reported where it repeats. */
  #inBackground(work: () => Promise<unknown>): void {
    const succeed = () => {
      this.#failures = 0
    }
    work().then(succeed, (error) => {
      const isAway = error instanceof CofferError && error.code === 'unavailable'
      const before = this.#failures
      this.#reason = error instanceof Error ? error.message : ''
      this.#failures = isAway ? before + 1 : Math.max(before + 1, REPORTED_AT)
      if (before < REPORTED_AT && this.#failures >= REPORTED_AT) {
        this.#options.notice?.(`New log records are not in the log yet, and are tried again. ${this.#reason}`)
      }
      this.#sendTimer ??= setTimeout(() => this.#send(), RETRY_MS).unref()
      this.look(RETRY_MS)
    })
  }

  async #sendGathered(): Promise<void> {
    if (this.#sending.length === 0) {
      this.#sending = this.#gathered
      this.#gathered = []
      this.#open.clear()
    }
    const batches = this.#sending
    if (batches.length === 0) return
    await this.#options.write(async (unit) => {
      for (const batch of batches) await unit.wait(batch)
    }, false)
    this.#sending = []
    this.#count -= batches.reduce((sum, { entries }) => sum + entries.length, 0)
    this.noteWaiting()
    if (this.#gathered.length > 0) await this.#sendGathered()
  }

  async #foldSome(unit: Unit, page: readonly Waiting[], chain: number): Promise<void> {
    const entries: LogEntry[] = []
    const done: Waiting[] = []
    for (const each of page) {
      const found = await this.#options.sealer().recall(unit, each.tenant, each.id, each.sealed)
      // What does not open is left where it is: verifying the vault reports it. What is in the log goes from here.
      if (found === undefined) continue
      entries.push(...found)
      done.push(each)
    }
    if (done.length === 0) return
    await this.#options.sealer().seal(unit, entries, chain, done)
    unit.endWaiting(done)
  }
}

/** µs since the epoch. */
function readClock(): number {
  return Math.floor((performance.timeOrigin + performance.now()) * 1000)
}

/** Of a process, or of one that died. */
type Which = Exclude<WhichWaiting, { tenant: number }>
type Bounds = Pick<Which, 'below' | 'left'>

const readPage = (unit: Unit, which: Which) => unit.readWaiting(which, FOLDED_AT_ONCE, MOST_BYTES)

/** Undefined where the page was the last. */
function endOf(page: readonly Waiting[]): WaitingPlace | undefined {
  const bytes = page.reduce((sum, { sealed }) => sum + sealed.length, 0)
  return page.length < FOLDED_AT_ONCE && bytes < MOST_BYTES ? undefined : page.at(-1)
}
