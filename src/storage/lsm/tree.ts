/**
 * The LSM tree on disk: changes are appended to the write-ahead log and kept in the memtable, which is flushed into
 * sorted tables. The engine decides which changes share a frame and when to flush.
 */

import { toText } from '../bytes.js'
import type { EngineStatus } from '../engine.js'
import type { Header } from '../vault-file.js'
import { ChangeCounters } from './change-counters.js'
import type { CompactionResult } from './compaction/compaction.js'
import type { Contents } from './contents.js'
import type { Counters } from './counters.js'
import { CurrentWal } from './current-wal.js'
import { FrozenMemtable } from './flush.js'
import type { WalPosition } from './frames.js'
import { Manifest } from './manifest.js'
import { Memtable } from './memtable.js'
import type { LsmContexts, LsmOptions } from './options.js'
import type { View } from './query.js'
import type { BlockCache } from './sstable/block-cache.js'
import type { LiveSSTable } from './sstable/live-sstable.js'
import { type Change, decodeFrame, encodeFrame } from './sstable/row-change.js'
import { finish, writeSSTables } from './sstable/row-writer.js'
import { describeContents } from './status.js'
import type { Wal } from './wal.js'

interface LsmParts extends LsmContexts {
  contents: Contents
  wal: Wal
}

export class LsmTree {
  /** With the present header. */
  options: LsmOptions
  /** Synced rows of the current log. */
  memtable = new Memtable()
  /** Changes that are written but not synced. */
  pending: Change[] = []
  /** Whether a frame is written but not synced; a frame that only records the time has no changes. */
  isUnsynced = false
  /** Counts synced changes. */
  readonly changeCounters = new ChangeCounters()
  /** As of the last change that was written. */
  counters: Counters
  readonly cache: BlockCache
  readonly manifest: Manifest
  readonly #log: CurrentWal
  #frozen: FrozenMemtable | undefined
  /** Valid until the tables or the memtable are replaced. */
  #view: View | undefined

  constructor(options: LsmOptions, { sstables, wals, state, contents, wal }: LsmParts) {
    this.options = options
    this.cache = sstables.cache
    this.manifest = new Manifest(options.keys, sstables, state, contents)
    this.#log = new CurrentWal(wals, wal, options.random, (text) => this.options.notice(text))
    this.counters = { ...contents.counters }
  }

  isLargerThan({ bytes, rows, keys }: { bytes: number; rows: number; keys?: number }): boolean {
    const { count, keyCount } = this.memtable
    return this.#log.position.end > bytes || count > rows || keyCount > (keys ?? Infinity)
  }

  /** All that is synced, which is what readers see. */
  view(): View {
    const { changeCounters, memtable } = this
    const { sstables } = this.manifest
    const known = this.#view
    if (known?.sstables === sstables && known.memtables[0] === memtable) return known
    const view = { memtables: this.#memtables(), uncommitted: 0, held: [], changeCounters, sstables }
    this.#view = view
    return view
  }

  #memtables(): Memtable[] {
    return this.#frozen === undefined ? [this.memtable] : [this.memtable, this.#frozen.memtable]
  }

  /**
   * Writes changes as one frame and, when `isUrgent`, syncs it and all before it. On failure the log is as it was.
   * @throws CofferError `storage_failed`.
   */
  append(changes: readonly Change[], counters: Counters, isUrgent: boolean): void {
    this.manifest.refuseIfBroken()
    const { position } = this.#log
    const waiting = this.pending.length
    const before = this.counters
    try {
      const plain = encodeFrame(changes, counters.last, counters.rev)
      this.#log.wal.append(plain)
      this.isUnsynced = true
      for (const change of decodeFrame(plain).changes) this.pending.push(change)
      this.counters = { ...counters }
      if (isUrgent) this.sync()
    } catch (error) {
      this.pending.length = waiting
      this.counters = before
      this.#truncate(position, error)
      throw error
    }
  }

  #truncate(position: WalPosition, cause: unknown): void {
    try {
      this.#log.wal.truncate(position)
    } catch {
      this.manifest.break(cause)
    }
  }

  /**
   * Syncs everything written so far and lets readers see it. A failed sync is never tried again, because what the disk
   * holds is then unknown until the vault is opened anew.
   * @throws CofferError `storage_failed`.
   */
  sync(): void {
    this.manifest.refuseIfBroken()
    if (!this.isUnsynced) return
    try {
      this.#log.wal.sync()
    } catch (error) {
      this.manifest.break(error)
      throw error
    }
    this.#publish()
  }

  /** Lets readers see what is pending. Contract: it is synced. */
  #publish(): void {
    for (const change of this.pending) {
      this.changeCounters.note(change)
      this.memtable.apply(change)
    }
    this.pending = []
    this.isUnsynced = false
    this.#log.acknowledge()
  }

  /**
   * Syncs everything written so far while other work runs. Resolves to a function that lets readers see it, or syncs
   * anew if more was written meanwhile. Contract: that function is called between two units of work. A failure is left
   * to {@link sync}, which meets it too.
   */
  async syncBeside(): Promise<() => void> {
    const { wal } = this.#log
    const { frames } = wal.position
    const isSynced = await wal.syncBeside()
    return () => {
      const isAll = wal === this.#log.wal && frames === wal.position.frames
      if (isSynced && isAll && this.isUnsynced && this.manifest.isSound) this.#publish()
      else this.sync()
    }
  }

  /** Flushes all rows of the log into sorted tables. A failure loses nothing and leaves nothing half done. */
  async flush(): Promise<void> {
    this.sync()
    while (!this.advanceFlush());
    await this.finishFlush()
    if (this.#log.position.frames === 0 && this.manifest.contents.wals.length === 1) return
    await this.#flushMemtable(this.memtable, this.counters)
  }

  /** Stores changes that are too many for a frame, as sorted tables: one new `state` makes all of them durable. */
  async store(memtable: Memtable, counters: Counters): Promise<void> {
    await this.flush()
    this.changeCounters.noteAll()
    await this.#flushMemtable(memtable, counters)
  }

  /** Adds tables, and the memtable's, to `state`. Contract: nothing is frozen, and all is synced. */
  addTables(tables: readonly LiveSSTable[], counters: Counters): Promise<void> {
    return this.#flushMemtable(this.memtable, counters, tables)
  }

  async #flushMemtable(
    memtable: Memtable,
    counters: Counters,
    more: readonly LiveSSTable[] = [],
  ): Promise<void> {
    this.manifest.refuseIfBroken()
    const wal = this.#log.position.frames === 0 ? this.#log.wal : this.#log.createNext()
    let written: LiveSSTable[] = []
    try {
      written = finish(writeSSTables(this.manifest.context, memtable.live()))
    } catch (error) {
      this.#log.discard(wal)
      throw error
    }
    const unused = await this.#log.closeOnFailure(wal, () =>
      this.manifest.addFlushed(memtable, [...written, ...more], counters, wal),
    )
    this.counters = { ...counters }
    this.memtable = new Memtable()
    this.#log.switchTo(wal)
    await this.manifest.cleanUp(unused)
  }

  /**
   * Begins a new log and memtable, so that the present memtable can be flushed beside other work: by
   * {@link advanceFlush} until it is true, then {@link finishFlush}. `state` names both logs meanwhile.
   */
  async freeze(): Promise<void> {
    this.sync()
    if (this.#frozen !== undefined || this.#log.position.frames === 0) return
    const wal = this.#log.createNext()
    await this.#log.closeOnFailure(wal, () => this.manifest.addWal(wal))
    this.#frozen = new FrozenMemtable(this.manifest.context, this.memtable, { ...this.counters })
    this.memtable = new Memtable()
    this.#log.switchTo(wal)
  }

  /** Does one step of flushing the frozen memtable; true when none is left. @throws CofferError `storage_failed`. */
  advanceFlush(): boolean {
    this.#frozen?.advance()
    return this.#frozen === undefined || this.#frozen.written !== undefined
  }

  /** Adds the tables of the frozen memtable to `state`, and removes its log. */
  async finishFlush(): Promise<void> {
    if (this.#frozen?.written === undefined) return
    const { memtable, written, counters } = this.#frozen
    this.manifest.refuseIfBroken()
    const unused = await this.manifest.addFlushed(memtable, written, counters, this.#log.wal)
    this.#frozen = undefined
    this.#view = undefined
    await this.manifest.cleanUp(unused)
  }

  /**
   * Overwrites the bytes of removed rows wherever they lie, before the removal is answered. Contract: the removals
   * are synced. `wasInWal` says that a version of one of them is in the log, which is then flushed.
   */
  async eraseRemoved(changes: readonly Change[], wasInWal: boolean): Promise<void> {
    if (wasInWal) return this.flush()
    this.manifest.eraseRows(changes.map(({ row }) => row.id))
  }

  /** Puts the output of a compaction into `state`; see {@link Manifest.finishCompaction}. */
  finishCompaction(inputs: readonly LiveSSTable[], result: CompactionResult): Promise<void> {
    const removed = this.#memtables().flatMap((memtable) =>
      memtable.shadowed.filter((id) => memtable.entry(toText(id))?.item === undefined),
    )
    return this.manifest.finishCompaction(inputs, result, removed)
  }

  /** Replaces `vault.json` by `write`; see {@link Manifest.replaceHeader}. */
  async replaceHeader(header: Header, write: () => Promise<void>): Promise<void> {
    await this.manifest.replaceHeader(header, write)
    this.options = { ...this.options, header }
  }

  status(): EngineStatus {
    return describeContents(this.manifest.contents, this.#memtables(), this.#log.position.end)
  }

  close(): void {
    this.#frozen?.close()
    this.#log.wal.close()
    this.manifest.close()
  }
}
