/** Maintenance of an open vault: status, verification, compaction, backup and its header. It reads no records. */
import { parseSlots } from '../crypto/key-slot.js'
import type { Keyring } from '../crypto/keyring.js'
import { CofferError } from '../errors.js'
import { createRowCheck } from '../storage/barrier/reseal.js'
import type { EngineMaintenance, Verification } from '../storage/engine.js'
import type { Header } from '../storage/vault-file.js'

export interface VaultFacts {
  vault: string
  format: number
  created: string
  key_slots: { id: string; kind: string; created: string }[]
  storage: {
    /** Rows that are there, and rows that folding has still to remove. */
    records: number
    logs: number
    dead: number
    segments: number
    journal_bytes: number
    segment_bytes: number
  }
}

export interface Maintenance {
  describe(): Promise<VaultFacts>
  /** Looks at every byte that the vault relies on. */
  verify(): Promise<Verification>
  /** Folds and merges until nothing is left to be. */
  compact(): Promise<void>
  /** Writes everything into one new sealed file and gives its length in bytes. */
  backup(path: string): Promise<number>
  readHeader(): Header
  /** @throws CofferError `conflict` when the present header is not the one with the digest `replaces`. */
  replaceHeader(header: Header, replaces: string): Promise<void>
}

/** `header` is the one that the engine was opened with. */
export function createMaintenance(engine: EngineMaintenance, keyring: Keyring, header: Header): Maintenance {
  let present = header
  return {
    async describe() {
      const { vault, format, created, slots } = present
      const { segments, journalBytes, recordBytes, logBytes, rows } = await engine.status()
      return {
        vault,
        format,
        created,
        key_slots: parseSlots(slots).map(({ id, kind, created }) => ({ id, kind, created })),
        storage: { ...rows, segments, journal_bytes: journalBytes, segment_bytes: recordBytes + logBytes },
      }
    },
    async verify() {
      const { learn, check } = createRowCheck(keyring)
      // Tenants' keys are in records, and those of a tenant may lie anywhere.
      await engine.verify(learn)
      return engine.verify(check)
    },
    compact: () => engine.compact(),
    backup: (path) => engine.backup(path),
    readHeader: () => present,
    async replaceHeader(next, replaces) {
      if (present.mac !== replaces) {
        throw new CofferError('conflict', 'Somebody else changed the key slots meanwhile. Try again.')
      }
      await engine.replaceHeader(next)
      present = next
    },
  }
}
