/** Changes the root key: seals every row anew into new tables beside the old ones; one rename puts them in force. */
import type { EngineKeys } from '../../../crypto/ports.js'
import type { Resealed, Row } from '../../engine.js'
import { type Header, stateDocument, writeHeader } from '../../vault-file.js'
import { copyAndVerify, type Progress } from '../../vault-rows.js'
import { encodeContents, sortSSTables } from '../contents.js'
import { digestHeader } from '../manifest.js'
import { createContexts, documentContext, type LsmOptions } from '../options.js'
import { NO_TAG, openLsmTree } from '../recovery.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'
import { finish, inBatches, writeSSTables } from '../sstable/row-writer.js'
import { liveRowsOf } from '../sstable/scan.js'
import type { LsmTree } from '../tree.js'
import { createWal } from '../wal.js'

export interface RekeyOptions {
  present: LsmOptions
  /** The new header, and the keys of the new root key. */
  header: Header
  keys: EngineKeys
  /** Receives all rows; returns a function that seals a row anew. */
  prepare(rows: AsyncIterable<Row>): Promise<(row: Row) => Promise<Resealed>>
  progress: Progress
}

/**
 * Changes the keys; nothing sealed under the present ones is left when it resolves. Contract: the caller has the lock
 * and no engine is open. Killed at any moment, the vault opens whole: with its present header, or with the new one.
 * @throws CofferError `vault_damaged`, `storage_failed`.
 */
export async function rekeyVault({ present, header, keys, prepare, progress }: RekeyOptions): Promise<void> {
  const next = { ...present, header, keys }
  const tree = await openLsmTree(present)
  const written: LiveSSTable[] = []
  try {
    await tree.flush()
    const { count, rows } = liveRowsOf(tree.manifest.sstables)
    const reseal = await prepare(rows())
    async function* resealed(): AsyncGenerator<Row> {
      for await (const row of rows()) yield { ...row, ...(await reseal(row)) }
    }
    const context = createContexts(next).sstables
    const target = {
      async put(sent: AsyncIterable<Row>) {
        for await (const batch of inBatches(sent)) written.push(...finish(writeSSTables(context, batch)))
      },
      read: () => liveRowsOf(written).rows(),
    }
    await copyAndVerify({ count, rows: resealed }, target, keys.chain, progress)
    await switchKeys(tree, next, written)
  } finally {
    for (const { sstable } of written) sstable.close()
    tree.close()
  }
  // Opening removes files that `state` does not name: everything that the old keys would still open.
  const changed = await openLsmTree(next)
  changed.close()
}

/** Writes the new state beside the present one, then the header, which decides; then puts the state in place. */
async function switchKeys(tree: LsmTree, next: LsmOptions, written: readonly LiveSSTable[]): Promise<void> {
  const { files, directory, random, header, keys } = next
  const wal = createWal(createContexts(next).wals, random, NO_TAG)
  wal.close()
  const state = stateDocument(files, directory, documentContext(next), 'next')
  state.data = encodeContents({
    headers: [digestHeader(keys, header)],
    counters: tree.counters,
    wals: [{ id: wal.id, previous: wal.previous }],
    sstables: sortSSTables(written),
  })
  await state.write()
  await writeHeader(files, directory, random, header)
  files.rename(`${directory}/state.next`, `${directory}/state`)
  files.syncDirectory(directory)
}
