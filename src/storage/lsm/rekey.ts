/**
 * Changes everything that the root key protects: every row is sealed anew into new segments beside the old, and one
 * rename makes them count. What was finished before a kill is not done again. How a row is sealed is the caller's.
 */

import type { EngineKeys } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { decodeId, fromBase64, toBase64 } from '../bytes.js'
import { type Header, rekeyDocument, type StateSegment, stateDocument, writeHeader } from '../vault-file.js'
import { decodeSegment, encodeContents, encodeSegment, orderSegments } from './contents.js'
import { rechain } from './log-chain.js'
import { digestHeader } from './manifest.js'
import { documentPowers, openLedger, prepare } from './recovery.js'
import type { StoredRow } from './row-change.js'
import type { Family } from './sstable/format.js'
import { finish, inBatches, writeRowsAsSegments } from './sstable/row-writer.js'
import { walkRows } from './sstable/scan.js'
import type { LiveSegment } from './sstable/search.js'
import type { Chain } from './transaction.js'
import type { Ledger, LedgerOptions } from './tree.js'
import { createJournal } from './wal.js'

/** What of a row changes with the keys; its `rev` stays, and is what the new seal must name. */
export interface Resealed {
  id: Uint8Array
  keys: Uint8Array
  sealed: Uint8Array
}

export interface RekeyOptions {
  /** The vault as it is. */
  present: LedgerOptions
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
  segments: StateSegment[]
}

/** What the `rekey` document holds. */
interface Note {
  secret: string
  header: Header
  pieces: Piece[]
}

/** What an unfinished change of the root key left for the caller, or undefined when none is under way. */
export async function readRekey(
  present: LedgerOptions,
): Promise<{ secret: Uint8Array; header: Header } | undefined> {
  const document = rekeyDocument<Note>(present.files, present.directory, documentPowers(present))
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
  const ledger = await openLedger(present)
  try {
    await ledger.fold()
    await new Rekeying(options, ledger).run()
  } finally {
    ledger.close()
  }
  // Opening removes what is not named any more: everything that the old keys would still open.
  const changed = await openLedger({ ...present, header, keys })
  changed.close()
}

class Rekeying {
  readonly #options: RekeyOptions
  readonly #ledger: Ledger
  readonly #document: ReturnType<typeof rekeyDocument<Note>>
  #pieces: Piece[] = []
  #done = 0
  #total = 0

  constructor(options: RekeyOptions, ledger: Ledger) {
    const { files, directory } = options.present
    this.#options = options
    this.#ledger = ledger
    this.#document = rekeyDocument<Note>(files, directory, documentPowers(options.present))
  }

  async run(): Promise<void> {
    await this.#document.read()
    const digest = digestHeader(this.#options.keys, this.#options.header)
    const note = this.#document.data
    if (note && digestHeader(this.#options.keys, note.header) !== digest) {
      throw new CofferError('conflict', 'Another change of keys is under way. Go on with that one first.')
    }
    const { segments } = this.#ledger.contents
    const records = segments.filter(({ segment }) => segment.name.family === 'records')
    this.#total = segments.reduce((sum, { segment }) => sum + segment.name.rows, 0)
    this.#pieces = (note?.pieces ?? []).filter((piece) => records.some((live) => isOf(piece, live)))
    await this.#note()
    for (const live of records) await this.#resealRecords(live)
    const logs = await this.#resealLogs(segments.filter(({ segment }) => segment.name.family === 'logs'))
    await this.#switch(logs)
  }

  async #note(): Promise<void> {
    const { secret, header } = this.#options
    this.#document.data = { secret: toBase64(secret), header, pieces: this.#pieces }
    await this.#document.write()
  }

  async #resealRecords(live: LiveSegment): Promise<void> {
    if (!this.#pieces.some((piece) => isOf(piece, live))) {
      const segments: StateSegment[] = []
      const maps = [new Uint32Array(live.segment.name.rows)]
      for await (const rows of inBatches(this.#reseal(readRows([live], maps), 'records')))
        segments.push(...this.#write('records', rows))
      const { id, dead, dropped } = encodeSegment(live)
      this.#pieces.push({ of: id, dead, dropped, segments })
      await this.#note()
    }
    this.#done += live.segment.name.rows
    this.#options.progress(this.#done, this.#total)
  }

  /** Log rows in one go, for each tenant's chain is made anew from its start; they begin again after a kill. */
  async #resealLogs(
    logs: readonly LiveSegment[],
  ): Promise<{ segments: StateSegment[]; chains: Map<number, Chain> }> {
    const chains = new Map<number, Chain>()
    const segments: StateSegment[] = []
    const maps = logs.map(({ segment }) => new Uint32Array(segment.name.rows))
    for await (const rows of inBatches(this.#reseal(readRows(logs, maps), 'logs'))) {
      segments.push(
        ...this.#write(
          'logs',
          rows.map((row) => rechain(row, chains, this.#options.keys.chain)),
        ),
      )
      this.#done += rows.length
      this.#options.progress(this.#done, this.#total)
    }
    return { segments, chains }
  }

  async *#reseal(rows: Iterable<StoredRow>, family: Family): AsyncGenerator<StoredRow> {
    for (const row of rows) yield { ...row, ...(await this.#options.reseal(row, family)) }
  }

  #write(family: Family, rows: readonly StoredRow[]): StateSegment[] {
    const { present, keys } = this.#options
    const { files, directory, random } = present
    const { reader } = prepare({ ...present, keys })
    const place = { files, directory, random, cipher: keys.segment }
    return finish(writeRowsAsSegments(place, reader, family, rows)).map(encodeSegment)
  }

  /** The new state beside the present one; then the new header, which decides; then the new state in place. */
  async #switch(logs: { segments: StateSegment[]; chains: Map<number, Chain> }): Promise<void> {
    const { present, header, keys } = this.#options
    const { files, directory, random } = present
    const next = { ...present, header, keys }
    const { reader, journals } = prepare(next)
    const { contents } = this.#ledger
    const journal = createJournal(journals, random, new Uint8Array(16))
    journal.close()
    const spelled = [...this.#pieces.flatMap(({ segments }) => segments), ...logs.segments]
    const state = stateDocument(files, directory, documentPowers(next), 'next')
    state.data = encodeContents({
      generation: contents.generation + 1,
      headers: [digestHeader(keys, header)],
      counters: { ...this.#ledger.counters, chains: logs.chains },
      journals: [{ id: journal.id, previous: journal.previous }],
      segments: orderSegments(spelled.map((entry) => decodeSegment(entry, reader))),
    })
    await state.write()
    await writeHeader(files, directory, random, header)
    files.rename(`${directory}/state.next`, `${directory}/state`)
    files.remove(`${directory}/rekey`)
    files.syncDirectory(directory)
  }
}

/** Live rows of the segments by `seq`, read as they come. */
function* readRows(segments: readonly LiveSegment[], maps: readonly Uint32Array[]): Generator<StoredRow> {
  for (const cursor of walkRows(segments, maps)) yield cursor.segment.row(cursor.index)
}

/** Whether the piece was made of this segment as it is now. */
function isOf(piece: Piece, live: LiveSegment): boolean {
  const { id, dead, dropped } = encodeSegment(live)
  return (
    decodeId(piece.of) !== undefined &&
    piece.of === id &&
    piece.dead === dead &&
    `${piece.dropped}` === `${dropped}`
  )
}
