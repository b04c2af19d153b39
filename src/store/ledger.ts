/**
 * Everything of the vault that is on disk, under one owner: the journal, the segments and the `state` that names
 * them. Knows how changes become safe and how a crash is mended; not who asked for them or who may see them.
 */
import type { Low } from 'lowdb'
import { CofferError } from '../errors.js'
import type { BackupWriter } from './backup.js'
import { toBase64, toText } from './bytes.js'
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
import { LiveSegment } from './segment-search.js'
import { type Counters, copyCounters } from './stage.js'
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

/** Counts and sizes, for those who ask how the vault is. */
export interface LedgerStatus {
  generation: number
  segments: number
  journalBytes: number
  recordBytes: number
  logBytes: number
  /** Live rows in segments and journal; `expired` ones that were not removed yet count. */
  rows: { records: number; logs: number; dead: number }
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
  readonly options: LedgerOptions
  /** Rows of the journal that are safe. */
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

  get journalBytes(): number {
    return this.#journal.mark.end
  }

  get journalRows(): number {
    return this.overlay.count('records') + this.overlay.count('logs')
  }

  /** What is safe, and so may be shown. */
  view(): View {
    return { overlays: [this.overlay], records: this.#records, logs: this.#logs }
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
    if (this.#journal.mark.frames === 0) return
    await this.#foldOverlay(this.overlay, this.counters)
  }

  /** Stores changes that are too many for a frame: all of them become safe by the `state` that names their segments. */
  async store(overlay: Overlay, counters: Counters): Promise<void> {
    await this.fold()
    await this.#foldOverlay(overlay, counters)
  }

  async #foldOverlay(overlay: Overlay, counters: Counters): Promise<void> {
    this.#refuseIfBroken()
    const { files, directory, random, keys } = this.options
    const old = this.#journal
    const journal = old.mark.frames === 0 ? old : createJournal(this.#journals, random, old.mark.tag)
    let written: LiveSegment[] = []
    let buried: LiveSegment[] = []
    try {
      written = writeOverlay({ files, directory, random, cipher: keys.segment }, this.#reader, overlay)
      buried = this.#contents.segments.map((live) => buryUnder(live, overlay))
    } catch (error) {
      if (journal !== old) this.#discard(journal)
      throw error
    }
    const kept = buried.filter((live) => !isEmptied(live))
    await this.#commit({
      ...this.#contents,
      counters: copyCounters(counters),
      journals: [{ id: journal.id, previous: journal.previous }],
      segments: orderSegments([...kept, ...written]),
    })
    this.counters = copyCounters(counters)
    this.overlay = new Overlay()
    this.#switchTo(journal)
    this.#removeSegments(buried.filter(isEmptied))
    await this.erase()
  }

  #switchTo(journal: Journal): void {
    const old = this.#journal
    if (journal === old) return
    this.#journal = journal
    old.close()
    removeQuietly(this.options.files, journalPath(this.options.directory, old.id))
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
      return written.has(text) || this.overlay.entry(text)?.item !== undefined
    })
  }

  /** Segments that should be one, of at most `limit` bytes in all; undefined when nothing is due. */
  chooseMerge(limit: number): LiveSegment[] | undefined {
    return this.#broken === undefined ? chooseMerge(this.#contents.segments, limit) : undefined
  }

  /** The steps of a merge; nothing counts before {@link finishMerge}. Between the steps the vault may change. */
  beginMerge(inputs: readonly LiveSegment[]): Generator<undefined, Merged> {
    const { files, directory, random, keys } = this.options
    return mergeSegments({ files, directory, random, cipher: keys.segment }, inputs)
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
    const ids = this.overlay.covered.filter((id) => this.overlay.entry(toText(id))?.item === undefined)
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
    const { segments, generation } = this.#contents
    const status: LedgerStatus = {
      generation,
      segments: segments.length,
      journalBytes: this.journalBytes,
      recordBytes: 0,
      logBytes: 0,
      rows: { records: this.overlay.live('records').length, logs: this.overlay.live('logs').length, dead: 0 },
    }
    for (const live of segments) {
      const { family, bytes, rows } = live.segment.name
      status[family === 'records' ? 'recordBytes' : 'logBytes'] += bytes
      const dead = countDead(buryUnder(live, this.overlay))
      status.rows[family] += rows - dead
      status.rows.dead += dead
    }
    return status
  }

  close(): void {
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

function countDead({ segment, dead, dropped }: LiveSegment): number {
  if (dropped.size === 0) return dead.length
  let count = [...dropped].reduce((sum, tenant) => sum + (segment.footer.tenants.get(tenant) ?? 0), 0)
  for (const row of dead) if (!dropped.has(segment.entry(row).tenant)) count++
  return count
}

/** Keyed BLAKE2b-256 of the header, base64; another length than chain values have, hence another function. */
export function digestHeader(keys: EngineKeys, header: Header): string {
  return toBase64(keys.chain(Buffer.from(headerText(header)), 32))
}

/** True when the change takes a row away for good. */
export function isRemoval({ kind }: Change): boolean {
  return kind === REMOVE
}
