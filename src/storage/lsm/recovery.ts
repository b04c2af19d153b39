/** Creates an LSM tree, or opens the one in a directory: repairs what a crash left, and removes unknown files. */
import { CofferError, damaged } from '../../errors.js'
import { encodeId, isEqual } from '../bytes.js'
import { readWhole, removeQuietly, replaceWhole } from '../files.js'
import { passTime } from '../time.js'
import { adoptNextState, type StateDocument } from '../vault-file.js'
import { type Contents, decodeContents, encodeContents } from './contents.js'
import { createCounters } from './counters.js'
import { digestHeader } from './manifest.js'
import { createContexts, documentContext, type LsmOptions } from './options.js'
import { type Frame, INSERT } from './sstable/row-change.js'
import { LsmTree } from './tree.js'
import {
  createWal,
  type OpenedWal,
  openWal,
  WAL_LIMIT,
  type Wal,
  type WalContext,
  walIdOf,
  walPath,
} from './wal.js'

/** The first log of a vault is chained to this tag. */
export const NO_TAG = new Uint8Array(16)
/** Prefix of the name of a log that was set aside. */
export const ASIDE = 'aside-'

/** Creates the files of a new vault, except the header, which the caller writes last. */
export async function createLsmTree(options: LsmOptions): Promise<LsmTree> {
  const { random, header, keys } = options
  const contexts = createContexts(options)
  const wal = createWal(contexts.wals, random, NO_TAG)
  const contents: Contents = {
    headers: [digestHeader(keys, header)],
    counters: createCounters(),
    sstables: [],
    wals: [{ id: wal.id, previous: NO_TAG }],
  }
  contexts.state.data = encodeContents(contents)
  try {
    await contexts.state.write()
    return new LsmTree(options, { ...contexts, contents, wal })
  } catch (error) {
    wal.close()
    throw error
  }
}

/** @throws CofferError `vault_damaged`, `storage_failed`. */
export async function openLsmTree(options: LsmOptions): Promise<LsmTree> {
  const { directory, header, keys } = options
  const contexts = createContexts(options)
  await readState(options, contexts.state)
  const contents = decodeContents(contexts.state.data, contexts.sstables)
  const digest = digestHeader(keys, header)
  if (!contents.headers.includes(digest))
    throw new CofferError(
      'vault_damaged',
      `${directory}/vault.json is not the one this vault had last. Restore it.`,
    )
  checkPresence(options, contents)
  const { wal, frames } = openWals(options, contexts.wals, contents)
  const tree = new LsmTree(options, { ...contexts, contents, wal })
  try {
    for (const frame of frames) replay(tree, frame)
    removeUnknownFiles(options, contents)
    await tree.manifest.settleHeader(digest)
    await tree.manifest.cleanUp([])
    return tree
  } catch (error) {
    tree.close()
    throw error
  }
}

async function readState(options: LsmOptions, state: StateDocument): Promise<void> {
  const { files, directory } = options
  try {
    await state.read()
  } catch (error) {
    if (!adoptNextState(files, directory, documentContext(options))) throw error
    await state.read()
  }
}

function checkPresence({ files, directory }: LsmOptions, { sstables }: Contents): void {
  const present = new Set(files.list(`${directory}/segments`))
  for (const { sstable } of sstables) {
    if (present.has(sstable.path.slice(sstable.path.lastIndexOf('/') + 1))) continue
    throw damaged(`${sstable.path} is missing`)
  }
}

/** Opens the logs that `state` names; all but the last must be complete. */
function openWals(options: LsmOptions, context: WalContext, contents: Contents) {
  const frames: Frame[] = []
  for (const [index, ref] of contents.wals.entries()) {
    const opened = openWal(context, ref)
    for (const frame of opened.frames) frames.push(frame)
    const next = contents.wals[index + 1]
    if (next === undefined) {
      repairTail(options, opened)
      removeUnknownWals(options, contents)
      return { wal: opened.wal, frames }
    }
    opened.wal.close()
    if (opened.torn > 0 || !isEqual(opened.wal.position.tag, next.previous))
      throw damaged('An older write-ahead log ends before the next one begins')
  }
  throw damaged('The vault names no write-ahead log')
}

/**
 * Cuts off a torn tail after it set a copy of the whole log aside. The head is not synced, so it may be out of date:
 * bytes that do not open are never deleted on its word alone.
 */
function repairTail(options: LsmOptions, { wal, torn, acknowledged }: OpenedWal): void {
  const { notice } = options
  if (torn > 0) {
    const path = setAside(options, wal)
    wal.truncate(wal.position)
    wal.sync()
    const what =
      acknowledged.end === wal.position.end
        ? `A last change that was never confirmed was cut off (${torn} bytes)`
        : `The write-ahead log ends with ${torn} bytes that do not open, and its head cannot tell whether they were confirmed`
    notice(`${what}. The log as it was is kept in ${path}; remove that file once nothing is missing.`)
  }
  if (torn > 0 || acknowledged.end !== wal.position.end) wal.acknowledge()
}

/** Copies the log file as it is, synced. Returns the path of the copy, which is never removed automatically. */
function setAside({ files, directory, random }: LsmOptions, { id }: Wal): string {
  const bytes = readWhole(files, walPath(directory, id), WAL_LIMIT)
  const name = `${ASIDE}${encodeId(id)}-${encodeId(random.bytes(5))}`
  replaceWhole(files, directory, name, bytes!, encodeId(random.bytes(10)))
  return `${directory}/${name}`
}

/** Applies a frame of the log. @throws CofferError `vault_damaged` when it does not follow the last one. */
function replay({ counters, memtable }: LsmTree, { rev, time, changes }: Frame): void {
  if (rev !== counters.rev) throw damaged("The write-ahead log does not begin where the vault's state ends")
  counters.rev += changes.length
  Object.assign(counters, passTime(counters, time))
  for (const change of changes) {
    const { kind, row } = change
    memtable.apply(change)
    if (kind === INSERT) counters.seq = Math.max(counters.seq, row.seq + 1)
  }
}

/** Removes files that no `state` names. */
function removeUnknownFiles({ files, directory }: LsmOptions, { sstables }: Contents): void {
  const known = new Set(sstables.map(({ sstable }) => sstable.path))
  for (const name of files.list(`${directory}/segments`)) {
    const path = `${directory}/segments/${name}`
    if (!known.has(path)) removeQuietly(files, path)
  }
  for (const name of files.list(directory)) {
    if (/^((vault\.json|state|state\.next|aside-[a-z2-7-]+)\.tmp-|state\.next$)/.test(name))
      removeQuietly(files, `${directory}/${name}`)
  }
}

function removeUnknownWals({ files, directory }: LsmOptions, { wals }: Contents): void {
  const known = new Set(wals.map(({ id }) => encodeId(id)))
  for (const name of files.list(directory)) {
    const id = walIdOf(name)
    if (id !== undefined && !known.has(id)) removeQuietly(files, `${directory}/${name}`)
  }
}
