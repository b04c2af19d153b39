/** The keys of tenants, which are in their own records. It knows no other record. */
import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { KINDS, type TenantRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import type { EngineReader, Row } from '../engine.js'
import { digestId, openRecord, openTenantKeys } from './sealing.js'

export type TenantCache = ReturnType<typeof createTenantCache>

/** The opened keys of tenants, remembered for as long as no tenant changes or its row is the one they came from. */
export function createTenantCache(keys: VaultKeys) {
  const opened = new Map<number, { counter: number; rev: number; keys: RecordKeys }>()
  const open = (tenant: number, counter: number | undefined, row: Row | undefined): RecordKeys => {
    if (row === undefined) {
      opened.delete(tenant)
      throw new CofferError('not_found', 'The tenant does not exist any more.')
    }
    const known = opened.get(tenant)
    const isSame = known?.rev === row.rev
    const found = isSame
      ? known.keys
      : openTenantKeys(keys, (openRecord(keys.vault, row) as TenantRecord).keys)
    // The `rev` of a row that is taken back is given again, to another row.
    if (counter !== undefined) opened.set(tenant, { counter, rev: row.rev, keys: found })
    return found
  }
  return {
    vault: keys.vault,
    /** Without `counter`, that of tenants, nothing is remembered. @throws CofferError `not_found` without a tenant */
    async keysOf(rows: EngineReader, tenant: number, counter: number | undefined): Promise<RecordKeys> {
      const known = opened.get(tenant)
      if (known !== undefined && known.counter === counter) return known.keys
      const row = await rows.get(KINDS.tenant, 0, digestId(keys.vault, 'tenant', 0, String(tenant)))
      return open(tenant, counter, row)
    },
  }
}
