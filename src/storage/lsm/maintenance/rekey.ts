/**
 * Changes the root key: every row is sealed anew into new tables beside the old ones, and one rename makes them count.
 * Tables that were finished before a kill are not written again.
 */
import type { EngineKeys } from '../../../crypto/ports.js'
import { conflict } from '../../../errors.js'
import { fromBase64, toBase64 } from '../../bytes.js'
import type { Row } from '../../engine.js'
import {
  type Header,
  rekeyDocument,
  type StateSSTable,
  stateDocument,
  writeHeader,
} from '../../vault-file.js'
import { decodeSSTable, encodeContents, encodeSSTable, sortSSTables } from '../contents.js'
import { digestHeader } from '../manifest.js'
import { createContexts, documentContext, type LsmContexts, type LsmOptions } from '../options.js'
import { NO_TAG, openLsmTree } from '../recovery.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'
import { finish, inBatches, writeSSTables } from '../sstable/row-writer.js'
import { readLiveRows } from '../sstable/scan.js'
import type { LsmTree } from '../tree.js'
import { createWal } from '../wal.js'

/** What of a row changes with the keys. Contract: the new seal names the row's `rev`, which stays. */
export type Resealed = Pick<Row, 'id' | 'keys' | 'sealed'>

export interface RekeyOptions {
  present: LsmOptions
  /** Its new header and what the new root key gives. */
  header: Header
  keys: EngineKeys
  /** What the caller needs to continue after a kill; stored, sealed under the present keys, until all is done. */
  secret: Uint8Array
  reseal(row: Row): Promise<Resealed>
  /** Rows that were sealed anew, of all. */
  progress(done: number, total: number): void
}

interface Piece {
  /** Base32 id of the present table, and what was dead in it. */
  of: string
  dead: string
  dropped: number[]
  segments: StateSSTable[]
}

interface RekeyNote {
  secret: string
  header: Header
  pieces: Piece[]
}

/** What an unfinished change of the root key left for the caller; undefined when none is under way. */
export async function readRekey(
  present: LsmOptions,
): Promise<{ secret: Uint8Array; header: Header } | undefined> {
  const document = rekeyDocument<RekeyNote>(present.files, present.directory, documentContext(present))
  await document.read()
  return document.data
    ? { secret: fromBase64(document.data.secret), header: document.data.header }
    : undefined
}

/**
 * Changes the keys; nothing sealed under the present ones is left when it resolves. Contract: the caller has the lock
 * and no engine is open. Killed at any moment, the vault opens with its present header, or with the new one once that is
 * in place; calling again continues.
 * @throws CofferError `conflict` when another change is under way, `vault_damaged`, `storage_failed`.
 */
export async function rekeyVault(options: RekeyOptions): Promise<void> {
  const { present, header, keys } = options
  const tree = await openLsmTree(present)
  try {
    await tree.flush()
    await resealAll(options, tree)
  } finally {
    tree.close()
  }
  // Opening removes files that `state` does not name: everything that the old keys would still open.
  const changed = await openLsmTree({ ...present, header, keys })
  changed.close()
}

async function resealAll(options: RekeyOptions, tree: LsmTree): Promise<void> {
  const { present, header, keys, secret, reseal, progress } = options
  const document = rekeyDocument<RekeyNote>(present.files, present.directory, documentContext(present))
  await document.read()
  const note = document.data
  if (note && digestHeader(keys, note.header) !== digestHeader(keys, header))
    throw conflict('Another change of keys is under way. Go on with that one first.')
  const next = { ...present, header, keys }
  const contexts = createContexts(next)
  const { sstables, contents } = tree.manifest
  const total = contents.sstables.reduce((sum, { sstable }) => sum + sstable.meta.rows, 0)
  const pieces = (note?.pieces ?? []).filter((piece) => sstables.some((live) => isOf(piece, live)))
  const save = async () => {
    document.data = { secret: toBase64(secret), header, pieces }
    await document.write()
  }
  async function* resealed(live: LiveSSTable): AsyncGenerator<Row> {
    for (const row of readLiveRows([live])) yield { ...row, ...(await reseal(row)) }
  }
  await save()
  let done = 0
  for (const live of sstables) {
    if (!pieces.some((piece) => isOf(piece, live))) {
      const segments: StateSSTable[] = []
      for await (const rows of inBatches(resealed(live)))
        segments.push(...finish(writeSSTables(contexts.sstables, rows)).map(encodeSSTable))
      const { id, dead, dropped } = encodeSSTable(live)
      pieces.push({ of: id, dead, dropped, segments })
      await save()
    }
    done += live.sstable.meta.rows
    progress(done, total)
  }
  await switchKeys(tree, next, contexts, pieces)
}

/** Writes the new state beside the present one; then the new header, which decides; then puts the state in place. */
async function switchKeys(
  tree: LsmTree,
  next: LsmOptions,
  { sstables, wals }: LsmContexts,
  pieces: readonly Piece[],
): Promise<void> {
  const { files, directory, random, header, keys } = next
  const wal = createWal(wals, random, NO_TAG)
  wal.close()
  const segments = pieces.flatMap((piece) => piece.segments)
  const state = stateDocument(files, directory, documentContext(next), 'next')
  state.data = encodeContents({
    generation: tree.manifest.contents.generation + 1,
    headers: [digestHeader(keys, header)],
    counters: tree.counters,
    wals: [{ id: wal.id, previous: wal.previous }],
    sstables: sortSSTables(segments.map((entry) => decodeSSTable(entry, sstables))),
  })
  await state.write()
  await writeHeader(files, directory, random, header)
  files.rename(`${directory}/state.next`, `${directory}/state`)
  files.remove(`${directory}/rekey`)
  files.syncDirectory(directory)
}

/** Whether the piece was made of this table as it is now. */
function isOf(piece: Piece, live: LiveSSTable): boolean {
  const { id, dead, dropped } = encodeSSTable(live)
  return piece.of === id && piece.dead === dead && `${piece.dropped}` === `${dropped}`
}
