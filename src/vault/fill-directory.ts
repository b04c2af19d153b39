/** Makes a vault in a directory of the rows of another one, and backups of what is in a store by way of one. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Keyring } from '../crypto/keyring.js'
import { CofferError, conflict } from '../errors.js'
import { recallEntries } from '../storage/barrier/log-rows.js'
import { openTenantKeys } from '../storage/barrier/sealing.js'
import type { Row } from '../storage/engine.js'
import { createEngine, openFileEngine } from '../storage/engines/file-engine.js'
import { storageError } from '../storage/files.js'
import { createCounters } from '../storage/lsm/counters.js'
import { createFromRows, withRows } from '../storage/lsm/maintenance/rows.js'
import type { LsmOptions } from '../storage/lsm/options.js'
import { openLsmTree } from '../storage/lsm/recovery.js'
import type { Cargo } from '../storage/postgres/fill.js'
import type { BackUp } from '../storage/postgres/maintenance.js'
import { withSnapshot } from '../storage/postgres/snapshot.js'
import { putAndRead, Tally } from '../storage/tally.js'
import { beginVault, writeHeader } from '../storage/vault-file.js'
import { lsmOptions, readTenantKeys, usingRecords } from './exclusive.js'
import type { Effects } from './location.js'

export type Progress = (done: number, total: number) => void

/**
 * Makes a vault in a directory that has none, or goes on where an earlier call was ended; what that put there is put
 * again where it is not what there is to put now. Contract: the caller has its lock.
 */
export async function fillDirectory(
  effects: Effects,
  cargo: Cargo,
  keyring: Keyring,
  progress: Progress,
): Promise<Tally> {
  const { files, directory, random } = effects
  const { header, times, waiting, most } = cargo
  beginVault(files, directory)
  const options = lsmOptions(effects, header, keyring)
  const createTally = () => new Tally(keyring.engine.chain)
  const { time, last, since, until } = times
  const put = async (first: number): Promise<Tally> => {
    const sent = createTally()
    async function* rows(): AsyncGenerator<Row> {
      for await (const row of cargo.rows()) {
        sent.add(row)
        if (sent.count % 1000 === 0) progress(sent.count, Math.max(most, sent.count))
        if (sent.count > first) yield row
      }
    }
    const counters = { ...createCounters(), time, last, since, until }
    await createFromRows(options, rows(), { counters, goesOn: first > 0 })
    return sent
  }
  const read = () =>
    withRows(options, async (found) => {
      const arrived = createTally()
      for (const row of found.rows()) arrived.add(row)
      return arrived
    })
  const arrived = await putAndRead(await countUnfinished(options), put, read)
  const engine = createEngine({ ...effects, header, keys: keyring.engine }, await openLsmTree(options))
  await usingRecords(engine, keyring, async (store) => {
    const tenants = await readTenantKeys(store)
    await engine.write(async (writer) => {
      for (const { id, tenant, sealed } of waiting) {
        const keys = tenants.get(tenant)
        const entries = keys && recallEntries(openTenantKeys(keyring, keys), tenant, id, sealed)
        for (const entry of entries ?? []) await writer.append(entry)
      }
    })
  })
  await writeHeader(files, directory, random, header)
  return arrived
}

/** How many rows of the same vault are there already; 0 where nothing is, or nothing that these keys open. */
async function countUnfinished(options: LsmOptions): Promise<number> {
  if (options.files.stat(`${options.directory}/state`) === undefined) return 0
  return withRows(options, async ({ most }) => most).catch((error) => {
    if (error instanceof CofferError && error.code === 'vault_damaged') return 0
    throw error
  })
}

/** Runs `work` with the path of a new directory for sealed files, whose name begins with `prefix`. */
export async function withScratch<T>(prefix: string, work: (directory: string) => Promise<T>): Promise<T> {
  let directory: string
  try {
    directory = mkdtempSync(prefix)
  } catch (cause) {
    throw storageError('make a directory', prefix, cause)
  }
  try {
    return await work(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The prefix of a scratch directory of the system. */
export const SCRATCH = join(tmpdir(), 'coffer-')

/** Writes backups of a vault in a store: as files beside the backup first, which are removed again. */
export function createBackUp(effects: Effects, keyring: Keyring): BackUp {
  return (path, connection, header) => {
    if (effects.files.stat(path) !== undefined)
      throw conflict(`There is a file ${path} already. Choose another name.`)
    return withScratch(`${path}.part-`, async (directory) => {
      const place = { ...effects, directory, role: 'command' as const }
      await withSnapshot(connection, ({ state, count, ...found }) =>
        fillDirectory(place, { header, times: state, most: count, ...found }, keyring, () => {}),
      )
      const engine = await openFileEngine({ ...place, header, keys: keyring.engine })
      return engine.backup(path).finally(() => engine.close())
    })
  }
}
