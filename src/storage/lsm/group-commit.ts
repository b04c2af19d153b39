/** Transactions that come together share a frame and a sync. Each is answered once what it saw is durable. */
import { CofferError } from '../../errors.js'
import { type LogEntry, type LogSealer, logUnavailable, MAX_PENDING_MS } from '../engine.js'
import type { Durability } from '../store.js'
import type { Counters } from '../time.js'
import { Deadline } from './deadline.js'
import { Memtable } from './memtable.js'
import type { View } from './query.js'
import { type Change, isRemoval } from './row-change.js'
import { Transaction } from './transaction.js'
import type { LsmTree } from './tree.js'

interface Waiter {
  done(): void
  fail(error: unknown): void
}

class Group {
  readonly changes: Change[] = []
  readonly entries: LogEntry[] = []
  /** Entries of reads that were answered already. */
  readonly answered: LogEntry[] = []
  readonly waiting: Waiter[] = []
  /** Whether a frame is written, for its time, even if there are no changes. */
  isNoted = false
  /** Whether somebody waits for the sync. */
  isUrgent = false
}

export class GroupCommit {
  counters: Counters
  sealer: LogSealer | undefined
  readonly #tree: LsmTree
  readonly #now: () => number
  readonly #recordWrite: (error?: unknown) => void
  /** Why the last group could not be stored; its entries are tried again with the next one. */
  failure: unknown
  #group = new Group()
  #written: LogEntry[] = []
  /** Runs while entries are held and nothing is synced. */
  readonly #patience = new Deadline(MAX_PENDING_MS)
  /** Visible to writers only: changes of the group, and changes written but not synced. */
  #unsynced = new Memtable()

  /** `recordWrite` is told how each write of changes ended. */
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

  /** Entries of committed transactions that are in no row that readers see. */
  get held(): readonly LogEntry[] {
    this.#forgetSynced()
    return this.#written.length === 0 ? this.#group.answered : [...this.#written, ...this.#group.answered]
  }

  get #isHolding(): boolean {
    this.#forgetSynced()
    return this.#written.length + this.#group.answered.length > 0
  }

  #forgetSynced(): void {
    if (!this.#tree.isUnsynced) this.#written = []
  }

  /** @throws CofferError `unavailable` if an entry of a read that was answered waits for too long */
  refuseUnstored(): void {
    // After a failure the next unit of work tries again and is told the reason.
    if (this.failure !== undefined || !this.#isHolding) return
    if (this.#patience.isOver) throw logUnavailable('The disk does not sync them. Check the disk.')
  }

  #hold(entries: readonly LogEntry[], held: LogEntry[]): void {
    if (!this.#isHolding) this.#patience.start()
    for (const entry of entries) held.push(entry)
  }

  view(): View {
    const { memtables, changeCounters, sstables } = this.#tree.view()
    const all = [this.#unsynced, ...memtables]
    return { memtables: all, uncommitted: 1, held: this.#group.entries, changeCounters, sstables }
  }

  /** Answers work that changed nothing: with the group, because it may have seen changes that are not durable yet. */
  answer(waiting: Waiter): void {
    if (this.#group.isUrgent) this.#group.waiting.push(waiting)
    else waiting.done()
  }

  take(transaction: Transaction, durability: Durability, waiting: Waiter): void {
    const { changes, entries, isNoted } = transaction
    const isHeld = durability === 'soon' && changes.length === 0 && !isNoted
    if (isHeld) this.refuseUnstored()
    transaction.advance(this.counters)
    this.#apply(this.#group, transaction)
    for (const entry of entries) this.#group.entries.push(entry)
    this.#group.isNoted ||= isNoted
    if (durability === 'now' || changes.some(isRemoval)) this.#group.isUrgent = true
    // Reads do not wait for their entries, unless those before could not be stored.
    if (!isHeld || this.failure !== undefined || this.#group.isUrgent || !this.#tree.manifest.isSound)
      this.#group.waiting.push(waiting)
    else {
      this.#hold(entries, this.#group.answered)
      waiting.done()
    }
  }

  #apply(group: Group, { changes, own }: Transaction): void {
    if (own !== undefined && this.#unsynced.isEmpty) this.#unsynced = own
    else for (const change of changes) this.#unsynced.apply(change)
    for (const change of changes) group.changes.push(change)
  }

  /** Commits and syncs everything up to here. @throws CofferError that the group was answered with. */
  async commitAll(): Promise<void> {
    this.#group.isUrgent = true
    const failure = await this.commit()
    if (failure !== undefined) throw failure
  }

  /** `publish`: the function that {@link LsmTree.syncBeside} resolved to. */
  endSync(publish: () => void): void {
    try {
      publish()
    } catch (error) {
      this.failure = error
      throw error
    }
    if (this.#isHolding) this.#patience.start()
    else this.#patience.stop()
    if (this.#group.changes.length === 0) this.#unsynced = new Memtable()
  }

  /** Writes the group as a frame and answers it. Returns the failure that it was answered with, if any. */
  async commit(): Promise<unknown> {
    const group = this.#group
    this.#group = new Group()
    this.#forgetSynced()
    try {
      if (group.entries.length > 0) await this.#seal(group)
      const isWritten = group.changes.length > 0 || group.isNoted
      if (isWritten) this.#tree.append(group.changes, this.counters, group.isUrgent)
      else if (group.isUrgent) this.#tree.sync()
      if (group.isUrgent) this.#unsynced = new Memtable()
      else this.#hold(group.entries, this.#written)
      if (isWritten || group.isUrgent) this.failure = undefined
      if (group.changes.length > 0) this.#recordWrite()
    } catch (error) {
      this.reset()
      this.failure = error
      this.#recordWrite(error)
      this.#group.entries.push(...group.answered)
      this.#group.answered.push(...group.answered)
      for (const { fail } of group.waiting) fail(error)
      return error
    }
    const removed = group.changes.filter(isRemoval).map(({ row }) => row.id)
    if (removed.length > 0)
      await attempt(this.#tree.context.notice, 'erased', () => this.#tree.eraseRemoved(removed))
    for (const { done } of group.waiting) done()
    return undefined
  }

  async #seal(group: Group): Promise<void> {
    const transaction = new Transaction(this.view(), this.counters, this.#now())
    await transaction.seal(this.sealer!, group.entries)
    transaction.advance(this.counters)
    this.#apply(group, transaction)
  }

  /** Continues from what the tree has written: changes of a failed group are forgotten. */
  reset(): void {
    this.counters = { ...this.#tree.counters }
    this.#unsynced = new Memtable(this.#tree.pending)
  }
}

/** What the user is told if it fails. */
const FAILURES = {
  compacted: "The vault's files could not be compacted now",
  erased: 'Deleted data could not be overwritten on the disk now, so it is still there, sealed',
  flushed: "The vault's files could not be flushed now",
  synced: "The vault's files could not be synced now",
} as const

export type Attempt = keyof typeof FAILURES

/** Does work that no answer depends on; `notice` receives its failure. Returns whether it was done. */
export async function attempt(notice: (text: string) => void, what: Attempt, work: () => unknown) {
  try {
    await work()
    return true
  } catch (error) {
    const reason = error instanceof CofferError ? error.message : 'The reason is unknown.'
    notice(`${FAILURES[what]}; it will be tried again. ${reason}`)
    return false
  }
}
