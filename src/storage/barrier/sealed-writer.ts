/** Writes records in a unit of work: as rows that are sealed, and carry the keyed digests they can be found by. */
import type { RecordKeys } from '../../crypto/ports.js'
import { containerSet, containerSetId } from '../../domain/access/container.js'
import { KINDS, type Kind, type LogRecord, type RecordOf } from '../../domain/records/records.js'
import { base58 } from '../../domain/text/base58.js'
import { CofferError, conflict } from '../../errors.js'
import type { Draft, EngineWriter, LogEntry, Row } from '../engine.js'
import { eachRecord } from '../pages.js'
import type { PutOptions, StoreWriter } from '../store.js'
import { createEntry } from './log-block.js'
import { FIRST_CHAIN, HEAD, LogChain } from './log-chain.js'
import { LogWriter } from './log-writer.js'
import { SealedReader } from './sealed-reader.js'
import { digestId, idOf, keysOfRecord, openRecord, sealRecord } from './sealing.js'

/** Fewer would stand for fewer bytes, so shorter ones are filled up. */
const FINGERPRINT_CHARACTERS = 43

export class SealedWriter extends SealedReader implements StoreWriter {
  declare protected readonly rows: EngineWriter
  /** The set of containers that was noted last: the tokens of one unit often share it. */
  #noted = ''

  async insert<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options: PutOptions = {}) {
    // A tenant's keys are in its own record, so that record is under the vault's.
    const keys = await this.keysOf(tenant)
    const id = digestId(keys, kind, tenant, idOf(record))
    if (!options.fresh) await this.#makeRoom(kind, tenant, id)
    await this.#put(kind, record, createDraft(keys, kind, tenant, id, record, options))
  }

  async replace<K extends Kind>(kind: K, tenant: number, record: RecordOf[K], options: PutOptions = {}) {
    const keys = await this.keysOf(tenant)
    const id = digestId(keys, kind, tenant, idOf(record))
    const { seq, created } = await this.#requireRow(kind, tenant, id)
    const draft = createDraft(keys, kind, tenant, id, record, options)
    await this.#put(kind, record, { ...draft, seq, created, modified: this.now })
  }

  async #put(kind: Kind, record: RecordOf[Kind], draft: Draft): Promise<void> {
    await this.rows.put(draft)
    this.#noteChange(kind)
    if (kind === 'token') await this.#noteContainers(draft.tenant, record as RecordOf['token'])
  }

  async remove(kind: Kind, tenant: number, id: string): Promise<void> {
    const digest = digestId(await this.keysOf(tenant), kind, tenant, id)
    await this.#requireRow(kind, tenant, digest)
    await this.rows.remove(KINDS[kind], tenant, digest)
    this.#noteChange(kind)
    // Before the commit, because forgetting a record that stays costs no more than opening it again.
    this.cache.forget(digest)
  }

  async purge<K extends Kind>(kind: K, tenant: number, id: string): Promise<RecordOf[K] | undefined> {
    const keys = await this.keysOf(tenant)
    const digest = digestId(keys, kind, tenant, id)
    const row = await this.rows.get(KINDS[kind], tenant, digest, { expired: true })
    if (row === undefined || row.expires === 0 || row.expires > this.clock.purgeUntil) return undefined
    await this.rows.remove(KINDS[kind], tenant, digest)
    this.#noteChange(kind)
    return openRecord(keys, row) as RecordOf[K]
  }

  async removeTenant(tenant: number): Promise<void> {
    await this.remove('tenant', 0, String(tenant))
    await this.rows.dropTenant(tenant)
  }

  noteTime(options?: { isTrusted?: boolean }): void {
    this.rows.noteTime(options)
  }

  async log(tenant: number, record: LogRecord, at?: number): Promise<void> {
    await this.rows.append(createEntry(tenant, record, at))
  }

  async dropLogs(before: number, limit: number): Promise<number> {
    let count = 0
    for await (const { number } of eachRecord(this, 'tenant', 0)) {
      const keys = await this.keysOf(number)
      for (const chain of (await this.chainsOf(number)) ?? [FIRST_CHAIN])
        count += await new LogWriter(this.rows, keys, number, chain, this.chains).drop(before, limit)
    }
    return count
  }

  /** Puts entries into a tenant's log. A `chain` that is named, or where there is a list, is put on that list. */
  async putLog(
    tenant: number,
    entries: readonly LogEntry[],
    chain?: number,
    batches: readonly Uint8Array[] = [],
  ): Promise<void> {
    const keys = await this.findKeys(tenant)
    if (keys === undefined) return
    if (chain !== undefined || (await this.chainsOf(tenant)) !== undefined)
      await this.#listChain(tenant, keys, chain ?? FIRST_CHAIN)
    await new LogWriter(this.rows, keys, tenant, chain ?? FIRST_CHAIN, this.chains).append(entries, batches)
  }

  async #listChain(tenant: number, keys: RecordKeys, chain: number): Promise<void> {
    const record = await this.get('tenant', 0, String(tenant))
    if (record === undefined || record.log_chains?.includes(chain)) return
    const { log_chains: listed = [] } = record
    const first = new LogChain(this.rows, keys, tenant, FIRST_CHAIN, this.chains)
    const isUnlisted = listed.length === 0 && chain !== FIRST_CHAIN
    const before = isUnlisted && (await first.find(HEAD)) !== undefined ? [FIRST_CHAIN] : listed
    await this.replace('tenant', 0, { ...record, log_chains: [...before, chain].sort((a, b) => a - b) })
  }

  async fingerprint(tenant: number, value: string): Promise<string> {
    const keys = await this.keysOf(tenant)
    return base58(keys.fingerprint(value), FINGERPRINT_CHARACTERS)
  }

  #noteChange(kind: Kind): void {
    if (this.cache.keeps(kind)) this.changes++
  }

  async #requireRow(kind: Kind, tenant: number, id: Uint8Array): Promise<Row> {
    const row = await this.rows.get(KINDS[kind], tenant, id)
    if (row !== undefined) return row
    throw new CofferError('not_found', `There is no such ${kind}.`)
  }

  /** Purges an expired record that still has the id, so that it may be given again. */
  async #makeRoom(kind: Kind, tenant: number, id: Uint8Array): Promise<void> {
    const row = await this.rows.get(KINDS[kind], tenant, id, { expired: true })
    if (row === undefined) return
    if (row.expires === 0 || row.expires > this.now)
      throw conflict(`There is a ${kind} with this id already. Choose another id.`)
    if (row.expires > this.clock.purgeUntil) {
      const reason = `The ${kind} with this id has expired by a clock that has just jumped, so it is not replaced yet.`
      throw conflict(`${reason} Try again in an hour, or confirm the clock: coffer vault compact`)
    }
    await this.rows.remove(KINDS[kind], tenant, row.id)
  }

  #noteContainers(tenant: number, { containers }: RecordOf['token']): Promise<void> | undefined {
    const id = containerSetId(containers)
    const name = `${tenant}/${id}`
    if (this.#noted === name) return
    this.#noted = name
    return this.get('containers', tenant, id).then((known) => {
      if (known !== undefined) return
      return this.insert('containers', tenant, { id, containers: containerSet(containers) }, { fresh: true })
    })
  }
}

function createDraft<K extends Kind>(
  keys: RecordKeys,
  kind: K,
  tenant: number,
  id: Uint8Array,
  record: RecordOf[K],
  { search = [], expires = 0 }: PutOptions,
): Draft {
  return {
    kind: KINDS[kind],
    tenant,
    id,
    modified: 0,
    expires,
    keys: keysOfRecord(keys, kind, record, search),
    seal: (rev) => sealRecord(keys, { id, rev }, record),
  }
}
