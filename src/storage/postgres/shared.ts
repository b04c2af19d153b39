/** What units of work over one store share. */
import type { Clock, RandomSource } from '../../crypto/ports.js'
import type { EngineReader, LogEntry, LogSealer, PendingBatch, Row } from '../engine.js'
import type { Gatherer } from './gatherer.js'
import type { Waiting } from './log-sql.js'
import type { ConnectionPool } from './pool.js'
import type { RowName, StoreState } from './query-sql.js'
import type { News } from './write-sql.js'

const OWNER_BYTES = 16

/** Log entries of one tenant that are committed together. `written`: µs since the epoch, in the order of commits. */
export interface Batch extends PendingBatch {
  readonly written: number
  readonly entries: LogEntry[]
}

/** Of a process. */
export function drawOwner(random: RandomSource): Uint8Array {
  return random.bytes(OWNER_BYTES)
}

export interface UnitOptions {
  inTransaction: boolean
  /** Nobody waits for what it logs to be durable. */
  maySendLater?: boolean
  /** It may be committed with others. */
  mayJoin?: boolean
  /** It changes every row that it relies on, and has nobody change what is remembered meanwhile. */
  holds?: boolean
  /** What reads had logged before is in the table of pending log entries. */
  hasSent?: boolean
  /** Its statements may take long for a reason. */
  isSlow?: boolean
  /** Until when it has nobody else write, ms by the database's clock. */
  closed?: number | undefined
}

/** What a unit of work commits that has read nothing. */
export interface Commit {
  news: News
  entries: readonly LogEntry[]
  believed: StoreState
}

export interface Shared {
  readonly pool: ConnectionPool
  /** This process, among those that have the store open. */
  readonly self: Uint8Array
  readonly clock: Clock
  readonly random: RandomSource
  /** Kinds of rows that callers remember from one unit to the next, and whose changes are therefore counted. */
  readonly remembered: ReadonlySet<number>
  readonly sealer: LogSealer
  /** As the last answer of the database had it. */
  state: StoreState
  /** When a unit last undertook to note the time. */
  notedAt: number
  /** Reads of one row, each a unit of its own. */
  readonly reads: Gatherer<RowName, { state: StoreState; row: Row | undefined }>
  readonly commits: Gatherer<Commit, { state: StoreState }>
  readonly logs: {
    /** Whether entries of reads are in this process alone. */
    readonly hasUnsent: boolean
    /** Makes batches of what a unit commits now. Contract: `end` is called when the commit has ended. */
    begin(entries: readonly LogEntry[]): Batch[]
    end(batches: readonly Batch[]): void
  }
}

/** What waits in its table; undefined where the tenant exists no more. */
export async function sealBatch(
  { sealer, self: owner }: Shared,
  reader: EngineReader,
  batch: Batch,
): Promise<Waiting | undefined> {
  const { id, tenant, written, entries } = batch
  const sealed = await sealer.sealPending(reader, batch, entries)
  return sealed && { id, tenant, owner, written, sealed }
}
