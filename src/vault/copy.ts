/** Copies vaults between directories, stores and backups, row by row: ids, logs, keys and key slots stay as they are. */
import type { Keyring } from '../crypto/keyring.js'
import { readBackup, readBackupHeader } from '../storage/backup-file.js'
import { openEntries } from '../storage/barrier/pending-entries.js'
import { createReseal, readTenantKeys } from '../storage/barrier/reseal.js'
import { createSealedStore } from '../storage/barrier/sealed-store.js'
import { openTenantKeys } from '../storage/barrier/sealing.js'
import type { Engine, EngineMaintenance, Row, VaultRows } from '../storage/engine.js'
import { FileEngine, openFileEngine } from '../storage/engines/file-engine.js'
import { createFromRows, readRows } from '../storage/lsm/maintenance/rows.js'
import { openLsmTree } from '../storage/lsm/recovery.js'
import { fillStore } from '../storage/postgres/fill.js'
import type { Store } from '../storage/store.js'
import { beginVault, type Header, writeHeader } from '../storage/vault-file.js'
import { copyAndVerify, type Progress, type RowChecksum } from '../storage/vault-rows.js'
import { createSearchRenderer, lsmOptions, owning, runUnlocked } from './exclusive.js'
import { completeEffects, type Effects, isStore, type VaultLocation } from './location.js'
import { connectStore, usingStore } from './store-vault.js'
import { type ChooseOpener, describeLocked, openKeyring, toSecret } from './unlock.js'

/** The rows of an unlocked vault. */
export interface Source {
  header: Header
  keyring: Keyring
  rows: VaultRows
}

/**
 * Copies the vault at `source` to `target`. The rows that arrived are read again and compared with the rows that were
 * sent; the vault exists only after that. After an interruption there is no vault, and a copy begins anew.
 * @throws CofferError `conflict` if there is a vault at `target`, and those of opening the source
 */
export function copyVault(
  source: VaultLocation,
  target: VaultLocation,
  choose: ChooseOpener,
  progress: Progress,
): Promise<RowChecksum> {
  const from = completeEffects(source)
  return withSource(from, choose, async (found) => {
    const rows = await withKeys(from, found)
    return fillVault(completeEffects(target), { ...found, rows }, progress)
  })
}

/** Creates a vault at `target` from the backup in `path`. @throws CofferError `conflict` if one exists */
export async function restoreVault(
  target: VaultLocation,
  path: string,
  choose: ChooseOpener,
  progress: Progress,
): Promise<void> {
  const effects = completeEffects(target)
  const header = readBackupHeader(effects.files, path)
  const secret = toSecret(await choose(describeLocked(header)))
  const { keyring } = await openKeyring(effects, secret, header)
  const rows = readBackup(effects.files, keyring.engine, path)
  const source = { header, keyring, rows }
  await fillVault(effects, { ...source, rows: await withKeys(effects, source) }, progress)
}

/** Runs `work` over the present rows of a vault. No other process may have a vault in a directory open meanwhile. */
export function withSource<T>(
  effects: Effects,
  choose: ChooseOpener,
  work: (source: Source) => Promise<T>,
): Promise<T> {
  const read = (maintenance: EngineMaintenance, keyring: Keyring, close: () => Promise<void>) =>
    maintenance.withRows((rows) => work({ header: maintenance.header, keyring, rows })).finally(close)
  if (isStore(effects.directory))
    return usingStore(effects, choose, ({ engine, keyring }) => {
      const store = createSealedStore(engine, keyring)
      return read(engine.maintenance!, keyring, () => store.close())
    })
  return runUnlocked(effects, choose, async ({ header, keyring }) => {
    const engine = await openFileEngine({ ...effects, header, keys: keyring.engine, role: 'command' })
    return read(engine, keyring, () => engine.close())
  })
}

/** Contract: the rows have their keys. @throws CofferError `conflict` if there is a vault */
async function fillVault(effects: Effects, source: Source, progress: Progress): Promise<RowChecksum> {
  if (!isStore(effects.directory))
    return createInDirectory(effects, source, progress, ({ engine }) => appendPending(engine, source))
  const { header, keyring, rows } = source
  const pool = await connectStore(effects)
  const options = { header, random: effects.random, mac: keyring.engine.chain, progress }
  return fillStore(pool, rows, options).finally(() => pool.close())
}

/** `complete` is called before the header is written: until then there is no vault. */
export async function createInDirectory(
  effects: Effects,
  { header, keyring, rows }: Source,
  progress: Progress,
  complete: (opened: { engine: Engine; store: Store }) => Promise<void>,
): Promise<RowChecksum> {
  const { files, directory, random } = effects
  // Checked before waiting for the lock too, because a server may hold the lock.
  beginVault(files, directory)
  return owning(effects, async (lock) => {
    beginVault(files, directory)
    const options = lsmOptions(effects, header, keyring)
    const target = {
      put: (sent: AsyncIterable<Row>) => createFromRows(options, sent, rows.times),
      read: () => readRows(options),
    }
    const arrived = await copyAndVerify(rows, target, keyring.engine.chain, progress)
    const engine = new FileEngine({ ...effects, header, keys: keyring.engine }, await openLsmTree(options))
    const store = createSealedStore(engine, keyring)
    await complete({ engine, store }).finally(() => store.close())
    await writeHeader(files, directory, random, header)
    lock.release()
    return arrived
  })
}

/** Appends the log entries that are in no row yet. */
async function appendPending(engine: Engine, { keyring, rows }: Source): Promise<void> {
  if (rows.pending.length === 0) return
  const tenants = await readTenantKeys(keyring, rows.rows())
  await engine.write(async (writer) => {
    for (const { id, tenant, sealed } of rows.pending) {
      const keys = tenants.get(tenant)
      const entries = keys && openEntries(openTenantKeys(keyring, keys), tenant, id, sealed)
      for (const entry of entries ?? []) await writer.append(entry)
    }
  })
}

/** Adds keys to the rows of files, which have them only in their index. */
async function withKeys(effects: Effects, { keyring, rows: bare }: Source): Promise<VaultRows> {
  const tenants = await readTenantKeys(keyring, bare.rows())
  const renderSearch = createSearchRenderer(effects)
  const reseal = createReseal({ present: keyring, next: keyring, tenants, renderSearch })
  async function* rows() {
    for await (const row of bare.rows())
      yield row.keys.length > 0 ? row : { ...row, keys: (await reseal(row)).keys }
  }
  return { ...bare, rows }
}
