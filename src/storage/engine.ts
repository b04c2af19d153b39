/** The port of storage engines, whose port above is `store.ts`; `barrier/` translates between the two. */
import type { Awaitable } from '../domain/awaitable.js'
import { CofferError } from '../errors.js'
import type { ClockState, Durability, Page, RangeField } from './store.js'
import type { Times } from './time.js'
import type { Header } from './vault-file.js'

export type { Awaitable }

/** 16 bytes: keyed digest of kind, tenant and id. */
export type RowId = Uint8Array
/** 8 bytes: keyed digest of one look-up value of a row. */
export type Key = Uint8Array

export interface Row {
  /** u8 */
  kind: number
  /** u16 */
  tenant: number
  id: RowId
  /** Assigned at creation and kept by updates; higher than that of all rows of earlier units. Gaps are possible. */
  seq: number
  /** Assigned to each version that is written; unique among committed versions. Gaps are possible. */
  rev: number
  /** Wall clock, ms since the epoch. Rows are ordered by `seq`, not by this. */
  created: number
  /** ms since the epoch, 0 for never. */
  modified: number
  /** ms since the epoch, 0 for never. A row is gone from every read once `expires <= now`. */
  expires: number
  /** Keys one after another, 8 bytes each; the first is "all of this tenant and kind". At most 255. */
  keys: Uint8Array
  sealed: Uint8Array
  /** Bytes of the sealed record if it was not read: `sealed` is empty then. */
  unread?: number
}

/** The part of a row that a new root key replaces. Contract: `sealed` is bound to the same `rev` as before. */
export type Resealed = Pick<Row, 'id' | 'keys' | 'sealed'>

export type Where =
  | { key: Key }
  | { ids: readonly RowId[] }
  | { and: readonly Where[] }
  | { or: readonly Where[] }
  | { not: Where }
  /** `from` inclusive, `below` exclusive; a row whose field is 0 (never) is in no range. */
  | { range: RangeField; from?: number; below?: number }

export interface Query extends Page {
  kind: number
  tenant: number
  /** The key every row of this tenant and kind carries first. */
  all: Key
  where?: Where
  /** Once a page has this many sealed bytes, its further large rows are left `unread`. */
  maxBytes?: number
}

/**
 * Finds the newest matches with a `seq` below this, newest first; or, with `above`, the oldest with a `seq` above that,
 * oldest first. The cost depends on `size`, not on the number of matches. Contract: at most one of both is given.
 */
export interface SeekQuery extends Omit<Query, 'page'> {
  below?: number | undefined
  above?: number | undefined
}

export interface RowPage {
  /** Newest (highest `seq`) first. */
  rows: Row[]
  /** All live rows that match, exactly. */
  total: number
}

/** A row to be written. Without `seq` it is new: the engine assigns `seq` and `created`. */
export interface Draft
  extends Pick<Row, 'kind' | 'tenant' | 'id' | 'modified' | 'expires' | 'keys'>,
    Partial<Pick<Row, 'seq' | 'created'>> {
  /** Returns `sealed`, bound to `rev`. Called once `rev` is assigned, and again if the engine assigns another. */
  seal(rev: number): Uint8Array
}

/** An entry of a tenant's log. It is opaque to engines, which store it in rows by {@link LogSealer.seal}. */
export interface LogEntry {
  readonly tenant: number
  /** Approximate size in a row. */
  readonly bytes: number
  /** ms since the epoch. An engine with concurrent units replaces it, so that times follow the order of commits. */
  time: number
}

/** Entries of one tenant that an engine of several processes commits now and adds to a chain later. */
export interface PendingBatch {
  readonly id: Uint8Array
  readonly tenant: number
}

/** Seals the entries of a batch, bound to its id. */
export type SealEntries = (id: Uint8Array, entries: readonly LogEntry[]) => Uint8Array

/** Once the entry of an answered read has waited this many ms to be stored, engines refuse further logged reads. */
export const MAX_PENDING_MS = 2_000

/** `reason`: a sentence. */
export function logUnavailable(reason: string): CofferError {
  const message = `Reads are refused, because the log records of earlier reads cannot be stored. ${reason}`
  return new CofferError('unavailable', message.trimEnd(), { retryAfterSeconds: 1 })
}

/** Implemented by the barrier: puts log entries into sealed rows. */
export interface LogSealer {
  /**
   * Puts rows that hold these entries, in order, without those of tenants that are gone. An engine of several
   * processes passes a chain that only it adds to now, and the batches that held the entries.
   */
  seal(
    writer: EngineWriter,
    entries: readonly LogEntry[],
    chain?: number,
    batches?: readonly PendingBatch[],
  ): Awaitable<void>
  /** Returns the function that seals batches of a tenant's entries; undefined if the tenant does not exist any more. */
  sealerOf(reader: EngineReader, tenant: number): Awaitable<SealEntries | undefined>
  /** None if a chain has them. Undefined if they do not open, the tenant is gone, or it is unknown. */
  openPending(
    reader: EngineReader,
    batch: PendingBatch,
    sealed: Uint8Array,
  ): Awaitable<readonly LogEntry[] | undefined>
}

/** Kind of log rows. A replaced one need not be overwritten soon, because its entries are kept in another row. */
export const LOG_ROWS = 254

/**
 * Kinds of rows of a queue. A removed one need not be overwritten before the removal is answered: it is overwritten as soon
 * as a replaced row. For what is sent is in other rows then, and a queue removes many rows.
 */
export const QUEUE_ROWS: ReadonlySet<number> = new Set([29, 30])

export interface EngineReader {
  /** Wall clock when the unit began, ms since the epoch: it dates rows and decides what has expired. */
  readonly now: number
  readonly clock: ClockState
  /** `expired: true` also finds an expired row that was not purged yet. */
  get(kind: number, tenant: number, id: RowId, options?: { expired?: boolean }): Awaitable<Row | undefined>
  find(query: Query): Awaitable<RowPage>
  /** At most `size` rows, in the order that {@link SeekQuery} says. */
  seek(query: SeekQuery): Awaitable<Row[]>
  /** Expired records of all tenants and kinds that may be purged now: at most `limit`, in no order. */
  findExpired(limit: number): Awaitable<Row[]>
  /** Entries of committed units that are in no chain yet, oldest first; undefined in the place of what cannot be read. */
  pendingEntries?(tenant: number): Awaitable<readonly (LogEntry | undefined)[]>
  /** {@link Engine.changeCounter} as of this unit; undefined once it sees uncommitted changes. */
  changeCounter?(kind: number): number | undefined
}

/** Writes take effect in order. A failed one may surface in a later call, or as the failure of the unit. */
export interface EngineWriter extends EngineReader {
  /** A new row (no `seq`) must not exist, not even expired; any other replaces the row that it was read from. */
  put(draft: Draft): Awaitable<void>
  /** Changes nothing if there is no such row. */
  remove(kind: number, tenant: number, id: RowId): Awaitable<void>
  /**
   * Sealed in the commit of this unit; up to 50 ms later if the unit writes nothing else and nobody waits for
   * the sync. An engine of several processes may first commit it as a {@link PendingBatch}.
   */
  append(entry: LogEntry): void
  /** Removes every row of the tenant, logs included. */
  dropTenant(tenant: number): Awaitable<void>
  /** Commits the time of this unit even if it changes nothing; `isTrusted`: a person confirmed the clock. */
  storeTime(options?: { isTrusted?: boolean }): void
}

/**
 * Units of work are serializable, and a unit sees every unit that resolved before it was asked for. If units
 * collide, an engine discards a run and calls its work again. So a work has no effect except through its
 * writer until the unit has resolved.
 */
export interface Engine {
  read<T>(work: (reader: EngineReader) => Awaitable<T>): Promise<T>
  /** A work that throws leaves no trace. */
  write<T>(work: (writer: EngineWriter) => Awaitable<T>, durability?: Durability): Promise<T>
  /** Contract: called once, before any unit of work that appends. */
  attach(sealer: LogSealer): void
  /** Differs after a committed change of the kind by any process, so callers may cache until then. O(1). */
  changeCounter?(kind: number): number
  /** The last known {@link EngineReader.changeCounter}; a unit that reads that verifies it before it ends. */
  cachedCounter?(kind: number): number | undefined
  /** Resolves if a read and a write would be answered now. @throws CofferError that says why not */
  checkReady?(): Promise<void>
  readonly maintenance?: EngineMaintenance
  close(): Promise<void>
}

/** Log entries of one tenant that are to go into a chain, sealed together. `written`: µs since the epoch. */
export interface PendingEntries {
  id: Uint8Array
  tenant: number
  chain: number
  written: number
  sealed: Uint8Array
}

/** All rows of a vault at one moment. */
export interface VaultRows {
  times: Times
  /** Oldest first. */
  pending: readonly PendingEntries[]
  /** Approximate. */
  count: number
  /** Equal at every call. `skip` receives the kind, if known, of an unreadable row. Files have no keys. */
  rows(skip?: (kind: number | undefined) => void): AsyncIterable<Row>
}

/** Operations on a whole engine, for the owner of a vault. */
export interface EngineMaintenance {
  /** Counts only what is synced. */
  status(): Promise<EngineStatus>
  /** Reads every byte that the vault relies on; `check` checks a row's seal. */
  verify(check: CheckRow): Promise<Verification>
  /** Removes dead rows and merges files until nothing is left to do; units of work run meanwhile. */
  compact(): Promise<void>
  readonly header: Header
  /** Runs `work` over all rows as they are at one moment; units of work run meanwhile. */
  withRows<T>(work: (found: VaultRows) => Promise<T>): Promise<T>
  /** Replaces the header; the present one is refused from then on. */
  replaceHeader(header: Header): Promise<void>
}

export interface EngineStatus {
  sstables: number
  walBytes: number
  sstableBytes: number
  /** `records` includes expired rows that were not removed yet. */
  rows: { records: number; dead: number }
}

/** Returns the problem of a row's seal; or, for a row of a log, the number of its log records. */
export type CheckRow = (row: Row) => { problem?: string; logs?: number }

export interface Finding {
  /** The file, or the tenant's log. */
  place: string
  problem: string
}

export interface Verification {
  findings: Finding[]
  /** Records that were found whole. */
  readable: { records: number; logs: number }
  segments: number
  /** Journals that were set aside, if any: files in the vault's directory that nothing reads. */
  set_aside?: string[]
}
