/**
 * The sorted tables of a vault, and the `state` document that lists them. Tables are added, compacted, erased and
 * removed each by one new `state`: a file belongs to the vault once `state` names it.
 */
import type { EngineKeys } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { isEqual, toBase64 } from '../bytes.js'
import type { RowId } from '../engine.js'
import { removeQuietly } from '../files.js'
import { type Header, headerText, type StateDocument } from '../vault-file.js'
import { adoptCompacted, type CompactionResult, compactSSTables } from './compaction/compaction.js'
import { chooseInputs } from './compaction/compaction-choice.js'
import { type Contents, encodeContents, sortSSTables } from './contents.js'
import type { Counters } from './counters.js'
import { hasNoLiveRows, markShadowed } from './flush.js'
import type { Memtable } from './memtable.js'
import { sstablePath } from './sstable/format.js'
import { LiveSSTable } from './sstable/live-sstable.js'
import type { SSTableContext } from './sstable/reader.js'
import { removeWal, type WalRef } from './wal.js'

export type CompactionPlan = NonNullable<ReturnType<Manifest['planCompaction']>>

export class Manifest {
  readonly context: SSTableContext
  readonly #keys: EngineKeys
  readonly #state: StateDocument
  #contents: Contents
  #broken: CofferError | undefined
  /** Readers of all rows now, and the tables and rows to remove and erase after them. */
  #readers = 0
  #unused: LiveSSTable[] = []
  #erasures: (() => void)[] = []

  constructor(keys: EngineKeys, context: SSTableContext, state: StateDocument, contents: Contents) {
    this.#keys = keys
    this.context = context
    this.#state = state
    this.#contents = contents
  }

  get contents(): Contents {
    return this.#contents
  }

  get sstables(): readonly LiveSSTable[] {
    return this.#contents.sstables
  }

  async addWal(wal: WalRef): Promise<void> {
    await this.#commit({ ...this.#contents, wals: [...this.#contents.wals, wal] })
  }

  /**
   * Adds the tables that a memtable was written as, marks what it shadows in the older ones, and keeps only `wal`.
   * Returns the tables that have no live rows left.
   */
  async addFlushed(memtable: Memtable, written: readonly LiveSSTable[], counters: Counters, wal: WalRef) {
    const { files, directory } = this.context
    const { wals, sstables } = this.#contents
    const older = sstables.map((live) => markShadowed(live, memtable))
    const kept = older.filter((live) => !hasNoLiveRows(live))
    await this.#commit({
      ...this.#contents,
      counters: { ...counters },
      wals: [{ id: wal.id, previous: wal.previous }],
      sstables: sortSSTables([...kept, ...written]),
    })
    for (const { id } of wals) if (!isEqual(id, wal.id)) removeWal(files, directory, id)
    return older.filter(hasNoLiveRows)
  }

  /** After a crash during {@link replaceHeader}: accepts only the header in place from now on. */
  async settleHeader(digest: string): Promise<void> {
    if (this.#contents.headers.length > 1) await this.#commit({ ...this.#contents, headers: [digest] })
  }

  /** Removes tables that `state` does not name any more, overwrites dead rows that are due, and updates `state`. */
  async cleanUp(unused: readonly LiveSSTable[]): Promise<void> {
    if (this.#readers > 0) {
      this.#unused.push(...unused)
      return
    }
    for (const { sstable } of unused) {
      sstable.close()
      removeQuietly(this.context.files, sstable.path)
    }
    const due = this.#contents.sstables.filter((live) => live.due.length > 0)
    if (due.length === 0) return
    for (const live of due) live.sstable.erase(live.due)
    const sstables = this.#contents.sstables.map((live) =>
      live.due.length === 0 ? live : new LiveSSTable(live.sstable, live.dead, undefined, live.dropped),
    )
    await this.#commit({ ...this.#contents, sstables })
  }

  /** No table is removed and no row erased until the returned function is called. */
  keepFiles(): () => Promise<void> {
    this.#readers++
    return async () => {
      if (--this.#readers > 0) return
      const [unused, erasures] = [this.#unused, this.#erasures]
      this.#unused = []
      this.#erasures = []
      for (const erase of erasures) erase()
      await this.cleanUp(unused)
    }
  }

  eraseRows(ids: readonly RowId[]): void {
    // Not in later tables, which may have new rows of these ids by then.
    const { sstables } = this
    const erase = () => {
      for (const live of sstables) eraseIn(live, ids)
    }
    if (this.#readers > 0) this.#erasures.push(erase)
    else erase()
  }

  /**
   * A compaction that is due, of at most `limit` bytes and without the tables whose paths are `busy`; undefined if none
   * is. Its steps only write new files; the vault may change between them.
   */
  planCompaction(limit: number, busy: ReadonlySet<string> = new Set()) {
    const free = this.sstables.filter(({ sstable }) => !busy.has(sstable.path))
    const inputs = this.#broken === undefined ? chooseInputs(free, limit) : undefined
    return inputs && { inputs, steps: compactSSTables(this.context, inputs) }
  }

  /**
   * Replaces the inputs of a compaction by its output, with the rows that died since marked as dead. If an input is
   * gone, the output is discarded. `removed` are ids whose rows may have been copied before they were overwritten.
   */
  async finishCompaction(
    inputs: readonly LiveSSTable[],
    { meta, maps }: CompactionResult,
    removed: readonly RowId[],
  ): Promise<void> {
    const { files, directory } = this.context
    const paths = inputs.map(({ sstable }) => sstable.path)
    const known = paths.flatMap(
      (path) => this.#contents.sstables.find(({ sstable }) => sstable.path === path) ?? [],
    )
    if (known.length < inputs.length) {
      if (meta !== undefined) removeQuietly(files, sstablePath(directory, meta.id))
      return
    }
    const added = meta === undefined ? [] : [adoptCompacted(this.context, meta, maps, inputs, known)]
    const others = this.#contents.sstables.filter((live) => !known.includes(live))
    try {
      if (added.length > 0) files.syncDirectory(`${directory}/segments`)
      for (const live of added) eraseIn(live, removed)
      await this.#commit({ ...this.#contents, sstables: sortSSTables([...others, ...added]) })
    } catch (error) {
      // The file stays, because the `state` on disk may name it nevertheless.
      for (const { sstable } of added) sstable.close()
      throw error
    }
    await this.cleanUp(known)
  }

  async #commit(contents: Contents): Promise<void> {
    this.#state.data = encodeContents(contents)
    try {
      await this.#state.write()
    } catch (error) {
      // Whether the disk has the old state or the new one is unknown until the vault is opened again.
      this.break(error)
      throw error
    }
    this.#contents = contents
  }

  /**
   * Replaces `vault.json` by `write`. Meanwhile `state` accepts the old header and the new one, so that the vault opens
   * after a crash at any moment.
   */
  async replaceHeader(header: Header, write: () => Promise<void>): Promise<void> {
    this.refuseIfBroken()
    const digest = digestHeader(this.#keys, header)
    await this.#commit({ ...this.#contents, headers: [...this.#contents.headers, digest] })
    await write()
    await this.#commit({ ...this.#contents, headers: [digest] })
  }

  close(): void {
    for (const { sstable } of this.#contents.sstables) sstable.close()
  }

  /** Refuses further writes, because it is unknown what the disk holds. */
  break(cause: unknown): void {
    this.#broken = new CofferError(
      'storage_failed',
      'An earlier write failed, so nothing more is written until the vault is opened anew. Check the disk first.',
      { cause },
    )
  }

  /** Whether the disk is known to hold what it should. */
  get isSound(): boolean {
    return this.#broken === undefined
  }

  /** @throws CofferError `storage_failed` after {@link break}. */
  refuseIfBroken(): void {
    if (this.#broken !== undefined) throw this.#broken
  }
}

function eraseIn({ sstable }: LiveSSTable, ids: readonly RowId[]): void {
  const rows = ids.map((id) => sstable.find(id)).filter((row) => row !== undefined)
  if (rows.length > 0) sstable.erase(new Set(rows))
}

/** Keyed digest of the header, 32 bytes as base64. */
export function digestHeader(keys: EngineKeys, header: Header): string {
  return toBase64(keys.chain(Buffer.from(headerText(header)), 32))
}
