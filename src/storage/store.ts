/** The port of storage that operations see: records, in units of work. The port below it is `engine.ts`. */
import type { Kind, LogRecord, RecordOf } from '../domain/records.js'

export type RangeField = 'created' | 'modified' | 'expires'

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

/** What a unit of work may take the clock for. */
export interface ClockState {
  /** This unit is the first that sees a jump of the clock. */
  isJump: boolean
  /** What expired by then, ms since the epoch, may be destroyed; 0 for nothing. */
  purgeUntil: number
}

/** `now`: resolves after the sync. `soon`: resolves when appended, synced within 50 ms and by `close`. */
export type Durability = 'now' | 'soon'

/** The result of checking a tenant's log from its first record to its last. */
export interface LogCheck {
  count: number
  /** The first record, from 1, that does not follow from those before it; one past the last where the end is missing. */
  brokenAt?: number
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
  ): Promise<{ locations: RecordLocation<K>[]; total: number }>
  /** The newest matches of those below a `seq`: costs what it finds, however many match. */
  seek<K extends Kind>(
    kind: K,
    tenant: number,
    query: { size: number; below?: number | undefined; where?: Condition },
  ): Promise<RecordLocation<K>[]>
  /** A `seq` as a text that discloses nothing, and that {@link openCursor} reads under the same tenant and `about` alone. */
  sealCursor(tenant: number, about: string, seq: number): Promise<string>
  /** Undefined for any text but a cursor of this tenant and `about`; whatever is wrong takes the same time. */
  openCursor(tenant: number, about: string, cursor: string): Promise<number | undefined>
  /** The record that was located there, in this unit of work or one before; undefined when it is there no more. */
  open<K extends Kind>(location: RecordLocation<K>): Promise<RecordOf[K] | undefined>
  /** Records of every tenant whose time is over and which may be purged now: at most `limit`, in no order. */
  findExpired(limit: number): Promise<Expired[]>
  /** As {@link Store.changeCounter}, for what this unit of work reads; undefined once it has changed such records. */
  changeCounter(kinds: readonly Kind[]): number | undefined
}

/** Where a record is. It holds the sealed record as it was located, unless that is large. */
export interface RecordLocation<K extends Kind = Kind> {
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
  /**
   * Appends a log record; it can never be replaced or removed. `at`: its `created_at`, ms since the epoch, where that is
   * known. A promise only where there is something to wait for.
   */
  log(tenant: number, record: LogRecord, at?: number): Promise<void> | undefined
  /**
   * Drops log records of all tenants that are older than `before`, in whole blocks: at most `limit` blocks of each
   * tenant, whose number it gives. What has no full block yet stays.
   */
  dropLogs(before: number, limit: number): Promise<number>
  /** The vault's keyed digest, 32 bytes, of `text` under the tenant's fingerprint key, base58. */
  fingerprint(tenant: number, text: string): Promise<string>
}

/**
 * Records in units of work, each all or nothing.
 *
 * A work may run more than once: an engine runs it again from the start when it collides with another, and then nothing
 * of the earlier run counts. So a work has no effect of its own until its unit is committed. What must outlive it is
 * returned, and applied after `read` or `write` has resolved. Drawing random values is no effect.
 */
export interface Store {
  read<T>(work: (reader: StoreReader) => Promise<T>): Promise<T>
  /** Resolves when the outcome is as durable as `durability` asks. A work that throws changes nothing. */
  write<T>(work: (writer: StoreWriter) => Promise<T>, durability?: Durability): Promise<T>
  /**
   * A number that differs after any committed change to records of these kinds; process-local, O(1). Undefined where
   * the engine counts no changes: then nothing that was read may be kept for another unit of work.
   */
  changeCounter(kinds: readonly Kind[]): number | undefined
  /**
   * What the change counter was lately, in a store that other processes change: a unit of work in which
   * {@link StoreReader.changeCounter} gives the same proves, when it resolves or fails, that it still is.
   */
  believedCounter(kinds: readonly Kind[]): number | undefined
  /** Whether other processes may have it open too. */
  readonly isShared: boolean
  /** Walks a tenant's log, and checks that each record follows from those before it and that none is missing. */
  verifyLogs(tenant: number): Promise<LogCheck>
  /** Resolves if a read and a write would be answered now. @throws CofferError that says why not */
  checkReady(): Promise<void>
  close(): Promise<void>
}
