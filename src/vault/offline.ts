import {
  checkSlotCount,
  createSlot,
  describeSlots,
  openSlot,
  parseSlots,
  sealHeader,
} from '../crypto/key-slot.js'
import { formatDate } from '../domain/dates.js'
import { conflict } from '../errors.js'
import type { ChooseSlots, Holder, SlotFacts, Verification } from '../framework/ports/vault.js'
import { verifySeals } from '../storage/barrier/reseal.js'
import { readLockHolder, readProcessIdentity } from '../storage/lock.js'
import { verifyVault } from '../storage/lsm/maintenance/verify.js'
import { completeEffects, requireDirectory, type VaultLocation } from './location.js'
import { reachVault, readHeaderAt } from './open.js'
import {
  type ChooseOpener,
  choosePrimitives,
  describeLocked,
  type NewOpener,
  parseOpener,
  runUnlocked,
  toNewSecret,
} from './unlock.js'
import type { Vault } from './vault.js'

/** Returns the process that has the vault open, or undefined. Reads only the lock. */
export function readHolder(location: VaultLocation): Holder | undefined {
  requireDirectory(location)
  const { files, directory, pid } = completeEffects(location)
  const held = readLockHolder(files, directory, readProcessIdentity(pid))
  if (held === undefined) return undefined
  const { pid: owner, host, since } = held.holder
  return { pid: owner, host, since: formatDate(since), state: held.state }
}

/** Verifies a vault that may be too damaged to open. @throws CofferError if the header of the vault cannot be opened */
export async function verifyAtRest(location: VaultLocation, choose: ChooseOpener): Promise<Verification> {
  requireDirectory(location)
  return runUnlocked(completeEffects(location), choose, async ({ keyring, lsm }) => {
    return verifySeals(keyring, (check) => verifyVault(lsm, check))
  })
}

export async function listKeySlots(location: VaultLocation): Promise<SlotFacts[]> {
  return describeSlots(await readHeaderAt(location))
}

/** Changes only the header, and logs the change in `tenant` (default: the oldest). @throws CofferError `conflict` */
export async function changeKeySlots(
  location: VaultLocation,
  chooseOpener: ChooseOpener,
  change: { added?: NewOpener | undefined; choose: ChooseSlots; tenant?: string | undefined },
): Promise<SlotFacts[]> {
  const { added, choose, tenant } = change
  const effects = completeEffects(location)
  const { random, clock, role } = effects
  const header = await readHeaderAt(location)
  const opener = await chooseOpener(describeLocked(header))
  const primitives = await choosePrimitives(role)
  const context = { primitives, random }
  const { root, slot } = await openSlot(context, header, parseOpener(opener))
  let vault: Vault | undefined
  try {
    // The user chooses the key slots before the lock is acquired, because a person may need long to answer.
    const kept = await choose(describeSlots(header), slot.id)
    const slots = parseSlots(header.slots).filter(({ id }) => kept.includes(id))
    // The number of key slots is checked before a new key file is saved, because the file would be useless if the
    // change failed.
    checkSlotCount(slots.length + (added === undefined ? 0 : 1))
    if (slots.length === 0 && added === undefined)
      throw conflict(
        'The last key slot cannot be removed, because nothing else opens the vault. Add another key slot first: coffer vault keys add',
      )
    vault = await reachVault(effects, async () => opener)
    if (added !== undefined) {
      const created = formatDate(clock())
      const secret = await toNewSecret(added, header.vault, random)
      slots.push(await createSlot(context, { root, secret, created }))
    }
    const next = sealHeader(primitives, { ...header, slots }, root)
    const input = { header: next, replaces: header.mac }
    await vault.ask({ operation: 'vault replace-header', input, as: { reveal: false, tenant } })
    return describeSlots(next)
  } finally {
    primitives.wipe(root)
    await vault?.close()
  }
}
