/** Creates and opens vaults in PostgreSQL, which any number of processes may have open. */
import { readFile } from 'node:fs/promises'
import { isSealedHeader, parseSlots, type Slot } from '../crypto/key-slot.js'
import type { Keyring } from '../crypto/keyring.js'
import type { Primitives } from '../crypto/primitives.js'
import { usage } from '../errors.js'
import { KEPT_KINDS } from '../storage/barrier/record-cache.js'
import { parseStoreAddress } from '../storage/postgres/address.js'
import { openPostgresEngine, type PostgresEngine } from '../storage/postgres/engine.js'
import { readStored } from '../storage/postgres/maintenance.js'
import { ConnectionPool } from '../storage/postgres/pool.js'
import {
  alreadyThere,
  beginStore,
  finishStore,
  hasVault,
  isOwn,
  migrate,
  requireTables,
} from '../storage/postgres/tables.js'
import type { Header } from '../storage/vault-file.js'
import { type App, createApp, createFirstTenant } from './app.js'
import type { Effects, VaultLocation } from './location.js'
import {
  type ChooseOpener,
  createHeader,
  describeLocked,
  type NewOpener,
  openKeyring,
  toSecret,
} from './unlock.js'

/** @throws CofferError `conflict` if there is a vault already, `usage`, `unavailable`, `storage_failed` */
export async function createInStore(effects: Effects, tenantName: string, opener: NewOpener): Promise<App> {
  return usingPool(effects, async (pool) => {
    await migrate(pool)
    // Checked before a key file is written.
    if (await hasVault(pool)) throw alreadyThere()
    const { header, keyring, primitives } = await createHeader(effects, opener)
    await beginStore(pool, header, effects.random)
    try {
      const [slot] = parseSlots(header.slots)
      const engine = await openEngine(effects, { pool, header, keyring, primitives }, slot!)
      const app = createApp({ engine, keyring, ...effects, header, primitives })
      await createFirstTenant(app, tenantName)
      await finishStore(pool, header)
      return app
    } catch (error) {
      // Another process may have begun a vault there meanwhile.
      throw (await isOwn(pool, header).catch(() => true)) ? error : alreadyThere()
    }
  })
}

/** @throws CofferError `vault_missing`, `vault_locked`, `vault_unsupported`, `usage`, `unavailable`, `storage_failed` */
export function openInStore(effects: Effects, choose: ChooseOpener): Promise<App> {
  return usingStore(effects, choose, async ({ engine, keyring, header, primitives }) =>
    createApp({ engine, keyring, ...effects, header, primitives }),
  )
}

interface OpenStore {
  /** Closed with the engine. */
  pool: ConnectionPool
  header: Header
  engine: PostgresEngine
  keyring: Keyring
  primitives: Primitives
}

/** Runs `work`, which closes the engine. @throws CofferError as {@link openInStore} */
export function usingStore<T>(
  effects: Effects,
  choose: ChooseOpener,
  work: (store: OpenStore) => Promise<T>,
): Promise<T> {
  return usingPool(effects, async (pool) => {
    if (effects.migrates) await migrate(pool)
    await requireTables(pool)
    const { header } = await readStored(pool)
    const secret = toSecret(await choose(describeLocked(header)))
    const { keyring, slot, primitives } = await openKeyring(effects, secret, header)
    const store = { pool, header, keyring, primitives }
    return work({ ...store, engine: await openEngine(effects, store, slot) })
  })
}

function openEngine(effects: Effects, store: Omit<OpenStore, 'engine'>, slot: Slot) {
  const { pool, header, keyring, primitives } = store
  const { clock, random, notice } = effects
  const refusal = (next: Header) => {
    const sealed = { ...next, slots: parseSlots(next.slots) }
    if (!isSealedHeader(primitives, sealed, keyring.header)) return 'The keys of this vault were changed.'
    const isOpen = sealed.slots.some(({ id, wrapped }) => id === slot.id && wrapped === slot.wrapped)
    return isOpen ? undefined : 'The key slot that this server opened the vault with was removed.'
  }
  const owner = { header, refusal }
  return openPostgresEngine({ pool, owner, clock, random, remembered: KEPT_KINDS, notice })
}

/** The header of the vault in a store; needs no key. @throws CofferError as {@link openInStore} */
export async function readHeaderInStore(location: VaultLocation): Promise<Header> {
  const pool = await connectStore(location)
  try {
    await requireTables(pool)
    return (await readStored(pool)).header
  } finally {
    await pool.close()
  }
}

export async function connectStore({ directory, storePassword }: VaultLocation): Promise<ConnectionPool> {
  const { connection, caFile } = parseStoreAddress(directory)
  const password = await storePassword?.()
  const given = password === undefined ? {} : { password }
  if (caFile === undefined) return new ConnectionPool({ ...connection, ...given })
  const ca = await readFile(caFile, 'utf8').catch(() => {
    throw usage('The file of sslrootcert= cannot be read.')
  })
  return new ConnectionPool({ ...connection, ...given, ssl: { ...(connection.ssl as object), ca } })
}

/** Closes the pool if `work` fails. */
async function usingPool<T>(effects: Effects, work: (pool: ConnectionPool) => Promise<T>): Promise<T> {
  const pool = await connectStore(effects)
  try {
    return await work(pool)
  } catch (error) {
    await pool.close()
    throw error
  }
}
