/**
 * Everything of the vault that is on disk, under one owner: the journal, the segments and the `state` that names
 * them. Knows how changes become safe and how a crash is mended; not who asked for them or who may see them.
 */
import type { Low } from 'lowdb'
import { CofferError } from '../errors.js'
import type { BackupWriter } from './backup.js'
import { isEqual, toBase64, toText } from './bytes.js'
import { type Change, encodeFrame, INSERT, REMOVE, REPLACE } from './change.js'
import { type Contents, encodeContents, orderSegments } from './contents.js'
import { type Files, removeQuietly } from './files.js'
import { addRows, buryUnder, isEmptied, writeOverlay } from './fold.js'
import { createJournal, type Journal, type JournalPlace, journalPath, type Mark } from './journal.js'
import type { View } from './lookup.js'
import { adoptMerged, chooseMerge, isSameSegment, type Merged, mergeSegments } from './merge.js'
import { Overlay } from './overlay.js'
import type { BlockCache, SegmentPlace } from './segment.js'
import { segmentPath } from './segment-layout.js'
import { finish } from './segment-rows.js'
import { LiveSegment } from './segment-search.js'
import type { WriterPlace } from './segment-writer.js'
import { type Counters, copyCounters } from './stage.js'
import { describeContents, type LedgerStatus } from './status.js'
import type { EngineKeys, Random } from './store.js'
import { type Header, headerText, type State } from './vault-file.js'

/** What a ledger is opened with. */
export interface LedgerOptions {
  files: Files
  directory: string
  /** Its mac was verified. */
  header: Header
  keys: EngineKeys
  random: Random
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
  state: Low<State>
  contents: Contents
  journal: Journal
}

const NO_ROWS = new Uint32Array(0)

export class Ledger {
  /** With the header as it stands now. */
  options: LedgerOptions
  /** Rows of the present journal that are safe. */
  overlay = new Overlay()
  /** Changes that were written but not synced. */
  pending: Change[] = []
  /** As of the last change that was written. */
  counters: Counters
  readonly cache: BlockCache
  readonly #reader: SegmentPlace
  readonly #journals: JournalPlace
  readonly #state: Low<State>
  #contents: Contents
  #records: readonly LiveSegment[] = []
  #logs: readonly LiveSegment[] = []
  #journal: Journal
  #freezing: Freezing | undefined
  #broken: CofferError | undefined

  constructor(options: LedgerOptions, parts: LedgerParts) {
    this.options = options
    this.cache = parts.reader.cache
    this.#reader = parts.reader
    this.#journals = parts.journals
    this.#state = parts.state
    this.#contents = parts.contents
    this.#sort()
    this.#journal = parts.journal
    this.counters = copyCounters(parts.contents.counters)
  }

  get contents(): Contents {
    return this.#contents
  }

  /** Whether the present journal has more than this. */
  isLargerThan({ bytes, rows }: { bytes: number; rows: number }): boolean {
    const count = this.overlay.count('records') + this.overlay.count('logs')
    return this.#journal.mark.end > bytes || count > rows
  }

  /** What is safe, and so may be shown. */
  view(): View {
    return { overlays: this.#overlays(), records: this.#records, logs: this.#logs }
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
    this.#refuseIfBroken()
    const { mark } = this.#journal
    const waiting = this.pending.length
    const before = this.counters
    try {
      this.#journal.append(encodeFrame(changes, counters.time))
      for (const change of changes) this.pending.push(change)
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
    this.#refuseIfBroken()
    if (this.pending.length === 0) return
    try {
      this.#journal.sync()
    } catch (error) {
      this.#break(error)
      throw error
    }
    for (const change of this.pending) this.overlay.apply(change)
    this.pending = []
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
    if (this.#journal.mark.frames === 0 && this.#contents.journals.length === 1) return
    await this.#foldOverlay(this.overlay, this.counters)
  }

  /** Stores changes that are too many for a frame: all of them become safe by the `state` that names their segments. */
  async store(overlay: Overlay, counters: Counters): Promise<void> {
    await this.fold()
    await this.#foldOverlay(overlay, counters)
  }

  async #foldOverlay(overlay: Overlay, counters: Counters): Promise<void> {
    this.#refuseIfBroken()
    const old = this.#journal
    const journal = old.mark.frames === 0 ? old : this.#createJournal()
    let written: LiveSegment[] = []
    try {
      written = finish(writeOverlay(this.#writer(), this.#reader, overlay))
    } catch (error) {
      if (journal !== old) this.#discard(journal)
      throw error
    }
    const emptied = await this.#adopt(overlay, written, counters, journal)
    this.counters = copyCounters(counters)
    this.overlay = new Overlay()
    if (journal !== old) this.#switchTo(journal)
    this.#removeSegments(emptied)
    await this.erase()
  }

  /**
   * Begins a new journal, so that what the one before holds can be folded beside the works: by {@link advanceFold} until
   * it is true, then {@link finishFold}. `state` names both meanwhile.
   */
  async freeze(): Promise<void> {
    this.sync()
    if (this.#freezing !== undefined || this.#journal.mark.frames === 0) return
    const journal = this.#createJournal()
    const journals = [...this.#contents.journals, { id: journal.id, previous: journal.previous }]
    await this.#commit({ ...this.#contents, journals })
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
    freezing.steps ??= writeOverlay(this.#writer(), this.#reader, freezing.overlay)
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
    this.#refuseIfBroken()
    const emptied = await this.#adopt(freezing.overlay, freezing.written, freezing.counters, this.#journal)
    this.#freezing = undefined
    this.#removeSegments(emptied)
    await this.erase()
  }

  /** `state` with the new segments, the older ones under the overlay, and one journal. Gives those left without rows. */
  async #adopt(
    overlay: Overlay,
    written: readonly LiveSegment[],
    counters: Counters,
    journal: Journal,
  ): Promise<LiveSegment[]> {
    const { files, directory } = this.options
    const { journals, segments } = this.#contents
    const buried = segments.map((live) => buryUnder(live, overlay))
    const kept = buried.filter((live) => !isEmptied(live))
    await this.#commit({
      ...this.#contents,
      counters: copyCounters(counters),
      journals: [{ id: journal.id, previous: journal.previous }],
      segments: orderSegments([...kept, ...written]),
    })
    for (const { id } of journals)
      if (!isEqual(id, journal.id)) removeQuietly(files, journalPath(directory, id))
    return buried.filter(isEmptied)
  }

  #writer(): WriterPlace {
    const { files, directory, random, keys } = this.options
    return { files, directory, random, cipher: keys.segment }
  }

  #createJournal(): Journal {
    return createJournal(this.#journals, this.options.random, this.#journal.mark.tag)
  }

  #switchTo(journal: Journal): void {
    this.#journal.close()
    this.#journal = journal
    this.#acknowledge()
  }

  #discard(journal: Journal): void {
    journal.close()
    removeQuietly(this.options.files, journalPath(this.options.directory, journal.id))
  }

  /** From a crash in the middle of replacing the header: only the one in place is taken from now on. */
  async settleHeader(digest: string): Promise<void> {
    if (this.#contents.headers.length > 1) await this.#commit({ ...this.#contents, headers: [digest] })
  }

  /** Overwrites what is due in the segments, and notes that it was. */
  async erase(): Promise<void> {
    const due = this.#contents.segments.filter((live) => live.due.length > 0)
    if (due.length === 0) return
    for (const live of due) live.segment.erase(live.due)
    const segments = this.#contents.segments.map((live) =>
      live.due.length === 0 ? live : new LiveSegment(live.segment, live.dead, NO_ROWS, live.dropped),
    )
    await this.#commit({ ...this.#contents, segments })
  }

  /**
   * Overwrites the bytes of removed rows wherever they lie, before the removal is answered. Contract: the removals
   * are synced. `wasInJournal` tells that a version of one of them is in the journal, which is then folded away.
   */
  async eraseRemoved(changes: readonly Change[], wasInJournal: boolean): Promise<void> {
    if (wasInJournal) return this.fold()
    for (const live of this.#contents.segments) {
      if (live.segment.name.family === 'logs') continue
      const rows = changes.map(({ row }) => live.segment.find(row.id)).filter((row) => row !== undefined)
      if (rows.length > 0) live.segment.erase(addRows(NO_ROWS, rows))
    }
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

  /** Segments that should be one, of at most `limit` bytes in all; undefined when nothing is due. */
  chooseMerge(limit: number): LiveSegment[] | undefined {
    return this.#broken === undefined ? chooseMerge(this.#contents.segments, limit) : undefined
  }

  /** The steps of a merge; nothing counts before {@link finishMerge}. Between the steps the vault may change. */
  beginMerge(inputs: readonly LiveSegment[]): Generator<undefined, Merged> {
    return mergeSegments(this.#writer(), inputs)
  }

  /**
   * Puts the merged segment in its inputs' place, with what died there since. Where an input is gone altogether the
   * merge is thrown away.
   */
  async finishMerge(inputs: readonly LiveSegment[], { name, maps }: Merged): Promise<void> {
    const { files, directory } = this.options
    const current = inputs.map((input) => this.#contents.segments.find((live) => isSameSegment(live, input)))
    const known = current.filter((live) => live !== undefined)
    if (known.length < inputs.length) {
      if (name !== undefined) removeQuietly(files, segmentPath(directory, name.family, name.id))
      return
    }
    const added = name === undefined ? [] : [adoptMerged(this.#reader, name, maps, inputs, known)]
    if (added.length > 0) files.syncDirectory(`${directory}/segments`)
    for (const live of added) this.#eraseGone(live)
    const others = this.#contents.segments.filter((live) => !known.includes(live))
    await this.#commit({ ...this.#contents, segments: orderSegments([...others, ...added]) })
    this.#removeSegments(known)
    await this.erase()
  }

  /** Copies of rows that were removed while a merge was under way: they are overwritten before the copy counts. */
  #eraseGone(live: LiveSegment): void {
    if (live.segment.name.family === 'logs') return
    const ids = this.#overlays().flatMap((overlay) =>
      overlay.covered.filter((id) => overlay.entry(toText(id))?.item === undefined),
    )
    const rows = ids.map((id) => live.segment.find(id)).filter((row) => row !== undefined)
    if (rows.length > 0) live.segment.erase(rows)
  }

  #removeSegments(segments: readonly LiveSegment[]): void {
    for (const { segment } of segments) {
      segment.close()
      removeQuietly(this.options.files, segment.path)
    }
  }

  async #commit(contents: Contents): Promise<void> {
    const next = { ...contents, generation: this.#contents.generation + 1 }
    this.#state.data = encodeContents(next)
    try {
      await this.#state.write()
    } catch (error) {
      // Whether the disk has the old state or the new is unknown: only opening anew tells.
      this.#break(error)
      throw error
    }
    this.#contents = next
    this.#sort()
  }

  #sort(): void {
    const { segments } = this.#contents
    this.#records = segments.filter(({ segment }) => segment.name.family === 'records')
    this.#logs = segments.filter(({ segment }) => segment.name.family === 'logs')
  }

  /**
   * Replaces `vault.json`: for a moment `state` takes either, so that a crash leaves a vault that opens, and afterwards
   * only the new one. `write` puts the file in place.
   */
  async replaceHeader(header: Header, write: () => Promise<void>): Promise<void> {
    this.#refuseIfBroken()
    const digest = digestHeader(this.options.keys, header)
    await this.#commit({ ...this.#contents, headers: [...this.#contents.headers, digest] })
    await write()
    await this.#commit({ ...this.#contents, headers: [digest] })
    this.options = { ...this.options, header }
  }

  /** The files that make up the vault now, apart from its header; relative to the directory. */
  fileNames(): { segments: string[]; others: string[] } {
    const segments = this.#contents.segments.map(({ segment }) =>
      segment.path.slice(this.options.directory.length + 1),
    )
    const journal = journalPath('', this.#journal.id).slice(1)
    return { segments, others: [journal, 'state'] }
  }

  /** Copies one of {@link fileNames}, giving the length of each piece. One that is gone by now is left out. */
  *copyFile(writer: BackupWriter, name: string): Generator<number, void> {
    const { files, directory } = this.options
    const file = files.open(`${directory}/${name}`, 'read')
    if (file === undefined) return
    try {
      yield* writer.copy(name, file)
    } finally {
      files.close(file)
    }
  }

  status(): LedgerStatus {
    const overlays = this.#overlays()
    return describeContents(this.#contents, overlays, this.#journal.mark.end)
  }

  close(): void {
    this.#freezing?.steps?.return([])
    this.#journal.close()
    for (const { segment } of this.#contents.segments) segment.close()
  }

  #cutTo(mark: Mark, cause: unknown): void {
    try {
      this.#journal.cut(mark)
    } catch {
      this.#break(cause)
    }
  }

  #break(cause: unknown): void {
    this.#broken = new CofferError(
      'storage_failed',
      'An earlier write failed, so nothing more is written until the vault is opened anew. Check the disk first.',
      { cause },
    )
  }

  #refuseIfBroken(): void {
    if (this.#broken !== undefined) throw this.#broken
  }
}

/** Keyed BLAKE2b-256 of the header, base64; another length than chain values have, hence another function. */
export function digestHeader(keys: EngineKeys, header: Header): string {
  return toBase64(keys.chain(Buffer.from(headerText(header)), 32))
}

/** True when the change takes a row away for good. */
export function isRemoval({ kind }: Change): boolean {
  return kind === REMOVE
}
