/** Batches of log entries of this process that are not stored yet. Each batch becomes one sealed row of its tenant. */
import type { Clock } from '../../crypto/ports.js'
import type { LogEntry, PendingBatch } from '../engine.js'
import { batchKey } from '../taken-batches.js'

export interface Batch extends PendingBatch {
  /** µs since the epoch. Higher than in every earlier batch of this process. */
  readonly written: number
  readonly entries: LogEntry[]
}

export class PendingBatches {
  readonly #clock: Clock
  readonly #owner: Uint8Array
  readonly #ofReads: Batch[] = []
  /** By tenant: the batch to which the entries of the next reads are added. */
  #open = new Map<number, Batch>()
  /** All unstored batches, of reads and of commits in progress, oldest first. */
  readonly #unstored = new Set<Batch>()
  readonly #lastNumberOfTenant = new Map<number, number>()
  #newest = 0

  constructor(owner: Uint8Array, clock: Clock) {
    this.#owner = owner
    this.#clock = clock
  }

  get oldest(): Batch | undefined {
    const [oldest] = this.#unstored
    return oldest
  }

  get oldestOfReads(): Batch | undefined {
    return this.#ofReads[0]
  }

  addRead(entry: LogEntry): void {
    const batch = this.#addTo(this.#open, entry)
    if (batch.entries.length === 1) this.#ofReads.push(batch)
  }

  addCommit(entries: readonly LogEntry[]): Batch[] {
    // Later reads must not join a batch that is older than this commit.
    this.#open = new Map()
    const batches = new Map<number, Batch>()
    for (const entry of entries) this.#addTo(batches, entry)
    return [...batches.values()]
  }

  closeReads(): Batch[] {
    this.#open = new Map()
    return [...this.#ofReads]
  }

  /** Removes the oldest `count` batches of reads. Requires: these batches are stored. */
  removeReads(count: number): void {
    this.remove(this.#ofReads.splice(0, count))
  }

  remove(batches: readonly Batch[]): void {
    for (const batch of batches) this.#unstored.delete(batch)
  }

  #addTo(batches: Map<number, Batch>, entry: LogEntry): Batch {
    const batch = batches.get(entry.tenant) ?? this.#create(entry.tenant)
    batches.set(entry.tenant, batch)
    entry.time = Math.floor(this.#clock())
    batch.entries.push(entry)
    return batch
  }

  #create(tenant: number): Batch {
    const number = (this.#lastNumberOfTenant.get(tenant) ?? 0) + 1
    this.#lastNumberOfTenant.set(tenant, number)
    const written = this.nextMoment()
    const id = batchKey(this.#owner, number, Math.floor(written / 1000))
    const batch = { id, tenant, written, entries: [] }
    this.#unstored.add(batch)
    return batch
  }

  /**
   * Returns the current time in µs since the epoch, or a time after the newest batch if that time is later.
   */
  nextMoment(): number {
    this.#newest = Math.max(this.#newest + 1, readMicros())
    return this.#newest
  }
}

/** µs since the epoch. */
export function readMicros(): number {
  return Math.floor((performance.timeOrigin + performance.now()) * 1000)
}
