/** Reads what can be read of a vault that may not open, and finds what is wrong with it. Changes nothing. */
import { formatDate } from '../../../domain/dates.js'
import { AFTER_DAMAGE, CofferError } from '../../../errors.js'
import { isEqual, toText } from '../../bytes.js'
import type { CheckRow, Finding, Row, Verification } from '../../engine.js'
import { createCounters, isAhead } from '../../time.js'
import { plainRow } from '../../vault-rows.js'
import { type Contents, digestHeader, readContents, sortSSTables } from '../manifest.js'
import { Memtable } from '../memtable.js'
import { createContexts, type LsmOptions, type SSTableContext } from '../options.js'
import { ASIDE } from '../recovery.js'
import type { Change } from '../row-change.js'
import { blockOf, ENTRIES_PER_BLOCK, IDS, INDEXES, ROWS, sstablePath } from '../sstable/format.js'
import { LiveSSTable } from '../sstable/live-sstable.js'
import { SSTable } from '../sstable/reader.js'
import { NO_TAG, readWal, type WalContext, type WalRef } from '../wal.js'

const WAL_PLACE = 'the write-ahead log'

/** Without `contents`, when `state` does not open, it is unknown which rows were replaced or removed. */
interface DamagedVault {
  contents: Contents | undefined
  changes: readonly Change[]
  sstables: readonly LiveSSTable[]
  /** The number of changes that are in no frame that opens, before the last one that is. */
  lostChanges: number
}

async function openDamaged(options: LsmOptions, findings: Finding[]): Promise<DamagedVault> {
  const contexts = createContexts(options)
  let contents: Contents | undefined
  try {
    contents = readContents(contexts)
    if (!contents.headers.includes(digestHeader(options.keys, options.header)))
      findings.push({ place: 'vault.json', problem: 'It is not the one this vault had last.' })
  } catch (error) {
    addFinding(findings, 'state', error)
  }
  const changes = readChanges(contexts.wals, contents?.wals ?? findWals(options), findings)
  if (contents === undefined) changes.sort((left, right) => left.row.rev - right.row.rev)
  const first = contents?.counters.rev ?? changes[0]?.row.rev ?? 1
  const end = (changes.at(-1)?.row.rev ?? first - 1) + 1
  const sstables = contents?.sstables ?? findSSTables(contexts.sstables, findings)
  return { contents, changes, sstables, lostChanges: end - first - changes.length }
}

/** A row that is not known to be dead; if it cannot be read, why, and its kind if that is known. */
type FoundRow = { place: string } & (
  | { row: Row }
  | { row?: undefined; kind: number | undefined; error: CofferError }
)

function* readDamagedRows({ contents, changes, sstables }: DamagedVault): Generator<FoundRow> {
  const memtable = new Memtable(changes)
  const newest = contents === undefined ? findNewest(sstables) : undefined
  for (const live of sortSSTables(sstables)) {
    const { sstable, dropped } = live
    const place = placeOf(sstable)
    for (let number = 0; number < sstable.rows; number++) {
      if (live.isDead(number)) continue
      let kind: number | undefined
      try {
        const entry = sstable.entry(number)
        kind = entry.kind
        const text = toText(entry.id)
        if (dropped.has(entry.tenant) || memtable.hides(entry.tenant, text)) continue
        if (newest !== undefined && newest.get(text) !== entry.rev) continue
        newest?.delete(text)
        yield { place, row: sstable.row(number) }
      } catch (error) {
        if (!(error instanceof CofferError)) throw error
        yield { place, kind, error }
      }
    }
  }
  for (const row of memtable.live()) yield { place: WAL_PLACE, row: plainRow(row) }
}

/** The rows of a damaged vault that are in files; what is wrong with the files is added to `findings`. */
export async function openDamagedRows(options: LsmOptions, findings: Finding[]) {
  const damaged = await openDamaged(options, findings)
  const { contents, sstables, lostChanges } = damaged
  async function* rows(skip?: (kind: number | undefined) => void) {
    for (const found of readDamagedRows(damaged))
      if (found.row === undefined) skip?.(found.kind)
      else yield found.row
  }
  const count = sstables.reduce((sum, { sstable }) => sum + sstable.rows, 0)
  return {
    rows: { times: contents?.counters ?? createCounters(), pending: [], count, rows },
    lostChanges,
    close: () => {
      for (const { sstable } of sstables) sstable.close()
    },
  }
}

/** The newest version of each row, by id: without `state`, tables may have older ones, and copies of one. */
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

/** Adds an error as a finding. @throws what is no CofferError */
function addFinding(findings: Finding[], place: string, error: unknown): void {
  if (!(error instanceof CofferError)) throw error
  // Without the advice at the end of the message, which is to run this check.
  const problem = error.message.replace(AFTER_DAMAGE, '').trim()
  const last = findings.at(-1)
  if (last?.place !== place || last.problem !== problem) findings.push({ place, problem })
}

function readChanges(context: WalContext, wals: readonly WalRef[], findings: Finding[]): Change[] {
  const changes: Change[] = []
  const note = (problem: string) => findings.push({ place: WAL_PLACE, problem })
  let end: Uint8Array | undefined
  for (const ref of wals) {
    try {
      const { frames, intact, torn, problem } = readWal(context, ref)
      if (end !== undefined && !isEqual(end, ref.previous))
        note('An older one ends before the next one begins.')
      end = problem === undefined ? intact.tag : undefined
      if (problem !== undefined) addFinding(findings, WAL_PLACE, problem)
      else if (torn > 0) note(`It ends with ${torn} unconfirmed bytes.`)
      for (const frame of frames) changes.push(...frame.changes)
    } catch (error) {
      addFinding(findings, WAL_PLACE, error)
    }
  }
  return changes
}

/** Without `state`: every log there is. `previous` is right only for a vault's first log. */
function findWals({ files, directory }: LsmOptions): WalRef[] {
  const ids = files.list(directory).flatMap((name) => /^journal-([0-9a-f]{32})$/.exec(name)?.[1] ?? [])
  return ids.map((id) => ({ id: Buffer.from(id, 'hex'), previous: NO_TAG }))
}

/** Without `state`: every table whose own footer can be read. */
function findSSTables(context: SSTableContext, findings: Finding[]): LiveSSTable[] {
  const names = context.files.list(`${context.directory}/segments`)
  return names.flatMap((name) => {
    try {
      return /^[0-9a-f]{32}$/.test(name) ? openUnlisted(context, Buffer.from(name, 'hex')) : []
    } catch (error) {
      addFinding(findings, `segments/${name}`, error)
      return []
    }
  })
}

/** A table that no `state` describes: its tag is not known. */
function openUnlisted(context: SSTableContext, id: Uint8Array): LiveSSTable {
  const bytes = context.files.stat(sstablePath(context.directory, id))?.size ?? 0
  const meta = { id, tag: undefined, bytes, rows: 0, from: 0, to: 0 }
  const sstable = new SSTable(context, meta)
  const { low, high } = sstable.footer.ranges.seq
  Object.assign(meta, { rows: sstable.count(ROWS), from: low, to: high })
  return new LiveSSTable(sstable)
}

/**
 * Reads every byte that a vault relies on, and reports what is damaged and what is readable. Contract: the caller has the
 * vault's lock, and all that was written is synced.
 */
export async function verifyVault(options: LsmOptions, check: CheckRow): Promise<Verification> {
  const findings: Verification['findings'] = []
  const vault = await openDamaged(options, findings)
  const { sstables } = vault
  const result: Verification = { findings, readable: { records: 0, logs: 0 }, segments: sstables.length }
  for (const { sstable } of sstables) {
    try {
      verifyBlocks(sstable)
    } catch (error) {
      addFinding(findings, placeOf(sstable), error)
    }
  }
  const now = options.clock()
  for (const { place, ...found } of readDamagedRows(vault)) {
    if (found.row === undefined) addFinding(findings, place, found.error)
    else recordRow(result, check, place, found.row, now)
  }
  for (const { sstable } of sstables) sstable.close()
  const aside = options.files.list(options.directory).filter((name) => name.startsWith(ASIDE))
  return aside.length === 0 ? result : { ...result, set_aside: aside }
}

export function recordRow(result: Verification, check: CheckRow, place: string, row: Row, now: number): void {
  const { problem, logs } = check(row)
  if (problem !== undefined) result.findings.push({ place, problem: `Row ${row.seq}: ${problem}` })
  else if (logs === undefined) result.readable.records++
  else result.readable.logs += logs.length
  if (logs === undefined) recordDate(result, 'records', row.created, now)
  for (const time of logs ?? []) recordDate(result, 'logs', time, now)
}

function recordDate(result: Verification, family: 'records' | 'logs', created: number, now: number): void {
  if (!isAhead(created, now)) return
  result.dated_ahead ??= { records: 0, logs: 0, newest: '' }
  const ahead = result.dated_ahead
  const date = formatDate(created)
  ahead[family]++
  if (date > ahead.newest) ahead.newest = date
}

/** Opens every block of the rows and of the indexes. */
function verifyBlocks(sstable: SSTable): void {
  if (sstable.count(ROWS) !== sstable.rows || sstable.count(IDS) !== sstable.rows)
    throw new CofferError('vault_damaged', 'Its count does not agree with its rows.')
  for (const section of [ROWS, ...INDEXES] as const)
    for (let entry = 0; entry < sstable.count(section); entry += ENTRIES_PER_BLOCK[section])
      sstable.openBlock(section, blockOf(section, entry))
}
