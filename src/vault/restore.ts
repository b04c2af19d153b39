/** Creates a vault from a backup, or from what is readable of a damaged vault. */
import { createUuid } from '../crypto/random.js'
import { KEY_BYTES } from '../crypto/seal.js'
import type { TenantKeyBytes, TenantRecord } from '../domain/records.js'
import type { SalvageReport } from '../framework/vault-port.js'
import { createReseal } from '../storage/barrier/reseal.js'
import { createSealedStore } from '../storage/barrier/sealed-store.js'
import { openRecord } from '../storage/barrier/sealing.js'
import { openFileEngine } from '../storage/engines/file-engine.js'
import { repairRecords } from '../storage/lsm/maintenance/repair.js'
import { readBackupHeader, restoreBackup } from '../storage/lsm/maintenance/restore.js'
import { salvageRows } from '../storage/lsm/maintenance/salvage.js'
import { beginVault, writeHeader } from '../storage/vault-file.js'
import { createSearchRenderer, lsmOptions, readLocked, runExclusive } from './exclusive.js'
import { completeEffects, type VaultLocation } from './open.js'
import { type ChooseOpener, choosePrimitives, describeLocked, openKeyring, toSecret } from './unlock.js'

/** Creates a vault in `location.directory` from the backup in `file`. @throws CofferError `conflict` if one exists */
export async function restoreVault(
  location: VaultLocation,
  file: string,
  choose: ChooseOpener,
): Promise<void> {
  const effects = completeEffects(location)
  const { files, random, directory } = effects
  const header = readBackupHeader(files, file)
  const secret = toSecret(await choose(describeLocked(header)))
  const primitives = await choosePrimitives(effects.role)
  const { keyring } = await openKeyring(effects, primitives, secret, header)
  await restoreBackup({ files, keys: keyring.engine, random }, file, directory)
  keyring.wipe()
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
  const target = completeEffects(location)
  const effects = { ...target, directory: source }
  const { files, random, directory } = target
  const secret = toSecret(await choose(await readLocked(effects)))
  beginVault(files, directory)
  return runExclusive(effects, async () => {
    const primitives = await choosePrimitives(effects.role)
    const { header, keyring } = await openKeyring(effects, primitives, secret)
    const tenants = new Map<number, { present: TenantKeyBytes; next: TenantKeyBytes }>()
    const context = { present: keyring, next: keyring, tenants, renderSearch: createSearchRenderer(effects) }
    let reseal: ReturnType<typeof createReseal> | undefined
    const { missingLogs, ...report } = await salvageRows({
      present: lsmOptions(effects, header, keyring),
      target: lsmOptions(target, header, keyring),
      learn: (row) => {
        const { number, keys } = openRecord(keyring.vault, row) as TenantRecord
        tenants.set(number, { present: keys, next: keys })
      },
      reseal: (row) => {
        reseal ??= createReseal(context)
        return reseal(row)
      },
    })
    await writeHeader(files, directory, random, header)
    const store = createSealedStore(
      await openFileEngine({ ...target, header, keys: keyring.engine }),
      keyring,
    )
    try {
      const secretsKey = Buffer.from(random.bytes(KEY_BYTES)).toString('base64')
      const repairs = await repairRecords(store, missingLogs, {
        secretsKey,
        createUuid: () => createUuid(random),
      })
      return { ...report, ...repairs }
    } finally {
      await store.close()
    }
  })
}
