/** Unlocking a vault: secrets, the key slots that they open, and the keyring. */
import { type FileKey, formatKeyFile, parseKeyFile } from '../crypto/key-file.js'
import {
  checkNewPassphrase,
  createSlot,
  openSlot,
  parseSlots,
  type ScryptCost,
  type SealedHeader,
  type Secret,
  type Slot,
  sealHeader,
} from '../crypto/key-slot.js'
import { createKeyring, type Keyring } from '../crypto/keyring.js'
import { nativePrimitives } from '../crypto/native.js'
import type { RandomSource } from '../crypto/ports.js'
import type { Primitives } from '../crypto/primitives.js'
import { quicken } from '../crypto/quicken.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { loadSodium } from '../crypto/sodium.js'
import { formatDate } from '../domain/dates.js'
import { encodeId } from '../storage/bytes.js'
import { FORMAT, type Header, readHeader } from '../storage/vault-file.js'
import type { Effects } from './location.js'

/** `text`: the content of the key file. */
export type Opener = { kind: 'key-file'; text: string } | { kind: 'passphrase'; passphrase: string }

const VAULT_ID_BYTES = 16
/** A server waits before it loads libsodium, which blocks it for 25 ms. */
const SODIUM_AFTER_MS = 500

/** The facts of a vault that need no key. */
export interface LockedVault {
  id: string
  slots: readonly Opener['kind'][]
}

/** The secret of a new key slot. `save` stores the text of the new key file, before the slot exists. */
export type NewOpener =
  | { kind: 'key-file'; save(vault: string, text: string): Promise<void> }
  | { kind: 'passphrase'; passphrase: string; cost?: ScryptCost }

export type ChooseOpener = (vault: LockedVault) => Promise<Opener>

export function describeLocked({ vault, slots }: Pick<Header, 'vault' | 'slots'>): LockedVault {
  return { id: vault, slots: parseSlots(slots).map(({ kind }) => kind) }
}

/** The header of a new vault, with its only key slot, and its keys. @throws CofferError `usage` for a short passphrase */
export async function createHeader(
  { random, clock, role }: Pick<Effects, 'random' | 'clock' | 'role'>,
  opener: NewOpener,
): Promise<{ header: Header; keyring: Keyring; primitives: Primitives }> {
  const primitives = await choosePrimitives(role)
  const root = random.bytes(KEY_BYTES)
  const vault = encodeId(random.bytes(VAULT_ID_BYTES))
  const created = formatDate(clock())
  const secret = await toNewSecret(opener, vault, random)
  const cost = opener.kind === 'passphrase' && opener.cost !== undefined ? { cost: opener.cost } : {}
  const slot = await createSlot({ primitives, random }, { root, secret, created, ...cost })
  const bare = { format: FORMAT, vault, created, cipher: 'xchacha20-poly1305', slots: [slot] }
  const header = sealHeader(primitives, bare, root) as SealedHeader & Header
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  return { header, keyring, primitives }
}

/** Saves a new key file first. */
export async function toNewSecret(opener: NewOpener, vault: string, random: RandomSource): Promise<Secret> {
  if (opener.kind === 'passphrase') {
    checkNewPassphrase(opener.passphrase)
    return { kind: 'passphrase', passphrase: opener.passphrase }
  }
  const file: FileKey = { vault, key: random.bytes(KEY_BYTES) }
  await opener.save(vault, formatKeyFile(file))
  return { kind: 'key-file', file }
}

/** Uses the primitives of the role. Reads the header unless it is given. */
export async function openKeyring(
  { random, files, directory, role }: Pick<Effects, 'random' | 'files' | 'directory' | 'role'>,
  secret: Secret,
  header?: Header,
): Promise<{ header: Header; keyring: Keyring; slot: Slot; primitives: Primitives }> {
  const primitives = await choosePrimitives(role)
  const current = header ?? (await readHeader(files, directory))
  const sealed = { ...current, slots: parseSlots(current.slots) }
  const { root, slot } = await openSlot({ primitives, random }, sealed, secret)
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  return { header: current, keyring, slot, primitives }
}

export function toSecret(opener: Opener): Secret {
  return opener.kind === 'passphrase' ? opener : { kind: 'key-file', file: parseKeyFile(opener.text) }
}

/** Native primitives start faster, libsodium runs faster. */
export async function choosePrimitives(role: 'command' | 'server'): Promise<Primitives> {
  return role === 'command' ? nativePrimitives : loadSodium()
}

/** For a server that must answer at once: native primitives until libsodium is loaded, which begins after a pause. */
export function choosePrimitivesLater(role: 'command' | 'server'): Primitives {
  if (role === 'command') return nativePrimitives
  const pause = new Promise((resolve) => setTimeout(resolve, SODIUM_AFTER_MS).unref())
  return quicken(nativePrimitives, pause.then(loadSodium))
}
