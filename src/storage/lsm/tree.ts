/**
 * The LSM tree: each change is appended to the write-ahead log ("log" in this file) and applied to the memtable. A
 * flush writes the memtable as a sorted table.
 */
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import { type EngineStatus, KEY_ROWS, type RowId } from '../engine.js'
import { type Change, decodeFrame, encodeFrame } from '../rows/frame.js'
import type { Counters } from '../time.js'
import { type Header, writeHeader } from '../vault-file.js'
import type { LsmContext, Size } from './context.js'
import { type Contents, digestHeader, Manifest } from './manifest.js'
import { Memtable } from './memtable.js'
import { ChangeCounters, isHidden, type View } from './query.js'
import type { LiveSSTable } from './sstable/live-sstable.js'
import { type Compacted, writeRows } from './sstable/write-tables.js'
import { createWal, FRAME_LIMIT, removeWal, SEAL_BYTES, type Wal, type WalRef } from './wal.js'

/** A memtable that is flushed in steps, between units of work. A frozen memtable does not change any more. */
interface FrozenMemtable {
  memtable: Memtable
  counters: Counters
  steps: Generator<undefined, LiveSSTable[]> | undefined
  written: LiveSSTable[] | undefined
}

export class LsmTree {
  readonly context: LsmContext
  /** The synced rows of the current log. */
  memtable = new Memtable()
  /** Changes that are in the log and not synced yet. */
  pending: Change[] = []
  /**
   * True if the log has an unsynced frame. A frame that only stores the time has no changes.
   */
  isUnsynced = false
  readonly changeCounters = new ChangeCounters()
  counters: Counters
  readonly manifest: Manifest
  #wal: Wal
  #frozen: FrozenMemtable | undefined

  constructor(context: LsmContext, contents: Contents, wal: Wal) {
    this.context = context
    this.manifest = new Manifest(context, contents)
    this.#wal = wal
    this.counters = { ...contents.counters }
  }

  isLargerThan({ bytes, rows, keys = Number.POSITIVE_INFINITY }: Size): boolean {
    const { count, keyCount } = this.memtable
    return this.#wal.position.end > bytes || count > rows || keyCount > keys
  }

  view(): View {
    const { changeCounters } = this
    const { sstables } = this.manifest
    return { memtables: this.#memtables(), uncommitted: 0, pendingEntries: [], changeCounters, sstables }
  }

  #memtables(): Memtable[] {
    return this.#frozen === undefined ? [this.memtable] : [this.memtable, this.#frozen.memtable]
  }

  /**
   * Appends one frame, and syncs it if `isUrgent`. If the write fails, nothing has changed. @throws CofferError
   * `storage_failed`
   */
  append(changes: readonly Change[], counters: Counters, isUrgent: boolean): void {
    this.manifest.refuseIfBroken()
    const { position } = this.#wal
    const waiting = this.pending.length
    const before = this.counters
    try {
      const plain = encodeFrame(changes, counters.last, counters.rev)
      if (plain.length + SEAL_BYTES > FRAME_LIMIT)
        throw new CofferError('internal', 'A unit of work is too large for a frame of the write-ahead log.')
      this.#wal.append(plain)
      this.isUnsynced = true
      for (const change of decodeFrame(plain).changes) this.pending.push(change)
      this.counters = { ...counters }
      if (isUrgent) this.sync()
    } catch (error) {
      this.pending.length = waiting
      this.counters = before
      try {
        this.#wal.truncate(position)
      } catch {
        this.manifest.break(error)
      }
      throw error
    }
  }

  /**
   * A failed sync is never retried, because after a failed sync the contents of the disk are unknown. @throws
   * CofferError `storage_failed`
   */
  sync(): void {
    this.manifest.refuseIfBroken()
    if (!this.isUnsynced) return
    try {
      this.#wal.sync()
    } catch (error) {
      this.manifest.break(error)
      throw error
    }
    this.#publish()
  }

  /** Makes the pending changes visible to readers. Requires: these changes are synced. */
  #publish(): void {
    for (const change of this.pending) {
      this.changeCounters.note(change)
      this.memtable.apply(change)
    }
    this.pending = []
    this.isUnsynced = false
    try {
      this.#wal.acknowledge()
    } catch {
      // The log is complete, because its frames are synced. Only the head on disk does not cover all frames yet.
      this.context.notice(
        'The head of the write-ahead log could not be written. All changes are stored. Check the disk.',
      )
    }
  }

  /**
   * Syncs without blocking the process. Resolves to a function that makes the synced changes visible to readers. If
   * something was written after the first sync began, the returned function first syncs again. Requires: nothing else
   * runs while the returned function runs.
   */
  async syncBeside(): Promise<() => void> {
    const wal = this.#wal
    const { frames } = wal.position
    const isSynced = !this.isUnsynced || (await wal.syncBeside())
    return () => {
      const isAll = wal === this.#wal && frames === wal.position.frames
      if (isSynced && isAll && this.isUnsynced && this.manifest.isSound) this.#publish()
      else this.sync()
    }
  }

  flush(): void {
    this.#flushFrozen()
    this.freeze()
    this.#flushFrozen()
  }

  #flushFrozen(): void {
    while (!this.advanceFlush());
    this.finishFlush()
  }

  /** Begins a new log. {@link advanceFlush} and then {@link finishFlush} flush the memtable of the old log. */
  freeze(): void {
    this.sync()
    const isEmpty = this.#wal.position.frames === 0
    // After a crash, `state` may also list an older log.
    if (this.#frozen !== undefined || (isEmpty && this.manifest.contents.wals.length === 1)) return
    this.manifest.refuseIfBroken()
    if (!isEmpty) this.#switchWal((wal) => ({ wals: [...this.manifest.contents.wals, wal] }))
    const counters = { ...this.counters }
    this.#frozen = { memtable: this.memtable, counters, steps: undefined, written: undefined }
    this.memtable = new Memtable()
  }

  #switchWal(describe: (wal: WalRef) => Partial<Contents>): void {
    const wal = createWal(this.context, this.#wal.position.tag)
    try {
      this.manifest.commit(describe(wal))
    } catch (error) {
      wal.close()
      // The files of the new log are removed only if the manifest is sound. After a failed write of `state`, the
      // `state` on disk may name the files of the new log.
      if (this.manifest.isSound) removeWal(this.context, wal.id)
      throw error
    }
    this.#wal.close()
    this.#wal = wal
  }

  /**
   * Does one step of a flush. Returns true if no step is left. After a failed step, the flush starts over. @throws
   * CofferError `storage_failed`
   */
  advanceFlush(): boolean {
    const frozen = this.#frozen
    if (frozen === undefined || frozen.written !== undefined) return true
    frozen.steps ??= writeRows(this.context, frozen.memtable.live())
    try {
      const step = frozen.steps.next()
      if (step.done) frozen.written = step.value
    } catch (error) {
      frozen.steps = undefined
      throw error
    }
    return frozen.written !== undefined
  }

  finishFlush(): void {
    if (this.#frozen?.written === undefined) return
    const { memtable, written, counters } = this.#frozen
    this.manifest.refuseIfBroken()
    const unused = this.manifest.addFlushed(memtable, written, counters, this.#wal)
    this.#frozen = undefined
    this.manifest.cleanUp(unused)
  }

  get isFlushing(): boolean {
    return this.#frozen !== undefined
  }

  get owesErasure(): boolean {
    const isOwing = ({ isErasing, hasRemoved }: Memtable) => isErasing || hasRemoved
    return this.#memtables().some(isOwing) || this.manifest.sstables.some(({ due }) => due.length > 0)
  }

  /**
   * Overwrites removed rows, before the engine acknowledges the removal. If a memtable contained one of the rows, the
   * log is flushed, because a flush also overwrites removed rows. Requires: everything is synced.
   */
  eraseRemoved(ids: readonly RowId[]): void {
    const isFrozen = (id: RowId) => this.#frozen?.memtable.entry(toText(id))?.item !== undefined
    if (this.memtable.hasRemoved || ids.some(isFrozen)) this.flush()
    else
      try {
        this.manifest.eraseRows(ids)
      } finally {
        // The copies of keys are overwritten even if `eraseRows` failed because of a damaged table.
        if (this.memtable.changes(KEY_ROWS)) this.manifest.eraseKeyRows(ids)
      }
  }

  /** Repairs the copy of keys, and marks tables with a damaged end, so that a compaction writes these tables again. */
  repairTables(): void {
    this.flush()
    this.manifest.checkEnds()
    this.manifest.repairKeyCopies()
  }

  finishCompaction(inputs: readonly LiveSSTable[], result: Compacted): void {
    const removed = this.#memtables().flatMap((memtable) =>
      memtable.shadowed.filter((id) => memtable.entry(toText(id))?.item === undefined),
    )
    this.manifest.finishCompaction(inputs, result, removed)
  }

  /**
   * Replaces the header. During the replacement, `state` accepts both headers, so the vault can be opened after a crash
   * at any time.
   */
  replaceHeader(header: Header): void {
    const { manifest, context } = this
    const { files, directory, random, keys } = context
    manifest.refuseIfBroken()
    this.flush()
    const digest = digestHeader({ keys, header })
    manifest.commit({ headers: [...manifest.contents.headers, digest] })
    writeHeader(files, directory, random, header)
    context.header = header
    this.adoptHeader(digest)
  }

  /**
   * After this call, `state` accepts only the header with this digest. Also begins a new log and removes the current
   * log. If the current log stayed, an attacker could restore an older `state` and its older header, and open the
   * current log with a removed key slot.
   */
  adoptHeader(digest: string): void {
    this.flush()
    const before = this.#wal
    this.#switchWal((wal) => ({ headers: [digest], wals: [wal] }))
    removeWal(this.context, before.id)
  }

  /** Counts only synced rows. */
  status(): EngineStatus {
    const memtables = this.#memtables()
    const { sstables } = this.manifest
    const sstableBytes = sstables.reduce((sum, { sstable }) => sum + sstable.meta.bytes, 0)
    const rows = { records: 0, dead: 0 }
    memtables.forEach((memtable, depth) => {
      const above = memtables.slice(0, depth)
      for (const row of memtable.each()) if (!isHidden(above, row)) rows.records++
    })
    for (const table of sstables) {
      const live = memtables.reduceRight((older, memtable) => older.shadowedBy(memtable), table)
      const { sstable, dropped } = live
      const isExtra = (row: number) => dropped.size === 0 || !dropped.has(sstable.entry(row).tenant)
      const gone = live.droppedRows + live.dead.filter(isExtra).length
      rows.records += sstable.rows - gone
      rows.dead += gone
    }
    return { sstables: sstables.length, walBytes: this.#wal.position.end, sstableBytes, rows }
  }

  close(): void {
    this.#frozen?.steps?.return([])
    this.#wal.close()
    this.manifest.close()
  }
}
