/**
 * Everything of the vault that is on disk, under one owner: the journal, and the segments that it is folded into. Knows
 * how changes become safe; not who asked for them or who may see them.
 */

import type { Clock, EngineKeys, Random } from '../../crypto/ports.js'
import { toText } from '../bytes.js'
import { type Files, removeQuietly } from '../files.js'
import type { Header, StateDocument } from '../vault-file.js'
import type { BlockCache } from './block-cache.js'
import { Stamps } from './change-counters.js'
import type { Merged } from './compaction.js'
import type { Contents } from './contents.js'
import { writeOverlay } from './flush.js'
import type { Mark } from './frames.js'
import { Shelf } from './manifest.js'
import { Overlay } from './memtable.js'
import type { View } from './query.js'
import { type Change, decodeFrame, encodeFrame, INSERT, REMOVE, REPLACE } from './row-change.js'
import type { SegmentPlace } from './sstable/reader.js'
import { finish } from './sstable/row-writer.js'
import type { LiveSegment } from './sstable/search.js'
import { describeContents, type LedgerStatus } from './status.js'
import { type Counters, copyCounters } from './transaction.js'
import { createJournal, type Journal, type JournalPlace, journalPath } from './wal.js'

/** What a ledger is opened with. */
export interface LedgerOptions {
  files: Files
  directory: string
  /** Its mac was verified. */
  header: Header
  keys: EngineKeys
  random: Random
  clock: Clock
  /** Told what a person should know and no program needs. */
  notice(text: string): void
  /** Bytes of opened index blocks to keep. */
  cacheBytes: number
}

/** Rows of the journals before the present one, while they are folded beside the works. */
interface Freezing {
  overlay: Overlay
  /** As they were when the present journal began. */
  counters: Counters
  steps: Generator<undefined, LiveSegment[]> | undefined
  /** Set when all steps are done. */
  written: LiveSegment[] | undefined
}

/** What a ledger is made of; `opening` puts it together. */
export interface LedgerParts {
  reader: SegmentPlace
  journals: JournalPlace
  state: StateDocument
  contents: Contents
  journal: Journal
}

export class Ledger {
  /** With the header as it stands now. */
  options: LedgerOptions
  /** Rows of the present journal that are safe. */
  overlay = new Overlay()
  /** Changes that were written but not synced. */
  pending: Change[] = []
  /** A frame was written but not synced; one that only notes the time has no changes. */
  isUnsynced = false
  /** Of what is safe. */
  readonly stamps = new Stamps()
  /** As of the last change that was written. */
  counters: Counters
  readonly cache: BlockCache
  readonly shelf: Shelf
  readonly #journals: JournalPlace
  #journal: Journal
  #freezing: Freezing | undefined

  constructor(options: LedgerOptions, parts: LedgerParts) {
    this.options = options
    this.cache = parts.reader.cache
    this.shelf = new Shelf(options, parts.reader, parts.state, parts.contents)
    this.#journals = parts.journals
    this.#journal = parts.journal
    this.counters = copyCounters(parts.contents.counters)
  }

  get contents(): Contents {
    return this.shelf.contents
  }

  /** Whether the present journal has more than this. */
  isLargerThan({ bytes, rows }: { bytes: number; rows: number }): boolean {
    const count = this.overlay.count('records') + this.overlay.count('logs')
    return this.#journal.mark.end > bytes || count > rows
  }

  /** What is safe, and so may be shown. */
  view(): View {
    const { records, logs } = this.shelf
    return { overlays: this.#overlays(), unsettled: 0, records, logs, stamps: this.stamps }
  }

  #overlays(): Overlay[] {
    return this.#freezing === undefined ? [this.overlay] : [this.overlay, this.#freezing.overlay]
  }

  /**
   * Writes changes as one frame and, when `isUrgent`, makes it and all before it safe. On failure the journal is as it
   * was before.
   * @throws CofferError `storage_failed`.
   */
  append(changes: readonly Change[], counters: Counters, isUrgent: boolean): void {
    this.shelf.refuseIfBroken()
    const { mark } = this.#journal
    const waiting = this.pending.length
    const before = this.counters
    try {
      const plain = encodeFrame(changes, counters.last, counters.rev)
      this.#journal.append(plain)
      this.isUnsynced = true
      for (const change of decodeFrame(plain).changes) this.pending.push(change)
      this.counters = copyCounters(counters)
      if (isUrgent) this.sync()
    } catch (error) {
      this.pending.length = waiting
      this.counters = before
      this.#cutTo(mark, error)
      throw error
    }
  }

  /**
   * Makes everything written so far safe, and shows it. A failed sync is never tried again: what the disk holds is
   * then unknown until the vault is opened anew.
   * @throws CofferError `storage_failed`.
   */
  sync(): void {
    this.shelf.refuseIfBroken()
    if (!this.isUnsynced) return
    try {
      this.#journal.sync()
    } catch (error) {
      this.shelf.break(error)
      throw error
    }
    for (const change of this.pending) {
      this.stamps.note(change)
      this.overlay.apply(change)
    }
    this.pending = []
    this.isUnsynced = false
    this.#acknowledge()
  }

  #acknowledge(): void {
    try {
      this.#journal.acknowledge()
    } catch {
      // The frames themselves are safe; without `head` they are judged by their chain alone.
      this.options.notice(
        "The vault's file `head` could not be written; everything is stored, but check the disk.",
      )
    }
  }

  /** Moves the journal's rows into segments. Nothing is lost or half done, whatever fails. */
  async fold(): Promise<void> {
    this.sync()
    while (!this.advanceFold());
    await this.finishFold()
    if (this.#journal.mark.frames === 0 && this.shelf.contents.journals.length === 1) return
    await this.#foldOverlay(this.overlay, this.counters)
  }

  /** Stores changes that are too many for a frame: all of them become safe by the `state` that names their segments. */
  async store(overlay: Overlay, counters: Counters): Promise<void> {
    await this.fold()
    this.stamps.noteAll()
    await this.#foldOverlay(overlay, counters)
  }

  async #foldOverlay(overlay: Overlay, counters: Counters): Promise<void> {
    this.shelf.refuseIfBroken()
    const old = this.#journal
    const journal = old.mark.frames === 0 ? old : this.#createJournal()
    let written: LiveSegment[] = []
    try {
      written = finish(writeOverlay(this.shelf.writer, this.shelf.reader, overlay))
    } catch (error) {
      if (journal !== old) this.#discard(journal)
      throw error
    }
    const emptied = await this.#closeUnless(journal, () =>
      this.shelf.adopt(overlay, written, counters, journal),
    )
    this.counters = copyCounters(counters)
    this.overlay = new Overlay()
    if (journal !== old) this.#switchTo(journal)
    this.shelf.remove(emptied)
    await this.shelf.erase()
  }

  /**
   * Begins a new journal, so that what the one before holds can be folded beside the works: by {@link advanceFold} until
   * it is true, then {@link finishFold}. `state` names both meanwhile.
   */
  async freeze(): Promise<void> {
    this.sync()
    if (this.#freezing !== undefined || this.#journal.mark.frames === 0) return
    const journal = this.#createJournal()
    await this.#closeUnless(journal, () => this.shelf.addJournal(journal))
    this.#freezing = {
      overlay: this.overlay,
      counters: copyCounters(this.counters),
      steps: undefined,
      written: undefined,
    }
    this.overlay = new Overlay()
    this.#switchTo(journal)
  }

  /**
   * Does one step of folding what is frozen; true when nothing is left to do. One that failed begins anew.
   * @throws CofferError `storage_failed`.
   */
  advanceFold(): boolean {
    const freezing = this.#freezing
    if (freezing === undefined || freezing.written !== undefined) return true
    freezing.steps ??= writeOverlay(this.shelf.writer, this.shelf.reader, freezing.overlay)
    try {
      const step = freezing.steps.next()
      if (step.done) freezing.written = step.value
      return step.done === true
    } catch (error) {
      freezing.steps = undefined
      throw error
    }
  }

  /** Makes the segments of what was frozen count, and its journal go. */
  async finishFold(): Promise<void> {
    const freezing = this.#freezing
    if (freezing?.written === undefined) return
    this.shelf.refuseIfBroken()
    const emptied = await this.shelf.adopt(
      freezing.overlay,
      freezing.written,
      freezing.counters,
      this.#journal,
    )
    this.#freezing = undefined
    this.shelf.remove(emptied)
    await this.shelf.erase()
  }

  #createJournal(): Journal {
    return createJournal(this.#journals, this.options.random, this.#journal.mark.tag)
  }

  #switchTo(journal: Journal): void {
    this.#journal.close()
    this.#journal = journal
    this.#acknowledge()
  }

  /** Closes a journal that `work` failed to make count; its file stays, for `state` may name it after all. */
  async #closeUnless<T>(journal: Journal, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (journal !== this.#journal) journal.close()
      throw error
    }
  }

  #discard(journal: Journal): void {
    journal.close()
    removeQuietly(this.options.files, journalPath(this.options.directory, journal.id))
  }

  /**
   * Overwrites the bytes of removed rows wherever they lie, before the removal is answered. Contract: the removals
   * are synced. `wasInJournal` tells that a version of one of them is in the journal, which is then folded away.
   */
  async eraseRemoved(changes: readonly Change[], wasInJournal: boolean): Promise<void> {
    if (wasInJournal) return this.fold()
    this.shelf.eraseRows(changes.map(({ row }) => row.id))
  }

  /** Makes a merge count; see {@link Shelf.finishMerge}. */
  finishMerge(inputs: readonly LiveSegment[], merged: Merged): Promise<void> {
    const removed = this.#overlays().flatMap((overlay) =>
      overlay.covered.filter((id) => overlay.entry(toText(id))?.item === undefined),
    )
    return this.shelf.finishMerge(inputs, merged, removed)
  }

  /** Replaces `vault.json`, by `write`; see {@link Shelf.replaceHeader}. */
  async replaceHeader(header: Header, write: () => Promise<void>): Promise<void> {
    await this.shelf.replaceHeader(header, write)
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
      return written.has(text) || this.#overlays().some((overlay) => overlay.entry(text)?.item !== undefined)
    })
  }

  /** The files that make up the vault now, apart from its header; relative to the directory. */
  fileNames(): { segments: string[]; others: string[] } {
    const { directory } = this.options
    const segments = this.contents.segments.map(({ segment }) => segment.path.slice(directory.length + 1))
    return { segments, others: [journalPath('', this.#journal.id).slice(1), 'state'] }
  }

  status(): LedgerStatus {
    const overlays = this.#overlays()
    return describeContents(this.contents, overlays, this.#journal.mark.end)
  }

  close(): void {
    this.#freezing?.steps?.return([])
    this.#journal.close()
    this.shelf.close()
  }

  #cutTo(mark: Mark, cause: unknown): void {
    try {
      this.#journal.cut(mark)
    } catch {
      this.shelf.break(cause)
    }
  }
}

/** True when the change takes a row away for good. */
export function isRemoval({ kind }: Change): boolean {
  return kind === REMOVE
}
