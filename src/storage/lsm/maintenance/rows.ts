/** Creates a vault's files from rows, and reads the rows of a vault's files. */
import type { Row } from '../../engine.js'
import type { Times } from '../../time.js'
import { createCounters } from '../counters.js'
import type { LsmOptions } from '../options.js'
import { createLsmTree, openLsmTree } from '../recovery.js'
import { finish, inBatches, writeSSTables } from '../sstable/row-writer.js'
import { liveRowsOf } from '../sstable/scan.js'

/** Creates the files of a vault, except its header. Contract: the directory exists; rows come in any order. */
export async function createFromRows(
  options: LsmOptions,
  rows: AsyncIterable<Row>,
  { time, last, since, until }: Times,
): Promise<void> {
  const counters = { ...createCounters(), time, last, since, until }
  const tree = await createLsmTree(options)
  try {
    for await (const batch of inBatches(rows)) {
      for (const { seq, rev, created, modified } of batch) {
        counters.seq = Math.max(counters.seq, seq + 1)
        counters.rev = Math.max(counters.rev, rev + 1)
        counters.time = Math.max(counters.time, created, modified)
      }
      const sorted = batch.sort((left, right) => left.seq - right.seq)
      await tree.addTables(finish(writeSSTables(tree.manifest.context, sorted)), counters)
    }
    await tree.addTables([], counters)
  } finally {
    tree.close()
  }
}

/** The rows of a vault. Contract: the caller has the lock, and no engine is open. */
export async function* readRows(options: LsmOptions): AsyncGenerator<Row> {
  const tree = await openLsmTree(options)
  try {
    yield* liveRowsOf(tree.manifest.sstables).rows()
  } finally {
    tree.close()
  }
}
