import { describeSlots } from '../crypto/key-slot.js'
import type { Keyring } from '../crypto/keyring.js'
import type { RandomSource } from '../crypto/ports.js'
import { conflict, interrupted } from '../errors.js'
import type { VaultMaintenance } from '../framework/ports/vault.js'
import { verifySeals } from '../storage/barrier/reseal.js'
import type { EngineMaintenance } from '../storage/engine.js'
import type { Files } from '../storage/files.js'
import { eachRecord, type Store, type StoreReader } from '../storage/store.js'
import type { Header } from '../storage/vault-file.js'

export function createMaintenance(
  engine: EngineMaintenance,
  keyring: Keyring,
  store: Store,
  { files, random }: { files: Files; random: RandomSource },
): VaultMaintenance {
  let isClosing = false
  const backups = new Set<Promise<number>>()
  const check = () => {
    if (isClosing) throw interrupted()
  }
  return {
    async describe() {
      const { vault, format, created } = engine.header
      const { sstables: segments, walBytes, sstableBytes, rows } = await engine.status()
      const held = await store.read(countLogs)
      return {
        vault,
        format,
        created,
        key_slots: describeSlots(engine.header),
        storage: {
          records: rows.records - held.rows,
          logs: held.records,
          dead: rows.dead,
          segments,
          journal_bytes: walBytes,
          segment_bytes: sstableBytes,
        },
      }
    },
    async verify() {
      const result = await verifySeals(keyring, (check) => engine.verify(check))
      if (result.findings.length > 0) return result
      for await (const { number } of eachRecord(store, 'tenant', 0)) {
        const { brokenAt } = await store.verifyLogs(number)
        if (brokenAt === undefined) continue
        const problem = `Its chain is broken at record ${brokenAt}.`
        result.findings.push({ place: `log of tenant ${number}`, problem })
      }
      return result
    },
    compact: () => engine.compact(),
    backup(path) {
      const backup = engine.withRows(async (rows) => {
        const { writeBackup } = await import('../storage/backup-file.js')
        const content = { header: engine.header, rows, progress: () => {}, check }
        return writeBackup({ files, random, keys: keyring.engine }, path, content)
      })
      backups.add(backup)
      const forget = () => void backups.delete(backup)
      backup.then(forget, forget)
      return backup
    },
    async replaceHeader(header, replaces) {
      if (engine.header.mac !== replaces)
        throw conflict('Another process changed the key slots meanwhile. Try again.')
      await engine.replaceHeader(header as Header)
    },
    async close() {
      isClosing = true
      await Promise.allSettled(backups)
    },
  }
}

/** A page beyond the end of every list, for queries that need only the total. */
const BEYOND = { page: 2 ** 31, size: 1 }

async function countLogs(reader: StoreReader): Promise<{ records: number; rows: number }> {
  const counts = { records: 0, rows: 0 }
  for await (const { number } of eachRecord(reader, 'tenant', 0)) {
    counts.records += (await reader.find('log', number, BEYOND)).total
    counts.rows += (await reader.find('log_block', number, BEYOND)).total
  }
  return counts
}
