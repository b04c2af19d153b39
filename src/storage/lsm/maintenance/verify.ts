/**
 * Reads all readable rows of a vault, even if the vault does not open, and finds the damage of the vault. Changes
 * nothing.
 */

import { AFTER_DAMAGE, CofferError } from '../../../errors.js'
import { toBase64, toText } from '../../bytes.js'
import {
  type CheckRow,
  type Finding,
  KEY_ROWS,
  type Row,
  type VaultRows,
  type Verification,
} from '../../engine.js'
import type { Change } from '../../rows/frame.js'
import { recordRow } from '../../rows/row.js'
import { createCounters } from '../../time.js'
import { plainRow } from '../../vault-rows.js'
import { createContext, type LsmContext, type LsmOptions } from '../context.js'
import { type Contents, digestHeader, readContents, requireSegments, sortSSTables } from '../manifest.js'
import { Memtable } from '../memtable.js'
import { listSetAside } from '../recovery.js'
import { blockOf, ENTRIES_PER_BLOCK, IDS, INDEXES, ROWS, sstablePath } from '../sstable/format.js'
import { LiveSSTable } from '../sstable/live-sstable.js'
import { SSTable } from '../sstable/reader.js'
import { NO_TAG, readWal, type WalRef } from '../wal.js'

const WAL_PLACE = 'the write-ahead log'

export class DamagedVault {
  readonly sstables: readonly LiveSSTable[]
  /** The number of changes in unreadable frames before the last readable change. */
  readonly lostChanges: number
  /**
   * Undefined if `state` cannot be opened. Without the contents of `state`, it is unknown which rows were replaced or
   * removed.
   */
  readonly #contents: Contents | undefined
  readonly #memtable: Memtable

  constructor(options: LsmOptions, findings: Finding[]) {
    const context = createContext(options)
    try {
      requireSegments(context)
    } catch (error) {
      addFinding(findings, 'segments', error)
    }
    try {
      this.#contents = readContents(context)
      if (!this.#contents.headers.includes(digestHeader(options)))
        findings.push({ place: 'vault.json', problem: 'It is not the newest header of this vault.' })
    } catch (error) {
      addFinding(findings, 'state', error)
    }
    const changes = readChanges(context, this.#contents?.wals ?? findWals(options), findings)
    if (this.#contents === undefined) changes.sort((left, right) => left.row.rev - right.row.rev)
    const first = this.#contents?.counters.rev ?? changes[0]?.row.rev ?? 1
    const end = (changes.at(-1)?.row.rev ?? first - 1) + 1
    this.lostChanges = end - first - changes.length
    this.sstables = sortSSTables(this.#contents?.sstables ?? findSSTables(context, findings))
    this.#memtable = new Memtable(changes)
  }

  /**
   * Yields each row that is not known to be dead. For an unreadable row, `skip` receives the error, and the kind of the
   * row if the kind is known.
   */
  *rows(
    skip: (place: string, error: CofferError, kind?: number) => void,
  ): Generator<{ place: string; row: Row }> {
    const newest = this.#contents === undefined ? findNewest(this.sstables) : undefined
    for (const live of this.sstables) {
      const { sstable, dropped } = live
      const place = placeOf(sstable)
      for (let number = 0; number < sstable.rows; number++) {
        if (live.isDead(number)) continue
        let kind: number | undefined
        try {
          const entry = sstable.entry(number)
          kind = entry.kind
          const text = toText(entry.id)
          if (dropped.has(entry.tenant) || this.#memtable.hides(entry.tenant, text)) continue
          if (newest !== undefined && newest.get(text) !== entry.rev) continue
          // Without `state`, the two copies of a row with tenant keys look like two rows. Both copies are yielded,
          // because one copy may be damaged.
          if (entry.kind !== KEY_ROWS) newest?.delete(text)
          yield { place, row: sstable.row(number) }
        } catch (error) {
          if (!(error instanceof CofferError)) throw error
          skip(place, error, kind)
        }
      }
    }
    for (const row of this.#memtable.live()) yield { place: WAL_PLACE, row: plainRow(row) }
  }

  /**
   * The second copy of the rows with tenant keys. Null if the vault needs no copy, if an older version wrote the vault,
   * or if `state` cannot be opened.
   */
  get keyCopies(): SSTable | null {
    return this.#contents?.keyCopies ?? null
  }

  /** Yields the second copies of the rows with tenant keys, except rows that are known to be dead. */
  *keyRows(skip: (place: string, error: CofferError) => void): Generator<{ place: string; row: Row }> {
    const copies = this.keyCopies
    if (copies === null) return
    for (let number = 0; number < copies.rows; number++)
      try {
        const row = copies.row(number)
        if (!this.#memtable.hides(row.tenant, toText(row.id))) yield { place: placeOf(copies), row }
      } catch (error) {
        if (!(error instanceof CofferError)) throw error
        skip(placeOf(copies), error)
      }
  }

  /**
   * The readable rows, in the same form as the rows of an intact vault. Both copies of a row with tenant keys are
   * included, because one copy may be damaged. There are no pending entries, because all log entries in files are in
   * rows.
   */
  get vaultRows(): VaultRows {
    const found = this
    async function* rows(skip?: (kind: number | undefined) => void) {
      for (const { row } of found.rows((_place, _error, kind) => skip?.(kind))) yield row
      // Errors of the second copy are ignored, because an unreadable second copy loses no row.
      for (const { row } of found.keyRows(() => {})) yield row
    }
    const count = this.sstables.reduce((sum, { sstable }) => sum + sstable.rows, 0)
    return { times: this.#contents?.counters ?? createCounters(), pending: [], count, rows }
  }

  close(): void {
    for (const { sstable } of this.sstables) sstable.close()
    this.keyCopies?.close()
  }
}

/** Returns the newest revision of each row, by id. Without `state`, several tables may contain the same row. */
function findNewest(sstables: readonly LiveSSTable[]): Map<string, number> {
  const newest = new Map<string, number>()
  for (const { sstable } of sstables)
    for (let number = 0; number < sstable.rows; number++)
      try {
        const { id, rev } = sstable.entry(number)
        newest.set(toText(id), Math.max(rev, newest.get(toText(id)) ?? 0))
      } catch (error) {
        if (!(error instanceof CofferError)) throw error
      }
  return newest
}

function placeOf({ path }: SSTable): string {
  return path.slice(path.lastIndexOf('segments/'))
}

function addFinding(findings: Finding[], place: string, error: unknown): void {
  if (!(error instanceof CofferError)) throw error
  // Removes the end of the message, which advises to run this very check.
  const problem = error.message.replace(AFTER_DAMAGE, '').trim()
  const last = findings.at(-1)
  if (last?.place !== place || last.problem !== problem) findings.push({ place, problem })
}

function readChanges(context: LsmOptions, wals: readonly WalRef[], findings: Finding[]): Change[] {
  const changes: Change[] = []
  const note = (problem: string) => findings.push({ place: WAL_PLACE, problem })
  let end: string | undefined
  for (const ref of wals) {
    try {
      const { frames, intact, torn, problem } = readWal(context, ref)
      if (end !== undefined && end !== ref.previous) note('An older log ends before the next log begins.')
      end = problem === undefined ? toBase64(intact.tag) : undefined
      if (problem !== undefined) addFinding(findings, WAL_PLACE, problem)
      else if (torn > 0) note(`It has an unconfirmed end (${torn === 1 ? '1 byte' : `${torn} bytes`}).`)
      for (const frame of frames) changes.push(...frame.changes)
    } catch (error) {
      addFinding(findings, WAL_PLACE, error)
    }
  }
  return changes
}

/** Finds all logs if `state` cannot be opened. In the result, every log has the `previous` of a vault's first log. */
function findWals({ files, directory }: LsmOptions): WalRef[] {
  const ids = files.list(directory).flatMap((name) => /^journal-([0-9a-f]{32})$/.exec(name)?.[1] ?? [])
  return ids.map((id) => ({ id, previous: toBase64(NO_TAG) }))
}

function findSSTables(context: LsmContext, findings: Finding[]): LiveSSTable[] {
  const segments = `${context.directory}/segments`
  const names = context.files.stat(segments)?.kind === 'directory' ? context.files.list(segments) : []
  return names.flatMap((name) => {
    try {
      return /^[0-9a-f]{32}$/.test(name) ? openUnlisted(context, name) : []
    } catch (error) {
      addFinding(findings, `segments/${name}`, error)
      return []
    }
  })
}

/**
 * Opens a table if `state` cannot be opened. The tag of the table cannot be checked, because only `state` contains the
 * tag.
 */
function openUnlisted(context: LsmContext, id: string): LiveSSTable {
  const bytes = context.files.stat(sstablePath(context.directory, id))?.size ?? 0
  const meta = { id, tag: undefined, bytes, rows: 0, from: 0, to: 0 }
  const sstable = new SSTable(context, meta)
  const { low, high } = sstable.footer.ranges.seq
  Object.assign(meta, { rows: sstable.count(ROWS), from: low, to: high })
  return new LiveSSTable(sstable)
}

/** After this number of blocks or rows, other work may run, so that a server still accepts connections. */
const STRIDE = 64

const yieldToOthers = () => new Promise(setImmediate)

/** Reads every byte that the vault relies on. Requires: the caller has the lock, and everything is synced. */
export async function verifyVault(options: LsmOptions, check: CheckRow): Promise<Verification> {
  const findings: Verification['findings'] = []
  const vault = new DamagedVault(options, findings)
  const { sstables } = vault
  const result: Verification = { findings, readable: { records: 0, logs: 0 }, segments: sstables.length }
  for (const { sstable } of sstables) {
    try {
      verifyEnd(sstable, findings)
      await verifyBlocks(sstable)
    } catch (error) {
      addFinding(findings, placeOf(sstable), error)
    }
  }
  let count = 0
  const keyRows = new Set<string>()
  for (const { place, row } of vault.rows((place, error) => addFinding(findings, place, error))) {
    // Without `state`, the second copy of a row with tenant keys is found too, but is not counted again.
    if (keyRows.has(toText(row.id))) checkKeyRow(check, place, row, findings)
    else recordRow(result, check, place, row)
    if (row.kind === KEY_ROWS) keyRows.add(toText(row.id))
    if (++count % STRIDE === 0) await yieldToOthers()
  }
  await verifyKeyCopies(vault, check, findings)
  vault.close()
  const aside = listSetAside(options)
  return aside.length === 0 ? result : { ...result, set_aside: aside }
}

/**
 * The second copy of the rows with tenant keys is a table. This function checks the blocks of this table and the seal
 * of each row. The rows are not counted, because other tables contain these rows too.
 */
async function verifyKeyCopies(vault: DamagedVault, check: CheckRow, findings: Finding[]): Promise<void> {
  const { keyCopies } = vault
  if (keyCopies === null) return
  const add = (place: string, error: unknown) => addFinding(findings, place, error)
  try {
    verifyEnd(keyCopies, findings)
    await verifyBlocks(keyCopies)
  } catch (error) {
    add(placeOf(keyCopies), error)
  }
  for (const { place, row } of vault.keyRows(add)) checkKeyRow(check, place, row, findings)
}

function checkKeyRow(check: CheckRow, place: string, row: Row, findings: Finding[]): void {
  const { problem } = check(row)
  if (problem !== undefined) findings.push({ place, problem: `Second copy of row ${row.seq}: ${problem}` })
}

function verifyEnd(sstable: SSTable, findings: Finding[]): void {
  const damage = sstable.checkEnd()
  if (damage === undefined) return
  const problem = `${damage} Its rows can still be read. Check the disk, then write the table again: coffer vault compact`
  findings.push({ place: placeOf(sstable), problem })
}

async function verifyBlocks(sstable: SSTable): Promise<void> {
  if (sstable.count(ROWS) !== sstable.rows || sstable.count(IDS) !== sstable.rows)
    throw new CofferError('vault_damaged', 'Its number of entries differs from its number of rows.')
  let count = 0
  for (const section of [ROWS, ...INDEXES] as const)
    for (let entry = 0; entry < sstable.count(section); entry += ENTRIES_PER_BLOCK[section]) {
      sstable.openBlock(section, blockOf(section, entry))
      if (++count % STRIDE === 0) await yieldToOthers()
    }
}
