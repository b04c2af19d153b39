/** The port of storage that operations see: records, in units of work. The port below it is `engine.ts`. */
import type { Awaitable } from '../domain/awaitable.js'
import type { Kind, LogRecord, RecordOf } from '../domain/records/records.js'

export type RangeField = 'created' | 'modified' | 'expires'

/** A condition over records. `field` and `value` are those of `domain/records/index-fields.ts` for the kind; of logs, of `VALUES` in `barrier/log-block.ts`. */
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

export type Search = Page & { where?: Condition }
/** With `above`, the oldest matches come first; else the newest. */
export type SeekSearch = {
  size: number
  below?: number | undefined
  above?: number | undefined
  where?: Condition
}
export type Found<K extends Kind> = { records: RecordOf[K][]; total: number }
type Located<K extends Kind> = { locations: RecordLocation<K>[]; total: number }

export interface ClockState {
  /** This unit is the first that sees a jump of the clock. */
  isJump: boolean
  /** Records that expired by then, ms since the epoch, may be destroyed; 0 for none. */
  purgeBefore: number
}

/** `now`: resolves after the sync. `soon`: resolves when appended, synced within 50 ms and by `close`. */
export type Durability = 'now' | 'soon'

/** The result of checking a tenant's log from its first record to its last. */
export interface LogCheck {
  count: number
  /** The first record, from 1, that does not follow from those before it; one past the last if the end is missing. */
  brokenAt?: number
}

export interface StoreReader {
  /** The wall clock when this unit of work began, ms since the epoch; it may be before that of an earlier unit. */
  readonly now: number
  /**
   * The clock by which the codes of cards end, ms since the epoch: that of the wall, but a restored state goes on where it was
   * saved.
   */
  readonly codeTime: number
  /** After a jump of the clock expired records are not purged. */
  readonly clock: ClockState
  /** Undefined when there is no such record or it has expired. A promise only for a wait. */
  get<K extends Kind>(kind: K, tenant: number, id: string): Awaitable<RecordOf[K] | undefined>
  /** Newest first, with the exact number of all that match. */
  find<K extends Kind>(kind: K, tenant: number, query: Search): Promise<Found<K>>
  /** Like `find`, but opens no record: returns the location and size of each. */
  locate<K extends Kind>(kind: K, tenant: number, query: Search): Promise<Located<K>>
  /** The newest matches below a `seq`, or the oldest above one. The cost depends on `size`, not on the number of matches. */
  seek<K extends Kind>(kind: K, tenant: number, query: SeekSearch): Promise<RecordLocation<K>[]>
  /** Makes an opaque text of a `seq`, which {@link openCursor} accepts for the same tenant and `about` only. */
  sealCursor(tenant: number, about: string, seq: number): Promise<string>
  /** Undefined for any text but a cursor of this tenant and `about`; all refusals take the same time. */
  openCursor(tenant: number, about: string, cursor: string): Promise<number | undefined>
  /** The record at a location of this unit of work or an earlier one; undefined when it is not there any more. */
  open<K extends Kind>(location: RecordLocation<K>): Promise<RecordOf[K] | undefined>
  /** Expired records of all tenants that may be purged now: at most `limit`, in no order. */
  findExpired(limit: number): Promise<Expired[]>
  /** {@link Store.changeCounter} as of the state that this unit reads; undefined once it has changed such records. */
  changeCounter(kinds: readonly Kind[]): number | undefined
}

/** Locates a record, and holds it sealed unless it is large. */
export interface RecordLocation<K extends Kind = Kind> {
  readonly kind: K
  readonly tenant: number
  /** Stored size, which is at least the size of what is shown. */
  readonly bytes: number
  /** Goes up with every record that is created. */
  readonly seq: number
}

export type Expired = { [K in Kind]: { kind: K; tenant: number; record: RecordOf[K] } }[Kind]

export interface PutOptions {
  /** Rendered search index values, kept only as keyed digests. */
  search?: readonly string[]
  /** ms since the epoch. */
  expires?: number
  /** The id is newly random, so nobody checks whether it is taken. */
  fresh?: boolean
  /** The time of the last modification stays, for a change that no caller has made. */
  keepsModified?: boolean
}

export interface StoreWriter extends StoreReader {
  /** @throws CofferError `conflict` when a live record has this id. */
  insert<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options?: PutOptions): Promise<void>
  /**
   * The options replace those of the record: without `search` its search values are removed, without `expires` its expiry is.
   * @throws CofferError `not_found` when there is no live record with this id.
   */
  replace<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options?: PutOptions): Promise<void>
  /** @throws CofferError `not_found` when there is no live record with this id. */
  remove(kind: Kind, tenant: number, id: string): Promise<void>
  /** Frees the id: purges an expired record if the clock allows it. Undefined when nothing was purged. */
  purge<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined>
  /** Destroys a tenant: its keys with its record, and with them everything in it, logs included. */
  removeTenant(tenant: number): Promise<void>
  /** Stores the time of this unit even if it changes nothing; `isTrusted`: a person confirmed the clock. */
  storeTime(options?: { isTrusted?: boolean }): void
  /** Can never be replaced or removed. `at`: its `created_at` in ms. */
  log(tenant: number, record: Omit<LogRecord, 'created_at'>, at: number): void
  /** Drops full blocks older than `before`, at most `limit` of each tenant, and returns their number. */
  dropLogs(before: number, limit: number): Promise<number>
  /** The vault's keyed digest, 32 bytes, of `text` under the tenant's fingerprint key, base58. */
  fingerprint(tenant: number, text: string): Promise<string>
}

/**
 * Each unit is all or nothing. If units collide, an engine calls a work again. So a work has no effect of its
 * own: it returns what must outlive it, which the caller applies after `read` or `write`. Drawing random
 * values is no effect.
 */
export interface Store {
  read<T>(work: (reader: StoreReader) => Awaitable<T>): Promise<T>
  /** Resolves when the outcome is as durable as `durability` asks. A work that throws changes nothing. */
  write<T>(work: (writer: StoreWriter) => Awaitable<T>, durability?: Durability): Promise<T>
  /** Differs after any committed change of these kinds; O(1), local. Undefined: nothing may be cached. */
  changeCounter(kinds: readonly Kind[]): number | undefined
  /** The last known counter of a shared store. It may be old: a unit that ends with the same counter proves that it is not. */
  cachedCounter(kinds: readonly Kind[]): number | undefined
  /** Whether other processes may have it open too. */
  readonly isShared: boolean
  /** Checks that each record of a tenant's log follows from those before it and that none is missing. */
  verifyLogs(tenant: number): Promise<LogCheck>
  /** Resolves if a read and a write would be answered now. @throws CofferError that says why not */
  checkReady(): Promise<void>
  close(): Promise<void>
}

const PAGE_SIZE = 1000

/** Newest first. A store reads each page in a unit of its own. Contract: no such record changes meanwhile. */
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

/** The newest record that has this value in an indexed field. */
export async function findNewest<K extends Kind>(
  reader: StoreReader,
  kind: K,
  tenant: number,
  where: { field: string; value: string },
): Promise<RecordOf[K] | undefined> {
  return (await reader.find(kind, tenant, { where, page: 1, size: 1 })).records[0]
}
