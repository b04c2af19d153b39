import { readFile } from 'node:fs/promises'
import { isSealedHeader, parseSlots } from '../crypto/key-slot.js'
import { usage } from '../errors.js'
import { CACHED_KINDS } from '../storage/barrier/record-cache.js'
import { MemoryEngine } from '../storage/engines/memory-engine.js'
import { parseStoreAddress } from '../storage/postgres/address.js'
import { fillStore } from '../storage/postgres/copies.js'
import { openPostgresEngine, type PostgresEngine } from '../storage/postgres/engine.js'
import { ConnectionPool } from '../storage/postgres/pool.js'
import { createTables, readStored, requireNoVault } from '../storage/postgres/tables.js'
import { createCounters } from '../storage/time.js'
import type { Header } from '../storage/vault-file.js'
import { type App, createApp, createFirstTenant } from './app.js'
import type { Effects, VaultLocation } from './location.js'
import {
  askSecret,
  type ChooseOpener,
  createHeader,
  type NewOpener,
  type Unlocked,
  unlock,
} from './unlock.js'

export { rekeyStore } from '../storage/postgres/copies.js'
export { readStored } from '../storage/postgres/tables.js'

/**
 * @throws CofferError `conflict` if there is a vault already, `vault_damaged`, `usage`, `unavailable`, `storage_failed`
 */
export async function createInStore(effects: Effects, tenantName: string, opener: NewOpener): Promise<App> {
  return usingPool(effects, async (pool) => {
    await createTables(pool)
    // A store that has a vault is refused before a key file is saved.
    await requireNoVault(pool)
    const unlocked = await createHeader(effects, opener)
    const { header, keyring } = unlocked
    const memory = new MemoryEngine(effects.clock)
    await createFirstTenant(createApp({ ...effects, ...unlocked, engine: memory }), tenantName)
    // Turns pending log entries into rows.
    await memory.save()
    async function* rows() {
      yield* memory.rows()
    }
    const source = { times: createCounters(), pending: [], count: 0, rows }
    const options = { header, random: effects.random, mac: keyring.engine.chain, progress: () => {} }
    await fillStore(pool, source, options)
    return createApp({ ...effects, ...unlocked, engine: await openEngine(effects, pool, unlocked) })
  })
}

/**
 * @throws CofferError `vault_missing`, `vault_locked`, `vault_damaged`, `vault_unsupported`, `usage`, `unavailable`,
 * `storage_failed`
 */
export function openInStore(effects: Effects, choose: ChooseOpener): Promise<App> {
  return usingStore(effects, choose, async (unlocked, engine) =>
    createApp({ ...effects, ...unlocked, engine }),
  )
}

/** `work` must close the engine, which closes the pool. @throws CofferError like {@link openInStore} */
export function usingStore<T>(
  effects: Effects,
  choose: ChooseOpener,
  work: (unlocked: Unlocked, engine: PostgresEngine) => Promise<T>,
): Promise<T> {
  return usingPool(effects, async (pool) => {
    const { header } = await readStored(pool)
    const unlocked = await unlock(effects, await askSecret(choose, header), header)
    return work(unlocked, await openEngine(effects, pool, unlocked))
  })
}

function openEngine(
  effects: Effects,
  pool: ConnectionPool,
  { header, keyring, slot }: Pick<Unlocked, 'header' | 'keyring' | 'slot'>,
) {
  const { clock, random, notice } = effects
  const refusal = (next: Header) => {
    if (!isSealedHeader(next, keyring.header)) return 'The keys of this vault were changed.'
    const isOpen = parseSlots(next.slots).some(
      ({ id, wrapped }) => id === slot.id && wrapped === slot.wrapped,
    )
    return isOpen ? undefined : 'The key slot that this server opened the vault with was removed.'
  }
  const owner = { header, refusal }
  return openPostgresEngine({ pool, owner, clock, random, cachedKinds: CACHED_KINDS, notice })
}

/** Needs no key. @throws CofferError like {@link openInStore} */
export async function readHeaderInStore(location: VaultLocation): Promise<Header> {
  return withPool(location, async (pool) => (await readStored(pool)).header)
}

/** @throws CofferError `unavailable`, `usage` */
export async function withPool<T>(
  location: VaultLocation,
  work: (pool: ConnectionPool) => Promise<T>,
): Promise<T> {
  const pool = await connectStore(location)
  return work(pool).finally(() => pool.close())
}

async function connectStore({ directory, storePassword }: VaultLocation): Promise<ConnectionPool> {
  const { connection, caFile } = parseStoreAddress(directory)
  const password = await storePassword?.()
  const given = password === undefined ? {} : { password }
  if (caFile === undefined) return new ConnectionPool({ ...connection, ...given })
  const ca = await readFile(caFile, 'utf8').catch(() => {
    throw usage('The file in sslrootcert= cannot be read. Check its path and mode.')
  })
  return new ConnectionPool({ ...connection, ...given, ssl: { ...(connection.ssl as object), ca } })
}

/** The pool is closed only if `work` fails. */
async function usingPool<T>(effects: Effects, work: (pool: ConnectionPool) => Promise<T>): Promise<T> {
  const pool = await connectStore(effects)
  try {
    return await work(pool)
  } catch (error) {
    await pool.close()
    throw error
  }
}
