/**
 * The address of a page contains only the id of a session. Therefore the tenant of each session is stored under tenant
 * number 0. The record expires together with its session.
 */
import { readAll, type StoreReader, type StoreWriter } from '../../storage/store.js'

const PLACE = 'threeds_place'

/** `expires`: when the session expires, ms since the epoch. */
export function insertPlace(store: StoreWriter, tenant: number, id: string, expires: number): Promise<void> {
  return store.insert(PLACE, 0, { id, tenant }, { fresh: true, expires })
}

/** Removes the expiry of the record, because an authenticated session does not expire. */
export function keepPlace(store: StoreWriter, tenant: number, id: string): Promise<void> {
  return store.replace(PLACE, 0, { id, tenant })
}

/** Returns undefined for an unknown or expired session. */
export async function findTenant(store: StoreReader, id: string): Promise<number | undefined> {
  return (await store.get(PLACE, 0, id))?.tenant
}

/**
 * Removes the records of the tenant's sessions. Must be called when the tenant is deleted, because these records are
 * stored under tenant number 0.
 */
export async function removePlaces(store: StoreReader & StoreWriter, tenant: number): Promise<void> {
  const where = { field: 'tenant', value: String(tenant) }
  for (const { id } of await readAll(store, PLACE, 0, where)) await store.remove(PLACE, 0, id)
}
