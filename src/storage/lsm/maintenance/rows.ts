/** A vault's files made of rows, and the rows of a vault's files: what vaults are moved and salvaged with. */
import type { Row } from '../../engine.js'
import { sortSSTables } from '../contents.js'
import { type Counters, createCounters } from '../counters.js'
import { createContexts, type LsmOptions } from '../options.js'
import { createLsmTree, openLsmTree } from '../recovery.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'
import { finish, inBatches, writeSSTables } from '../sstable/row-writer.js'
import { readLiveRows } from '../sstable/scan.js'

/**
 * Makes the files of a new vault, all but its header, of rows in any order. Contract: the directory exists; `counters`,
 * which are moved past the rows, are the caller's to give away.
 */
export async function createFromRows(
  options: LsmOptions,
  rows: AsyncIterable<Row>,
  counters: Counters = createCounters(),
): Promise<void> {
  const contexts = createContexts(options)
  const sstables: LiveSSTable[] = []
  for await (const batch of inBatches(rows)) {
    for (const { seq, rev, created, modified } of batch) {
      counters.seq = Math.max(counters.seq, seq + 1)
      counters.rev = Math.max(counters.rev, rev + 1)
      counters.time = Math.max(counters.time, created, modified)
    }
    const sorted = batch.sort((left, right) => left.seq - right.seq)
    sstables.push(...finish(writeSSTables(contexts.sstables, sorted)))
  }
  const tree = await createLsmTree(options, { counters, sstables: sortSSTables(sstables) })
  tree.close()
}

/**
 * All rows of a vault as `work` may read them, any number of times and in the same order, but without their keys, which
 * are in the index alone.
 */
export interface VaultRows {
  counters: Counters
  /** How many there are, dead ones included. */
  most: number
  rows(): Iterable<Row>
}

/** Contract: the caller has the lock, no engine is open, and the vault is of the present format. */
export async function withRows<T>(options: LsmOptions, work: (found: VaultRows) => Promise<T>): Promise<T> {
  const tree = await openLsmTree(options)
  try {
    await tree.flush()
    const { records } = tree.manifest
    const most = records.reduce((sum, { sstable }) => sum + sstable.meta.rows, 0)
    return await work({ counters: tree.counters, most, rows: () => readLiveRows(records) })
  } finally {
    tree.close()
  }
}
