/** What opens a vault: secrets, the key slots they open, and the keys that come of them. */
import { type FileKey, formatKeyFile, parseKeyFile } from '../crypto/key-file.js'
import {
  checkNewPassphrase,
  createSlot,
  openSlot,
  parseSlots,
  type ScryptCost,
  type Secret,
  type Slot,
  type SlotContext,
} from '../crypto/key-slot.js'
import { createKeyring, type Keyring } from '../crypto/keyring.js'
import { nativePrimitives } from '../crypto/native.js'
import type { RandomSource } from '../crypto/ports.js'
import type { Primitives } from '../crypto/primitives.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { loadSodium } from '../crypto/sodium.js'
import type { Files } from '../storage/files.js'
import { type Header, readHeader } from '../storage/vault-file.js'

/** What opens a vault: the text of a key file, or a passphrase. */
export type Opener = { kind: 'key-file'; text: string } | { kind: 'passphrase'; passphrase: string }

/** What can be known of a vault before it is opened. */
export interface LockedVault {
  id: string
  slots: readonly Opener['kind'][]
}

/** How a new vault shall open. `save` is given the text of its key file, before the vault exists. */
export type NewOpener =
  | { kind: 'key-file'; save(vault: string, text: string): Promise<void> }
  | { kind: 'passphrase'; passphrase: string; cost?: ScryptCost }

/** Chooses what opens a vault, once that is known to be there. */
export type ChooseOpener = (vault: LockedVault) => Promise<Opener>

/** What can be known of the vault with this header before it is opened. */
export function describeLocked({ vault, slots }: Pick<Header, 'vault' | 'slots'>): LockedVault {
  return { id: vault, slots: parseSlots(slots).map(({ kind }) => kind) }
}

/** The only slot of a new vault. */
export async function createFirstSlot(
  context: SlotContext,
  { root, vault, created }: { root: Uint8Array; vault: string; created: string },
  opener: NewOpener,
): Promise<Slot> {
  const secret = await toNewSecret(opener, vault, context.random)
  const cost = opener.kind === 'passphrase' && opener.cost !== undefined ? { cost: opener.cost } : {}
  return createSlot(context, { root, secret, created, ...cost })
}

/** What a new opener opens slots with; a new key file is saved before anything relies on it. */
export async function toNewSecret(opener: NewOpener, vault: string, random: RandomSource): Promise<Secret> {
  if (opener.kind === 'passphrase') {
    checkNewPassphrase(opener.passphrase)
    return { kind: 'passphrase', passphrase: opener.passphrase }
  }
  const file: FileKey = { vault, key: random.bytes(KEY_BYTES) }
  await opener.save(vault, formatKeyFile(file))
  return { kind: 'key-file', file }
}

/** The header (as it stands now, unless given) and the keys that `secret` opens. */
export async function openKeyring(
  { random, files, directory }: { random: RandomSource; files: Files; directory: string },
  primitives: Primitives,
  secret: Secret,
  header?: Header,
): Promise<{ header: Header; keyring: Keyring; slot: Slot }> {
  const present = header ?? (await readHeader(files, directory))
  const sealed = { ...present, slots: parseSlots(present.slots) }
  const { root, slot } = await openSlot({ primitives, random }, sealed, secret)
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  return { header: present, keyring, slot }
}

export function toSecret(opener: Opener): Secret {
  return opener.kind === 'passphrase' ? opener : { kind: 'key-file', file: parseKeyFile(opener.text) }
}

/** A command is over before libsodium is warm; a server is glad that it is faster afterwards. */
export async function choosePrimitives(role: 'command' | 'server'): Promise<Primitives> {
  return role === 'command' ? nativePrimitives : loadSodium()
}
