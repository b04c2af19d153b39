/** Reseals rows with new keys. The engine stores the resealed rows. */
import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { AFTER_LOST_KEYS, describeLostTenant, LostTenants } from '../../domain/records/lost-tenants.js'
import { KINDS, kindOf, type RecordOf, type TenantKeyBytes } from '../../domain/records/records.js'
import { damaged } from '../../errors.js'
import type { Awaitable, CheckRow, Resealed, Row, Verification } from '../engine.js'
import { digestId, idOf, keysOfRecord, openIfWhole, openRecord, sealRecord } from './sealing.js'

export interface ResealOptions {
  present: VaultKeys
  next: VaultKeys
  /** The present keys of every tenant, by the number of the tenant. */
  tenants: ReadonlyMap<number, TenantKeyBytes>
  /**
   * Returns the new keys of a tenant. For each tenant, every call must return the same keys. Without this function, the
   * tenants keep their keys.
   */
  renew?(tenant: number, present: TenantKeyBytes): TenantKeyBytes
  /** Renders the search index values again, because only their digests are stored. */
  renderSearch(token: RecordOf['token']): Promise<string[]>
  /**
   * True if the caller writes all logs again, into the first chain. Then the lists of chains are removed from the
   * tenants' records.
   */
  logsAnew?: boolean
}

export function createReseal(options: ResealOptions): (row: Row) => Promise<Resealed> {
  const { present, next, renderSearch, renew = (_, keys) => keys } = options
  const opened = new Map<number, { present: RecordKeys; next: RecordKeys }>()
  opened.set(0, { present: present.vault, next: next.vault })
  for (const [number, keys] of options.tenants) {
    const renewed = next.openTenant(renew(number, keys))
    opened.set(number, { present: present.openTenant(keys), next: renewed })
  }
  return async (row) => {
    const kind = kindOf(row.kind)
    const keys = opened.get(row.tenant)
    if (keys === undefined) throw damaged('The record of a tenant is missing')
    let record = openRecord(keys.present, row)
    if (kind === 'tenant') {
      const tenant = record as RecordOf['tenant']
      const { log_chains: chains, ...rest } = tenant
      const listed = chains === undefined || options.logsAnew ? {} : { log_chains: chains }
      record = { ...rest, ...listed, keys: renew(tenant.number, tenant.keys) }
    }
    const id = digestId(keys.next, kind, row.tenant, idOf(record))
    const search = kind === 'token' ? await renderSearch(record as RecordOf['token']) : []
    return {
      id,
      keys: keysOfRecord(keys.next, kind, record, search),
      sealed: sealRecord(keys.next, { id, rev: row.rev }, record),
    }
  }
}

export async function readTenantKeys(
  keys: VaultKeys,
  rows: AsyncIterable<Row>,
): Promise<Map<number, TenantKeyBytes>> {
  const tenants = new Map<number, TenantKeyBytes>()
  for await (const row of rows) {
    const tenant = openTenant(keys, row)
    if (tenant !== undefined) tenants.set(tenant.number, tenant.keys)
  }
  return tenants
}

function openTenant(keys: VaultKeys, row: Row): RecordOf['tenant'] | undefined {
  const record = row.kind === KINDS.tenant ? openIfWhole(keys.vault, row) : undefined
  return record as RecordOf['tenant'] | undefined
}

/**
 * Verifies the seal of each row. Calls `verify` twice: the first call only collects the keys in the records of tenants,
 * because the record of a tenant may come after the other rows of the tenant. Reports one finding for each tenant whose
 * keys are lost.
 */
export async function verifySeals(
  keys: VaultKeys,
  verify: (check: CheckRow) => Awaitable<Verification>,
): Promise<Verification> {
  const tenants = new Map<number, RecordKeys>([[0, keys.vault]])
  await verify((row) => {
    const tenant = openTenant(keys, row)
    if (tenant !== undefined) tenants.set(tenant.number, keys.openTenant(tenant.keys))
    return {}
  })
  const lost = new LostTenants()
  const result = await verify((row) => {
    const opened = tenants.get(row.tenant)
    if (opened === undefined) {
      lost.count(row.tenant)
      return { isLost: true }
    }
    const record = openIfWhole(opened, row)
    if (record === undefined) return { problem: 'a record does not open with its key' }
    if (row.kind !== KINDS.log_block) return {}
    const block = record as RecordOf['log_block']
    return { logs: ('tail' in block ? block.tail : block).items.length }
  })
  for (const each of lost.list()) {
    const problem = `${describeLostTenant(each)} ${AFTER_LOST_KEYS}`
    result.findings.push({ place: `tenant ${each.tenant}`, problem })
  }
  return result
}
