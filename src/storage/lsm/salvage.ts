/**
 * Brings what can be read of a damaged vault into a new one: every row that opens, sealed anew, in new segments. Nothing
 * of the old vault is changed. How a row is sealed, and what records mean to one another, is the caller's.
 */
import { KINDS } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import { kindOf } from '../barrier/sealing.js'
import { toText } from '../bytes.js'
import type { Finding } from '../engine.js'
import { orderSegments } from './contents.js'
import { rechain } from './log-chain.js'
import { Overlay } from './memtable.js'
import { createLedger, prepare } from './recovery.js'
import type { Resealed } from './rekey.js'
import type { StoredRow } from './row-change.js'
import type { Family } from './sstable/format.js'
import { finish, inBatches, writeRowsAsSegments } from './sstable/row-writer.js'
import type { LiveSegment } from './sstable/search.js'
import { type Survey, survey } from './survey.js'
import { type Counters, createCounters } from './transaction.js'
import type { LedgerOptions } from './tree.js'

/** Numbers of rows by kind; `unknown` counts those of which not even the kind can be read. */
export type Tally = Record<string, number>

export interface Salvage {
  findings: Finding[]
  salvaged: Tally
  /** What was there and cannot be read; `changes` are rows written, replaced or removed by frames in between. */
  missing: Tally
  /** Log records that are known to be missing, by tenant. */
  missingLogs: Map<number, number>
}

export interface SalvageOptions {
  /** The damaged vault. Contract: the caller owns it, and no engine is open on it. */
  present: LedgerOptions
  /** The new one, with the same header and keys; its directory is there and its header is the caller's to write, last. */
  target: LedgerOptions
  /** Asked of every tenant's row that opens or not, before anything is sealed. */
  learn(row: StoredRow, family: Family): unknown
  /** @throws CofferError for a row that does not open. */
  reseal(row: StoredRow, family: Family): Promise<Resealed>
}

/** @throws CofferError `storage_failed` */
export async function salvageRows(options: SalvageOptions): Promise<Salvage> {
  const result: Salvage = { findings: [], salvaged: {}, missing: {}, missingLogs: new Map() }
  const found = await survey(options.present, result.findings)
  try {
    const wreck = new Wreck(found)
    for (const row of wreck.rows('records'))
      if (row?.kind === KINDS.tenant) tryTo(() => options.learn(row.read(), 'records'))
    const counters: Counters = { ...createCounters(), ...found.contents?.counters, chains: new Map() }
    if (wreck.lostChanges > 0) result.missing.changes = wreck.lostChanges
    const segments: LiveSegment[] = []
    for (const family of ['records', 'logs'] as const) {
      const rows = sealAnew(wreck.rows(family), family, options, result)
      for await (const batch of inBatches(rows))
        segments.push(...write(options.target, family, batch, counters))
    }
    const ledger = await createLedger(options.target, { counters, segments: orderSegments(segments) })
    ledger.close()
    return result
  } finally {
    for (const { segment } of found.segments) segment.close()
  }
}

const NO_ID = new Uint8Array(16)

/** A row that is known to be there, or to have been. */
interface Sighting {
  kind: number
  tenant: number
  /** @throws CofferError `vault_damaged` */
  read(): StoredRow
}

/** Every row of the segments that is not known to be dead; undefined for one of which nothing can be read. */
function* walk(segments: readonly LiveSegment[], family: Family, overlay: Overlay) {
  for (const live of segments) {
    const { segment, dropped } = live
    if (segment.name.family !== family) continue
    for (let number = 0; number < segment.name.rows; number++) {
      if (live.isDead(number)) continue
      const entry = tryTo(() => segment.entry(number))
      if (entry === undefined) yield undefined
      else if (!dropped.has(entry.tenant) && !isOver(overlay, family, entry))
        yield { kind: entry.kind, tenant: entry.tenant, entry, read: () => segment.row(number) }
    }
  }
}

function isOver(
  overlay: Overlay,
  family: Family,
  { id, tenant }: { id: Uint8Array; tenant: number },
): boolean {
  return family === 'logs' ? overlay.dropped.has(tenant) : overlay.hides(tenant, toText(id))
}

/** What is there of a damaged vault: in segments, and above them in the journal. */
class Wreck {
  readonly #segments: readonly LiveSegment[]
  readonly #overlay = new Overlay()
  /** Where `state` does not tell which rows are dead: the newest version of each. */
  readonly #newest: Map<string, number> | undefined
  /** Changes that are in no frame which opens, though later ones are. */
  readonly lostChanges: number

  constructor({ contents, changes, segments }: Survey) {
    this.#segments = orderSegments(segments)
    const first = contents?.counters.rev ?? changes[0]?.row.rev ?? 1
    const end = (changes.at(-1)?.row.rev ?? first - 1) + 1
    this.lostChanges = end - first - changes.length
    for (const change of changes) this.#overlay.apply(change)
    if (contents !== undefined) return
    this.#newest = new Map()
    for (const family of ['records', 'logs'] as const) {
      for (const seen of walk(this.#segments, family, this.#overlay)) {
        const text = toText(seen?.entry.id ?? NO_ID)
        this.#newest.set(text, Math.max(seen?.entry.rev ?? 0, this.#newest.get(text) ?? 0))
      }
    }
  }

  *rows(family: Family): Generator<Sighting | undefined> {
    // A merge that was under way has copied rows of segments that are still there.
    const taken = new Set<string>()
    for (const seen of walk(this.#segments, family, this.#overlay)) {
      if (seen !== undefined && this.#newest !== undefined) {
        const text = toText(seen.entry.id)
        if (this.#newest.get(text) !== seen.entry.rev || taken.has(text)) continue
        taken.add(text)
      }
      yield seen
    }
    for (const row of this.#overlay.live(family))
      yield { kind: row.kind, tenant: row.tenant, read: () => row }
  }
}

/** What `work` gives, or undefined where it finds damage. */
function tryTo<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof CofferError) return undefined
    throw error
  }
}

async function* sealAnew(
  rows: Iterable<Sighting | undefined>,
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

/** Spelled out: a row of the journal is no plain object. */
function renew(row: StoredRow, resealed: Resealed): StoredRow {
  const { kind, tenant, seq, rev, created, modified, expires, chain } = row
  return { kind, tenant, seq, rev, created, modified, expires, chain, ...resealed }
}

function refuseOnly(error: unknown): undefined {
  if (!(error instanceof CofferError)) throw error
}

/** Writes rows of the new vault, and moves its counters past them. */
function write(
  target: LedgerOptions,
  family: Family,
  rows: readonly StoredRow[],
  counters: Counters,
): LiveSegment[] {
  const { files, directory, random, keys } = target
  const isLog = family === 'logs'
  for (const { seq, rev, created, modified } of rows) {
    const next = isLog ? 'logSeq' : 'seq'
    counters[next] = Math.max(counters[next], seq + 1)
    counters.rev = Math.max(counters.rev, rev + 1)
    counters.time = Math.max(counters.time, created, modified)
  }
  const sorted = [...rows].sort((left, right) => left.seq - right.seq)
  const chained = isLog ? sorted.map((row) => rechain(row, counters.chains, keys.chain)) : sorted
  const place = { files, directory, random, cipher: keys.segment }
  return finish(writeRowsAsSegments(place, prepare(target).reader, family, chained))
}
