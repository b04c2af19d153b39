/**
 * Group commit: transactions that come together share a frame and a sync, and each is answered when everything that it
 * saw and did is durable. The engine decides when to commit.
 */

import { toText } from '../bytes.js'
import { type LogEntry, type LogSealer, logUnavailable, MOST_PENDING_MS } from '../engine.js'
import type { Durability } from '../store.js'
import type { Counters } from './counters.js'
import { FRAME_LIMIT, SEAL_BYTES } from './frames.js'
import { Memtable } from './memtable.js'
import type { View } from './query.js'
import { attempt, settle } from './settle.js'
import { type Change, FRAME_HEAD, INSERT, isRemoval, MAX_CHANGES, REPLACE } from './sstable/row-change.js'
import { Transaction } from './transaction.js'
import type { LsmTree } from './tree.js'

/** Most plain bytes of changes in a frame. */
const GROUP_BYTES = FRAME_LIMIT - SEAL_BYTES - FRAME_HEAD
/** Reserved in a frame for the blocks that log entries are joined into, and the rows that lead to them. */
const LOG_BYTES = 256 * 1024
const LOG_CHANGES = 1024
/** A packed and sealed entry, with its digest and its share of the rows, is at most this many times its size. */
const PACKED = 4

/** A unit of work that has ended and waits for its answer. */
interface Waiter {
  done(): void
  fail(error: unknown): void
}

interface Group {
  changes: Change[]
  entries: LogEntry[]
  /** Entries of reads that were answered already. */
  answered: LogEntry[]
  bytes: number
  /** Whether a frame is written, for its time, even if there are no changes. */
  isNoted: boolean
  /** Whether somebody waits for the sync. */
  isUrgent: boolean
  /** Since when the first of `answered` waits, ms by the wall clock. */
  answeredSince: number
  waiting: Waiter[]
}

function createGroup(): Group {
  return {
    changes: [],
    entries: [],
    answered: [],
    bytes: 0,
    isNoted: false,
    isUrgent: false,
    answeredSince: 0,
    waiting: [],
  }
}

export class GroupCommit {
  /** For the next transaction. */
  counters: Counters
  sealer: LogSealer | undefined
  readonly #tree: LsmTree
  readonly #now: () => number
  readonly #noteWrite: (error?: unknown) => void
  /** Why the last group could not be stored. */
  #failure: unknown
  #group = createGroup()
  /** Entries of rows that are written but not synced, and since when the first of them waits. */
  #written: LogEntry[] = []
  #writtenSince = 0
  /** Visible to writers only: changes of the group, and changes written but not synced. */
  #unsynced = new Memtable()
  /** The last view, and the view of the tree that it was made of. */
  #view: View | undefined
  #below: View | undefined

  /** `noteWrite` is told how each write of changes ended. */
  constructor(tree: LsmTree, now: () => number, noteWrite: (error?: unknown) => void) {
    this.#tree = tree
    this.#now = now
    this.#noteWrite = noteWrite
    this.counters = { ...tree.counters }
  }

  get isAwaited(): boolean {
    return this.#group.waiting.length > 0
  }

  get isUnsynced(): boolean {
    return this.#tree.isUnsynced || this.#group.entries.length > 0
  }

  /** The entries of a failed group are tried again with the next one. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  /** Entries of committed transactions that are in no row that readers see. */
  get held(): readonly LogEntry[] {
    const written = this.#unreadable()
    return written.length === 0 ? this.#group.answered : [...written, ...this.#group.answered]
  }

  #unreadable(): LogEntry[] {
    if (!this.#tree.isUnsynced) this.#written = []
    return this.#written
  }

  /** @throws CofferError `unavailable` if an entry of a read that was answered waits for too long */
  refuseUnstored(): void {
    const { answered, answeredSince } = this.#group
    const groupSince = answered.length > 0 ? answeredSince : undefined
    const since = this.#unreadable().length > 0 ? this.#writtenSince : groupSince
    // After a failure the next unit of work tries again and is told the reason.
    if (this.#failure !== undefined || since === undefined || Date.now() - since <= MOST_PENDING_MS) return
    throw logUnavailable('The disk does not sync them. Check the disk.')
  }

  view(): View {
    const below = this.#tree.view()
    const [unsynced, held] = [this.#unsynced, this.#group.entries]
    const known = this.#view
    if (this.#below === below && known?.memtables[0] === unsynced && known.held === held) return known
    const view = { ...below, memtables: [unsynced, ...below.memtables], uncommitted: 1, held }
    this.#view = view
    this.#below = below
    return view
  }

  /** Answers work that changed nothing: with the group, because it may have seen changes that are not durable yet. */
  answer(waiting: Waiter): void {
    if (this.#group.isUrgent) this.#group.waiting.push(waiting)
    else waiting.done()
  }

  /**
   * Adds a transaction to the group; one that is too large for a frame is stored at once. If the group is committed
   * first, the rows of its log take numbers that the transaction gave to its own: `again` then runs its work anew.
   */
  async take(
    transaction: Transaction,
    durability: Durability,
    waiting: Waiter,
    again: () => Promise<void>,
  ): Promise<void> {
    const { bytes, changes, isNoted } = this.#group
    const { entries } = transaction
    const size = entries.reduce((sum, entry) => sum + PACKED * entry.bytes, transaction.bytes)
    const mostBytes = GROUP_BYTES - LOG_BYTES
    const mostChanges = MAX_CHANGES - LOG_CHANGES
    const isLarge = size > mostBytes || transaction.changes.length > mostChanges
    const isFull = bytes + size > mostBytes || changes.length + transaction.changes.length > mostChanges
    if (!isLarge && !isFull) return this.#join(transaction, size, durability, waiting)
    if (changes.length === 0 && this.#group.entries.length === 0 && !isNoted)
      return this.#store(transaction, waiting)
    // After a failure the transaction has seen changes that were undone.
    const failure = await this.commit()
    if (failure === undefined) await again()
    else waiting.fail(failure)
  }

  #join(transaction: Transaction, size: number, durability: Durability, waiting: Waiter): void {
    const { entries } = transaction
    const isHeld = durability === 'soon' && transaction.changes.length === 0 && !transaction.isNoted
    if (isHeld) this.refuseUnstored()
    transaction.advance(this.counters)
    for (const change of transaction.changes) {
      this.#unsynced.apply(change)
      this.#group.changes.push(change)
    }
    for (const entry of entries) this.#group.entries.push(entry)
    this.#group.bytes += size
    this.#group.isNoted ||= transaction.isNoted
    if (durability === 'now' || transaction.changes.some(isRemoval)) this.#group.isUrgent = true
    // Reads do not wait for their entries, unless those before could not be stored.
    if (!isHeld || this.#failure !== undefined || this.#group.isUrgent || !this.#tree.manifest.isSound)
      this.#group.waiting.push(waiting)
    else {
      if (this.#group.answered.length === 0) this.#group.answeredSince = Date.now()
      this.#group.answered.push(...entries)
      waiting.done()
    }
  }

  async #store(transaction: Transaction, waiting: Waiter): Promise<void> {
    const counters = { ...this.counters }
    const settled = await settle(async () => {
      if (transaction.entries.length > 0) await transaction.seal(this.sealer!, transaction.entries)
      transaction.advance(counters)
      await this.#tree.store(transaction.memtable, counters)
    })
    this.reset()
    if (settled.ok) waiting.done()
    else waiting.fail(settled.error)
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
      this.#failure = error
      throw error
    }
    if (this.#group.changes.length === 0) this.#unsynced = new Memtable()
  }

  /** Writes the group as a frame and answers it. Returns the failure that it was answered with, if any. */
  async commit(): Promise<unknown> {
    const group = this.#group
    this.#group = createGroup()
    const removals = group.changes.filter(isRemoval)
    const wasInWal = removals.length > 0 && this.#isInLog(removals, group.changes)
    try {
      const written = this.#unreadable()
      if (group.entries.length > 0) await this.#seal(group)
      const isWritten = group.changes.length > 0 || group.isNoted
      if (isWritten) this.#tree.append(group.changes, this.counters, group.isUrgent)
      else if (group.isUrgent) this.#tree.sync()
      if (group.isUrgent) this.#unsynced = new Memtable()
      else {
        if (written.length === 0)
          this.#writtenSince = group.answered.length > 0 ? group.answeredSince : Date.now()
        written.push(...group.entries)
      }
      if (isWritten || group.isUrgent) this.#failure = undefined
      if (group.changes.length > 0) this.#noteWrite()
    } catch (error) {
      this.reset()
      this.#failure = error
      this.#noteWrite(error)
      this.#group.entries.push(...group.answered)
      this.#group.answered.push(...group.answered)
      this.#group.answeredSince = group.answeredSince
      for (const { fail } of group.waiting) fail(error)
      return error
    }
    if (removals.length > 0)
      await attempt(this.#tree.options.notice, 'erased', () => this.#tree.eraseRemoved(removals, wasInWal))
    for (const { done } of group.waiting) done()
    return undefined
  }

  /** Whether a version of one of the removed rows is in the log, or will be in the frame of `changes`. */
  #isInLog(removals: readonly Change[], changes: readonly Change[]): boolean {
    const { pending } = this.#tree
    const { memtables } = this.#tree.view()
    const puts = [...pending, ...changes].filter(({ kind }) => kind === INSERT || kind === REPLACE)
    const written = new Set(puts.map(({ row }) => toText(row.id)))
    return removals.some(({ row }) => {
      const id = toText(row.id)
      return written.has(id) || memtables.some((memtable) => memtable.entry(id)?.item !== undefined)
    })
  }

  async #seal(group: Group): Promise<void> {
    const transaction = new Transaction(this.view(), this.counters, this.#now())
    await transaction.seal(this.sealer!, group.entries)
    transaction.advance(this.counters)
    for (const change of transaction.changes) {
      this.#unsynced.apply(change)
      group.changes.push(change)
    }
  }

  /** Continues from what the tree has written: changes of a failed group are forgotten. */
  reset(): void {
    this.counters = { ...this.#tree.counters }
    this.#unsynced = new Memtable(this.#tree.pending)
  }
}
