/** The header of a new vault, with its only key slot, and the keyring that it leads to. */
import { type SealedHeader, sealHeader } from '../crypto/key-slot.js'
import { createKeyring, type Keyring } from '../crypto/keyring.js'
import type { Clock, RandomSource } from '../crypto/ports.js'
import type { Primitives } from '../crypto/primitives.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { formatDate } from '../domain/dates.js'
import { encodeId } from '../storage/bytes.js'
import { FORMAT, type Header } from '../storage/vault-file.js'
import { choosePrimitives, createFirstSlot, type NewOpener } from './unlock.js'

const VAULT_ID_BYTES = 16

/** @throws CofferError `usage` for a passphrase that is too short */
export async function createHeader(
  { random, clock, role }: { random: RandomSource; clock: Clock; role: 'command' | 'server' },
  opener: NewOpener,
): Promise<{ header: Header; keyring: Keyring; primitives: Primitives }> {
  const primitives = await choosePrimitives(role)
  const root = random.bytes(KEY_BYTES)
  const vault = encodeId(random.bytes(VAULT_ID_BYTES))
  const created = formatDate(clock())
  const slot = await createFirstSlot({ primitives, random }, { root, vault, created }, opener)
  const bare = {
    format: FORMAT,
    vault,
    created,
    cipher: 'xchacha20-poly1305',
    slots: [slot],
  }
  const header = sealHeader(primitives, bare, root) as SealedHeader & Header
  const keyring = createKeyring(primitives, random, root)
  primitives.wipe(root)
  return { header, keyring, primitives }
}
