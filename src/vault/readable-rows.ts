/** Copies the readable rows of a damaged vault, and repairs the records that refer to lost records. */
import type { RandomSource } from '../crypto/ports.js'
import { KEY_BYTES } from '../crypto/primitives.js'
import { createUuid } from '../crypto/random.js'
import { containerSet, containerSetId } from '../domain/access/container.js'
import { describeLostTenants, LostTenants } from '../domain/records/lost-tenants.js'
import { KINDS, type RecordOf, type TenantRecord } from '../domain/records/records.js'
import { CofferError } from '../errors.js'
import { writeEntries } from '../framework/events.js'
import type { CopyDamage } from '../framework/ports/vault.js'
import { type LogLine, toRecord, unpack } from '../storage/barrier/log-block.js'
import { createReseal, type ResealOptions } from '../storage/barrier/reseal.js'
import { openRecord } from '../storage/barrier/sealing.js'
import { toBase64, toText } from '../storage/bytes.js'
import type { Row, VaultRows } from '../storage/engine.js'
import { eachRecord, readAll, type Store, type StoreWriter } from '../storage/store.js'

const LOGGED_AT_ONCE = 5000

export class ReadableRows {
  readonly #found: VaultRows
  readonly #options: ResealOptions
  readonly #random: RandomSource
  readonly #damage: CopyDamage
  readonly #logs = new Map<number, LogLine[]>()

  constructor(found: VaultRows, options: ResealOptions, random: RandomSource, damage: CopyDamage) {
    this.#found = found
    this.#options = options
    this.#random = random
    this.#damage = damage
  }

  /** Yields the rows with their keys. Rows of logs are not yielded: they are collected for `mend`. */
  async *rows(): AsyncGenerator<Row> {
    const reseal = createReseal({ ...this.#options, logsAnew: true })
    const skip = (kind: number | undefined) =>
      this.#skip(Object.entries(KINDS).find(([, number]) => number === kind)?.[0] ?? 'unknown')
    const tenants = new TenantRows()
    const lost = new LostTenants()
    for await (const row of this.#found.rows(skip)) {
      if (tenants.has(row)) continue
      if (isLost(row, this.#options.tenants)) {
        lost.count(row.tenant)
        skip(row.kind)
        continue
      }
      try {
        const { kind, tenant, seq, rev, created, modified, expires } = row
        if (kind === KINDS.log_block) this.#collectLog(row)
        // The fields are copied one by one, because a row of the write-ahead log has getters instead of fields.
        else {
          const resealed = { kind, tenant, seq, rev, created, modified, expires, ...(await reseal(row)) }
          tenants.note(row, true)
          yield resealed
        }
      } catch (error) {
        if (!(error instanceof CofferError)) throw error
        if (!tenants.note(row, false)) skip(row.kind)
      }
    }
    for (let left = tenants.lost; left > 0; left--) skip(KINDS.tenant)
    this.#damage.lost_tenants.push(...lost.list())
  }

  #skip(name: string): void {
    const { skipped } = this.#damage
    skipped[name] = (skipped[name] ?? 0) + 1
  }

  /** @throws CofferError if the row cannot be opened */
  #collectLog(row: Row): void {
    const { present, tenants } = this.#options
    const keys = tenants.get(row.tenant)
    if (keys === undefined) throw new CofferError('vault_damaged', 'The record of a tenant is missing.')
    const record = openRecord(present.openTenant(keys), row) as RecordOf['log_block']
    const lines = this.#logs.get(row.tenant) ?? []
    for (const line of unpack('tail' in record ? record.tail : record)) lines.push(line)
    this.#logs.set(row.tenant, lines)
  }

  async mend(store: Store): Promise<void> {
    const tenants = await readAll(store, 'tenant', 0)
    await store.write((writer) => this.#mendSettings(writer, tenants))
    for (const tenant of tenants) {
      await this.#removeLooseLinks(store, tenant.number)
      await mendContainers(store, tenant.number)
      await this.#writeLog(store, tenant)
    }
  }

  /** Creates missing settings with a new secrets key, which makes all API keys invalid. */
  async #mendSettings(writer: StoreWriter, tenants: readonly TenantRecord[]): Promise<void> {
    if ((await writer.get('settings', 0, 'vault')) !== undefined) return
    const secrets_key = toBase64(this.#random.bytes(KEY_BYTES))
    const next_tenant = Math.max(0, ...tenants.map(({ number }) => number)) + 1
    const owner_id = tenants[0]?.owner_id ?? createUuid(this.#random)
    await writer.insert('settings', 0, { id: 'vault', secrets_key, owner_id, next_tenant, values: {} })
  }

  async #removeLooseLinks(store: Store, tenant: number): Promise<void> {
    const links = await readAll(store, 'association', tenant)
    await store.write(async (writer) => {
      for (const { id, parent_id, child_id } of links) {
        const isThere = async (token: string) => (await writer.get('token', tenant, token)) !== undefined
        if ((await isThere(parent_id)) && (await isThere(child_id))) continue
        await writer.remove('association', tenant, id)
        this.#skip('association')
      }
    })
  }

  async #writeLog(store: Store, tenant: TenantRecord): Promise<void> {
    const { id, number } = tenant
    const lines = (this.#logs.get(number) ?? []).sort((one, other) => one.time - other.time)
    for (let first = 0; first < lines.length; first += LOGGED_AT_ONCE)
      await store.write(async (writer) => {
        for (const line of lines.slice(first, first + LOGGED_AT_ONCE))
          await writer.log(number, toRecord(line), line.time)
      })
    const message = 'Vault copied without damaged records; log records may be missing'
    const as = { operation: 'update', message } as const
    const entry = { type: 'tenant', id, as, actor: { type: 'system' } } as const
    const draw = () => createUuid(this.#random)
    await store.write((writer) => writeEntries({ store: writer, createUuid: draw }, tenant, [entry], draw()))
  }
}

/** Tenant 0 is the vault itself. */
function isLost({ tenant }: Row, tenants: ResealOptions['tenants']): boolean {
  return tenant !== 0 && !tenants.has(tenant)
}

/** @throws CofferError `vault_damaged` if the vault is damaged and no tenant can be read */
export async function requireTenants(
  found: VaultRows,
  tenants: ResealOptions['tenants'],
  { findings }: CopyDamage,
): Promise<void> {
  if (tenants.size > 0) return
  const lost = new LostTenants()
  let isDamaged = findings.length > 0
  const noteDamage = () => {
    isDamaged = true
  }
  for await (const row of found.rows(noteDamage)) {
    if (isLost(row, tenants)) lost.count(row.tenant)
    if (isLost(row, tenants) || row.kind === KINDS.tenant) noteDamage()
  }
  // If there is no damage, the vault has no tenants, because the owner has deleted them.
  if (!isDamaged) return
  const nothing = 'No tenant of the vault can be read, so nothing was copied.'
  throw new CofferError('vault_damaged', `${nothing} ${describeLostTenants(lost.list())}`)
}

/**
 * Remembers which tenants' rows were readable. A vault has two copies of each tenant's row, and one readable copy is
 * enough.
 */
class TenantRows {
  readonly #isReadable = new Map<string, boolean>()

  has({ kind, id }: Row): boolean {
    return kind === KINDS.tenant && this.#isReadable.get(toText(id)) === true
  }

  /** Returns false if the row is not the row of a tenant. */
  note({ kind, id }: Row, isReadable: boolean): boolean {
    if (kind === KINDS.tenant) this.#isReadable.set(toText(id), isReadable)
    return kind === KINDS.tenant
  }

  get lost(): number {
    return [...this.#isReadable.values()].filter((isReadable) => !isReadable).length
  }
}

/** Adds missing container sets. Callers who may read only some containers need container sets to find tokens. */
async function mendContainers(store: Store, tenant: number): Promise<void> {
  const sets = new Map<string, string[]>()
  for await (const { containers } of eachRecord(store, 'token', tenant))
    sets.set(containerSetId(containers), containerSet(containers))
  await store.write(async (writer) => {
    for (const [id, containers] of sets)
      if ((await writer.get('containers', tenant, id)) === undefined)
        await writer.insert('containers', tenant, { id, containers })
  })
}
