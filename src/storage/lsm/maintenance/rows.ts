import type { EngineKeys } from '../../../crypto/ports.js'
import type { Resealed, Row } from '../../engine.js'
import { createCounters, type Times } from '../../time.js'
import { type Header, writeHeader } from '../../vault-file.js'
import { copyAndVerify, type Progress } from '../../vault-rows.js'
import { createContext, type LsmOptions } from '../context.js'
import { adoptNextState, NEXT_STATE_FILE } from '../manifest.js'
import { createState, listSetAside, openLsmTree } from '../recovery.js'
import { liveRowsOf } from '../sstable/cursors.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'
import { writeBatches } from '../sstable/write-tables.js'

/** Creates the files of a vault, except the header, from rows in any order. Requires: the directory exists. */
export async function createFromRows(
  options: LsmOptions,
  rows: AsyncIterable<Row>,
  { time, last, since, until }: Times,
): Promise<void> {
  const counters = { ...createCounters(), time, last, since, until }
  async function* counted(): AsyncGenerator<Row> {
    for await (const row of rows) {
      counters.seq = Math.max(counters.seq, row.seq + 1)
      counters.rev = Math.max(counters.rev, row.rev + 1)
      counters.time = Math.max(counters.time, row.created, row.modified)
      yield row
    }
  }
  createState(options, await writeBatches(createContext(options), counted()), counters)
}

/** Requires: the caller has the lock, and no engine is open. */
export async function* readRows(options: LsmOptions): AsyncGenerator<Row> {
  const tree = openLsmTree(options)
  try {
    yield* liveRowsOf(tree.manifest.sstables).rows()
  } finally {
    tree.close()
  }
}

export interface RekeyOptions {
  present: LsmOptions
  header: Header
  keys: EngineKeys
  /** Receives all rows. Returns a function that reseals a row with the new keys. */
  prepare(rows: AsyncIterable<Row>): Promise<(row: Row) => Promise<Resealed>>
  progress: Progress
}

/**
 * Reseals all rows. After the rekey, the old keys open nothing in the vault, except earlier copies of damaged logs
 * (`aside-*`). If the process is killed during a rekey, the vault has either the old keys or the new keys. Requires:
 * the caller has the lock, and no engine is open.
 */
export async function rekeyVault({ present, header, keys, prepare, progress }: RekeyOptions): Promise<void> {
  const next = { ...present, header, keys }
  const context = createContext(next)
  const tree = openLsmTree(present)
  let written: LiveSSTable[] = []
  try {
    tree.flush()
    const { count, rows } = liveRowsOf(tree.manifest.sstables)
    const reseal = await prepare(rows())
    async function* resealed(): AsyncGenerator<Row> {
      for await (const row of rows()) yield { ...row, ...(await reseal(row)) }
    }
    const target = {
      async put(sent: AsyncIterable<Row>) {
        written = await writeBatches(context, sent)
      },
      read: () => liveRowsOf(written).rows(),
    }
    await copyAndVerify({ count, rows: resealed }, target, keys.chain, progress)
    createState(next, written, tree.counters, NEXT_STATE_FILE)
    // When this call has returned, the vault has the new keys. If the process crashes after this call, the next opening
    // of the vault adopts the next state.
    writeHeader(present.files, present.directory, present.random, header)
    adoptNextState(next)
  } finally {
    for (const { sstable } of written) sstable.close()
    tree.close()
  }
  // Opening the tree removes the tables and logs of the old keys, because `state` does not list them.
  openLsmTree(next).close()
  const aside = listSetAside(present)
  if (aside.length > 0)
    present.notice(
      `The old keys still open these copies of damaged logs in ${present.directory}: ${aside.join(', ')}. Remove them once you ` +
        'have checked that no change is missing.',
    )
}
