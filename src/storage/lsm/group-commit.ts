/**
 * Group commit: transactions that arrive together share one frame of the write-ahead log and one sync.
 *
 *   transaction ── enqueue ──▶ group: uncommitted changes and entries
 *                                │ commit: one frame
 *                                ▼
 *                              WAL (write-ahead log): unsynced changes and entries
 *                                │ sync
 *                                ▼
 *                              durable: readers see it
 *
 * A transaction that must wait is acknowledged after its frame is written and, if the group needs a sync, synced.
 *
 * A transaction that only reads is acknowledged immediately, if its log entries can wait. Until these log entries are
 * durable, they are pending: queries of a tenant's log find them, and a crash would lose them.
 *
 * The table shows which fields contain the changes and log entries of a transaction, in each state of the transaction.
 *
 *   state               changes                      log entries                          acknowledged
 *   in the group        group.changes, #newChanges   group.entries; also group.pending    only if its entries can wait
 *                                                    after its acknowledgement
 *   in the WAL          #newChanges                  #unsyncedEntries                     yes
 *   durable             none: they are in the tree   none: they are in the tree           yes
 *   failed              none: they are lost          if acknowledged: group.entries and   if not acknowledged yet, it
 *                                                    group.pending of the next group      receives the error
 *
 * `group.waiting` contains the transactions of the group that are not acknowledged. After a failed write, `failure` is
 * set until a commit writes a frame or syncs. A sync in the background does not clear `failure`. While `failure` is set, every transaction of a group waits. `#patience`
 * runs while acknowledged entries are pending.
 */
import { type LogEntry, type LogSealer, logUnavailable, MAX_PENDING_MS } from '../engine.js'
import { type Change, isRemoval } from '../rows/frame.js'
import type { Durability } from '../store.js'
import type { Counters } from '../time.js'
import { attempt } from './attempt.js'
import { Deadline } from './deadline.js'
import { Memtable } from './memtable.js'
import type { View } from './query.js'
import { Transaction } from './transaction.js'
import type { LsmTree } from './tree.js'

interface Waiter {
  done(): void
  fail(error: unknown): void
}

class Group {
  readonly changes: Change[] = []
  readonly entries: LogEntry[] = []
  /** The entries of transactions that were acknowledged before the commit. `entries` contains these entries too. */
  readonly pending: LogEntry[] = []
  readonly waiting: Waiter[] = []
  /** True if the group needs a frame to store the time, even without changes. */
  storesTime = false
  needsSync = false
}

export class GroupCommit {
  counters: Counters
  sealer: LogSealer | undefined
  /** Why the last commit or sync failed. The next group includes the acknowledged entries of a failed group. */
  failure: unknown
  readonly #tree: LsmTree
  readonly #now: () => number
  readonly #recordWrite: (error?: unknown) => void
  #group = new Group()
  #unsyncedEntries: LogEntry[] = []
  /** Changes that only writers see: the changes of the group, and unsynced changes in the write-ahead log. */
  #newChanges = new Memtable()
  readonly #patience = new Deadline(MAX_PENDING_MS)

  /** `recordWrite` receives the error of each failed group, and undefined after each write of changes. */
  constructor(tree: LsmTree, now: () => number, recordWrite: (error?: unknown) => void) {
    this.#tree = tree
    this.#now = now
    this.#recordWrite = recordWrite
    this.counters = { ...tree.counters }
  }

  get isAwaited(): boolean {
    return this.#group.waiting.length > 0
  }

  get isUnsynced(): boolean {
    return this.#tree.isUnsynced || this.#group.entries.length > 0
  }

  get pendingEntries(): readonly LogEntry[] {
    this.#forgetSynced()
    const { pending } = this.#group
    return this.#unsyncedEntries.length === 0 ? pending : [...this.#unsyncedEntries, ...pending]
  }

  get #hasPending(): boolean {
    this.#forgetSynced()
    return this.#unsyncedEntries.length + this.#group.pending.length > 0
  }

  #forgetSynced(): void {
    if (!this.#tree.isUnsynced) this.#unsyncedEntries = []
  }

  /** @throws CofferError `unavailable` if an entry was pending for longer than {@link MAX_PENDING_MS} */
  refuseUnstored(): void {
    // After a failed write, the next unit of work retries the write and reports the reason if the write fails again.
    if (this.failure !== undefined || !this.#hasPending) return
    if (this.#patience.isOver) throw logUnavailable('The disk does not sync them. Check the disk.')
  }

  #addPending(entries: readonly LogEntry[], to: LogEntry[]): void {
    if (!this.#hasPending) this.#patience.start()
    for (const entry of entries) to.push(entry)
  }

  view(): View {
    const { memtables, changeCounters, sstables } = this.#tree.view()
    const all = [this.#newChanges, ...memtables]
    return { memtables: all, uncommitted: 1, pendingEntries: this.#group.entries, changeCounters, sstables }
  }

  /**
   * Acknowledges a transaction that stores no changes. If the group needs a sync, the acknowledgement waits for this
   * sync, because the transaction may have seen the changes of the group.
   */
  acknowledge(waiter: Waiter): void {
    if (this.#group.needsSync) this.#group.waiting.push(waiter)
    else waiter.done()
  }

  enqueue(transaction: Transaction, durability: Durability, waiter: Waiter): void {
    const { changes, entries, storesTime } = transaction
    const canWait = durability === 'soon' && changes.length === 0 && !storesTime
    if (canWait) this.refuseUnstored()
    transaction.advance(this.counters)
    this.#add(this.#group, transaction)
    for (const entry of entries) this.#group.entries.push(entry)
    this.#group.storesTime ||= storesTime
    if (durability === 'now' || changes.some(isRemoval)) this.#group.needsSync = true
    // After a failure, a read waits until its log entries are stored.
    const isTrouble = this.failure !== undefined || !this.#tree.manifest.isSound
    if (!canWait || isTrouble || this.#group.needsSync) this.#group.waiting.push(waiter)
    else {
      this.#addPending(entries, this.#group.pending)
      waiter.done()
    }
  }

  #add(group: Group, { changes, own }: Transaction): void {
    if (own !== undefined && this.#newChanges.isEmpty) this.#newChanges = own
    else for (const change of changes) this.#newChanges.apply(change)
    for (const change of changes) group.changes.push(change)
  }

  async commitAll(): Promise<void> {
    this.#group.needsSync = true
    const failure = await this.commit()
    if (failure !== undefined) throw failure
  }

  endSync(publish: () => void): void {
    try {
      publish()
    } catch (error) {
      this.failure = error
      throw error
    }
    if (this.#hasPending) this.#patience.start()
    else this.#patience.stop()
    // The tree now has all changes except the changes of the group. If no commit syncs, the synced changes are forgotten
    // only here. Otherwise they would stay in memory twice.
    this.#newChanges = new Memtable(this.#group.changes)
  }

  /**
   * Writes the group as one frame and acknowledges its transactions. If the write fails, the transactions receive the
   * error, and this function also returns the error. Requires: no transaction is enqueued during a commit.
   */
  async commit(): Promise<unknown> {
    const group = this.#group
    this.#group = new Group()
    this.#forgetSynced()
    try {
      await this.#write(group)
    } catch (error) {
      this.#returnEntries(group, error)
      for (const { fail } of group.waiting) fail(error)
      return error
    }
    const removed = group.changes.filter(isRemoval).map(({ row }) => row.id)
    if (removed.length > 0)
      await attempt(this.#tree.context.notice, 'erased', () => this.#tree.eraseRemoved(removed))
    for (const { done } of group.waiting) done()
    return undefined
  }

  async #write(group: Group): Promise<void> {
    if (group.entries.length > 0) await this.#seal(group)
    const { changes, entries, storesTime, needsSync } = group
    const hasFrame = changes.length > 0 || storesTime
    if (hasFrame) this.#tree.append(changes, this.counters, needsSync)
    else if (needsSync) this.#tree.sync()
    if (needsSync) this.#newChanges = new Memtable()
    else this.#addPending(entries, this.#unsyncedEntries)
    if (hasFrame || needsSync) this.failure = undefined
    if (changes.length > 0) this.#recordWrite()
  }

  #returnEntries({ pending }: Group, error: unknown): void {
    this.reset()
    this.failure = error
    this.#recordWrite(error)
    this.#group.entries.push(...pending)
    this.#group.pending.push(...pending)
  }

  async #seal(group: Group): Promise<void> {
    const transaction = new Transaction(this.view(), this.counters, this.#now())
    await transaction.seal(this.sealer!, group.entries)
    transaction.advance(this.counters)
    this.#add(group, transaction)
  }

  /** Continues from the changes that the tree has written, and forgets the changes of a failed group. */
  reset(): void {
    this.counters = { ...this.#tree.counters }
    this.#newChanges = new Memtable(this.#tree.pending)
  }
}
