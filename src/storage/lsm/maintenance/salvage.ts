/** Salvage: writes every row of a damaged vault that opens, sealed anew, into a new vault. Does not change the old one. */
import { KINDS, kindOf } from '../../../domain/records.js'
import { CofferError } from '../../../errors.js'
import { toText } from '../../bytes.js'
import type { Finding } from '../../engine.js'
import { sortSSTables } from '../contents.js'
import { type Counters, createCounters } from '../counters.js'
import { chainRow } from '../log-chain.js'
import { Memtable } from '../memtable.js'
import { createContexts, type LsmOptions } from '../options.js'
import { createLsmTree } from '../recovery.js'
import type { Family } from '../sstable/format.js'
import type { LiveSSTable } from '../sstable/live-sstable.js'
import type { StoredRow } from '../sstable/row-change.js'
import { finish, inBatches, writeSSTables } from '../sstable/row-writer.js'
import type { Resealed } from './rekey.js'
import { type Survey, survey } from './survey.js'

/** Numbers of rows by kind; `unknown` counts those of which not even the kind can be read. */
export type RowCounts = Record<string, number>

export interface Salvage {
  findings: Finding[]
  salvaged: RowCounts
  /** What was there and cannot be read; `changes` counts those of frames that are lost in between. */
  missing: RowCounts
  /** Log records that are known to be missing, by tenant. */
  missingLogs: Map<number, number>
}

export interface SalvageOptions {
  /** The damaged vault. Contract: the caller has its lock, and no engine is open. */
  present: LsmOptions
  /** The new vault, with the same header and keys. Contract: its directory exists; the caller writes its header last. */
  target: LsmOptions
  /** Called with every tenant's row that can be read, before `reseal`. @throws CofferError for one that does not open */
  learn(row: StoredRow, family: Family): unknown
  /** @throws CofferError for a row that does not open. */
  reseal(row: StoredRow, family: Family): Promise<Resealed>
}

/** @throws CofferError `storage_failed` */
export async function salvageRows(options: SalvageOptions): Promise<Salvage> {
  const result: Salvage = { findings: [], salvaged: {}, missing: {}, missingLogs: new Map() }
  const found = await survey(options.present, result.findings)
  try {
    const damaged = new DamagedRows(found)
    for (const row of damaged.rows('records'))
      if (row?.kind === KINDS.tenant) tryTo(() => options.learn(row.read(), 'records'))
    const counters: Counters = { ...createCounters(), ...found.contents?.counters, chains: new Map() }
    if (damaged.lostChanges > 0) result.missing.changes = damaged.lostChanges
    const sstables: LiveSSTable[] = []
    for (const family of ['records', 'logs'] as const) {
      const rows = sealAnew(damaged.rows(family), family, options, result)
      for await (const batch of inBatches(rows))
        sstables.push(...write(options.target, family, batch, counters))
    }
    const tree = await createLsmTree(options.target, { counters, sstables: sortSSTables(sstables) })
    tree.close()
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
  read(): StoredRow
}

/** Every row of the tables that is not known to be dead; undefined for one of which nothing can be read. */
function* walk(sstables: readonly LiveSSTable[], family: Family, memtable: Memtable) {
  for (const live of sstables) {
    const { sstable, dropped } = live
    if (sstable.meta.family !== family) continue
    for (let number = 0; number < sstable.meta.rows; number++) {
      if (live.isDead(number)) continue
      const entry = tryTo(() => sstable.entry(number))
      if (entry === undefined) yield undefined
      else if (!dropped.has(entry.tenant) && !memtable.isShadowed(family, entry))
        yield { kind: entry.kind, tenant: entry.tenant, entry, read: () => sstable.row(number) }
    }
  }
}

/** The rows of a damaged vault: in tables, and newer ones in the log. */
class DamagedRows {
  readonly #sstables: readonly LiveSSTable[]
  readonly #memtable: Memtable
  /** The newest version of each row, where no `state` says which rows are dead. */
  readonly #newest: Map<string, number> | undefined
  /** Changes before the last one that are in no frame that opens. */
  readonly lostChanges: number

  constructor({ contents, changes, sstables }: Survey) {
    this.#sstables = sortSSTables(sstables)
    const first = contents?.counters.rev ?? changes[0]?.row.rev ?? 1
    const end = (changes.at(-1)?.row.rev ?? first - 1) + 1
    this.lostChanges = end - first - changes.length
    this.#memtable = new Memtable(changes)
    if (contents !== undefined) return
    this.#newest = new Map()
    for (const family of ['records', 'logs'] as const) {
      for (const seen of walk(this.#sstables, family, this.#memtable)) {
        const text = toText(seen?.entry.id ?? NO_ID)
        this.#newest.set(text, Math.max(seen?.entry.rev ?? 0, this.#newest.get(text) ?? 0))
      }
    }
  }

  *rows(family: Family): Generator<FoundRow | undefined> {
    // An unfinished compaction has copied rows of tables that still exist.
    const taken = new Set<string>()
    for (const seen of walk(this.#sstables, family, this.#memtable)) {
      if (seen !== undefined && this.#newest !== undefined) {
        const text = toText(seen.entry.id)
        if (this.#newest.get(text) !== seen.entry.rev || taken.has(text)) continue
        taken.add(text)
      }
      yield seen
    }
    for (const row of this.#memtable.live(family))
      yield { kind: row.kind, tenant: row.tenant, read: () => row }
  }
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
  family: Family,
  { reseal }: SalvageOptions,
  { salvaged, missing, missingLogs }: Salvage,
): AsyncGenerator<StoredRow> {
  for (const seen of rows) {
    const row = seen === undefined ? undefined : tryTo(() => seen.read())
    const resealed = row === undefined ? undefined : await reseal(row, family).catch(refuseOnly)
    const kind = seen === undefined ? 'unknown' : (tryTo(() => kindOf(seen.kind)) ?? 'unknown')
    const tally = resealed === undefined ? missing : salvaged
    tally[kind] = (tally[kind] ?? 0) + 1
    if (row !== undefined && resealed !== undefined) yield renew(row, resealed)
    else if (family === 'logs' && seen !== undefined)
      missingLogs.set(seen.tenant, (missingLogs.get(seen.tenant) ?? 0) + 1)
  }
}

/** Written out, because a row of the log is no plain object. */
function renew(row: StoredRow, resealed: Resealed): StoredRow {
  const { kind, tenant, seq, rev, created, modified, expires, chain } = row
  return { kind, tenant, seq, rev, created, modified, expires, chain, ...resealed }
}

function refuseOnly(error: unknown): undefined {
  if (!(error instanceof CofferError)) throw error
}

/** Writes rows of the new vault, and moves its counters past them. */
function write(
  target: LsmOptions,
  family: Family,
  rows: readonly StoredRow[],
  counters: Counters,
): LiveSSTable[] {
  const isLog = family === 'logs'
  const next = isLog ? 'logSeq' : 'seq'
  for (const { seq, rev, created, modified } of rows) {
    counters[next] = Math.max(counters[next], seq + 1)
    counters.rev = Math.max(counters.rev, rev + 1)
    counters.time = Math.max(counters.time, created, modified)
  }
  const sorted = [...rows].sort((left, right) => left.seq - right.seq)
  const chained = isLog ? sorted.map((row) => chainRow(row, counters.chains, target.keys.chain)) : sorted
  return finish(writeSSTables(createContexts(target).sstables, family, chained))
}
