/**
 * Creates or opens an LSM tree. When a tree is opened, the traces of a crash are repaired, and tables and logs that
 * `state` does not list are removed.
 */
import { damaged } from '../../errors.js'
import { toBase64, toHex } from '../bytes.js'
import { readWhole, removeQuietly } from '../files.js'
import { type Frame, INSERT } from '../rows/frame.js'
import { advanceTimes, type Counters, createCounters } from '../time.js'
import { isUnfinished } from '../vault-file.js'
import { replaceWhole } from '../whole-file.js'
import { createContext, type LsmContext, type LsmOptions } from './context.js'
import { findKeyRows, writeKeyCopies } from './key-copies.js'
import {
  adoptNextState,
  type Contents,
  digestHeader,
  NEXT_STATE_FILE,
  readContents,
  requireSegments,
  sortSSTables,
  writeContents,
} from './manifest.js'
import type { LiveSSTable } from './sstable/live-sstable.js'
import { LsmTree } from './tree.js'
import { createWal, NO_TAG, openWal, readWal, WAL_LIMIT, type Wal, type WalContents, walPath } from './wal.js'

const ASIDE = 'aside-'

/** Returns the names of the copies of damaged logs. Each copy opens with the keys that the vault had at that time. */
export function listSetAside({ files, directory }: Pick<LsmOptions, 'files' | 'directory'>): string[] {
  return files.list(directory).filter((name) => name.startsWith(ASIDE))
}

/** Writes an empty log, and the `state` of a vault that has these tables. `name`: the file of the state. */
export function createState(
  options: LsmOptions,
  tables: readonly LiveSSTable[] = [],
  counters: Counters = createCounters(),
  name?: string,
): void {
  const wal = createWal(options, NO_TAG)
  wal.close()
  const headers = [digestHeader(options)]
  const keyCopies = writeKeyCopies(createContext(options), findKeyRows(tables))
  writeContents(options, { headers, counters, wals: [wal], sstables: sortSSTables(tables), keyCopies }, name)
  keyCopies?.close()
}

export function openLsmTree(options: LsmOptions): LsmTree {
  const context = createContext(options)
  const contents = readOrAdopt(context)
  const digest = digestHeader(options)
  if (!contents.headers.includes(digest))
    throw damaged(
      `${options.directory}/vault.json is not the newest header of this vault. Put the newest header back`,
    )
  checkPresence(options, contents)
  const { wal, frames } = openWals(options, contents)
  const tree = new LsmTree(context, contents, wal)
  try {
    for (const frame of frames) replay(tree, frame)
    removeUnknownFiles(options, contents)
    // A crash may have interrupted the replacement of the header, so the replacement is completed here.
    if (contents.headers.length > 1) tree.adoptHeader(digest)
    tree.manifest.cleanUp()
    return tree
  } catch (error) {
    tree.close()
    throw error
  }
}

function readOrAdopt(context: LsmContext): Contents {
  try {
    return readContents(context)
  } catch (error) {
    if (!adoptNextState(context)) throw error
    return readContents(context)
  }
}

function checkPresence({ files, directory }: LsmOptions, { sstables }: Contents): void {
  requireSegments({ files, directory })
  const present = new Set(files.list(`${directory}/segments`))
  for (const { sstable } of sstables)
    if (!present.has(sstable.meta.id)) throw damaged(`${sstable.path} is missing`)
}

/** Opens the logs that `state` lists. Only the last log may end with an incomplete frame. */
function openWals(options: LsmOptions, { wals }: Contents) {
  const frames: Frame[] = []
  for (const [index, ref] of wals.entries()) {
    const found = readWal(options, ref)
    if (found.problem !== undefined) throw found.problem
    for (const frame of found.frames) frames.push(frame)
    const next = wals[index + 1]
    if (next === undefined) {
      const wal = openWal(options, ref, found)
      repairTail(options, wal, found)
      return { wal, frames }
    }
    if (found.torn > 0 || toBase64(found.intact.tag) !== next.previous)
      throw damaged('An older write-ahead log ends before the next log begins')
  }
  throw damaged('The vault names no write-ahead log')
}

/**
 * If the log has an unreadable end, copies the whole log and then cuts off the end. The copy is needed, because the cut
 * bytes may contain an acknowledged change that the unsynced head of the log does not cover.
 */
function repairTail(options: LsmOptions, wal: Wal, { torn, acknowledged }: WalContents): void {
  const isCovered = acknowledged?.end === wal.position.end
  if (torn > 0) {
    const path = setAside(options, wal)
    wal.truncate(wal.position)
    const bytes = torn === 1 ? '1 byte' : `${torn} bytes`
    const what = isCovered
      ? `The last change was never confirmed, and was removed (${bytes})`
      : `The end of the write-ahead log does not open (${bytes}), and the log's head cannot tell whether this end was confirmed`
    options.notice(
      `${what}. A copy of the whole log is in ${path}. Remove that file once you have checked that no change is missing.`,
    )
  }
  if (torn === 0 && isCovered) return
  // A crash may have left frames that are not synced. A power cut could remove them, but keep a head that covers them.
  wal.sync()
  wal.acknowledge()
}

function setAside(options: LsmOptions, { id }: Wal): string {
  const { files, directory, random } = options
  const bytes = readWhole(files, walPath(options, id), WAL_LIMIT)
  const name = `${ASIDE}${id}-${toHex(random.bytes(5))}`
  replaceWhole(files, directory, name, bytes!, toHex(random.bytes(10)))
  return `${directory}/${name}`
}

function replay({ counters, memtable }: LsmTree, { rev, time, changes }: Frame): void {
  if (rev !== counters.rev) throw damaged("The write-ahead log does not begin where the vault's state ends")
  counters.rev += changes.length
  Object.assign(counters, advanceTimes(counters, time))
  for (const change of changes) {
    const { kind, row } = change
    memtable.apply(change)
    if (kind === INSERT) counters.seq = Math.max(counters.seq, row.seq + 1)
  }
}

function removeUnknownFiles({ files, directory }: LsmOptions, { sstables, keyCopies, wals }: Contents): void {
  const tables = new Set(sstables.map(({ sstable }) => sstable.meta.id))
  if (keyCopies) tables.add(keyCopies.meta.id)
  const logs = new Set(wals.map(({ id }) => id))
  for (const name of files.list(`${directory}/segments`))
    if (!tables.has(name)) removeQuietly(files, `${directory}/segments/${name}`)
  for (const name of files.list(directory)) {
    const [, log] = /^(?:journal|head)-(.*)$/.exec(name) ?? []
    const isUnknown = log !== undefined && !logs.has(log)
    if (isUnknown || isUnfinished(name) || name === NEXT_STATE_FILE)
      removeQuietly(files, `${directory}/${name}`)
  }
}
