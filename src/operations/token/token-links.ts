/** Records of links between tokens. */
import { associationId } from '../../domain/records/records.js'
import { readAll } from '../../storage/pages.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'

export function findChildLinks(store: StoreReader, tenant: number, parentId: string) {
  return readAll(store, 'association', tenant, { field: 'parent', value: parentId })
}

export async function removeLinks(store: StoreWriter, tenant: number, tokenId: string): Promise<void> {
  const where = { or: ['parent', 'child'].map((field) => ({ field, value: tokenId })) }
  for (const { id } of await readAll(store, 'association', tenant, where))
    await store.remove('association', tenant, id)
}

export async function isLinked(store: StoreReader, tenant: number, parentId: string, childId: string) {
  return (await store.get('association', tenant, associationId(parentId, childId))) !== undefined
}
