import { createSlot, parseSlots, sealHeader } from '../crypto/key-slot.js'
import { createKeyring } from '../crypto/keyring.js'
import { deriveKey, KEY_BYTES } from '../crypto/primitives.js'
import { formatDate } from '../domain/dates.js'
import type { TenantKeyBytes } from '../domain/records/records.js'
import { openEntries, sealEntries } from '../storage/barrier/log-block.js'
import { createReseal, readTenantKeys } from '../storage/barrier/reseal.js'
import { toBase64 } from '../storage/bytes.js'
import type { PendingEntries, Row } from '../storage/engine.js'
import { rekeyVault } from '../storage/lsm/maintenance/rows.js'
import type { Progress } from '../storage/vault-rows.js'
import { createSearchRenderer } from './copy.js'
import { completeEffects, type Effects, isStore, type VaultLocation } from './location.js'
import { askSecret, type ChooseOpener, runUnlocked, type Unlocked, unlock } from './unlock.js'

/**
 * Replaces the keys of a vault. Fingerprint keys stay, because callers store fingerprints. Afterwards, only the secret
 * that was used for the rekey opens the vault. After a crash, the vault has either its old keys or its new keys. If the
 * vault is in a store, its servers answer 503 from the start of the rekey until their restart.
 * @throws CofferError `conflict`
 */
export async function rekey(location: VaultLocation, choose: ChooseOpener, progress: Progress) {
  const effects = completeEffects(location)
  let resealed = 0
  const counted: Progress = (done, total) => {
    resealed = done
    progress(done, total)
  }
  const run = isStore(effects.directory) ? rekeyInStore : rekeyInDirectory
  const { header, slot } = await run(effects, choose, counted)
  const dropped = parseSlots(header.slots).filter(({ id }) => id !== slot.id)
  return { resealed, dropped: dropped.map(({ id, kind }) => ({ id, kind })) }
}

function rekeyInDirectory(effects: Effects, choose: ChooseOpener, progress: Progress): Promise<Unlocked> {
  return runUnlocked(effects, choose, async (owned) => {
    await rekeyVault({ ...(await planRekey(effects, owned)), present: owned.lsm, progress })
    return owned
  })
}

async function rekeyInStore(effects: Effects, choose: ChooseOpener, progress: Progress): Promise<Unlocked> {
  const { readStored, rekeyStore, withPool } = await import('./store-vault.js')
  return withPool(effects, async (pool) => {
    const { header: present } = await readStored(pool)
    const opened = await unlock(effects, await askSecret(choose, present), present)
    const { header, keys, ...plan } = await planRekey(effects, opened)
    await rekeyStore(pool, { ...plan, present, next: header, mac: keys.chain, progress })
    return opened
  })
}

async function planRekey(effects: Effects, { header: before, keyring, primitives, secret }: Unlocked) {
  const { random, clock } = effects
  const seed = random.bytes(KEY_BYTES)
  const derive = (purpose: string) => deriveKey(primitives, seed, `rekey/${purpose}`)
  const root = derive('root')
  const slot = await createSlot({ primitives, random }, { root, secret, created: formatDate(clock()) })
  const header = sealHeader(primitives, { ...before, slots: [slot] }, root)
  const next = createKeyring(primitives, random, root)
  primitives.wipe(root)
  const renew = (tenant: number, { fingerprint }: TenantKeyBytes): TenantKeyBytes => ({
    data: toBase64(derive(`${tenant}/data`)),
    index: toBase64(derive(`${tenant}/index`)),
    fingerprint,
  })
  let tenants = new Map<number, TenantKeyBytes>()
  return {
    header,
    keys: next.engine,
    prepare: async (rows: AsyncIterable<Row>) => {
      tenants = await readTenantKeys(keyring, rows)
      const renderSearch = createSearchRenderer(effects)
      return createReseal({ present: keyring, next, tenants, renew, renderSearch })
    },
    /** Entries that cannot be opened are returned unchanged, so that `vault verify` still reports them. */
    resealPending: (pending: PendingEntries): PendingEntries => {
      const { id, tenant, sealed } = pending
      const keys = tenants.get(tenant)
      const entries = keys && openEntries(keyring.openTenant(keys), tenant, id, sealed)
      if (entries === undefined) return pending
      return { ...pending, sealed: sealEntries(next.openTenant(renew(tenant, keys!)), id, entries) }
    },
  }
}
