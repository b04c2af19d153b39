/**
 * The port of storage engines: sealed rows, in units of work. An engine may be part of this process, or reached over a
 * network. The port above it is `store.ts`; `barrier/` translates between the two.
 */
import type { Clock } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import type { ClockState, Durability, Page, RangeField } from './store.js'
import type { Times } from './time.js'
import type { Header } from './vault-file.js'

/** An engine of this process gives values, an engine that is reached over a network promises; callers await both. */
export type Awaitable<T> = T | Promise<T>

/** 16 bytes: keyed digest of kind, tenant and id. */
export type RowId = Uint8Array
/** 8 bytes: keyed digest of one thing that a row may be looked up by. */
export type Key = Uint8Array

export interface Row {
  /** u8 */
  kind: number
  /** u16 */
  tenant: number
  id: RowId
  /** Assigned at creation, kept by updates: higher than that of every row of an earlier unit. Gaps are possible. */
  seq: number
  /** Assigned to each version that is written; no two versions of committed rows share one. There may be gaps. */
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

/** The part of a row that changes with the keys. Contract: the new seal names the row's `rev`, which stays. */
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
  /** Large rows are read until they have so many sealed bytes together, and left `unread` from there on. */
  mostBytes?: number
}

/** For the newest rows that match, of those with a `seq` below this: costs what it finds, however many match. */
export interface SeekQuery extends Omit<Query, 'page'> {
  below?: number | undefined
}

export interface RowPage {
  /** Newest (highest `seq`) first. */
  rows: Row[]
  /** All live rows that match, exactly. */
  total: number
}

/** A row to be written. Without `seq` it is new: the engine assigns one, and `created`. */
export interface Draft
  extends Pick<Row, 'kind' | 'tenant' | 'id' | 'modified' | 'expires' | 'keys'>,
    Partial<Pick<Row, 'seq' | 'created'>> {
  /** The row's `sealed`, which names `rev`: called when the engine has assigned that, again if it assigns another. */
  seal(rev: number): Uint8Array
}

/** An entry of a tenant's log, opaque to an engine, which stores it as the rows that {@link LogSealer.seal} makes. */
export interface LogEntry {
  readonly tenant: number
  /** About as many bytes as it takes in a row. */
  readonly bytes: number
  /** ms since the epoch. An engine that runs units side by side dates entries anew, in the order of their commits. */
  time: number
}

/** Entries of one tenant that an engine of several processes commits now, and puts into a chain later. */
export interface PendingBatch {
  readonly id: Uint8Array
  readonly tenant: number
}

/** An engine refuses reads that are logged once an entry of an earlier read has waited so long to be stored, ms. */
export const MOST_PENDING_MS = 2_000

/** The refusal; `reason` is a sentence. */
export function logUnavailable(reason: string): CofferError {
  const message = `Reads are refused, because the log records of earlier reads cannot be stored. ${reason}`
  return new CofferError('unavailable', message.trimEnd(), { retryAfterSeconds: 1 })
}

/** Makes rows of log entries: what the barrier gives an engine. */
export interface LogSealer {
  /**
   * Puts rows that hold these entries, of any tenants, in order. A tenant that does not exist any more is left out. An
   * engine of several processes names a chain, from 1 on, that no other of them adds to now, and the batches that the
   * entries were pending in.
   */
  seal(
    writer: EngineWriter,
    entries: readonly LogEntry[],
    chain?: number,
    batches?: readonly PendingBatch[],
  ): Awaitable<void>
  /** The entries of a batch as bytes, bound to its id. Undefined if there is no such tenant any more. */
  sealPending(
    reader: EngineReader,
    batch: PendingBatch,
    entries: readonly LogEntry[],
  ): Awaitable<Uint8Array | undefined>
  /**
   * The entries of a batch, and none if they are in a chain already. Undefined if they do not open, if there is no such
   * tenant, or if nobody knows whether they are in a chain.
   */
  openPending(
    reader: EngineReader,
    batch: PendingBatch,
    sealed: Uint8Array,
  ): Awaitable<readonly LogEntry[] | undefined>
}

/**
 * The kind of the rows that a log is kept in. They are replaced often, and what a replaced one held is kept elsewhere:
 * its bytes need not be overwritten soon.
 */
export const LOG_ROWS = 254

export interface EngineReader {
  /** Wall clock when the unit began, ms since the epoch; by it rows are dated and expire. */
  readonly now: number
  readonly clock: ClockState
  /** `expired: true` also finds a row whose time is over but which was not purged yet. */
  get(kind: number, tenant: number, id: RowId, options?: { expired?: boolean }): Awaitable<Row | undefined>
  find(query: Query): Awaitable<RowPage>
  /** At most `size` rows, newest first. */
  seek(query: SeekQuery): Awaitable<Row[]>
  /** Records whose time is over and which may be purged now, of every tenant and kind: at most `limit`, in no order. */
  findExpired(limit: number): Awaitable<Row[]>
  /** Entries of committed units that are in no chain yet, oldest first; undefined in the place of what cannot be read. */
  pendingEntries?(tenant: number): Awaitable<readonly (LogEntry | undefined)[]>
  /**
   * {@link Engine.changeCounter} for the state that this unit reads; undefined once the unit itself, or another that
   * may still be taken back, changed rows of the kind.
   */
  changeCounter?(kind: number): number | undefined
}

/**
 * Writes take effect in the order in which they were called. An engine may hold them back until the unit reads or ends,
 * and send them together: so a write that fails may make a later call fail, or the unit as a whole.
 */
export interface EngineWriter extends EngineReader {
  /** New rows (no `seq`) must not exist, expired ones included; others replace the row they were read from. */
  put(draft: Draft): Awaitable<void>
  /** Removing what does not exist changes nothing. */
  remove(kind: number, tenant: number, id: RowId): Awaitable<void>
  /**
   * Adds an entry to a log. An engine has it sealed in the commit of this unit, together with those of others. Where the
   * unit writes nothing else and nobody waits for the sync, it may do so up to 50 ms later; and an engine of several
   * processes may commit what {@link LogSealer.sealPending} makes of it, until it is put into a chain.
   */
  append(entry: LogEntry): Awaitable<void>
  /** Every row of the tenant, logs included, is dead from here on. */
  dropTenant(tenant: number): Awaitable<void>
  /** Commits the time of this unit even if it changes nothing; `isTrusted`: somebody confirmed the clock. */
  noteTime(options?: { isTrusted?: boolean }): void
}

/**
 * Keeps sealed rows, and assigns their `seq` and their `rev`.
 *
 * Units of work are serializable: the outcome is as if they had run one after another, and a unit sees every unit that
 * resolved before it was asked for. A work may run more than once: an engine runs it again from the start, with a new
 * reader or writer, when it collides with another, and then nothing of the earlier run counts. So a work has no effect
 * but through its writer until the unit has resolved.
 *
 * `maintenance` and `changeCounter` are capabilities: an engine that does not have one leaves it out.
 */
export interface Engine {
  read<T>(work: (reader: EngineReader) => Awaitable<T>): Promise<T>
  /** A work that throws leaves no trace. */
  write<T>(work: (writer: EngineWriter) => Awaitable<T>, durability?: Durability): Promise<T>
  /** Contract: called once, before any unit of work that appends. */
  attach(sealer: LogSealer): void
  /**
   * Change counter: differs after any committed change to rows of this kind; process-local, O(1). Only for an engine
   * that sees every change, whoever makes it: what was read under a counter is kept until the counter differs.
   */
  changeCounter?(kind: number): number
  /**
   * For an engine that other processes change: what {@link EngineReader.changeCounter} would give a unit that begins
   * now. A unit that asked for it does not end, well or not, without being sure that it is right.
   */
  believedCounter?(kind: number): number | undefined
  /** Resolves if a read and a write would be answered now. @throws CofferError that says why not */
  checkReady?(): Promise<void>
  readonly maintenance?: EngineMaintenance
  readonly branches?: EngineBranches
  close(): Promise<void>
}

/** All rows of an engine at one moment; later changes leave it alone. */
export interface EngineState {
  readonly branches: 'of this process'
}

/** The capability to come back to a state, and to begin another engine from it; both share its rows. */
export interface EngineBranches {
  save(): Promise<EngineState>
  /** What was read before is out of date for {@link Engine.changeCounter}. Times and sequences never go back. */
  restore(state: EngineState): Promise<void>
  /** An engine with the rows of `state` whose kind `keeps` names, and without logs. */
  fork(state: EngineState, options: { clock: Clock; keeps(kind: number): boolean }): Engine
}

/** Log entries of one tenant that are in no row yet, sealed together. `written`: µs since the epoch. */
export interface PendingEntries {
  id: Uint8Array
  tenant: number
  owner: Uint8Array
  written: number
  sealed: Uint8Array
}

/** All rows of a vault at one moment. */
export interface VaultRows {
  times: Times
  /** Oldest first. */
  pending: readonly PendingEntries[]
  /** About how many rows there are. */
  count: number
  /**
   * The same rows in the same order whenever it is called. `skip` gets the kind, if known, of each row of a damaged vault
   * that cannot be read. Rows of files have no keys: the index alone has them.
   */
  rows(skip?: (kind: number | undefined) => void): AsyncIterable<Row>
}

/** What the owner of a vault may ask of an engine as a whole. */
export interface EngineMaintenance {
  /** Counts and sizes, of what is safe. */
  status(): Promise<EngineStatus>
  /** Looks at every byte that the vault relies on. `check` says what is wrong with a row's seal. */
  verify(check: CheckRow): Promise<Verification>
  /** Removes dead rows and merges files until nothing is left to do; others may work meanwhile. */
  compact(): Promise<void>
  /** As it is in place. */
  readonly header: Header
  /** Runs `work` over all rows as they are at one moment; others work meanwhile. */
  withRows<T>(work: (found: VaultRows) => Promise<T>): Promise<T>
  /** Puts another header in place of the present one, which is refused from then on. */
  replaceHeader(header: Header): Promise<void>
}

export interface EngineStatus {
  sstables: number
  walBytes: number
  sstableBytes: number
  /** Live rows; expired ones that were not removed yet count. */
  rows: { records: number; dead: number }
  /** How long the store took to answer lately, where it is another machine's. */
  latency?: { p50_ms: number; p99_ms: number }
}

/** What is wrong with a row's seal, if anything; else, if it is of a log, the times of the log records in it. */
export type CheckRow = (row: Row) => { problem?: string; logs?: readonly number[] }

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
  /** Rows that are dated minutes ahead of the clock, if any, and the latest of these dates. */
  dated_ahead?: { records: number; logs: number; newest: string }
  /** Journals that were set aside, if any: files in the vault's directory that nothing reads. */
  set_aside?: string[]
}
