/** Reads records in a unit of work: finds their rows by keyed digests, and opens them. */
import type { RecordKeys } from '../../crypto/ports.js'
import { KINDS, type Kind, kindOf, type RecordOf } from '../../domain/records/records.js'
import type { TakenBatches } from '../../domain/records/taken-batches.js'
import { CofferError } from '../../errors.js'
import type { EngineReader, Row, Where } from '../engine.js'
import type { ClockState, Condition, Expired, Page, RecordLocation, StoreReader } from '../store.js'
import { bytesOf } from './log-block.js'
import { type ChainCache, FIRST_CHAIN, LogChain } from './log-chain.js'
import { LogReader } from './log-reader.js'
import type { RecordCache } from './record-cache.js'
import { digestAll, digestId, digestKey, openCursor, openRecord, sealCursor } from './sealing.js'
import type { TenantCache } from './tenant-cache.js'

/** Sealed bytes that are held of located records; of the others only the location is known. */
const HELD_BYTES = 1024 * 1024
/** Sealed bytes opened in one go: some milliseconds' worth, after which whoever needs no vault has a turn. */
const OPENED_AT_ONCE = 256 * 1024

/** What was opened before: in this process where the engine counts changes, else in this unit of work. */
export interface Caches {
  records: RecordCache
  tenants: TenantCache
}

/** Sealed bytes opened since others had a turn, by all units of work together. */
export interface OpenedBytes {
  count: number
}

/** Log records were opened with the block that they are in. */
type SealedLocation<K extends Kind> = RecordLocation<K> & ({ row: Row } | { record: RecordOf[K] })
type Search = Page & { where?: Condition }

export class SealedReader implements StoreReader {
  protected readonly rows: EngineReader
  protected readonly cache: RecordCache
  /** Changes of this unit to kinds that are cached. */
  protected changes = 0
  readonly #tenants: TenantCache
  readonly #opened: OpenedBytes
  protected readonly chains: ChainCache

  constructor(rows: EngineReader, { records, tenants }: Caches, opened: OpenedBytes, chains: ChainCache) {
    this.rows = rows
    this.cache = records
    this.#tenants = tenants
    this.#opened = opened
    this.chains = chains
  }

  /** @throws CofferError `not_found` when there is no such tenant any more. */
  async keysOf(tenant: number): Promise<RecordKeys> {
    if (tenant === 0) return this.#tenants.vault
    return this.#tenants.keysOf(this.rows, tenant, this.#changeCounter('tenant'))
  }

  /** The keys of a tenant; undefined when there is no such tenant any more. */
  async findKeys(tenant: number): Promise<RecordKeys | undefined> {
    try {
      return await this.keysOf(tenant)
    } catch (error) {
      if (error instanceof CofferError && error.code === 'not_found') return undefined
      throw error
    }
  }

  async readLog(tenant: number): Promise<LogReader> {
    const keys = await this.keysOf(tenant)
    return new LogReader(this.rows, keys, tenant, await this.chainsOf(tenant), this.chains)
  }

  /** What each chain of a tenant's log has taken. Of one whose end does not open, verifying the log tells. */
  async readTaken(tenant: number): Promise<TakenBatches[]> {
    const keys = await this.keysOf(tenant)
    const found: TakenBatches[] = []
    for (const chain of (await this.chainsOf(tenant)) ?? [FIRST_CHAIN])
      try {
        const { head } = await new LogChain(this.rows, keys, tenant, chain, this.chains).load()
        if (head.taken !== undefined) found.push(head.taken)
      } catch (error) {
        if (!(error instanceof CofferError) || error.code !== 'vault_damaged') throw error
      }
    return found
  }

  /** The chains of a tenant's log, where its record lists them. */
  protected async chainsOf(tenant: number): Promise<readonly number[] | undefined> {
    return (await this.get('tenant', 0, String(tenant)))?.log_chains
  }

  /** Where the engine counts no changes, caches are those of this unit, and only its own changes count. */
  #changeCounter(kind: Kind): number | undefined {
    return this.rows.changeCounter === undefined ? this.changes : this.rows.changeCounter(KINDS[kind])
  }

  changeCounter(kinds: readonly Kind[]): number | undefined {
    return sumCounters(kinds, this.rows.changeCounter?.bind(this.rows))
  }

  get now(): number {
    return this.rows.now
  }

  get clock(): ClockState {
    return this.rows.clock
  }

  async get<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined> {
    const counter = this.cache.keeps(kind) ? this.#changeCounter(kind) : undefined
    const kept = counter === undefined ? undefined : this.cache.find(kind, tenant, id, counter)
    if (kept !== undefined) return kept as RecordOf[K]
    const keys = await this.keysOf(tenant)
    const row = await this.rows.get(KINDS[kind], tenant, digestId(keys, kind, tenant, id))
    if (row === undefined) return undefined
    const record = await this.#openGently(kind, keys, row)
    if (counter !== undefined && row.expires === 0) this.cache.keep(kind, tenant, id, counter, record)
    return record
  }

  async find<K extends Kind>(
    kind: K,
    tenant: number,
    query: Search,
  ): Promise<{ records: RecordOf[K][]; total: number }> {
    if (kind === 'log') return (await this.readLog(tenant)).find(query) as Promise<never>
    const keys = await this.keysOf(tenant)
    const { rows, total } = await this.#findRows(keys, kind, tenant, query)
    const records: RecordOf[K][] = []
    for (const row of rows) records.push(await this.#openGently(kind, keys, row))
    return { records, total }
  }

  async locate<K extends Kind>(
    kind: K,
    tenant: number,
    query: Search,
  ): Promise<{ locations: SealedLocation<K>[]; total: number }> {
    if (kind === 'log') {
      const { records, total } = await (await this.readLog(tenant)).find(query)
      const locations = records.map((record, index) => ({
        kind,
        tenant,
        bytes: bytesOf(record.entity_id, record.trace_id),
        seq: -index,
        record: record as RecordOf[K],
      }))
      return { locations, total }
    }
    const keys = await this.keysOf(tenant)
    const { rows, total } = await this.#findRows(keys, kind, tenant, query, HELD_BYTES)
    return { locations: rows.map((row) => locateRow(kind, tenant, row)), total }
  }

  async seek<K extends Kind>(
    kind: K,
    tenant: number,
    { size, below, where }: { size: number; below?: number | undefined; where?: Condition },
  ): Promise<SealedLocation<K>[]> {
    const selected = select(await this.keysOf(tenant), kind, tenant, where)
    const rows = await this.rows.seek({ ...selected, size, below, mostBytes: HELD_BYTES })
    return rows.map((row) => locateRow(kind, tenant, row))
  }

  async sealCursor(tenant: number, about: string, seq: number): Promise<string> {
    return sealCursor(await this.keysOf(tenant), about, seq)
  }

  async openCursor(tenant: number, about: string, cursor: string): Promise<number | undefined> {
    return openCursor(await this.keysOf(tenant), about, cursor)
  }

  async open<K extends Kind>(location: SealedLocation<K>): Promise<RecordOf[K] | undefined> {
    if ('record' in location) return location.record
    const { kind, tenant, row } = location
    const here = row.unread === undefined ? row : await this.rows.get(row.kind, tenant, row.id)
    if (here === undefined) return undefined
    return this.#openGently(kind, await this.keysOf(tenant), here)
  }

  async findExpired(limit: number): Promise<Expired[]> {
    const found: Expired[] = []
    for (const row of await this.rows.findExpired(limit)) {
      const { kind, tenant } = row
      found.push({
        kind: kindOf(kind),
        tenant,
        record: openRecord(await this.keysOf(tenant), row),
      } as Expired)
    }
    return found
  }

  #findRows(keys: RecordKeys, kind: Kind, tenant: number, { where, page, size }: Search, mostBytes?: number) {
    const selected = select(keys, kind, tenant, where)
    return this.rows.find({ ...selected, page, size, ...(mostBytes === undefined ? {} : { mostBytes }) })
  }

  async #openGently<K extends Kind>(kind: K, keys: RecordKeys, row: Row): Promise<RecordOf[K]> {
    this.#opened.count += row.sealed.length
    if (this.#opened.count > OPENED_AT_ONCE) {
      this.#opened.count = 0
      await new Promise(setImmediate)
    }
    return this.cache.open(kind, row, (sealed) => openRecord(keys, sealed)) as RecordOf[K]
  }
}

/** Differs after any change of these kinds; undefined where one of them has no counter. */
export function sumCounters(
  kinds: readonly Kind[],
  counterOf: ((kind: number) => number | undefined) | undefined,
): number | undefined {
  let sum = 0
  for (const kind of kinds) {
    const counter = counterOf?.(KINDS[kind])
    if (counter === undefined) return undefined
    sum += counter
  }
  return sum
}

function locateRow<K extends Kind>(kind: K, tenant: number, row: Row): SealedLocation<K> {
  return { kind, tenant, bytes: row.unread ?? row.sealed.length, seq: row.seq, row }
}

function select(keys: RecordKeys, kind: Kind, tenant: number, where: Condition | undefined) {
  return {
    kind: KINDS[kind],
    tenant,
    all: digestAll(keys, kind),
    ...(where === undefined ? {} : { where: translate(keys, kind, tenant, where) }),
  } as const
}

function translate(keys: RecordKeys, kind: Kind, tenant: number, condition: Condition): Where {
  const inner = (each: Condition) => translate(keys, kind, tenant, each)
  if ('field' in condition) return { key: digestKey(keys, kind, condition) }
  if ('ids' in condition) return { ids: condition.ids.map((id) => digestId(keys, kind, tenant, id)) }
  if ('and' in condition) return { and: condition.and.map(inner) }
  if ('or' in condition) return { or: condition.or.map(inner) }
  if ('not' in condition) return { not: inner(condition.not) }
  return condition
}
