/**
 * The segments of a vault and the `state` that makes them count. Knows how they are added, merged, erased and taken
 * away, each by one new state; what is in the journal is the ledger's.
 */

import type { EngineKeys } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { isEqual, toBase64 } from '../bytes.js'
import type { RowId } from '../engine.js'
import { removeQuietly } from '../files.js'
import { type Header, headerText, type StateDocument } from '../vault-file.js'
import { adoptMerged, isSameSegment, type Merged, mergeSegments } from './compaction.js'
import { chooseMerge } from './compaction-choice.js'
import { type Contents, encodeContents, type JournalName, orderSegments } from './contents.js'
import { addRows, buryUnder, isEmptied } from './flush.js'
import type { Overlay } from './memtable.js'
import { segmentPath } from './sstable/format.js'
import type { SegmentPlace } from './sstable/reader.js'
import { LiveSegment } from './sstable/search.js'
import type { WriterPlace } from './sstable/writer.js'
import { type Counters, copyCounters } from './transaction.js'
import type { LedgerOptions } from './tree.js'
import { journalPath } from './wal.js'

const NO_ROWS = new Uint32Array(0)

export class Shelf {
  /** What the segments are read with. */
  readonly reader: SegmentPlace
  readonly #options: LedgerOptions
  readonly #state: StateDocument
  #contents: Contents
  #records: readonly LiveSegment[] = []
  #logs: readonly LiveSegment[] = []
  #broken: CofferError | undefined

  constructor(options: LedgerOptions, reader: SegmentPlace, state: StateDocument, contents: Contents) {
    this.#options = options
    this.reader = reader
    this.#state = state
    this.#contents = contents
    this.#sort()
  }

  get contents(): Contents {
    return this.#contents
  }

  get records(): readonly LiveSegment[] {
    return this.#records
  }

  get logs(): readonly LiveSegment[] {
    return this.#logs
  }

  /** What new segments are written with. */
  get writer(): WriterPlace {
    const { files, directory, random, keys } = this.#options
    return { files, directory, random, cipher: keys.segment }
  }

  /** Makes a journal count beside those that do. */
  async addJournal(journal: JournalName): Promise<void> {
    await this.#commit({ ...this.#contents, journals: [...this.#contents.journals, journal] })
  }

  /** `state` with the new segments, the older ones under the overlay, and one journal. Gives those left without rows. */
  async adopt(
    overlay: Overlay,
    written: readonly LiveSegment[],
    counters: Counters,
    journal: JournalName,
  ): Promise<LiveSegment[]> {
    const { files, directory } = this.#options
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

  /** Overwrites the bytes of these rows wherever they lie. */
  eraseRows(ids: readonly RowId[]): void {
    for (const live of this.#records) eraseIn(live, ids)
  }

  /** Segments that should be one, of at most `limit` bytes in all; undefined when nothing is due. */
  chooseMerge(limit: number): LiveSegment[] | undefined {
    return this.#broken === undefined ? chooseMerge(this.#contents.segments, limit) : undefined
  }

  /** The steps of a merge; nothing counts before {@link finishMerge}. Between the steps the vault may change. */
  beginMerge(inputs: readonly LiveSegment[]): Generator<undefined, Merged> {
    return mergeSegments(this.writer, inputs)
  }

  /**
   * Puts the merged segment in its inputs' place, with what died there since. Where an input is gone altogether the
   * merge is thrown away. `removed` are ids whose rows may have been copied before they were overwritten.
   */
  async finishMerge(
    inputs: readonly LiveSegment[],
    { name, maps }: Merged,
    removed: readonly RowId[],
  ): Promise<void> {
    const { files, directory } = this.#options
    const current = inputs.map((input) => this.#contents.segments.find((live) => isSameSegment(live, input)))
    const known = current.filter((live) => live !== undefined)
    if (known.length < inputs.length) {
      if (name !== undefined) removeQuietly(files, segmentPath(directory, name.family, name.id))
      return
    }
    const added = name === undefined ? [] : [adoptMerged(this.reader, name, maps, inputs, known)]
    const others = this.#contents.segments.filter((live) => !known.includes(live))
    try {
      if (added.length > 0) files.syncDirectory(`${directory}/segments`)
      for (const live of added) if (live.segment.name.family === 'records') eraseIn(live, removed)
      await this.#commit({ ...this.#contents, segments: orderSegments([...others, ...added]) })
    } catch (error) {
      // Its file stays, for `state` may name it after all.
      for (const { segment } of added) segment.close()
      throw error
    }
    this.remove(known)
    await this.erase()
  }

  /** Takes segments away that no state names any more. */
  remove(segments: readonly LiveSegment[]): void {
    for (const { segment } of segments) {
      segment.close()
      removeQuietly(this.#options.files, segment.path)
    }
  }

  async #commit(contents: Contents): Promise<void> {
    const next = { ...contents, generation: this.#contents.generation + 1 }
    this.#state.data = encodeContents(next)
    try {
      await this.#state.write()
    } catch (error) {
      // Whether the disk has the old state or the new is unknown: only opening anew tells.
      this.break(error)
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
    this.refuseIfBroken()
    const digest = digestHeader(this.#options.keys, header)
    await this.#commit({ ...this.#contents, headers: [...this.#contents.headers, digest] })
    await write()
    await this.#commit({ ...this.#contents, headers: [digest] })
  }

  close(): void {
    for (const { segment } of this.#contents.segments) segment.close()
  }

  /** From here on nothing is written: what the disk holds is unknown until the vault is opened anew. */
  break(cause: unknown): void {
    this.#broken = new CofferError(
      'storage_failed',
      'An earlier write failed, so nothing more is written until the vault is opened anew. Check the disk first.',
      { cause },
    )
  }

  /** @throws CofferError `storage_failed` after {@link break}. */
  refuseIfBroken(): void {
    if (this.#broken !== undefined) throw this.#broken
  }
}

function eraseIn({ segment }: LiveSegment, ids: readonly RowId[]): void {
  const rows = ids.map((id) => segment.find(id)).filter((row) => row !== undefined)
  if (rows.length > 0) segment.erase(addRows(NO_ROWS, rows))
}

/** Keyed BLAKE2b-256 of the header, base64; another length than chain values have, hence another function. */
export function digestHeader(keys: EngineKeys, header: Header): string {
  return toBase64(keys.chain(Buffer.from(headerText(header)), 32))
}
