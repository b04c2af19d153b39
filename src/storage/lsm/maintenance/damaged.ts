/** Reads what can be read of a vault that may not open, and finds what is wrong with it. Changes nothing. */
import { AFTER_DAMAGE, CofferError } from '../../../errors.js'
import { decodeId, isEqual, toText } from '../../bytes.js'
import type { Finding, Row } from '../../engine.js'
import { plainRow } from '../../vault-rows.js'
import { type Contents, decodeContents, sortSSTables } from '../contents.js'
import { digestHeader } from '../manifest.js'
import { Memtable } from '../memtable.js'
import { createContexts, type LsmOptions } from '../options.js'
import { NO_TAG } from '../recovery.js'
import { sstablePath, TAG_BYTES, TAIL_LENGTH } from '../sstable/format.js'
import { LiveSSTable } from '../sstable/live-sstable.js'
import { SSTable, type SSTableContext } from '../sstable/reader.js'
import type { Change, Frame } from '../sstable/row-change.js'
import { openWal, readDamagedWal, type WalContext, type WalRef } from '../wal.js'

export const WAL_PLACE = 'the write-ahead log'

/** Without `contents`, when `state` does not open, it is unknown which rows were replaced or removed. */
interface DamagedVault {
  contents: Contents | undefined
  /** From the write-ahead logs. */
  changes: readonly Change[]
  sstables: readonly LiveSSTable[]
  /** The number of changes that are in no frame that opens, before the last one that is. */
  lostChanges: number
}

/** Adds what is wrong to `findings`. The caller closes the tables. */
export async function openDamaged(options: LsmOptions, findings: Finding[]): Promise<DamagedVault> {
  const contents = await readContents(options, findings)
  const changes = readChanges(options, contents, findings)
  const first = contents?.counters.rev ?? changes[0]?.row.rev ?? 1
  const end = (changes.at(-1)?.row.rev ?? first - 1) + 1
  const sstables = contents?.sstables ?? findSSTables(options, findings)
  return { contents, changes, sstables, lostChanges: end - first - changes.length }
}

/** Every row that can be read and is not known to be dead. `skip` gets the kind, if known, of each that cannot. */
export function* readDamagedRows(
  { contents, changes, sstables }: DamagedVault,
  skip: (kind: number | undefined) => void = () => undefined,
): Generator<Row> {
  const memtable = new Memtable(changes)
  /** Without `state`: the newest version of each row, which an unfinished compaction may have copied. */
  const newest = new Map<string, number>()
  const taken = new Set<string>()
  const isOld = ({ id, rev }: Pick<Row, 'id' | 'rev'>) => {
    const text = toText(id)
    if (contents !== undefined) return false
    if (newest.get(text) !== rev || taken.has(text)) return true
    taken.add(text)
    return false
  }
  if (contents === undefined)
    for (const { entry } of readEntries(sstables, memtable))
      if (entry !== undefined)
        newest.set(toText(entry.id), Math.max(entry.rev, newest.get(toText(entry.id)) ?? 0))
  for (const { entry, sstable, number } of readEntries(sstables, memtable)) {
    if (entry !== undefined && isOld(entry)) continue
    const row = entry && orUndefined(() => sstable.row(number))
    if (row === undefined) skip(entry?.kind)
    else yield row
  }
  for (const row of memtable.live()) yield plainRow(row)
}

/** The index entries of rows that are not known to be dead; undefined for one that cannot be read. */
function* readEntries(sstables: readonly LiveSSTable[], memtable: Memtable) {
  for (const live of sortSSTables(sstables)) {
    const { sstable, dropped } = live
    for (let number = 0; number < sstable.meta.rows; number++) {
      if (live.isDead(number)) continue
      const entry = orUndefined(() => sstable.entry(number))
      const isDead = entry && (dropped.has(entry.tenant) || memtable.hides(entry.tenant, toText(entry.id)))
      if (!isDead) yield { entry, sstable, number }
    }
  }
}

/** The result of `read`; undefined if it finds damage. */
function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof CofferError) return undefined
    throw error
  }
}

/** Adds an error as a finding. @throws what is no CofferError */
export function addFinding(findings: Finding[], place: string, error: unknown): void {
  if (!(error instanceof CofferError)) throw error
  // Without the advice at the end of the message, which is to run this check.
  const problem = error.message.replace(AFTER_DAMAGE, '').trim()
  const last = findings.at(-1)
  if (last?.place !== place || last.problem !== problem) findings.push({ place, problem })
}

async function readContents(options: LsmOptions, findings: Finding[]): Promise<Contents | undefined> {
  const { sstables, state } = createContexts(options)
  try {
    await state.read()
  } catch (error) {
    addFinding(findings, 'state', error)
    return undefined
  }
  const contents = decodeContents(state.data, sstables)
  if (!contents.headers.includes(digestHeader(options.keys, options.header)))
    findings.push({ place: 'vault.json', problem: 'It is not the one this vault had last.' })
  return contents
}

function readChanges(options: LsmOptions, contents: Contents | undefined, findings: Finding[]): Change[] {
  const { wals } = createContexts(options)
  const changes: Change[] = []
  let ends: Uint8Array | undefined
  for (const ref of contents?.wals ?? findWals(options)) {
    try {
      const { wal, frames, torn } = openWal(wals, ref)
      wal.close()
      if (ends !== undefined && !isEqual(ends, ref.previous))
        findings.push({ place: WAL_PLACE, problem: 'An older one ends before the next one begins.' })
      ends = wal.position.tag
      if (torn > 0) findings.push({ place: WAL_PLACE, problem: `It ends with ${torn} unconfirmed bytes.` })
      for (const frame of frames) changes.push(...frame.changes)
    } catch (error) {
      addFinding(findings, WAL_PLACE, error)
      for (const frame of readDamaged(wals, ref, findings)) changes.push(...frame.changes)
    }
  }
  return changes
}

function readDamaged(context: WalContext, ref: WalRef, findings: Finding[]): Frame[] {
  try {
    const { frames, gaps } = readDamagedWal(context, ref)
    for (const { at, bytes, before } of gaps) {
      const problem = `${bytes} bytes from byte ${at} on do not open; ${before} frames before them and ${frames.length - before} after them do.`
      findings.push({ place: WAL_PLACE, problem })
    }
    return frames
  } catch (error) {
    addFinding(findings, WAL_PLACE, error)
    return []
  }
}

/** Without `state`: every log there is. `previous` is right only for a vault's first log. */
function findWals({ files, directory }: LsmOptions): WalRef[] {
  const ids = files
    .list(directory)
    .map((name) => (name.startsWith('journal-') ? decodeId(name.slice(8)) : undefined))
  return ids.filter((id) => id?.length === 16).map((id) => ({ id: id!, previous: NO_TAG }))
}

/** Without `state`: every table whose own footer can be read. */
function findSSTables(options: LsmOptions, findings: Finding[]): LiveSSTable[] {
  const { sstables } = createContexts(options)
  const found: LiveSSTable[] = []
  for (const name of options.files.list(`${options.directory}/segments`)) {
    try {
      const sstable = openUnlisted(sstables, name)
      if (sstable !== undefined) found.push(new LiveSSTable(sstable))
    } catch (error) {
      addFinding(findings, `segments/${name}`, error)
    }
  }
  return found
}

/** A table that no `state` describes: its tag is read from the file itself. */
function openUnlisted(context: SSTableContext, name: string): SSTable | undefined {
  const id = decodeId(name)
  if (id === undefined || id.length !== 16) return undefined
  const { files, directory } = context
  const path = sstablePath(directory, id)
  const bytes = files.stat(path)?.size ?? 0
  const file = files.open(path, 'read')
  if (file === undefined || bytes < TAIL_LENGTH + TAG_BYTES) return undefined
  const tag = new Uint8Array(TAG_BYTES)
  files.read(file, tag, bytes - TAIL_LENGTH - TAG_BYTES)
  files.close(file)
  const draft = { id, tag, bytes, rows: 0, from: 0, to: 0 }
  const probe = new SSTable(context, draft)
  const { rows, seq } = probe.footer
  probe.close()
  return new SSTable(context, { ...draft, rows, from: seq.low, to: seq.high })
}
