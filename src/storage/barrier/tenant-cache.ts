/** The keys of tenants, which are in their own records. It knows no other record. */

import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { KINDS, type TenantRecord } from '../../domain/records.js'
import { CofferError } from '../../errors.js'
import type { EngineReader, Row } from '../store.js'
import { digestId, openRecord, openTenantKeys } from './sealing.js'

/** The opened keys of tenants, remembered for as long as no tenant changes or its row is the one they came from. */
export interface TenantCache {
  vault: RecordKeys
  keysOf(rows: EngineReader, tenant: number): RecordKeys
}

export function createTenantCache(keys: VaultKeys): TenantCache {
  const opened = new Map<number, { stamp: number; rev: number; keys: RecordKeys }>()
  return {
    vault: keys.vault,
    keysOf(rows, tenant) {
      if (tenant === 0) return keys.vault
      const stamp = rows.stamp(KINDS.tenant)
      const known = opened.get(tenant)
      if (known !== undefined && stamp !== undefined && known.stamp === stamp) return known.keys
      const row = rows.get(KINDS.tenant, 0, digestId(keys.vault, 'tenant', 0, String(tenant)))
      if (row === undefined) {
        opened.delete(tenant)
        throw new CofferError('not_found', 'The tenant does not exist any more.')
      }
      const isSame = known?.rev === row.rev
      const found = isSame ? known.keys : openTenantKeys(keys, tenantKeysIn(keys, row))
      // The `rev` of a row that is taken back is given again, to another row.
      if (stamp !== undefined) opened.set(tenant, { stamp, rev: row.rev, keys: found })
      return found
    },
  }
}

function tenantKeysIn(keys: VaultKeys, row: Row) {
  return (openRecord(keys.vault, row) as TenantRecord).keys
}
