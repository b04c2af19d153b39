/**
 * Taking a vault's rows from the keys it has to others: each record is opened, sealed and digested anew. It knows
 * records and keys; walking the files is the engine's.
 */

import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { KINDS, kindOf, type RecordOf, type TenantKeyBytes } from '../../domain/records.js'
import { AFTER_DAMAGE, CofferError } from '../../errors.js'
import type { CheckRow } from '../engine.js'
import type { Resealed } from '../lsm/maintenance/rekey.js'
import type { StoredRow } from '../lsm/sstable/row-change.js'
import {
  digestId,
  digestLogId,
  idOf,
  keysOfRecord,
  openRecord,
  openTenantKeys,
  sealRecord,
  unseal,
} from './sealing.js'

/** Search index values are kept as digests alone, so they have to be rendered again. */
export type RenderSearch = (token: RecordOf['token']) => Promise<string[]>

export interface ResealOptions {
  present: VaultKeys
  next: VaultKeys
  /** The keys of every tenant, as its record holds them and as it will. */
  tenants: ReadonlyMap<number, { present: TenantKeyBytes; next: TenantKeyBytes }>
  renderSearch: RenderSearch
}

/** Reseals rows in any order. */
export function createReseal(options: ResealOptions): (row: StoredRow) => Promise<Resealed> {
  const { present, next, renderSearch } = options
  const opened = new Map<number, { present: RecordKeys; next: RecordKeys }>()
  opened.set(0, { present: present.vault, next: next.vault })
  for (const [number, keys] of options.tenants) {
    opened.set(number, {
      present: openTenantKeys(present, keys.present),
      next: openTenantKeys(next, keys.next),
    })
  }
  return async (row) => {
    const kind = kindOf(row.kind)
    const keys = requireTenant(opened, row.tenant)
    let record = openRecord(keys.present, row)
    if (kind === 'tenant') {
      const tenant = record as RecordOf['tenant']
      record = { ...tenant, keys: requireTenant(options.tenants, tenant.number).next }
    }
    const id =
      kind === 'log'
        ? digestLogId(keys.next, row.tenant, row.rev)
        : digestId(keys.next, kind, row.tenant, idOf(record))
    const search = kind === 'token' ? await renderSearch(record as RecordOf['token']) : []
    return {
      id,
      keys: keysOfRecord(keys.next, kind, record, search),
      sealed: sealRecord(keys.next, { id, rev: row.rev }, record),
    }
  }
}

/**
 * Says what is wrong with a row's seal. Tenants' keys are taken from their records as they pass by: `learn` over all
 * rows first, then `check`.
 */
export function createRowCheck(keys: VaultKeys): { learn: CheckRow; check: CheckRow } {
  const tenants = new Map<number, RecordKeys>()
  return {
    learn(row) {
      if (row.kind !== KINDS.tenant || row.tenant !== 0 || unseal(keys.vault, row) === undefined)
        return undefined
      const tenant = openRecord(keys.vault, row) as RecordOf['tenant']
      tenants.set(tenant.number, openTenantKeys(keys, tenant.keys))
      return undefined
    },
    check(row) {
      const opened = row.tenant === 0 ? keys.vault : tenants.get(row.tenant)
      if (opened === undefined) return `a record of tenant ${row.tenant}, whose keys cannot be read`
      return unseal(opened, row) === undefined ? 'a record does not open with its key' : undefined
    },
  }
}

function requireTenant<T>(tenants: ReadonlyMap<number, T>, number: number): T {
  const keys = tenants.get(number)
  if (keys !== undefined) return keys
  throw new CofferError('vault_damaged', `The record of a tenant is missing. ${AFTER_DAMAGE}`)
}
