/** Copies what can be read of a damaged vault into a new one. */
import type { Keyring } from '../crypto/keyring.js'
import { createUuid } from '../crypto/random.js'
import { KEY_BYTES } from '../crypto/seal.js'
import { KINDS, kindOf, type RecordOf, type TenantKeyBytes } from '../domain/records/records.js'
import { CofferError } from '../errors.js'
import type { CopyDamage } from '../framework/ports/vault.js'
import { RecoveredLogs } from '../storage/barrier/recovered-logs.js'
import { createReseal, readTenantKeys } from '../storage/barrier/reseal.js'
import { openRecord, openTenantKeys } from '../storage/barrier/sealing.js'
import { toBase64 } from '../storage/bytes.js'
import type { Row, VaultRows } from '../storage/engine.js'
import { createCounters } from '../storage/lsm/counters.js'
import { openDamaged, readDamagedRows } from '../storage/lsm/maintenance/damaged.js'
import type { Progress, RowChecksum } from '../storage/vault-rows.js'
import { createInDirectory, type Source, withSource } from './copy.js'
import { createSearchRenderer, lsmOptions, runUnlocked } from './exclusive.js'
import { completeEffects, type Effects, isStore, requireDirectory, type VaultLocation } from './location.js'
import { mendRecords } from './mend.js'
import type { ChooseOpener } from './unlock.js'

/**
 * Copies each row that opens from the vault at `source`, which is not changed, into a new directory. Each log begins anew,
 * with its readable records and a record of the copy. Adds what is left out to `damage`.
 * @throws CofferError `conflict` if there is a vault at `target`, `vault_damaged` if the header of `source` does not open
 */
export function copyDamagedVault(
  source: VaultLocation,
  target: VaultLocation,
  choose: ChooseOpener,
  progress: Progress,
  damage: CopyDamage,
): Promise<RowChecksum> {
  requireDirectory(target)
  const [from, to] = [completeEffects(source), completeEffects(target)]
  const copy = (found: Source) => copyReadable(to, found, damage, progress)
  if (isStore(from.directory)) return withSource(from, choose, copy)
  return runUnlocked(from, choose, async ({ header, keyring }) => {
    const damaged = await openDamaged(lsmOptions(from, header, keyring), damage.findings)
    const { contents, sstables, lostChanges } = damaged
    if (lostChanges > 0) damage.skipped.changes = lostChanges
    async function* rows(skip?: (kind: number | undefined) => void) {
      yield* readDamagedRows(damaged, skip)
    }
    const count = sstables.reduce((sum, { sstable }) => sum + sstable.meta.rows, 0)
    const times = contents?.counters ?? createCounters()
    try {
      return await copy({ header, keyring, rows: { times, pending: [], count, rows } })
    } finally {
      for (const { sstable } of sstables) sstable.close()
    }
  })
}

async function copyReadable(effects: Effects, source: Source, damage: CopyDamage, progress: Progress) {
  const { keyring } = source
  const tenants = await readTenantKeys(keyring, source.rows.rows())
  const logs = new RecoveredLogs()
  const readable = { ...source.rows, rows: () => readReadable(effects, { ...source, tenants }, logs, damage) }
  return createInDirectory(effects, { ...source, rows: readable }, progress, ({ store }) =>
    mendRecords(store, logs, damage.skipped, {
      secretsKey: toBase64(effects.random.bytes(KEY_BYTES)),
      createUuid: () => createUuid(effects.random),
    }),
  )
}

/** The rows that open, with their keys; those of logs are added to `logs` instead. */
async function* readReadable(
  effects: Effects,
  { keyring, rows, tenants }: { keyring: Keyring; rows: VaultRows; tenants: Map<number, TenantKeyBytes> },
  logs: RecoveredLogs,
  { skipped }: CopyDamage,
): AsyncGenerator<Row> {
  const renderSearch = createSearchRenderer(effects)
  const reseal = createReseal({ present: keyring, next: keyring, tenants, renderSearch, logsAnew: true })
  const skip = (kind: number | undefined) => {
    const name = nameOf(kind)
    skipped[name] = (skipped[name] ?? 0) + 1
  }
  for await (const row of rows.rows(skip)) {
    try {
      if (row.kind === KINDS.log_block) {
        const keys = tenants.get(row.tenant)
        if (keys === undefined) skip(row.kind)
        else logs.add(row.tenant, openRecord(openTenantKeys(keyring, keys), row) as RecordOf['log_block'])
        continue
      }
      const { kind, tenant, seq, rev, created, modified, expires } = row
      // Written out, because a row of the write-ahead log is no plain object.
      yield { kind, tenant, seq, rev, created, modified, expires, ...(await reseal(row)) }
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      skip(row.kind)
    }
  }
}

function nameOf(kind: number | undefined): string {
  try {
    return kind === undefined ? 'unknown' : kindOf(kind)
  } catch {
    return 'unknown'
  }
}
