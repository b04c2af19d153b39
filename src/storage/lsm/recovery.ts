/**
 * Makes a new ledger, or opens the one that is there: mends what a crash left, sweeps what `state` does not name.
 * Knows the order of things at the beginning; what follows is the ledger's.
 */
import { AFTER_DAMAGE, CofferError } from '../../errors.js'
import { decodeId, encodeId, isEqual } from '../bytes.js'
import { type Files, readWhole, removeQuietly, replaceWhole } from '../files.js'
import {
  adoptNextState,
  type DocumentContext,
  rekeyDocument,
  type StateDocument,
  stateDocument,
} from '../vault-file.js'
import { BlockCache } from './block-cache.js'
import { type Contents, decodeContents, encodeContents } from './contents.js'
import type { WalPosition } from './frames.js'
import { digestHeader } from './manifest.js'
import { DROP, type Frame, INSERT, LOG } from './row-change.js'
import { passTime } from './time.js'
import { createCounters } from './transaction.js'
import { type LsmOptions, LsmTree } from './tree.js'
import {
  createWal,
  type OpenedWal,
  openWal,
  readHead,
  WAL_LIMIT,
  type Wal,
  type WalContext,
  walPath,
} from './wal.js'

/** What a vault's first journal is chained to. */
export const NO_TAG = new Uint8Array(16)
/** Begins the name of a journal that was set aside. */
export const ASIDE = 'aside-'

/** What opening takes: where segments and journals are, and the `state` document, not read yet. */
export function prepare(options: LsmOptions) {
  const { files, directory, keys, cacheBytes } = options
  const context = documentContext(options)
  return {
    reader: { files, directory, cipher: keys.sstable, cache: new BlockCache(cacheBytes) },
    wals: { files, directory, vault: context.vault, wal: keys.wal, head: keys.head },
    state: stateDocument(files, directory, context),
  }
}

/** A new vault's files, all but its header, which is written last and by the caller. `filled` is what it begins with. */
export async function createLsmTree(
  options: LsmOptions,
  filled: Pick<Contents, 'counters' | 'sstables'> = { counters: createCounters(), sstables: [] },
): Promise<LsmTree> {
  const { random, header, keys } = options
  const prepared = prepare(options)
  const wal = createWal(prepared.wals, random, NO_TAG)
  const contents: Contents = {
    generation: 1,
    headers: [digestHeader(keys, header)],
    ...filled,
    wals: [{ id: wal.id, previous: NO_TAG }],
  }
  prepared.state.data = encodeContents(contents)
  try {
    await prepared.state.write()
    wal.acknowledge()
    return new LsmTree(options, { ...prepared, contents, wal })
  } catch (error) {
    wal.close()
    throw error
  }
}

/**
 * Opens what is there, mends what a crash left, sweeps what `state` does not name.
 * @throws CofferError `vault_damaged`, `storage_failed`.
 */
export async function openLsmTree(options: LsmOptions): Promise<LsmTree> {
  const { files, directory, header, keys } = options
  const prepared = prepare(options)
  await readState(options, prepared.state)
  const contents = decodeContents(prepared.state.data, prepared.reader)
  const digest = digestHeader(keys, header)
  if (!contents.headers.includes(digest)) {
    throw new CofferError(
      'vault_damaged',
      `${directory}/vault.json is not the one this vault had last. Restore it.`,
    )
  }
  checkPresence(files, directory, contents)
  const { wal, frames } = openWals(options, prepared.wals, contents)
  const tree = new LsmTree(options, { ...prepared, contents, wal })
  try {
    for (const frame of frames) replay(tree, frame)
    await sweepRekey(options)
    sweep(files, directory, contents)
    await tree.manifest.settleHeader(digest)
    await tree.manifest.erase()
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

/** A change of the root key that has ended leaves its note behind when a crash comes between; nobody can read it. */
async function sweepRekey(options: LsmOptions): Promise<void> {
  const { files, directory } = options
  try {
    await rekeyDocument(files, directory, documentContext(options)).read()
  } catch {
    removeQuietly(files, `${directory}/rekey`)
  }
}

/** What the sealed documents of this vault are read and written with. @throws CofferError `vault_damaged`. */
export function documentContext({ header, keys, random }: LsmOptions): DocumentContext {
  const vault = decodeId(header.vault)
  if (vault === undefined)
    throw new CofferError('vault_damaged', 'The header names no vault. Restore a backup.')
  return { cipher: keys.state, random, vault }
}

function checkPresence(files: Files, directory: string, { sstables }: Contents): void {
  const present = new Set(files.list(`${directory}/segments`))
  for (const { sstable } of sstables) {
    if (present.has(sstable.path.slice(sstable.path.lastIndexOf('/') + 1))) continue
    throw new CofferError('vault_damaged', `${sstable.path} is missing. ${AFTER_DAMAGE}`)
  }
}

/** All journals that `state` names: the older ones were complete when the next began. */
function openWals(options: LsmOptions, context: WalContext, contents: Contents) {
  const head = readHead(context)
  const frames: Frame[] = []
  for (const [index, { id, previous }] of contents.wals.entries()) {
    const acknowledged = head !== undefined && isEqual(head.wal, id) ? head : undefined
    const opened = openWal(context, id, previous, acknowledged)
    for (const frame of opened.frames) frames.push(frame)
    const next = contents.wals[index + 1]
    if (next === undefined) {
      repairTail(options, opened, acknowledged)
      removeUnknownWals(options.files, options.directory, contents)
      return { wal: opened.wal, frames }
    }
    opened.wal.close()
    if (opened.torn > 0 || !isEqual(opened.wal.position.tag, next.previous)) {
      throw new CofferError(
        'vault_damaged',
        `An older journal ends before the next one begins. ${AFTER_DAMAGE}`,
      )
    }
  }
  throw new CofferError('vault_damaged', `The vault names no journal. ${AFTER_DAMAGE}`)
}

/**
 * Sets aside what a crash left half written, and says how far the journal was read. `head` is not synced, so an older one
 * looks like one that is right: nothing that does not open is deleted on its word alone.
 */
function repairTail(
  options: LsmOptions,
  { wal, frames, torn }: OpenedWal,
  acknowledged: WalPosition | undefined,
): void {
  const { notice } = options
  if (acknowledged === undefined && frames.length > 0) {
    notice("The vault's file `head` is missing or does not fit; the journal was read by its own chain.")
  }
  if (torn > 0) {
    const path = setAside(options, wal)
    wal.truncate(wal.position)
    wal.sync()
    const isVouched = acknowledged?.end === wal.position.end
    const what = isVouched
      ? `A last change that was never confirmed was cut off (${torn} bytes)`
      : `The journal ends with ${torn} bytes that do not open, and \`head\` cannot tell whether they were confirmed`
    notice(`${what}. The journal as it was is kept in ${path}; remove that file once nothing is missing.`)
  }
  if (torn > 0 || acknowledged === undefined) wal.acknowledge()
}

/** Copies the journal as it lies there, safe when it returns. Gives the path, which nothing of ours sweeps. */
function setAside({ files, directory, random }: LsmOptions, { id }: Wal): string {
  const bytes = readWhole(files, walPath(directory, id), WAL_LIMIT)
  const name = `${ASIDE}${encodeId(id)}-${encodeId(random.bytes(5))}`
  replaceWhole(files, directory, name, bytes!, encodeId(random.bytes(10)))
  return `${directory}/${name}`
}

/** Takes a frame up again. @throws CofferError `vault_damaged` when its numbers do not go on where the last ended. */
function replay(tree: LsmTree, { rev, time, changes }: Frame): void {
  const { counters } = tree
  if (rev !== counters.rev) {
    throw new CofferError(
      'vault_damaged',
      `The journal does not go on where the vault's state ends. ${AFTER_DAMAGE}`,
    )
  }
  counters.rev += changes.length
  Object.assign(counters, passTime(counters, time))
  for (const change of changes) {
    const { kind, row } = change
    tree.memtable.apply(change)
    if (kind === INSERT) counters.seq = Math.max(counters.seq, row.seq + 1)
    if (kind === DROP) counters.chains.delete(row.tenant)
    if (kind !== LOG || row.chain === undefined) continue
    counters.logSeq = Math.max(counters.logSeq, row.seq + 1)
    const count = (counters.chains.get(row.tenant)?.count ?? 0) + 1
    counters.chains.set(row.tenant, { value: row.chain, count })
  }
}

/** Removes what a crash left behind: files that no state names, unless a change of the root key still needs them. */
function sweep(files: Files, directory: string, { sstables }: Contents): void {
  const named = new Set(sstables.map(({ sstable }) => sstable.path))
  const isRekeying = files.stat(`${directory}/rekey`) !== undefined
  for (const name of isRekeying ? [] : files.list(`${directory}/segments`)) {
    const path = `${directory}/segments/${name}`
    if (!named.has(path)) removeQuietly(files, path)
  }
  for (const name of files.list(directory)) {
    if (/^((vault\.json|state|state\.next|rekey|aside-[a-z2-7-]+)\.tmp-|state\.next$)/.test(name))
      removeQuietly(files, `${directory}/${name}`)
  }
}

function removeUnknownWals(files: Files, directory: string, { wals }: Contents): void {
  const named = new Set(wals.map(({ id }) => `journal-${encodeId(id)}`))
  for (const name of files.list(directory)) {
    if (name.startsWith('journal-') && !named.has(name)) removeQuietly(files, `${directory}/${name}`)
  }
}
