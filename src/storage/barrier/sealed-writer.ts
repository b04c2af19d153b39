import { KINDS, type Kind, type LogRecord, type RecordOf } from '../../domain/records/records.js'
import { base58 } from '../../domain/text/base58.js'
import { CofferError, conflict } from '../../errors.js'
import type { EngineWriter, LogEntry, Row } from '../engine.js'
import { eachRecord, type PutOptions, type StoreWriter } from '../store.js'
import { createEntry } from './log-block.js'
import { FIRST_CHAIN } from './log-chain.js'
import { SealedReader } from './sealed-reader.js'
import * as sealing from './sealing.js'

const FINGERPRINT_CHARACTERS = 43

export class SealedWriter extends SealedReader<EngineWriter> implements StoreWriter {
  async insert<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options: PutOptions = {}) {
    const keys = this.cachedKeys(tenant) ?? (await this.keysOf(tenant))
    const id = sealing.digestId(keys, kind, tenant, sealing.idOf(record))
    if (!options.fresh) await this.#ensureFree(kind, tenant, id)
    // There is no `await` if the engine has already finished, because a promise for each row slows bulk inserts.
    const putting = this.rows.put(sealing.createDraft(keys, { kind, tenant, id, record }, options))
    if (putting !== undefined) await putting
  }

  async requireFree(kind: Kind, tenant: number, id: string): Promise<void> {
    const keys = this.cachedKeys(tenant) ?? (await this.keysOf(tenant))
    await this.#ensureFree(kind, tenant, sealing.digestId(keys, kind, tenant, id))
  }

  async replace<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options: PutOptions = {}) {
    const keys = await this.keysOf(tenant)
    const id = sealing.digestId(keys, kind, tenant, sealing.idOf(record))
    const { seq, created, modified } = await this.#requireRow(kind, tenant, id)
    const draft = sealing.createDraft(keys, { kind, tenant, id, record }, options)
    await this.rows.put({ ...draft, seq, created, modified: options.keepsModified ? modified : this.now })
  }

  async remove(kind: Kind, tenant: number, id: string): Promise<void> {
    const digest = sealing.digestId(await this.keysOf(tenant), kind, tenant, id)
    await this.#requireRow(kind, tenant, digest)
    await this.rows.remove(KINDS[kind], tenant, digest)
    // The cache forgets the record before the commit. If the commit fails, the next read opens the record again.
    this.shared.cache.forget(kind)
  }

  async purge<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined> {
    const keys = await this.keysOf(tenant)
    const digest = sealing.digestId(keys, kind, tenant, id)
    const row = await this.rows.get(KINDS[kind], tenant, digest, { expired: true })
    if (row === undefined || row.expires === 0 || row.expires > this.clock.purgeBefore) return undefined
    await this.rows.remove(KINDS[kind], tenant, digest)
    return sealing.openRecord(keys, row) as RecordOf[K]
  }

  async removeTenant(tenant: number): Promise<void> {
    await this.remove('tenant', 0, String(tenant))
    await this.rows.dropTenant(tenant)
    this.forgetKeys()
  }

  storeTime(options?: { isTrusted?: boolean }): void {
    this.rows.storeTime(options)
  }

  async fingerprint(tenant: number, value: string): Promise<string> {
    const keys = this.cachedKeys(tenant) ?? (await this.keysOf(tenant))
    return base58(keys.fingerprint(value), FINGERPRINT_CHARACTERS)
  }

  log(tenant: number, record: Omit<LogRecord, 'created_at'>, at: number): void {
    this.rows.append(createEntry(tenant, record, at))
  }

  async dropLogs(before: number, limit: number, sink?: string): Promise<number> {
    let count = 0
    for await (const { number } of eachRecord(this, 'tenant', 0)) {
      const read =
        sink === undefined ? undefined : ((await this.get('log_sink', number, sink))?.position ?? {})
      count += await (await this.readLog(number)).drop(this.rows, before, limit, read)
    }
    return count
  }

  /**
   * Appends entries to a chain of the tenant's log (default: the first chain). Adds the chain to the tenant's list of
   * chains if `chain` is given, or if the tenant already has a list. Does nothing if the tenant was deleted.
   */
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
    await log.chain(number).append(this.rows, entries, batches)
  }

  async #requireRow(kind: Kind, tenant: number, id: Uint8Array): Promise<Row> {
    const row = await this.rows.get(KINDS[kind], tenant, id)
    if (row !== undefined) return row
    throw new CofferError('not_found', `There is no ${kind} with this id.`)
  }

  /** Purges an expired record with this id. @throws CofferError `conflict` if the id is not free */
  async #ensureFree(kind: Kind, tenant: number, id: Uint8Array): Promise<void> {
    const row = await this.rows.get(KINDS[kind], tenant, id, { expired: true })
    if (row === undefined) return
    if (row.expires === 0 || row.expires > this.now)
      throw conflict(`There is a ${kind} with this id already. Choose another id.`)
    if (row.expires > this.clock.purgeBefore) {
      const reason = `The ${kind} with this id has expired, but the clock has just jumped, so the id is not free yet.`
      throw conflict(`${reason} Try again in an hour, or confirm the clock: coffer vault compact`)
    }
    await this.rows.remove(KINDS[kind], tenant, row.id)
  }
}
