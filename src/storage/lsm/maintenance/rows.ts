/** A vault's files made of rows, and the rows of a vault's files: what vaults are moved and salvaged with. */
import type { Row } from '../../engine.js'
import { type Counters, createCounters } from '../counters.js'
import type { LsmOptions } from '../options.js'
import { createLsmTree, openLsmTree } from '../recovery.js'
import { finish, inBatches, writeSSTables } from '../sstable/row-writer.js'
import { readLiveRows } from '../sstable/scan.js'

/**
 * Makes the files of a new vault, all but its header, of rows in any order. `state` names each table once it is written,
 * so that another call may go on where one was ended (`goesOn`). Contract: the directory exists; `counters`, which are
 * moved past the rows, are the caller's to give away.
 */
export async function createFromRows(
  options: LsmOptions,
  rows: AsyncIterable<Row>,
  { counters = createCounters(), goesOn = false }: { counters?: Counters; goesOn?: boolean } = {},
): Promise<void> {
  const tree = await (goesOn ? openLsmTree(options) : createLsmTree(options))
  const raise = (name: 'seq' | 'rev' | 'time', least: number) => {
    counters[name] = Math.max(counters[name], least)
  }
  try {
    for (const name of ['seq', 'rev', 'time'] as const) raise(name, tree.counters[name])
    for await (const batch of inBatches(rows)) {
      for (const { seq, rev, created, modified } of batch) {
        raise('seq', seq + 1)
        raise('rev', rev + 1)
        raise('time', Math.max(created, modified))
      }
      const sorted = batch.sort((left, right) => left.seq - right.seq)
      await tree.addTables(finish(writeSSTables(tree.manifest.context, sorted)), counters)
    }
    await tree.addTables([], counters)
  } finally {
    tree.close()
  }
}

/** A vault's rows for `work`, any number of times in the same order, without their keys, which the index alone has. */
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
    const { sstables } = tree.manifest
    const most = sstables.reduce((sum, { sstable }) => sum + sstable.meta.rows, 0)
    return await work({ counters: tree.counters, most, rows: () => readLiveRows(sstables) })
  } finally {
    tree.close()
  }
}
