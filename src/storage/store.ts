/**
 * The two ports of storage. {@link Store} speaks records and is what operations see; {@link Engine} speaks sealed
 * rows.
 */
import type { Kind, RecordOf } from '../domain/records.js'
import type { ClockState } from './lsm/time.js'

// ---------------------------------------------------------------- records

/** A condition over records. `field`/`value` pairs are those of `sealed-store`'s look-ups for the kind. */
export type Condition =
  | { field: string; value: string }
  | { ids: readonly string[] }
  | { and: readonly Condition[] }
  | { or: readonly Condition[] }
  | { not: Condition }
  | { range: RangeField; from?: number; below?: number }

export interface Page {
  page: number
  size: number
}

export interface StoreReader {
  /** The wall clock at the beginning of this unit of work, ms since the epoch; it may have gone back since the last. */
  readonly now: number
  /** A clock that has jumped keeps what expired from being purged. */
  readonly clock: ClockState
  /** The record with this id, or undefined when there is none or it has expired. */
  get<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined>
  /** Newest first, with the exact number of all that match. */
  find<K extends Kind>(
    kind: K,
    tenant: number,
    query: Page & { where?: Condition },
  ): Promise<{ records: RecordOf[K][]; total: number }>
  /** The same without opening a record: where each is, and how large. */
  locate<K extends Kind>(
    kind: K,
    tenant: number,
    query: Page & { where?: Condition },
  ): Promise<{ places: Place<K>[]; total: number }>
  /** The record that was located there, in this unit of work or one before; undefined when it is there no more. */
  open<K extends Kind>(place: Place<K>): Promise<RecordOf[K] | undefined>
  /** Records of every tenant whose time is over and which may be purged now: at most `limit`, in no order. */
  findExpired(limit: number): Promise<Expired[]>
}

/** Where a record is. It holds the sealed record as it was located, unless that is large. */
export interface Place<K extends Kind = Kind> {
  readonly kind: K
  readonly tenant: number
  /** As it is kept, which is not less than what is shown of it. */
  readonly bytes: number
  /** Goes up with every record that is created. */
  readonly seq: number
}

/** A record whose time is over, of whatever kind. */
export type Expired = { [K in Kind]: { kind: K; tenant: number; record: RecordOf[K] } }[Kind]

/** How a record is put: all of it that cannot be read off the record itself. */
export interface PutOptions {
  /** Rendered search index values, kept only as keyed digests. */
  search?: readonly string[]
  /** ms since the epoch. */
  expires?: number
  /** The id was drawn at random just now, so nobody has to look whether it is taken. */
  fresh?: boolean
}

export interface StoreWriter extends StoreReader {
  /** @throws CofferError `conflict` when a live record has this id. */
  insert<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options?: PutOptions): Promise<void>
  /** @throws CofferError `not_found` when there is no live record with this id. */
  replace<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options?: PutOptions): Promise<void>
  /** @throws CofferError `not_found` when there is no live record with this id. */
  remove(kind: Kind, tenant: number, id: string): Promise<void>
  /**
   * Purges the record with this id if its time is over and the clock lets it, so that the id may be given again.
   * Gives the record; undefined when nothing was purged.
   */
  purge<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined>
  /** Destroys a tenant: its keys with its record, and with them everything in it, logs included. */
  removeTenant(tenant: number): Promise<void>
  /** Keeps the time of this unit even if it changes nothing; `isTrusted`: on somebody's word the clock is right. */
  noteTime(options?: { isTrusted?: boolean }): void
  /** Appends a log record; it can never be replaced or removed. */
  log(tenant: number, record: RecordOf['log']): Promise<void>
  /** BLAKE2b-256 of `text` under the tenant's fingerprint key, base58. */
  fingerprint(tenant: number, text: string): Promise<string>
}

export interface Store {
  read<T>(work: (reader: StoreReader) => Promise<T>): Promise<T>
  /** All or nothing; resolves when the outcome is as durable as `durability` asks. */
  write<T>(work: (writer: StoreWriter) => Promise<T>, durability?: Durability): Promise<T>
  /** A number that is another one once records of any of these kinds have changed; costs nothing. */
  stamp(kinds: readonly Kind[]): number
  /** Proves a tenant's log; see {@link Engine.verifyLogs}. */
  verifyLogs(tenant: number): Promise<LogCheck>
  close(): Promise<void>
}

// ---------------------------------------------------------------- sealed rows

/** 16 bytes: keyed digest of kind, tenant and id. */
export type RowId = Uint8Array
/** 8 bytes: keyed digest of one thing that a row may be looked up by. */
export type Key = Uint8Array

export type RangeField = 'created' | 'modified' | 'expires'

export interface Row {
  /** u8 */
  kind: number
  /** u16 */
  tenant: number
  id: RowId
  /** Given at creation, kept by updates; log rows have a sequence of their own. */
  seq: number
  /** The vault's write counter when this version was written. */
  rev: number
  /** By the wall clock, ms since the epoch; order is that of `seq`. */
  created: number
  /** ms since the epoch, 0 for never. */
  modified: number
  /** ms since the epoch, 0 for never. A row is gone from every read once `expires <= now`. */
  expires: number
  /** Keys one after another, 8 bytes each; the first is "all of this tenant and kind". At most 255. */
  keys: Uint8Array
  sealed: Uint8Array
  /** How many bytes `sealed` has, where it was left unread and is empty. */
  unread?: number
}

export type Where =
  | { key: Key }
  | { ids: readonly RowId[] }
  | { and: readonly Where[] }
  | { or: readonly Where[] }
  | { not: Where }
  /** `from` inclusive, `below` exclusive; a row whose field is 0 (never) is in no range. */
  | { range: RangeField; from?: number; below?: number }

export interface Query extends Page {
  family: 'records' | 'logs'
  kind: number
  tenant: number
  /** The key every row of this tenant and kind carries first. */
  all: Key
  where?: Where
  /** Large rows are read until they have so many sealed bytes together, and left `unread` from there on. */
  mostBytes?: number
}

export interface Found {
  /** Newest (highest `seq`) first. */
  rows: Row[]
  /** All live rows that match, exactly. */
  total: number
}

/** A row to be written. Without `seq` it is new: the engine gives it one. `rev` and, when new, `created` are the engine's. */
export interface Draft {
  kind: number
  tenant: number
  id: RowId
  seq?: number
  created?: number
  modified: number
  expires: number
  keys: Uint8Array
  sealed: Uint8Array
}

export interface EngineReader {
  readonly now: number
  readonly clock: ClockState
  /** `expired: true` also finds a row whose time is over but which was not purged yet. */
  get(kind: number, tenant: number, id: RowId, options?: { expired?: boolean }): Row | undefined
  find(query: Query): Found
  /** Records whose time is over and which may be purged now, of every tenant and kind: at most `limit`, in no order. */
  findExpired(limit: number): Row[]
  /** {@link Engine.stamp} as this unit sees it; undefined while a change of the kind may still be taken back. */
  stamp(kind: number): number | undefined
}

export interface EngineWriter extends EngineReader {
  /** The `rev` that the next put, remove or append gets: what its seal must name. */
  readonly revision: number
  /** New rows (no `seq`) must not exist, expired ones included; others replace the row they were read from. */
  put(draft: Draft): void
  remove(kind: number, tenant: number, id: RowId): void
  /** A log row; its family is never replaced. */
  append(draft: Draft): void
  /** Every row of the tenant, logs included, is dead from here on. */
  dropTenant(tenant: number): void
  noteTime(options?: { isTrusted?: boolean }): void
}

/** `now`: resolves after the sync. `soon`: resolves when appended, synced within 25 ms and by `close`. */
export type Durability = 'now' | 'soon'

/** Names the log rows of a tenant. */
export type LogQuery = Pick<Query, 'kind' | 'tenant' | 'all'>

/** What came of checking a tenant's log from its first record to its last. */
export interface LogCheck {
  /** Records that are there. */
  count: number
  /** The first record, from 1, that does not follow from those before it; one past the last where the end is missing. */
  brokenAt?: number
}

export interface Engine {
  /** Works run one after another, never interleaved with a write that may still fail. */
  read<T>(work: (reader: EngineReader) => T | Promise<T>): Promise<T>
  /** A work that throws leaves no trace, not even in the counters. */
  write<T>(work: (writer: EngineWriter) => T | Promise<T>, durability?: Durability): Promise<T>
  /**
   * Walks a tenant's log rows, oldest first, and checks that each is chained to the one before and that none is missing
   * at the end. `isAuthentic` is asked of each. Nothing else runs meanwhile.
   */
  verifyLogs(query: LogQuery, isAuthentic: (row: Row) => boolean): Promise<LogCheck>
  /** A number that is another one once rows of this kind have changed: what was read of them may be kept under it. */
  stamp(kind: number): number
  close(): Promise<void>
}
