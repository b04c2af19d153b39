/** Changes the key slots of a vault that a server may have open: this process seals the header, the server stores it. */
import {
  checkSlotCount,
  createSlot,
  openSlot,
  parseSlots,
  type SealedHeader,
  sealHeader,
} from '../crypto/key-slot.js'
import { formatDate } from '../domain/dates.js'
import { conflict } from '../errors.js'
import type { ChooseSlots, SlotFacts } from '../framework/ports/vault.js'
import type { Header } from '../storage/vault-file.js'
import { completeEffects, type VaultLocation } from './location.js'
import { reachVault } from './open.js'
import {
  type ChooseOpener,
  choosePrimitives,
  type NewOpener,
  type Opener,
  toNewSecret,
  toSecret,
} from './unlock.js'

/**
 * Keeps the key slots that `choose` selects and adds one for `added`. Writes only the header, and a record to the log of
 * `tenant` (name or id; default: the first).
 * @throws CofferError `conflict` if the slots changed meanwhile, or none would remain
 */
export async function changeKeySlots(
  location: VaultLocation,
  chooseOpener: ChooseOpener,
  change: { added?: NewOpener | undefined; choose: ChooseSlots; tenant?: string | undefined },
): Promise<SlotFacts[]> {
  const { added, choose, tenant } = change
  const effects = completeEffects(location)
  const { random, clock, role } = effects
  let opener: Opener | undefined
  const vault = await reachVault(effects, async (locked) => {
    opener = await chooseOpener(locked)
    return opener
  })
  const as = { reveal: false, tenant }
  const ask = async (operation: string, input = {}) => (await vault.ask({ operation, input, as })).result
  try {
    const header = (await ask('vault header')) as Header
    const primitives = await choosePrimitives(role)
    const sealed: SealedHeader = { ...header, slots: parseSlots(header.slots) }
    const context = { primitives, random }
    const { root, slot } = await openSlot(context, sealed, toSecret(opener!))
    const kept = choose(sealed.slots.map(describeSlot), slot.id)
    const slots = sealed.slots.filter(({ id }) => kept.includes(id))
    // Checked before a key file is saved, so that no useless key file is left.
    checkSlotCount(slots.length + (added === undefined ? 0 : 1))
    if (added !== undefined) {
      const secret = await toNewSecret(added, header.vault, random)
      const created = formatDate(clock())
      slots.push(await createSlot(context, { root, secret, created }))
    }
    if (slots.length === 0)
      throw conflict('The last key slot cannot be removed: nothing else opens the vault.')
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
