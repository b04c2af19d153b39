/** What units of work over one store share. */
import type { Clock, RandomSource } from '../../crypto/ports.js'
import type { EngineReader, LogEntry, LogSealer, Row } from '../engine.js'
import type { Gatherer } from './gatherer.js'
import type { Waiting } from './log-sql.js'
import type { ConnectionPool } from './pool.js'
import type { RowName, StoreState } from './query-sql.js'
import type { News } from './write-sql.js'

const OWNER_BYTES = 16

/** Log entries of one tenant that were committed together. `written`: µs since the epoch. */
export interface Batch {
  readonly id: Uint8Array
  readonly tenant: number
  readonly written: number
  readonly entries: readonly LogEntry[]
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
  /** Log entries of this process that are not sent yet, oldest first. */
  unsent(): readonly Batch[]
  /** The moment of a unit that logs, µs since the epoch: what was logged before is older, what is logged later newer. */
  mark(): number
  /** The id of a new batch of log entries. */
  name(tenant: number): Uint8Array
}

/** What one unit logged: a batch for each tenant. */
export function intoBatches({ name, mark }: Shared, entries: readonly LogEntry[]): Batch[] {
  const written = mark()
  const batches = new Map<number, Batch & { entries: LogEntry[] }>()
  for (const entry of entries) {
    const { tenant } = entry
    const batch = batches.get(tenant) ?? { id: name(tenant), tenant, written, entries: [] }
    batch.entries.push(entry)
    batches.set(tenant, batch)
  }
  return [...batches.values()]
}

/** What waits in its table; undefined where the tenant exists no more. */
export async function sealBatch(
  { sealer, self: owner }: Shared,
  reader: EngineReader,
  { id, tenant, written, entries }: Batch,
): Promise<Waiting | undefined> {
  const sealed = await sealer.keep(reader, tenant, id, entries)
  return sealed && { id, tenant, owner, written, sealed }
}
