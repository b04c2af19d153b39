/** Salvage: writes every row of a damaged vault that opens, sealed anew, into a new vault. Does not change the old one. */
import { KINDS, kindOf } from '../../../domain/records.js'
import { CofferError } from '../../../errors.js'
import { toText } from '../../bytes.js'
import type { Finding, Row } from '../../engine.js'
import { sortSSTables } from '../contents.js'
import { type Counters, createCounters } from '../counters.js'
import { Memtable } from '../memtable.js'
import type { LsmOptions } from '../options.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'
import type { Resealed } from './rekey.js'
import { createFromRows } from './rows.js'
import { type Survey, survey } from './survey.js'

/** Numbers of rows by kind; `unknown` counts those of which not even the kind can be read. */
export type RowCounts = Record<string, number>

export interface Salvage {
  findings: Finding[]
  salvaged: RowCounts
  /** What was there and cannot be read; `changes` counts those of frames that are lost in between. */
  missing: RowCounts
}

export interface SalvageOptions {
  /** The damaged vault. Contract: the caller has its lock, and no engine is open. */
  present: LsmOptions
  /** The new vault, with the same header and keys. Contract: its directory exists; the caller writes its header last. */
  target: LsmOptions
  /** Called with every tenant's row that can be read, before `reseal`. @throws CofferError for one that does not open */
  learn(row: Row): unknown
  /** Rows of logs are not sealed anew but taken, to be written as new ones. */
  logs: {
    /** False for one that does not open. */
    take(row: Row): boolean
    lose(tenant: number): void
  }
  /** @throws CofferError for a row that does not open. */
  reseal(row: Row): Promise<Resealed>
}

/** @throws CofferError `storage_failed` */
export async function salvageRows(options: SalvageOptions): Promise<Salvage> {
  const result: Salvage = { findings: [], salvaged: {}, missing: {} }
  const found = await survey(options.present, result.findings)
  try {
    const damaged = readDamaged(found)
    for (const row of damaged.rows()) if (row?.kind === KINDS.tenant) tryTo(() => options.learn(row.read()))
    const counters: Counters = { ...createCounters(), ...found.contents?.counters }
    if (damaged.lostChanges > 0) result.missing.changes = damaged.lostChanges
    await createFromRows(options.target, sealAnew(damaged.rows(), options, result), { counters })
    return result
  } finally {
    for (const { sstable } of found.sstables) sstable.close()
  }
}

const NO_ID = new Uint8Array(16)

/** A row that exists or has existed. */
interface FoundRow {
  kind: number
  tenant: number
  /** @throws CofferError `vault_damaged` */
  read(): Row
}

/** Every row of the tables that is not known to be dead; undefined for one of which nothing can be read. */
function* walk(sstables: readonly LiveSSTable[], memtable: Memtable) {
  for (const live of sstables) {
    const { sstable, dropped } = live
    for (let number = 0; number < sstable.meta.rows; number++) {
      if (live.isDead(number)) continue
      const entry = tryTo(() => sstable.entry(number))
      if (entry === undefined) yield undefined
      else if (!dropped.has(entry.tenant) && !memtable.hides(entry.tenant, toText(entry.id)))
        yield { kind: entry.kind, tenant: entry.tenant, entry, read: () => sstable.row(number) }
    }
  }
}

/** The rows of a damaged vault: in tables, and newer ones in the log. */
function readDamaged({ contents, changes, sstables }: Survey) {
  const sorted = sortSSTables(sstables)
  const first = contents?.counters.rev ?? changes[0]?.row.rev ?? 1
  const end = (changes.at(-1)?.row.rev ?? first - 1) + 1
  const memtable = new Memtable(changes)
  /** The newest version of each row, where no `state` says which rows are dead. */
  const newest = new Map<string, number>()
  for (const seen of contents === undefined ? walk(sorted, memtable) : []) {
    const text = toText(seen?.entry.id ?? NO_ID)
    newest.set(text, Math.max(seen?.entry.rev ?? 0, newest.get(text) ?? 0))
  }

  function* rows(): Generator<FoundRow | undefined> {
    // An unfinished compaction has copied rows of tables that still exist.
    const taken = new Set<string>()
    for (const seen of walk(sorted, memtable)) {
      if (seen !== undefined && contents === undefined) {
        const text = toText(seen.entry.id)
        if (newest.get(text) !== seen.entry.rev || taken.has(text)) continue
        taken.add(text)
      }
      yield seen
    }
    for (const row of memtable.live()) yield { kind: row.kind, tenant: row.tenant, read: () => row }
  }

  /** `lostChanges`: those before the last one that are in no frame that opens. */
  return { lostChanges: end - first - changes.length, rows }
}

/** The result of `work`; undefined where it finds damage. */
function tryTo<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof CofferError) return undefined
    throw error
  }
}

async function* sealAnew(
  rows: Iterable<FoundRow | undefined>,
  { reseal, logs }: SalvageOptions,
  { salvaged, missing }: Salvage,
): AsyncGenerator<Row> {
  for (const seen of rows) {
    const row = seen === undefined ? undefined : tryTo(() => seen.read())
    if (seen !== undefined && seen.kind === KINDS.log_block) {
      if (row === undefined || !tryTo(() => logs.take(row))) logs.lose(seen.tenant)
      continue
    }
    const resealed = row === undefined ? undefined : await reseal(row).catch(refuseOnly)
    const kind = seen === undefined ? 'unknown' : (tryTo(() => kindOf(seen.kind)) ?? 'unknown')
    const tally = resealed === undefined ? missing : salvaged
    tally[kind] = (tally[kind] ?? 0) + 1
    if (row !== undefined && resealed !== undefined) yield renew(row, resealed)
  }
}

/** Written out, because a row of the log is no plain object. */
function renew(row: Row, resealed: Resealed): Row {
  const { kind, tenant, seq, rev, created, modified, expires } = row
  return { kind, tenant, seq, rev, created, modified, expires, ...resealed }
}

function refuseOnly(error: unknown): undefined {
  if (!(error instanceof CofferError)) throw error
}
