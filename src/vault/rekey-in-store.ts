/** Changes every key of a vault in PostgreSQL. */
import { createKeyring } from '../crypto/keyring.js'
import type { RecordKeys } from '../crypto/ports.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { KINDS, type TenantKeyBytes, type TenantRecord } from '../domain/records.js'
import { keepEntries, recallEntries } from '../storage/barrier/log-rows.js'
import { createReseal } from '../storage/barrier/reseal.js'
import { openRecord, openTenantKeys } from '../storage/barrier/sealing.js'
import type { Waiting } from '../storage/postgres/log-sql.js'
import { readHeaderToRekey } from '../storage/postgres/maintenance.js'
import { rekeyStore } from '../storage/postgres/rekey.js'
import { requireTables } from '../storage/postgres/tables.js'
import { createSearchRenderer } from './exclusive.js'
import { completeEffects, type VaultLocation } from './location.js'
import { droppedSlots, renewHeader } from './rekey.js'
import { connectStore } from './store-vault.js'
import { type ChooseOpener, choosePrimitives, describeLocked, openKeyring, toSecret } from './unlock.js'

/** As `rekey` does, with random keys; servers answer 503 from the beginning on. @throws CofferError as {@link rekeyStore} */
export async function rekeyInStore(
  location: VaultLocation,
  choose: ChooseOpener,
  progress: (done: number, total: number) => void,
): Promise<{ dropped: { id: string; kind: string }[] }> {
  const effects = completeEffects(location)
  const { random, role, clock } = effects
  const pool = await connectStore(effects)
  try {
    await requireTables(pool)
    const present = await readHeaderToRekey(pool)
    const secret = toSecret(await choose(describeLocked(present)))
    const primitives = await choosePrimitives(role)
    const { keyring, slot } = await openKeyring(effects, primitives, secret, present)
    const root = random.bytes(KEY_BYTES)
    const next = await renewHeader({ primitives, random, clock }, present, { root, secret })
    const nextKeyring = createKeyring(primitives, random, root, present.digest)
    primitives.wipe(root)
    const tenants = new Map<number, { present: TenantKeyBytes; next: TenantKeyBytes }>()
    const keysOf = new Map<number, { present: RecordKeys; next: RecordKeys }>()
    const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
    const learn = ({ number, keys }: TenantRecord) => {
      const { data, index } = nextKeyring.generateTenant()
      const renewed = { data: base64(data), index: base64(index), fingerprint: keys.fingerprint }
      tenants.set(number, { present: keys, next: renewed })
      const opened = { present: openTenantKeys(keyring, keys), next: openTenantKeys(nextKeyring, renewed) }
      keysOf.set(number, opened)
    }
    await rekeyStore(pool, {
      ...{ present, next, random, progress },
      prepare: async (rows) => {
        for await (const row of rows)
          if (row.kind === KINDS.tenant) learn(openRecord(keyring.vault, row) as TenantRecord)
        const renderSearch = createSearchRenderer(effects)
        return createReseal({ present: keyring, next: nextKeyring, tenants, renderSearch })
      },
      // What does not open stays as it is: nothing opens it afterwards, and verifying the vault reports it still.
      resealWaiting: (waiting: Waiting) => {
        const { id, tenant, sealed } = waiting
        const keys = keysOf.get(tenant)
        const entries = keys && recallEntries(keys.present, tenant, id, sealed)
        return entries === undefined ? waiting : { ...waiting, sealed: keepEntries(keys!.next, id, entries) }
      },
    })
    keyring.wipe()
    nextKeyring.wipe()
    return { dropped: droppedSlots(present, slot) }
  } finally {
    await pool.close()
  }
}
