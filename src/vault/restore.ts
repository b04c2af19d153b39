/** Creates a vault from a backup, or from what is readable of a damaged vault. */
import { createUuid } from '../crypto/random.js'
import { KEY_BYTES } from '../crypto/seal.js'
import type { RecordOf, TenantKeyBytes, TenantRecord } from '../domain/records.js'
import type { SalvageReport } from '../framework/vault-port.js'
import { createLogSalvage } from '../storage/barrier/log-salvage.js'
import { createReseal } from '../storage/barrier/reseal.js'
import { openRecord, openTenantKeys } from '../storage/barrier/sealing.js'
import { openFileEngine } from '../storage/engines/file-engine.js'
import { repairRecords } from '../storage/lsm/maintenance/repair.js'
import { readBackupHeader, restoreBackup } from '../storage/lsm/maintenance/restore.js'
import { salvageRows } from '../storage/lsm/maintenance/salvage.js'
import { beginVault, writeHeader } from '../storage/vault-file.js'
import { createSearchRenderer, lsmOptions, runUnlocked, usingRecords } from './exclusive.js'
import type { Progress } from './fill-directory.js'
import { completeEffects, isStore, requireDirectory, type VaultLocation } from './location.js'
import { type ChooseOpener, describeLocked, openKeyring, toSecret } from './unlock.js'

/** Creates a vault at `location` from the backup in `file`. @throws CofferError `conflict` if one exists */
export async function restoreVault(
  location: VaultLocation,
  file: string,
  choose: ChooseOpener,
  progress: Progress,
): Promise<void> {
  if (isStore(location.directory)) {
    const { copyVault } = await import('./moving.js')
    const { SCRATCH, withScratch } = await import('./fill-directory.js')
    const opener = remember(choose)
    return withScratch(SCRATCH, async (directory) => {
      const unpacked = { ...location, directory }
      await restoreVault(unpacked, file, opener, progress)
      await copyVault(unpacked, location, opener, progress)
    })
  }
  const effects = completeEffects(location)
  const { files, random, directory } = effects
  const header = readBackupHeader(files, file)
  const secret = toSecret(await choose(describeLocked(header)))
  const { keyring } = await openKeyring(effects, secret, header)
  await restoreBackup({ files, keys: keyring.engine, random }, file, directory)
  keyring.wipe()
}

/** Asks once. */
function remember(choose: ChooseOpener): ChooseOpener {
  let chosen: ReturnType<ChooseOpener> | undefined
  return (vault) => (chosen ??= choose(vault))
}

/**
 * Creates a vault in `location.directory` from what is readable of the damaged one in `source`, which is not changed.
 * The new vault has the same key slots.
 * @throws CofferError `conflict` if one exists, `vault_damaged` if the header of `source` cannot be opened
 */
export async function salvageVault(
  location: VaultLocation,
  source: string,
  choose: ChooseOpener,
): Promise<SalvageReport> {
  requireDirectory(location)
  const target = completeEffects(location)
  const effects = { ...target, directory: source }
  const { files, random, directory } = target
  return runUnlocked(effects, choose, async ({ header, keyring }) => {
    beginVault(files, directory)
    const tenants = new Map<number, TenantKeyBytes>()
    const renderSearch = createSearchRenderer(effects)
    const context = { present: keyring, next: keyring, tenants, renderSearch, logsAnew: true }
    let reseal: ReturnType<typeof createReseal> | undefined
    const logs = createLogSalvage()
    const report = await salvageRows({
      present: lsmOptions(effects, header, keyring),
      target: lsmOptions(target, header, keyring),
      learn: (row) => {
        const { number, keys } = openRecord(keyring.vault, row) as TenantRecord
        tenants.set(number, keys)
      },
      reseal: (row) => {
        reseal ??= createReseal(context)
        return reseal(row)
      },
      logs: {
        take: (row) => {
          const keys = tenants.get(row.tenant)
          if (keys === undefined) return false
          logs.take(row, openRecord(openTenantKeys(keyring, keys), row) as RecordOf['log_block'])
          return true
        },
        lose: logs.lose,
      },
    })
    await writeHeader(files, directory, random, header)
    const engine = await openFileEngine({ ...target, header, keys: keyring.engine })
    return usingRecords(engine, keyring, async (store) => {
      const secretsKey = Buffer.from(random.bytes(KEY_BYTES)).toString('base64')
      const { salvaged, missing } = await logs.restore(store)
      if (salvaged > 0) report.salvaged.log = salvaged
      const lost = [...missing.values()].reduce((sum, count) => sum + count, 0)
      if (lost > 0) report.missing.log = lost
      const repairs = await repairRecords(store, missing, {
        secretsKey,
        createUuid: () => createUuid(random),
      })
      return { ...report, ...repairs }
    })
  })
}
