/**
 * Copies vaults between directories, stores and backups, row by row. Ids, keys and key slots stay the same. Logs stay
 * the same too, unless the vault is damaged.
 */
import type { Keyring } from '../crypto/keyring.js'
import type { Expressions } from '../domain/expression/expression.js'
import type { TenantKeyBytes, TokenRecord } from '../domain/records/records.js'
import { renderSearchOf } from '../domain/token/token-rendering.js'
import type { CopyDamage } from '../framework/ports/vault.js'
import { readBackup, readBackupHeader } from '../storage/backup-file.js'
import { openEntries } from '../storage/barrier/log-block.js'
import { createReseal, readTenantKeys } from '../storage/barrier/reseal.js'
import { createSealedStore } from '../storage/barrier/sealed-store.js'
import type { Engine, EngineMaintenance, Row, VaultRows } from '../storage/engine.js'
import { FileEngine, openFileEngine } from '../storage/engines/file-engine.js'
import { createFromRows, readRows } from '../storage/lsm/maintenance/rows.js'
import { DamagedVault } from '../storage/lsm/maintenance/verify.js'
import { openLsmTree } from '../storage/lsm/recovery.js'
import { fillStore } from '../storage/postgres/copies.js'
import type { Store } from '../storage/store.js'
import { completeVault, type Header } from '../storage/vault-file.js'
import { copyAndVerify, type Progress, type RowChecksum } from '../storage/vault-rows.js'
import { loadExpressions } from './app.js'
import { completeEffects, type Effects, isStore, requireDirectory, type VaultLocation } from './location.js'
import { ReadableRows, requireTenants } from './readable-rows.js'
import { usingStore, withPool } from './store-vault.js'
import { askSecret, type ChooseOpener, lsmOptions, runUnlocked, unlock, withNewDirectory } from './unlock.js'

interface Source {
  header: Header
  keyring: Keyring
  rows: VaultRows
}

/** `complete` finishes the new vault before the header of the new vault is written. */
interface Copied extends Source {
  complete(opened: { engine: Engine; store: Store }): Promise<void>
}

/**
 * Creates a vault at `target`, and compares the copied rows with the source. If `damage` is given, skips and counts the
 * rows that cannot be opened. @throws CofferError `conflict`
 */
export function copyVault(
  source: VaultLocation,
  target: VaultLocation,
  choose: ChooseOpener,
  progress: Progress,
  damage?: CopyDamage,
): Promise<RowChecksum> {
  const [from, to] = [completeEffects(source), completeEffects(target)]
  if (damage !== undefined) requireDirectory(to)
  const copy = (found: Source) => fillVault(to, found, progress, damage)
  const copyRows = (engine: EngineMaintenance, keyring: Keyring) =>
    engine.withRows((rows) => copy({ header: engine.header, keyring, rows }))
  if (isStore(from.directory))
    return usingStore(from, choose, ({ keyring }, engine) =>
      copyRows(engine.maintenance!, keyring).finally(() => engine.close()),
    )
  return runUnlocked(from, choose, async ({ header, keyring, lsm }) => {
    if (damage !== undefined) {
      const found = new DamagedVault(lsm, damage.findings)
      if (found.lostChanges > 0) damage.skipped.changes = found.lostChanges
      return copy({ header, keyring, rows: found.vaultRows }).finally(() => found.close())
    }
    const engine = await openFileEngine({ ...from, header, keys: keyring.engine, role: 'command' })
    return copyRows(engine, keyring).finally(() => engine.close())
  })
}

/** Creates a vault at `target` from the backup file `path`. @throws CofferError `conflict` if `target` has a vault */
export async function restoreVault(
  target: VaultLocation,
  path: string,
  choose: ChooseOpener,
  progress: Progress,
): Promise<void> {
  const effects = completeEffects(target)
  const header = readBackupHeader(effects.files, path)
  const { keyring } = await unlock(effects, await askSecret(choose, header), header)
  const rows = readBackup(effects.files, keyring.engine, path)
  await fillVault(effects, { header, keyring, rows }, progress)
}

async function fillVault(effects: Effects, source: Source, progress: Progress, damage?: CopyDamage) {
  const { header, keyring, rows } = source
  const tenants = await readTenantKeys(keyring, rows.rows())
  const renderSearch = createSearchRenderer(effects)
  const reseal = { present: keyring, next: keyring, tenants, renderSearch }
  if (damage !== undefined) {
    await requireTenants(rows, tenants, damage)
    const readable = new ReadableRows(rows, reseal, effects.random, damage)
    const complete = ({ store }: { store: Store }) => readable.mend(store)
    const mended = { ...source, rows: { ...rows, rows: () => readable.rows() }, complete }
    return createInDirectory(effects, mended, progress)
  }
  const keyed = withKeys(rows, createReseal(reseal))
  if (!isStore(effects.directory)) {
    const complete = ({ engine }: { engine: Engine }) => appendPending(engine, keyring, tenants, rows)
    return createInDirectory(effects, { ...source, rows: keyed, complete }, progress)
  }
  const options = { header, random: effects.random, mac: keyring.engine.chain, progress }
  return withPool(effects, (pool) => fillStore(pool, keyed, options))
}

async function createInDirectory(
  effects: Effects,
  { header, keyring, rows, complete }: Copied,
  progress: Progress,
): Promise<RowChecksum> {
  const { files, directory } = effects
  return withNewDirectory(effects, async (lock) => {
    const options = lsmOptions(effects, { header, keyring })
    const target = {
      put: (sent: AsyncIterable<Row>) => createFromRows(options, sent, rows.times),
      read: () => readRows(options),
    }
    const arrived = await copyAndVerify(rows, target, keyring.engine.chain, progress)
    const engine = new FileEngine({ ...effects, header, keys: keyring.engine }, await openLsmTree(options))
    const store = createSealedStore(engine, keyring)
    await complete({ engine, store }).finally(() => store.close())
    completeVault(files, directory, header)
    lock.release()
    return arrived
  })
}

async function appendPending(
  engine: Engine,
  keyring: Keyring,
  tenants: ReadonlyMap<number, TenantKeyBytes>,
  { pending }: VaultRows,
): Promise<void> {
  if (pending.length === 0) return
  await engine.write(async (writer) => {
    for (const { id, tenant, sealed } of pending) {
      const keys = tenants.get(tenant)
      const entries = keys && openEntries(keyring.openTenant(keys), tenant, id, sealed)
      for (const entry of entries ?? []) await writer.append(entry)
    }
  })
}

/** Computes missing index keys. Rows that were read from files have no index keys. */
function withKeys(found: VaultRows, reseal: ReturnType<typeof createReseal>): VaultRows {
  async function* rows() {
    for await (const row of found.rows())
      yield row.keys.length > 0 ? row : { ...row, keys: (await reseal(row)).keys }
  }
  return { ...found, rows }
}

/** Renders the search index values of a token again, because only their digests are stored. */
export function createSearchRenderer({ random }: Effects): (token: TokenRecord) => Promise<string[]> {
  let expressions: Promise<Expressions> | undefined
  const load = () => (expressions ??= loadExpressions(random))
  return (token) => renderSearchOf(token, load)
}
