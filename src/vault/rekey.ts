/** Changes every key of a vault. */
import {
  createSlot,
  parseSlots,
  type SealedHeader,
  type Secret,
  type Slot,
  sealHeader,
} from '../crypto/key-slot.js'
import { createKeyring, type Keyring } from '../crypto/keyring.js'
import { deriveKey } from '../crypto/mac.js'
import type { Primitives } from '../crypto/primitives.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { formatDate } from '../domain/dates.js'
import type { TenantKeyBytes } from '../domain/records/records.js'
import { openEntries, sealEntries } from '../storage/barrier/pending-entries.js'
import { createReseal, readTenantKeys } from '../storage/barrier/reseal.js'
import { openTenantKeys } from '../storage/barrier/sealing.js'
import type { PendingEntries, Row } from '../storage/engine.js'
import { rekeyVault } from '../storage/lsm/maintenance/rekey.js'
import type { Header } from '../storage/vault-file.js'
import type { Progress } from '../storage/vault-rows.js'
import { createSearchRenderer, lsmOptions, runUnlocked } from './exclusive.js'
import { completeEffects, type Effects, isStore, type VaultLocation } from './location.js'
import { type ChooseOpener, describeLocked, openKeyring, toSecret } from './unlock.js'

/** To create a dropped slot again, its own secret is needed. */
interface Rekeyed {
  dropped: { id: string; kind: string }[]
}

/**
 * Changes every key of the vault: the root key, the tenants' and the engine's. Fingerprint keys stay, because callers
 * store fingerprints. The secret that opens the vault stays too. After a crash a vault in a directory opens, with its old
 * or new keys; in a store another call ends the change. Servers of a store answer 503 from the beginning on.
 * @throws CofferError `conflict`, `unavailable`, and those of opening the vault
 */
export function rekey(location: VaultLocation, choose: ChooseOpener, progress: Progress): Promise<Rekeyed> {
  const effects = completeEffects(location)
  if (isStore(effects.directory)) return rekeyInStore(effects, choose, progress)
  return runUnlocked(effects, choose, async (opened) => {
    const { header, keyring, slot } = opened
    const present = lsmOptions(effects, header, keyring)
    await rekeyVault({ ...(await planRekey(effects, opened)), present, progress })
    return { dropped: droppedSlots(header, slot) }
  })
}

async function rekeyInStore(effects: Effects, choose: ChooseOpener, progress: Progress): Promise<Rekeyed> {
  const [{ connectStore }, { readStored }, { rekeyStore }, { requireTables, withoutRekey }] =
    await Promise.all([
      import('./store-vault.js'),
      import('../storage/postgres/maintenance.js'),
      import('../storage/postgres/rekey.js'),
      import('../storage/postgres/tables.js'),
    ])
  const pool = await connectStore(effects)
  try {
    await requireTables(pool)
    const { header: present } = await readStored(pool, withoutRekey)
    const secret = toSecret(await choose(describeLocked(present)))
    const opened = await openKeyring(effects, secret, present)
    const { header, keys, ...plan } = await planRekey(effects, { ...opened, secret })
    const { random } = effects
    await rekeyStore(pool, { ...plan, present, next: header, mac: keys.chain, random, progress })
    return { dropped: droppedSlots(present, opened.slot) }
  } finally {
    await pool.close()
  }
}

interface Opened {
  header: Header
  keyring: Keyring
  primitives: Primitives
  secret: Secret
}

/** New keys, a header with one slot for the same secret, and functions that seal rows and entries anew. */
async function planRekey(effects: Effects, { header: before, keyring, primitives, secret }: Opened) {
  const { random, clock } = effects
  const seed = random.bytes(KEY_BYTES)
  const derive = (purpose: string) => deriveKey(primitives, seed, `rekey/${purpose}`)
  const root = derive('root')
  const slot = await createSlot({ primitives, random }, { root, secret, created: formatDate(clock()) })
  const sealed: SealedHeader = { ...before, slots: [slot] }
  const header = sealHeader(primitives, sealed, root) as SealedHeader & Header
  const next = createKeyring(primitives, random, root)
  primitives.wipe(root)
  const derived = (purpose: string) => Buffer.from(derive(purpose)).toString('base64')
  const renew = (tenant: number, { fingerprint }: TenantKeyBytes): TenantKeyBytes => ({
    data: derived(`${tenant}/data`),
    index: derived(`${tenant}/index`),
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
    /** Entries that do not open stay as they are, so that verifying the vault still reports them. */
    resealPending: (pending: PendingEntries): PendingEntries => {
      const { id, tenant, sealed } = pending
      const keys = tenants.get(tenant)
      const entries = keys && openEntries(openTenantKeys(keyring, keys), tenant, id, sealed)
      if (entries === undefined) return pending
      return { ...pending, sealed: sealEntries(openTenantKeys(next, renew(tenant, keys!)), id, entries) }
    },
  }
}

/** All slots but `kept`, which opened the vault. */
function droppedSlots(header: Header, kept: Slot): Rekeyed['dropped'] {
  const dropped = parseSlots(header.slots).filter(({ id }) => id !== kept.id)
  return dropped.map(({ id, kind }) => ({ id, kind }))
}
