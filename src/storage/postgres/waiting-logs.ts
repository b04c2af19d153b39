/**
 * Log entries on their way into logs. No unit of work waits for a chain: what a unit logs is kept, sealed, in a table
 * of its own, and any server puts what lies there into the logs, a moment later. What only reads log is sent together.
 */
import type { RandomSource } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import type { LogEntry, LogSealer } from '../engine.js'
import type { Waiting } from './query-sql.js'
import { type Batch, drawBatchId } from './shared.js'
import type { Unit } from './unit.js'

/** How long entries of reads wait for others before they are sent. */
const GATHER_MS = 25
/** How long entries wait in their table for others, so that many go into one part of a log; half of it is left to chance. */
const FOLD_MS = 400
/** What is younger may still be joined by older entries of other servers, µs. */
const SETTLED_US = 100_000
/** After a failure. */
const RETRY_MS = 1_000
const MOST_UNSENT = 20_000
const FOLDED_AT_ONCE = 500

export interface WaitingLogsOptions {
  random: RandomSource
  sealer(): LogSealer
  /** Runs a unit of work that changes something. */
  write<T>(work: (unit: Unit) => Promise<T>): Promise<T>
}

export class WaitingLogs {
  readonly #options: WaitingLogsOptions
  /** Oldest first. */
  #gathered: Batch[] = []
  #sending: readonly Batch[] = []
  /** By tenant: what takes more. */
  readonly #open = new Map<number, LogEntry[]>()
  #newest = 0
  /** When something was last left in the table. */
  #noted = 0
  #count = 0
  #sendTimer: NodeJS.Timeout | undefined
  #foldTimer: NodeJS.Timeout | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: WaitingLogsOptions) {
    this.#options = options
  }

  /** Contract: the unit that logged them has ended well. @throws CofferError `unavailable` if too many wait already */
  add(entries: readonly LogEntry[]): void {
    if (this.#count > MOST_UNSENT)
      throw new CofferError('unavailable', 'The store does not take log records. Try again.', {
        retryAfterSeconds: 1,
      })
    for (const entry of entries) {
      const { tenant } = entry
      const open = this.#open.get(tenant)
      if (open !== undefined) open.push(entry)
      else {
        const batch = {
          id: drawBatchId(this.#options.random),
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

  unsent(): Batch[] {
    return [...this.#sending, ...this.#gathered]
  }

  /** The moment of a unit that logs, µs: what was logged before is older, what is logged later newer. */
  mark(): number {
    this.#open.clear()
    return this.#tick()
  }

  /** Something lies in the table. */
  noteWaiting(delay = FOLD_MS): void {
    this.#noted = this.#tick()
    const part = 0.5 + this.#options.random.bytes(1)[0]! / 512
    this.#foldTimer ??= setTimeout(
      () => this.#inBackground(() => this.fold(SETTLED_US)),
      delay * part,
    ).unref()
  }

  /**
   * Puts what lies in the table into the logs, whoever left it there; by default all of it, else what is so many µs old.
   * Gives the number of batches.
   */
  async fold(age = Number.NEGATIVE_INFINITY): Promise<number> {
    await this.send()
    clearTimeout(this.#foldTimer)
    this.#foldTimer = undefined
    for (let sum = 0; ; ) {
      const below = age < 0 ? Number.MAX_SAFE_INTEGER : this.#tick() - age
      const count = await this.#options.write((unit) => this.#foldSome(unit, below))
      sum += count
      if (count === FOLDED_AT_ONCE) continue
      if (this.#noted >= below) this.noteWaiting()
      return sum
    }
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
    const hasLeft = this.#foldTimer !== undefined
    clearTimeout(this.#foldTimer)
    // Others put it into the logs where this does not succeed.
    if (hasLeft) await this.fold().catch(() => 0)
    clearTimeout(this.#sendTimer)
    clearTimeout(this.#foldTimer)
  }

  #tick(): number {
    this.#newest = Math.max(this.#newest + 1, Math.floor((performance.timeOrigin + performance.now()) * 1000))
    return this.#newest
  }

  #send(): void {
    this.#sendTimer = undefined
    this.#inBackground(() => this.send())
  }

  /** A failure is no one's answer: it is tried again, and `add` and `close` report what does not get through. */
  #inBackground(work: () => Promise<unknown>): void {
    work().catch(() => {
      this.#sendTimer ??= setTimeout(() => this.#send(), RETRY_MS).unref()
      this.noteWaiting(RETRY_MS)
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
    })
    this.#sending = []
    this.#count -= batches.reduce((sum, { entries }) => sum + entries.length, 0)
    this.noteWaiting()
    if (this.#gathered.length > 0) await this.#sendGathered()
  }

  async #foldSome(unit: Unit, below: number): Promise<number> {
    const waiting = await unit.readWaiting({ below }, FOLDED_AT_ONCE)
    const entries: LogEntry[] = []
    const done: Waiting[] = []
    for (const each of waiting) {
      const found = await this.#options.sealer().recall(unit, each.tenant, each.id, each.sealed)
      // What does not open is left where it is: verifying the vault reports it.
      if (found === undefined) continue
      entries.push(...found)
      done.push(each)
    }
    if (done.length === 0) return 0
    await this.#options.sealer().seal(unit, entries)
    unit.endWaiting(done)
    return done.length
  }
}
