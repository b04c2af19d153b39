/** Changing what opens a vault, which may be open elsewhere: the process that opens the root key writes the header. */
import {
  checkSlotCount,
  createSlot,
  openSlot,
  parseSlots,
  type SealedHeader,
  sealHeader,
} from '../crypto/key-slot.js'
import { formatDate } from '../domain/dates.js'
import { CofferError } from '../errors.js'
import type { ChooseSlots, SlotFacts } from '../framework/vault-port.js'
import type { Header } from '../storage/vault-file.js'
import { completeEffects, reachVault, type VaultLocation } from './open.js'
import {
  type ChooseOpener,
  choosePrimitives,
  type NewOpener,
  type Opener,
  toNewSecret,
  toSecret,
} from './unlock.js'

/**
 * Replaces the vault's key slots by those that `choose` keeps and one for `added`. Nothing but the header is written,
 * and a record of it in the log of `tenant` (its name or id; the first unless given).
 * @throws CofferError `conflict` when the slots were changed meanwhile, or when none would be left
 */
export async function changeKeySlots(
  location: VaultLocation,
  chooseOpener: ChooseOpener,
  {
    added,
    choose,
    tenant,
  }: { added?: NewOpener | undefined; choose: ChooseSlots; tenant?: string | undefined },
): Promise<SlotFacts[]> {
  const effects = completeEffects(location)
  const { random, clock, role } = effects
  let opener: Opener | undefined
  const vault = await reachVault(effects, async (locked) => {
    opener = await chooseOpener(locked)
    return opener
  })
  const as = { reveal: false, ...(tenant === undefined ? {} : { tenant }) }
  const ask = async (operation: string, input = {}) => (await vault.ask({ operation, input, as })).result
  try {
    const header = (await ask('vault header')) as Header
    const primitives = await choosePrimitives(role)
    const sealed: SealedHeader = { ...header, slots: parseSlots(header.slots) }
    const context = { primitives, random }
    const { root, slot } = await openSlot(context, sealed, toSecret(opener!))
    const kept = choose(sealed.slots.map(describeSlot), slot.id)
    const slots = sealed.slots.filter(({ id }) => kept.includes(id))
    // Checked before a key file is saved: one that opens nothing would only confuse.
    checkSlotCount(slots.length + (added === undefined ? 0 : 1))
    if (added !== undefined) {
      const secret = await toNewSecret(added, header.vault, random)
      slots.push(await createSlot(context, { root, secret, created: formatDate(clock()) }))
    }
    if (slots.length === 0)
      throw new CofferError('conflict', 'The last key slot stays: nothing else opens the vault.')
    const next = sealHeader(primitives, { ...sealed, slots }, root)
    primitives.wipe(root)
    await ask('vault replace-header', { header: next, replaces: header.mac })
    return slots.map(describeSlot)
  } finally {
    await vault.close()
  }
}

function describeSlot({ id, kind, created }: SlotFacts): SlotFacts {
  return { id, kind, created }
}
