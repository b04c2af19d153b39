import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { type Awaitable, andThen } from '../../domain/awaitable.js'
import { KINDS, type Kind, kindOf, type RecordOf } from '../../domain/records/records.js'
import { tokenAt } from '../../domain/token/card-code.js'
import { CofferError } from '../../errors.js'
import type { EngineReader, Row } from '../engine.js'
import type {
  ClockState,
  Expired,
  Found,
  LogPart,
  LogPosition,
  RecordLocation,
  Search,
  SeekSearch,
  StoreReader,
} from '../store.js'
import { Log } from './log.js'
import { sizeOf } from './log-block.js'
import type { HeadCache } from './log-chain.js'
import { type RecordCache, sumCounters } from './record-cache.js'
import * as sealing from './sealing.js'

/**
 * A page of locations contains sealed records up to this many bytes in total. Beyond this limit, the engine may leave
 * records unread. The reader reads an unread record when it opens the record.
 */
const HELD_BYTES = 1024 * 1024
/** After opening this many sealed bytes, which takes a few milliseconds, the reader lets other requests run. */
const OPENED_AT_ONCE = 256 * 1024

export interface SharedState {
  keys: VaultKeys
  cache: RecordCache
  heads: HeadCache
  opened: number
  /** Returns how many ms {@link StoreReader.codeTime} is behind {@link StoreReader.now}. */
  codeLag(): number
  /** Returns the time of the clock, ms since the epoch. While the clock jumps in steps, returns the end of the jump. */
  clockEnd(): number
}

/** The location of a log record contains the opened record, because a whole block was opened to find the record. */
type SealedLocation<K extends Kind> = RecordLocation<K> & ({ row: Row } | { record: RecordOf[K] })

export class SealedReader<Rows extends EngineReader = EngineReader> implements StoreReader {
  protected readonly rows: Rows
  protected readonly shared: SharedState
  /** Caches the keys of the last used tenant. One tenant is enough, because most units of work use only one. */
  #used: { tenant: number; keys: RecordKeys } | undefined

  constructor(rows: Rows, shared: SharedState) {
    this.rows = rows
    this.shared = shared
  }

  get now(): number {
    return this.rows.now
  }

  get clock(): ClockState {
    return this.rows.clock
  }

  get codeTime(): number {
    return this.now - this.shared.codeLag()
  }

  get keptFrom(): number {
    return Math.max(this.now, Math.floor(this.shared.clockEnd()))
  }

  changeCounter(kinds: readonly Kind[]): number | undefined {
    return sumCounters(kinds, (kind) => this.rows.changeCounter?.(kind))
  }

  protected async keysOf(tenant: number): Promise<RecordKeys> {
    const keys = await this.findKeys(tenant)
    if (keys !== undefined) return keys
    throw new CofferError('not_found', 'The tenant does not exist any more.')
  }

  async findKeys(tenant: number): Promise<RecordKeys | undefined> {
    const { keys, cache } = this.shared
    // The records of tenants belong to tenant 0 and are sealed with the vault's keys.
    if (tenant === 0) return keys.vault
    const record = await this.get('tenant', 0, String(tenant))
    return record && cache.keysOf(record, (opened) => keys.openTenant(opened.keys))
  }

  protected cachedKeys(tenant: number): RecordKeys | undefined {
    if (this.#used?.tenant === tenant) return this.#used.keys
    const { keys, cache } = this.shared
    const counter = this.rows.changeCounter?.(KINDS.tenant)
    const record = counter === undefined ? undefined : cache.find('tenant', 0, String(tenant), counter)
    if (record === undefined) return undefined
    const found = cache.keysOf(record as RecordOf['tenant'], (opened) => keys.openTenant(opened.keys))
    this.#used = { tenant, keys: found }
    return found
  }

  protected forgetKeys(): void {
    this.#used = undefined
  }

  get<K extends Kind>(kind: K, tenant: number, id: string): Awaitable<RecordOf[K] | undefined> {
    const { cache } = this.shared
    const counter = cache.holds(kind) ? this.rows.changeCounter?.(KINDS[kind]) : undefined
    const known = counter === undefined ? undefined : cache.find(kind, tenant, id, counter)
    if (known !== undefined) return known as RecordOf[K]
    return andThen(this.cachedKeys(tenant) ?? this.keysOf(tenant), (keys) =>
      andThen(this.rows.get(KINDS[kind], tenant, sealing.digestId(keys, kind, tenant, id)), (row) => {
        if (row === undefined) return undefined
        return andThen(this.#open<K>(keys, row), (record) => {
          if (counter !== undefined && row.expires === 0) cache.put(kind, tenant, id, counter, record)
          return record
        })
      }),
    )
  }

  async isUsed(kind: Kind, tenant: number, id: string): Promise<boolean> {
    const keys = this.cachedKeys(tenant) ?? (await this.keysOf(tenant))
    const digest = sealing.digestId(keys, kind, tenant, id)
    return (await this.rows.get(KINDS[kind], tenant, digest, { expired: true })) !== undefined
  }

  async find<K extends Kind>(kind: K, tenant: number, search: Search): Promise<Found<K>> {
    const { locations, total } = await this.locate(kind, tenant, search)
    const records: RecordOf[K][] = []
    for (const location of locations) records.push((await this.open(location))!)
    return { records, total }
  }

  async locate<K extends Kind>(kind: K, tenant: number, search: Search) {
    if (kind === 'log') {
      const { records, total } = await (await this.readLog(tenant)).find(search)
      const locations: SealedLocation<K>[] = records.map((record, index) => ({
        kind,
        tenant,
        bytes: sizeOf(record),
        seq: -index,
        record: record as RecordOf[K],
      }))
      return { locations, total }
    }
    const { where, page, size } = search
    const query = sealing.select(await this.keysOf(tenant), kind, tenant, where)
    const { rows, total } = await this.rows.find({ ...query, page, size, maxBytes: HELD_BYTES })
    return { locations: rows.map((row) => locateRow(kind, tenant, row)), total }
  }

  async seek<K extends Kind>(kind: K, tenant: number, search: SeekSearch): Promise<SealedLocation<K>[]> {
    const { size, below, above, where } = search
    const query = sealing.select(await this.keysOf(tenant), kind, tenant, where)
    const rows = await this.rows.seek({ ...query, size, below, above, maxBytes: HELD_BYTES })
    return rows.map((row) => locateRow(kind, tenant, row))
  }

  async readLogAfter(tenant: number, position: LogPosition, limit: number): Promise<LogPart> {
    return (await this.readLog(tenant)).readAfter(position, limit)
  }

  async sealCursor(tenant: number, about: string, seq: number): Promise<string> {
    return sealing.sealCursor(await this.keysOf(tenant), about, seq)
  }

  async openCursor(tenant: number, about: string, cursor: string): Promise<number | undefined> {
    return sealing.openCursor(await this.keysOf(tenant), about, cursor)
  }

  async open<K extends Kind>(location: SealedLocation<K>): Promise<RecordOf[K] | undefined> {
    if ('record' in location) return location.record
    const { tenant, row } = location
    const here = row.unread === undefined ? row : await this.rows.get(row.kind, tenant, row.id)
    return here && this.#open(await this.keysOf(tenant), here)
  }

  async findExpired(limit: number): Promise<Expired[]> {
    const open = async (row: Row) => {
      const record = sealing.openRecord(await this.keysOf(row.tenant), row)
      return { kind: kindOf(row.kind), tenant: row.tenant, record } as Expired
    }
    return Promise.all((await this.rows.findExpired(limit)).map(open))
  }

  async readLog(tenant: number): Promise<Log> {
    const keys = await this.keysOf(tenant)
    const listed = (await this.get('tenant', 0, String(tenant)))?.log_chains
    return new Log({ rows: this.rows, keys, tenant, heads: this.shared.heads }, listed)
  }

  #open<K extends Kind>(keys: RecordKeys, row: Row): Awaitable<RecordOf[K]> {
    this.shared.opened += row.sealed.length
    if (this.shared.opened <= OPENED_AT_ONCE) return this.#openNow(keys, row) as RecordOf[K]
    this.shared.opened = 0
    return new Promise(setImmediate).then(() => this.#openNow(keys, row) as RecordOf[K])
  }

  /**
   * Opens a record. Omits the code of a card if the code has expired, even if the sweep has not erased the code yet.
   */
  #openNow(keys: RecordKeys, row: Row): RecordOf[Kind] {
    const record = sealing.openRecord(keys, row)
    const isToken = row.kind === KINDS.token || row.kind === KINDS.token_intent
    return isToken ? tokenAt(record as RecordOf['token'], this.codeTime) : record
  }
}

function locateRow<K extends Kind>(kind: K, tenant: number, row: Row): SealedLocation<K> {
  return { kind, tenant, bytes: row.unread ?? row.sealed.length, seq: row.seq, row }
}
