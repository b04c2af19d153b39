/** The port of storage for operations: records, in units of work. `engine.ts` is the port below this port. */
import type { Awaitable } from '../domain/awaitable.js'
import type { Kind, LogRecord, RecordOf } from '../domain/records/records.js'

export type RangeField = 'created' | 'modified' | 'expires'

/**
 * A condition over records. The fields of each kind are in `domain/records/index-fields.ts`, and the fields of logs are
 * in `barrier/log-block.ts`.
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

/** `isUncounted`: the log is read only until the page is full, and `total` is then the number of matches that were read. */
export type Search = Page & { where?: Condition; isUncounted?: boolean }
/** With `above`, the oldest match comes first. Without `above`, the newest match comes first. */
export type SeekSearch = {
  size: number
  below?: number | undefined
  above?: number | undefined
  where?: Condition
}
export type Found<K extends Kind> = { records: RecordOf[K][]; total: number }
type Located<K extends Kind> = { locations: RecordLocation<K>[]; total: number }

export interface ClockState {
  /** True in the first unit of work that sees a jump of the clock. */
  isJump: boolean
  /** Records that expired until this time may be purged. ms since the epoch. 0: no record may be purged. */
  purgeBefore: number
}

/**
 * `now`: the write resolves after the sync. `soon`: the write resolves when the change is appended. The sync follows later, at
 * the latest on `close`.
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

/** How many records of each chain of a tenant's log were read, by the number of the chain. */
export type LogPosition = Readonly<Record<string, number>>

/**
 * Records of a tenant's log in the order of their chains. `position`: the position after the records in `records`.
 * `lost`: how many records were dropped before they were read. `left`: how many records of the log follow after
 * `position`.
 */
export interface LogPart {
  records: LogRecord[]
  position: LogPosition
  lost: number
  left: number
}

export interface StoreReader {
  /** The wall clock when this unit of work began, ms since the epoch. This time may be earlier than in a previous unit of work. */
  readonly now: number
  /**
   * The time by which the codes of cards expire, ms since the epoch. This time is the wall clock. In an ephemeral vault, a
   * restore sets this time back to the time when the restored state was saved.
   */
  readonly codeTime: number
  /**
   * The time from which a new event or result is kept, ms since the epoch. This time is `now`. While the clock of an ephemeral
   * vault is moved in steps, this time is the end of the move, so that the events of all steps still exist at the end.
   */
  readonly keptFrom: number
  /** After a jump of the clock, expired records are not purged. */
  readonly clock: ClockState
  /** Returns undefined if the record does not exist or has expired. Returns a promise only if the engine must wait. */
  get<K extends Kind>(kind: K, tenant: number, id: string): Awaitable<RecordOf[K] | undefined>
  /** True if a record has this id. A record that has expired but is not purged counts too. */
  isUsed(kind: Kind, tenant: number, id: string): Promise<boolean>
  /** Newest first. `total` is the exact number of matches. */
  find<K extends Kind>(kind: K, tenant: number, query: Search): Promise<Found<K>>
  /** Like `find`, but opens no record, and returns the location and size of each record. */
  locate<K extends Kind>(kind: K, tenant: number, query: Search): Promise<Located<K>>
  /**
   * Returns the newest matches below a `seq`, or the oldest matches above a `seq`. The cost depends on `size`, not on
   * the number of matches.
   */
  seek<K extends Kind>(kind: K, tenant: number, query: SeekSearch): Promise<RecordLocation<K>[]>
  /** Reads at most `limit` records of the tenant's log after this position. */
  readLogAfter(tenant: number, position: LogPosition, limit: number): Promise<LogPart>
  /** Seals a `seq` as an opaque text. {@link openCursor} accepts the text only for the same tenant and `about`. */
  sealCursor(tenant: number, about: string, seq: number): Promise<string>
  /** Returns the `seq` of a cursor. Undefined for any text that was not sealed for this tenant and `about`. */
  openCursor(tenant: number, about: string, cursor: string): Promise<number | undefined>
  /** Opens the record at a location from this or an earlier unit of work. Undefined if the record was removed. */
  open<K extends Kind>(location: RecordLocation<K>): Promise<RecordOf[K] | undefined>
  /** Returns at most `limit` expired records of any tenant that may be purged now, in no order. */
  findExpired(limit: number): Promise<Expired[]>
  /**
   * {@link Store.changeCounter} in the state that this unit reads. Undefined once the unit has changed records of these kinds.
   */
  changeCounter(kinds: readonly Kind[]): number | undefined
}

/** The location of a record. The location also contains the sealed record, if the record is not large. */
export interface RecordLocation<K extends Kind = Kind> {
  readonly kind: K
  readonly tenant: number
  /** The stored size. Callers get the record in a form that is never larger than this size. */
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
   * The caller knows that no record has this id, because it drew the id at random or has called `isUsed`. With `fresh`,
   * the store does not check whether the id is free.
   */
  fresh?: boolean
  /** The record keeps its time of modification. This option is for a change that no caller of the API requested. */
  keepsModified?: boolean
}

export interface StoreWriter extends StoreReader {
  /** @throws CofferError `conflict` if a live record has this id */
  insert<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options?: PutOptions): Promise<void>
  /**
   * Replaces a record and the options of its earlier version. Without `search`, the search values are removed. Without `expires`,
   * the expiry is removed.
   * @throws CofferError `not_found` if no live record has this id
   */
  replace<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options?: PutOptions): Promise<void>
  /** @throws CofferError `not_found` if no live record has this id */
  remove(kind: Kind, tenant: number, id: string): Promise<void>
  /**
   * Purges an expired record, so that its id becomes free. Returns the record, or undefined if the record may not be
   * purged now.
   */
  purge<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined>
  /** Removes the record of the tenant, which holds the tenant's keys, and all rows and logs of the tenant. */
  removeTenant(tenant: number): Promise<void>
  /** Stores the time of this unit, even if the unit changes nothing. `isTrusted`: a person has confirmed the clock. */
  storeTime(options?: { isTrusted?: boolean }): void
  /** Appends a log record, which can never be replaced or removed. `at`: the `created_at` of the log record, in ms. */
  log(tenant: number, record: Omit<LogRecord, 'created_at'>, at: number): void
  /**
   * Drops full blocks of logs that are older than `before`: at most `limit` blocks for each tenant. Returns the number of dropped
   * blocks. With `sink`, keeps the records that this log sink has not received.
   */
  dropLogs(before: number, limit: number, sink?: string): Promise<number>
  /** A digest of `text` with the tenant's fingerprint key: 32 bytes in base58. */
  fingerprint(tenant: number, text: string): Promise<string>
}

/**
 * Each unit commits everything or nothing. If units of work collide, an engine calls `work` again. Therefore `work`
 * must change nothing but the store. Everything else that `work` finds out is its return value, which the caller uses
 * after `read` or `write`. `work` may draw random values.
 */
export interface Store {
  read<T>(work: (reader: StoreReader) => Awaitable<T>): Promise<T>
  /** Resolves when the changes are as durable as `durability` says. If `work` throws, nothing changes. */
  write<T>(work: (writer: StoreWriter) => Awaitable<T>, durability?: Durability): Promise<T>
  /**
   * A counter that changes with every committed change of these kinds. O(1), local. If the counter is undefined,
   * records of these kinds must not be cached.
   */
  changeCounter(kinds: readonly Kind[]): number | undefined
  /**
   * The last known counter of a shared store, which may be outdated. If a unit of work finds the same counter at its
   * end, the cached counter was current.
   */
  cachedCounter(kinds: readonly Kind[]): number | undefined
  /** Whether other processes may use the store at the same time. */
  readonly isShared: boolean
  /**
   * Moves the newest log records into their chains, so that `readLogAfter` reads them too. Log records of the last
   * moment may stay outside of the chains.
   */
  sealPending(): Promise<void>
  /** Checks that each record of a tenant's log follows from the record before it and that none is missing. */
  verifyLogs(tenant: number): Promise<LogCheck>
  /**
   * Resolves if a read and a write would succeed now. @throws CofferError with the reason why the read or the write
   * would fail
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
