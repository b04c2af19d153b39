/**
 * The tenant of each session. The address of a page names only the session, so the record with the tenant is stored
 * under tenant number 0. The record expires together with its session.
 */
import { readAll, type StoreReader, type StoreWriter } from '../../storage/store.js'

const PLACE = 'threeds_place'

/** `expires`: when the session expires, ms since the epoch. */
export function insertPlace(store: StoreWriter, tenant: number, id: string, expires: number): Promise<void> {
  return store.insert(PLACE, 0, { id, tenant }, { fresh: true, expires })
}

/** Removes the expiry of the record, because the session does not expire any more. */
export function keepPlace(store: StoreWriter, tenant: number, id: string): Promise<void> {
  return store.replace(PLACE, 0, { id, tenant })
}

/**
 * Returns the number of the tenant. Returns undefined if no tenant has this session, or if the session has expired.
 */
export async function findTenant(store: StoreReader, id: string): Promise<number | undefined> {
  return (await store.get(PLACE, 0, id))?.tenant
}

/**
 * Requires: called before the tenant is deleted, because these records are stored under tenant number 0, and
 * are not deleted with the tenant.
 */
export async function removePlaces(store: StoreReader & StoreWriter, tenant: number): Promise<void> {
  const where = { field: 'tenant', value: String(tenant) }
  for (const { id } of await readAll(store, PLACE, 0, where)) await store.remove(PLACE, 0, id)
}
