/** Opens each record, and seals and digests it anew under other keys. Walking the files is the engine's. */
import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { KINDS, kindOf, type RecordOf, type TenantKeyBytes } from '../../domain/records/records.js'
import { damaged } from '../../errors.js'
import type { Awaitable, CheckRow, Resealed, Row, Verification } from '../engine.js'
import { digestId, idOf, keysOfRecord, openIfWhole, openRecord, sealRecord } from './sealing.js'

export interface ResealOptions {
  present: VaultKeys
  next: VaultKeys
  /** The keys of every tenant, as its record holds them. */
  tenants: ReadonlyMap<number, TenantKeyBytes>
  /** As its record will hold them, the same whenever it is called; default: as they are. */
  renew?(tenant: number, present: TenantKeyBytes): TenantKeyBytes
  /** Search index values are kept as digests alone, so they have to be rendered again. */
  renderSearch(token: RecordOf['token']): Promise<string[]>
  /** Logs are not resealed but written anew, in the first chain alone. */
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

/** The keys of every tenant, as its record holds them. Records that do not open are left out. */
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

/** Undefined for a row that is no record of a tenant, or does not open. */
function openTenant(keys: VaultKeys, row: Row): RecordOf['tenant'] | undefined {
  const record = row.kind === KINDS.tenant ? openIfWhole(keys.vault, row) : undefined
  return record as RecordOf['tenant'] | undefined
}

/** Verifies the seal of each row. `verify` runs twice, because records of tenants, which have their keys, may be anywhere. */
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
  return verify((row) => {
    const opened = tenants.get(row.tenant)
    if (opened === undefined)
      return { problem: `a record of tenant ${row.tenant}, whose keys cannot be read` }
    const record = openIfWhole(opened, row)
    if (record === undefined) return { problem: 'a record does not open with its key' }
    if (row.kind !== KINDS.log_block) return {}
    const block = record as RecordOf['log_block']
    return { logs: ('tail' in block ? block.tail : block).items.length }
  })
}
