/** Changing what opens a vault, while it may be open elsewhere: whoever holds its root key writes the new header. */
import {
  checkSlotCount,
  createSlot,
  openSlot,
  parseSlots,
  type SealedHeader,
  type Slot,
  sealHeader,
} from '../crypto/key-slot.js'
import { formatDate } from '../domain/dates.js'
import { CofferError } from '../errors.js'
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

/** What can be told of a slot. */
export interface SlotFacts {
  id: string
  kind: Slot['kind']
  created: string
}

/** `add` makes a slot for another opener; `openedBy` is the slot that the opener at hand opens. */
export interface SlotChange {
  slots: readonly Slot[]
  openedBy: Slot
  add(opener: NewOpener): Promise<Slot>
}

/**
 * Replaces the vault's key slots by what `change` makes of them. Nothing but the header is written.
 * @throws CofferError `conflict` when somebody else changed them meanwhile, or when no slot would be left
 */
export async function changeKeySlots(
  location: VaultLocation,
  choose: ChooseOpener,
  change: (change: SlotChange) => Promise<readonly Slot[]>,
): Promise<SlotFacts[]> {
  const effects = completeEffects(location)
  const { random, clock, role } = effects
  let opener: Opener | undefined
  const vault = await reachVault(effects, async (locked) => {
    opener = await choose(locked)
    return opener
  })
  try {
    const header = (await vault.command('vault header', {})) as Header
    const primitives = await choosePrimitives(role)
    const sealed: SealedHeader = { ...header, slots: parseSlots(header.slots) }
    const secret = toSecret(opener!)
    const powers = { primitives, random }
    const { root, slot } = await openSlot(powers, sealed, secret)
    const created = formatDate(clock())
    const slots = await change({
      slots: sealed.slots,
      openedBy: slot,
      add: async (next) => {
        // Only an addition saves a key file, and that before its slot is written: one to nothing would confuse.
        if (next.kind === 'key-file') checkSlotCount(sealed.slots.length + 1)
        return createSlot(powers, { root, secret: await toNewSecret(next, header.vault, random), created })
      },
    })
    if (slots.length === 0)
      throw new CofferError('conflict', 'The last key slot stays: nothing else opens the vault.')
    checkSlotCount(slots.length)
    const next = sealHeader(primitives, { ...sealed, slots: [...slots] }, root)
    primitives.wipe(root)
    await vault.command('vault replace-header', { header: next, replaces: header.mac })
    return slots.map(({ id, kind, created }) => ({ id, kind, created }))
  } finally {
    await vault.close()
  }
}
