/** Changes every key of a vault. */
import {
  createSlot,
  parseSlots,
  type SealedHeader,
  type Secret,
  type Slot,
  type SlotContext,
  sealHeader,
} from '../crypto/key-slot.js'
import { createKeyring, type Keyring } from '../crypto/keyring.js'
import { deriveKey } from '../crypto/mac.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { formatDate } from '../domain/dates.js'
import type { TenantKeyBytes } from '../domain/records.js'
import { createReseal } from '../storage/barrier/reseal.js'
import { openFileEngine } from '../storage/engines/file-engine.js'
import { readRekey, rekeyVault } from '../storage/lsm/maintenance/rekey.js'
import type { Header } from '../storage/vault-file.js'
import { createSearchRenderer, lsmOptions, readTenantKeys, runUnlocked, usingRecords } from './exclusive.js'
import { completeEffects, type Effects, type VaultLocation } from './location.js'
import type { ChooseOpener } from './unlock.js'

/**
 * Changes every key of the vault: the root key, the tenants' and the engine's. Fingerprint keys stay, because callers
 * store fingerprints. After a crash at any point the vault opens with the same secret, and another call completes it.
 * @returns the dropped slots: creating one again needs its own secret
 */
export async function rekey(
  location: VaultLocation,
  choose: ChooseOpener,
  progress: (done: number, total: number) => void,
): Promise<{ dropped: { id: string; kind: string }[] }> {
  const effects = completeEffects(location)
  const { random, clock } = effects
  return runUnlocked(effects, choose, async (opened) => {
    const { primitives, secret, keyring, slot } = opened
    const { header, tenants } = await readPresent(effects, opened)
    const current = lsmOptions(effects, header, keyring)
    const unfinished = await readRekey(current)
    const seed = unfinished?.secret ?? random.bytes(KEY_BYTES)
    const renewed = await renewKeys({ primitives, random, clock }, header, { seed, secret })
    const { keyring: next, renew } = renewed
    const reseal = createReseal({
      present: keyring,
      next,
      tenants,
      renew,
      renderSearch: createSearchRenderer(effects),
    })
    await rekeyVault({
      present: current,
      header: unfinished?.header ?? renewed.header,
      keys: next.engine,
      secret: seed,
      reseal,
      progress,
    })
    return { dropped: droppedSlots(header, slot) }
  })
}

/** The keys that a seed gives, and the header with the one slot that `secret` opens. Fingerprint keys stay. */
export async function renewKeys(
  { clock, ...context }: SlotContext & Pick<Effects, 'clock'>,
  header: Header,
  { seed, secret }: { seed: Uint8Array; secret: Secret },
) {
  const { primitives, random } = context
  const derive = (purpose: string) => deriveKey(primitives, seed, `rekey/${purpose}`)
  const root = derive('root')
  const slot = await createSlot(context, { root, secret, created: formatDate(clock()) })
  const sealed: SealedHeader = { ...header, slots: [slot] }
  const next = sealHeader(primitives, sealed, root) as SealedHeader & Header
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  const derived = (purpose: string) => Buffer.from(derive(purpose)).toString('base64')
  const renew = (tenant: number, { fingerprint }: TenantKeyBytes): TenantKeyBytes => ({
    data: derived(`${tenant}/data`),
    index: derived(`${tenant}/index`),
    fingerprint,
  })
  return { header: next, keyring, renew }
}

/** All but the one that the keys were changed by. */
export function droppedSlots(header: Header, kept: Slot): { id: string; kind: string }[] {
  const dropped = parseSlots(header.slots).filter(({ id }) => id !== kept.id)
  return dropped.map(({ id, kind }) => ({ id, kind }))
}

/** The keys of the vault's tenants. Contract: the caller has the lock. */
export async function readPresent(
  effects: Effects,
  { header, keyring }: { header: Header; keyring: Keyring },
): Promise<{ header: Header; tenants: Map<number, TenantKeyBytes> }> {
  const engine = await openFileEngine({ ...effects, header, keys: keyring.engine })
  return usingRecords(engine, keyring, async (store) => ({
    header: engine.header,
    tenants: await readTenantKeys(store),
  }))
}
