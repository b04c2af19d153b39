import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { type Awaitable, andThen } from '../../domain/awaitable.js'
import { KINDS, type Kind, kindOf, type LogRecord, type RecordOf } from '../../domain/records/records.js'
import { base58 } from '../../domain/text/base58.js'
import { tokenAt } from '../../domain/token/card-code.js'
import { CofferError, conflict } from '../../errors.js'
import type { EngineReader, EngineWriter, LogEntry, Row } from '../engine.js'
import {
  type ClockState,
  type Expired,
  eachRecord,
  type Found,
  type PutOptions,
  type RecordLocation,
  type Search,
  type SeekSearch,
  type StoreWriter,
} from '../store.js'
import { Log } from './log.js'
import { createEntry, sizeOf } from './log-block.js'
import { FIRST_CHAIN, type HeadCache } from './log-chain.js'
import { type RecordCache, sumCounters } from './record-cache.js'
import * as sealing from './sealing.js'

/** Sealed bytes that are held of located records; of the others only the location is known. */
const HELD_BYTES = 1024 * 1024
/** Sealed bytes that are opened before other work has a turn: some milliseconds' worth. */
const OPENED_AT_ONCE = 256 * 1024
/** Shorter fingerprints are filled up. */
const FINGERPRINT_CHARACTERS = 43

/** The state that all units of work of a store share. */
export interface SharedState {
  keys: VaultKeys
  cache: RecordCache
  heads: HeadCache
  /** Sealed bytes opened since other work had a turn. */
  opened: number
  /** How far the clock of codes is behind that of the wall, in ms. */
  codeLag(): number
}

/** Log records were opened with the block that they are in. */
type SealedLocation<K extends Kind> = RecordLocation<K> & ({ row: Row } | { record: RecordOf[K] })

/** Contract: a unit that only reads gets an {@link EngineReader}, and calls no method that writes. */
export class SealedUnit implements StoreWriter {
  readonly #rows: EngineWriter
  readonly #shared: SharedState
  /** The keys that were used last. */
  #used: { tenant: number; keys: RecordKeys } | undefined

  constructor(rows: EngineReader, shared: SharedState) {
    this.#rows = rows as EngineWriter
    this.#shared = shared
  }

  get now(): number {
    return this.#rows.now
  }

  get clock(): ClockState {
    return this.#rows.clock
  }

  get codeTime(): number {
    return this.now - this.#shared.codeLag()
  }

  changeCounter(kinds: readonly Kind[]): number | undefined {
    return sumCounters(kinds, (kind) => this.#rows.changeCounter?.(kind))
  }

  /** @throws CofferError `not_found` if there is no such tenant any more */
  async #keysOf(tenant: number): Promise<RecordKeys> {
    const keys = await this.findKeys(tenant)
    if (keys !== undefined) return keys
    throw new CofferError('not_found', 'The tenant does not exist any more.')
  }

  /** The keys of a tenant; undefined if there is no such tenant any more. */
  async findKeys(tenant: number): Promise<RecordKeys | undefined> {
    const { keys, cache } = this.#shared
    if (tenant === 0) return keys.vault
    const record = await this.get('tenant', 0, String(tenant))
    return record && cache.keysOf(record, (opened) => keys.openTenant(opened.keys))
  }

  #cachedKeys(tenant: number): RecordKeys | undefined {
    if (this.#used?.tenant === tenant) return this.#used.keys
    const { keys, cache } = this.#shared
    const counter = this.#rows.changeCounter?.(KINDS.tenant)
    const record = counter === undefined ? undefined : cache.find('tenant', 0, String(tenant), counter)
    if (record === undefined) return undefined
    const found = cache.keysOf(record as RecordOf['tenant'], (opened) => keys.openTenant(opened.keys))
    this.#used = { tenant, keys: found }
    return found
  }

  get<K extends Kind>(kind: K, tenant: number, id: string): Awaitable<RecordOf[K] | undefined> {
    const { cache } = this.#shared
    const counter = cache.holds(kind) ? this.#rows.changeCounter?.(KINDS[kind]) : undefined
    const known = counter === undefined ? undefined : cache.find(kind, tenant, id, counter)
    if (known !== undefined) return known as RecordOf[K]
    return andThen(this.#cachedKeys(tenant) ?? this.#keysOf(tenant), (keys) =>
      andThen(this.#rows.get(KINDS[kind], tenant, sealing.digestId(keys, kind, tenant, id)), (row) => {
        if (row === undefined) return undefined
        return andThen(this.#open<K>(keys, row), (record) => {
          if (counter !== undefined && row.expires === 0) cache.put(kind, tenant, id, counter, record)
          return record
        })
      }),
    )
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
    const query = sealing.select(await this.#keysOf(tenant), kind, tenant, where)
    const { rows, total } = await this.#rows.find({ ...query, page, size, maxBytes: HELD_BYTES })
    return { locations: rows.map((row) => locateRow(kind, tenant, row)), total }
  }

  async seek<K extends Kind>(kind: K, tenant: number, search: SeekSearch): Promise<SealedLocation<K>[]> {
    const { size, below, above, where } = search
    const query = sealing.select(await this.#keysOf(tenant), kind, tenant, where)
    const rows = await this.#rows.seek({ ...query, size, below, above, maxBytes: HELD_BYTES })
    return rows.map((row) => locateRow(kind, tenant, row))
  }

  async sealCursor(tenant: number, about: string, seq: number): Promise<string> {
    return sealing.sealCursor(await this.#keysOf(tenant), about, seq)
  }

  async openCursor(tenant: number, about: string, cursor: string): Promise<number | undefined> {
    return sealing.openCursor(await this.#keysOf(tenant), about, cursor)
  }

  async open<K extends Kind>(location: SealedLocation<K>): Promise<RecordOf[K] | undefined> {
    if ('record' in location) return location.record
    const { tenant, row } = location
    const here = row.unread === undefined ? row : await this.#rows.get(row.kind, tenant, row.id)
    return here && this.#open(await this.#keysOf(tenant), here)
  }

  async findExpired(limit: number): Promise<Expired[]> {
    const open = async (row: Row) => {
      const record = sealing.openRecord(await this.#keysOf(row.tenant), row)
      return { kind: kindOf(row.kind), tenant: row.tenant, record } as Expired
    }
    return Promise.all((await this.#rows.findExpired(limit)).map(open))
  }

  async insert<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options: PutOptions = {}) {
    // A tenant's keys are in its own record, so that record is under the vault's.
    const keys = this.#cachedKeys(tenant) ?? (await this.#keysOf(tenant))
    const id = sealing.digestId(keys, kind, tenant, sealing.idOf(record))
    if (!options.fresh) await this.#ensureFree(kind, tenant, id)
    // An await of nothing costs a promise for each row.
    const putting = this.#rows.put(sealing.createDraft(keys, { kind, tenant, id, record }, options))
    if (putting !== undefined) await putting
  }

  async replace<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options: PutOptions = {}) {
    const keys = await this.#keysOf(tenant)
    const id = sealing.digestId(keys, kind, tenant, sealing.idOf(record))
    const { seq, created, modified } = await this.#requireRow(kind, tenant, id)
    const draft = sealing.createDraft(keys, { kind, tenant, id, record }, options)
    await this.#rows.put({ ...draft, seq, created, modified: options.keepsModified ? modified : this.now })
  }

  async remove(kind: Kind, tenant: number, id: string): Promise<void> {
    const digest = sealing.digestId(await this.#keysOf(tenant), kind, tenant, id)
    await this.#requireRow(kind, tenant, digest)
    await this.#rows.remove(KINDS[kind], tenant, digest)
    // Before the commit, because forgetting a record that stays costs no more than opening it again.
    this.#shared.cache.forget(kind)
  }

  async purge<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined> {
    const keys = await this.#keysOf(tenant)
    const digest = sealing.digestId(keys, kind, tenant, id)
    const row = await this.#rows.get(KINDS[kind], tenant, digest, { expired: true })
    if (row === undefined || row.expires === 0 || row.expires > this.clock.purgeBefore) return undefined
    await this.#rows.remove(KINDS[kind], tenant, digest)
    return sealing.openRecord(keys, row) as RecordOf[K]
  }

  async removeTenant(tenant: number): Promise<void> {
    await this.remove('tenant', 0, String(tenant))
    await this.#rows.dropTenant(tenant)
    this.#used = undefined
  }

  storeTime(options?: { isTrusted?: boolean }): void {
    this.#rows.storeTime(options)
  }

  async fingerprint(tenant: number, value: string): Promise<string> {
    const keys = this.#cachedKeys(tenant) ?? (await this.#keysOf(tenant))
    return base58(keys.fingerprint(value), FINGERPRINT_CHARACTERS)
  }

  log(tenant: number, record: Omit<LogRecord, 'created_at'>, at: number): void {
    this.#rows.append(createEntry(tenant, record, at))
  }

  /** @throws CofferError `not_found` if there is no such tenant any more */
  async readLog(tenant: number): Promise<Log> {
    const keys = await this.#keysOf(tenant)
    const listed = (await this.get('tenant', 0, String(tenant)))?.log_chains
    return new Log({ rows: this.#rows, keys, tenant, heads: this.#shared.heads }, listed)
  }

  async dropLogs(before: number, limit: number): Promise<number> {
    let count = 0
    for await (const { number } of eachRecord(this, 'tenant', 0))
      count += await (await this.readLog(number)).drop(before, limit)
    return count
  }

  /** Puts entries into a tenant's log. A `chain` that is named, or where there is a list, is put on that list. */
  async putLog(
    tenant: number,
    entries: readonly LogEntry[],
    chain?: number,
    batches: readonly Uint8Array[] = [],
  ): Promise<void> {
    const record = await this.get('tenant', 0, String(tenant))
    if (record === undefined) return
    const log = await this.readLog(tenant)
    const { log_chains: listed } = record
    const number = chain ?? FIRST_CHAIN
    if ((chain ?? listed) !== undefined && !listed?.includes(number)) {
      const before = listed ?? ((await log.chain(FIRST_CHAIN).exists()) ? [FIRST_CHAIN] : [])
      const log_chains = [...new Set([...before, number])].sort((a, b) => a - b)
      await this.replace('tenant', 0, { ...record, log_chains })
    }
    await log.chain(number).append(entries, batches)
  }

  #open<K extends Kind>(keys: RecordKeys, row: Row): Awaitable<RecordOf[K]> {
    this.#shared.opened += row.sealed.length
    if (this.#shared.opened <= OPENED_AT_ONCE) return this.#openNow(keys, row) as RecordOf[K]
    this.#shared.opened = 0
    return new Promise(setImmediate).then(() => this.#openNow(keys, row) as RecordOf[K])
  }

  /** Every read of a record passes here. So nobody sees the code of a card after its time, erased or not. */
  #openNow(keys: RecordKeys, row: Row): RecordOf[Kind] {
    const record = sealing.openRecord(keys, row)
    const isToken = row.kind === KINDS.token || row.kind === KINDS.token_intent
    return isToken ? tokenAt(record as RecordOf['token'], this.codeTime) : record
  }

  async #requireRow(kind: Kind, tenant: number, id: Uint8Array): Promise<Row> {
    const row = await this.#rows.get(KINDS[kind], tenant, id)
    if (row !== undefined) return row
    throw new CofferError('not_found', `There is no such ${kind}.`)
  }

  /** Purges an expired record that still has the id, so that it may be given again. */
  async #ensureFree(kind: Kind, tenant: number, id: Uint8Array): Promise<void> {
    const row = await this.#rows.get(KINDS[kind], tenant, id, { expired: true })
    if (row === undefined) return
    if (row.expires === 0 || row.expires > this.now)
      throw conflict(`There is a ${kind} with this id already. Choose another id.`)
    if (row.expires > this.clock.purgeBefore) {
      const reason = `The ${kind} with this id has expired by a clock that has just jumped, so it is not replaced yet.`
      throw conflict(`${reason} Try again in an hour, or confirm the clock: coffer vault compact`)
    }
    await this.#rows.remove(KINDS[kind], tenant, row.id)
  }
}

function locateRow<K extends Kind>(kind: K, tenant: number, row: Row): SealedLocation<K> {
  return { kind, tenant, bytes: row.unread ?? row.sealed.length, seq: row.seq, row }
}
