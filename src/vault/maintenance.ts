/** Maintenance of an open vault: status, verification, compaction, backup and replacing its header. */
import { parseSlots } from '../crypto/key-slot.js'
import type { Keyring } from '../crypto/keyring.js'
import { CofferError } from '../errors.js'
import type { VaultMaintenance } from '../framework/vault-port.js'
import { createRowCheck } from '../storage/barrier/reseal.js'
import type { EngineMaintenance } from '../storage/engine.js'
import type { Header } from '../storage/vault-file.js'

export function createMaintenance(
  engine: EngineMaintenance,
  keyring: Keyring,
  header: Header,
): VaultMaintenance {
  let current = header
  return {
    async describe() {
      const { vault, format, created, slots } = current
      const { sstables: segments, walBytes, recordBytes, logBytes, rows } = await engine.status()
      return {
        vault,
        format,
        created,
        key_slots: parseSlots(slots).map(({ id, kind, created }) => ({ id, kind, created })),
        storage: { ...rows, segments, journal_bytes: walBytes, segment_bytes: recordBytes + logBytes },
      }
    },
    async verify() {
      const { learn, check } = createRowCheck(keyring)
      // Tenants' keys are in records that may be anywhere, so they are collected first.
      await engine.verify(learn)
      return engine.verify(check)
    },
    compact: () => engine.compact(),
    backup: (path) => engine.backup(path),
    readHeader: () => current,
    async replaceHeader(header, replaces) {
      const next = header as Header
      if (current.mac !== replaces)
        throw new CofferError('conflict', 'Another process changed the key slots meanwhile. Try again.')
      await engine.replaceHeader(next)
      current = next
    },
  }
}
