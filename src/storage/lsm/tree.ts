/**
 * Everything of the vault that is on disk, under one owner: the journal, and the segments that it is folded into. Knows
 * how changes become safe; not who asked for them or who may see them.
 */

import type { Clock, EngineKeys, RandomSource } from '../../crypto/ports.js'
import { toText } from '../bytes.js'
import { type Files, removeQuietly } from '../files.js'
import type { Header, StateDocument } from '../vault-file.js'
import type { BlockCache } from './block-cache.js'
import { ChangeCounters } from './change-counters.js'
import type { CompactionResult } from './compaction.js'
import type { Contents } from './contents.js'
import { writeMemtable } from './flush.js'
import type { WalPosition } from './frames.js'
import { Manifest } from './manifest.js'
import { Memtable } from './memtable.js'
import type { View } from './query.js'
import { type Change, decodeFrame, encodeFrame, INSERT, REMOVE, REPLACE } from './row-change.js'
import type { SSTableContext } from './sstable/reader.js'
import { finish } from './sstable/row-writer.js'
import type { LiveSSTable } from './sstable/search.js'
import { describeContents, type LsmStatus } from './status.js'
import { type Counters, copyCounters } from './transaction.js'
import { createWal, type Wal, type WalContext, walPath } from './wal.js'

/** What a ledger is opened with. */
export interface LsmOptions {
  files: Files
  directory: string
  /** Its mac was verified. */
  header: Header
  keys: EngineKeys
  random: RandomSource
  clock: Clock
  /** Told what a person should know and no program needs. */
  notice(text: string): void
  /** Bytes of opened index blocks to keep. */
  cacheBytes: number
}

/** Rows of the journals before the present one, while they are folded beside the works. */
interface FrozenMemtable {
  memtable: Memtable
  /** As they were when the present journal began. */
  counters: Counters
  steps: Generator<undefined, LiveSSTable[]> | undefined
  /** Set when all steps are done. */
  written: LiveSSTable[] | undefined
}

/** What a ledger is made of; `opening` puts it together. */
export interface LsmParts {
  reader: SSTableContext
  wals: WalContext
  state: StateDocument
  contents: Contents
  wal: Wal
}

export class LsmTree {
  /** With the header as it stands now. */
  options: LsmOptions
  /** Rows of the present journal that are safe. */
  memtable = new Memtable()
  /** Changes that were written but not synced. */
  pending: Change[] = []
  /** A frame was written but not synced; one that only notes the time has no changes. */
  isUnsynced = false
  /** Of what is safe. */
  readonly changeCounters = new ChangeCounters()
  /** As of the last change that was written. */
  counters: Counters
  readonly cache: BlockCache
  readonly manifest: Manifest
  readonly #wals: WalContext
  #wal: Wal
  #frozen: FrozenMemtable | undefined

  constructor(options: LsmOptions, parts: LsmParts) {
    this.options = options
    this.cache = parts.reader.cache
    this.manifest = new Manifest(options, parts.reader, parts.state, parts.contents)
    this.#wals = parts.wals
    this.#wal = parts.wal
    this.counters = copyCounters(parts.contents.counters)
  }

  get contents(): Contents {
    return this.manifest.contents
  }

  /** Whether the present journal has more than this. */
  isLargerThan({ bytes, rows }: { bytes: number; rows: number }): boolean {
    const count = this.memtable.count('records') + this.memtable.count('logs')
    return this.#wal.position.end > bytes || count > rows
  }

  /** What is safe, and so may be shown. */
  view(): View {
    const { records, logs } = this.manifest
    return {
      memtables: this.#memtables(),
      uncommitted: 0,
      records,
      logs,
      changeCounters: this.changeCounters,
    }
  }

  #memtables(): Memtable[] {
    return this.#frozen === undefined ? [this.memtable] : [this.memtable, this.#frozen.memtable]
  }

  /**
   * Writes changes as one frame and, when `isUrgent`, makes it and all before it safe. On failure the journal is as it
   * was before.
   * @throws CofferError `storage_failed`.
   */
  append(changes: readonly Change[], counters: Counters, isUrgent: boolean): void {
    this.manifest.refuseIfBroken()
    const { position } = this.#wal
    const waiting = this.pending.length
    const before = this.counters
    try {
      const plain = encodeFrame(changes, counters.last, counters.rev)
      this.#wal.append(plain)
      this.isUnsynced = true
      for (const change of decodeFrame(plain).changes) this.pending.push(change)
      this.counters = copyCounters(counters)
      if (isUrgent) this.sync()
    } catch (error) {
      this.pending.length = waiting
      this.counters = before
      this.#cutTo(position, error)
      throw error
    }
  }

  /**
   * Makes everything written so far safe, and shows it. A failed sync is never tried again: what the disk holds is
   * then unknown until the vault is opened anew.
   * @throws CofferError `storage_failed`.
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
    for (const change of this.pending) {
      this.changeCounters.note(change)
      this.memtable.apply(change)
    }
    this.pending = []
    this.isUnsynced = false
    this.#acknowledge()
  }

  #acknowledge(): void {
    try {
      this.#wal.acknowledge()
    } catch {
      // The frames themselves are safe; without `head` they are judged by their chain alone.
      this.options.notice(
        "The vault's file `head` could not be written; everything is stored, but check the disk.",
      )
    }
  }

  /** Moves the journal's rows into segments. Nothing is lost or half done, whatever fails. */
  async flush(): Promise<void> {
    this.sync()
    while (!this.advanceFlush());
    await this.finishFlush()
    if (this.#wal.position.frames === 0 && this.manifest.contents.wals.length === 1) return
    await this.#flushMemtable(this.memtable, this.counters)
  }

  /** Stores changes that are too many for a frame: all of them become safe by the `state` that names their segments. */
  async store(memtable: Memtable, counters: Counters): Promise<void> {
    await this.flush()
    this.changeCounters.noteAll()
    await this.#flushMemtable(memtable, counters)
  }

  async #flushMemtable(memtable: Memtable, counters: Counters): Promise<void> {
    this.manifest.refuseIfBroken()
    const old = this.#wal
    const wal = old.position.frames === 0 ? old : this.#createWal()
    let written: LiveSSTable[] = []
    try {
      written = finish(writeMemtable(this.manifest.writer, this.manifest.reader, memtable))
    } catch (error) {
      if (wal !== old) this.#discard(wal)
      throw error
    }
    const emptied = await this.#closeUnless(wal, () => this.manifest.adopt(memtable, written, counters, wal))
    this.counters = copyCounters(counters)
    this.memtable = new Memtable()
    if (wal !== old) this.#switchTo(wal)
    this.manifest.remove(emptied)
    await this.manifest.erase()
  }

  /**
   * Begins a new journal, so that what the one before holds can be folded beside the works: by {@link advanceFlush} until
   * it is true, then {@link finishFlush}. `state` names both meanwhile.
   */
  async freeze(): Promise<void> {
    this.sync()
    if (this.#frozen !== undefined || this.#wal.position.frames === 0) return
    const wal = this.#createWal()
    await this.#closeUnless(wal, () => this.manifest.addWal(wal))
    this.#frozen = {
      memtable: this.memtable,
      counters: copyCounters(this.counters),
      steps: undefined,
      written: undefined,
    }
    this.memtable = new Memtable()
    this.#switchTo(wal)
  }

  /**
   * Does one step of folding what is frozen; true when nothing is left to do. One that failed begins anew.
   * @throws CofferError `storage_failed`.
   */
  advanceFlush(): boolean {
    const frozen = this.#frozen
    if (frozen === undefined || frozen.written !== undefined) return true
    frozen.steps ??= writeMemtable(this.manifest.writer, this.manifest.reader, frozen.memtable)
    try {
      const step = frozen.steps.next()
      if (step.done) frozen.written = step.value
      return step.done === true
    } catch (error) {
      frozen.steps = undefined
      throw error
    }
  }

  /** Makes the segments of what was frozen count, and its journal go. */
  async finishFlush(): Promise<void> {
    const frozen = this.#frozen
    if (frozen?.written === undefined) return
    this.manifest.refuseIfBroken()
    const emptied = await this.manifest.adopt(frozen.memtable, frozen.written, frozen.counters, this.#wal)
    this.#frozen = undefined
    this.manifest.remove(emptied)
    await this.manifest.erase()
  }

  #createWal(): Wal {
    return createWal(this.#wals, this.options.random, this.#wal.position.tag)
  }

  #switchTo(wal: Wal): void {
    this.#wal.close()
    this.#wal = wal
    this.#acknowledge()
  }

  /** Closes a journal that `work` failed to make count; its file stays, for `state` may name it after all. */
  async #closeUnless<T>(wal: Wal, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (wal !== this.#wal) wal.close()
      throw error
    }
  }

  #discard(wal: Wal): void {
    wal.close()
    removeQuietly(this.options.files, walPath(this.options.directory, wal.id))
  }

  /**
   * Overwrites the bytes of removed rows wherever they lie, before the removal is answered. Contract: the removals
   * are synced. `wasInJournal` tells that a version of one of them is in the journal, which is then folded away.
   */
  async eraseRemoved(changes: readonly Change[], wasInWal: boolean): Promise<void> {
    if (wasInWal) return this.flush()
    this.manifest.eraseRows(changes.map(({ row }) => row.id))
  }

  /** Makes a merge count; see {@link Manifest.finishCompaction}. */
  finishCompaction(inputs: readonly LiveSSTable[], compacted: CompactionResult): Promise<void> {
    const removed = this.#memtables().flatMap((memtable) =>
      memtable.shadowed.filter((id) => memtable.entry(toText(id))?.item === undefined),
    )
    return this.manifest.finishCompaction(inputs, compacted, removed)
  }

  /** Replaces `vault.json`, by `write`; see {@link Manifest.replaceHeader}. */
  async replaceHeader(header: Header, write: () => Promise<void>): Promise<void> {
    await this.manifest.replaceHeader(header, write)
    this.options = { ...this.options, header }
  }

  /** True when a version of one of the removed rows lies in a frame, or is about to with `changes`. */
  holdsAny(removals: readonly Change[], changes: readonly Change[]): boolean {
    const written = new Set<string>()
    for (const { kind, row } of [...this.pending, ...changes]) {
      if (kind === INSERT || kind === REPLACE) written.add(toText(row.id))
    }
    return removals.some(({ row }) => {
      const text = toText(row.id)
      return (
        written.has(text) || this.#memtables().some((memtable) => memtable.entry(text)?.item !== undefined)
      )
    })
  }

  /** The files that make up the vault now, apart from its header; relative to the directory. */
  fileNames(): { sstables: string[]; others: string[] } {
    const { directory } = this.options
    const sstables = this.contents.sstables.map(({ sstable }) => sstable.path.slice(directory.length + 1))
    return { sstables, others: [walPath('', this.#wal.id).slice(1), 'state'] }
  }

  status(): LsmStatus {
    const memtables = this.#memtables()
    return describeContents(this.contents, memtables, this.#wal.position.end)
  }

  close(): void {
    this.#frozen?.steps?.return([])
    this.#wal.close()
    this.manifest.close()
  }

  #cutTo(position: WalPosition, cause: unknown): void {
    try {
      this.#wal.truncate(position)
    } catch {
      this.manifest.break(cause)
    }
  }
}

/** True when the change takes a row away for good. */
export function isRemoval({ kind }: Change): boolean {
  return kind === REMOVE
}
