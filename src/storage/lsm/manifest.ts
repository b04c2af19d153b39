/**
 * The segments of a vault and the `state` that makes them count. Knows how they are added, merged, erased and taken
 * away, each by one new state; what is in the journal is the ledger's.
 */

import type { EngineKeys } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { isEqual, toBase64 } from '../bytes.js'
import { removeQuietly } from '../files.js'
import type { RowId } from '../store.js'
import { type Header, headerText, type StateDocument } from '../vault-file.js'
import { adoptCompacted, type CompactionResult, compactSSTables, isSameFile } from './compaction.js'
import { chooseCompaction } from './compaction-choice.js'
import { type Contents, encodeContents, sortSSTables, type WalRef } from './contents.js'
import { addRows, hasNoLiveRows, markShadowed } from './flush.js'
import type { Memtable } from './memtable.js'
import { sstablePath } from './sstable/format.js'
import type { SSTableContext } from './sstable/reader.js'
import { LiveSSTable } from './sstable/search.js'
import type { SSTableWriterContext } from './sstable/writer.js'
import { type Counters, copyCounters } from './transaction.js'
import type { LsmOptions } from './tree.js'
import { walPath } from './wal.js'

const NO_ROWS = new Uint32Array(0)

export class Manifest {
  /** What the segments are read with. */
  readonly reader: SSTableContext
  readonly #options: LsmOptions
  readonly #state: StateDocument
  #contents: Contents
  #records: readonly LiveSSTable[] = []
  #logs: readonly LiveSSTable[] = []
  #broken: CofferError | undefined

  constructor(options: LsmOptions, reader: SSTableContext, state: StateDocument, contents: Contents) {
    this.#options = options
    this.reader = reader
    this.#state = state
    this.#contents = contents
    this.#sort()
  }

  get contents(): Contents {
    return this.#contents
  }

  get records(): readonly LiveSSTable[] {
    return this.#records
  }

  get logs(): readonly LiveSSTable[] {
    return this.#logs
  }

  /** What new segments are written with. */
  get writer(): SSTableWriterContext {
    const { files, directory, random, keys } = this.#options
    return { files, directory, random, cipher: keys.sstable }
  }

  /** Makes a journal count beside those that do. */
  async addWal(wal: WalRef): Promise<void> {
    await this.#commit({ ...this.#contents, wals: [...this.#contents.wals, wal] })
  }

  /** `state` with the new segments, the older ones under the overlay, and one journal. Gives those left without rows. */
  async adopt(
    memtable: Memtable,
    written: readonly LiveSSTable[],
    counters: Counters,
    wal: WalRef,
  ): Promise<LiveSSTable[]> {
    const { files, directory } = this.#options
    const { wals, sstables } = this.#contents
    const buried = sstables.map((live) => markShadowed(live, memtable))
    const kept = buried.filter((live) => !hasNoLiveRows(live))
    await this.#commit({
      ...this.#contents,
      counters: copyCounters(counters),
      wals: [{ id: wal.id, previous: wal.previous }],
      sstables: sortSSTables([...kept, ...written]),
    })
    for (const { id } of wals) if (!isEqual(id, wal.id)) removeQuietly(files, walPath(directory, id))
    return buried.filter(hasNoLiveRows)
  }

  /** From a crash in the middle of replacing the header: only the one in place is taken from now on. */
  async settleHeader(digest: string): Promise<void> {
    if (this.#contents.headers.length > 1) await this.#commit({ ...this.#contents, headers: [digest] })
  }

  /** Overwrites what is due in the segments, and notes that it was. */
  async erase(): Promise<void> {
    const due = this.#contents.sstables.filter((live) => live.due.length > 0)
    if (due.length === 0) return
    for (const live of due) live.sstable.erase(live.due)
    const sstables = this.#contents.sstables.map((live) =>
      live.due.length === 0 ? live : new LiveSSTable(live.sstable, live.dead, NO_ROWS, live.dropped),
    )
    await this.#commit({ ...this.#contents, sstables })
  }

  /** Overwrites the bytes of these rows wherever they lie. */
  eraseRows(ids: readonly RowId[]): void {
    for (const live of this.#records) eraseIn(live, ids)
  }

  /** Segments that should be one, of at most `limit` bytes in all; undefined when nothing is due. */
  chooseCompaction(limit: number): LiveSSTable[] | undefined {
    return this.#broken === undefined ? chooseCompaction(this.#contents.sstables, limit) : undefined
  }

  /** The steps of a merge; nothing counts before {@link finishCompaction}. Between the steps the vault may change. */
  beginCompaction(inputs: readonly LiveSSTable[]): Generator<undefined, CompactionResult> {
    return compactSSTables(this.writer, inputs)
  }

  /**
   * Puts the merged segment in its inputs' place, with what died there since. Where an input is gone altogether the
   * merge is thrown away. `removed` are ids whose rows may have been copied before they were overwritten.
   */
  async finishCompaction(
    inputs: readonly LiveSSTable[],
    { meta: name, maps }: CompactionResult,
    removed: readonly RowId[],
  ): Promise<void> {
    const { files, directory } = this.#options
    const current = inputs.map((input) => this.#contents.sstables.find((live) => isSameFile(live, input)))
    const known = current.filter((live) => live !== undefined)
    if (known.length < inputs.length) {
      if (name !== undefined) removeQuietly(files, sstablePath(directory, name.family, name.id))
      return
    }
    const added = name === undefined ? [] : [adoptCompacted(this.reader, name, maps, inputs, known)]
    const others = this.#contents.sstables.filter((live) => !known.includes(live))
    try {
      if (added.length > 0) files.syncDirectory(`${directory}/segments`)
      for (const live of added) if (live.sstable.meta.family === 'records') eraseIn(live, removed)
      await this.#commit({ ...this.#contents, sstables: sortSSTables([...others, ...added]) })
    } catch (error) {
      // Its file stays, for `state` may name it after all.
      for (const { sstable } of added) sstable.close()
      throw error
    }
    this.remove(known)
    await this.erase()
  }

  /** Takes segments away that no state names any more. */
  remove(sstables: readonly LiveSSTable[]): void {
    for (const { sstable } of sstables) {
      sstable.close()
      removeQuietly(this.#options.files, sstable.path)
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
    const { sstables } = this.#contents
    this.#records = sstables.filter(({ sstable }) => sstable.meta.family === 'records')
    this.#logs = sstables.filter(({ sstable }) => sstable.meta.family === 'logs')
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
    for (const { sstable } of this.#contents.sstables) sstable.close()
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

function eraseIn({ sstable }: LiveSSTable, ids: readonly RowId[]): void {
  const rows = ids.map((id) => sstable.find(id)).filter((row) => row !== undefined)
  if (rows.length > 0) sstable.erase(addRows(NO_ROWS, rows))
}

/** Keyed BLAKE2b-256 of the header, base64; another length than chain values have, hence another function. */
export function digestHeader(keys: EngineKeys, header: Header): string {
  return toBase64(keys.chain(Buffer.from(headerText(header)), 32))
}
