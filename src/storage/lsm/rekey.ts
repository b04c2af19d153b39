/**
 * Changes everything that the root key protects: every row is sealed anew into new segments beside the old, and one
 * rename makes them count. What was finished before a kill is not done again. How a row is sealed is the caller's.
 */

import type { EngineKeys } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { decodeId, fromBase64, toBase64 } from '../bytes.js'
import { type Header, rekeyDocument, type StateSSTable, stateDocument, writeHeader } from '../vault-file.js'
import { decodeSSTable, encodeContents, encodeSSTable, sortSSTables } from './contents.js'
import { chainRow } from './log-chain.js'
import { digestHeader } from './manifest.js'
import { documentContext, openLsmTree, prepare } from './recovery.js'
import type { StoredRow } from './row-change.js'
import type { Family } from './sstable/format.js'
import { finish, inBatches, writeRowsAsSSTables } from './sstable/row-writer.js'
import { walkRows } from './sstable/scan.js'
import type { LiveSSTable } from './sstable/search.js'
import type { Chain } from './transaction.js'
import type { LsmOptions, LsmTree } from './tree.js'
import { createWal } from './wal.js'

/** What of a row changes with the keys; its `rev` stays, and is what the new seal must name. */
export interface Resealed {
  id: Uint8Array
  keys: Uint8Array
  sealed: Uint8Array
}

export interface RekeyOptions {
  /** The vault as it is. */
  present: LsmOptions
  /** Its new header and what the new root key gives. */
  header: Header
  keys: EngineKeys
  /** Kept, sealed under the present keys, until it is done: what the caller needs to go on after a kill. */
  secret: Uint8Array
  reseal(row: StoredRow, family: Family): Promise<Resealed>
  /** Told how many rows of how many were sealed anew. */
  progress(done: number, total: number): void
}

interface Piece {
  /** Base32 id of the present segment, and what was dead in it. */
  of: string
  dead: string
  dropped: number[]
  segments: StateSSTable[]
}

/** What the `rekey` document holds. */
interface Note {
  secret: string
  header: Header
  pieces: Piece[]
}

/** What an unfinished change of the root key left for the caller, or undefined when none is under way. */
export async function readRekey(
  present: LsmOptions,
): Promise<{ secret: Uint8Array; header: Header } | undefined> {
  const document = rekeyDocument<Note>(present.files, present.directory, documentContext(present))
  await document.read()
  return document.data
    ? { secret: fromBase64(document.data.secret), header: document.data.header }
    : undefined
}

/**
 * Changes the keys; nothing sealed under the present ones is left when it resolves. Contract: the caller owns the vault
 * and no engine is open on it. Killed at any moment, the vault opens with its present header, or with the new one once
 * that is in place; calling again goes on.
 * @throws CofferError `conflict` when another change is under way, `vault_damaged`, `storage_failed`.
 */
export async function rekeyVault(options: RekeyOptions): Promise<void> {
  const { present, header, keys } = options
  const tree = await openLsmTree(present)
  try {
    await tree.flush()
    await new Rekeying(options, tree).run()
  } finally {
    tree.close()
  }
  // Opening removes what is not named any more: everything that the old keys would still open.
  const changed = await openLsmTree({ ...present, header, keys })
  changed.close()
}

class Rekeying {
  readonly #options: RekeyOptions
  readonly #tree: LsmTree
  readonly #document: ReturnType<typeof rekeyDocument<Note>>
  #pieces: Piece[] = []
  #done = 0
  #total = 0

  constructor(options: RekeyOptions, tree: LsmTree) {
    const { files, directory } = options.present
    this.#options = options
    this.#tree = tree
    this.#document = rekeyDocument<Note>(files, directory, documentContext(options.present))
  }

  async run(): Promise<void> {
    await this.#document.read()
    const digest = digestHeader(this.#options.keys, this.#options.header)
    const note = this.#document.data
    if (note && digestHeader(this.#options.keys, note.header) !== digest) {
      throw new CofferError('conflict', 'Another change of keys is under way. Go on with that one first.')
    }
    const { sstables } = this.#tree.contents
    const records = sstables.filter(({ sstable }) => sstable.meta.family === 'records')
    this.#total = sstables.reduce((sum, { sstable }) => sum + sstable.meta.rows, 0)
    this.#pieces = (note?.pieces ?? []).filter((piece) => records.some((live) => isOf(piece, live)))
    await this.#note()
    for (const live of records) await this.#resealRecords(live)
    const logs = await this.#resealLogs(sstables.filter(({ sstable }) => sstable.meta.family === 'logs'))
    await this.#switch(logs)
  }

  async #note(): Promise<void> {
    const { secret, header } = this.#options
    this.#document.data = { secret: toBase64(secret), header, pieces: this.#pieces }
    await this.#document.write()
  }

  async #resealRecords(live: LiveSSTable): Promise<void> {
    if (!this.#pieces.some((piece) => isOf(piece, live))) {
      const sstables: StateSSTable[] = []
      const maps = [new Uint32Array(live.sstable.meta.rows)]
      for await (const rows of inBatches(this.#reseal(readRows([live], maps), 'records')))
        sstables.push(...this.#write('records', rows))
      const { id, dead, dropped } = encodeSSTable(live)
      this.#pieces.push({ of: id, dead, dropped, segments: sstables })
      await this.#note()
    }
    this.#done += live.sstable.meta.rows
    this.#options.progress(this.#done, this.#total)
  }

  /** Log rows in one go, for each tenant's chain is made anew from its start; they begin again after a kill. */
  async #resealLogs(
    logs: readonly LiveSSTable[],
  ): Promise<{ sstables: StateSSTable[]; chains: Map<number, Chain> }> {
    const chains = new Map<number, Chain>()
    const sstables: StateSSTable[] = []
    const maps = logs.map(({ sstable }) => new Uint32Array(sstable.meta.rows))
    for await (const rows of inBatches(this.#reseal(readRows(logs, maps), 'logs'))) {
      sstables.push(
        ...this.#write(
          'logs',
          rows.map((row) => chainRow(row, chains, this.#options.keys.chain)),
        ),
      )
      this.#done += rows.length
      this.#options.progress(this.#done, this.#total)
    }
    return { sstables, chains }
  }

  async *#reseal(rows: Iterable<StoredRow>, family: Family): AsyncGenerator<StoredRow> {
    for (const row of rows) yield { ...row, ...(await this.#options.reseal(row, family)) }
  }

  #write(family: Family, rows: readonly StoredRow[]): StateSSTable[] {
    const { present, keys } = this.#options
    const { files, directory, random } = present
    const { reader } = prepare({ ...present, keys })
    const context = { files, directory, random, cipher: keys.sstable }
    return finish(writeRowsAsSSTables(context, reader, family, rows)).map(encodeSSTable)
  }

  /** The new state beside the present one; then the new header, which decides; then the new state in place. */
  async #switch(logs: { sstables: StateSSTable[]; chains: Map<number, Chain> }): Promise<void> {
    const { present, header, keys } = this.#options
    const { files, directory, random } = present
    const next = { ...present, header, keys }
    const { reader, wals } = prepare(next)
    const { contents } = this.#tree
    const wal = createWal(wals, random, new Uint8Array(16))
    wal.close()
    const encoded = [...this.#pieces.flatMap(({ segments: sstables }) => sstables), ...logs.sstables]
    const state = stateDocument(files, directory, documentContext(next), 'next')
    state.data = encodeContents({
      generation: contents.generation + 1,
      headers: [digestHeader(keys, header)],
      counters: { ...this.#tree.counters, chains: logs.chains },
      wals: [{ id: wal.id, previous: wal.previous }],
      sstables: sortSSTables(encoded.map((entry) => decodeSSTable(entry, reader))),
    })
    await state.write()
    await writeHeader(files, directory, random, header)
    files.rename(`${directory}/state.next`, `${directory}/state`)
    files.remove(`${directory}/rekey`)
    files.syncDirectory(directory)
  }
}

/** Live rows of the segments by `seq`, read as they come. */
function* readRows(sstables: readonly LiveSSTable[], maps: readonly Uint32Array[]): Generator<StoredRow> {
  for (const cursor of walkRows(sstables, maps)) yield cursor.sstable.row(cursor.index)
}

/** Whether the piece was made of this segment as it is now. */
function isOf(piece: Piece, live: LiveSSTable): boolean {
  const { id, dead, dropped } = encodeSSTable(live)
  return (
    decodeId(piece.of) !== undefined &&
    piece.of === id &&
    piece.dead === dead &&
    `${piece.dropped}` === `${dropped}`
  )
}
