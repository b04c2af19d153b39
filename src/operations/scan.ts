/**
 * Pages of records by what no look-up knows, such as a part of a name: every record is looked at. For kinds that a
 * tenant has few of.
 */
import type { Kind, RecordOf } from '../domain/records.js'
import type { Page, StoreReader } from '../store/store.js'

const AT_ONCE = 100

/** Where a record that matches is; the record itself may be large. */
interface Found {
  tenant: number
  id: string
  created: string
}

/** The page of all that match in `tenants`, newest first, and their exact number. */
export async function findRecords<K extends Kind>(
  store: StoreReader,
  kind: K,
  tenants: readonly number[],
  matches: (record: RecordOf[K]) => boolean,
  { page, size }: Page,
): Promise<{ records: RecordOf[K][]; total: number }> {
  const found: Found[] = []
  for (const tenant of tenants) found.push(...(await scan(store, kind, tenant, matches)))
  // Each tenant's are in order; a stable sort keeps those of one moment so.
  found.sort((a, b) => (a.created < b.created ? 1 : a.created > b.created ? -1 : 0))
  const records: RecordOf[K][] = []
  for (const { tenant, id } of found.slice((page - 1) * size, page * size)) {
    const record = await store.get(kind, tenant, id)
    if (record !== undefined) records.push(record)
  }
  return { records, total: found.length }
}

async function scan<K extends Kind>(
  store: StoreReader,
  kind: K,
  tenant: number,
  matches: (record: RecordOf[K]) => boolean,
): Promise<Found[]> {
  const found: Found[] = []
  for (let page = 1; ; page++) {
    const { records, total } = await store.find(kind, tenant, { page, size: AT_ONCE })
    for (const record of records.filter(matches)) {
      const { id, created_at } = record as { id: string; created_at: string }
      found.push({ tenant, id, created: created_at })
    }
    if (page * AT_ONCE >= total) return found
  }
}
