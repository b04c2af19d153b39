/** Changes every key of a vault in PostgreSQL. */
import { KEY_BYTES } from '../crypto/seal.js'
import { KINDS, type TenantKeyBytes, type TenantRecord } from '../domain/records.js'
import { keepEntries, recallEntries } from '../storage/barrier/log-rows.js'
import { createReseal } from '../storage/barrier/reseal.js'
import { openRecord, openTenantKeys } from '../storage/barrier/sealing.js'
import { readStored } from '../storage/postgres/maintenance.js'
import { rekeyStore } from '../storage/postgres/rekey.js'
import { requireTables, withoutRekey } from '../storage/postgres/tables.js'
import { createSearchRenderer } from './exclusive.js'
import { completeEffects, type VaultLocation } from './location.js'
import { droppedSlots, renewKeys } from './rekey.js'
import { connectStore } from './store-vault.js'
import { type ChooseOpener, describeLocked, openKeyring, toSecret } from './unlock.js'

/** As `rekey` does, with random keys; servers answer 503 from the beginning on. @throws CofferError as {@link rekeyStore} */
export async function rekeyInStore(
  location: VaultLocation,
  choose: ChooseOpener,
  progress: (done: number, total: number) => void,
): Promise<{ dropped: { id: string; kind: string }[] }> {
  const effects = completeEffects(location)
  const { random, clock } = effects
  const pool = await connectStore(effects)
  try {
    await requireTables(pool)
    const { header: present } = await readStored(pool, withoutRekey)
    const secret = toSecret(await choose(describeLocked(present)))
    const { keyring, slot, primitives } = await openKeyring(effects, secret, present)
    const seed = random.bytes(KEY_BYTES)
    const renewed = await renewKeys({ primitives, random, clock }, present, { seed, secret })
    const tenants = new Map<number, TenantKeyBytes>()
    await rekeyStore(pool, {
      ...{ present, next: renewed.header, random, progress },
      prepare: async (rows) => {
        for await (const row of rows) {
          if (row.kind !== KINDS.tenant) continue
          const { number, keys } = openRecord(keyring.vault, row) as TenantRecord
          tenants.set(number, keys)
        }
        const renderSearch = createSearchRenderer(effects)
        const { keyring: next, renew } = renewed
        return createReseal({ present: keyring, next, tenants, renew, renderSearch })
      },
      // What does not open stays as it is: nothing opens it afterwards, and verifying the vault reports it still.
      resealWaiting: (waiting) => {
        const { id, tenant, sealed } = waiting
        const keys = tenants.get(tenant)
        const entries = keys && recallEntries(openTenantKeys(keyring, keys), tenant, id, sealed)
        if (entries === undefined) return waiting
        const next = openTenantKeys(renewed.keyring, renewed.renew(tenant, keys!))
        return { ...waiting, sealed: keepEntries(next, id, entries) }
      },
    })
    for (const each of [keyring, renewed.keyring]) each.wipe()
    return { dropped: droppedSlots(present, slot) }
  } finally {
    await pool.close()
  }
}
