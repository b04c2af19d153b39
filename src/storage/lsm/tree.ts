/** Changes are appended to the log and kept in the memtable, which is flushed into sorted tables. */
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import type { EngineStatus, RowId } from '../engine.js'
import type { Counters } from '../time.js'
import { type Header, writeHeader } from '../vault-file.js'
import type { LsmContext, Size } from './context.js'
import { type Contents, digestHeader, Manifest } from './manifest.js'
import { Memtable } from './memtable.js'
import { ChangeCounters, isHidden, type View } from './query.js'
import { type Change, decodeFrame, encodeFrame } from './row-change.js'
import type { LiveSSTable } from './sstable/live-sstable.js'
import { type Compacted, writeRows } from './sstable/write-tables.js'
import { createWal, FRAME_LIMIT, removeWal, SEAL_BYTES, type Wal, type WalRef } from './wal.js'

/** A memtable that does not change while it is flushed in steps, beside other work. */
interface FrozenMemtable {
  memtable: Memtable
  counters: Counters
  steps: Generator<undefined, LiveSSTable[]> | undefined
  /** The new tables, once all steps are done. */
  written: LiveSSTable[] | undefined
}

export class LsmTree {
  readonly context: LsmContext
  /** Synced rows of the current log. */
  memtable = new Memtable()
  /** Changes that are written but not synced. */
  pending: Change[] = []
  /** Whether a frame is written but not synced; a frame that only records the time has no changes. */
  isUnsynced = false
  readonly changeCounters = new ChangeCounters()
  /** As of the last change that was written. */
  counters: Counters
  readonly manifest: Manifest
  /** Replaced by a new one in each flush. */
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

  /** All that is synced, which is what readers see. */
  view(): View {
    const { changeCounters } = this
    const { sstables } = this.manifest
    return { memtables: this.#memtables(), uncommitted: 0, pendingEntries: [], changeCounters, sstables }
  }

  #memtables(): Memtable[] {
    return this.#frozen === undefined ? [this.memtable] : [this.memtable, this.#frozen.memtable]
  }

  /** One frame, synced if `isUrgent`. A failure changes nothing. @throws CofferError `storage_failed` */
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

  /** A failed sync is never repeated: the disk is unknown then. @throws CofferError `storage_failed` */
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

  /** Lets readers see what is pending. Contract: it is synced. */
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
      // The frames are synced; the head on disk covers fewer of them.
      this.context.notice(
        'The head of the write-ahead log could not be written; everything is stored, but check the disk.',
      )
    }
  }

  /** Resolves to a function that publishes, or syncs again after later writes. Contract: called alone. */
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

  /** Flushes all rows of the log into sorted tables. A failure loses nothing. */
  flush(): void {
    this.#flushFrozen()
    this.freeze()
    this.#flushFrozen()
  }

  #flushFrozen(): void {
    while (!this.advanceFlush());
    this.finishFlush()
  }

  /** Begins a new log. The memtable is flushed by {@link advanceFlush}, then {@link finishFlush}. */
  freeze(): void {
    this.sync()
    const isEmpty = this.#wal.position.frames === 0
    // After a crash there may be an older log.
    if (this.#frozen !== undefined || (isEmpty && this.manifest.contents.wals.length === 1)) return
    this.manifest.refuseIfBroken()
    if (!isEmpty) this.#switchWal((wal) => ({ wals: [...this.manifest.contents.wals, wal] }))
    const counters = { ...this.counters }
    this.#frozen = { memtable: this.memtable, counters, steps: undefined, written: undefined }
    this.memtable = new Memtable()
  }

  /** Begins a new log. `describe`: what `state` then says. */
  #switchWal(describe: (wal: WalRef) => Partial<Contents>): void {
    const wal = createWal(this.context, this.#wal.position.tag)
    try {
      this.manifest.commit(describe(wal))
    } catch (error) {
      wal.close()
      // Otherwise the `state` on disk may name its files.
      if (this.manifest.isSound) removeWal(this.context, wal.id)
      throw error
    }
    this.#wal.close()
    this.#wal = wal
  }

  /** True if no step is left. A failed step begins the flush anew. @throws CofferError `storage_failed` */
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

  /** Adds the tables of the frozen memtable to `state`, and removes its log. */
  finishFlush(): void {
    if (this.#frozen?.written === undefined) return
    const { memtable, written, counters } = this.#frozen
    this.manifest.refuseIfBroken()
    const unused = this.manifest.addFlushed(memtable, written, counters, this.#wal)
    this.#frozen = undefined
    this.manifest.cleanUp(unused)
  }

  /** Whether a memtable is frozen whose flush has not ended. */
  get isFlushing(): boolean {
    return this.#frozen !== undefined
  }

  /** Whether bytes of rows that were replaced or removed are still to be overwritten. */
  get owesErasure(): boolean {
    const isOwing = ({ isErasing, hasRemoved }: Memtable) => isErasing || hasRemoved
    return this.#memtables().some(isOwing) || this.manifest.sstables.some(({ due }) => due.length > 0)
  }

  /** Overwrites removed rows before the removal is answered, with a flush if need be. Contract: synced. */
  eraseRemoved(ids: readonly RowId[]): void {
    const isFrozen = (id: RowId) => this.#frozen?.memtable.entry(toText(id))?.item !== undefined
    if (this.memtable.hasRemoved || ids.some(isFrozen)) this.flush()
    else this.manifest.eraseRows(ids)
  }

  finishCompaction(inputs: readonly LiveSSTable[], result: Compacted): void {
    const removed = this.#memtables().flatMap((memtable) =>
      memtable.shadowed.filter((id) => memtable.entry(toText(id))?.item === undefined),
    )
    this.manifest.finishCompaction(inputs, result, removed)
  }

  /** Meanwhile `state` accepts the old header and the new one, so that the vault opens after any crash. */
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
   * Accepts only the header with this digest from now on. Begins a new log and removes the present one, because an older
   * `state` with its older header, and so a key slot that was removed, would open beside the present log.
   */
  adoptHeader(digest: string): void {
    this.flush()
    const before = this.#wal
    this.#switchWal((wal) => ({ headers: [digest], wals: [wal] }))
    removeWal(this.context, before.id)
  }

  /** Counts only what is synced. Reads tables only if a tenant was dropped. */
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
