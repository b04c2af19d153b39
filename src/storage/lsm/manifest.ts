/**
 * The manifest is the list of the vault's tables and write-ahead logs ("logs" in this file). The file `state` contains
 * the manifest. Each change of the tables or logs writes a new `state`. When the vault is opened, tables and
 * logs that `state` does not list are removed.
 */
import { LowSync } from 'lowdb'
import { CofferError, damaged } from '../../errors.js'
import { packRows, toBase64, toHex, unpackRows } from '../bytes.js'
import { KEY_ROWS, type RowId } from '../engine.js'
import { readWhole, removeQuietly } from '../files.js'
import type { Counters } from '../time.js'
import { headerText, parseDocument, STATE_FILE } from '../vault-file.js'
import { replaceWhole } from '../whole-file.js'
import type { LsmContext, LsmOptions } from './context.js'
import {
  eraseHidden,
  isWhole,
  type KeyCopies,
  nextKeyRows,
  unlessDamaged,
  writeKeyCopies,
} from './key-copies.js'
import { Memtable } from './memtable.js'
import { sstablePath } from './sstable/format.js'
import { LiveSSTable } from './sstable/live-sstable.js'
import { SSTable, type SSTableMeta } from './sstable/reader.js'
import { adoptCompacted, type Compacted, chooseInputs, compactSSTables } from './sstable/write-tables.js'
import { removeWal, type WalRef } from './wal.js'

/** A rekey writes the next state into this file before it replaces `state`. */
export const NEXT_STATE_FILE = 'state.next'
const STATE_LIMIT = 16 * 1024 * 1024

export interface Contents {
  /** Digests of the headers that the vault accepts: two while the header is replaced, otherwise one. */
  headers: readonly string[]
  counters: Counters
  /** Oldest first. */
  wals: readonly WalRef[]
  /** Ascending by the lowest `seq`. */
  sstables: readonly LiveSSTable[]
  keyCopies: KeyCopies
}

/** The stored form of {@link Contents}. `packRows` encodes `dead` and `due`. */
interface State extends Pick<Contents, 'headers' | 'counters'> {
  journals: readonly WalRef[]
  segments: readonly (SSTableMeta & { dead: string; due: string; dropped: number[] })[]
  key_copies?: SSTableMeta | null | undefined
}

const vaultOf = ({ header }: LsmOptions) => Buffer.from(header.vault, 'hex')

function openDocument(
  context: LsmOptions,
  name: string,
  state: State | null,
  isRenaming?: () => void,
): LowSync<State | null> {
  const { files, directory, keys, random } = context
  const path = `${directory}/${name}`
  const adapter = {
    read() {
      const sealed = readWhole(files, path, STATE_LIMIT)
      if (sealed === undefined) throw damaged(`${path} is missing`)
      const plain = keys.state.open(sealed, vaultOf(context))
      if (plain === undefined) throw damaged(`${path} does not open`)
      return parseDocument(plain, path) as State
    },
    write(next: State | null) {
      const sealed = keys.state.seal(Buffer.from(JSON.stringify(next)), vaultOf(context))
      if (sealed.length > STATE_LIMIT)
        throw new CofferError(
          'storage_failed',
          `${path} would exceed its limit of 16 MiB. Run \`coffer vault compact\`.`,
        )
      replaceWhole(files, directory, name, sealed, toHex(random.bytes(10)), isRenaming)
    },
  }
  return new LowSync<State | null>(adapter, state)
}

/**
 * Writes `state`, or the next state. Calls `isRenaming` before the rename. If the rename fails, it is unknown whether
 * the disk has the old state or the new state. @throws CofferError `storage_failed`
 */
export function writeContents(
  context: LsmOptions,
  contents: Contents,
  name = STATE_FILE,
  isRenaming?: () => void,
): void {
  const { headers, counters, wals, sstables, keyCopies } = contents
  const journals = wals.map(({ id, previous }) => ({ id, previous }))
  const segments = sstables.map(({ sstable: { meta }, dead, due, dropped }) => {
    return { ...meta, dead: packRows(dead), due: packRows(due), dropped: [...dropped] }
  })
  const key_copies = keyCopies === null ? null : keyCopies?.meta
  openDocument(context, name, { headers, counters, journals, segments, key_copies }, isRenaming).write()
}

export function readContents(context: LsmContext): Contents {
  const document = openDocument(context, STATE_FILE, null)
  document.read()
  const { headers, counters, journals, segments, key_copies } = document.data!
  const sstables = segments.map(({ dead, due, dropped, ...meta }) => {
    return new LiveSSTable(new SSTable(context, meta), unpackRows(dead), unpackRows(due), new Set(dropped))
  })
  const keyCopies = key_copies && new SSTable(context, key_copies)
  return { headers, counters, wals: journals, sstables, keyCopies }
}

export function requireSegments({ files, directory }: Pick<LsmOptions, 'files' | 'directory'>): void {
  const path = `${directory}/segments`
  if (files.stat(path)?.kind !== 'directory')
    throw damaged(`${path} is missing, the directory of the tables. Put it back from a copy of the vault`)
}

/** Completes a rekey that has written the new header, also after a crash. Returns false if no next state opens. */
export function adoptNextState(context: LsmOptions): boolean {
  const { files, directory, keys } = context
  const sealed = readWhole(files, `${directory}/${NEXT_STATE_FILE}`, STATE_LIMIT)
  if (sealed === undefined || keys.state.open(sealed, vaultOf(context)) === undefined) return false
  files.rename(`${directory}/${NEXT_STATE_FILE}`, `${directory}/${STATE_FILE}`)
  files.syncDirectory(directory)
  return true
}

export function sortSSTables(sstables: readonly LiveSSTable[]): LiveSSTable[] {
  return [...sstables].sort((left, right) => left.sstable.meta.from - right.sstable.meta.from)
}

export function digestHeader({ keys, header }: Pick<LsmOptions, 'keys' | 'header'>): string {
  return toBase64(keys.chain(Buffer.from(headerText(header)), 32))
}

export type CompactionPlan = NonNullable<ReturnType<Manifest['planCompaction']>>

export class Manifest {
  readonly context: LsmContext
  contents: Contents
  #broken: CofferError | undefined
  /**
   * The number of {@link keepFiles} calls that are not released yet.
   */
  #readers = 0
  /** The removals and erasures that wait until all {@link keepFiles} calls are released. */
  #deferred: (() => void)[] = []

  constructor(context: LsmContext, contents: Contents) {
    this.context = context
    this.contents = contents
  }

  get sstables(): readonly LiveSSTable[] {
    return this.contents.sstables
  }

  /**
   * Adds flushed tables and drops older logs. The rows that the memtable replaced or removed become dead. Returns the
   * tables without live rows.
   */
  addFlushed(memtable: Memtable, written: readonly LiveSSTable[], counters: Counters, wal: WalRef) {
    const { wals, sstables } = this.contents
    const older = sstables.map((live) => live.shadowedBy(memtable))
    const kept = older.filter((live) => live.hasLiveRows)
    const keyCopies = this.#copyKeys(memtable, kept)
    this.#commitCopies(
      { counters: { ...counters }, wals: [wal], sstables: sortSSTables([...kept, ...written]) },
      keyCopies,
    )
    for (const { id } of wals) if (id !== wal.id) removeWal(this.context, id)
    return older.filter((live) => !live.hasLiveRows)
  }

  /**
   * Writes a new copy of the rows with tenant keys, if the flushed memtable changed one of these rows. First, the old
   * versions in the present copy are overwritten. The overwriting is safe, because the log has the new versions until
   * `state` changes. If the rows cannot be read because of damage, the present copy stays, because it may be the last
   * copy of these rows.
   */
  #copyKeys(flushed: Memtable, older: readonly LiveSSTable[]): KeyCopies {
    const { keyCopies: present } = this.contents
    if (present !== undefined && !flushed.changes(KEY_ROWS)) return present
    const rows = unlessDamaged(() => nextKeyRows(present, flushed, older))
    if (present && rows === undefined) eraseHidden(present, flushed)
    // If the present copy is unreadable, it is not possible to overwrite its old versions. The new copy replaces the
    // unreadable copy anyway.
    else if (present) unlessDamaged(() => eraseHidden(present, flushed))
    return rows === undefined ? present : writeKeyCopies(this.context, rows)
  }

  /** Commits a change of `state` together with a copy of keys, and then removes the copy that is not used any more. */
  #commitCopies(changed: Partial<Contents>, keyCopies: KeyCopies): void {
    const { keyCopies: before } = this.contents
    try {
      this.commit({ ...changed, keyCopies })
    } catch (error) {
      // The copy is removed only if the manifest is sound. After a failed write of `state`, the `state` on disk may
      // name the file of the copy.
      if (keyCopies && keyCopies !== before && this.isSound) this.#discard(keyCopies)
      throw error
    }
    if (before && keyCopies !== before) this.#discard(before)
  }

  #discard(sstable: SSTable): void {
    sstable.close()
    removeQuietly(this.context.files, sstable.path)
  }

  /** Removes the files of `unused` tables, overwrites dead rows that are due, and updates `state`. */
  cleanUp(unused: readonly LiveSSTable[] = []): void {
    this.#afterReaders(() => {
      for (const { sstable } of unused) this.#discard(sstable)
    })
    const isDue = this.sstables.some(({ due }) => due.length > 0)
    if (this.#readers > 0 || !isDue) return
    const sstables = this.sstables.map((live) => {
      if (live.due.length === 0) return live
      live.sstable.erase(live.due)
      return new LiveSSTable(live.sstable, live.dead, undefined, live.dropped)
    })
    this.commit({ sstables })
  }

  #afterReaders(work: () => void): void {
    if (this.#readers > 0) this.#deferred.push(work)
    else work()
  }

  /** Delays removals of tables and erasures of rows until the returned function is called. */
  keepFiles(): () => void {
    this.#readers++
    return () => {
      if (--this.#readers > 0) return
      for (const work of this.#deferred.splice(0)) work()
      this.cleanUp()
    }
  }

  eraseRows(ids: readonly RowId[]): void {
    // Rows are erased only in the current tables, because later tables may have new rows with these ids.
    const { sstables } = this
    this.#afterReaders(() => {
      for (const live of sstables) live.erase(ids)
    })
  }

  eraseKeyRows(ids: readonly RowId[]): void {
    const { keyCopies } = this.contents
    if (keyCopies) new LiveSSTable(keyCopies).erase(ids)
  }

  /**
   * Plans a compaction of at most `limit` bytes without `busy` tables. The steps of the plan only write new files, so
   * the vault may change while the steps run.
   */
  planCompaction(limit = Number.POSITIVE_INFINITY, busy: ReadonlySet<string> = new Set()) {
    const free = this.sstables.filter(({ sstable }) => !busy.has(sstable.path))
    const inputs = this.isSound ? chooseInputs(free, limit) : undefined
    return inputs && { inputs, steps: compactSSTables(this.context, inputs) }
  }

  /**
   * Finds the tables with a damaged end, so that a compaction writes them again. @throws CofferError `vault_damaged`
   */
  checkEnds(): void {
    for (const { sstable } of this.sstables) sstable.checkEnd()
  }

  /** Writes a missing or damaged copy of keys again. Requires: the memtables are flushed. */
  repairKeyCopies(): void {
    const { keyCopies } = this.contents
    if (isWhole(keyCopies)) return
    const rows = nextKeyRows(keyCopies, new Memtable(), this.sstables)
    this.#commitCopies({}, writeKeyCopies(this.context, rows))
  }

  /**
   * Puts the new table of a compaction in the place of its inputs. If an input no longer exists, the new table is
   * discarded. `removed`: rows that were removed, perhaps after the compaction had copied them.
   */
  finishCompaction(
    inputs: readonly LiveSSTable[],
    { meta, maps }: Compacted,
    removed: readonly RowId[],
  ): void {
    const { files, directory } = this.context
    const paths = inputs.map(({ sstable }) => sstable.path)
    const current = paths.flatMap((path) => this.sstables.find(({ sstable }) => sstable.path === path) ?? [])
    if (current.length < inputs.length) {
      if (meta !== undefined) removeQuietly(files, sstablePath(directory, meta.id))
      return
    }
    const others = this.sstables.filter((live) => !current.includes(live))
    const sstable = meta && new SSTable(this.context, meta)
    try {
      if (sstable !== undefined) {
        const added = adoptCompacted(sstable, maps, inputs, current)
        files.syncDirectory(`${directory}/segments`)
        added.erase(removed)
        others.push(added)
      }
      this.commit({ sstables: sortSSTables(others) })
    } catch (error) {
      sstable?.close()
      // The new table is removed only if the manifest is sound. After a failed write of `state`, the `state` on disk
      // may name the file of the new table.
      if (sstable !== undefined && this.isSound) removeQuietly(files, sstable.path)
      throw error
    }
    this.cleanUp(current)
  }

  /**
   * Writes a new `state`. If the write fails before the rename, for example because the disk is full, nothing has
   * changed, and the caller may retry. If the rename fails, the manifest is broken. @throws CofferError
   * `storage_failed`
   */
  commit(changed: Partial<Contents>): void {
    const contents = { ...this.contents, ...changed }
    let isCertain = true
    try {
      writeContents(this.context, contents, STATE_FILE, () => {
        isCertain = false
      })
    } catch (error) {
      // It is unknown whether the disk has the old state or the new state.
      if (!isCertain) this.break(error)
      throw error
    }
    this.contents = contents
  }

  close(): void {
    for (const { sstable } of this.sstables) sstable.close()
    this.contents.keyCopies?.close()
  }

  break(cause: unknown): void {
    this.#broken = new CofferError(
      'storage_failed',
      'An earlier write failed, so nothing more is written until the vault is opened again. Check the disk first.',
      { cause },
    )
  }

  get isSound(): boolean {
    return this.#broken === undefined
  }

  refuseIfBroken(): void {
    if (this.#broken !== undefined) throw this.#broken
  }
}
