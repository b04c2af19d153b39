/** The tenants of a vault, as its owner sees them all; an application never learns that there is another. */
import { about } from '../../domain/property-errors.js'
import { checkTenantName } from '../../domain/tenant-name.js'
import type { Host } from '../../framework/perform.js'
import { readAll } from '../../storage/pages.js'
import type { Store } from '../../storage/store.js'
import { type TenantView, viewTenant } from './tenant.js'
import { createTenant, findTenant, type NewTenant } from './tenant-create.js'

/** Every tenant, newest first. */
export async function listTenants(store: Store): Promise<TenantView[]> {
  return (await store.read((reader) => readAll(reader, 'tenant', 0))).map(viewTenant)
}

/** Another tenant, owned by the vault's owner. @throws CofferError `validation`, `conflict`, `unprocessable` */
export async function addTenant(
  { store, createUuid }: Pick<Host, 'store' | 'createUuid'>,
  { name, keys }: Pick<NewTenant, 'name' | 'keys'>,
): Promise<TenantView> {
  about('name', () => checkTenantName(name))
  return viewTenant(await store.write((writer) => createTenant(writer, { name, keys, createUuid })))
}

/** @throws CofferError `not_found`, `usage` for a name that several have */
export async function showTenant(store: Store, nameOrId: string): Promise<TenantView> {
  return viewTenant(await store.read((reader) => findTenant(reader, nameOrId)))
}
