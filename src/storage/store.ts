/** The storage port of operations: records, read and written in units of work. */
import type { Awaitable } from '../domain/awaitable.js'
import type { Kind, LogRecord, RecordOf } from '../domain/records/records.js'

export type RangeField = 'created' | 'modified' | 'expires'

/**
 * The fields of each kind are in `domain/records/index-fields.ts`, and the fields of logs are in
 * `barrier/log-block.ts`.
 */
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

/**
 * With `isUncounted`, a search of a log ends when the page is full, and `total` counts only the matches found so far.
 */
export type Search = Page & { where?: Condition; isUncounted?: boolean }
export type SeekSearch = {
  size: number
  below?: number | undefined
  above?: number | undefined
  where?: Condition
}
export type Found<K extends Kind> = { records: RecordOf[K][]; total: number }
type Located<K extends Kind> = { locations: RecordLocation<K>[]; total: number }

export interface ClockState {
  /** True if the clock has jumped after the last change of the vault. */
  isJump: boolean
  /** Records that expired by this time may be purged. ms since the epoch. 0: no record may be purged. */
  purgeBefore: number
}

/**
 * `now`: the write resolves after the sync. `soon`: the write resolves when the change is appended. The sync follows
 * later, at the latest on `close`.
 */
export type Durability = 'now' | 'soon'

export interface LogCheck {
  count: number
  /**
   * The position, from 1, of the first record that does not follow from the record before it. If the end of the log is
   * missing, the value is `count` + 1.
   */
  brokenAt?: number
}

/** How many records of each chain were read. The keys are the numbers of the chains. */
export type LogPosition = Readonly<Record<string, number>>

/**
 * Records of a tenant's log in the order of their chains. `position`: the position after the records in `records`.
 * `lost`: the number of unread records that were dropped. `left`: the number of records after `position`.
 */
export interface LogPart {
  records: LogRecord[]
  position: LogPosition
  lost: number
  left: number
}

export interface StoreReader {
  /** The wall clock when this unit of work began, ms since the epoch. Can be earlier than in a previous unit. */
  readonly now: number
  /**
   * The clock by which the codes of cards expire, ms since the epoch. In most vaults this clock shows the wall time. A
   * restore of an ephemeral vault sets this clock back to the time when the restored state was saved.
   */
  readonly codeTime: number
  /**
   * New events and results expire a fixed time after this time, ms since the epoch. Normally this time is `now`. While
   * the clock of an ephemeral vault jumps in steps, this time is the end of the jump, so that events of every step
   * still exist at the end.
   */
  readonly keptFrom: number
  readonly clock: ClockState
  /** Returns undefined if the record does not exist or has expired. Returns a promise only if the engine must wait. */
  get<K extends Kind>(kind: K, tenant: number, id: string): Awaitable<RecordOf[K] | undefined>
  /** Returns true if a record has this id, even if the record has expired and is not purged yet. */
  isUsed(kind: Kind, tenant: number, id: string): Promise<boolean>
  /** Newest first. `total` is the exact number of matches, unless the query has `isUncounted`. */
  find<K extends Kind>(kind: K, tenant: number, query: Search): Promise<Found<K>>
  locate<K extends Kind>(kind: K, tenant: number, query: Search): Promise<Located<K>>
  /**
   * Returns the newest matches below a `seq`, or the oldest matches above a `seq`. The cost depends on `size`, not on
   * the number of matches.
   */
  seek<K extends Kind>(kind: K, tenant: number, query: SeekSearch): Promise<RecordLocation<K>[]>
  readLogAfter(tenant: number, position: LogPosition, limit: number): Promise<LogPart>
  /** Seals a `seq` as an opaque text. {@link openCursor} accepts the text only for the same tenant and `about`. */
  sealCursor(tenant: number, about: string, seq: number): Promise<string>
  /** Returns the `seq` of a cursor. Undefined for any text that was not sealed for this tenant and `about`. */
  openCursor(tenant: number, about: string, cursor: string): Promise<number | undefined>
  /** `location` may come from an earlier unit of work. Returns undefined if the record was removed. */
  open<K extends Kind>(location: RecordLocation<K>): Promise<RecordOf[K] | undefined>
  /** Returns at most `limit` expired records of any tenant that may be purged now, in no order. */
  findExpired(limit: number): Promise<Expired[]>
  /**
   * {@link Store.changeCounter} in the state that this unit reads. Undefined if the unit sees uncommitted changes of
   * records of these kinds.
   */
  changeCounter(kinds: readonly Kind[]): number | undefined
}

/** A location also contains the sealed record, unless the record is large. */
export interface RecordLocation<K extends Kind = Kind> {
  readonly kind: K
  readonly tenant: number
  /** The stored size. For a log record, the size is approximate. */
  readonly bytes: number
  /** A later record has a higher `seq`. */
  readonly seq: number
}

export type Expired = { [K in Kind]: { kind: K; tenant: number; record: RecordOf[K] } }[Kind]

export interface PutOptions {
  /** The rendered values of search indexes. Only keyed digests of these values are stored. */
  search?: readonly string[]
  /** ms since the epoch. */
  expires?: number
  /**
   * Skips the check whether the id is free. Requires: no record has this id, because the id is random, `isUsed` returned
   * false, or `requireFree` has returned.
   */
  fresh?: boolean
  /** For changes that no caller of the API requested: the record keeps its time of modification. */
  keepsModified?: boolean
}

export interface StoreWriter extends StoreReader {
  /** @throws CofferError `conflict` if a live record has this id */
  insert<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options?: PutOptions): Promise<void>
  /**
   * Frees the id of an expired record, so that the caller can refuse an id before its first write.
   * @throws CofferError `conflict` if a live record has this id
   */
  requireFree(kind: Kind, tenant: number, id: string): Promise<void>
  /**
   * Replaces a record and its options. Without `search`, the search values are removed. Without `expires`, the expiry
   * is removed. @throws CofferError `not_found` if no live record has this id
   */
  replace<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options?: PutOptions): Promise<void>
  /** @throws CofferError `not_found` if no live record has this id */
  remove(kind: Kind, tenant: number, id: string): Promise<void>
  /**
   * Purges an expired record, so that its id becomes free. Returns the record. Returns undefined if there is no record
   * that may be purged now.
   */
  purge<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined>
  /** Removes the tenant's record (which contains the tenant's keys) and all rows and logs of the tenant. */
  removeTenant(tenant: number): Promise<void>
  /** Stores the time of this unit, even if the unit changes nothing. `isTrusted`: a person has confirmed the clock. */
  storeTime(options?: { isTrusted?: boolean }): void
  /**
   * Appends a log record, which cannot be replaced. Only {@link dropLogs} and {@link removeTenant} remove log records.
   * `at`: the `created_at` of the log record, ms since the epoch.
   */
  log(tenant: number, record: Omit<LogRecord, 'created_at'>, at: number): void
  /**
   * From each chain of every log, drops at most `limit` blocks in which all records are older than `before` (ms since
   * the epoch). With `sink`, keeps the records that this log sink has not received. Returns the number of dropped
   * blocks.
   */
  dropLogs(before: number, limit: number, sink?: string): Promise<number>
  /** A digest of `text` with the tenant's fingerprint key: 32 bytes in base58. */
  fingerprint(tenant: number, text: string): Promise<string>
}

/**
 * Each unit of work commits everything or nothing. If two units collide, an engine calls `work` again. Therefore `work`
 * must change nothing but the store, and must pass its results to the caller as the return value. `work` may draw
 * random values.
 */
export interface Store {
  read<T>(work: (reader: StoreReader) => Awaitable<T>): Promise<T>
  /** {@link Durability} decides when the promise resolves. If `work` throws, nothing changes. */
  write<T>(work: (writer: StoreWriter) => Awaitable<T>, durability?: Durability): Promise<T>
  /**
   * A counter that changes with every committed change of these kinds. If the counter is undefined, records of these
   * kinds must not be cached. O(1).
   */
  changeCounter(kinds: readonly Kind[]): number | undefined
  /**
   * The last known counter of a shared store, which may be outdated. If a unit of work finds the same counter at its
   * end, the cached counter was current.
   */
  cachedCounter(kinds: readonly Kind[]): number | undefined
  readonly isShared: boolean
  /**
   * Moves pending log records into their chains, so that `readLogAfter` reads these records too. Log records that were
   * written immediately before the call may stay pending.
   */
  sealPending(): Promise<void>
  /** Checks that each record of a tenant's log follows from the record before it and that none is missing. */
  verifyLogs(tenant: number): Promise<LogCheck>
  /**
   * Resolves if a read and a write would succeed now. @throws CofferError with the reason why one of them would fail
   */
  checkReady(): Promise<void>
  close(): Promise<void>
}

const PAGE_SIZE = 1000

/**
 * Yields the newest record first. If a store is given, each page is read in a separate unit of work. Requires: no
 * record of this kind changes during the iteration.
 */
export async function* eachRecord<K extends Kind>(
  source: StoreReader | Store,
  kind: K,
  tenant: number,
  where?: Condition,
): AsyncGenerator<RecordOf[K]> {
  for (let page = 1; ; page++) {
    const query = { page, size: PAGE_SIZE, ...(where === undefined ? {} : { where }) }
    const find = (reader: StoreReader) => reader.find(kind, tenant, query)
    const { records, total } = 'find' in source ? await find(source) : await source.read(find)
    yield* records
    if (page * PAGE_SIZE >= total) return
  }
}

export async function readAll<K extends Kind>(
  ...query: Parameters<typeof eachRecord<K>>
): Promise<RecordOf[K][]> {
  const records: RecordOf[K][] = []
  for await (const record of eachRecord(...query)) records.push(record)
  return records
}

export async function findNewest<K extends Kind>(
  reader: StoreReader,
  kind: K,
  tenant: number,
  where: { field: string; value: string },
): Promise<RecordOf[K] | undefined> {
  return (await reader.find(kind, tenant, { where, page: 1, size: 1 })).records[0]
}
