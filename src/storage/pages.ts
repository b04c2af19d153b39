import type { Kind, RecordOf } from '../domain/records/records.js'
import type { Condition, Store, StoreReader } from './store.js'

const PAGE_SIZE = 1000

/** Newest first. A store reads each page in a unit of its own. Contract: no such record changes meanwhile. */
export async function* eachRecord<K extends Kind>(
  source: StoreReader | Store,
  kind: K,
  tenant: number,
  where?: Condition,
): AsyncGenerator<RecordOf[K]> {
  for (let page = 1; ; page++) {
    const query = { page, size: PAGE_SIZE, ...(where === undefined ? {} : { where }) }
    const find = (reader: StoreReader) => reader.find(kind, tenant, query)
    const { records, total } = 'find' in source ? await find(source) : await source.read(find)
    yield* records
    if (page * PAGE_SIZE >= total) return
  }
}

export async function readAll<K extends Kind>(
  ...query: Parameters<typeof eachRecord<K>>
): Promise<RecordOf[K][]> {
  const records: RecordOf[K][] = []
  for await (const record of eachRecord(...query)) records.push(record)
  return records
}

/** The newest record that has this value in an indexed field. */
export async function findNewest<K extends Kind>(
  reader: StoreReader,
  kind: K,
  tenant: number,
  where: { field: string; value: string },
): Promise<RecordOf[K] | undefined> {
  return (await reader.find(kind, tenant, { where, page: 1, size: 1 })).records[0]
}
