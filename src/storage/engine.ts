/** The port of storage engines: sealed rows, read and written in units of work. */
import type { Awaitable } from '../domain/awaitable.js'
import { CofferError } from '../errors.js'
import type { ClockState, Durability, Page, RangeField } from './store.js'
import type { Times } from './time.js'
import type { Header } from './vault-file.js'

export type { Awaitable }

/** 16 bytes: a keyed digest of kind, tenant and id. */
export type RowId = Uint8Array
/** 8 bytes: a keyed digest of a value by which the row is found. */
export type Key = Uint8Array

export interface Row {
  /** u8 */
  kind: number
  /** u16 */
  tenant: number
  id: RowId
  /**
   * The engine assigns this number when it creates the row. Later versions of the row keep the number. Rows that later
   * units of work create have higher numbers. Some numbers may be unused.
   */
  seq: number
  /**
   * The engine assigns a new number to each version of a row. No two committed versions of rows have the same `rev`.
   * Some numbers may be unused.
   */
  rev: number
  /** ms since the epoch, by the wall clock. Rows are not in the order of this time, because the clock may go back. */
  created: number
  /** ms since the epoch, 0 for never. */
  modified: number
  /**
   * ms since the epoch, 0 for never. Reads do not find a row whose `expires` is now or in the past (`expires <= now`).
   */
  expires: number
  /**
   * At most 255 keys of 8 bytes, one after another. The first key is the key of the kind: all rows of this kind and
   * tenant have this key.
   */
  keys: Uint8Array
  sealed: Uint8Array
  /** The length of the sealed record, if the record was not read. If `unread` is set, `sealed` is empty. */
  unread?: number
}

/** The part of a row that depends on the root key. Requires: `sealed` is bound to the row's present `rev`. */
export type Resealed = Pick<Row, 'id' | 'keys' | 'sealed'>

export type Where =
  | { key: Key }
  | { ids: readonly RowId[] }
  | { and: readonly Where[] }
  | { or: readonly Where[] }
  | { not: Where }
  /** `from` is inclusive, `below` exclusive. A row whose field is 0 (never) is in no range. */
  | { range: RangeField; from?: number; below?: number }

export interface Query extends Page {
  kind: number
  tenant: number
  /** The first key of every row of this tenant and kind. */
  all: Key
  where?: Where
  /**
   * When the sealed records of a page have this many bytes in total, the engine may return further large rows without
   * their records (`unread`).
   */
  maxBytes?: number
}

/**
 * With `below`: the newest matches with a lower `seq`, newest first. With `above`: the oldest matches with a higher
 * `seq`, oldest first. Requires: at most one of `below` and `above` is given. The cost depends on `size`, and not on
 * the number of matches.
 */
export interface SeekQuery extends Omit<Query, 'page'> {
  below?: number | undefined
  above?: number | undefined
}

export interface RowPage {
  rows: Row[]
  total: number
}

/** A draft without `seq` is a new row: the engine assigns `seq` and `created`. */
export interface Draft
  extends Pick<Row, 'kind' | 'tenant' | 'id' | 'modified' | 'expires' | 'keys'>,
    Partial<Pick<Row, 'seq' | 'created'>> {
  /**
   * Returns the sealed record. Its seal is bound to `rev`, so the engine calls `seal` again if it assigns another
   * `rev`.
   */
  seal(rev: number): Uint8Array
}

/** An entry of a tenant's log, opaque to engines. {@link LogSealer.seal} writes entries into rows. */
export interface LogEntry {
  readonly tenant: number
  readonly bytes: number
  /**
   * ms since the epoch. An engine with concurrent units of work replaces this time at the commit, so that the times of
   * entries ascend in the order of the commits.
   */
  time: number
}

/** Entries of one tenant that a shared engine (for several processes) commits first and moves to a chain later. */
export interface PendingBatch {
  readonly id: Uint8Array
  readonly tenant: number
}

export type SealEntries = (id: Uint8Array, entries: readonly LogEntry[]) => Uint8Array

/** If the log entry of an answered read is not stored within this time (ms), engines refuse further logged reads. */
export const MAX_PENDING_MS = 2_000

/** Requires: `reason` is a sentence, or empty. */
export function logUnavailable(reason: string): CofferError {
  const message = `Reads are refused, because the log records of earlier reads cannot be stored. ${reason}`
  return new CofferError('unavailable', message.trimEnd(), { retryAfterSeconds: 1 })
}

export interface LogSealer {
  /**
   * Writes the entries, in the given order, into log rows. Entries of deleted tenants are left out. A shared engine
   * passes the chain that it has leased, and the batches from which the entries come.
   */
  seal(
    writer: EngineWriter,
    entries: readonly LogEntry[],
    chain?: number,
    batches?: readonly PendingBatch[],
  ): Awaitable<void>
  /** Returns undefined if the tenant was deleted. */
  sealerOf(reader: EngineReader, tenant: number): Awaitable<SealEntries | undefined>
  /**
   * Returns an empty list if a chain contains the entries of the batch. Returns undefined in three cases: the entries
   * cannot be decrypted, the tenant was deleted, or it is unknown whether a chain contains the entries.
   */
  openPending(
    reader: EngineReader,
    batch: PendingBatch,
    sealed: Uint8Array,
  ): Awaitable<readonly LogEntry[] | undefined>
}

/**
 * The kind of the rows that contain log records. The engine on disk may delay the overwriting of a replaced log row,
 * because newer rows contain the same entries.
 */
export const LOG_ROWS = 254

/**
 * The kind of the rows that contain the keys of tenants. All rows of this kind belong to tenant 0. The engine on disk
 * keeps a second copy of these rows, because no row of a tenant can be read without the tenant's keys.
 */
export const KEY_ROWS = 1

/**
 * The kinds of rows in queues. The engine on disk overwrites most removed rows before it acknowledges the removal. A
 * queue removes many rows, so the engine overwrites the removed rows of queues later, together with replaced rows. This
 * is acceptable, because the rows of queues do not contain the data that is sent.
 */
export const QUEUE_ROWS: ReadonlySet<number> = new Set([29, 30])

export interface EngineReader {
  /** The wall clock when the unit began, ms since the epoch. New rows get this time, and rows expire by this time. */
  readonly now: number
  readonly clock: ClockState
  /** `expired: true` also finds an expired row that is not purged yet. */
  get(kind: number, tenant: number, id: RowId, options?: { expired?: boolean }): Awaitable<Row | undefined>
  find(query: Query): Awaitable<RowPage>
  seek(query: SeekQuery): Awaitable<Row[]>
  /** Returns at most `limit` expired rows that may be purged now, of any tenant and kind, in no order. */
  findExpired(limit: number): Awaitable<Row[]>
  /**
   * Returns the committed entries that are in no chain yet, oldest first. In the result, an unreadable entry is
   * undefined.
   */
  pendingEntries?(tenant: number): Awaitable<readonly (LogEntry | undefined)[]>
  /**
   * {@link Engine.changeCounter} in the state that this unit reads. Returns undefined if the unit of work sees
   * uncommitted changes of rows of this kind.
   */
  changeCounter?(kind: number): number | undefined
}

/**
 * Writes take effect in order. The error of a failed write may be thrown later: by another call of the writer, or by
 * the unit of work.
 */
export interface EngineWriter extends EngineReader {
  /**
   * A draft without `seq` is a new row. Requires: no row has the id of the new row, not even an expired row. A draft
   * with `seq` replaces an existing row.
   */
  put(draft: Draft): Awaitable<void>
  remove(kind: number, tenant: number, id: RowId): Awaitable<void>
  /**
   * Appends a log entry, which is sealed when this unit commits. If the unit of work writes nothing else and its
   * {@link Durability} is `soon`, the engine may seal the entry later. A shared engine may first commit the entry as a
   * {@link PendingBatch}.
   */
  append(entry: LogEntry): void
  dropTenant(tenant: number): Awaitable<void>
  /** Commits the time of this unit, even if the unit changes nothing. `isTrusted`: a person has confirmed the clock. */
  storeTime(options?: { isTrusted?: boolean }): void
}

/**
 * Units of work are serializable. A unit of work sees the changes of the units whose promises resolved before this unit
 * was requested. If two units of work collide, an engine discards one attempt and calls `work` again. Therefore the
 * calls of the writer must be the only effects of `work`.
 */
export interface Engine {
  read<T>(work: (reader: EngineReader) => Awaitable<T>): Promise<T>
  /** If `work` throws, nothing changes. */
  write<T>(work: (writer: EngineWriter) => Awaitable<T>, durability?: Durability): Promise<T>
  /** Requires: called once, before any unit of work appends a log entry. */
  attach(sealer: LogSealer): void
  /**
   * A counter that changes with every committed change of the kind, by any process. Cached rows of the kind are valid
   * until this counter changes. O(1).
   */
  changeCounter?(kind: number): number
  /**
   * The last known {@link EngineReader.changeCounter}, which may be outdated. A unit that has used this number checks
   * at its end whether the number was current.
   */
  cachedCounter?(kind: number): number | undefined
  /**
   * Stores pending log entries in rows now. Engines in which entries are pending only for a moment omit this function.
   */
  sealPending?(): Promise<void>
  /**
   * Resolves if a read and a write would succeed now. @throws CofferError with the reason why one of them would fail
   */
  checkReady?(): Promise<void>
  readonly maintenance?: EngineMaintenance
  close(): Promise<void>
}

/** Log entries of one tenant, sealed together, that are not in their chain yet. `written`: µs since the epoch. */
export interface PendingEntries {
  id: Uint8Array
  tenant: number
  chain: number
  written: number
  sealed: Uint8Array
}

export interface VaultRows {
  times: Times
  /** Oldest first. */
  pending: readonly PendingEntries[]
  /** Approximate. */
  count: number
  /**
   * Each call returns the same rows. Rows that were read from files have no `keys`. `skip` receives the kind of each
   * unreadable row, or undefined if the kind is unknown.
   */
  rows(skip?: (kind: number | undefined) => void): AsyncIterable<Row>
}

export interface EngineMaintenance {
  status(): Promise<EngineStatus>
  verify(check: CheckRow): Promise<Verification>
  /** Removes dead rows and merges files until nothing is left to do. Units of work can run during the compaction. */
  compact(): Promise<void>
  readonly header: Header
  withRows<T>(work: (found: VaultRows) => Promise<T>): Promise<T>
  /** Replaces the header. After the replacement, the vault does not open with the old header. */
  replaceHeader(header: Header): Promise<void>
}

export interface EngineStatus {
  sstables: number
  walBytes: number
  sstableBytes: number
  /** `records` includes expired rows that are not purged yet. */
  rows: { records: number; dead: number }
}

/**
 * Checks the seal of a row. `logs`: the number of log records in a row of a log. `isLost`: the tenant's keys are lost,
 * so the row cannot be read. The caller reports the lost keys once for each tenant.
 */
export type CheckRow = (row: Row) => { problem?: string; logs?: number; isLost?: boolean }

export interface Finding {
  /** A file, or the log of a tenant. */
  place: string
  problem: string
}

export interface Verification {
  findings: Finding[]
  readable: { records: number; logs: number }
  segments: number
  /** Copies of damaged journals in the vault's directory. Coffer never reads these copies. */
  set_aside?: string[]
}
