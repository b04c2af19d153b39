/**
 * The barrier between records and rows: above it records, below it sealed bytes and keyed digests. It seals every
 * record under its tenant's keys and never learns where rows are kept.
 */

import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { base58 } from '../../domain/base58.js'
import { containerSet, containerSetId } from '../../domain/container.js'
import { KINDS, type Kind, type RecordOf } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import type { ClockState } from '../lsm/time.js'
import type {
  Condition,
  Draft,
  Engine,
  EngineReader,
  EngineWriter,
  Expired,
  Found,
  Page,
  Place,
  PutOptions,
  Row,
  Store,
  StoreReader,
  StoreWriter,
  Where,
} from '../store.js'
import { RecordCache } from './record-cache.js'
import {
  digestAll,
  digestId,
  digestKey,
  digestLogId,
  idOf,
  keysOfRecord,
  kindOf,
  openRecord,
  sealRecord,
  unseal,
} from './sealing.js'
import { createTenantCache, type TenantCache } from './tenant-cache.js'

/** Sealed bytes that are held of located records; of the others only the place is known. */
const HELD_BYTES = 1024 * 1024
/** Sealed bytes opened in one go: some milliseconds' worth, after which whoever needs no vault has a turn. */
const OPENED_AT_ONCE = 256 * 1024
const FINGERPRINT_BYTES = 32
/** Fewer would stand for fewer bytes, so shorter ones are filled up. */
const FINGERPRINT_CHARACTERS = 43

/** A store over `engine`. Closing it closes the engine. */
export function createSealedStore(engine: Engine, keys: VaultKeys): Store {
  const cache = new RecordCache()
  const tenants = createTenantCache(keys)
  const effort: Effort = { bytes: 0 }
  return {
    read: (work) => engine.read((rows) => work(new Reader(rows, tenants, cache, effort))),
    write: (work, durability) =>
      engine.write((rows) => work(new Writer(rows, tenants, cache, effort)), durability),
    stamp: (kinds) => kinds.reduce((sum, kind) => sum + engine.stamp(KINDS[kind]), 0),
    verifyLogs: async (tenant) => {
      const opened = await engine.read((rows) => tenants.keysOf(rows, tenant))
      const query = { kind: KINDS.log, tenant, all: digestAll(opened, 'log') }
      return engine.verifyLogs(query, (row) => unseal(opened, row) !== undefined)
    },
    close: () => {
      cache.clear()
      return engine.close()
    },
  }
}

/** Sealed bytes opened since others had a turn, by all units of work together. */
interface Effort {
  bytes: number
}

type SealedPlace<K extends Kind> = Place<K> & { row: Row }

class Reader implements StoreReader {
  protected readonly rows: EngineReader
  protected readonly cache: RecordCache
  readonly #tenants: TenantCache
  readonly #effort: Effort

  constructor(rows: EngineReader, tenants: TenantCache, cache: RecordCache, effort: Effort) {
    this.rows = rows
    this.cache = cache
    this.#tenants = tenants
    this.#effort = effort
  }

  /** @throws CofferError `not_found` when there is no such tenant any more. */
  protected keysOf(tenant: number): RecordKeys {
    return this.#tenants.keysOf(this.rows, tenant)
  }

  get now(): number {
    return this.rows.now
  }

  get clock(): ClockState {
    return this.rows.clock
  }

  async get<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined> {
    const stamp = this.cache.keeps(kind) ? this.rows.stamp(KINDS[kind]) : undefined
    const kept = stamp === undefined ? undefined : this.cache.find(kind, tenant, id, stamp)
    if (kept !== undefined) return kept as RecordOf[K]
    const keys = this.keysOf(tenant)
    const row = this.rows.get(KINDS[kind], tenant, digestId(keys, kind, tenant, id))
    if (row === undefined) return undefined
    const record = await this.#openGently(kind, keys, row)
    if (stamp !== undefined && row.expires === 0) this.cache.keep(kind, tenant, id, stamp, record)
    return record
  }

  async find<K extends Kind>(
    kind: K,
    tenant: number,
    query: Page & { where?: Condition },
  ): Promise<{ records: RecordOf[K][]; total: number }> {
    const keys = this.keysOf(tenant)
    const { rows, total } = this.#findRows(keys, kind, tenant, query)
    const records: RecordOf[K][] = []
    for (const row of rows) records.push(await this.#openGently(kind, keys, row))
    return { records, total }
  }

  async locate<K extends Kind>(
    kind: K,
    tenant: number,
    query: Page & { where?: Condition },
  ): Promise<{ places: SealedPlace<K>[]; total: number }> {
    const { rows, total } = this.#findRows(this.keysOf(tenant), kind, tenant, query, HELD_BYTES)
    const places = rows.map((row) => ({
      kind,
      tenant,
      bytes: row.unread ?? row.sealed.length,
      seq: row.seq,
      row,
    }))
    return { places, total }
  }

  async open<K extends Kind>({ kind, tenant, row }: SealedPlace<K>): Promise<RecordOf[K] | undefined> {
    const here = row.unread === undefined ? row : this.rows.get(row.kind, tenant, row.id)
    return here === undefined ? undefined : this.#openGently(kind, this.keysOf(tenant), here)
  }

  #findRows(
    keys: RecordKeys,
    kind: Kind,
    tenant: number,
    { where, page, size }: Page & { where?: Condition },
    mostBytes?: number,
  ): Found {
    return this.rows.find({
      family: kind === 'log' ? 'logs' : 'records',
      kind: KINDS[kind],
      tenant,
      all: digestAll(keys, kind),
      page,
      size,
      ...(where === undefined ? {} : { where: translate(keys, kind, tenant, where) }),
      ...(mostBytes === undefined ? {} : { mostBytes }),
    })
  }

  async #openGently<K extends Kind>(kind: K, keys: RecordKeys, row: Row): Promise<RecordOf[K]> {
    this.#effort.bytes += row.sealed.length
    if (this.#effort.bytes > OPENED_AT_ONCE) {
      this.#effort.bytes = 0
      await new Promise(setImmediate)
    }
    return this.cache.open(kind, row, (sealed) => openRecord(keys, sealed)) as RecordOf[K]
  }

  async findExpired(limit: number): Promise<Expired[]> {
    const found: Expired[] = []
    for (const row of this.rows.findExpired(limit)) {
      const { kind, tenant } = row
      const keys = this.keysOf(tenant)
      found.push({ kind: kindOf(kind), tenant, record: openRecord(keys, row) } as Expired)
    }
    return found
  }
}

class Writer extends Reader implements StoreWriter {
  declare protected readonly rows: EngineWriter

  async insert<K extends Kind>(
    kind: K,
    tenant: number,
    record: RecordOf[K],
    options: PutOptions = {},
  ): Promise<void> {
    // A tenant's keys are in its own record, so that record is under the vault's.
    const keys = this.keysOf(tenant)
    const id = digestId(keys, kind, tenant, idOf(record))
    if (!options.fresh) await this.makeRoom(kind, tenant, id)
    this.rows.put(this.draft(keys, kind, tenant, id, record, options))
    if (kind === 'token') await this.noteContainers(tenant, (record as RecordOf['token']).containers)
  }

  async replace<K extends Kind>(
    kind: K,
    tenant: number,
    record: RecordOf[K],
    options: PutOptions = {},
  ): Promise<void> {
    const keys = this.keysOf(tenant)
    const id = digestId(keys, kind, tenant, idOf(record))
    const row = this.rows.get(KINDS[kind], tenant, id)
    if (row === undefined) throw unknownRecord(kind)
    const draft = this.draft(keys, kind, tenant, id, record, options)
    this.rows.put({ ...draft, seq: row.seq, created: row.created, modified: this.now })
    if (kind === 'token') await this.noteContainers(tenant, (record as RecordOf['token']).containers)
  }

  async remove(kind: Kind, tenant: number, id: string): Promise<void> {
    const keys = this.keysOf(tenant)
    const digest = digestId(keys, kind, tenant, id)
    if (this.rows.get(KINDS[kind], tenant, digest) === undefined) throw unknownRecord(kind)
    this.rows.remove(KINDS[kind], tenant, digest)
    this.cache.forget(digest)
  }

  async purge<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined> {
    const keys = this.keysOf(tenant)
    const digest = digestId(keys, kind, tenant, id)
    const row = this.rows.get(KINDS[kind], tenant, digest, { expired: true })
    if (row === undefined || row.expires === 0 || row.expires > this.clock.purgeUntil) return undefined
    this.rows.remove(KINDS[kind], tenant, digest)
    return openRecord(keys, row) as RecordOf[K]
  }

  async removeTenant(tenant: number): Promise<void> {
    await this.remove('tenant', 0, String(tenant))
    this.rows.dropTenant(tenant)
  }

  noteTime(options?: { isTrusted?: boolean }): void {
    this.rows.noteTime(options)
  }

  async log(tenant: number, record: RecordOf['log']): Promise<void> {
    const keys = this.keysOf(tenant)
    const id = digestLogId(keys, tenant, this.rows.revision)
    this.rows.append(this.draft(keys, 'log', tenant, id, record, {}))
  }

  async fingerprint(tenant: number, value: string): Promise<string> {
    const keys = this.keysOf(tenant)
    return base58(keys.fingerprint(Buffer.from(value), FINGERPRINT_BYTES), FINGERPRINT_CHARACTERS)
  }

  /** Purges an expired record that still has the id, so that it may be given again. */
  private async makeRoom(kind: Kind, tenant: number, id: Uint8Array): Promise<void> {
    if (this.rows.get(KINDS[kind], tenant, id) !== undefined) {
      throw new CofferError('conflict', `There is a ${kind} with this id already. Choose another id.`)
    }
    const expired = this.rows.get(KINDS[kind], tenant, id, { expired: true })
    if (expired === undefined) return
    if (expired.expires > this.clock.purgeUntil) {
      const reason = `The ${kind} with this id has expired by a clock that has just jumped, so it is not replaced yet.`
      throw new CofferError(
        'conflict',
        `${reason} Try again in an hour, or confirm the clock: coffer vault compact`,
      )
    }
    this.rows.remove(KINDS[kind], tenant, id)
  }

  private async noteContainers(tenant: number, containers: readonly string[]): Promise<void> {
    const id = containerSetId(containers)
    if ((await this.get('containers', tenant, id)) !== undefined) return
    await this.insert('containers', tenant, { id, containers: containerSet(containers) }, { fresh: true })
  }

  private draft<K extends Kind>(
    keys: RecordKeys,
    kind: K,
    tenant: number,
    id: Uint8Array,
    record: RecordOf[K],
    { search = [], expires = 0 }: PutOptions,
  ): Draft {
    const sealed = sealRecord(keys, { id, rev: this.rows.revision }, record)
    return {
      kind: KINDS[kind],
      tenant,
      id,
      modified: 0,
      expires,
      keys: keysOfRecord(keys, kind, record, search),
      sealed,
    }
  }
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

function unknownRecord(kind: Kind): CofferError {
  return new CofferError('not_found', `There is no such ${kind}.`)
}
