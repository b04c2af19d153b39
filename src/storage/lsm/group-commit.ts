/**
 * Group commit: the changes of works that came together share a frame and a sync, and each work is answered when what
 * it saw and did is safe. Knows who may see unsafe changes; when to commit is the engine's to say.
 */

import type { Durability } from '../store.js'
import { FRAME_LIMIT, SEAL_BYTES } from './frames.js'
import { Memtable } from './memtable.js'
import type { View } from './query.js'
import { type Change, FRAME_HEAD, MAX_CHANGES } from './row-change.js'
import { attempt, settle } from './settle.js'
import { type Counters, copyCounters, type Transaction } from './transaction.js'
import { isRemoval, type LsmTree } from './tree.js'

/** Plain bytes of changes that one frame takes. */
const GROUP_BYTES = FRAME_LIMIT - SEAL_BYTES - FRAME_HEAD

/** A work that has ended and waits to be answered. */
export interface Waiter {
  done(): void
  fail(error: unknown): void
}

/** Works whose changes share a frame, and who waits for it. */
interface Group {
  changes: Change[]
  bytes: number
  /** A frame is written even though there are no changes, for its time. */
  isNoted: boolean
  /** Somebody waits for the sync. */
  isUrgent: boolean
  waiting: Waiter[]
}

function createGroup(): Group {
  return { changes: [], bytes: 0, isNoted: false, isUrgent: false, waiting: [] }
}

export class GroupCommit {
  /** As the next work finds them. */
  counters: Counters
  readonly #tree: LsmTree
  #group = createGroup()
  /** Changes that only later writers may see: those of the group, and those written but not synced. */
  #unsynced = new Memtable()

  constructor(tree: LsmTree) {
    this.#tree = tree
    this.counters = copyCounters(tree.counters)
  }

  /** Somebody waits for the group to be committed. */
  get isAwaited(): boolean {
    return this.#group.waiting.length > 0
  }

  /** Something was written that is not synced. */
  get isUnsynced(): boolean {
    return this.#tree.isUnsynced
  }

  /** What a writer sees. */
  view(): View {
    const view = this.#tree.view()
    return { ...view, memtables: [this.#unsynced, ...view.memtables], uncommitted: 1 }
  }

  /** A work that changed nothing may have been shown, or refused for, what is not safe yet: it is answered with that. */
  answer(waiting: Waiter): void {
    if (this.#group.isUrgent) this.#group.waiting.push(waiting)
    else waiting.done()
  }

  /** Takes the changes of a work that ended well into the group; too many of them are stored at once. */
  async take(transaction: Transaction, durability: Durability, waiting: Waiter): Promise<void> {
    const { bytes, changes } = this.#group
    const isLarge = transaction.bytes > GROUP_BYTES || transaction.changes.length > MAX_CHANGES
    const isFull =
      bytes + transaction.bytes > GROUP_BYTES || changes.length + transaction.changes.length > MAX_CHANGES
    if (isLarge || isFull) {
      const failure = await this.commit()
      // The work built on what has just been taken back.
      if (failure !== undefined) return waiting.fail(failure)
    }
    if (isLarge) return this.#store(transaction, waiting)
    transaction.advance(this.counters)
    for (const change of transaction.changes) {
      this.#unsynced.apply(change)
      this.#group.changes.push(change)
    }
    this.#group.bytes += transaction.bytes
    this.#group.isNoted ||= transaction.isNoted
    if (durability === 'now' || transaction.changes.some(isRemoval)) this.#group.isUrgent = true
    this.#group.waiting.push(waiting)
  }

  async #store(transaction: Transaction, waiting: Waiter): Promise<void> {
    const counters = copyCounters(this.counters)
    transaction.advance(counters)
    const settled = await settle(() => this.#tree.store(transaction.memtable, counters))
    this.reset()
    if (settled.ok) waiting.done()
    else waiting.fail(settled.error)
  }

  /** Commits everything up to here, synced. @throws CofferError what the works of the group were answered with. */
  async commitAll(): Promise<void> {
    this.#group.isUrgent = true
    const failure = await this.commit()
    if (failure !== undefined) throw failure
  }

  /** Writes the group as a frame and answers its works. Gives the failure, which all of them were answered with. */
  async commit(): Promise<unknown> {
    const group = this.#group
    this.#group = createGroup()
    const removals = group.changes.filter(isRemoval)
    const wasInWal = removals.length > 0 && this.#tree.holdsAny(removals, group.changes)
    try {
      if (group.changes.length > 0 || group.isNoted)
        this.#tree.append(group.changes, this.counters, group.isUrgent)
      else if (group.isUrgent) this.#tree.sync()
      if (group.isUrgent) this.#unsynced = new Memtable()
    } catch (error) {
      this.reset()
      for (const { fail } of group.waiting) fail(error)
      return error
    }
    if (removals.length > 0) await this.#erase(removals, wasInWal)
    for (const { done } of group.waiting) done()
    return undefined
  }

  async #erase(removals: readonly Change[], wasInWal: boolean): Promise<void> {
    await attempt(this.#tree.options.notice, 'erased', () => this.#tree.eraseRemoved(removals, wasInWal))
  }

  /** Goes on from what the ledger has written: a group that failed is as if it had never been. */
  reset(): void {
    this.counters = copyCounters(this.#tree.counters)
    this.#unsynced = new Memtable()
    for (const change of this.#tree.pending) this.#unsynced.apply(change)
  }
}
