/** Moves vaults between directories, stores and backups, row by row: ids, logs, keys and key slots stay as they are. */
import type { Keyring } from '../crypto/keyring.js'
import { createReseal } from '../storage/barrier/reseal.js'
import { makeDirectories } from '../storage/files.js'
import { withRows } from '../storage/lsm/maintenance/rows.js'
import { type Cargo, fillStore } from '../storage/postgres/fill.js'
import { withSnapshot } from '../storage/postgres/snapshot.js'
import { Tally } from '../storage/tally.js'
import { createSearchRenderer, lsmOptions, owning, runUnlocked, usingRecords } from './exclusive.js'
import { fillDirectory, type Progress } from './fill-directory.js'
import { completeEffects, type Effects, isStore, type VaultLocation } from './location.js'
import { readPresent } from './rekey.js'
import { connectStore, usingStore } from './store-vault.js'
import type { ChooseOpener } from './unlock.js'

type Work<T> = (cargo: Cargo, keyring: Keyring) => Promise<T>

/**
 * Copies the vault at `source` to `target`, where there is none yet. What arrived is read again and held against what
 * was sent; only then there is a vault. Ended early, it goes on where it was when it is called again.
 * @throws CofferError `conflict` if there is a vault at `target`, and those of opening the source
 */
export function copyVault(
  source: VaultLocation,
  target: VaultLocation,
  choose: ChooseOpener,
  progress: Progress,
): Promise<Tally> {
  const effects = completeEffects(target)
  const read = isStore(source.directory) ? withStore : withDirectory
  return read(completeEffects(source), choose, async (cargo, keyring) => {
    if (!isStore(target.directory)) {
      makeDirectories(effects.files, effects.directory)
      return owning(effects, async (lock) => {
        const tally = await fillDirectory(effects, cargo, keyring, progress)
        lock.release()
        return tally
      })
    }
    const pool = await connectStore(effects)
    const createTally = () => new Tally(keyring.engine.chain)
    return fillStore(pool, cargo, { random: effects.random, createTally, progress }).finally(() =>
      pool.close(),
    )
  })
}

async function withDirectory<T>(effects: Effects, choose: ChooseOpener, work: Work<T>): Promise<T> {
  return runUnlocked(effects, choose, async (opened) => {
    const { keyring } = opened
    const { header, tenants } = await readPresent(effects, opened)
    const renderSearch = createSearchRenderer(effects)
    const reseal = createReseal({ present: keyring, next: keyring, tenants, renderSearch })
    return withRows(lsmOptions(effects, header, keyring), ({ counters, most, rows }) => {
      async function* withKeys() {
        for (const row of rows()) yield { ...row, keys: (await reseal(row)).keys }
      }
      return work({ header, times: counters, waiting: [], most, rows: withKeys }, keyring)
    })
  })
}

function withStore<T>(effects: Effects, choose: ChooseOpener, work: Work<T>): Promise<T> {
  return usingStore(effects, choose, ({ pool, header, engine, keyring }) =>
    usingRecords(engine, keyring, () =>
      pool.using((connection) =>
        withSnapshot(connection, ({ state, count, ...found }) =>
          work({ header, times: state, most: count, ...found }, keyring),
        ),
      ),
    ),
  )
}
